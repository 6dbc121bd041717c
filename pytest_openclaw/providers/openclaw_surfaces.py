"""The configs under which OpenClaw is heard: the release's own surfaces, and what comes of a user's config.

Of a user's config only what shapes tools and prompt is taken over (`TOOLS`, `DEFAULTS`, `ENTRY`, switches of
plugins, the model's abilities). What could start or reach anything is not: keys, servers, channels, gateway,
MCP servers, hooks, cron, sandboxes, code of plugins, other runtimes, folders.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from pytest_openclaw.providers.openclaw_call import CONTEXT_TOKENS

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

    from pytest_openclaw.providers.openclaw_call import Scratch
    from pytest_openclaw.records import JsonObject

PROFILES = ("minimal", "messaging", "coding", "full")
DIRECT = "direct"
PROVIDER, MODEL = "capture", "model"
KEY = "not-a-key"
SPOKEN = ("openai-completions", "openai-responses", "ollama")
REDACTED = "__OPENCLAW_REDACTED__"
SECTIONS = ("tools", "agents", "models", "plugins", "mcp")
"""What is read of a user's config; of the last only the names of servers, to say that they are missing."""

TOOLS = (
    "profile", "allow", "alsoAllow", "deny", "byProvider", "toolSearch", "codeMode", "agentToAgent",
    "sessions", "elevated", "exec", "fs", "subagents", "sessions_spawn", "updatePlan", "swarm", "message",
)  # fmt: skip
DEFAULTS = ("experimental", "skills", "subagents", "thinkingDefault", "contextInjection")
OF_MODEL = ("params", "codeMode", "streaming")
ENTRY = (*DEFAULTS, "tools")
ABILITIES = (
    "id", "name", "reasoning", "input", "contextWindow", "contextTokens", "maxTokens", "compat",
    "thinkingLevelMap", "params",
)  # fmt: skip
# Which API a provider speaks that is not in the config, because OpenClaw knows it.
_KNOWN_APIS = {"openai": "openai-responses", "ollama": "ollama"}
# Who acts where nobody says which agent does.
_OWNERS = ("systemAgent", "heartbeat")
_DROPPED = frozenset({"model", "apiKey", "headers", "env", "pathPrepend", "node", "allowFrom"})


