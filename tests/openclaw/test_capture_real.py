"""capture-tools with the real OpenClaw: four starts of up to ten seconds, once for all tests of this file."""

import subprocess
import sys

import pytest

from pytest_openclaw.openclaw.catalog import load_catalogue, read_catalogue
from pytest_openclaw.values.tool_calls import Tool

pytestmark = [pytest.mark.openclaw_cli, pytest.mark.nightly, pytest.mark.xdist_group("capture")]

PATIENCE_S = 900


@pytest.fixture(scope="module")
def captured(real_openclaw, tmp_path_factory):
    """A capture of the release, whose user has a config and files in their home."""
    folder = tmp_path_factory.mktemp("capture")
    (folder / "home" / ".openclaw").mkdir(parents=True)
    (folder / "home" / ".openclaw" / "openclaw.json").write_text('{"tools": {"deny": ["exec"]}}', "utf-8")
    before = _files(folder / "home")
    own = {"HOME": str(folder / "home"), "TMPDIR": str(folder)}
    environ = {**real_openclaw.environ, **own, "OPENCLAW_AGENT_COMMAND": real_openclaw.command}
    command = [
        sys.executable,
        "-m",
        "pytest_openclaw",
        "capture-tools",
        "-o",
        str(folder / "c.json"),
        "--json",
    ]
    done = subprocess.run(command, env=environ, capture_output=True, text=True, timeout=PATIENCE_S)
    assert done.returncode == 0, done.stderr
    assert _files(folder / "home") == before
    return read_catalogue(folder / "c.json")


def _files(folder):
    return {str(path): path.read_bytes() for path in folder.rglob("*") if path.is_file()}


def _wordless(value):
    if isinstance(value, Tool):
        return value.name, _wordless(value.parameters)
    if isinstance(value, tuple | list):
        return [_wordless(one) for one in value]
    if not isinstance(value, dict):
        return value
    items = ((key, one) for key, one in value.items() if key != "description" or not isinstance(one, str))
    return {key: _wordless(one) for key, one in items}


@pytest.mark.parametrize("surface", ["direct", "coding", "full"])
def test_the_catalogue_that_ships_is_what_the_release_sends(captured, surface):
    """Names, order and parameters are the same, and so is the size noted for the release."""
    shipped, sent = load_catalogue(), captured

    assert sent.name == shipped.name
    assert _wordless(sent.surface(surface)) == _wordless(shipped.surface(surface))
    size = "bytes_of_the_release"
    assert sent.sizes[surface][size] == shipped.sizes[surface][size]
    deferred = captured.requests["direct"]["deferred"]
    assert sorted(deferred) == sorted(shipped.deferred)


def test_no_trace_of_the_machine_is_in_the_catalogue(captured):
    """The system prompt has placeholders for paths and times."""
    request = captured.requests["direct"]

    assert str(captured.file.parent) not in captured.file.read_text("utf-8")
    assert "Current date: <time>" in request["system"]
    assert request["question"]["before"] or request["question"]["context"]
