"""capture-tools with a fake OpenClaw: its input, the saved file, the printed lines, the failures."""

from __future__ import annotations

import json
import re
import shlex
import sys
from pathlib import Path
from typing import Any

import psutil
import pytest

from pytest_openclaw.cli import main
from pytest_openclaw.openclaw.catalog import read_catalogue
from pytest_openclaw.providers.openclaw import capture

pytestmark = [
    pytest.mark.newest,
    pytest.mark.skipif(sys.platform == "win32", reason="the fake is called by a POSIX command line"),
    pytest.mark.usefixtures("scratch"),
]

FAKE = Path(__file__).with_name("fake_capture.py")
SECRETS = ("sk-of-the-config", "bot-token-of-the-config", "sk-of-the-environment")
CONFIG = {
    "models": {
        "providers": {
            "home": {
                "baseUrl": "https://models.example/v1",
                "apiKey": SECRETS[0],
                "headers": {"x-key": SECRETS[0]},
                "api": "ollama",
                "models": [{"id": "m", "contextWindow": 4096, "params": {"num_ctx": 4096}}],
            }
        }
    },
    "agents": {
        "defaults": {
            "model": {"primary": "home/m"},
            "workspace": "/home/alice/ws",
            "sandbox": {"mode": "all"},
        }
    },
    "tools": {"profile": "coding", "deny": ["exec"], "toolSearch": False},
    "channels": {"telegram": {"botToken": SECRETS[1]}},
    "mcp": {"servers": {"files": {"command": "touch", "args": ["ran"]}}},
    "plugins": {"load": {"paths": ["/home/alice/plugin"]}, "entries": {"browser": {"enabled": False}}},
}


@pytest.fixture
def here(tmp_path, monkeypatch):
    """The current folder, where the catalogue is written."""
    folder = tmp_path / "here"
    folder.mkdir()
    monkeypatch.chdir(folder)
    return folder


@pytest.fixture
def config(tmp_path):
    """A user's config; its folder must stay unchanged."""
    file = tmp_path / "user" / "openclaw.json"
    file.parent.mkdir()
    file.write_text(json.dumps(CONFIG), encoding="utf-8")
    yield file
    assert [(one.name, one.read_text()) for one in file.parent.iterdir()] == [
        ("openclaw.json", json.dumps(CONFIG))
    ]


@pytest.fixture
def fake(tmp_path, monkeypatch):
    """Put the fake in OpenClaw's place, in a mode; the result is the file with its input."""

    def put(mode: str = "sends") -> Path:
        seen = tmp_path / "seen.jsonl"
        monkeypatch.setenv("OPENCLAW_AGENT_COMMAND", shlex.join([sys.executable, str(FAKE), mode, str(seen)]))
        monkeypatch.setenv("OPENAI_API_KEY", SECRETS[2])
        return seen

    return put


def _json(capsys: pytest.CaptureFixture[str], *words: str) -> tuple[int, Any]:
    status = main(["capture-tools", *words, "--json"])
    return status, json.loads(capsys.readouterr().out)


def test_a_catalogue_is_saved(here, fake, capsys):
    """The file is read like the shipped catalogues, and has no trace of this machine or moment."""
    fake()
    status, printed = _json(capsys)

    file = here / "openclaw-2026.10.1.json"
    catalogue = read_catalogue(file)
    assert (status, printed["out"], printed["release"]) == (0, file.name, "openclaw-2026.10.1")
    assert catalogue.name == printed["release"]
    assert printed["sha256"] == catalogue.sha256
    assert catalogue.surfaces["direct"] == ("read", "tool_call")
    assert [tool.name for tool in catalogue.surface("coding")] == ["exec", "read"]
    assert catalogue.tool("read").description == "The release's words for read."
    assert catalogue.deferred == ("exec",)
    request = catalogue.requests["direct"]
    assert (request["api"], request["fields"]) == ("openai-completions", {"model": "model", "stream": True})
    assert "Working directory: <workspace>\nHome: <home>\nCurrent date: <time>" in request["system"]
    assert printed["notes"] == ["behind the bridge, but on no surface, so left out: far_away"]