@dataclass(frozen=True, kw_only=True)
class Wanted:
    """A surface to be heard.

    Attributes:
        surface: its name.
        config: OpenClaw's, but for the model's address, the folders, and what every capture has.
        provider, model, api: which model is asked, and how.
        as_a_turn: as a turn of the agent, by its config alone; else as `agent exec`, whose default profile is
            `coding`, and which is what a request from `openclaw_agent` is.
        notes: what is not as in the user's config.
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
    """Yield the surfaces of the release: the default, and each profile with all its tools at once."""
    yield Wanted(surface=DIRECT, config={})
    for profile in PROFILES:
        yield Wanted(surface=profile, config={"tools": {"profile": profile, "toolSearch": False}})


def configured_surface(
    surface: str, sections: Mapping[str, Any], *, model: str | None = None, agent: str | None = None
) -> Wanted:
    """Return the surface of a user's config.

    Args:
        surface: what to call it.
        sections: by their names, those of `SECTIONS` that are set, as `config get` tells them.
        model: `provider/model`; None takes the agent's own.
        agent: id of the agent; None takes the one that OpenClaw itself speaks as.

    Raises:
        ValueError: there is no such agent, or no model; the text says the mend.
    """
    agents = _object(sections.get("agents"))
    agent_id, entry = _agent(agents, agent)
    name = model or _primary(entry) or _primary(_object(agents.get("defaults")))
    provider, slash, model_id = (name or "").partition("/")
    if not (provider and slash and model_id):
        lacks = f"{name} is no provider/model" if name else "it names no model of its agent"
        raise ValueError(f"{lacks}. Name one: --model ollama/qwen3:8b.")
    servers = _object(_object(sections.get("models")).get("providers"))
    server = _object(servers.get(provider))
    abilities = next((one for one in _objects(server.get("models")) if one.get("id") == model_id), {})
    api = str(abilities.get("api") or server.get("api") or _KNOWN_APIS.get(provider, SPOKEN[0]))
    notes = [*_notes(sections, abilities)]
    if agent is None and len(entries := _object(agents.get("entries"))) > 1:
        notes.append(f"heard is {agent_id}, one of {len(entries)} agents; --agent names another")
    if api not in SPOKEN:
        notes.append(f"{name} is asked by {api}, which is not spoken here: {SPOKEN[0]} is sent")
        api = SPOKEN[0]
    defaults = _object(agents.get("defaults"))
    of_model = {
        key: value
        for one in (defaults, entry)
        for key, value in _kept(_object(one.get("models")).get(name), OF_MODEL).items()
    }
    config: JsonObject = {
        "tools": {**_kept(sections.get("tools"), TOOLS), **_web(_object(sections.get("tools")))},
        "agents": {
            "defaults": {**_kept(defaults, DEFAULTS), **({"models": {name: of_model}} if of_model else {})},
            **({"entries": {agent_id: _kept(entry, ENTRY)}} if agent_id else {}),
        },
        "plugins": _plugins(_object(sections.get("plugins"))),
    }
    return Wanted(
        surface=surface,
        config={name: part for name, part in config.items() if part},
        provider=provider,
        model=model_id,
        api=api,
        abilities=_kept(abilities, ABILITIES),
        as_a_turn=True,
        notes=tuple(notes),
    )


def whole_config(wanted: Wanted, scratch: Scratch, url: str) -> JsonObject:
    """Return the config that OpenClaw is given: the wanted one, one model, and nothing else to reach."""
    usual = {
        "id": wanted.model,
        "name": wanted.model,
        "reasoning": False,
        "input": ["text"],
        "contextWindow": CONTEXT_TOKENS,
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
    agents = _object(wanted.config.get("agents"))
    own = {
        "workspace": str(scratch.workspace),
        "model": {"primary": f"{wanted.provider}/{wanted.model}"},
        "sandbox": {"mode": "off"},
        "heartbeat": {"every": "0m"},
    }
    return {
        **wanted.config,
        "agents": {**agents, "defaults": {**_object(agents.get("defaults")), **own}},
        "models": {"mode": "replace", "providers": {wanted.provider: server}},
        "logging": {"file": str(scratch.folder / "log.jsonl")},
        "update": {"checkOnStart": False},
    }


def _notes(sections: Mapping[str, Any], abilities: Mapping[str, Any]) -> Iterator[str]:
    if servers := sorted(_object(_object(sections.get("mcp")).get("servers"))):
        yield f"tools of MCP servers are missing, none is started: {', '.join(servers)}"
    plugins = _object(sections.get("plugins"))
    if paths := _object(plugins.get("load")).get("paths"):
        n = len(paths) if isinstance(paths, list) else 1
        yield f"tools of plugins in {n} folder{'s' * (n > 1)} of the config are missing, no code there is run"
    if _object(abilities.get("compat")).get("supportsTools") is False:
        yield "the config says that the model takes no tools (compat.supportsTools)"


def _agent(agents: Mapping[str, Any], named: str | None) -> tuple[str, JsonObject]:
    """Return id and entry of an agent, by default of the one that OpenClaw speaks as; empty without entries.

    Raises:
        ValueError: there is none of that name.
    """
    entries = {name: _object(entry) for name, entry in _object(agents.get("entries")).items()}
    if named is not None and named not in entries:
        known = f"there are {', '.join(sorted(entries))}" if entries else "it has none but main"
        raise ValueError(f"it has no agent {named}; {known}.")
    if not entries:
        return "", {}
    owners = (_object(_object(agents.get("defaults")).get(key)).get("agentId") for key in _OWNERS)
    wanted = [named] if named else [*owners, "main", *entries]
    return next((name, entries[name]) for name in wanted if name in entries)


def _primary(holder: Mapping[str, Any]) -> str:
    model = holder.get("model")
    primary = _object(model).get("primary") if isinstance(model, dict) else model
    return primary if isinstance(primary, str) else ""


def _web(tools: Mapping[str, Any]) -> JsonObject:
    """Whether the two web tools are on; not by whose key."""
    web = {
        name: {"enabled": part["enabled"]}
        for name, part in _object(tools.get("web")).items()
        if name in ("search", "fetch") and isinstance(_object(part).get("enabled"), bool)
    }
    return {"web": web} if web else {}


def _plugins(plugins: Mapping[str, Any]) -> JsonObject:
    """The switches of plugins; neither their folders nor their own settings."""
    entries = {
        name: {"enabled": entry["enabled"]}
        for name, entry in _object(plugins.get("entries")).items()
        if isinstance(_object(entry).get("enabled"), bool)
    }
    return {
        **_kept(plugins, ("enabled", "allow", "deny", "slots")),
        **({"entries": entries} if entries else {}),
    }


def _kept(value: Any, names: tuple[str, ...]) -> JsonObject:
    kept = {name: _harmless(part) for name, part in _object(value).items() if name in names}
    return {name: part for name, part in kept.items() if part is not None}


def _harmless(value: Any) -> Any:
    """Return a value without secrets, and without references to them; None for such a one."""
    if isinstance(value, str):
        return None if REDACTED in value else value
    if isinstance(value, list):
        return [part for part in map(_harmless, value) if part is not None]
    if not isinstance(value, dict):
        return value
    if {"source", "id"} <= value.keys():
        return None
    parts = {name: _harmless(part) for name, part in value.items() if name not in _DROPPED}
    return {name: part for name, part in parts.items() if part is not None}


def _object(value: Any) -> JsonObject:
    return value if isinstance(value, dict) else {}


def _objects(value: Any) -> list[JsonObject]:
    return [part for part in value if isinstance(part, dict)] if isinstance(value, list) else []
