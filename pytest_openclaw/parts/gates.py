"""Apply gates to a stored run, for example one that was merged from shards.

Without gates on the command line, the run's own gates apply. An option changes
a gate for every target, and `off` switches it off; --gates takes a line of the
ini key openclaw_gates, which changes gates for some targets. Each gate is shown
on a line with its reason.

With --write, summary.json and the reports, such as summary.md, are rewritten
with the gates and the comparison; the rows are unchanged.

Exit status: 0 passed, 1 failed, 10 no verdict (as in pytest; never a pass), 4
error.

Example:
  pytest-openclaw gate last --min-pass-rate 0.9 --require-tier 1
  pytest-openclaw gate last --require-safe
  pytest-openclaw gate last --baseline main --fail-on regression
  pytest-openclaw gate whole --gates "*qwen*: max-p95-ms=5000"
"""

# Cells without an answer are counted both ways, because a fault is neither a miss nor a success. A gate fails
# only if it would also fail with all of them right. It passes only if it would also pass with all of them
# wrong, and if each cell was asked and available. Otherwise, and if too few prompts decide, the gate has no
# verdict, which is never a pass. If a whole interval has to reach a limit, an interval that contains it
# leaves the gate open.

from __future__ import annotations

import argparse
import operator
from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass, field, replace
from functools import cache, partial, reduce
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, Literal, NotRequired, TypedDict

from msgspec import Meta

from pytest_openclaw import options
from pytest_openclaw.cli.project import plugins_of
from pytest_openclaw.cli.result import (
    CliCommand,
    CommandResult,
    add_rootdir,
    add_run,
    held_by,
    or_argument_error,
    read_run,
)
from pytest_openclaw.conclusions.summary import Group, Summary, to_json
from pytest_openclaw.reports.blocks import SummaryFinding
from pytest_openclaw.reports.facts import CHANGES, RULINGS, findings_of_parts
from pytest_openclaw.reports.terminal import LABEL_WIDTH
from pytest_openclaw.runs.directory import SUMMARY, RunDirectory
from pytest_openclaw.runs.reading import StoredRun
from pytest_openclaw.runs.summaries import summary_of
from pytest_openclaw.session.settings import lines_of
from pytest_openclaw.stats.intervals import (
    Interval,
    Rate,
    cut_percent,
    has_passed,
    is_judged,
    percent_range,
    percentile,
    rate_of,
    whole_percent,
)
from pytest_openclaw.stats.tool_use import MOST_NEEDLESS, TIER_FLOORS, tool_use_of
from pytest_openclaw.util.errors import OpenClawError
from pytest_openclaw.util.files import JsonObject
from pytest_openclaw.util.signals import epoch_ms
from pytest_openclaw.util.text import closest
from pytest_openclaw.util.typed import PositiveAmount, converted, shown
from pytest_openclaw.values.faults import BUDGET_SPENT
from pytest_openclaw.values.parts import Checked, Gate, Part, PartKey, called, parts
from pytest_openclaw.values.prompts import Labels
from pytest_openclaw.values.requests import label_fits
from pytest_openclaw.values.rows import Record
from pytest_openclaw.values.run_files import MeasuredRun, RunEntry
from pytest_openclaw.values.settings import Rule, Settings
from pytest_openclaw.values.tool_calls import ToolDemand, ToolOutcome

if TYPE_CHECKING:
    import pytest

    from pytest_openclaw.session.reporting import SessionEnd

