"""Routes → what they change in OpenClaw's config.

OpenClaw refuses a whole config for one key that it does not know, so `KEYS` lists all that is ever written.
What is not written, and why:

- `models.providers.<id>.models` is an array: a patch replaces it, and OpenClaw refuses one that would lose
  entries. `compat.supportsTools` is set by another command, which stands in a comment.
- `agents.defaults.model` is the user's choice, and its `fallbacks` are an array too.
- Addresses, headers and keys are nobody's business here.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from collections.abc import Iterator

    from pytest_openclaw.records import JsonObject
    from pytest_openclaw.reports.json5 import Path
    from pytest_openclaw.stats.routing import Route, Routing

ANY_REF = "*"
"""In `KEYS`, one `provider/model`."""
_POLICY: Path = ("tools", "byProvider", ANY_REF)
KEYS: Mapping[str, frozenset[Path]] = {
    "2026.9.6": frozenset(
        {
            (*_POLICY, "profile"),
            (*_POLICY, "allow"),
            (*_POLICY, "alsoAllow"),
            (*_POLICY, "deny"),
            ("agents", "defaults", "subagents", "model"),
            ("agents", "defaults", "subagents", "thinking"),
            ("agents", "defaults", "heartbeat", "model"),
            ("agents", "defaults", "utilityModel"),
        }
    )
}
"""By release, every place at which the patch may have a value."""
LATEST_RELEASE = "2026.9.6"

# What OpenClaw's own security audit asks for where a small model has no sandbox (`models.small_params`).
DENIED_NEAR_BY = ("group:web", "browser")


def patch_of(routing: Routing) -> JsonObject:
    """Return the config-shaped object."""
    defaults: JsonObject = {}
    if best := routing.subagent:
        level = best.group.target.thinking_level
        defaults["subagents"] = {"model": best.ref, **({"thinking": level} if level else {})}
    if routing.heartbeat:
        defaults["heartbeat"] = {"model": routing.heartbeat}
    if routing.utility:
        defaults["utilityModel"] = routing.utility
    policies = {route.ref: _policy(route) for route in routing.routes if route.role != "unsettled"}
    return {
        **({"agents": {"defaults": defaults}} if defaults else {}),
        **({"tools": {"byProvider": policies}} if policies else {}),
    }


def unknown_keys(patch: JsonObject, release: str) -> list[Path]:
    """Return the places of a patch that are not among `KEYS`."""
    return [path for path in _leaves(patch, ()) if _pattern(path) not in KEYS[release]]


def _policy(route: Route) -> JsonObject:
    denied = {"deny": list(DENIED_NEAR_BY)} if route.is_local else {}
    if route.role == "all":
        return {"profile": "coding", **denied}
    # An older entry's `alsoAllow` would give more than was proven, and stands in no entry beside `allow`.
    nothing_more = {"alsoAllow": None}
    # An empty `allow` forbids nothing, so where no tool is proven the smallest profile stands.
    if route.role == "some" and route.proven_tools:
        return {"allow": route.proven_tools, **nothing_more, **denied}
    return {"profile": "minimal", **nothing_more}


def _leaves(value: Any, path: Path) -> Iterator[Path]:
    if not isinstance(value, Mapping):
        yield path
        return
    for key, inner in value.items():
        yield from _leaves(inner, (*path, key))


def _pattern(path: Path) -> Path:
    return (*_POLICY, *path[3:]) if path[:2] == _POLICY[:2] else path
