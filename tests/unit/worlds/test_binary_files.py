"""Files of a world that are not text keep their bytes."""

from pathlib import Path
from typing import Any

from pytest_openclaw.providers.openclaw.workspace import Scratch, play
from pytest_openclaw.util.text import file_bytes
from pytest_openclaw.values.worlds import World

DATA = bytes(range(256))
WORLD = World(files={"data.bin": DATA.decode("utf-8", "surrogateescape")})


def test_a_binary_file_in_a_played_world(calls_in: Any) -> None:
    """A command copies its bytes; `read` shows them with replacement characters."""
    call = calls_in(WORLD)

    assert call("exec", command="cp data.bin copy.bin && wc -c < copy.bin").strip() == "256"
    assert "abc" in call("read", path="copy.bin")
    assert file_bytes(call.playing.state.files["copy.bin"]) == DATA


def test_a_binary_file_of_the_real_agent(tmp_path: Path) -> None:
    """Its folder has the bytes, a command copies them, and the state has them."""
    scratch = Scratch(tmp_path)
    scratch.workspace.mkdir()
    scratch.lay_out(WORLD)
    play(scratch, "cp data.bin copy.bin", str(scratch.workspace))

    assert (scratch.workspace / "copy.bin").read_bytes() == DATA
    state = scratch.state(WORLD)
    assert state.changed == ("copy.bin",)
    assert file_bytes(state.files["data.bin"]) == DATA
