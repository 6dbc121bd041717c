"""Say which model may hold the tools, as a patch of OpenClaw's config.

Writes RUN/openclaw.patch.json5: a tool policy for every model with a
recommendation, the best model for subagents, and the evidence in comments. A
trusted model gets the profile coding, a model that is trusted with some tools
gets these, an unsafe or not trusted model gets none, and a model without enough
evidence gets no entry. Your own config is unchanged; the command that lets
OpenClaw check the patch is printed. The patch never contains an address or key.

OpenClaw's provider is named after ours (ollama_native is ollama); --provider
sets another name.

Example:
  pytest-openclaw route last
  pytest-openclaw route 20260213_235930 --provider lab=vllm
"""

from __future__ import annotations

import argparse
import json
import re
import shlex
import textwrap
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import chain
from pathlib import Path
from typing import Any, Literal, NamedTuple
from urllib.parse import urlsplit

from pytest_openclaw import __version__
from pytest_openclaw.cli.result import (
    CliCommand,
    CommandResult,
    add_run,
    read_run,
    terminal_width,
    write_over_ours,
)
from pytest_openclaw.conclusions.recommendation import Kind, Recommendation
from pytest_openclaw.conclusions.summary import Best, Group, best_of, headline
from pytest_openclaw.providers.address import Address
from pytest_openclaw.reports.facts import ABLE, render_best
from pytest_openclaw.runs.reading import StoredRun
from pytest_openclaw.runs.summaries import summary_of
from pytest_openclaw.stats.tool_use import PROVEN_PERCENT, PROVEN_PROMPTS
from pytest_openclaw.util.errors import OpenClawError
from pytest_openclaw.util.files import JsonObject
from pytest_openclaw.util.text import printable
from pytest_openclaw.values.requests import Target
from pytest_openclaw.values.rows import Record
from pytest_openclaw.values.settings import is_openclaw

FILE = "openclaw.patch.json5"
WIDTH = 100
FIRST_WORDS = "// A patch for OpenClaw"
RELEASE = "2026.9.6"
"""The release whose keys are written; OpenClaw refuses a config with any unknown key."""


def _add_arguments(parser: argparse.ArgumentParser) -> None:
    add_run(parser)
    parser.add_argument("--out", metavar="FILE", help=f"the patch (RUN/{FILE})")
    parser.add_argument(
        "--provider",
        action="append",
        default=[],
        type=_renaming,
        metavar="OURS=THEIRS",
        help="OpenClaw's name of a provider of the run; may be repeated",
    )


def _run(arguments: argparse.Namespace) -> CommandResult:
    run = read_run(arguments)
    candidates = _candidates(run, dict(arguments.provider))
    routing = plan_routes(candidates)
    out = Path(arguments.out or run.path / FILE)
    patch = render_patch(routing, run.run_id, run.shortcomings, out.name)
    notes = [*run.shortcomings]
    check = check_command(str(out)) if patch.value else None
    if not check:
        notes.append("nothing to apply: no model that OpenClaw has a name for has enough evidence")
    write_over_ours(out, patch.text, FIRST_WORDS, "patch")
    folded = textwrap.TextWrapper(terminal_width(), subsequent_indent="  ", break_on_hyphens=False)
    shown = chain.from_iterable(map(folded.wrap, _summary_lines(routing)))
    return CommandResult(
        lines=[*shown, "", f"wrote {out}", *([f"check it: {check}"] if check else [])],
        data={
            "run": run.name,
            "release": RELEASE,
            "out": str(out),
            "check": check,
            "patch": patch.value,
            "targets": [_as_json(candidate) for candidate in candidates],
            "notes": notes,
        },
        warnings=notes,
    )


def _candidates(run: StoredRun, overrides: Mapping[str, str]) -> list[Candidate]:
    asked = sorted({target.provider for target in run.n_selected})
    for ours, theirs in overrides.items():
        if ours not in asked:
            known = ", ".join(asked)
            raise OpenClawError(f"--provider {ours}={theirs}: the run has no provider {ours}; it has {known}")
    groups = summary_of(run).groups
    if not any(group.tool_use.evidence == "native" for group in groups):
        raise OpenClawError(
            f"{run.name} has no native tool evidence: no answered cell offered tools on the wire, and what "
            "is only written in a text grants none. Ask a suite whose prompts have `tools`: "
            "`pytest-openclaw init --suite native` writes one."
        )
    refs = {group.target: ref_of(group.target, run.config, overrides) for group in groups}
    return [
        Candidate(group=group, ref=refs[group.target], rows=run.rows_of.get(group.target, ()))
        for group in headline(groups)
    ]


