"""A world's file tools and apply_patch answer as OpenClaw's do; binary files keep their bytes."""

import json
import time

import pytest

from pytest_openclaw.providers.openclaw.call import Scratch
from pytest_openclaw.util.text import file_bytes
from pytest_openclaw.values.worlds import World

APP = "def greet():\n    return 'hi'\n\n\ndef leave():\n    return 'bye'\n"
NO_EDITS = "Missing required parameter: edits. Supply correct parameters before retrying."


def outside(path):
    scratch = "Use a relative path under `.openclaw/tmp/` inside the workspace for scratch/temp/meta files"
    return f"Path escapes sandbox root (/workspace): {path}. {scratch} that file tools need to read or write later."


@pytest.mark.parametrize(
    ("tool", "arguments", "answer"),
    [
        pytest.param("read", {"path": "notes.md"}, "milk\neggs\nbread\n", id="whole"),
        pytest.param("read", {"path": "./src/../notes.md"}, "milk\neggs\nbread\n", id="roundabout"),
        pytest.param("read", {"path": "/workspace/notes.md"}, "milk\neggs\nbread\n", id="absolute-inside"),
        pytest.param("read", {"path": "notes.md", "offset": 2, "limit": 1}, "eggs\n\n[1 more line in file. Use offset=3 to continue.]", id="a-part"),
        pytest.param("read", {"path": "empty.txt"}, "File is empty (0 bytes).", id="empty"),
        pytest.param("read", {"path": "nope", "optional": True}, "Optional file not found: /workspace/nope.", id="optional"),
        pytest.param("ls", {}, '".hidden"\n"empty.txt"\n"memory/"\n"notes.md"\n"src/"', id="ls-does-not-show-what-is-outside"),
        pytest.param("read", {"path": "@notes.md"}, "milk\neggs\nbread\n", id="at-sign-left-out"),
        pytest.param("write", {"path": "notes.md", "content": "milk\neggs\nbread\n"}, "No changes made to /workspace/notes.md. The file already has identical content.", id="the-same-text"),
        pytest.param("ls", {"path": "src"}, '"app.py"\n"lib/"', id="ls-folder"),
        pytest.param("ls", {"limit": 2}, '".hidden"\n"empty.txt"\n\n[More entries. Continue with the same path and after="empty.txt".]', id="ls-limit"),
        pytest.param("ls", {"after": "memory/"}, '"notes.md"\n"src/"', id="ls-after"),
        pytest.param("write", {"path": "a/ü.txt", "content": "ü"}, "Successfully wrote 2 bytes to /workspace/a/ü.txt", id="write"),
        pytest.param("read", {"path": "notes.md", "offset": 9}, "Offset 9 is beyond end of file (3 lines total). Retry with offset <= 3.", id="offset"),
        pytest.param("read", {"path": "notes.md", "offset": 2}, "eggs\nbread\n", id="to-the-end"),
        pytest.param("read", {"path": "notes.md", "cursor": 4}, "Cursor 4 is at or beyond the end of line 1 (4 characters). Use offset=2 to continue.", id="cursor"),
        pytest.param("edit", {"path": "notes.md", "edits": [{"oldText": "milk", "newText": "milk"}]}, "No changes made to /workspace/notes.md. The replacement text is identical to the original.", id="no-change"),
    ],
)  # fmt: skip
def test_the_answers(call, tool, arguments, answer):
    """A tool that succeeds says so in plain words."""
    assert call(tool, **arguments) == answer


