"""Say which model may hold the tools, as a patch of OpenClaw's config.

Writes RUN/openclaw.patch.json5: a tool policy for every model with a
recommendation, the best one for subagents, and the evidence in comments. A
trusted model gets the profile coding, one that is trusted with some tools gets
these, one that is unsafe or not trusted gets none, and one without enough
evidence gets no entry. Your own config is unchanged: the command by which
OpenClaw checks the patch is printed. The patch never contains an address or a
key.

OpenClaw's provider is named after ours (ollama_native is ollama); --provider
sets another name.

Example:
  pytest-openclaw route last
  pytest-openclaw route 20260213_235930 --provider lab=vllm --out -
"""

from __future__ import annotations

import argparse
import ipaddress
import re
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import TYPE_CHECKING
from urllib.parse import urlsplit

from pytest_openclaw import __version__
from pytest_openclaw.cli.result import Command, CommandResult, add_run, in_lines, read_run, write_over_ours
from pytest_openclaw.features.routing.patch import (
    FIRST_WORDS,
    RELEASE,
    Origin,
    check_command,
    render_choice,
    render_fit,
    render_patch,
)
from pytest_openclaw.features.routing.routes import Candidate, plan_routes
from pytest_openclaw.providers.address import is_loopback
from pytest_openclaw.reports.facts import ABLE, render_best
from pytest_openclaw.runs.summaries import summary_of
from pytest_openclaw.stats.groups import group_records
from pytest_openclaw.util.errors import OpenClawError
from pytest_openclaw.values.requests import OPENCLAW_ITSELF, most_realistic

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

    from pytest_openclaw.features.routing.routes import PlaceChoice, Route, Routing
    from pytest_openclaw.runs.reading import StoredRun
    from pytest_openclaw.stats.groups import Group
    from pytest_openclaw.util.json_types import JsonObject
    from pytest_openclaw.values.requests import Target

FILE = "openclaw.patch.json5"
STDOUT = "-"


def _add_arguments(parser: argparse.ArgumentParser) -> None:
    add_run(parser)
    parser.add_argument(
        "--out", metavar="FILE", help=f"the patch (RUN/{FILE}); - prints it and writes nothing"
    )
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
    origin = Origin(
        run_id=run.run_id,
        version=__version__,
        shortcomings=tuple(run.shortcomings),
    )
    out = None if arguments.out == STDOUT else Path(arguments.out or run.path / FILE)
    patch = render_patch(routing, origin, out.name if out else FILE)
    warnings = [*run.shortcomings]
    check = check_command(str(out), stdin=out is None) if patch.value else None
    if check is None:
        warnings.append("nothing to apply: no model that OpenClaw has a name for has enough evidence")
    if out:
        write_over_ours(out, patch.text, FIRST_WORDS, "patch")
    check_lines = [f"check it: {check}"] if check else []
    return CommandResult(
        lines=[*_entry_lines(routing, out), *check_lines] if out else patch.text.splitlines(),
        data={
            "run": run.name,
            "release": RELEASE,
            "out": str(out) if out else None,
            "check": check,
            "patch": patch.value,
            "targets": [_as_json(candidate) for candidate in candidates],
            "places": [_place_as_json(choice) for choice in routing.choices],
            "notes": warnings,
        },
        warnings=warnings,
    )


def _candidates(run: StoredRun, overrides: Mapping[str, str]) -> list[Candidate]:
    check_overrides(overrides, run.n_selected)
    groups = summary_of(run).groups
    if not any(group.tool_use.evidence == "native" or group.roles for group in groups):
        raise OpenClawError(
            f"{run.name} has no native tool evidence: no answered cell offered tools on the wire, and what "
            "is only written in a text grants none. Ask a suite whose prompts have `tools`, such as "
            "benchmarks/prompts_native.toml."
        )
    rows = group_records(row.record for row in run.rows.values())
    candidates = []
    realistic = most_realistic(run.n_selected)
    for group in (group for group in groups if group.target in realistic):
        ref = ref_of(group.target, run.config, overrides)
        # Roles without tools are asked on `listed` alone, whatever the surface of the others.
        same = [group, *(one for one in groups if one is not group and _is_same(one, group))]
        roles = {result.role: (result, one) for one in reversed(same) for result in one.roles}
        of_roles = [
            row
            for role, (_, one) in roles.items()
            if one is not group
            for row in rows.get(one.target, [])
            if row.role == role
        ]
        candidates.append(
            Candidate(
                group=group,
                ref=ref.name,
                is_local=ref.is_local,
                rank=ref.rank,
                remarks=ref.remarks,
                rows=[*rows.get(group.target, []), *of_roles],
                roles={role: result for role, (result, _) in roles.items()},
            )
        )
    return candidates