Share = Annotated[float, Meta(ge=0, le=1)]
Tier = Annotated[int, Meta(ge=1, le=3)]
Ruling = Literal["passed", "failed", "no_verdict"]
Verdict = Literal["passed", "failed", "no_verdict", "not_gated"]
STATUS: Mapping[str, int] = {"passed": 0, "failed": 1, "no_verdict": 10}
_LABELS: Mapping[Ruling, str] = {
    "failed": "gate FAILED",
    "no_verdict": "gate NO VERDICT",
    "passed": "gate passed",
}
"""Labels of rulings, in the order in which they are shown; the first one is the verdict."""
WORDS = {
    "passed": "gates passed",
    "failed": "gates failed",
    "no_verdict": "no verdict",
    "not_gated": "no gate was set",
}
_FOR_EXAMPLE = "for example --min-pass-rate 0.9, or --baseline RUN --fail-on regression"
NEVER_MS = 10**12
"""Slower than any answer; a number, so that percentiles may be taken."""
NOT_CONCLUSIVE = "not conclusive: "
JUDGED_CELLS, TOOL_CELLS = "judged cells passed", "tool cells succeeded"


# --- the gates that are set -------------------------------------------------------------------------


@cache
def known_gates() -> Mapping[str, Gate]:
    """Return the gates of all parts by their fields, in their order; `conclusive` changes the others."""
    found = {field: gate for part in parts().values() for field, gate in part.gates.items()}
    return dict(sorted(found.items(), key=lambda pair: pair[1].rank))


@dataclass(frozen=True, kw_only=True)
class GateLine:
    """Gates for some targets: an ini line `glob: min-pass-rate=0.9 require-tier=off`.

    Attributes:
        target: a glob over labels; case does not matter.
        changes: fields of gates and their values for these targets; None switches a gate off.
    """

    target: str
    changes: Mapping[str, Any]

    def __post_init__(self) -> None:
        """Reject changes that a hand-written `config.json` may have."""
        if unknown := self.changes.keys() - known_gates().keys():
            raise ValueError(f"has unknown gates: {', '.join(sorted(unknown))}.")
        converted(dict(self.changes), _gates_entry())


@dataclass(frozen=True, kw_only=True)
class GateSettings:
    """The requirements on each target.

    Attributes:
        limits: by the field of the gate, in their order; None, or no entry, requires nothing.
        by_target: gates for some targets; a later line has precedence.
    """

    limits: Mapping[str, Any] = field(default_factory=dict)
    by_target: tuple[GateLine, ...] = ()

    def __post_init__(self) -> None:
        found = {name: gate.read(self.limits.get(name)) for name, gate in known_gates().items()}
        found = {name: limit for name, limit in found.items() if limit is not None}
        object.__setattr__(self, "limits", found)

    @classmethod
    def of(cls, *, by_target: Sequence[GateLine] = (), **limits: Any) -> GateSettings:
        """Return gates with these limits."""
        return cls(limits=limits, by_target=tuple(by_target))

    @property
    def of_any_target(self) -> dict[str, Any]:
        """The limits that are set for any target."""
        limits = (self.limits, *(line.changes for line in self.by_target))
        return {name: limit for one in limits for name, limit in one.items() if limit is not None}

    def of_target(self, label: str) -> GateSettings:
        """Return the gates that apply to one target."""
        lines = (line.changes for line in self.by_target if label_fits(label, line.target))
        return GateSettings.of(**reduce(operator.or_, lines, {**self.limits}))

    def firm(self, changes: Mapping[str, Any]) -> GateSettings:
        """Return the gates with other limits, which override every line for a target."""
        lines = (
            replace(
                line, changes={name: limit for name, limit in line.changes.items() if name not in changes}
            )
            for line in self.by_target
        )
        return GateSettings.of(**{**self.limits, **changes}, by_target=tuple(lines))

    def to_json(self) -> JsonObject:
        """Return the gates as in `config.json`."""
        off = {name: False if gate.kind is bool else None for name, gate in known_gates().items()}
        return {**off, **self.limits, "by_target": [asdict(one) for one in self.by_target]}


@cache
def _gates_entry() -> type:
    entry: Any = {
        name: NotRequired[gate.kind if gate.kind is bool else gate.kind | None]
        for name, gate in known_gates().items()
    }
    make: Any = TypedDict
    made = make("Gates", entry | {"by_target": NotRequired[tuple[GateLine, ...]]})
    about = {name: gate.about for name, gate in known_gates().items()}
    about["by_target"] = "gates for some targets; a later line has precedence."
    lines = (f"    {name}: {text}" for name, text in about.items())
    made.__doc__ = "\n".join(
        ("The requirements on each target; None requires nothing.\n\nAttributes:", *lines)
    )
    return made  # type: ignore[no-any-return]


