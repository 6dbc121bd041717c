"""apply_patch: the format that OpenClaw has in common with Codex."""

from __future__ import annotations

import time
from typing import Any

import pytest

from pytest_openclaw.worlds import World

APP = "def greet():\n    return 'hi'\n\n\ndef leave():\n    return 'bye'\n"


def patch(*lines: str) -> str:
    """A patch of these lines."""
    return "\n".join(["*** Begin Patch", *lines, "*** End Patch"])


def update(*lines: str) -> str:
    """A patch of one file."""
    return patch("*** Update File: src/app.py", *lines)


def no_header(line: int, text: str) -> str:
    """What is told of a line that begins no section."""
    marks = "'*** Add File: {path}', '*** Delete File: {path}', '*** Update File: {path}'"
    return (
        f"Invalid patch hunk at line {line}: '{text}' is not a valid hunk header. Valid hunk headers: {marks}"
    )


@pytest.mark.parametrize(
    ("text", "told", "files"),
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
        pytest.param("<<'EOF'\n" + patch("*** Add File: x", "+x") + "\nEOF", "A x", {"x": "x\n"}, id="as-in-a-shell"),
        pytest.param(patch("*** Add File: x", "+x").replace("\n", "\r\n"), "A x", {"x": "x\n"}, id="crlf"),
        pytest.param(
            patch("*** Add File: x", "+\u2028\x0c", "*** Update File: notes.md", "@@", " milk", "+tea"), "A x\nM notes.md",
            {"x": "\u2028\x0c\n", "notes.md": "milk\ntea\neggs\nbread\n"}, id="odd-line-ends-are-none",
        ),
    ],
)  # fmt: skip
def test_a_patch(call: Any, text: str, told: str, files: dict[str, str | None]) -> None:
    """A patch changes what it names and nothing else, and says what that was."""
    before = call.files

    assert call("apply_patch", input=text) == f"Success. Updated the following files:\n{told}"

    after = {**before, **files}
    assert call.files == {path: text for path, text in after.items() if text is not None}


@pytest.mark.parametrize(
    ("text", "error"),
    [
        pytest.param("--- a\n+++ b", "The first line of the patch must be '*** Begin Patch'", id="another-format"),
        pytest.param("", "The first line of the patch must be '*** Begin Patch'", id="empty"),
        pytest.param("*** Begin Patch\n*** Add File: x\n+x", "The last line of the patch must be '*** End Patch'", id="no-end"),
        pytest.param(patch(), no_header(2, ""), id="nothing"),
        pytest.param(patch("hello"), no_header(2, "hello"), id="no-section"),
        pytest.param(patch("*** Update File: notes.md"), "Invalid patch hunk at line 2: Update file hunk for path 'notes.md' is empty", id="no-pieces"),
        pytest.param(patch("*** Delete File: notes.md", "-x"), no_header(3, "-x"), id="delete-with-lines"),
        pytest.param(patch("*** Delete File: nope"), "file not found", id="delete-nothing"),
        pytest.param(patch("*** Update File: nope", "@@", "+x"), "Failed to read file to update /workspace/nope: Failed boundary read for /workspace/nope (path not found)", id="update-nothing"),
        pytest.param(update("@@", "-    return 'hey'", "+x"), "Failed to find expected lines in /workspace/src/app.py:\n    return 'hey'", id="other-lines"),
        pytest.param(update("@@ class A:", "-x", "+y"), "Failed to find context 'class A:' in /workspace/src/app.py", id="other-context"),
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
    """What is wrong is told, and the file of that section is as it was."""
    assert call.error("apply_patch", input=text) == error
    assert call.playing.state.changed == ()


def test_a_hostile_patch_ends(calls_in: Any) -> None:
    """Lines that repeat without end cost time in proportion to the file, not to its square."""
    lines = 50_000
    call = calls_in(World(files={"a": "x\n" * lines}))
    wanted = ["-x"] * (lines // 2) + ["-y"]
    began = time.perf_counter()

    error = call.error("apply_patch", input=patch("*** Update File: a", *["@@", *wanted] * 2))

    assert error.startswith("Failed to find expected lines in /workspace/a:")
    assert time.perf_counter() - began < 20
