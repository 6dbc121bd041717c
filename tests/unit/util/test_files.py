"""Files of run folders: which are opened, how a new one replaces an old one, and locks."""

import contextlib
import os
import socket
import subprocess
import sys
import threading
from pathlib import Path

import pytest

from pytest_openclaw.util.errors import OpenClawError
from pytest_openclaw.util.files import check_regular, locked, open_file, parse_json, replacing

POSIX = pytest.mark.skipif(os.name == "nt", reason="Windows has other kinds of files")


@pytest.mark.parametrize(
    ("text", "said"),
    [
        pytest.param(b"{", "Input data was truncated", id="cut-off"),
        pytest.param(b"[" * 100_000, "it is nested more than 200 levels deep", id="deeper-than-python"),
        pytest.param(b"[" * 201 + b"]" * 201, "it is nested more than 200 levels deep", id="deep"),
        pytest.param(b'{"a":' * 201 + b"1" + b"}" * 201, "it is nested more than 200 levels deep", id="deep-objects"),
        pytest.param(b"-" + b"9" * 5000, "Integer value out of range", id="more-than-python-reads"),
        pytest.param(b"[NaN]", "JSON is malformed", id="nan"),
        pytest.param(rb'{"\uDFFF": 1}', "surrogate", id="surrogate-in-a-key"),
        pytest.param(b'"\xed\xa0\x80"', "can't decode byte 0xed|Invalid UTF-8", id="surrogate-in-bytes"),
    ],
)  # fmt: skip
def test_text_that_is_not_json_is_refused(text, said):
    """The error says why."""
    with pytest.raises(ValueError, match=said):
        parse_json(text)


@pytest.mark.parametrize(
    ("text", "value"),
    [
        pytest.param(rb'"\ud83c\udf89"', "\U0001f389", id="pair"),
        pytest.param(b'\xef\xbb\xbf{"a": [1.5, null]}', {"a": [1.5, None]}, id="byte-order-mark"),
        pytest.param(b'"' + b"[" * 500 + b'"', "[" * 500, id="brackets-in-a-text"),
    ],
)
def test_json_that_a_run_may_write_is_read(text, value):
    """It may have long numbers, any character, and texts that look like JSON."""
    assert parse_json(text) == value


def test_an_error_names_the_file_and_not_its_temporary_copy(tmp_path):
    """The user knows only the file."""
    path = tmp_path / "gone" / "report.html"

    with pytest.raises(OSError, match="No such file") as caught, replacing(path):
        pass

    assert caught.value.filename == str(path)


@POSIX
@pytest.mark.parametrize("kind", ["link", "loop", "dangling link", "pipe", "folder", "socket", "device"])
def test_only_a_regular_file_is_opened(tmp_path, monkeypatch, kind):
    """A link is not followed, even to a file next to it."""
    path = Path(os.devnull) if kind == "device" else tmp_path / "config.json"
    (tmp_path / "other.json").write_text("{}")
    if target := {"link": "other.json", "loop": path, "dangling link": "gone"}.get(kind):
        path.symlink_to(target)
    elif kind == "pipe":
        os.mkfifo(path)
    elif kind == "folder":
        path.mkdir()
    elif kind == "socket":
        monkeypatch.chdir(tmp_path)  # the path of a socket is short
        with socket.socket(socket.AF_UNIX) as server:
            server.bind(path.name)

    for use in (check_regular, open_file):
        with pytest.raises(OpenClawError, match="is not a regular file in its folder"):
            use(path)


def test_a_new_file_takes_the_old_ones_place_or_does_not(tmp_path):
    """A failed write leaves the old file and no other one."""
    path = tmp_path / "summary.json"
    path.write_bytes(b"old")

    with pytest.raises(TypeError), replacing(path) as file:
        file.writelines([b"half", None])
    kept = path.read_bytes()
    with replacing(path) as file:
        file.write(b"new")

    assert (kept, path.read_bytes()) == (b"old", b"new")
    assert list(tmp_path.iterdir()) == [path]


HOLDER = """
import sys
from pathlib import Path
from pytest_openclaw.util.files import locked

with locked(Path(sys.argv[1]), waits=True):
    print("held", flush=True)
    sys.stdin.readline()
"""


@pytest.mark.parametrize("ends", ["releases it", "is killed"])
def test_another_process_has_it_until_it_ends(tmp_path, ends):
    """A lock of a living process cannot be taken; afterwards it can, also if that was killed."""
    path = tmp_path / "x.lock"
    with subprocess.Popen(
        [sys.executable, "-c", HOLDER, str(path)], stdin=subprocess.PIPE, stdout=subprocess.PIPE
    ) as holder:
        assert holder.stdout.readline().strip() == b"held"
        with pytest.raises(TimeoutError, match=r"x\.lock is locked"), locked(path):
            pass
        if ends == "is killed":
            holder.kill()
        else:
            holder.communicate(b"\n")
        holder.wait()

    with locked(path):
        assert path.exists()


@pytest.mark.parametrize("is_removed", [False, pytest.param(True, marks=POSIX)])
def test_one_that_waits_gets_it(tmp_path, is_removed):
    """A second holder waits until the first one releases the lock, also if that removed the file before."""
    path = tmp_path / "x.lock"
    first, second = contextlib.ExitStack(), contextlib.ExitStack()
    first.enter_context(locked(path))
    waiting = threading.Thread(target=lambda: second.enter_context(locked(path, waits=True)))
    waiting.start()
    waiting.join(0.1)
    was_waiting = waiting.is_alive()
    if is_removed:
        path.unlink()
    first.close()
    waiting.join(60)

    assert (was_waiting, waiting.is_alive()) == (True, False)
    with pytest.raises(TimeoutError), locked(path):
        pass
    second.close()
