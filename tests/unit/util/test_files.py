"""Files of run folders: which are opened, which are parsed, and how a new one replaces an old one."""

from __future__ import annotations

import os
import socket
from pathlib import Path

import pytest

from pytest_openclaw.util.errors import OpenClawError
from pytest_openclaw.util.files import check_regular, open_file, parse_json, replacing
from pytest_openclaw.values.run_files import InventoryFile, load_document


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
        pytest.param(b'"\xed\xa0\x80"', "can't decode byte 0xed", id="surrogate-in-bytes"),
    ],
)  # fmt: skip
def test_what_no_run_writes_is_no_json(text: bytes, said: str) -> None:
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
def test_what_a_run_may_write_is_read(text: bytes, value: object) -> None:
    """It may have long numbers, any character, and texts that look like JSON."""
    assert parse_json(text) == value


@pytest.mark.skipif(os.name == "nt", reason="POSIX has these kinds of files")
@pytest.mark.parametrize("kind", ["link", "loop", "dangling link", "pipe", "folder", "socket", "device"])
def test_only_a_regular_file_is_opened(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, kind: str) -> None:
    """A link is not followed, even to a file next to it."""
    path = tmp_path / "config.json"
    (tmp_path / "other.json").write_text("{}")
    if kind == "pipe":
        os.mkfifo(path)
    elif kind == "folder":
        path.mkdir()
    elif kind == "socket":
        monkeypatch.chdir(tmp_path)  # the path of a socket is short
        with socket.socket(socket.AF_UNIX) as server:
            server.bind(path.name)
    elif kind == "device":
        path = Path(os.devnull)
    else:
        path.symlink_to({"link": "other.json", "loop": path, "dangling link": "gone"}[kind])

    for use in (check_regular, open_file):
        with pytest.raises(OpenClawError, match="is not a regular file in its folder"):
            use(path)


@pytest.mark.parametrize(
    ("content", "said"),
    [
        pytest.param(None, "No such file or directory; is .* a run directory", id="missing"),
        pytest.param("[]", "is not a JSON object", id="no-object"),
        pytest.param("{", "is not JSON", id="no-json"),
        pytest.param("{}", "is not as a run writes it: run_id is missing", id="no-key"),
    ],
)
def test_a_file_that_cannot_be_used_is_named(tmp_path: Path, content: str | None, said: str) -> None:
    """The message has the file and the problem."""
    path = tmp_path / "inventory.json"
    if content is not None:
        path.write_text(content)

    with pytest.raises(OpenClawError, match=rf"inventory\.json:? {said}"):
        load_document(path, InventoryFile)


def test_a_new_file_takes_the_old_ones_place_or_does_not(tmp_path: Path) -> None:
    """A failed write leaves the old file and no other one."""
    path = tmp_path / "summary.json"
    path.write_bytes(b"old")

    with pytest.raises(TypeError), replacing(path) as file:
        file.writelines([b"half", None])  # type: ignore[list-item]
    kept = path.read_bytes()
    with replacing(path) as file:
        file.write(b"new")

    assert (kept, path.read_bytes()) == (b"old", b"new")
    assert list(tmp_path.iterdir()) == [path]
