"""The file tools of a world answer as OpenClaw's do."""

from __future__ import annotations

from typing import Any

import pytest

from pytest_openclaw.values.worlds import World

NO_EDITS = "Missing required parameter: edits (received: path, edits=<array>). Supply correct parameters before retrying."


def outside(path: str) -> str:
    """The answer about a path outside the workspace."""
    scratch = "Use a relative path under `.openclaw/tmp/` inside the workspace for scratch/temp/meta files"
    return f"Path escapes sandbox root (/workspace): {path}. {scratch} that file tools need to read or write later."


@pytest.mark.parametrize(
    ("tool", "arguments", "answer"),
    [
        pytest.param("read", {"path": "notes.md"}, "milk\neggs\nbread\n", id="whole"),
        pytest.param("read", {"path": "./src/../notes.md"}, "milk\neggs\nbread\n", id="roundabout"),
        pytest.param("read", {"path": "/workspace/notes.md"}, "milk\neggs\nbread\n", id="absolute-inside"),
        pytest.param(
            "read",
            {"path": "notes.md", "offset": 2, "limit": 1},
            "eggs\n\n[1 more line in file. Use offset=3 to continue.]",
            id="a-part",
        ),
        pytest.param("read", {"path": "empty.txt"}, "File is empty (0 bytes).", id="empty"),
        pytest.param(
            "read",
            {"path": "nope", "optional": True},
            "Optional file not found: /workspace/nope.",
            id="optional",
        ),
        pytest.param(
            "ls",
            {},
            '".hidden"\n"empty.txt"\n"memory/"\n"notes.md"\n"src/"',
            id="ls-does-not-show-what-is-outside",
        ),
        pytest.param("ls", {"path": "src"}, '"app.py"\n"lib/"', id="ls-folder"),
        pytest.param(
            "ls",
            {"limit": 2},
            '".hidden"\n"empty.txt"\n\n[More entries. Continue with the same path and after="empty.txt".]',
            id="ls-limit",
        ),
        pytest.param("ls", {"after": "memory/"}, '"notes.md"\n"src/"', id="ls-after"),
        pytest.param(
            "write",
            {"path": "a/ü.txt", "content": "ü"},
            "Successfully wrote 2 bytes to /workspace/a/ü.txt",
            id="write",
        ),
        pytest.param(
            "read",
            {"path": "notes.md", "offset": 9},
            "Offset 9 is beyond end of file (3 lines total). Retry with offset <= 3.",
            id="offset",
        ),
        pytest.param("read", {"path": "notes.md", "offset": 2}, "eggs\nbread\n", id="to-the-end"),
        pytest.param(
            "edit",
            {"path": "notes.md", "edits": [{"oldText": "milk", "newText": "milk"}]},
            "No changes made to /workspace/notes.md. The replacement text is identical to the original.",
            id="no-change",
        ),
    ],
)
def test_the_answers(call: Any, tool: str, arguments: dict[str, Any], answer: str) -> None:
    """A tool that succeeds says so in plain words."""
    assert call(tool, **arguments) == answer


