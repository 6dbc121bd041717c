"""Routes → a patch of OpenClaw's config as JSON5, with the evidence in its comments.

What is not written, and why:

- `models.providers.<id>.models`, where `compat.supportsTools` is, is an array: a patch replaces it, and
  OpenClaw refuses one that would lose entries.
- `agents.defaults.model` and fallbacks are the user's choice.
- Addresses, headers and keys are not used here.

An object → JSON5, with comments before its keys.
"""

from __future__ import annotations

import json
import shlex
import textwrap
from collections.abc import Mapping
from dataclasses import dataclass
from functools import reduce
from typing import TYPE_CHECKING

from pytest_openclaw.reports.facts import (
    ABLE,
    render_best,
    render_cap,
    render_early_stopping,
    render_from_text,
    render_strain,
)
from pytest_openclaw.reports.numbers import render_interval, render_ms
from pytest_openclaw.stats.tiers import TIER_NAMES
from pytest_openclaw.stats.tool_use import PROVEN_PERCENT, PROVEN_PROMPTS
from pytest_openclaw.util.text import counted, printable

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from pytest_openclaw.features.routing.routes import Candidate, PlaceChoice, Route, Routing
    from pytest_openclaw.stats.groups import Group
    from pytest_openclaw.util.json_types import JsonObject


Path = tuple[str, ...]
WIDTH = 100


def render_object(value: JsonObject, path: Path, comments: Mapping[Path, Sequence[str]]) -> Iterator[str]:
    """Yield the lines of an object, the comments of a place before it; strings are ASCII."""
    indent = "  " * len(path)
    yield f"{indent}{_key(path)}{{"
    for key, inner in value.items():
        place = (*path, key)
        yield from (f"  {indent}{line}" for line in comments.get(place, ()))
        if isinstance(inner, Mapping):
            yield from render_object(dict(inner), place, comments)
        else:
            yield f"  {indent}{_key(place)}{json.dumps(inner)},"
    yield f"{indent}}}{',' if path else ''}"


def _key(path: Path) -> str:
    return f"{json.dumps(path[-1])}: " if path else ""


def comment(text: str, depth: int = 0) -> list[str]:
    """Return a foreign text as comment lines; nothing in it can end the comment."""
    # A no-break space keeps a number and its % together.
    line = printable(" ".join(text.split())).replace(" %", "\N{NO-BREAK SPACE}%")
    indent = "// " + "  " * depth
    lines = textwrap.wrap(
        line,
        WIDTH,
        initial_indent=indent,
        subsequent_indent=indent + "  ",
        break_long_words=False,
        break_on_hyphens=False,
    )
    return [one.replace("\N{NO-BREAK SPACE}%", " %") for one in lines]


FIRST_WORDS = "// A patch for OpenClaw"
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


@dataclass(frozen=True, kw_only=True)
class Patch:
    """What a run says about OpenClaw's config.

    Attributes:
        value: the config-shaped object; empty if no model with a name has enough evidence.
        text: the same as JSON5, with comments.
    """

    value: JsonObject
    text: str


@dataclass(frozen=True, kw_only=True)
class Origin:
    """The origin of a patch.

    Attributes:
        shortcomings: what is missing from the run, in words.
    """

    run_id: str
    version: str
    shortcomings: tuple[str, ...] = ()


def check_command(file: str, *, stdin: bool = False) -> str:
    """Return the command by which OpenClaw checks a patch without applying it."""
    source = "--stdin" if stdin else f"--file {shlex.quote(file)}"
    return f"openclaw config patch {source} --dry-run --json"


def render_patch(routing: Routing, origin: Origin, file: str = "openclaw.patch.json5") -> Patch:
    """Return the patch."""
    value = patch_of(routing)
    comments = _comments(routing)
    lines = [*_heading(routing, origin, file, is_empty=not value), *render_object(value, (), comments)]
    return Patch(value=value, text="\n".join(lines) + "\n")


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


def _heading(routing: Routing, origin: Origin, file: str, *, is_empty: bool) -> Iterator[str]:
    run = f"run {origin.run_id}, pytest-openclaw {origin.version}"
    yield from comment(f"{FIRST_WORDS.removeprefix('// ')} {RELEASE}: {run}.")
    if is_empty:
        yield from comment(
            "It is empty, and OpenClaw refuses an empty patch: of no model that it has a name for there is "
            "enough evidence."
        )
    else:
        # On a line of its own, to be copied.
        yield from comment("Check it; apply it by the same command without --dry-run --json, not by hand:")
        yield f"//   {printable(check_command(file)).replace(chr(10), ' ')}"
        yield from comment(
            "Objects are merged by key, so a narrower profile, allow or deny of yours stays where the entry "
            "here has none. Lists are replaced: if an entry of yours denies more tools than the one here, "
            "add them here. Every provider/model must be one of `openclaw models list`. All models were "
            "measured with OpenClaw's code mode off; with it on, no policy limits their code."
        )
    for shown_text in origin.shortcomings:
        yield from comment(f"WARNING: {shown_text}. The evidence is that of the cells that were asked.")
    for route in routing.routes:
        if route.role == "unsettled":
            yield "//"
            yield from comment(
                f"No entry for {route.ref}: there is not enough evidence, so what you have now stays."
            )
            yield from _each_evidence(route)
    for candidate in routing.nameless:
        yield "//"
        yield from comment(f"No entry for {candidate.label}: OpenClaw has no name for it.")
        yield from _evidence(candidate)


