"""Mistakes in the use of files: in reading, writing and editing them, in patches and commands."""

from __future__ import annotations

from collections.abc import Iterator

from pytest_openclaw.values.worlds import Command
from tests.openclaw.agreement.cases import DONE, FILES, Case, call, calls, own_case
from tests.openclaw.model_server import Said


def mistaken_files() -> Iterator[Case]:
    """Yield the cases."""
    yield from _files()
    yield from _patches()
    yield from _commands()


def _files() -> Iterator[Case]:
    yield own_case(
        "read-nothing-there",
        "files that are not there, a folder, an empty file, a name that is nearly right",
        calls(call("read", path="no.txt"), call("read", path="deep")),
        calls(call("read", path="empty.txt"), call("read", path="")),
        calls(call("read", path="deep/no/more.txt"), call("read", path="a.txt/x")),
        calls(call("read", path="a.tx"), call("read", path="A.TXT")),
        calls(call("ls", path="no"), call("ls", path="a.txt"), call("ls", path="")),
        DONE,
        files=FILES,
    )
    yield own_case(
        "read-parts",
        "offset and limit within and beyond the end",
        calls(call("read", path="a.txt", offset=2), call("read", path="a.txt", limit=1)),
        calls(call("read", path="a.txt", offset=2, limit=1), call("read", path="a.txt", offset=3, limit=9)),
        calls(call("read", path="a.txt", offset=4), call("read", path="a.txt", offset=99)),
        calls(call("read", path="a.txt", limit=0), call("read", path="a.txt", limit=1.5)),
        calls(call("read", path="deep/c.txt", offset=2), call("read", path="empty.txt", offset=2)),
        DONE,
        files=FILES,
    )
    yield own_case(
        "paths",
        "spellings of a path: ./, .., absolute, blanks, a slash at its end, ~",
        calls(call("read", path="./a.txt"), call("read", path="deep/../a.txt")),
        calls(call("read", path=" a.txt "), call("read", path="a.txt/")),
        calls(call("read", path="@a.txt"), call("read", path="file:a.txt"), call("ls", path="deep/")),
        calls(call("read", path="deep//c.txt"), call("read", path="`a.txt`"), call("read", path="/a.txt")),
        DONE,
        files=FILES,
    )
    yield own_case(
        "escapes",
        "paths outside: .., absolute ones, ~, into and out",
        calls(call("read", path="../a.txt"), call("read", path="/etc/hostname")),
        calls(call("write", path="../x.txt", content="x"), call("write", path="/tmp/x.txt", content="x")),
        calls(call("read", path="~/.ssh/id_rsa"), call("ls", path="..")),
        calls(call("edit", path="../a.txt", edits=[{"oldText": "a", "newText": "b"}]), call("ls", path="/")),
        calls(call("read", path="deep/../../a.txt"), call("write", path="~/x.txt", content="x")),
        DONE,
        files=FILES,
    )
    yield own_case(
        "write",
        "new folders, over a folder, under a file, empty, over an existing file",
        calls(call("write", path="new/er/n.txt", content="x\n"), call("write", path="deep", content="x")),
        calls(call("write", path="a.txt/n.txt", content="x"), call("write", path="e.txt", content="")),
        calls(call("write", path="b.txt", content="new"), call("read", path="b.txt")),
        calls(call("write", path="", content="x"), call("write", path="ü ñ.txt", content="ä€😀")),
        calls(call("write", path="r.txt", content="a\r\nb\r\n"), call("read", path="r.txt")),
        calls(call("ls", path="."), call("ls", path="new")),
        DONE,
        tools=("write", "read", "edit", "ls"),
        files=FILES,
    )
    yield own_case(
        "edit-not-found",
        "an old text that is not there, or not quite",
        calls(call("edit", path="a.txt", edits=[{"oldText": "four", "newText": "4"}])),
        calls(call("edit", path="a.txt", edits=[{"oldText": "One", "newText": "1"}])),
        calls(call("edit", path="a.txt", edits=[{"oldText": "one \ntwo", "newText": "1"}])),
        calls(call("edit", path="a.txt", edits=[{"oldText": "one\\ntwo", "newText": "1"}])),
        calls(
            call(
                "edit",
                path="a.txt",
                edits=[{"oldText": "one", "newText": "1"}, {"oldText": "four", "newText": "4"}],
            )
        ),
        calls(call("edit", path="no.txt", edits=[{"oldText": "one", "newText": "1"}])),
        calls(call("edit", path="deep", edits=[{"oldText": "one", "newText": "1"}])),
        DONE,
        tools=("edit", "read"),
        files=FILES,
    )
    yield own_case(
        "edit-ambiguous",
        "an old text that occurs twice, overlapping edits, an empty one, no change",
        calls(call("edit", path="b.txt", edits=[{"oldText": "same", "newText": "1"}])),
        calls(
            call(
                "edit",
                path="b.txt",
                edits=[
                    {"oldText": "other\nsame", "newText": "1"},
                    {"oldText": "same\nother", "newText": "2"},
                ],
            )
        ),
        calls(call("edit", path="b.txt", edits=[{"oldText": "", "newText": "1"}])),
        calls(call("edit", path="b.txt", edits=[{"oldText": "other", "newText": "other"}])),
        calls(call("edit", path="empty.txt", edits=[{"oldText": "", "newText": "1"}])),
        calls(
            call(
                "edit",
                path="b.txt",
                edits=[{"oldText": "same\nother", "newText": "A\nB"}, {"oldText": "same\n", "newText": ""}],
            )
        ),
        DONE,
        tools=("edit", "read"),
        files=FILES,
    )
    yield own_case(
        "edit-tolerance",
        "blanks, quotes and dashes that differ; line ends of Windows",
        calls(call("edit", path="q.txt", edits=[{"oldText": 'it\'s "so" - yes', "newText": "no"}])),
        calls(call("edit", path="w.txt", edits=[{"oldText": "one\ntwo", "newText": "1\n2"}])),
        calls(call("edit", path="t.txt", edits=[{"oldText": "a b\nc", "newText": "abc"}])),
        calls(call("edit", path="i.txt", edits=[{"oldText": "x = 1\ny = 2", "newText": "x = 3\ny = 4"}])),
        calls(call("read", path="w.txt"), call("read", path="t.txt")),
        DONE,
        tools=("edit", "read"),
        files={
            "q.txt": "it\u2019s \u201cso\u201d \u2013 yes\n",
            "w.txt": "one\r\ntwo\r\nthree\r\n",
            "t.txt": "a b  \nc\nrest\n",
            "i.txt": "if z:\n    x = 1\n    y = 2\n",
        },
    )


