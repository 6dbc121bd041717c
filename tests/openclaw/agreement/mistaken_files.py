"""Mistakes in the use of files: in reading, writing and editing them, in patches and commands."""

from functools import partial

from pytest_openclaw.values.worlds import ScriptedCommand
from tests.openclaw.agreement.cases import DONE, call, edit, own_case, read, write


def mistaken_files():
    yield from _files()
    yield from _edits()
    yield from _patches()
    yield from _commands()


def _ls(path):
    return call("ls", path=path)


def _files():
    yield own_case(
        "read-nothing-there",
        "missing files, a folder, an empty file, a name that is nearly right",
        [read("no.txt"), read("deep")],
        [read("empty.txt"), read("")],
        [read("deep/no/more.txt"), read("a.txt/x")],
        [read("a.tx"), read("A.TXT")],
        [_ls("no"), _ls("a.txt"), _ls("")],
        DONE,
    )
    yield own_case(
        "write",
        "new folders, over a folder, under a file, empty, over an existing file",
        [write("new/er/n.txt", "x\n"), write("deep", "x")],
        [write("a.txt/n.txt", "x"), write("e.txt", "")],
        [write("b.txt", "new"), read("b.txt")],
        [write("", "x"), write("ü ñ.txt", "ä€😀")],
        [write("r.txt", "a\r\nb\r\n"), read("r.txt")],
        [_ls("."), _ls("new")],
        DONE,
        tools=("write", "read", "edit", "ls"),
    )


def _edits():
    case = partial(own_case, tools=("edit", "read"))
    yield case(
        "edit-not-found",
        "an old text that is not there, or not quite",
        [edit("a.txt", ("four", "4"))],
        [edit("a.txt", ("One", "1"))],
        [edit("a.txt", ("one \ntwo", "1"))],
        [edit("a.txt", ("one\\ntwo", "1"))],
        [edit("a.txt", ("one", "1"), ("four", "4"))],
        [edit("no.txt", ("one", "1"))],
        [edit("deep", ("one", "1"))],
        DONE,
    )
    yield case(
        "edit-ambiguous",
        "an old text that occurs twice, overlapping edits, an empty one, no change",
        [edit("b.txt", ("same", "1"))],
        [edit("b.txt", ("other\nsame", "1"), ("same\nother", "2"))],
        [edit("b.txt", ("", "1"))],
        [edit("b.txt", ("other", "other"))],
        [edit("empty.txt", ("", "1"))],
        [edit("b.txt", ("same\nother", "A\nB"), ("same\n", ""))],
        DONE,
    )
    yield case(
        "edit-tolerance",
        "blanks, quotes and dashes that differ; line ends of Windows",
        [edit("q.txt", ('it\'s "so" - yes', "no"))],
        [edit("w.txt", ("one\ntwo", "1\n2"))],
        [edit("t.txt", ("a b\nc", "abc"))],
        [edit("i.txt", ("x = 1\ny = 2", "x = 3\ny = 4"))],
        [read("w.txt"), read("t.txt")],
        DONE,
        files={
            "q.txt": "it\u2019s \u201cso\u201d \u2013 yes\n",
            "w.txt": "one\r\ntwo\r\nthree\r\n",
            "t.txt": "a b  \nc\nrest\n",
            "i.txt": "if z:\n    x = 1\n    y = 2\n",
        },
    )


def _patches():
    def raw(text):
        return [call("apply_patch", input=text)]

    def patch(*lines):
        return raw("\n".join(["*** Begin Patch", *lines, "*** End Patch"]))

    case = partial(own_case, tools=("apply_patch", "read", "write"))
    yield case(
        "patch-good",
        "a file added, changed, moved and deleted",
        patch("*** Add File: new/n.txt", "+hello", "+there"),
        patch("*** Update File: a.txt", "@@", " one", "-two", "+2", " three"),
        patch("*** Update File: b.txt", "@@ other", "-same", "+last"),
        patch("*** Update File: deep/c.txt", "*** Move to: c.txt", "@@", "-C", "+D"),
        patch("*** Delete File: empty.txt"),
        patch("*** Update File: a.txt", "@@", "+four", "*** End of File"),
        DONE,
    )
    yield case(
        "patch-bad",
        "no patch, no end, lines that are not there, a missing file, no piece",
        raw("-two\n+2"),
        raw("*** Begin Patch\n*** Update File: a.txt\n@@\n-two\n+2"),
        patch("*** Update File: a.txt", "@@", "-four", "+4"),
        patch("*** Update File: no.txt", "@@", "-one", "+1"),
        patch("*** Update File: a.txt"),
        patch("*** Delete File: no.txt"),
        patch("*** Change File: a.txt", "+x"),
        [*raw(""), call("apply_patch", patch="x")],
        patch(),
        DONE,
    )
    yield case(
        "patch-edges",
        "an existing file added, one outside, several files of which the second fails, a diff's head",
        patch("*** Add File: a.txt", "+new"),
        patch("*** Add File: ../x.txt", "+x"),
        patch("*** Add File: n.txt", "+n", "*** Update File: b.txt", "@@", "-nothing", "+x"),
        patch("*** Update File: b.txt", "@@ -1,3 +1,3 @@", "-other", "+2"),
        patch("*** Add File: m.txt", "m without its plus"),
        patch("*** Update File: b.txt", "@@", "same", "-other", "+2"),
        patch("*** Update File: deep", "@@", "-x", "+y"),
        patch("*** Delete File: deep"),
        raw("<<'EOF'\n*** Begin Patch\n*** Add File: h.txt\n+h\n*** End Patch\nEOF"),
        DONE,
    )


def _commands():
    def run(command, **more):
        return call("exec", command=command, **more)

    commands = (
        ScriptedCommand(pattern="make", output="no rule", exit_code=2),
        ScriptedCommand(pattern="true"),
    )
    case = partial(own_case, tools=("exec", "read"), commands=commands)
    yield case(
        "exec",
        "commands that fail, do not exist, print nothing, or work on files",
        [run("make"), run("nothing-like-it")],
        [run("true"), run("cat no.txt")],
        [run("echo hi > n.txt && cat n.txt")],
        [run("cat a.txt | wc -l; ls deep"), read("n.txt")],
        [run("rm -r deep && ls")],
        [call("bash", command="cat a.txt")],
        DONE,
    )
    yield case(
        "exec-arguments",
        "an empty command, other names of arguments, a missing folder",
        [run(""), call("exec", cmd="make")],
        [run("make", timeout=5), run("ls", workdir="no")],
        [run(["ls"]), run("ls", workdir="deep")],
        [run("ls", timeoutSeconds="5"), run("ls", yieldMs=-1)],
        DONE,
    )