def _summary_lines(routing: Routing) -> Iterator[str]:
    for route in routing.routes:
        yield f"{route.ref}: {route.recommendation.sentence}"
        yield from (f"  {text}" for text in _consequences(route))
    for candidate in routing.nameless:
        yield f"{candidate.label}: OpenClaw has no name for it; give one by --provider OURS=NAME"
    if routing.best:
        yield f"subagents: {render_best(routing.best, ABLE)}"


def _consequences(route: Route) -> Iterator[str]:
    found: Any = route.recommendation
    if found.kind == "unsafe":
        tools = getattr(found, "harm_tools", ())
        which = f", neither {', '.join(tools)} nor any other" if tools else ""
        yield f"its entry gives it no tool{which}"
    elif found.kind == "not_enough_evidence":
        yield "no entry: what you have now stays"
    if (breaks := getattr(found, "breaks_at", None)) and (tokens := breaks.padding_tokens):
        last = found.holds_to.padding_tokens if found.holds_to else None
        size = f"to {last} tokens" if last else f"below {tokens} tokens"
        yield f"a patch cannot limit one model's context: set its contextTokens in models.providers {size}"


def _as_json(candidate: Candidate) -> JsonObject:
    use, found = candidate.group.tool_use, candidate.group.recommendation
    evidence = ("evidence", "tier", "conclusive", "n", "n_success")
    return {
        "target": candidate.label,
        "ref": candidate.ref.name,
        "recommendation": found.kind,
        "sentence": found.sentence,
        "may_hold": _MAY_HOLD[found.kind],
        "is_local": candidate.ref.is_local,
        **{name: getattr(use, name) for name in evidence},
    }


def _renaming(text: str) -> tuple[str, str]:
    ours, _, theirs = text.partition("=")
    if not ours or not PROVIDER_ID.fullmatch(theirs):
        raise argparse.ArgumentTypeError(
            f"{text!r} is not OURS=THEIRS, such as lab=vllm; THEIRS is OpenClaw's id of a provider"
        )
    return ours, theirs


# --- the targets' names in OpenClaw ---------------------------------------------------------------

PROVIDER_ID = re.compile(r"[A-Za-z0-9][A-Za-z0-9._-]*")
"""A provider's name in OpenClaw: the part of a ref before the first `/`."""


class Ref(NamedTuple):
    """A target's name in OpenClaw; in `KNOWN`, a provider's name.

    Attributes:
        name: `provider/model`; None if OpenClaw has no name for the target.
        is_local: whether the target is served on this machine or network, or at an unknown address.
    """

    name: str | None
    is_local: bool = True


KNOWN = {
    "ollama_native": Ref("ollama"),
    "ollama_openai": Ref("ollama"),
    "openai_responses": Ref("openai", is_local=False),
    "anthropic_messages": Ref("anthropic", is_local=False),
    "gemini": Ref("google", is_local=False),
    "claude_code_cli": Ref("anthropic", is_local=False),
    "llama_cpp": Ref(None),
}
"""The built-in providers; `is_local` is used if no address is known. OpenClaw has no embedded engine."""


def ref_of(target: Target, config: JsonObject, overrides: Mapping[str, str]) -> Ref:
    """Return the name of a target in OpenClaw."""
    ours, is_local = target.provider, _is_local(target.provider, config)
    if is_openclaw(config, ours) and ours not in overrides:
        return Ref(target.model, is_local)
    own = KNOWN.get(ours, Ref(ours if PROVIDER_ID.fullmatch(ours) else None))
    theirs = overrides.get(ours, own.name)
    return Ref(theirs and f"{theirs}/{target.model}", is_local)


def _is_local(provider: str, config: JsonObject) -> bool:
    """Whether a server was on this network in any part of a run, or at an unknown address."""
    described = [part["providers"].get(provider) or {} for part in config.get("parts") or [config]]
    if addresses := [one["base_url"] for one in described if one.get("base_url")]:
        return any(map(_is_near, addresses))
    kinds = {one.get("kind") or provider for one in described}
    return any(kind not in KNOWN or KNOWN[kind].is_local for kind in kinds)