def gates_of(config: JsonObject) -> GateSettings | None:
    """Return the gates of a `config.json`; None if the run was merged from runs with different gates."""
    values = config.get("gates")
    return None if values is None else GateSettings.of(**converted(values, _gates_entry()))


def parse_gate_line(line: str) -> GateLine:
    """Parse a line of `openclaw_gates`.

    Raises:
        ValueError: the line is malformed; the message has a hint.
    """
    form = "Write for example `ollama_openai/*: min-pass-rate=0.9 require-tier=off`."
    target, _, rest = (part.strip() for part in line.rpartition(":"))
    # Gates have the names of their fields here: `openclaw_gates` would repeat the `gate-` of an option.
    parsers = {
        name.replace("_", "-"): options.by_name()[gate.option].parse or options.on_off
        for name, gate in known_gates().items()
    }
    changes: dict[str, Any] = {}
    for word in rest.split():
        name, _, text = word.partition("=")
        changed = name.replace("-", "_")
        if name not in parsers:
            known = f"there are {', '.join(parsers)}.{closest(name, parsers)}"
            raise ValueError(f"{target}: {shown(word)} is not a gate; {known} {form}")
        if changed in changes:
            raise ValueError(f"{target}: {shown(word)} is set twice. {form}")
        try:
            changes[changed] = parsers[name](text)
        except ValueError as error:
            raise ValueError(f"{target}: {word}: {error}") from None
    if not changes or not target or " " in target:
        raise ValueError(f"{shown(line.strip())} is not a glob of targets, a colon and gates. {form}")
    return GateLine(target=target, changes=changes)


# --- the rulings ------------------------------------------------------------------------------------


@dataclass(frozen=True, kw_only=True)
class GateResult:
    """One gate on one target; `no_verdict` is never a pass.

    Attributes:
        found: as measured, over the cells that were answered; for `require-safe` the probes that did harm,
            for `fail-on-regression` the p of the loss, which fails if it is below `wanted`.
    """

    gate: str
    target: str
    wanted: float
    found: float | None
    ruling: Ruling
    reason: str

    @property
    def asked(self) -> str:
        """The gate and its limit: `min-pass-rate 0.9`; some gates have no limit."""
        usual = {gate.name or gate.option: gate.usual for gate in known_gates().values()}
        return self.gate if usual.get(self.gate) == self.wanted else f"{self.gate} {self.wanted:.10g}"


def _rulings(summary: Summary, run: MeasuredRun) -> tuple[GateResult, ...]:
    gates = gates_of(run.config) or GateSettings()
    return tuple(one for group in summary.groups for one in _rule(gates, group, summary, run))


def _verdict(summary: Any, _: MeasuredRun) -> Verdict:
    rulings = {result.ruling for result in summary.gates}
    return next((ruling for ruling in _LABELS if ruling in rulings), "not_gated")


def _unmatched(_: Summary, run: MeasuredRun) -> tuple[str, ...]:
    globs = [line.target for line in (gates_of(run.config) or GateSettings()).by_target]
    labels = [target.label for target in run.n_selected]
    return tuple(glob for glob in globs if not any(label_fits(label, glob) for label in labels))


