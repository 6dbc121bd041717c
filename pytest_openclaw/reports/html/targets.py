"""Which model may hold the tools, and what else is notable.

How tool use ended, how much pressure it withstands, and how safe it is.

How long answers took, and why some never came.

How a run was asked, and on what: its settings, its servers, its machines.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from pytest_openclaw.reports.html import pieces
from pytest_openclaw.reports.html.pieces import NAME_WIDTH, PageAnswer, Section, Table, named
from pytest_openclaw.reports.numbers import (
    DASH,
    LONGEST_SENTENCE,
    one_line,
    render_interval,
    render_ms,
    render_rate,
)
from pytest_openclaw.reports.targets import (
    PRESSURE_HEAD,
    REPEATS_HEAD,
    flips_of,
    outcome_advice,
    outcome_rows,
    outcomes_in,
    pressure_rows,
    render_further,
    render_strain,
    repeats_rows,
    unanswered,
    uses_of,
    view_of,
)
from pytest_openclaw.stats.tiers import TIER_FLOORS
from pytest_openclaw.stats.tool_use import GOOD_OUTCOMES
from pytest_openclaw.util.text import first_few

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence

    from pytest_openclaw.stats.groups import Group
    from pytest_openclaw.stats.intervals import Rate
    from pytest_openclaw.stats.recommendation import OverRefusal
    from pytest_openclaw.stats.summary import Summary
    from pytest_openclaw.stats.tool_use import ToolUse
    from pytest_openclaw.util.json_types import JsonObject
    from pytest_openclaw.values.tool_calls import ToolOutcome


_TIERS = {1: "tool-capable", 2: "inconsistent", 3: "tool-incapable"}
_MOST_MISSED = 40


def targets_section(summary: Summary) -> Section:
    """Return what the run says of each target, then tiers, rates and times."""
    groups = summary.groups
    head = (
        "target", "tier", "evidence", "passed", "rate", "95 %", "tool use", "95 %", "p50", "p95", "TTFT p50",
        "tok/s", "tokens in", "out", "cost",
    )  # fmt: skip
    with_tools = [_point(group, group.tool_use) for group in groups if group.tool_use.n]
    passed = [_point(group, group.passed) for group in groups if group.passed.n]
    drawn = (
        [pieces.rates("Right tool calls, and where the tiers begin", with_tools, _ZONES)]
        if with_tools
        else [pieces.rates("Passed", passed)]
        if passed
        else []
    )
    return Section(
        id="targets",
        title="Which model may hold the tools?",
        answers=[_answer(group) for group in groups],
        charts=drawn,
        tables=[
            Table(caption="Targets", head=head, rows=[_target_row(group) for group in groups], n_words=3)
        ],
        notes=[
            ("?", "A tier is conclusive only if its whole 95 % interval lies inside it."),
            ("95 %", "Below a time and a speed is its interval, or “?” where there are too few cells."),
        ],
    )


_ZONES = [
    pieces.Zone("Tier 3", 0.0, TIER_FLOORS[2]),
    pieces.Zone("Tier 2", TIER_FLOORS[2], TIER_FLOORS[1]),
    pieces.Zone("Tier 1", TIER_FLOORS[1], 1.0),
]


def _answer(group: Group) -> PageAnswer:
    found, use = group.recommendation, group.tool_use
    further = render_further(found)
    return PageAnswer(
        target=named(group.target),
        kind=found.kind,
        sentence=one_line(found.sentence, LONGEST_SENTENCE),
        tier=f"Tier {use.tier}, {'' if use.conclusive else 'not '}conclusive" if use.tier else "",
        further=f"To improve it: {one_line(further, LONGEST_SENTENCE)}." if further else "",
    )


def _point(group: Group, rate: Rate) -> pieces.ChartPoint:
    shown = f"{rate.n_success} of {rate.n}, {render_interval(rate.interval_95)}"
    return pieces.point(named(group.target), rate.rate or 0.0, rate.interval_95, shown)


def _target_row(group: Group) -> list[str]:
    use, view = group.tool_use, view_of(group)
    return [
        named(group.target),
        f"{view.tier} {_TIERS[use.tier]}" if use.tier else DASH,
        use.evidence or DASH,
        view.passed,
        view.pass_rate,
        view.passed_interval,
        view.tool_use,
        view.tool_use_interval,
        *(view.figures[name].full.replace(" (", "\n(") for name in ("p50", "p95", "TTFT", "tok/s")),
        _thousands(group.input_tokens),
        _thousands(group.output_tokens),
        view.cost,
    ]


def findings_section(summary: Summary) -> Section:
    """Return the most useful things to know."""
    notes = [
        (gate.ruling.replace("_", " "), f"{gate.asked}, {gate.target}: {gate.reason}")
        for gate in summary.gates
    ]
    for group in summary.groups:
        notes += _of_group(group)
    if summary.missed and summary.n_answered:
        names = first_few([missed.prompt_id for missed in summary.missed], _MOST_MISSED)
        by = "missed by all" if len(summary.groups) > 1 else "missed"
        notes.append((by, f"{len(summary.missed)} prompts: {names}"))
    if row := summary.slowest:
        notes.append(
            ("slowest", f"{row.prompt_id} {row.prompt_name}: {render_ms(row.e2e_ms)} on {row.target.label}")
        )
    return Section(
        id="findings", title="Findings", notes=[(word, one_line(text, 600)) for word, text in notes]
    )


def _of_group(group: Group) -> Iterator[tuple[str, str]]:
    label, view = group.target.label, view_of(group)
    notes = {**view.notes, "answered by": ", ".join(group.effective_models)}
    for word in (
        "not tier 1",
        "not conclusive",
        "text alone",
        "written calls",
        "context",
        "over-refusal",
        "answered by",
    ):
        if said := notes.get(word):
            yield word, f"{label}: {said}"
    if miss := view.miss:
        yield miss.outcome, f"{label}: {miss.how_often}. {miss.advice.capitalize()}"


def _thousands(value: int | None) -> str:
    return DASH if value is None else f"{value:,}"


def outcomes_section(groups: Sequence[Group]) -> Section:
    """Return how tool cells ended, and what to change."""
    uses = uses_of(groups)
    occurred = outcomes_in(uses)
    rows = [[named(target), *texts] for target, texts in outcome_rows(uses)]
    fills = [[None, None, *(_fill(use, outcome) for outcome in occurred)] for _, use in uses]
    return Section(
        id="outcomes",
        title="How tool use ended",
        intro="Of each target the cells that ended so; the fuller a field, the larger its share.",
        tables=[
            Table(
                caption="How tool use ended",
                head=("target", "evidence", *(outcome.replace("_", " ") for outcome in occurred)),
                rows=rows,
                n_words=2,
                fills=fills,
            )
        ],
        notes=[(f"{outcome}{how}", advice) for outcome, how, advice in outcome_advice(uses)],
    )


def _fill(use: ToolUse, outcome: ToolOutcome) -> float:
    share = use.outcomes.get(outcome, 0) / sum(use.outcomes.values())
    return share if outcome in GOOD_OUTCOMES else -share


def pressure_section(groups: Sequence[Group]) -> Section:
    """Return the rates behind more tools and more text."""
    rows = [[named(target), *texts] for target, texts in pressure_rows(groups)]
    rates = [level.rate for group in groups for level in group.pressure]
    said = [(named(group.target), strain) for group in groups if (strain := render_strain(group))]
    return Section(
        id="pressure",
        title="Where context pressure breaks it",
        intro="Calls that were right behind more tools and more text.",
        notes=said,
        tables=[
            Table(
                caption="All levels of pressure",
                head=("target", *PRESSURE_HEAD),
                rows=rows,
                fills=[[None, None, None, rate, None, None] for rate in rates],
            )
        ],
    )


def safety_section(groups: Sequence[Group]) -> Section:
    """Return the probes and their harmless twins."""
    results = [(group, result) for group in groups for result in group.safety]
    twins = [[named(group.target), *_twins(found)] for group in groups if (found := group.over_refusal)]
    rows = [
        [
            named(group.target),
            result.probe,
            f"{result.n_safe}/{result.n}",
            render_rate(result.rate),
            render_interval(result.interval_95),
            f"{result.n_done}/{result.n}",
        ]
        for group, result in results
    ]
    tables = [
        Table(
            caption="All probes",
            head=("target", "probe", "safe", "rate", "95 %", "and done"),
            rows=rows,
            n_words=2,
            fills=[
                [None, None, -result.n_unsafe / result.n if result.n_unsafe else 1.0, None, None, None]
                for _, result in results
            ],
        ),
        Table(
            caption="Over-refusal: harmless twins of the probes",
            head=("target", "not done", "rate", "95 %"),
            rows=twins,
        ),
    ]
    return Section(
        id="safety",
        title="Safety probes",
        intro="Safe of all that were judged. Where some were not, the fill is the share that was unsafe.",
        tables=tables,
    )


def roles_section(groups: Sequence[Group]) -> Section:
    """Return what the targets have shown in the other roles of OpenClaw's config."""
    results = [(group, result) for group in groups for result in group.roles]
    rows = [
        [
            named(group.target),
            result.role,
            result.kind.replace("_", " "),
            f"{result.n_right}/{result.n}",
            render_interval(result.interval_95),
            render_ms(result.p50_ms),
        ]
        for group, result in results
    ]
    return Section(
        id="roles",
        title="Other roles of OpenClaw's config",
        intro="Fit: 80 % of at least 3 prompts are right, and the whole interval is at 50 % or above.",
        tables=[
            Table(
                caption="All roles that were asked about",
                head=("target", "role", "is", "right", "95 %", "p50"),
                rows=rows,
                n_words=3,
                fills=[[None, None, None, result.rate, None, None] for _, result in results],
            )
        ],
    )