def _comments(routing: Routing) -> dict[Path, list[str]]:
    policies = ("tools", "byProvider")
    comments: dict[Path, list[str]] = {
        (*policies, route.ref): [*_each_evidence(route), *_reasons(route)]
        for route in routing.routes
        if route.role != "unsettled"
    }
    defaults = ("agents", "defaults")
    if best := routing.subagent:
        comments[*defaults, "subagents"] = comment(
            f"{render_best(routing.best, ABLE)}."
            if routing.best
            else f"Only {best.label} may hold the tools."
        )
    for choice in routing.choices:
        if choice.ref and choice.place.path:
            comments[*defaults, choice.place.path[0]] = [
                *comment(f"{render_choice(choice)}."),
                *(comment(f"{choice.place.note}.") if choice.place.note else ()),
                *(line for one in choice.fit for line in comment(f"{render_fit(one, choice)}.", 1)),
            ]
    return comments


def _each_evidence(route: Route) -> Iterator[str]:
    for candidate in route.candidates:
        yield from _evidence(candidate)
    if len(route.candidates) > 1:
        yield from comment("The tool policy knows no thinking level, so the weakest of these decides.")
    for other in route.set_aside:
        # It goes before the others, unless it shows no calls on the wire.
        is_ours = other.rank < route.candidates[0].rank
        why = "no calls were seen on the wire" if is_ours else "OpenClaw reaches this model in another way"
        yield from comment(f"Left out, because {why}: {_verdict(other)}")


def _evidence(candidate: Candidate) -> Iterator[str]:
    group, use = candidate.group, candidate.group.tool_use
    yield from comment(_verdict(candidate))
    if candidate.is_native:
        ends = ", ".join(f"{outcome} {n}" for outcome, n in use.outcomes.items())
        restraint = f"restraint {use.restraint.n_success} of {use.restraint.n}; " if use.restraint.n else ""
        yield from comment(f"{restraint}outcomes: {ends}; p50 {render_ms(group.latency_ms['p50'])}.", 1)
    elif use.evidence == "text":
        yield from comment("A tier of text alone never grants tools: OpenClaw runs no call in a text.", 1)
    for shown_text in _said_of(group):
        yield from comment(f"{shown_text}.", 1)
    for remark in candidate.remarks:
        yield from comment(f"Check: {remark}.", 1)


def _verdict(candidate: Candidate) -> str:
    return f"{candidate.label}: {candidate.group.recommendation.sentence}. {_tier(candidate)}"


def _tier(candidate: Candidate) -> str:
    use = candidate.group.tool_use
    if use.evidence is None or use.tier is None:
        return "No answered cell asked for a call."
    kind, how = ("native tool", "") if candidate.is_native else ("tool", ", as text alone")
    cells = f"{use.n_success} of {counted(use.n, f'{kind} cell')} right{how}"
    sure = "conclusive" if use.conclusive else "not conclusive"
    interval = f"95 % interval {render_interval(use.interval_95)}"
    return f"Tier {use.tier}, {TIER_NAMES[use.tier]}; {cells}, {interval}, {sure}."


def _said_of(group: Group) -> Iterator[str]:
    use = group.tool_use
    if use.evidence == "native" and not use.conclusive and (more := render_early_stopping(use, "the tier")):
        yield f"{more}: --openclaw-until-conclusive or other prompts"
    if cap := render_cap(use):
        yield f"Not Tier 1, because {cap}"
    if from_text := render_from_text(group):
        yield from_text
    if strain := render_strain(group):
        yield f"Under pressure: {strain}"
    if group.n_total > group.n_ok:
        yield f"{counted(group.n_total - group.n_ok, 'cell')} of {group.n_total} had no answer"
    if group.effective_models:
        yield f"Answers came from {', '.join(group.effective_models)}"


def _reasons(route: Route) -> Iterator[str]:
    holds_some = route.role == "some" and bool(route.proven_tools)
    if route.role == "some":
        yield from _proven_tools(route)
        yield from comment("Never for subagents.")
    if holds_some:
        yield from comment(
            "OpenClaw's tool search is denied, so that these tools are sent themselves, and none beside them."
        )
    if route.is_local and (holds_some or route.role == "all"):
        yield from comment(
            "The web is denied because it is served near by, where models are small and pages may be "
            "hostile: `openclaw security audit`, models.small_params."
        )
    if not holds_some and route.role != "all":
        yield from comment("No tool is sent; the profile minimal would leave session_status and gateway.")


def _proven_tools(route: Route) -> Iterator[str]:
    rule = f"at least {PROVEN_PROMPTS} right prompts and {PROVEN_PERCENT} %"
    proven = route.proven_tools
    yield from comment(f"Proven tools, by {rule}: {', '.join(proven) or 'none'}.")
    for candidate in route.candidates:
        shown_text = ", ".join(
            f"{name} {proof.n_right}/{proof.n} of {counted(proof.n_prompts, 'prompt')}"
            for name, proof in candidate.group.tool_proofs.items()
        )
        yield from comment(f"{candidate.label}: {shown_text or 'no tool of OpenClaw was asked for'}.", 1)


def render_choice(choice: PlaceChoice) -> str:
    """Say which model a place gets, or why none."""
    roles = " and ".join(choice.place.roles)
    if choice.best:
        found = render_best(choice.best, f"targets that fit {roles}")
    elif choice.fit:
        found = f"{choice.fit[0].label} alone fits {roles}"
    else:
        return f"no entry: {choice.why_none}"
    return f"{found}; no entry: {choice.why_none}" if choice.why_none else found


def render_fit(one: Candidate, choice: PlaceChoice) -> str:
    """Say what a target has shown in each role of a place."""
    shown = (f"{role} {one.roles[role].sentence}" for role in choice.place.roles)
    return f"{one.label}: {'; '.join(shown)}"