@pytest.mark.parametrize(
    ("tool", "arguments", "error"),
    [
        pytest.param("read", {"path": "nope.md"}, "File not found: /workspace/nope.md. Did you mean: notes.md?", id="no-file"),
        pytest.param("read", {"path": "../secret"}, outside("../secret"), id="above"),
        pytest.param("read", {"path": "/etc/hosts"}, outside("/etc/hosts"), id="absolute"),
        pytest.param("read", {"path": "~/.ssh/id"}, outside("~/.ssh/id"), id="home"),
        pytest.param("read", {"path": "/workspace2/x"}, outside("/workspace2/x"), id="a-longer-name"),
        pytest.param("write", {"path": "../x", "content": ""}, outside("../x"), id="write-outside"),
        pytest.param("ls", {"path": "/"}, outside("/"), id="ls-outside"),
        pytest.param(
            "edit", {"path": "../x", "edits": [{"oldText": "a", "newText": "b"}]}, outside("../x"), id="edit-outside"
        ),
        pytest.param("read", {"path": "src"}, "Read requires a file path, but /workspace/src is a directory. List the directory, then read a specific file.", id="a-folder"),
        pytest.param("read", {"path": "a\0b"}, "Invalid path: it holds a null byte", id="null-byte"),
        pytest.param("read", {"path": "a/" * 40}, "ENAMETOOLONG: name too long", id="too-deep"),
        pytest.param("read", {"path": "a" * 5000}, "ENAMETOOLONG: name too long", id="too-long"),
        pytest.param("write", {"path": "src", "content": "x"}, "not a file", id="over-a-folder"),
        pytest.param("write", {"path": "notes.md/x", "content": "x"}, "Path component is not a directory: /workspace/notes.md", id="under-a-file"),
        pytest.param("ls", {"path": "notes.md"}, "directory not found", id="ls-file"),
        pytest.param("ls", {"path": "nope"}, "directory not found", id="ls-nothing"),
        pytest.param("edit", {"path": "nope", "edits": [{"oldText": "a", "newText": "b"}]}, "Could not edit file: /workspace/nope. Error code: ENOENT.", id="edit-nothing"),
        pytest.param("edit", {"path": "notes.md", "edits": []}, NO_EDITS, id="no-edits"),
        pytest.param("edit", {"path": "notes.md", "edits": [{"oldText": "", "newText": "b"}]}, NO_EDITS, id="empty-old-text"),
        pytest.param(
            "edit", {"path": "notes.md", "edits": [{"oldText": "e", "newText": "b"}]},
            "Found 2 occurrences of the text in /workspace/notes.md. The text must be unique. Please provide more context to make it unique.", id="twice",
        ),
        pytest.param(
            "edit", {"path": "notes.md", "edits": [{"oldText": "milk\neggs", "newText": "a"}, {"oldText": "eggs\n", "newText": "b"}]},
            "edits[0] and edits[1] overlap in /workspace/notes.md. Merge them into one edit or target disjoint regions.", id="overlap",
        ),
    ],
)  # fmt: skip
def test_what_cannot_be_done(call: Any, tool: str, arguments: dict[str, Any], error: str) -> None:
    """An error is JSON with the tool's name, and nothing has changed."""
    assert call.error(tool, **arguments) == error
    assert call.playing.state.changed == ()


def test_an_edit_that_does_not_fit_shows_what_is_there(call: Any) -> None:
    """The model sees the file, so that it can try again."""
    error = call.error("edit", path="notes.md", edits=[{"oldText": "tea", "newText": "coffee"}])

    assert error.startswith("Could not find the exact text in /workspace/notes.md. ")
    assert error.endswith("\nCurrent file contents:\nmilk\neggs\nbread\n")


def test_edits_are_all_or_nothing(call: Any) -> None:
    """One edit that does not fit leaves the file unchanged; all are applied to the original text."""
    good = {"oldText": "milk", "newText": "eggs"}
    error = call.error("edit", path="notes.md", edits=[good, {"oldText": "tea", "newText": "coffee"}])
    assert error.startswith("Could not find edits[1] in /workspace/notes.md.")
    assert call.files["notes.md"] == "milk\neggs\nbread\n"

    edits = [good, {"oldText": "bread\n", "newText": ""}, {"oldText": "eggs", "newText": "milk"}]
    assert (
        call("edit", path="notes.md", edits=edits)
        == "Successfully replaced 3 block(s) in /workspace/notes.md."
    )
    assert call.files["notes.md"] == "eggs\nmilk\n"