@pytest.mark.parametrize(
    ("tool", "arguments", "error"),
    [
        pytest.param("read", {"path": "nope.md"}, "File not found: /workspace/nope.md. Did you mean: notes.md?", id="no-file"),
        pytest.param("read", {"path": "notices.txt"}, "File not found: /workspace/notices.txt.", id="too-unlike"),
        pytest.param("read", {"path": "../secret"}, outside("../secret"), id="above"),
        pytest.param("read", {"path": "/etc/hosts"}, outside("/etc/hosts"), id="absolute"),
        pytest.param("read", {"path": "~/.ssh/id"}, outside("~/.ssh/id"), id="home"),
        pytest.param("read", {"path": "/workspace2/x"}, outside("/workspace2/x"), id="a-longer-name"),
        pytest.param("write", {"path": "../x", "content": ""}, outside("../x"), id="write-outside"),
        pytest.param("ls", {"path": "/"}, outside("/"), id="ls-outside"),
        pytest.param("edit", {"path": "../x", "edits": [{"oldText": "a", "newText": "b"}]}, outside("../x"), id="edit-outside"),
        pytest.param("read", {"path": "src"}, "Read requires a file path, but /workspace/src is a directory. List the directory, then read a specific file.", id="a-folder"),
        pytest.param("read", {"path": "a\0b"}, "Invalid path: it holds a null byte", id="null-byte"),
        pytest.param("read", {"path": "a/" * 40}, "ENAMETOOLONG: name too long", id="too-deep"),
        pytest.param("read", {"path": "a" * 5000}, "ENAMETOOLONG: name too long", id="too-long"),
        pytest.param("write", {"path": "a/" + "é" * 128, "content": ""}, "ENAMETOOLONG: name too long", id="bytes-of-a-name"),
        pytest.param("write", {"path": "/".join(["😀" * 60] * 16), "content": ""}, "ENAMETOOLONG: name too long", id="bytes-of-a-path"),
        pytest.param("read", {"path": "@@notes.md"}, "File not found: /workspace/@notes.md. Did you mean: notes.md?", id="one-at-sign"),
        pytest.param("read", {"path": " notes.md "}, "File not found: /workspace/ notes.md . Did you mean: notes.md?", id="blanks-of-a-name"),
        pytest.param("write", {"path": "src", "content": "x"}, "not a file", id="over-a-folder"),
        pytest.param("write", {"path": "notes.md/x", "content": "x"}, "Path component is not a directory: /workspace/notes.md", id="under-a-file"),
        pytest.param("ls", {"path": "notes.md"}, "directory not found", id="ls-file"),
        pytest.param("ls", {"path": "nope"}, "directory not found", id="ls-nothing"),
        pytest.param("edit", {"path": "nope", "edits": [{"oldText": "a", "newText": "b"}]}, "Could not edit file: /workspace/nope. Error code: ENOENT.", id="edit-nothing"),
        pytest.param("edit", {"path": "notes.md", "edits": [{"oldText": "", "newText": "b"}]}, NO_EDITS, id="empty-old-text"),
        pytest.param("edit", {"path": "notes.md", "edits": [{"oldText": "e", "newText": "b"}]}, "Found 2 occurrences of the exact text in /workspace/notes.md. Each oldText must be unique. Please provide more context to make it unique.", id="twice"),
        pytest.param("edit", {"path": "notes.md", "edits": [{"oldText": "milk\neggs", "newText": "a"}, {"oldText": "eggs\n", "newText": "b"}]}, "Edits overlap in /workspace/notes.md. Merge them into one edit or target disjoint regions.", id="overlap"),
    ],
)  # fmt: skip
def test_the_errors(call, tool, arguments, error):
    """An error is JSON with the tool's name, and nothing has changed."""
    assert call.error(tool, **arguments) == error
    assert call.playing.state.changed == ()


def test_an_edit_that_does_not_fit_shows_the_file(call):
    """The model sees the file, so that it can try again."""
    error = call.error("edit", path="notes.md", edits=[{"oldText": "tea", "newText": "coffee"}])

    assert error.startswith("Could not find the exact text in /workspace/notes.md. ")
    assert error.endswith("\nCurrent file contents:\nmilk\neggs\nbread\n")


def test_edits_are_all_or_nothing(call):
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


def test_changed_files_are_known(call):
    """The state names new, changed and removed files, and not one that was put back."""
    call("write", path="new.txt", content="n")
    call("write", path="notes.md", content="other")
    call("write", path="empty.txt", content="x")
    call("write", path="empty.txt", content="")
    call.sh("rm src/app.py")

    assert set(call.playing.state.changed) == {"new.txt", "notes.md", "src/app.py"}
    assert call.files["new.txt"] == "n"
    assert "src/app.py" not in call.files


DONE = "Successfully replaced"