def _rule(gates: GateSettings, group: Group, summary: Summary, run: MeasuredRun) -> Iterator[GateResult]:
    label = group.target.label
    limits = {**gates.of_target(label).limits}
    is_conclusive = limits.pop("conclusive", False)
    rows = run.rows_of.get(group.target, ())
    n_missing = max(0, run.n_selected.get(group.target, 0) - len(rows))
    n_lost = sum(row.availability_status != "ok" for row in rows) + n_missing
    n_unpaid = group.failures.get(BUDGET_SPENT, 0)
    # No gate can pass with the first two of these.
    counts = {
        "were unavailable": group.n_skipped_unavailable - n_unpaid,
        "were not asked": n_missing + n_unpaid,
        "have no answer": n_lost,
    }
    reasons = {what: f"{n} of {len(rows) + n_missing} cells {what}" for what, n in counts.items() if n}
    gap = reasons.get("were unavailable") or reasons.get("were not asked")
    # The rows, and the rows as if all unanswered cells were right, or wrong.
    cases = [rows, *(_as_if(rows, n_missing, well) for well in (True, False) if n_lost)]
    for name, limit in limits.items():
        gate = known_gates()[name]
        result = partial(GateResult, gate=gate.name or gate.option, target=label)
        if gate.rule:
            yield result(**gate.rule(label, summary, gap))
            continue
        assert gate.check, "a gate has one of them"
        found, *extremes = (gate.check(group, case, limit, is_conclusive) for case in cases)
        states = {found.state, *(extreme.state for extreme in extremes)}
        ruling: Ruling = "no_verdict"
        reason = found.text
        if found.state is None:
            reason = _nothing(group, found.text)
        elif states == {"fails"} and n_missing <= (_MOST_MISSING if gate.is_final else 0):
            ruling = "failed"
        elif states == {"passes"} and not gap:
            ruling = "passed"
        elif reasons:
            reason += f", but {next(iter(reasons.values()))}"
        yield result(wanted=limit, found=found.found, ruling=ruling, reason=reason)


#: cells without a row that are judged; a foreign run may claim more, and no gate has a verdict then
_MOST_MISSING = 10_000
_OUTCOMES: Mapping[ToolDemand | None, Mapping[bool, ToolOutcome]] = {
    "call": {True: "valid", False: "no_call"},
    "restraint": {True: "restrained", False: "called_needlessly"},
}


def _as_if(rows: Sequence[Record], n_missing: int, well: bool) -> list[Record]:
    """Return the rows with an answer, and the other cells as if they had ended well, or wrong."""
    lost = [row for row in rows if row.availability_status != "ok"]
    if rows:  # a cell without a row is of a separate prompt, and demands nothing of tools
        plain = replace(rows[0], suite="", **asdict(Labels()), tool_demand=None, tools_offered=None)
        lost += [replace(plain, prompt_id=str(number)) for number in range(min(n_missing, _MOST_MISSING))]
    outcomes = [_OUTCOMES.get(row.tool_demand, {}).get(well) for row in lost]
    return _answers(rows) + [
        replace(
            row,
            availability_status="ok",
            success=True,
            failure_type=None,
            tool_outcome=outcome,
            tool_use_success=outcome == "valid",
            objective_pass=well,
            # Harm that was done before a fault remains.
            harm=None if row.probe is None else not well or row.harm is True,
            e2e_ms=0 if well else NEVER_MS,
        )
        for row, outcome in zip(lost, outcomes, strict=True)
    ]


def _nothing(group: Group, what: str) -> str:
    if group.n_ok == 0:
        reason = next(iter(group.reasons.values()), "no cell was answered")
        return f"nothing was answered: {reason}"
    # "0 tool cells succeeded" would read as if some had not.
    return f"no answered cell counts for it (0 {what.removesuffix(' passed').removesuffix(' succeeded')})"


# --- figures and limits -----------------------------------------------------------------------------


def _use_of(group: Group, rows: Sequence[Record]) -> Any:
    return tool_use_of(_answers(rows), group.tool_use.n_targets, group.tool_use.looks)


def _answers(rows: Sequence[Record]) -> list[Record]:
    return [row for row in rows if row.availability_status == "ok"]


def _check_passed(_: Group, rows: Sequence[Record], limit: float, is_conclusive: bool) -> Checked:
    rate = rate_of(filter(is_judged, rows), has_passed)
    return _check_rate(rate, JUDGED_CELLS, limit, rate.interval_95 if is_conclusive else None)


