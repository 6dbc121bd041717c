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
import re
from dataclasses import asdict
from pathlib import Path
from typing import TYPE_CHECKING, NamedTuple
from urllib.parse import urlsplit

from pytest_openclaw.cli.result import Command, CommandResult, add_run, in_lines, read_run, write_over_ours
from pytest_openclaw.features.routing.patch import (
    FIRST_WORDS,
    RELEASE,
    check_command,
    render_choice,
    render_fit,
    render_patch,
)
from pytest_openclaw.features.routing.routes import Candidate, Ref, plan_routes
from pytest_openclaw.providers.address import Address
from pytest_openclaw.reports.facts import ABLE, render_best
from pytest_openclaw.runs.summaries import summary_of
from pytest_openclaw.stats.groups import group_records
from pytest_openclaw.util.errors import OpenClawError
from pytest_openclaw.values.requests import OPENCLAW_ITSELF, most_realistic

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

    from pytest_openclaw.features.routing.routes import PlaceChoice, Route, Routing
    from pytest_openclaw.runs.reading import StoredRun
    from pytest_openclaw.util.files import JsonObject
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
    out = None if arguments.out == STDOUT else Path(arguments.out or run.path / FILE)
    patch = render_patch(routing, run.run_id, run.shortcomings, out.name if out else FILE)
    notes = [*run.shortcomings]
    check = None
    if patch.value:
        check = check_command(str(out) if out else None)
    else:
        notes.append("nothing to apply: no model that OpenClaw has a name for has enough evidence")
    if out:
        write_over_ours(out, patch.text, FIRST_WORDS, "patch")
        lines = [*_entry_lines(routing), "", f"wrote {out}", *([f"check it: {check}"] if check else [])]
    else:
        lines = patch.text.splitlines()
    return CommandResult(
        lines=lines,
        data={
            "run": run.name,
            "release": RELEASE,
            "out": str(out) if out else None,
            "check": check,
            "patch": patch.value,
            "targets": [_as_json(candidate) for candidate in candidates],
            "places": [_place_as_json(choice) for choice in routing.choices],
            "notes": notes,
        },
        warnings=notes,
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
    realistic = most_realistic(run.n_selected)
    candidates = []
    for group in (group for group in groups if group.target in realistic):
        # Roles without tools are asked only on `listed`, on whichever surface the other prompts are.
        same = [one for one in groups if one.target.on(group.target.surface) == group.target]
        same.sort(key=lambda one: one is group)
        source = {result.role: one.target for one in same for result in one.roles}
        candidates.append(
            Candidate(
                group=group,
                ref=ref_of(group.target, run.config, overrides),
                rows=[
                    row
                    for one in same
                    for row in rows.get(one.target, [])
                    if one is group or (row.role and source.get(row.role) == one.target)
                ],
                roles={result.role: result for one in same for result in one.roles},
            )
        )
    return candidates


def _entry_lines(routing: Routing) -> Iterator[str]:
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
        "ref": candidate.ref.name,
        "recommendation": candidate.group.recommendation.kind,
        "sentence": candidate.group.recommendation.sentence,
        "may_hold": candidate.role,
        "is_local": candidate.ref.is_local,
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

PROVIDER_ID = re.compile(r"[A-Za-z0-9][A-Za-z0-9._-]*")
"""A provider's name in OpenClaw, which ends before the first `/` of a ref."""


class Known(NamedTuple):
    """One of the built-in providers: the first fields are those of `Ref`.

    `is_local` is whether its servers are local if no address is known.
    """

    name: str | None
    is_local: bool = False
    is_detour: bool = False
    remark: str = ""


KNOWN = {
    "ollama_native": Known("ollama", is_local=True),
    "ollama_openai": Known(
        "ollama",
        is_local=True,
        is_detour=True,
        remark="it was asked at /v1, and OpenClaw asks Ollama at /api/chat: ask ollama_native too; if "
        "this server is not an Ollama, name OpenClaw's provider by --provider ollama_openai=NAME",
    ),
    "openai_responses": Known("openai"),
    "anthropic_messages": Known("anthropic"),
    "gemini": Known("google"),
    "claude_code_cli": Known(
        "anthropic",
        is_detour=True,
        remark="it was asked through the Claude CLI; run by OpenClaw through that CLI, the CLI's own "
        "tools ignore the policies of OpenClaw",
    ),
    "llama_cpp": Known(
        None,
        is_local=True,
        remark="OpenClaw has no provider for the embedded engine; if one of its own serves this model, name "
        "it by --provider llama_cpp=NAME",
    ),
}


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
    ours, is_local = target.provider, _is_local(target.provider, config)
    known = KNOWN.get(ours)
    is_detour = known is not None and known.is_detour
    if ours in overrides:
        return Ref(f"{overrides[ours]}/{target.model}", is_local, is_detour)
    if ours == OPENCLAW_ITSELF:
        return Ref(target.model, is_local)
    if known is not None:
        return Ref(known.name and f"{known.name}/{target.model}", is_local, is_detour, known.remark)
    if not PROVIDER_ID.fullmatch(ours):
        remark = f"{ours} can be no provider's name there; give one by --provider {ours}=NAME"
        return Ref(None, is_local, remark=remark)
    remark = (
        f"{ours} is the name in this run; if OpenClaw's provider has another, give --provider {ours}=NAME"
    )
    return Ref(f"{ours}/{target.model}", is_local, remark=remark)


def _is_local(provider: str, config: JsonObject) -> bool:
    """Whether a server is near by in any part of a run, or at an unknown place."""
    described = [part["providers"].get(provider) or {} for part in config.get("parts") or [config]]
    addresses = [one["base_url"] for one in described if one.get("base_url")]
    kinds = {one.get("kind") or provider for one in described}
    unknown = any(kind not in KNOWN or KNOWN[kind].is_local for kind in kinds)
    return any(map(_is_near, addresses)) if addresses else unknown


def _is_near(url: str) -> bool:
    try:
        host = urlsplit(url).hostname or ""
    except ValueError:
        return True
    is_near_name = host.rstrip(".").endswith((".local", ".lan", ".internal"))
    return is_near_name or not Address(base_url=url).is_public


COMMANDS = (Command(name="route", help=__doc__, add_arguments=_add_arguments, run=_run),)