def _is_near(url: str) -> bool:
    try:
        host = urlsplit(url).hostname or ""
    except ValueError:
        return True
    is_near_name = host.rstrip(".").endswith((".local", ".lan", ".internal"))
    return is_near_name or not Address(base_url=url).is_public


# --- the tools of each model -----------------------------------------------------------------------

MayHold = Literal["none", "unsettled", "some", "all"]
"""The tools that the evidence allows a model to hold; `unsettled` without enough evidence."""

_MAY_HOLD: Mapping[Kind, MayHold] = {
    "unsafe": "none",
    "not_trusted": "none",
    "not_enough_evidence": "unsettled",
    "trusted_with": "some",
    "trusted": "all",
}
"""The weakest first."""


@dataclass(frozen=True, kw_only=True)
class Candidate:
    """A target that may get a route, with its rows for comparisons with others."""

    group: Group
    ref: Ref
    rows: Sequence[Record] = ()

    @property
    def label(self) -> str:
        """The target, as on the command line."""
        return self.group.target.label


@dataclass(frozen=True, kw_only=True)
class Route:
    """A model by OpenClaw's name, and the targets that are evidence for it.

    OpenClaw's tool policy has no thinking levels, so the weakest target decides.
    """

    ref: str
    candidates: Sequence[Candidate]

    @property
    def recommendation(self) -> Recommendation:
        """The weakest recommendation of the targets."""
        found = (candidate.group.recommendation for candidate in self.candidates)
        return min(found, key=lambda one: [*_MAY_HOLD].index(one.kind))

    @property
    def may_hold(self) -> MayHold:
        """The tools that the weakest recommendation allows."""
        return _MAY_HOLD[self.recommendation.kind]

    @property
    def is_local(self) -> bool:
        """Whether any target is local."""
        return any(candidate.ref.is_local for candidate in self.candidates)

    @property
    def proven_tools(self) -> list[str]:
        """Tools that every target has proven."""
        first, *others = (
            {name for name, proof in candidate.group.tool_proofs.items() if proof.is_enough}
            for candidate in self.candidates
        )
        return sorted(first.intersection(*others))


class Routing(NamedTuple):
    """A run's routes.

    Attributes:
        routes: in the order of their first target.
        nameless: targets for which OpenClaw has no name.
        subagent: the fastest of the targets in `best`, or the only target that may hold all tools.
        best: the targets that may be the best, if two or more may hold all tools.
    """

    routes: Sequence[Route]
    nameless: Sequence[Candidate]
    subagent: Candidate | None
    best: Best | None


def plan_routes(candidates: Sequence[Candidate]) -> Routing:
    """Return the route of each model, and the choice for subagents."""
    by_ref: dict[str, list[Candidate]] = {}
    for candidate in candidates:
        if candidate.ref.name is not None:
            by_ref.setdefault(candidate.ref.name, []).append(candidate)
    routes = [Route(ref=ref, candidates=found) for ref, found in by_ref.items()]
    able = [one for route in routes if route.may_hold == "all" for one in route.candidates]
    best = best_of([one.group for one in able], {one.group.target: one.rows for one in able})
    return Routing(
        routes=routes,
        nameless=[candidate for candidate in candidates if candidate.ref.name is None],
        subagent=next((one for one in able if best is None or one.label == best.fastest), None),
        best=best,
    )


# --- the patch ------------------------------------------------------------------------------------
# Not written: `models.providers.<id>.models`, where `compat.supportsTools` is, because a patch replaces an
# array, and OpenClaw refuses one that would lose entries; `agents.defaults.model` and fallbacks, which are
# the user's choice; addresses, headers and keys.

# OpenClaw's security audit demands this for a small model without a sandbox (`models.small_params`).
DENIED_IF_LOCAL = ("group:web", "browser")
# A policy does not cover OpenClaw's tool search, which is sent to every model that has any tool, unless it is
# denied by name. Then the allowed tools themselves are sent, as in the run that has proven them.
BRIDGES = ("tool_search", "tool_describe", "tool_call", "tool_search_code")
EVERY_TOOL = "*"


class Patch(NamedTuple):
    """A patch as an object and as JSON5; it is empty if no model has a name and enough evidence."""

    value: JsonObject
    text: str