def _check_tool_rate(group: Group, rows: Sequence[Record], limit: float, is_conclusive: bool) -> Checked:
    use = _use_of(group, rows)
    return _check_rate(use, TOOL_CELLS, limit, use.interval_95 if is_conclusive else None)


def _check_rate(rate: Rate, what: str, limit: float, interval: Interval | None, joint: str = "") -> Checked:
    """Compare a rate with a limit, which its whole interval must reach if there is one."""
    if rate.rate is None:
        return Checked(None, what)
    low, high = (interval.low, interval.high) if interval else (rate.rate, rate.rate)
    shown_rate = f"95 % interval {percent_range(interval)}{joint}" if interval else cut_percent(rate.rate)
    end = "a lower end of " if interval else ""
    text = f"{rate.n_success} of {rate.n} {what} ({shown_rate}), {end}{whole_percent(limit)} wanted"
    if low < limit <= high:
        return Checked("open", f"{NOT_CONCLUSIVE}{text}", rate.rate)
    return Checked("passes" if low >= limit else "fails", text, rate.rate)


def _check_tier(group: Group, rows: Sequence[Record], limit: int, _: bool) -> Checked:
    """Compare tool use with a tier; the evidence must exclude every worse tier, or every better one."""
    use = _use_of(group, rows)
    if use.tier is None:
        return Checked(None, TOOL_CELLS)
    joint = f", for {use.joint_over} together" if use.joint_over else ""
    state, text, _found = _check_rate(use, TOOL_CELLS, TIER_FLOORS[limit], use.tier_interval, joint)
    if use.tier > limit and use.capped_by and use.needless_interval:
        # Needless calls keep the target out of the tier that its rate would earn.
        needless = f"{use.needless.n_success} of {use.restraint.n} cells that forbid tools had a call"
        text = f"tier {use.tier}: {needless}, more than a fifth"
        if state != "fails" and use.needless_interval.low <= MOST_NEEDLESS:
            return Checked("open", f"{NOT_CONCLUSIVE}{text}", use.tier)
        return Checked("fails", text, use.tier)
    return Checked(state, text if state == "open" else f"tier {use.tier}: {text}", use.tier)


def _check_p95(_: Group, rows: Sequence[Record], limit: float, _sure: bool) -> Checked:
    times = [row.e2e_ms for row in _answers(rows) if row.success]
    if not times:
        return Checked(None, "successful cells")
    p95 = percentile(times, 95)
    # Rounded as everywhere, unless it would seem to meet a limit that it misses.
    exact = f"{p95:.1f}" if round(p95) <= limit < p95 else f"{p95:.0f}"
    text = f"p95 {exact} ms of {len(times)} successful cells, at most {limit:.10g} ms wanted"
    return Checked("passes" if p95 <= limit else "fails", text, p95)


# --- the part in a run ------------------------------------------------------------------------------


def _gates_given(config: pytest.Config, given: Mapping[str, Any]) -> GateSettings:
    limits = {name: given.get(gate.option) for name, gate in known_gates().items()}
    gates = GateSettings.of(**limits, by_target=lines_of(config, "gates", parse_gate_line))
    return gates.firm(_chosen(gates, options.options_given(config)))


def _resumed(config: JsonObject, settings: Any, given: Collection[str]) -> dict[str, Any]:
    recorded = gates_of(config)
    return {} if recorded is None else {"gates": recorded.firm(_chosen(settings.gates, given))}


def _chosen(gates: GateSettings, given: Collection[str]) -> dict[str, Any]:
    """Return the limits of the options on the command line, whose names are `given`."""
    return {name: gates.limits.get(name) for name, gate in known_gates().items() if gate.option in given}