def _twins(found: OverRefusal) -> list[str]:
    return [f"{found.n_not_done}/{found.n}", render_rate(found.rate), render_interval(found.interval_95)]


def times_section(groups: Sequence[Group]) -> Section:
    """Return the times of the answered cells."""
    groups = [group for group in groups if group.latency_ms["p50"] is not None]
    streamed = [group for group in groups if group.ttft_ms["p50"] is not None]
    drawn = [
        pieces.times(title, points)
        for title, points in (
            ("Whole answer", [_times_point(group, group.latency_ms) for group in groups]),
            ("First token", [_times_point(group, group.ttft_ms) for group in streamed]),
        )
        if points
    ]
    head = (
        "target",
        *(f"{what} {name}" for what in ("answer", "TTFT") for name in ("p50", "p95", "p99", "mean")),
    )
    rows = [
        [
            named(group.target),
            *(view_of(group).figures[name].full for name in ("p50", "p95", "p99")),
            render_ms(group.latency_ms["mean"]),
            *(view_of(group).figures[name].full for name in ("TTFT", "TTFT p95", "TTFT p99")),
            render_ms(group.ttft_ms["mean"]),
        ]
        for group in groups
    ]
    return Section(
        id="times",
        title="How long it took",
        intro="Answered cells; the point is a target's median, the line ends at its 95th percentile. "
        "In the table a 95 % interval follows a percentile, or ? where there are too few cells.",
        charts=drawn,
        more=[Table(caption="All times", head=head, rows=rows)],
    )


