"""Routes → the changes of OpenClaw's config.

What is not written, and why:

- `models.providers.<id>.models`, where `compat.supportsTools` is, is an array: a patch replaces it, and
  OpenClaw refuses one that would lose entries.
- `agents.defaults.model` and fallbacks are the user's choice.
- Addresses, headers and keys are not used here.
"""

from __future__ import annotations

from functools import reduce
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from pytest_openclaw.core.json_types import JsonObject
    from pytest_openclaw.stats.candidates import Route
    from pytest_openclaw.stats.routing import Routing

RELEASE = "2026.9.6"
"""Whose keys are written; OpenClaw refuses a whole config for one key that it does not know."""

# What OpenClaw's own security audit asks for where a small model has no sandbox (`models.small_params`).
DENIED_NEAR_BY = ("group:web", "browser")
# Its tool search is no part of a policy: it is sent to every model that has any tool, unless it is denied by
# name. Denied, the allowed tools are sent themselves, which is how they were proven.
BRIDGES = ("tool_search", "tool_describe", "tool_call", "tool_search_code")
# Who is allowed the one gets the other too.
_BRINGS = {"write": "apply_patch"}
EVERY_TOOL = "*"


def patch_of(routing: Routing) -> JsonObject:
    """Return the config-shaped object."""
    defaults: JsonObject = {}
    if best := routing.subagent:
        level = best.group.target.thinking_level
        defaults["subagents"] = {"model": best.ref, **({"thinking": level} if level else {})}
    for choice in routing.choices:
        if choice.ref and choice.place.path:
            *outer, last = choice.place.path
            reduce(lambda inner, key: inner.setdefault(key, {}), outer, defaults)[last] = choice.ref
    policies = {route.ref: _policy(route) for route in routing.routes if route.role != "unsettled"}
    return {
        **({"agents": {"defaults": defaults}} if defaults else {}),
        **({"tools": {"byProvider": policies}} if policies else {}),
    }


def _policy(route: Route) -> JsonObject:
    near_by = DENIED_NEAR_BY if route.is_local else ()
    if route.role == "all":
        return {"profile": "coding", **({"deny": list(near_by)} if near_by else {})}
    # An empty `allow` forbids nothing, and the smallest profile leaves tools that no target has proven.
    if route.role == "none" or not route.proven_tools:
        return {"deny": [EVERY_TOOL]}
    proven = route.proven_tools
    implied = [other for one, other in _BRINGS.items() if one in proven and other not in proven]
    # An older entry's `alsoAllow` would give more than was proven, and is in no entry beside `allow`.
    return {"allow": proven, "alsoAllow": None, "deny": [*near_by, *implied, *BRIDGES]}