def _findings(summary: Any) -> Iterator[tuple[int, SummaryFinding]]:
    for ruling, label in _LABELS.items():
        together: dict[tuple[str, str], list[str]] = {}
        for gate in summary.gates:
            if gate.ruling == ruling:
                together.setdefault((gate.target, gate.reason), []).append(gate.asked)
        for (target, reason), gates in together.items():
            yield RULINGS, SummaryFinding(label=label, text=f"{', '.join(gates)}, {target}: {reason}")
    for glob in summary.unmatched_gates:
        text = f"openclaw_gates: {glob} fits none of this run"
        yield RULINGS, SummaryFinding(label="no such target", text=text)


def _annotations(summary: Any) -> Iterator[tuple[str, str]]:
    for gate in summary.gates:
        if gate.ruling != "passed":
            yield f"{gate.gate}, {gate.target}: {gate.ruling.replace('_', ' ')}", gate.reason


def _status(ended: SessionEnd) -> int | None:
    rulings: Any = ended.summary
    settings: Any = ended.settings
    if rulings.verdict in ("failed", "no_verdict"):
        return STATUS[rulings.verdict]
    if settings.verdict == "gate" and ended.is_answered:
        # A passed gate has counted its target's faults as failed cells.
        gated = {gate.target for gate in rulings.gates}
        forgiven = sum(n for target, n in ended.n_faults_failed.items() if target in gated)
        return int(ended.n_failed > ended.n_verdicts_failed + forgiven)
    return None


_KEPT = Rule("kept", "free")
PART = Part(
    keys={
        Settings: {
            "gates": PartKey(GateSettings, of=_gates_given, default=field(default_factory=GateSettings)),
            "verdict": PartKey(str, default="cells"),
        },
        RunEntry: {
            "verdict": PartKey(NotRequired[Literal["cells", "gate"] | None], place="<shard", rule=_KEPT),
            "gates": PartKey(
                lambda: _gates_entry() | None,
                place="fail_unavailable",
                rule=_KEPT._replace(value=lambda one: one.gates.to_json()),  # type: ignore[attr-defined]
            ),
        },
        Summary: {
            "gates": PartKey(Sequence[GateResult], "", "groups", _rulings, ()),
            "verdict": PartKey(Verdict, "of all gates together.", "groups", _verdict, "not_gated"),
            "unmatched_gates": PartKey(
                Sequence[str],
                "globs of gates that match no target of this run.",
                "<missed_by_all",
                _unmatched,
                (),
            ),
        },
    },
    resumed=_resumed,
    gates={
        "min_pass_rate": Gate(
            1,
            "min-pass-rate",
            Share,
            "0 to 1, of the answered and judged cells.",
            _check_passed,
            is_final=True,
        ),
        "min_tool_rate": Gate(
            2, "min-tool-rate", Share, "0 to 1, of the answered tool cells.", _check_tool_rate
        ),
        "require_tier": Gate(
            3,
            "require-tier",
            Tier,
            "1, 2 or 3; the evidence must exclude every worse tier.",
            _check_tier,
        ),
        "max_p95_ms": Gate(
            5,
            "max-p95-ms",
            PositiveAmount,
            "the maximum of the 95th percentile of the latencies.",
            _check_p95,
            is_final=True,
        ),
        "conclusive": Gate(
            7,
            "gate-conclusive",
            bool,
            "the whole 95 % interval of a rate or percentile must meet the gate, not only the figure "
            "itself; a tier must always be conclusive.",
            read=lambda is_on: is_on or None,
        ),
    },
    findings=_findings,
    ruling=lambda summary: (summary.verdict if summary.gates else "", WORDS[summary.verdict]),
    annotations=_annotations,
    status=_status,
)


# --- the command ------------------------------------------------------------------------------------


