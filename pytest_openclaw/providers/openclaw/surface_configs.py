"""The configs under which OpenClaw's requests are captured, each with one model and nothing else."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from pytest_openclaw.providers.json_values import object_in
from pytest_openclaw.types.requests import DEFAULT_CONTEXT_TOKENS

if TYPE_CHECKING:
    from collections.abc import Iterator

    from pytest_openclaw.core.json_types import JsonObject
    from pytest_openclaw.providers.openclaw.call import AgentScratch

PROFILES = ("coding", "full")
DIRECT = "direct"
PROVIDER, MODEL = "capture", "model"
KEY = "not-a-key"
SPOKEN = ("openai-completions", "openai-responses", "ollama")


@dataclass(frozen=True, kw_only=True)
class Wanted:
    """A surface to capture.

    Attributes:
        surface: its name.
        config: OpenClaw's, without the model's address, the folders, and the settings of every capture.
        provider, model, api: the model and its API.
        as_a_turn: capture a turn of the agent, by its config alone; otherwise `agent exec`, whose default
            profile is `coding`, as in a request of `openclaw_agent`.
        notes: differences from the user's config.
    """

    surface: str
    config: JsonObject
    provider: str = PROVIDER
    model: str = MODEL
    api: str = SPOKEN[0]
    abilities: JsonObject = field(default_factory=dict)
    as_a_turn: bool = False
    notes: tuple[str, ...] = ()


def release_surfaces() -> Iterator[Wanted]:
    """Yield the default, and two profiles with all tools sent, which describe what is behind its bridge."""
    yield Wanted(surface=DIRECT, config={})
    for profile in PROFILES:
        yield Wanted(surface=profile, config={"tools": {"profile": profile, "toolSearch": False}})


def whole_config(wanted: Wanted, scratch: AgentScratch, url: str) -> JsonObject:
    """Return OpenClaw's config: the wanted one with one model, and no other server."""
    usual = {
        "id": wanted.model,
        "name": wanted.model,
        "reasoning": False,
        "input": ["text"],
        "contextWindow": DEFAULT_CONTEXT_TOKENS,
        "maxTokens": 8192,
    }
    model = {**usual, **wanted.abilities, "cost": {"input": 0, "output": 0, "cacheRead": 0, "cacheWrite": 0}}
    server = {
        "baseUrl": url,
        "apiKey": KEY,
        "api": wanted.api,
        "agentRuntime": {"id": "openclaw"},
        "models": [model],
    }
    agents = object_in(wanted.config.get("agents"))
    own = {
        "workspace": str(scratch.workspace),
        "model": {"primary": f"{wanted.provider}/{wanted.model}"},
        "sandbox": {"mode": "off"},
        "heartbeat": {"every": "0m"},
    }
    return {
        **wanted.config,
        "agents": {**agents, "defaults": {**object_in(agents.get("defaults")), **own}},
        "models": {"mode": "replace", "providers": {wanted.provider: server}},
        "logging": {"file": str(scratch.folder / "log.jsonl")},
        "update": {"checkOnStart": False},
    }
