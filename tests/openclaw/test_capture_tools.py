"""capture-tools with a fake OpenClaw: its input, the saved file, the printed lines, the failures."""

import json
import shlex
import sys
from pathlib import Path

import pytest

from pytest_openclaw.cli import main
from pytest_openclaw.openclaw.catalog import read_catalogue

pytestmark = [
    pytest.mark.newest,
    pytest.mark.skipif(sys.platform == "win32", reason="the fake is called by a POSIX command line"),
    pytest.mark.usefixtures("scratch"),
]

FAKE = Path(__file__).with_name("fake_capture.py")
SECRET = "sk-of-the-environment"


@pytest.fixture
def here(tmp_path, monkeypatch):
    (tmp_path / "here").mkdir()
    monkeypatch.chdir(tmp_path / "here")
    return tmp_path / "here"


@pytest.fixture
def fake(tmp_path, monkeypatch):
    """Replace OpenClaw by the fake, in a mode; the result is the file with its input."""
    seen = tmp_path / "seen.jsonl"
    monkeypatch.setenv("OPENAI_API_KEY", SECRET)

    def put(mode="sends"):
        monkeypatch.setenv("OPENCLAW_AGENT_COMMAND", shlex.join([sys.executable, str(FAKE), mode, str(seen)]))
        return seen

    return put


def test_a_catalogue_is_saved(here, fake, capsys):
    """The file is read like the shipped catalogues, and has no trace of this machine or moment."""
    seen = fake()

    assert main(["capture-tools", "--json"]) == 0

    printed = json.loads(capsys.readouterr().out)
    file = here / "openclaw-2026.10.1.json"
    catalogue = read_catalogue(file)
    assert (printed["out"], printed["release"]) == (file.name, "openclaw-2026.10.1")
    assert catalogue.name == printed["release"]
    assert printed["sha256"] == catalogue.sha256
    assert catalogue.surfaces["direct"] == ("read", "tool_call")
    assert [tool.name for tool in catalogue.surface("coding")] == ["exec", "read"]
    assert catalogue.tool("read").description == "The release's words for read."
    assert catalogue.deferred == ("exec",)
    request = catalogue.requests["direct"]
    assert (request["api"], request["fields"]) == ("openai-completions", {"model": "model", "stream": True})
    assert "Working directory: <workspace>\nHome: <home>\nCurrent date: <time>" in request["system"]
    assert SECRET not in seen.read_text() + file.read_text()


@pytest.mark.parametrize(
    ("mode", "said"),
    [
        pytest.param("old-node", "does not print its release: openclaw requires Node", id="old-node"),
        pytest.param("silent", ": Unknown model: capture-tools/model", id="silent-its-own-words"),
        pytest.param("odd", "cannot be captured: a tool of its request has no name", id="odd"),
        pytest.param("deep", "cannot be captured: its request is nested too deeply", id="deep"),
    ],
)
def test_a_failure_is_reported(mode, said, here, fake, capsys):
    """One line has the reason, nothing is written, and the exit status is 4."""
    fake(mode)

    assert main(["capture-tools"]) == 4

    assert said in capsys.readouterr().err
    assert list(here.iterdir()) == []


def test_a_hostile_request_is_saved_without_keys(here, fake, monkeypatch):
    """Half of a character is replaced, and no text takes a pattern long."""
    monkeypatch.setenv("BOX_API_KEY", "hostile-Zq7Wx3Ec9Rv5Tb1Yn8Um4Ik2Ol6P")
    fake("hostile-Zq7Wx3Ec9Rv5Tb1Yn8Um4Ik2Ol6P")

    assert main(["capture-tools", "-o", "c.json"]) == 0

    assert "Zq7Wx3Ec9Rv5" not in (here / "c.json").read_text("utf-8")
    assert "[secret] \ufffd a.b+" in read_catalogue(here / "c.json").requests["direct"]["system"]


@pytest.mark.nightly
def test_only_a_catalogue_is_overwritten(here, fake, capsys):
    """A file that is not a catalogue stays; an earlier catalogue is replaced."""
    fake()
    Path("mine.json").write_text("{}")

    assert main(["capture-tools", "-o", "mine.json"]) == 4
    assert "mine.json exists and is not a catalogue of pytest-openclaw" in capsys.readouterr().err
    assert Path("mine.json").read_text() == "{}"
    assert [main(["capture-tools"]), main(["capture-tools"])] == [0, 0]
