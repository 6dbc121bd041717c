"""Routes → a patch of OpenClaw's config as JSON5, with the evidence in its comments.

What is not written, and why:

- `models.providers.<id>.models`, where `compat.supportsTools` is, is an array: a patch replaces it, and
  OpenClaw refuses one that would lose entries.
- `agents.defaults.model` and fallbacks are the user's choice.
- Addresses, headers and keys are not used here.
"""

from __future__ import annotations

import json
import shlex
import textwrap
from collections.abc import Mapping
from typing import TYPE_CHECKING, Any, NamedTuple

from pytest_openclaw import __version__
from pytest_openclaw.reports.facts import ABLE, render_best, render_cap, render_early_stopping
from pytest_openclaw.reports.numbers import render_interval
from pytest_openclaw.stats.tiers import TIER_NAMES
from pytest_openclaw.stats.tool_use import PROVEN_PERCENT, PROVEN_PROMPTS
from pytest_openclaw.util.text import counted, printable

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from pytest_openclaw.features.routing.routes import Candidate, PlaceChoice, Route, Routing
    from pytest_openclaw.util.files import JsonObject


WIDTH = 100
FIRST_WORDS = "// A patch for OpenClaw"
RELEASE = "2026.9.6"
"""Whose keys are written; OpenClaw refuses a whole config for one key that it does not know."""

# What OpenClaw's own security audit asks for where a small model has no sandbox (`models.small_params`).
DENIED_NEAR_BY = ("group:web", "browser")
# A policy does not cover OpenClaw's tool search, which is sent to every model that has any tool, unless it is
# denied by name. Then the allowed tools themselves are sent, as in the run that has proven them.
BRIDGES = ("tool_search", "tool_describe", "tool_call", "tool_search_code")
EVERY_TOOL = "*"


class Patch(NamedTuple):
    """A patch as an object, empty without a model with a name and enough evidence, and as JSON5."""

    value: JsonObject
    text: str


class Entry(NamedTuple):
    """A part of the patch; its comments are before the first three keys of its path."""

    path: tuple[str, ...]
    value: Any
    comments: Sequence[str]


def check_command(file: str | None) -> str:
    """Return the command that checks a patch without applying it; None stands for its input."""
    source = f"--file {shlex.quote(file)}" if file else "--stdin"
    return f"openclaw config patch {source} --dry-run --json"


def render_patch(
    routing: Routing, run_id: str, shortcomings: Sequence[str] = (), file: str = "openclaw.patch.json5"
) -> Patch:
    """Return the patch; `shortcomings` is what is missing from the run, in words."""
    value: JsonObject = {}
    comments: dict[tuple[str, ...], Sequence[str]] = {}
    for path, part, said in _entries(routing):
        inner = value
        for key in path[:-1]:
            inner = inner.setdefault(key, {})
        inner[path[-1]] = part
        comments[path[:3]] = said
    run = f"run {run_id}, pytest-openclaw {__version__}"
    heading = _comment(f"{FIRST_WORDS.removeprefix('// ')} {RELEASE}: {run}.")
    heading += _instructions(file, is_empty=not value)
    for shortcoming in shortcomings:
        heading += _comment(f"WARNING: {shortcoming}. The evidence covers only the cells that were asked.")
    for route in routing.routes:
        if route.role == "unsettled":
            why = "there is not enough evidence, so what you have now stays"
            heading += ["//", *_comment(f"No entry for {route.ref}: {why}."), *_evidence_of_route(route)]
    for candidate in routing.nameless:
        why = f"No entry for {candidate.label}: OpenClaw has no name for it."
        heading += ["//", *_comment(why), *_evidence(candidate)]
    lines = [*heading, *_object_lines(value, (), comments)]
    return Patch(value, "\n".join(lines) + "\n")


def _object_lines(
    value: JsonObject, path: tuple[str, ...], comments: Mapping[tuple[str, ...], Sequence[str]]
) -> Iterator[str]:
    indent = "  " * len(path)
    yield f"{indent}{_key(path)}{{"
    for key, inner in value.items():
        place = (*path, key)
        yield from (f"  {indent}{line}" for line in comments.get(place, ()))
        if isinstance(inner, Mapping):
            yield from _object_lines(dict(inner), place, comments)
        else:
            yield f"  {indent}{_key(place)}{json.dumps(inner)},"
    yield f"{indent}}}{',' if path else ''}"


def _key(path: tuple[str, ...]) -> str:
    return f"{json.dumps(path[-1])}: " if path else ""


def _comment(text: str, depth: int = 0) -> list[str]:
    """Return a foreign text as comment lines; nothing in it can end the comment."""
    indent = "// " + "  " * depth
    return textwrap.wrap(
        printable(" ".join(text.split())),
        WIDTH,
        initial_indent=indent,
        subsequent_indent=indent + "  ",
        break_long_words=False,
        break_on_hyphens=False,
    )