def _times_point(group: Group, ms: Mapping[str, float | None]) -> pieces.ChartPoint:
    p50, p95 = ms["p50"] or 0.0, ms["p95"] or 0.0
    shown = f"{render_ms(p50)}, p95 {render_ms(p95)}"
    return pieces.ChartPoint(named(group.target), p50, p50, p95, shown)


def repeats_section(groups: Sequence[Group]) -> Section:
    """Return what repeats of a prompt come to."""
    rows = [[one_line(label, NAME_WIDTH), *figures] for label, *figures in repeats_rows(groups)]
    return Section(
        id="repeats",
        title="Asked again",
        intro="Chances for a prompt of this kind, with their 95 % intervals.",
        tables=[Table(caption="Repeats", head=REPEATS_HEAD, rows=rows)],
        notes=[
            (one_line(label, NAME_WIDTH), one_line(shown_text, 400)) for label, shown_text in flips_of(groups)
        ],
    )


def unanswered_section(groups: Sequence[Group]) -> Section:
    """Return why cells were not answered, or not with success."""
    rows = [
        [named(group.target), failure_type, str(n), one_line(reason, 400)]
        for group in groups
        for failure_type, n, reason in unanswered(group)
    ]
    head = ("target", "failure", "cells", "why")
    return Section(
        id="unanswered",
        title="Not answered",
        tables=[Table(caption="Not answered", head=head, rows=rows, n_words=4)],
    )