def _is_same(one: Group, other: Group) -> bool:
    """Whether two groups are of one model at one level, asked on two surfaces."""
    return one.target.on(other.target.surface) == other.target


def _entry_lines(routing: Routing, out: Path) -> Iterator[str]:
    for route in routing.routes:
        yield from in_lines(f"{route.ref}: {route.recommendation.sentence}")
        yield from (f"  {line}" for text in _consequences(route) for line in in_lines(text))
    for candidate in routing.nameless:
        yield f"{candidate.label}: OpenClaw has no name for it, no entry"
    if routing.best:
        yield from in_lines(f"subagents: {render_best(routing.best, ABLE)}")
    for choice in routing.choices:
        yield from in_lines(f"{choice.place.name}: {render_choice(choice)}")
        yield from (line for one in choice.fit for line in in_lines(f"  {render_fit(one, choice)}"))
    yield ""
    yield f"wrote {out}"


def _consequences(route: Route) -> Iterator[str]:
    """Yield consequences for the entry, and settings that a patch cannot make."""
    found = route.recommendation
    if found.kind == "unsafe":
        which = f", neither {', '.join(found.harm_tools)} nor any other" if found.harm_tools else ""
        yield f"its entry gives it no tool{which}"
    elif found.kind == "not_enough_evidence":
        yield "no entry: what you have now stays"
    elif route.role == "some" and route.proven_tools != [*found.tools]:
        yield f"its other targets count too; its entry allows {', '.join(route.proven_tools) or 'no tool'}"
    if found.breaks_at and (tokens := found.breaks_at.padding_tokens):
        last = found.holds_to.padding_tokens if found.holds_to else None
        size = f"to {last} tokens" if last else f"below {tokens} tokens"
        yield f"a patch cannot limit one model's context: set its contextTokens in models.providers {size}"


def _as_json(candidate: Candidate) -> JsonObject:
    use = candidate.group.tool_use
    return {
        "target": candidate.label,
        "ref": candidate.ref,
        "recommendation": candidate.group.recommendation.kind,
        "sentence": candidate.group.recommendation.sentence,
        "may_hold": candidate.role,
        "is_local": candidate.is_local,
        "evidence": use.evidence,
        "tier": use.tier,
        "conclusive": use.conclusive,
        "n": use.n,
        "n_success": use.n_success,
        "roles": {role: asdict(result) for role, result in candidate.roles.items()},
    }


def _place_as_json(choice: PlaceChoice) -> JsonObject:
    return {
        "place": choice.place.name,
        "roles": list(choice.place.roles),
        "ref": choice.ref,
        "why_none": choice.why_none or None,
        "fit": [one.label for one in choice.fit],
        "not_shown_to_be_worse": list(choice.best.targets) if choice.best else None,
    }


def _renaming(text: str) -> tuple[str, str]:
    ours, _, theirs = text.partition("=")
    if not ours or not PROVIDER_ID.fullmatch(theirs):
        raise argparse.ArgumentTypeError(
            f"{text!r} is no OURS=THEIRS, such as lab=vllm; THEIRS is OpenClaw's id of a provider"
        )
    return ours, theirs


# --- the targets' names in OpenClaw ---------------------------------------------------------------