def _instructions(file: str, *, is_empty: bool) -> list[str]:
    if is_empty:
        return _comment(
            "It is empty, and OpenClaw refuses an empty patch: of no model that it has a name for there is "
            "enough evidence."
        )
    return [
        *_comment("Check it; apply it by the same command without --dry-run --json, not by hand:"),
        # On a line of its own, to be copied.
        f"//   {printable(check_command(file)).replace(chr(10), ' ')}",
        *_comment(
            "Objects are merged by key, so a narrower profile, allow or deny of yours stays where the entry "
            "here has none. Lists are replaced: if an entry of yours denies more tools than the one here, "
            "add them here. Every provider/model must be one of `openclaw models list`. All models were "
            "measured with OpenClaw's code mode off; with it on, no policy limits their code."
        ),
    ]


# --- the entries --------------------------------------------------------------------------------


def _entries(routing: Routing) -> Iterator[Entry]:
    defaults = ("agents", "defaults")
    if best := routing.subagent:
        level = best.group.target.thinking_level
        model = {"model": best.ref.name, **({"thinking": level} if level else {})}
        only = f"Only {best.label} may hold the tools"
        why = render_best(routing.best, ABLE) if routing.best else only
        yield Entry((*defaults, "subagents"), model, _comment(f"{why}."))
    for choice in routing.choices:
        if choice.ref and choice.place.path:
            said = _comment(f"{render_choice(choice)}.")
            said += _comment(f"{choice.place.note}.") if choice.place.note else []
            said += [line for one in choice.fit for line in _comment(f"{render_fit(one, choice)}.", 1)]
            yield Entry((*defaults, *choice.place.path), choice.ref, said)
    for route in routing.routes:
        if route.role != "unsettled":
            said = [*_evidence_of_route(route), *_reasons(route)]
            yield Entry(("tools", "byProvider", route.ref), _policy(route), said)


def _policy(route: Route) -> JsonObject:
    near_by = DENIED_NEAR_BY if route.is_local else ()
    if route.role == "all":
        return {"profile": "coding", **({"deny": list(near_by)} if near_by else {})}
    # An empty `allow` forbids nothing, and the smallest profile leaves tools that no target has proven.
    if route.role == "none" or not route.proven_tools:
        return {"deny": [EVERY_TOOL]}
    proven = route.proven_tools
    # OpenClaw gives apply_patch to every agent that is allowed to write.
    implied = ["apply_patch"] if "write" in proven and "apply_patch" not in proven else []
    # An older entry's `alsoAllow` would give more than was proven, and is in no entry next to `allow`.
    return {"allow": proven, "alsoAllow": None, "deny": [*near_by, *implied, *BRIDGES]}


def _evidence_of_route(route: Route) -> Iterator[str]:
    for candidate in route.candidates:
        yield from _evidence(candidate)
    if len(route.candidates) > 1:
        yield from _comment("The tool policy knows no thinking level, so the weakest of these decides.")
    for other in route.set_aside:
        why = "Left out, because OpenClaw reaches this model in another way"
        yield from _comment(f"{why}: {other.label}: {other.group.recommendation.sentence}.")


def _evidence(candidate: Candidate) -> Iterator[str]:
    group, use = candidate.group, candidate.group.tool_use
    yield from _comment(f"{candidate.label}: {group.recommendation.sentence}. {_tier(candidate)}")
    details = []
    if use.evidence == "text":
        details.append("A tier of text alone never grants tools: OpenClaw runs no call in a text")
    elif use.evidence and not use.conclusive and (more := render_early_stopping(use, "the tier")):
        details.append(f"{more}: --openclaw-until-conclusive or other prompts")
    if cap := render_cap(use):
        details.append(f"Not Tier 1, because {cap}")
    if group.effective_models:
        details.append(f"Answers came from {', '.join(group.effective_models)}")
    if candidate.ref.remark:
        details.append(f"Check: {candidate.ref.remark}")
    for detail in details:
        yield from _comment(f"{detail}.", 1)


def _tier(candidate: Candidate) -> str:
    use = candidate.group.tool_use
    if use.evidence is None or use.tier is None:
        return "No answered cell asked for a call."
    kind, how = ("native tool", "") if use.evidence == "native" else ("tool", ", as text alone")
    cells = f"{use.n_success} of {counted(use.n, f'{kind} cell')} right{how}"
    sure = "conclusive" if use.conclusive else "not conclusive"
    interval = f"95 % interval {render_interval(use.interval_95)}"
    return f"Tier {use.tier}, {TIER_NAMES[use.tier]}; {cells}, {interval}, {sure}."


def _reasons(route: Route) -> Iterator[str]:
    proven = route.proven_tools if route.role == "some" else []
    if route.role == "some":
        rule = f"at least {PROVEN_PROMPTS} right prompts and {PROVEN_PERCENT} %"
        yield from _comment(f"Proven tools, by {rule}: {', '.join(proven) or 'none'}. Never for subagents.")
    if proven:
        yield from _comment(
            "OpenClaw's tool search is denied, so that these tools are sent themselves, and no others."
        )
    if route.is_local and (proven or route.role == "all"):
        yield from _comment(
            "The web is denied because it is served near by, where models are small and pages may be "
            "hostile: `openclaw security audit`, models.small_params."
        )
    if not proven and route.role != "all":
        yield from _comment("No tool is sent; the profile minimal would leave session_status and gateway.")


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
