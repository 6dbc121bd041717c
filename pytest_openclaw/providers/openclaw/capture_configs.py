"""The configs under which OpenClaw's requests are captured, each with one model and nothing else.

Of a user's config only settings that shape tools and prompt are used: `TOOLS`, `AGENT`, switches of plugins,
and the model's abilities. Others are not, because they could start or reach something: keys, servers,
channels, gateway, MCP servers, hooks, cron, sandboxes, code of plugins, other runtimes, folders.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from pytest_openclaw.openclaw.captured import CONFIGURED
from pytest_openclaw.providers.openclaw.call import FREE, config_for
from pytest_openclaw.providers.wire import object_in, objects_in, text_in
from pytest_openclaw.values.requests import DEFAULT_CONTEXT_TOKENS

if TYPE_CHECKING:
    from collections.abc import Mapping

    from pytest_openclaw.providers.openclaw.workspace import Scratch
    from pytest_openclaw.util.files import JsonObject

KEY = "not-a-key"
SPOKEN = ("openai-completions", "openai-responses", "ollama")
REDACTED = "__OPENCLAW_REDACTED__"
SECTIONS = ("tools", "agents", "models", "plugins")

TOOLS = (
    "profile", "allow", "alsoAllow", "deny", "byProvider", "toolSearch", "agentToAgent",
    "sessions", "elevated", "exec", "fs", "subagents", "sessions_spawn", "updatePlan", "swarm", "message",
)  # fmt: skip
AGENT = ("experimental", "skills", "subagents", "thinkingDefault", "contextInjection")
ABILITIES = (
    "id", "name", "reasoning", "input", "contextWindow", "contextTokens", "maxTokens", "compat",
    "thinkingLevelMap", "params",
)  # fmt: skip
_DROPPED = frozenset({"model", "apiKey", "headers", "env", "pathPrepend", "node", "allowFrom"})
# The APIs of providers that OpenClaw knows without a config.
_KNOWN_APIS = {"openai": "openai-responses", "ollama": "ollama"}
# Settings that name the default agent.
_OWNERS = ("systemAgent", "heartbeat")


@dataclass(frozen=True, kw_only=True)
class Wanted:
    """A surface to capture.

    Attributes:
        surface: its name.
        config: OpenClaw's, without the model's address, the folders, and the settings of every capture.
        provider, model, api: the model and its API.
        as_a_turn: capture a turn of the agent, by its config only; otherwise `agent exec`, whose default
            profile is `coding`, as in a request of `openclaw_agent`.
    """

    surface: str
    config: JsonObject
    provider: str = "capture"
    model: str = "model"
    api: str = SPOKEN[0]
    abilities: JsonObject = field(default_factory=dict)
    as_a_turn: bool = False


def release_surfaces() -> list[Wanted]:
    """Return the default, and two profiles with all tools sent, which describe what is behind its bridge."""
    return [
        Wanted(surface="direct", config={}),
        *(
            Wanted(surface=profile, config={"tools": {"profile": profile, "toolSearch": False}})
            for profile in ("coding", "full")
        ),
    ]


def whole_config(wanted: Wanted, scratch: Scratch, url: str) -> JsonObject:
    """Return OpenClaw's config: the wanted one with one model, and no other server."""
    usual = {
        "id": wanted.model,
        "name": wanted.model,
        "reasoning": False,
        "input": ["text"],
        "contextWindow": DEFAULT_CONTEXT_TOKENS,
        "maxTokens": 8192,
    }
    server = {
        "baseUrl": url,
        "apiKey": KEY,
        "api": wanted.api,
        "agentRuntime": {"id": "openclaw"},
        "models": [{**usual, **wanted.abilities, "cost": FREE}],
    }
    agents = object_in(wanted.config.get("agents"))
    defaults = object_in(agents.get("defaults")) | {"sandbox": {"mode": "off"}, "heartbeat": {"every": "0m"}}
    return {**wanted.config, **config_for(scratch, wanted.provider, server, agents, **defaults)}


