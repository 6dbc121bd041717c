"""apply_patch: the format that OpenClaw shares with Codex."""

from __future__ import annotations

import time
from typing import Any

import pytest

from pytest_openclaw.values.worlds import World

APP = "def greet():\n    return 'hi'\n\n\ndef leave():\n    return 'bye'\n"


def patch(*lines: str) -> str:
    """A patch of these lines."""
    return "\n".join(["*** Begin Patch", *lines, "*** End Patch"])


def update(*lines: str) -> str:
    """A patch of one file."""
    return patch("*** Update File: src/app.py", *lines)


def no_header(line: int, text: str) -> str:
    """The answer about a line that begins no section."""
    marks = "'*** Add File: {path}', '*** Delete File: {path}', '*** Update File: {path}'"
    return (
        f"Invalid patch hunk at line {line}: '{text}' is not a valid hunk header. Valid hunk headers: {marks}"
    )


@pytest.mark.parametrize(
    ("text", "updated", "files"),
    [
        pytest.param(patch("*** Add File: a/b.txt", "+one", "+", "+two"), "A a/b.txt", {"a/b.txt": "one\n\ntwo\n"}, id="add"),
        pytest.param(patch("*** Delete File: notes.md"), "D notes.md", {"notes.md": None}, id="delete"),
        pytest.param(update("@@", "-    return 'hi'", "+    return 'hello'"), "M src/app.py", {"src/app.py": APP.replace("'hi'", "'hello'")}, id="update"),
        pytest.param(update(" def leave():", "-    return 'bye'", "+    return 'later'"), "M src/app.py", {"src/app.py": APP.replace("'bye'", "'later'")}, id="no-at-mark"),
        pytest.param(update("@@ def leave():", "-    return 'bye'", "+    pass"), "M src/app.py", {"src/app.py": APP.replace("return 'bye'", "pass")}, id="context"),
        pytest.param(
            update("@@", " def greet():", "-    return 'hi'", "+    pass", "@@", " def leave():", "-    return 'bye'", "+    pass"),
            "M src/app.py", {"src/app.py": APP.replace("return 'hi'", "pass").replace("return 'bye'", "pass")}, id="two-pieces",
        ),
        pytest.param(update("@@ def greet():", "+    # polite"), "M src/app.py", {"src/app.py": APP.replace("greet():\n", "greet():\n    # polite\n")}, id="new-lines-behind-a-line"),
        pytest.param(update("@@", "+# end"), "M src/app.py", {"src/app.py": f"{APP}# end\n"}, id="new-lines-alone-go-to-the-end"),
        pytest.param(update("@@", "-    return 'bye'", "+    pass", "*** End of File"), "M src/app.py", {"src/app.py": APP.replace("return 'bye'", "pass")}, id="end-of-file"),
        pytest.param(update("@@", "-  return 'hi'   ", "+    pass"), "M src/app.py", {"src/app.py": APP.replace("return 'hi'", "pass")}, id="other-blanks"),
        pytest.param(update("@@", "-    return 'bye'", "+    pass", ""), "M src/app.py", {"src/app.py": APP.replace("return 'bye'", "pass")}, id="a-blank-line-too-many"),
        pytest.param(
            update("*** Move to: src/main.py", "@@", "-    return 'hi'", "+    pass"), "M src/main.py",
            {"src/app.py": None, "src/main.py": APP.replace("return 'hi'", "pass")}, id="move",
        ),
        pytest.param(update("@@", "-    return \u2018hi\u2019", "+    pass"), "M src/app.py", {"src/app.py": APP.replace("return 'hi'", "pass")}, id="other-quotes"),
        pytest.param(patch("*** Add File: x", "+x", "*** Delete File: x", "*** Add File: x", "+y"), "A x\nD x", {"x": "y\n"}, id="twice"),
        pytest.param("<<'EOF'\n" + patch("*** Add File: x", "+x") + "\nEOF", "A x", {"x": "x\n"}, id="as-in-a-shell"),
        pytest.param(patch("*** Add File: x", "+x").replace("\n", "\r\n"), "A x", {"x": "x\n"}, id="crlf"),
        pytest.param(
            patch("*** Add File: x", "+\u2028\x0c", "*** Update File: notes.md", "@@", " milk", "+tea"), "A x\nM notes.md",
            {"x": "\u2028\x0c\n", "notes.md": "milk\ntea\neggs\nbread\n"}, id="odd-line-ends-are-none",
        ),
    ],
)  # fmt: skip
def test_a_patch(call: Any, text: str, updated: str, files: dict[str, str | None]) -> None:
    """A patch changes the files that it names and nothing else, and lists them."""
    before = call.files

    assert call("apply_patch", input=text) == f"Success. Updated the following files:\n{updated}"

    after = {**before, **files}
    assert call.files == {path: text for path, text in after.items() if text is not None}