def _patches() -> Iterator[Case]:
    def patch(*lines: str) -> Said:
        text = "\n".join(["*** Begin Patch", *lines, "*** End Patch"])
        return calls(call("apply_patch", input=text))

    yield own_case(
        "patch-good",
        "a file added, changed, moved and deleted",
        patch("*** Add File: new/n.txt", "+hello", "+there"),
        patch("*** Update File: a.txt", "@@", " one", "-two", "+2", " three"),
        patch("*** Update File: b.txt", "@@ other", "-same", "+last"),
        patch("*** Update File: deep/c.txt", "*** Move to: c.txt", "@@", "-C", "+D"),
        patch("*** Delete File: empty.txt"),
        patch("*** Update File: a.txt", "@@", "+four", "*** End of File"),
        DONE,
        tools=("apply_patch", "read", "write"),
        files=FILES,
    )
    yield own_case(
        "patch-bad",
        "no patch, no end, lines that are not there, a file that is not there, no piece",
        calls(call("apply_patch", input="-two\n+2")),
        calls(call("apply_patch", input="*** Begin Patch\n*** Update File: a.txt\n@@\n-two\n+2")),
        patch("*** Update File: a.txt", "@@", "-four", "+4"),
        patch("*** Update File: no.txt", "@@", "-one", "+1"),
        patch("*** Update File: a.txt"),
        patch("*** Delete File: no.txt"),
        patch("*** Change File: a.txt", "+x"),
        calls(call("apply_patch", input=""), call("apply_patch", patch="x")),
        patch(),
        DONE,
        tools=("apply_patch", "read", "write"),
        files=FILES,
    )
    yield own_case(
        "patch-edges",
        "a file added that is there, one outside, several files of which the second fails, a diff's head",
        patch("*** Add File: a.txt", "+new"),
        patch("*** Add File: ../x.txt", "+x"),
        patch("*** Add File: n.txt", "+n", "*** Update File: b.txt", "@@", "-nothing", "+x"),
        patch("*** Update File: b.txt", "@@ -1,3 +1,3 @@", "-other", "+2"),
        patch("*** Add File: m.txt", "m without its plus"),
        patch("*** Update File: b.txt", "@@", "same", "-other", "+2"),
        patch("*** Update File: deep", "@@", "-x", "+y"),
        patch("*** Delete File: deep"),
        calls(
            call("apply_patch", input="<<'EOF'\n*** Begin Patch\n*** Add File: h.txt\n+h\n*** End Patch\nEOF")
        ),
        DONE,
        tools=("apply_patch", "read", "write"),
        files=FILES,
    )


def _commands() -> Iterator[Case]:
    commands = (Command(pattern="make", output="no rule", exit_code=2), Command(pattern="true"))
    yield own_case(
        "exec",
        "commands that fail, that are not there, that say nothing, that work on files",
        calls(call("exec", command="make"), call("exec", command="nothing-like-it")),
        calls(call("exec", command="true"), call("exec", command="cat no.txt")),
        calls(call("exec", command="echo hi > n.txt && cat n.txt")),
        calls(call("exec", command="cat a.txt | wc -l; ls deep"), call("read", path="n.txt")),
        calls(call("exec", command="rm -r deep && ls")),
        calls(call("bash", command="cat a.txt")),
        DONE,
        tools=("exec", "read"),
        files=FILES,
        commands=commands,
    )
    yield own_case(
        "exec-arguments",
        "an empty command, other names of arguments, a folder that is not there",
        calls(call("exec", command=""), call("exec", cmd="make")),
        calls(call("exec", command="make", timeout=5), call("exec", command="ls", workdir="no")),
        calls(call("exec", command=["ls"]), call("exec", command="ls", workdir="deep")),
        calls(call("exec", command="ls", timeoutSeconds="5"), call("exec", command="ls", yieldMs=-1)),
        DONE,
        tools=("exec", "read"),
        files=FILES,
        commands=commands,
    )