_SETTINGS = ("repeat", "until_conclusive", "stream", "temperature", "timeout_s", "retries", "verdict")
_SERVER = ("server", "server_version", "quantisation", "context_length", "digest")
# A page is sent around, so it does not show the addresses of servers.
_PRIVATE = frozenset({"base_url", "key_env"})
_WIDTH = 60


def asked_section(config: JsonObject, inventory: JsonObject) -> Section:
    """Return the section; what a file does not have is left out."""
    packages = _object(inventory.get("packages"))
    versions = [[one_line(name, _WIDTH), _shown(version)] for name, version in packages.items()]
    tables = [
        Table(caption="Settings", head=("setting", "value"), rows=list(_settings(config)), n_words=2),
        Table(caption="Machine", head=("machine", *_MACHINE), rows=[_machine(inventory)], n_words=9),
        Table(caption="Servers", head=("target", *_WORDS), rows=list(_served(inventory)), n_words=9),
        Table(caption="Versions", head=("package", "version"), rows=versions, n_words=2),
    ]
    return Section(
        id="asked",
        title="How it was asked",
        intro=f"Machine: {host_of(inventory)}. Versions: {versions_of(inventory)}.",
        more=tables,
    )


def host_of(inventory: JsonObject) -> str:
    """Return the machine in a few words."""
    host, cpu = _object(inventory.get("host")), _object(inventory.get("cpu"))
    parts = (host.get("name"), cpu.get("model"), host.get("system"), host.get("machine"))
    return ", ".join(one_line(part, 40) for part in parts if isinstance(part, str) and part) or DASH


def versions_of(inventory: JsonObject) -> str:
    """Return the versions that matter most."""
    python, packages = _object(inventory.get("python")), _object(inventory.get("packages"))
    data = [
        (name, packages.get(name)) for name in ("pytest-openclaw", "pytest", "xllamacpp") if name in packages
    ]
    data.append(("Python", python.get("version")))
    return ", ".join(f"{name} {_shown(version)}" for name, version in data if version) or DASH


_MACHINE = ("processor", "cores", "memory", "GPU", "system", "Python")
_WORDS = tuple(name.replace("_", " ") for name in _SERVER)


def _settings(config: JsonObject) -> Iterator[list[str]]:
    for name in _SETTINGS:
        if name in config:
            yield [name.replace("_", " "), _shown(config[name])]
    limits = _object(config.get("concurrency"))
    for endpoint, limit in {
        "everywhere": limits.get("everywhere"),
        **_object(limits.get("by_provider")),
    }.items():
        if limit is not None:
            yield [f"in flight, {one_line(endpoint, _WIDTH)}", _shown(limit)]
    for provider, shape in _object(config.get("providers")).items():
        for key, value in _object(shape).items():
            if key in _PRIVATE:
                continue
            yield [f"{one_line(provider, _WIDTH)}: {one_line(key, _WIDTH).replace('_', ' ')}", _shown(value)]


def _machine(inventory: JsonObject) -> list[str]:
    cpu, host = _object(inventory.get("cpu")), _object(inventory.get("host"))
    memory, listed = inventory.get("memory_total_bytes"), inventory.get("gpus")
    gpus = [_object(gpu) for gpu in listed] if isinstance(listed, list) else []
    return [
        _shown(host.get("name")),
        _shown(cpu.get("model")),
        _shown(cpu.get("usable_cores")),
        f"{memory / 2**30:.1f} GiB" if isinstance(memory, int) else DASH,
        ", ".join(_shown(gpu.get("name") or gpu.get("error")) for gpu in gpus) or DASH,
        " ".join(_shown(host[key]) for key in ("system", "release", "machine") if host.get(key)) or DASH,
        _shown(_object(inventory.get("python")).get("version")),
    ]


def _served(inventory: JsonObject) -> Iterator[list[str]]:
    for label, facts in _object(inventory.get("targets")).items():
        server = _object(_object(facts).get("server"))
        if server:
            yield [one_line(label, _WIDTH), *(_shown(server.get(name)) for name in _SERVER)]


def _shown(value: Any) -> str:
    if value is None:
        return DASH
    if isinstance(value, bool):
        return "yes" if value else "no"
    return one_line(str(value), _WIDTH)


def _object(value: Any) -> Mapping[str, Any]:
    return value if isinstance(value, dict) else {}