@pytest.mark.parametrize(
    ("text", "error"),
    [
        pytest.param("--- a\n+++ b", "The first line of the patch must be '*** Begin Patch'", id="another-format"),
        pytest.param("", "Provide a patch input.", id="empty"),
        pytest.param("*** Begin Patch\n*** Add File: x\n+x", "The last line of the patch must be '*** End Patch'", id="no-end"),
        pytest.param(patch(), "No files were modified.", id="nothing"),
        pytest.param(patch("hello"), no_header(2, "hello"), id="no-section"),
        pytest.param(patch("*** Update File: notes.md"), "Invalid patch hunk at line 2: Update file hunk for path 'notes.md' is empty", id="no-pieces"),
        pytest.param(patch("*** Delete File: notes.md", "-x"), no_header(3, "-x"), id="delete-with-lines"),
        pytest.param(patch("*** Delete File: nope"), "file not found", id="delete-nothing"),
        pytest.param(patch("*** Update File: nope", "@@", "+x"), "Failed to read file to update /workspace/nope: Failed boundary read for /workspace/nope (path not found)", id="update-nothing"),
        pytest.param(update("@@", "-    return 'hey'", "+x"), "Failed to find expected lines in /workspace/src/app.py:\n    return 'hey'", id="other-lines"),
        pytest.param(update("@@ class A:", "-x", "+y"), "Failed to find context 'class A:' in /workspace/src/app.py", id="other-context"),
        pytest.param(patch("*** Add File: notes.md", "+x"), 'Cannot create notes.md: the file already exists. Use "*** Update File: notes.md" to change it, or delete it earlier in the same patch.', id="add-what-is-there"),
        pytest.param(update("*** Move to: notes.md", "@@", "+x"), "Cannot create notes.md: the file already exists. Delete it earlier in the same patch to replace it.", id="move-over-a-file"),
        pytest.param(patch("*** Delete File: src"), "directory is not empty", id="delete-a-folder"),
        pytest.param(patch("*** Update File: src", "@@", "+x"), "Failed to read file to update /workspace/src: Failed boundary read for /workspace/src (unsafe path)", id="update-a-folder"),
        pytest.param(update("@@", "-", "+x"), "Found 2 occurrences of these lines in /workspace/src/app.py. The lines must be unique; include more surrounding lines in the hunk:\n", id="lines-that-are-there-twice"),
        pytest.param(update("@@ ", " def greet():", "-    return 'hi'", "*** End of File"), "Failed to find expected lines in /workspace/src/app.py:\ndef greet():\n    return 'hi'", id="not-at-the-end"),
        pytest.param(patch("*** Add File: ../x", "+x"), "Path escapes sandbox root (/workspace): ../x", id="outside"),
        pytest.param(update("*** Move to: /tmp/x", "@@", "+x"), "Path escapes sandbox root (/workspace): /tmp/x", id="move-outside"),
        pytest.param(
            update("@@", "return"),
            "Invalid patch hunk at line 4: Unexpected line found in update hunk: 'return'. Every line should start with"
            " ' ' (context line), '+' (added line), or '-' (removed line)", id="no-mark",
        ),
        pytest.param(patch(*["*** Delete File: x"] * 101), "Invalid patch: more than 100 hunks", id="too-many"),
    ],
)  # fmt: skip
def test_what_is_no_patch(call: Any, text: str, error: str) -> None:
    """The problem is reported, and the file of that section is unchanged."""
    assert call.error("apply_patch", input=text) == error
    assert call.playing.state.changed == ()


def test_a_hostile_patch_ends(calls_in: Any) -> None:
    """Endlessly repeated lines cost time in proportion to the file, not to its square."""
    lines = 30_000
    call = calls_in(World(files={"a": "x\n" * lines}))
    wanted = ["-x"] * (lines // 2) + ["-y"]
    began = time.perf_counter()

    error = call.error("apply_patch", input=patch("*** Update File: a", *["@@", *wanted] * 2))

    assert error.startswith("Failed to find expected lines in /workspace/a:")
    assert time.perf_counter() - began < 20


@pytest.mark.parametrize(
    ("start", "lines", "end"),
    [
        pytest.param("a\r\nb\r\nc", ["-b", "+B", "+2"], "a\r\nB\r\n2\r\nc", id="carriage-returns"),
        pytest.param("a", ["-a", "+A"], "A", id="no-line-end"),
        pytest.param("a\nb", ["-b", "+B", "+C"], "a\nB\nC", id="no-line-end-at-the-last-line"),
        pytest.param("a\nb", ["+c"], "a\nb\nc", id="behind-a-last-line-without-one"),
        pytest.param("a\nb\n", ["-b"], "a\n", id="the-last-line-gone"),
        pytest.param("", ["+a"], "a\n", id="an-empty-file"),
    ],
)
def test_lines_end_as_they_did(calls_in: Any, start: str, lines: list[str], end: str) -> None:
    """A patch keeps the line ends of a file, and gives new lines the same."""
    call = calls_in(World(files={"f": start}))

    call("apply_patch", input=patch("*** Update File: f", "@@", *lines))

    assert call.files["f"] == end


def test_a_patch_that_changes_nothing_says_so(call: Any) -> None:
    """No file is named as changed."""
    answer = call("apply_patch", input=patch("*** Update File: notes.md", "@@", "-milk", "+milk"))

    assert answer == "No changes made to notes.md."
