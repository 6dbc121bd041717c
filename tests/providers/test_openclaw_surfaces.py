"""The parts of a user's config that a capture uses, and those that it does not."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from pytest_openclaw.providers.openclaw.capture_configs import (
    REDACTED,
    SPOKEN,
    configured_surface,
    whole_config,
)
from pytest_openclaw.providers.openclaw.workspace import Scratch

MODEL = {"id": "m", "contextWindow": 4096, "params": {"num_ctx": 4096}, "headers": {"x": "y"}}
SERVER = {"baseUrl": "https://models.example", "apiKey": REDACTED, "api": "ollama", "models": [MODEL]}


def _sections(**more: Any) -> dict[str, Any]:
    agents = {"defaults": {"model": {"primary": "lab/m"}}, "entries": {"main": {}}}
    return {"agents": agents, "models": {"providers": {"lab": SERVER}}, **more}


def _surface(sections: dict[str, Any], **chosen: str) -> Any:
    return configured_surface(sections, **chosen)


def test_policy_model_and_switches_hold() -> None:
    """Settings that affect tools and prompt are taken unchanged."""
    tools = {"profile": "coding", "deny": ["exec"], "byProvider": {"lab/m": {"allow": ["read"]}}}
    wanted = _surface(
        _sections(tools={**tools, "web": {"search": {"enabled": False, "provider": "brave"}}},
                  plugins={"entries": {"browser": {"enabled": False, "config": {"x": 1}}, "canvas": {"config": {}}}})
    )  # fmt: skip

    rest = {"web": {"search": {"enabled": False}}, "codeMode": {"enabled": False}}
    assert wanted.config["tools"] == {**tools, **rest}
    assert wanted.config["plugins"] == {"entries": {"browser": {"enabled": False}}}
    assert (wanted.provider, wanted.model, wanted.api) == ("lab", "m", "ollama")
    assert wanted.abilities == {"id": "m", "contextWindow": 4096, "params": {"num_ctx": 4096}}
    assert wanted.as_a_turn


@pytest.mark.parametrize(
    "more",
    [
        pytest.param({"tools": {"media": {"models": [1]}, "toolsBySender": {"+49": {}}}}, id="tools-for-some"),
        pytest.param({"tools": {"exec": {"env": {"A": "secret"}, "node": "secret"}}}, id="the-environment"),
        pytest.param({"tools": {"exec": {"host": REDACTED}}}, id="what-was-taken-out"),
        pytest.param({"tools": {"message": {"x": {"source": "env", "id": "secret"}}}}, id="a-reference"),
        pytest.param({"plugins": {"load": {"paths": ["/secret"]}, "entries": {"x": {"config": {"k": "secret"}}}}}, id="plugins"),
    ],
)  # fmt: skip
def test_what_could_start_or_reach_something_is_not_taken(tmp_path: Path, more: dict[str, Any]) -> None:
    """Servers, keys, environment, code: none of it is in the config that OpenClaw gets."""
    wanted = _surface(_sections(**more))

    text = json.dumps(whole_config(wanted, Scratch(tmp_path), "http://127.0.0.1:1"))
    assert not [
        word for word in ("secret", REDACTED, "models.example", "+49", "headers", "mcp") if word in text
    ]


def test_the_model_of_the_config_is_asked_at_the_endpoint(tmp_path: Path) -> None:
    """Only its server differs; no agent runs in a sandbox, none by itself."""
    sections = _sections()
    sections["agents"]["defaults"] |= {
        "workspace": "/home/ann/ws",
        "sandbox": {"mode": "all"},
        "models": {"lab/m": {"params": {"top_k": 1}, "agentRuntime": {"id": "codex"}}},
    }

    config = whole_config(_surface(sections), Scratch(tmp_path), "http://127.0.0.1:1/x")

    (server,) = config["models"]["providers"].values()
    assert (server["baseUrl"], server["apiKey"]) == ("http://127.0.0.1:1/x", "not-a-key")
    assert server["agentRuntime"] == {"id": "openclaw"}
    assert config["models"]["mode"] == "replace"
    defaults = config["agents"]["defaults"]
    assert defaults["models"] == {"lab/m": {"params": {"top_k": 1}}}
    assert (defaults["sandbox"], defaults["model"]) == ({"mode": "off"}, {"primary": "lab/m"})
    assert defaults["workspace"] == str(tmp_path / "workspace")


TWO = {
    "defaults": {"model": "lab/m", "systemAgent": {"agentId": "work"}},
    "entries": {"main": {}, "work": {"tools": {"profile": "minimal"}, "model": {"primary": "lab/other"}}},
}


@pytest.mark.parametrize(
    ("agents", "chosen", "entries", "model"),
    [
        pytest.param({"defaults": {"model": "lab/m"}}, {}, None, "m", id="no-entry"),
        pytest.param(TWO, {}, {"work": {"tools": {"profile": "minimal"}}}, "other", id="who-acts-by-itself"),
        pytest.param(TWO, {"agent": "main"}, {"main": {}}, "m", id="named"),
        pytest.param(TWO, {"model": "lab/third"}, {"work": {"tools": {"profile": "minimal"}}}, "third", id="model"),
    ],
)  # fmt: skip
def test_one_agent_is_used(agents: Any, chosen: dict[str, str], entries: Any, model: str) -> None:
    """The default agent, or the named one."""
    wanted = _surface({**_sections(), "agents": agents}, **chosen)

    assert wanted.config.get("agents", {}).get("entries") == entries
    assert wanted.model == model


@pytest.mark.parametrize(
    ("sections", "chosen", "said"),
    [
        pytest.param({}, {}, "it names no model of its agent. Name one: --model", id="no-model"),
        pytest.param(
            _sections(), {"model": "m"}, "m is not a provider/model. Name one: --model", id="no-provider"
        ),
        pytest.param(_sections(), {"agent": "work"}, "it has no agent work; there are main.", id="no-agent"),
        pytest.param({}, {"agent": "work"}, "it has no agent work; it has none but main.", id="no-agents"),
    ],
)
def test_what_is_missing_is_said(sections: Any, chosen: dict[str, str], said: str) -> None:
    """The message has a hint."""
    with pytest.raises(ValueError, match=said):
        _surface(sections, **chosen)


@pytest.mark.parametrize(
    ("server", "api"),
    [
        pytest.param({"api": "openai-responses"}, "openai-responses", id="spoken"),
        pytest.param({"api": "ollama", "models": [{"id": "m", "api": SPOKEN[0]}]}, SPOKEN[0], id="the-models-own"),
        pytest.param({}, SPOKEN[0], id="unsaid"),
        pytest.param({"api": "anthropic-messages"}, SPOKEN[0], id="a-foreign-one"),
    ],
)  # fmt: skip
def test_the_api_is_that_of_the_config(server: Any, api: str) -> None:
    """The model's API takes precedence over its server's."""
    wanted = _surface({**_sections(), "models": {"providers": {"lab": server}}})

    assert wanted.api == api
