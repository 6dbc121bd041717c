"""capture-tools with the real OpenClaw: nine starts of up to ten seconds, once for all tests of this file."""

from __future__ import annotations

import hashlib
import json
import subprocess
import sys
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest

from pytest_openclaw.openclaw.catalog import Catalogue, load_catalogue, read_catalogue
from pytest_openclaw.values.tool_calls import Tool
from tests.openclaw.real import RealOpenClaw

pytestmark = [pytest.mark.openclaw_cli, pytest.mark.xdist_group("capture")]

PATIENCE_S = 900
SECRETS = ("ollama-key-of-the-config", "sk-of-the-config", "telegram-token-of-the-config", "gateway-token")
CONFIG = """// JSON5, with an include
{
  env: { vars: { SOME_API_KEY: "sk-of-the-config" } },
  models: { providers: { ollama: {
    baseUrl: "http://192.0.2.1:11434", apiKey: "ollama-key-of-the-config", api: "ollama",
    models: [{ id: "qwen3:8b", name: "q", reasoning: true, input: ["text"], contextWindow: 40960,
      maxTokens: 8192, params: { num_ctx: 16384 } }],
  } } },
  agents: { defaults: {
    model: { primary: "ollama/qwen3:8b" }, workspace: "WORKSPACE", sandbox: { mode: "all" },
  } },
  tools: { $include: "./tools.json5" },
  channels: { telegram: { enabled: true, botToken: "telegram-token-of-the-config" } },
  mcp: { servers: { files: { command: "touch", args: ["TRACE"] } } },
  gateway: { auth: { token: "gateway-token" } },
  cron: { enabled: true },
}
"""
TOOLS = """{
  profile: "coding", deny: ["exec", "process"], toolSearch: false,
  byProvider: { "ollama/qwen3:8b": { deny: ["theme"] } },
}
"""


@dataclass(frozen=True)
class Captured:
    """One capture: the printed JSON, the saved file, and the user's folder before and after."""

    printed: Any
    file: Path
    catalogue: Catalogue
    before: dict[str, str]
    after: dict[str, str]


def _files(folder: Path) -> dict[str, str]:
    found = (path for path in folder.rglob("*") if path.is_file())
    return {str(path.relative_to(folder)): hashlib.sha256(path.read_bytes()).hexdigest() for path in found}


@pytest.fixture(scope="module")
def captured(real_openclaw: RealOpenClaw, tmp_path_factory: pytest.TempPathFactory) -> Captured:
    """A capture of the release's surfaces and of a user's config."""
    folder = tmp_path_factory.mktemp("capture")
    home = folder / "home"
    own = home / ".openclaw"
    own.mkdir(parents=True)
    config = CONFIG.replace("WORKSPACE", str(home / "work")).replace("TRACE", str(home / "started"))
    (own / "openclaw.json").write_text(config, encoding="utf-8")
    (own / "tools.json5").write_text(TOOLS, encoding="utf-8")
    before = _files(home)
    environ = {
        **real_openclaw.environ,
        "HOME": str(home),
        "OPENCLAW_AGENT_COMMAND": real_openclaw.command,
        "TMPDIR": str(folder),
    }
    words = ["capture-tools", "--config", str(own / "openclaw.json"), "-o", str(folder / "c.json"), "--json"]
    done = subprocess.run(
        [sys.executable, "-m", "pytest_openclaw", *words],
        env=environ,
        capture_output=True,
        text=True,
        timeout=PATIENCE_S,
    )
    assert done.returncode == 0, done.stderr
    return Captured(
        printed=json.loads(done.stdout),
        file=folder / "c.json",
        catalogue=read_catalogue(folder / "c.json"),
        before=before,
        after=_files(home),
    )


def _wordless(value: Any) -> Any:
    """Return tools or a schema without descriptions: those that ship are our own."""
    if isinstance(value, Tool):
        return value.name, _wordless(value.parameters)
    if isinstance(value, tuple | list):
        return [_wordless(one) for one in value]
    if not isinstance(value, dict):
        return value
    return {
        key: _wordless(one) for key, one in value.items() if key != "description" or not isinstance(one, str)
    }


@pytest.mark.nightly
@pytest.mark.parametrize("surface", ["direct", "coding", "full"])
def test_the_catalogue_that_ships_is_what_the_release_sends(captured: Captured, surface: str) -> None:
    """Names, order and parameters are the same, and so is the size noted for the release."""
    shipped, sent = load_catalogue(), captured.catalogue

    assert sent.name == shipped.name
    assert _wordless(sent.surface(surface)) == _wordless(shipped.surface(surface))
    size = "bytes_of_the_release"
    assert sent.sizes[surface][size] == shipped.sizes[surface][size]
    deferred = captured.catalogue.requests["direct"]["deferred"]
    assert sorted(deferred) == sorted(shipped.deferred)


@pytest.mark.nightly
def test_a_users_config_shapes_its_surface(captured: Captured) -> None:
    """The profile, denied tools, also those for this model alone, the API and model parameters apply."""
    denied = {"exec", "process", "theme"}
    expected = [name for name in load_catalogue().surfaces["coding"] if name not in denied]
    request = captured.catalogue.requests["configured"]

    assert list(captured.catalogue.surfaces["configured"]) == expected
    assert (request["api"], request["fields"]["model"]) == ("ollama", "qwen3:8b")
    assert request["fields"]["options"]["num_ctx"] == 16384


@pytest.mark.nightly
def test_nothing_of_the_user_is_changed_or_printed(captured: Captured) -> None:
    """The home folder is unchanged, byte for byte; none of its keys and paths is in the catalogue."""
    text = captured.file.read_text("utf-8") + json.dumps(captured.printed["surfaces"])

    assert captured.after == captured.before
    assert not [secret for secret in SECRETS if secret in text]
    assert str(captured.file.parent) not in text
    assert "Current date: <time>" in captured.catalogue.requests["configured"]["system"]