OPENCLAW_PROVIDERS = {
    "ollama_native": "ollama",
    "ollama_openai": "ollama",
    "openai_responses": "openai",
    "anthropic_messages": "anthropic",
    "gemini": "google",
    "claude_code_cli": "anthropic",
}
PROVIDER_ID = re.compile(r"[A-Za-z0-9][A-Za-z0-9._-]*")
"""A provider's name in OpenClaw, which ends before the first `/` of a ref."""
ELSEWHERE = frozenset({"openai_responses", "anthropic_messages", "gemini", "claude_code_cli"})
"""Kinds that are not local if no address is known."""
_REMARKS = {
    "ollama_openai": "it was asked at /v1, and OpenClaw asks Ollama at /api/chat: ask ollama_native too; if "
    "this is no Ollama, name OpenClaw's provider by --provider ollama_openai=NAME",
    "claude_code_cli": "it was asked through the Claude CLI; run by OpenClaw through that CLI, the CLI's own "
    "tools ignore the policies of OpenClaw",
    "llama_cpp": "the embedded engine is no provider of OpenClaw; if one of its own serves this model, name "
    "it by --provider llama_cpp=NAME",
}


@dataclass(frozen=True, kw_only=True)
class Ref:
    """A target's name in OpenClaw.

    Attributes:
        name: `provider/model`; None if there is none.
        is_local: whether it is served on this machine or network, or at an unknown place.
        rank: 1 if OpenClaw reaches this provider in another way, else 0.
        remarks: what to check about the name.
    """

    name: str | None
    is_local: bool
    rank: int = 0
    remarks: tuple[str, ...] = ()


def check_overrides(overrides: Mapping[str, str], targets: Mapping[Target, object]) -> None:
    """Reject a name for a provider that the run has not used.

    Raises:
        OpenClawError: there is such a name; the message lists the run's providers.
    """
    asked = sorted({target.provider for target in targets})
    for ours, theirs in overrides.items():
        if ours not in asked:
            known = ", ".join(asked)
            raise OpenClawError(f"--provider {ours}={theirs}: the run has no provider {ours}; it has {known}")


def ref_of(target: Target, config: JsonObject, overrides: Mapping[str, str]) -> Ref:
    """Return the name of a target."""
    ours = target.provider
    is_local = _is_local(ours, config)
    if ours in overrides:
        return Ref(name=f"{overrides[ours]}/{target.model}", is_local=is_local, rank=_rank(ours))
    if ours == OPENCLAW_ITSELF:
        return Ref(name=target.model, is_local=is_local, rank=_rank(ours))
    remarks = (_REMARKS[ours],) if ours in _REMARKS else ()
    if theirs := OPENCLAW_PROVIDERS.get(ours):
        name = f"{theirs}/{target.model}"
        return Ref(name=name, is_local=is_local, rank=_rank(ours), remarks=remarks)
    if remarks:
        return Ref(name=None, is_local=is_local, remarks=remarks)
    if not PROVIDER_ID.fullmatch(ours):
        remark = f"{ours} can be no provider's name there; give one by --provider {ours}=NAME"
        return Ref(name=None, is_local=is_local, remarks=(remark,))
    remark = (
        f"{ours} is the name in this run; if OpenClaw's provider has another, give --provider {ours}=NAME"
    )
    return Ref(name=f"{ours}/{target.model}", is_local=is_local, remarks=(remark,))


def _rank(provider: str) -> int:
    return int(provider in ("ollama_openai", "claude_code_cli"))


def _is_local(provider: str, config: JsonObject) -> bool:
    described = list(_described(provider, config))
    addresses = [url for one in described if isinstance(url := one.get("base_url"), str)]
    if addresses:
        return any(map(_is_near, addresses))
    kinds = {one.get("kind") or provider for one in described} or {provider}
    return not kinds <= ELSEWHERE


def _described(provider: str, config: JsonObject) -> Iterator[JsonObject]:
    """Yield a run's settings of a provider; of a merged run, those of each run."""
    for one in config.get("parts") or (config,):
        found = one["providers"].get(provider)
        if isinstance(found, dict):
            yield found


def _is_near(url: str) -> bool:
    try:
        host = urlsplit(url).hostname or ""
    except ValueError:
        return True
    try:
        return is_loopback(host) or ipaddress.ip_address(host.partition("%")[0]).is_private
    except ValueError:  # a host name: without a dot, or of the local network, it is local
        return "." not in host.rstrip(".") or host.rstrip(".").endswith((".local", ".lan", ".internal"))


COMMANDS = (Command(name="route", help=__doc__, add_arguments=_add_arguments, run=_run),)