@pytest.mark.nightly
def test_a_surface_of_the_users_own(here, fake, config, capsys):
    """The config's policy and model apply; its server, keys, channels and plugins are left out."""
    seen = fake()
    status, printed = _json(capsys, "--config", str(config))

    catalogue = read_catalogue(here / printed["out"])
    starts = [json.loads(line) for line in seen.read_text().splitlines()]
    own = next(
        start["config"]
        for start in starts
        if "home" in start["config"].get("models", {}).get("providers", {})
    )
    server = own["models"]["providers"]["home"]
    assert status == 0
    assert catalogue.surfaces["configured"] == ("read",)
    assert catalogue.requests["configured"]["api"] == "ollama"
    assert catalogue.requests["configured"]["fields"] == {"model": "m", "options": {"num_ctx": 4096}}
    assert server["baseUrl"].startswith("http://127.0.0.1:")
    assert server["apiKey"] == "not-a-key"
    assert own["agents"]["defaults"]["sandbox"] == {"mode": "off"}
    assert own["plugins"] == {"entries": {"browser": {"enabled": False}}}
    assert own.keys() == {"tools", "agents", "plugins", "models", "logging", "update"}
    assert printed["surfaces"][-2]["surface"] == "configured"
    everything = seen.read_text() + (here / printed["out"]).read_text() + json.dumps(printed)
    assert not any(secret in everything for secret in SECRETS)
    assert "alice" not in everything


@pytest.mark.parametrize(
    ("mode", "words", "said"),
    [
        pytest.param(
            "old-node", (), "OpenClaw does not print its release: openclaw requires Node", id="old-node"
        ),
        pytest.param("silent", (), ": Unknown model: capture/model", id="silent-its-own-words"),
        pytest.param("odd", (), "has a form that is not known: a tool of it has no name", id="odd"),
        pytest.param(
            "refuses", ("--config",), "OpenClaw refuses it: tools.profil: Unrecognized key", id="invalid"
        ),
        pytest.param("sends", ("--config", "gone.json"), "there is no config gone.json", id="no-config"),
        pytest.param("sends", ("--model", "a/b"), "give --config, too", id="no-config-of-model"),
    ],
)
def test_a_failure_is_reported(mode, words, said, here, fake, config, capsys):
    """One line says what is wrong, nothing is written, and the exit status is 4."""
    fake(mode)
    words = (*words, str(config)) if words == ("--config",) else words

    assert main(["capture-tools", *words]) == 4

    assert said in capsys.readouterr().err
    assert list(here.iterdir()) == []


@pytest.mark.nightly
def test_a_hanging_start_is_ended(here, fake, capsys, monkeypatch):
    """A start that hangs ends the command, and is ended itself."""
    monkeypatch.setattr(capture, "PATIENCE_S", 6.0)
    fake("hangs")
    before = {process.pid for process in psutil.Process().children(recursive=True)}

    assert main(["capture-tools"]) == 4

    said = (
        r"nothing was sent to the model for the surface [\w-]+: openclaw agent exec did not end within 6 s\n"
    )
    assert re.search(said, capsys.readouterr().err)
    assert {process.pid for process in psutil.Process().children(recursive=True)} <= before


@pytest.mark.nightly
def test_only_a_catalogue_is_overwritten(here, fake, capsys):
    """A file that is not a catalogue stays; an earlier catalogue is replaced."""
    fake()
    Path("mine.json").write_text("{}")

    assert main(["capture-tools", "-o", "mine.json"]) == 4
    assert "mine.json exists and is no catalogue of ours" in capsys.readouterr().err
    assert Path("mine.json").read_text() == "{}"
    assert [main(["capture-tools"]), main(["capture-tools"])] == [0, 0]