@pytest.mark.parametrize(
    ("start", "old", "new", "answer", "end"),
    [
        pytest.param("it\u2019s \u201cso\u201d \u2013 yes\n", 'it\'s "so" - yes', "no", DONE, "no\n", id="quotes-and-dashes"),
        pytest.param("a b  \nc\nrest\n", "a b\nc", "abc", DONE, "abc\nrest\n", id="blanks-behind-a-line"),
        pytest.param("a\u00a0b\n", "a b", "c", DONE, "c\n", id="another-blank"),
        pytest.param("x one  \ny\n", "one", "two", DONE, "x two  \ny\n", id="the-rest-stays"),
        pytest.param("a\r\nb\r\nc\r\n", "a\nb", "1\n2\n3", DONE, "1\r\n2\r\n3\r\nc\r\n", id="carriage-returns"),
        # A text that occurs twice, or nowhere, is not replaced.
        pytest.param("\u2018a\u2019 'a'\n", "\u2018a'", "x", "Found 2 occurrences", None, id="twice-alike"),
        pytest.param("x\n", "  ", "x", "Missing required parameter: edits", None, id="only-blanks"),
        pytest.param("if z:\n    x = 1\n", "if z:\nx = 1", "x", "Could not find", None, id="blanks-before-a-line"),
    ],
)  # fmt: skip
def test_an_edit_is_found_with_some_tolerance(calls_in, start, old, new, answer, end):
    """The rules are OpenClaw 2026.9.6's; the rest of the text stays unchanged."""
    call = calls_in(World(files={"f": start}))

    said = call("edit", path="f", edits=[{"oldText": old, "newText": new}])

    assert (said if end else json.loads(said)["error"]).startswith(answer)
    assert call.files["f"] == (end or start)


def test_lines_are_read_with_plain_ends(calls_in):
    """The model does not see carriage returns; the file keeps them."""
    call = calls_in(World(files={"f": "a\r\nb\r\n"}))

    assert call("read", path="f") == "a\nb\n"
    assert call.files["f"] == "a\r\nb\r\n"


def patch(*lines):
    return "\n".join(["*** Begin Patch", *lines, "*** End Patch"])


def update(*lines):
    return patch("*** Update File: src/app.py", *lines)


def no_header(line, text):
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
        pytest.param(update("@@", " def greet():", "-    return 'hi'", "+    pass", "@@", " def leave():", "-    return 'bye'", "+    pass"), "M src/app.py", {"src/app.py": APP.replace("return 'hi'", "pass").replace("return 'bye'", "pass")}, id="two-pieces"),
        pytest.param(update("@@ def greet():", "+    # polite"), "M src/app.py", {"src/app.py": APP.replace("greet():\n", "greet():\n    # polite\n")}, id="new-lines-behind-a-line"),
        pytest.param(update("@@", "+# end"), "M src/app.py", {"src/app.py": f"{APP}# end\n"}, id="only-new-lines-go-to-the-end"),
        pytest.param(update("@@", "-    return 'bye'", "+    pass", "*** End of File"), "M src/app.py", {"src/app.py": APP.replace("return 'bye'", "pass")}, id="end-of-file"),
        pytest.param(update("@@", "-  return 'hi'   ", "+    pass"), "M src/app.py", {"src/app.py": APP.replace("return 'hi'", "pass")}, id="other-blanks"),
        pytest.param(update("@@", "-    return 'bye'", "+    pass", ""), "M src/app.py", {"src/app.py": APP.replace("return 'bye'", "pass")}, id="a-blank-line-too-many"),
        pytest.param(update("*** Move to: src/main.py", "@@", "-    return 'hi'", "+    pass"), "M src/main.py", {"src/app.py": None, "src/main.py": APP.replace("return 'hi'", "pass")}, id="move"),
        pytest.param(update("@@", "-    return \u2018hi\u2019", "+    pass"), "M src/app.py", {"src/app.py": APP.replace("return 'hi'", "pass")}, id="other-quotes"),
        pytest.param(patch("*** Add File: x", "+x", "*** Delete File: x", "*** Add File: x", "+y"), "A x\nD x", {"x": "y\n"}, id="twice"),
        pytest.param("<<'EOF'\n" + patch("*** Add File: x", "+x") + "\nEOF", "A x", {"x": "x\n"}, id="as-in-a-shell"),
        pytest.param(patch("*** Add File: x", "+x").replace("\n", "\r\n"), "A x", {"x": "x\n"}, id="crlf"),
        pytest.param(patch("*** Add File: x", "+\u2028\x0c", "*** Update File: notes.md", "@@", " milk", "+tea"), "A x\nM notes.md", {"x": "\u2028\x0c\n", "notes.md": "milk\ntea\neggs\nbread\n"}, id="odd-line-ends-are-none"),
    ],
)  # fmt: skip
def test_a_patch(call, text, updated, files):
    """A patch changes the files that it names and nothing else, and lists them."""
    before = call.files

    assert call("apply_patch", input=text) == f"Success. Updated the following files:\n{updated}"

    after = {**before, **files}
    assert call.files == {path: text for path, text in after.items() if text is not None}