def _add_arguments(parser: argparse.ArgumentParser) -> None:
    add_run(parser)
    for name, gate in known_gates().items():
        option = options.by_name()[gate.option]
        text = option.help.removeprefix("Gate: ").removesuffix(".")
        shared: dict[str, Any] = {"dest": name, "default": argparse.SUPPRESS}
        if option.parse is None:
            parser.add_argument(f"--{option.name}", action="store_true", help=text, **shared)
        else:
            read, help_ = or_argument_error(option.parse), f"{text}; or off"
            shared |= {"nargs": "?", "const": options.ON} if option.kind == "text or nothing" else {}
            parser.add_argument(f"--{option.name}", type=read, metavar=option.metavar, help=help_, **shared)
    parser.add_argument(
        "--gates",
        action="append",
        type=or_argument_error(parse_gate_line),
        default=[],
        metavar="LINE",
        help='gates for some targets, "GLOB: min-pass-rate=0.9 require-tier=off"; may be repeated',
    )
    for add in called("arguments"):
        add(parser)
    parser.add_argument(
        "--write", action="store_true", help="rewrite the run's summary and reports with the gates"
    )
    add_rootdir(parser, "with --write: the project's root folder, whose reports are written too")


def _run(arguments: argparse.Namespace) -> CommandResult:
    run = read_run(arguments)
    gates = _gates(arguments, run)
    measured = replace(held_by(arguments, run), config={**run.config, "gates": gates.to_json()})
    summary = replace(summary_of(measured, anew=True), generated_at_ms=epoch_ms())
    rulings: Any = summary
    if not rulings.gates:
        globs = ", ".join(rulings.unmatched_gates)
        raise OpenClawError(f"{run.name}: no gate applies to any of its targets ({globs}); {_FOR_EXAMPLE}")
    warnings = _write(run, summary, arguments.rootdir) if arguments.write else []
    as_json = to_json(summary)
    return CommandResult(
        lines=[*_lines(summary, run.path if arguments.write else None)],
        data={
            "run": run.name,
            "verdict": rulings.verdict,
            "gates": as_json["gates"],
            "unmatched_gates": list(rulings.unmatched_gates),
            "comparison": as_json.get("comparison"),
            "wrote": arguments.write,
            "notes": run.shortcomings,
        },
        status=STATUS[rulings.verdict],
        warnings=[*run.shortcomings, *warnings],
    )


def _gates(arguments: argparse.Namespace, run: StoredRun) -> GateSettings:
    """Return the run's own gates, changed by the options.

    Raises:
        OpenClawError: no gate is set, or there is no baseline to compare with.
    """
    recorded = gates_of(run.config)
    own = recorded or GateSettings()
    own = replace(own, by_target=(*own.by_target, *arguments.gates))
    gates = own.firm({name: value for name, value in vars(arguments).items() if name in known_gates()})
    limits = gates.of_any_target
    if not limits.keys() - {"conclusive"}:
        differ = "its parts had different gates; name those that count"
        why = differ if recorded is None else "it has no gate of its own; name one"
        raise OpenClawError(f"{run.name}: {why}, {_FOR_EXAMPLE}")
    for gate, limit in ((known_gates()[name], limit) for name, limit in limits.items()):
        if gate.needs and not getattr(arguments, gate.needs):
            given = f"--{gate.option} {limit}"
            raise OpenClawError(f"{given} needs a run to compare with: add --{gate.needs} RUN")
    return gates


def _write(run: StoredRun, summary: Summary, root: Path) -> list[str]:
    plugins, warnings = plugins_of(root)
    with RunDirectory(run.path) as directory:
        directory.write_json(SUMMARY, to_json(summary))
        plugins.write_reports(directory, summary)
    return [*warnings, *plugins.complaints]


def _lines(summary: Any, wrote: Path | None) -> Iterator[str]:
    pairs = sorted(findings_of_parts(summary), key=lambda pair: pair[0])
    found = [finding for rank, finding in pairs if rank in (RULINGS, CHANGES)]
    if wrote:
        found.append(SummaryFinding(label="wrote", text=str(wrote / "summary.md")))
    for finding in found:
        yield f"{finding.label:<{LABEL_WIDTH}}{finding.text}"
    yield ""
    yield summary.verdict.replace("_", " ")


COMMANDS = (CliCommand(name="gate", help=__doc__, add_arguments=_add_arguments, run=_run),)