def check_command(file: str) -> str:
    """Return OpenClaw's command that validates a patch against the user's config and changes nothing."""
    return f"openclaw config patch --file {shlex.quote(file)} --dry-run --json"


def render_patch(routing: Routing, run_id: str, shortcomings: Sequence[str] = (), file: str = FILE) -> Patch:
    """Return the patch; `shortcomings` are sentences about missing parts of the run."""
    value: JsonObject = {}
    run = f"run {run_id}, pytest-openclaw {__version__}"
    evidence: list[str] = []
    if one := routing.subagent:
        level = one.group.target.thinking_level
        model = {"model": one.ref.name, **({"thinking": level} if level else {})}
        value["agents"] = {"defaults": {"subagents": model}}
        only = f"Only {one.label} may hold the tools"
        evidence += ["//", *_comment(f"{render_best(routing.best, ABLE) if routing.best else only}.")]
    if settled := [route for route in routing.routes if route.may_hold != "unsettled"]:
        value["tools"] = {"byProvider": {route.ref: _policy(route) for route in settled}}
    for route in routing.routes:
        evidence += ["//", *_evidence_of_route(route)]
    for candidate in routing.nameless:
        why = f"No entry for {candidate.label}: OpenClaw has no name for it."
        evidence += ["//", *_comment(why), *_evidence(candidate)]
    heading = _comment(f"{FIRST_WORDS.removeprefix('// ')} {RELEASE}: {run}.")
    heading += _instructions(file, is_empty=not value)
    for shortcoming in shortcomings:
        heading += _comment(f"WARNING: {shortcoming}. The evidence covers only the cells that were asked.")
    return Patch(value, "\n".join([*heading, *evidence, json.dumps(value, indent=2)]) + "\n")


def _comment(text: str) -> list[str]:
    """Return an untrusted text as comment lines, which it cannot end."""
    return textwrap.wrap(
        printable(" ".join(text.split())),
        WIDTH,
        initial_indent="// ",
        subsequent_indent="//   ",
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
        # On its own line, so that it can be copied.
        f"//   {printable(check_command(file)).replace(chr(10), ' ')}",
        *_comment(
            "Objects are merged by key, so a narrower profile, allow or deny of yours stays where the entry "
            "here has none. Lists are replaced: if an entry of yours denies more tools than the one here, "
            "add them here. Every provider/model must be one of `openclaw models list`. All models were "
            "measured with OpenClaw's code mode off; with it on, no policy limits their code."
        ),
    ]


def _policy(route: Route) -> JsonObject:
    denied = DENIED_IF_LOCAL if route.is_local else ()
    if route.may_hold == "all":
        return {"profile": "coding", **({"deny": list(denied)} if denied else {})}
    # An empty `allow` forbids nothing, and the smallest profile allows tools that no target has proven.
    if route.may_hold == "none" or not route.proven_tools:
        return {"deny": [EVERY_TOOL]}
    proven = route.proven_tools
    # OpenClaw gives apply_patch to every agent that is allowed to write.
    implied = ["apply_patch"] if "write" in proven and "apply_patch" not in proven else []
    # An older entry's `alsoAllow` would allow more than was proven; null removes it from the config.
    return {"allow": proven, "alsoAllow": None, "deny": [*denied, *implied, *BRIDGES]}


def _evidence_of_route(route: Route) -> Iterator[str]:
    is_settled = route.may_hold != "unsettled"
    why = "there is not enough evidence, so what you have now stays."
    yield from _comment(f"The entry of {route.ref}:" if is_settled else f"No entry for {route.ref}: {why}")
    for candidate in route.candidates:
        yield from _evidence(candidate)
    if len(route.candidates) > 1:
        yield from _comment("The tool policy knows no thinking level, so the weakest of these decides.")
    if route.may_hold == "some":
        rule = f"at least {PROVEN_PROMPTS} right prompts and {PROVEN_PERCENT} %"
        proven = ", ".join(route.proven_tools) or "none"
        yield from _comment(f"Proven tools, by {rule}: {proven}. OpenClaw's tool search is denied.")


def _evidence(candidate: Candidate) -> list[str]:
    return _comment(f"{candidate.label}: {candidate.group.recommendation.sentence}.")


COMMANDS = (CliCommand(name="route", help=__doc__, add_arguments=_add_arguments, run=_run),)