def test_what_changed_is_known(call: Any) -> None:
    """The state names new, changed and removed files, and not one that was put back."""
    call("write", path="new.txt", content="n")
    call("write", path="notes.md", content="other")
    call("write", path="empty.txt", content="x")
    call("write", path="empty.txt", content="")
    call.sh("rm src/app.py")

    assert set(call.playing.state.changed) == {"new.txt", "notes.md", "src/app.py"}
    assert call.files["new.txt"] == "n"
    assert "src/app.py" not in call.files


@pytest.mark.parametrize(
    ("start", "old", "new", "end"),
    [
        pytest.param(
            "it\u2019s \u201cso\u201d \u2013 yes\n", 'it\'s "so" - yes', "no", "no\n", id="quotes-and-dashes"
        ),
        pytest.param("a b  \nc\nrest\n", "a b\nc", "abc", "abc\nrest\n", id="blanks-behind-a-line"),
        pytest.param("a\u00a0b\n", "a b", "c", "c\n", id="another-blank"),
        pytest.param("x one  \ny\n", "one", "two", "x two  \ny\n", id="the-rest-stays"),
        pytest.param("a\r\nb\r\nc\r\n", "a\nb", "1\n2\n3", "1\r\n2\r\n3\r\nc\r\n", id="carriage-returns"),
        pytest.param("a\r\nb\nc\n", "b", "B", "a\r\nB\nc\n", id="mixed-line-ends"),
        pytest.param("e\u0301t\u00e9\n", "\u00e9t\u00e9", "x", "x\n", id="combined-marks"),
    ],
)
def test_an_edit_is_found_with_some_tolerance(
    calls_in: Any, start: str, old: str, new: str, end: str
) -> None:
    """The rules are those of OpenClaw 2026.9.6; the rest of the text stays unchanged."""
    call = calls_in(World(files={"f": start}))

    assert call("edit", path="f", edits=[{"oldText": old, "newText": new}]).startswith("Successfully")

    assert call.files["f"] == end


@pytest.mark.parametrize(
    ("start", "old", "error"),
    [
        pytest.param("\u2018a\u2019 'a'\n", "\u2018a'", "Found 2 occurrences", id="twice-alike"),
        pytest.param("x\n", "  ", "Missing required parameter: edits", id="blanks-alone"),
        pytest.param("\u00bd\n", "1", "The fuzzy match in /workspace/f crosses", id="within-a-character"),
        pytest.param("if z:\n    x = 1\n", "if z:\nx = 1", "Could not find", id="blanks-before-a-line"),
    ],
)
def test_tolerance_has_an_end(calls_in: Any, start: str, old: str, error: str) -> None:
    """A text that occurs twice, nowhere, or within a character is not replaced."""
    call = calls_in(World(files={"f": start}))

    assert call.error("edit", path="f", edits=[{"oldText": old, "newText": "x"}]).startswith(error)
    assert call.files["f"] == start


@pytest.mark.parametrize(
    ("path", "found"),
    [
        pytest.param("@notes.md", True, id="at-sign"),
        pytest.param("@@notes.md", False, id="two-of-them"),
        pytest.param(" notes.md ", False, id="blanks-are-part-of-a-name"),
        pytest.param("src/../notes.md", True, id="up-and-down"),
    ],
)
def test_how_a_path_is_taken(call: Any, path: str, found: bool) -> None:
    """One `@` before a path is left out, and nothing else is."""
    assert ("milk" in call("read", path=path)) is found


def test_lines_are_read_with_plain_ends(calls_in: Any) -> None:
    """The model does not see carriage returns; the file keeps them."""
    call = calls_in(World(files={"f": "a\r\nb\r\n"}))

    assert call("read", path="f") == "a\nb\n"
    assert call.files["f"] == "a\r\nb\r\n"


def test_the_same_text_is_not_written_again(call: Any) -> None:
    """The model gets the answer that nothing has changed."""
    answer = call("write", path="notes.md", content="milk\neggs\nbread\n")

    assert answer == "No changes made to /workspace/notes.md. The file already has identical content."