def configured_surface(
    sections: Mapping[str, Any], *, model: str | None = None, agent: str | None = None
) -> Wanted:
    """Return the surface of a user's config.

    Args:
        sections: by name, those of `SECTIONS` that are set, as printed by `config get`.
        model: `provider/model`; None selects the agent's own.
        agent: id of the agent; None selects OpenClaw's default.

    Raises:
        ValueError: there is no such agent, or no model; the message has a hint.
    """
    agents, tools, plugins, models = (
        object_in(sections.get(name)) for name in ("agents", "tools", "plugins", "models")
    )
    defaults = object_in(agents.get("defaults"))
    agent_id, entry = _agent(agents, agent)
    name = model or _primary(entry) or _primary(defaults)
    provider, _, model_id = name.partition("/")
    if not (provider and model_id):
        lacks = f"{name} is not a provider/model" if name else "it names no model of its agent"
        raise ValueError(f"{lacks}. Name one: --model ollama/qwen3:8b.")
    server = object_in(object_in(models.get("providers")).get(provider))
    abilities = next((one for one in objects_in(server.get("models")) if one.get("id") == model_id), {})
    api = abilities.get("api") or server.get("api") or _KNOWN_APIS.get(provider)
    settings = [object_in(object_in(one.get("models")).get(name)) for one in (defaults, entry)]
    of_model = _kept(settings[0] | settings[1], ("params", "streaming"))
    web = _kept(_switches(tools.get("web")), ("search", "fetch"))
    return Wanted(
        surface=CONFIGURED,
        config={
            "tools": {
                **_kept(tools, TOOLS),
                **({"web": web} if web else {}),
                "codeMode": {"enabled": False},  # by itself OpenClaw turns it on for some models
            },
            "agents": {
                "defaults": {**_kept(defaults, AGENT), **({"models": {name: of_model}} if of_model else {})},
                **({"entries": {agent_id: _kept(entry, (*AGENT, "tools"))}} if agent_id else {}),
            },
            "plugins": {
                **_kept(plugins, ("enabled", "allow", "deny", "slots")),
                "entries": _switches(plugins.get("entries")),
            },
        },
        provider=provider,
        model=model_id,
        api=api if api in SPOKEN else SPOKEN[0],
        abilities=_kept(abilities, ABILITIES),
        as_a_turn=True,
    )


def _agent(agents: JsonObject, named: str | None) -> tuple[str, JsonObject]:
    """Return id and entry of an agent, by default of OpenClaw's default agent; empty without entries.

    Raises:
        ValueError: there is no such agent.
    """
    entries = object_in(agents.get("entries"))
    if named is not None and named not in entries:
        known = f"there are {', '.join(sorted(entries))}" if entries else "it has none but main"
        raise ValueError(f"it has no agent {named}; {known}.")
    defaults = object_in(agents.get("defaults"))
    owners = [text_in(object_in(defaults.get(key)).get("agentId")) for key in _OWNERS]
    wanted = [named] if named else [*owners, "main", *entries]
    return next(((name, object_in(entries[name])) for name in wanted if name in entries), ("", {}))


def _primary(holder: JsonObject) -> str:
    model = holder.get("model")
    return text_in(object_in(model).get("primary")) or text_in(model)


def _switches(entries: Any) -> JsonObject:
    """Return of each entry only whether it is on, if it says so."""
    parts = {name: object_in(entry).get("enabled") for name, entry in object_in(entries).items()}
    return {name: {"enabled": is_on} for name, is_on in parts.items() if isinstance(is_on, bool)}


def _kept(value: JsonObject, names: tuple[str, ...]) -> JsonObject:
    kept = {name: _harmless(value[name]) for name in names if name in value}
    return {name: part for name, part in kept.items() if part is not None}


def _harmless(value: Any) -> Any:
    """Return a value without secrets and references to them; None if it is one."""
    if isinstance(value, list):
        return [part for part in map(_harmless, value) if part is not None]
    if isinstance(value, dict):
        is_reference = {"source", "id"} <= value.keys()
        return None if is_reference else _kept(value, tuple(value.keys() - _DROPPED))
    return None if isinstance(value, str) and REDACTED in value else value