@pytest.mark.parametrize(
    ("text", "error"),
    [
        pytest.param("--- a\n+++ b", "The first line of the patch must be '*** Begin Patch'", id="another-format"),
        pytest.param("", "The first line of the patch must be '*** Begin Patch'", id="empty"),
        pytest.param("*** Begin Patch\n*** Add File: x\n+x", "The last line of the patch must be '*** End Patch'", id="no-end"),
        pytest.param(patch(), "No files were modified.", id="nothing"),
        pytest.param(patch("hello"), no_header(2, "hello"), id="no-section"),
        pytest.param(patch("*** Update File: notes.md"), "No files were modified.", id="no-pieces"),
        pytest.param(patch("*** Delete File: nope"), "file not found", id="delete-nothing"),
        pytest.param(patch("*** Update File: nope", "@@", "+x"), "Failed to read file to update /workspace/nope: path not found", id="update-nothing"),
        pytest.param(update("@@", "-    return 'hey'", "+x"), "Failed to find expected lines in /workspace/src/app.py:\n    return 'hey'", id="other-lines"),
        pytest.param(patch("*** Add File: notes.md", "+x"), 'Cannot create notes.md: the file already exists. Use "*** Update File: notes.md" to change it, or delete it earlier in the same patch.', id="add-what-is-there"),
        pytest.param(update("*** Move to: notes.md", "@@", "+x"), "Cannot create notes.md: the file already exists. Use \"*** Update File: notes.md\" to change it, or delete it earlier in the same patch.", id="move-over-a-file"),
        pytest.param(update("@@", "-", "+x"), "Found several occurrences of these lines in /workspace/src/app.py. The lines must be unique; include more surrounding lines in the hunk:\n", id="lines-that-are-there-twice"),
        pytest.param(patch("*** Add File: ../x", "+x"), outside("../x"), id="outside"),
        pytest.param(update("*** Move to: /tmp/x", "@@", "+x"), outside("/tmp/x"), id="move-outside"),
        pytest.param(update("@@", "return"), "Invalid patch hunk at line 4: Unexpected line found in update hunk: 'return'. Every line should start with" " ' ' (context line), '+' (added line), or '-' (removed line)", id="no-mark"),
    ],
)  # fmt: skip
def test_a_text_that_is_not_a_patch(call, text, error):
    """The problem is reported, and the file of that section is unchanged."""
    assert call.error("apply_patch", input=text) == error
    assert call.playing.state.changed == ()


def test_a_hostile_patch_ends(calls_in):
    """Endlessly repeated lines cost time in proportion to the file, not to its square."""
    lines = 30_000
    call = calls_in(World(files={"a": "x\n" * lines}))
    wanted = ["-x"] * (lines // 2) + ["-y"]
    began = time.process_time()

    error = call.error("apply_patch", input=patch("*** Update File: a", *["@@", *wanted] * 2))

    assert error.startswith("Failed to find expected lines in /workspace/a:")
    assert time.process_time() - began < 20


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
)  # fmt: skip
def test_lines_end_as_they_did(calls_in, start, lines, end):
    """A patch keeps the line ends of a file, and gives new lines the same."""
    call = calls_in(World(files={"f": start}))

    call("apply_patch", input=patch("*** Update File: f", "@@", *lines))

    assert call.files["f"] == end


def test_a_patch_that_changes_nothing_says_so(call):
    """No file is named as changed."""
    answer = call("apply_patch", input=patch("*** Update File: notes.md", "@@", "-milk", "+milk"))

    assert answer == "No changes made."


DATA = bytes(range(256))
WORLD = World(files={"data.bin": DATA.decode("utf-8", "surrogateescape")})


def test_a_binary_file_in_a_played_world(calls_in):
    """A command copies its bytes; `read` shows them with replacement characters."""
    call = calls_in(WORLD)

    assert call("exec", command="cp data.bin copy.bin && wc -c < copy.bin").strip() == "256"
    assert "abc" in call("read", path="copy.bin")
    assert file_bytes(call.playing.state.files["copy.bin"]) == DATA


def test_a_binary_file_of_the_real_agent(tmp_path):
    """Its folder has the bytes, a command copies them, and the state has them."""
    scratch = Scratch(tmp_path, WORLD)
    scratch.workspace.mkdir()
    scratch.lay_out()
    scratch.play(str(scratch.workspace), ["-c", "cp data.bin copy.bin"])

    assert (scratch.workspace / "copy.bin").read_bytes() == DATA
    state = scratch.state()
    assert state.changed == ("copy.bin",)
    assert file_bytes(state.files["data.bin"]) == DATA
