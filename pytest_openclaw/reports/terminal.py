"""The summary as lines for a terminal.

The table of targets, as wide as the terminal: where that is narrow, columns are left out by priority.
"""

from __future__ import annotations

import re
import textwrap
from typing import TYPE_CHECKING, NamedTuple

from pytest_openclaw.reports.comparison import (
    cost_in_short,
    in_short,
    name_of,
    reasons_in_short,
    surface_note,
)
from pytest_openclaw.reports.numbers import (
    DASH,
    LEAST_NAME,
    WIDTH,
    columns,
    labeled,
    lines_of,
    listed,
    one_line,
    padded,
    render_cost,
    render_ms,
    render_targets,
    whole_lines_of,
)
from pytest_openclaw.reports.targets import (
    render_best,
    render_intervals,
    rests_on_text,
    unknown_endings,
    view_of,
)
from pytest_openclaw.stats.groups import headline
from pytest_openclaw.util.text import counted, printable

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Sequence

    from pytest_openclaw.stats.gates import GateResult
    from pytest_openclaw.stats.groups import Group
    from pytest_openclaw.stats.summary import Summary


TARGET, COST, TOOLS = "target", "USD", "tools"
HEADERS = (TARGET, "passed", "95% CI", "p50", "p95", "TTFT", "tok/s", COST, "tier", TOOLS)
LEFT_OUT_FIRST = ("tok/s", "TTFT", "p95", COST, "p50", "95% CI")
_TIER = re.compile(r"(?<= )([123])(\?)?(?= *(?:\d+/\d+)?$)")
TIER_COLORS = {"1": "green", "2": "yellow", "3": "red"}


def render_table(groups: Sequence[Group], width: int) -> Iterator[str]:
    """Yield the table's head and, for each target, its line and the intervals of its figures.

    Args:
        groups: of the run.
        width: columns of the terminal; no line is wider, if it has 40 or more.

    """
    prefix = _shared_provider(groups)
    names = short_names(groups)
    head = f"{TARGET} {prefix}…" if prefix else TARGET
    answered = [(name, group) for name, group in zip(names, groups, strict=True) if group.n_ok]
    longest = max((columns(name) for name in (*names, head)), default=0)
    if answered:
        costs = any(group.cost_usd for _, group in answered)
        rows = [[head, *HEADERS[1:]], *([name, *_figures(group, costs=costs)] for name, group in answered)]
        first, *lines = render_targets(rows, ("tier",), LEFT_OUT_FIRST, width, longest=longest)
        yield first
        for line, (_, group) in zip(lines, answered, strict=True):
            yield line
            if intervals := render_intervals(group.tool_use.interval_95, view_of(group).figures, width - 2):
                yield f"  {intervals}"
    for name, group in zip(names, groups, strict=True):
        if not group.n_ok:
            yield from _unanswered(name, group, width, min(longest, max(LEAST_NAME, width // 3)))


def tier_in(line: str) -> tuple[str, str, str, str] | None:
    """Return a target's line before its tier, the tier, the rest and its color; None without a tier."""
    if not (found := _TIER.search(line)):
        return None
    return line[: found.start()], found[0], line[found.end() :], TIER_COLORS[found[1]]


def short_names(groups: Sequence[Group]) -> list[str]:
    """Return the targets' names without the provider, if all of several targets have the same."""
    prefix = _shared_provider(groups)
    return [group.target.label.removeprefix(prefix) for group in groups]


def _shared_provider(groups: Sequence[Group]) -> str:
    """Return `provider/` if all of several targets have it."""
    providers = {group.target.provider for group in groups}
    return f"{providers.pop()}/" if len(groups) > 1 and len(providers) == 1 else ""


def _figures(group: Group, *, costs: bool) -> list[str]:
    view = view_of(group)
    return [
        view.passed,
        view.passed_interval,
        *(view.figures[name].short for name in ("p50", "p95", "TTFT", "tok/s")),
        view.cost.removesuffix(f" {COST}") if costs else "",
        view.tier,
        view.tool_use.strip(DASH),
    ]


def _unanswered(name: str, group: Group, width: int, name_width: int) -> Iterator[str]:
    reason = next(iter(group.reasons.values()), "not asked")
    for label, line in labeled(one_line(name, name_width), lines_of(reason, width - name_width - 1)):
        yield f"{padded(label, name_width, left=True)} {line}"


QUESTION = "which model may hold the tools?"
NAME_WIDTH = 27
LABEL_WIDTH = 18
INDENT = "  "
WIDE_TEXT, WIDEST_TEXT = 100, 120
"""Columns of sentences that have room for whole names, and that they take at most."""
ANSWER_LINES = 5
"""Sentences that need more than this have a line of all targets before them."""
IN_SHORT = "in short: "
KIND_WORDS = {
    "trusted": "trusted with tools", "trusted_with": "trusted with some tools",
    "not_enough_evidence": "not enough evidence", "not_trusted": "not trusted", "unsafe": "unsafe",
}  # fmt: skip
"""Of the line of all targets, in its order."""
FINDINGS = ("written calls", "context", "over-refusal", "flaky", "repeats")
LONGEST_COMMAND = 4000
LONGEST_COMPLAINT = 600
RULINGS = {"failed": "gate FAILED", "no_verdict": "gate NO VERDICT", "passed": "gate passed"}
"""Labels of gates, in the order in which they are printed."""

TEXT_ALONE = "tiers rest on calls found in texts, not on calls on the wire; OpenClaw runs no call in a text"
KIND_COLORS = {
    "unsafe": "red", "not_trusted": "red", "not_enough_evidence": "yellow",
    "trusted_with": "green", "trusted": "green",
}  # fmt: skip
"""Of the sentences that answer the question."""
COLORS = {
    "gate FAILED": "red", "gate NO VERDICT": "yellow", "gate passed": "green",
    "no verdict": "yellow", "worse": "red", "better": "green", "interrupted": "yellow",
}  # fmt: skip
"""Of labels, where pytest uses colors."""


def title_of(summary: Summary) -> str:
    """Return the title, with the release of OpenClaw on whose tools and rules all answers rest."""
    releases = {group.recommendation.release for group in summary.groups} - {None}
    named = f" {releases.pop()}" if len(releases) == 1 else ""
    return f"openclaw{named}: {QUESTION}"


def render_terminal(
    summary: Summary,
    where: str,
    resume: str | None = None,
    notes: Iterable[tuple[str, str]] = (),
    *,
    width: int = WIDTH,
    are_misses_shown: bool = False,
) -> list[str]:
    """Return the lines under the title: a sentence for each target, the table, the findings.

    Args:
        summary: the run's.
        where: the path of `summary.md`, as the user would type it.
        resume: the command that continues the run; shown, on one line, if there is something left to ask.
        notes: further findings, each a label and a text; `next` is a command.
        width: columns of the terminal.
        are_misses_shown: whether the missed cells have been listed above the title.

    """
    lines = [*_answers(summary.groups, min(width, WIDEST_TEXT)), "", *render_table(summary.groups, width)]
    text_width = min(width, WIDEST_TEXT) - LABEL_WIDTH
    findings = [*_findings(summary, text_width, are_misses_shown=are_misses_shown)]
    for label, text in notes:
        # A command is copied from one line.
        is_command = label == "next"
        findings += [(label, text)] if is_command else _wrapped(label, text, text_width)
    findings.append(("wrote", where))
    if resume and summary.is_owing:
        findings.append(("next", one_line(resume, LONGEST_COMMAND)))
    return [*lines, "", *(f"{label:<{LABEL_WIDTH}}{text}".rstrip() for label, text in findings)]


def colored(lines: Iterable[str], groups: Iterable[Group]) -> Iterator[list[tuple[str, dict[str, bool]]]]:
    """Yield each line of `render_terminal` in parts with markup: answers, tiers and labels are colored."""
    kinds = (group.recommendation.kind for group in headline(groups))
    color, n_blank = "bold", 0
    for line in lines:
        n_blank += not line
        label = line[:LABEL_WIDTH].rstrip()
        if line and not n_blank:
            if not line.startswith((INDENT, IN_SHORT)):
                color = KIND_COLORS[next(kinds)]
            yield [(line, {color: True})]
        elif n_blank == 1 and (found := tier_in(line)):
            before, tier, after, tier_color = found
            yield [(before, {}), (tier, {tier_color: True}), (after, {})]
        elif label in COLORS:
            yield [(label, {COLORS[label]: True}), (line.removeprefix(label), {})]
        else:
            yield [(line, {})]


def render_complaints(complaints: Sequence[str], width: int = WIDTH) -> list[str]:
    """Return the lines that say what plugins did wrong, such as a report that broke."""
    return [
        printable(f"{label:<{LABEL_WIDTH}}{line}")
        for text in complaints
        for label, line in labeled(
            "plugin broke", textwrap.wrap(one_line(text, LONGEST_COMPLAINT), width - LABEL_WIDTH)
        )
    ]


def _findings(summary: Summary, width: int, *, are_misses_shown: bool) -> Iterator[tuple[str, str]]:
    if summary.state == "interrupted":
        yield "interrupted", f"{summary.n_rows} of {summary.n_cells} cells have a row"
        if lost := summary.n_unrecorded_calls:
            calls = "1 call of a worker was" if lost == 1 else f"{lost} calls of workers were"
            yield from _wrapped("", f"at most {calls} not recorded; a resumed run asks again", width)
    if n := summary.n_rerun:
        yield from _wrapped(
            "run again", f"{counted(n, 'cell')} by another plugin; the first try counts", width
        )
    if summary.n_rows and not summary.n_answered:
        yield "no verdict", "no cell was answered"
    for label, gates in _by_reason(summary.gates):
        wanted = ", ".join(gate.asked for gate in gates)
        yield from _wrapped(label, f"{wanted}, {gates[0].target}", width)
        yield from _wrapped("", gates[0].reason, width)
    for glob in summary.unmatched_gates:
        yield from _wrapped("no such target", f"openclaw_gates: {glob} fits none of this run", width)
    yield from _of_comparison(summary, width)
    yield from _of_groups(summary, width)
    yield from _of_surface(summary, width)
    is_alone = len(summary.groups) == 1
    if summary.missed and summary.n_answered and not (is_alone and are_misses_shown):
        names = [missed.prompt_id for missed in summary.missed]
        count = f"{counted(len(names), 'prompt')}: "
        label = "missed" if is_alone else "missed by all"
        yield label, count + listed(names, width - len(count))
    if summary.known_failures:
        yield "known failures", _known_failures(summary, width)
    if summary.slowest:
        row = summary.slowest
        where = "" if is_alone else f" on {_names(summary.groups)[row.target.label]}"
        text = f"{row.prompt_id} {row.prompt_name}: {render_ms(row.e2e_ms)}{where}"
        yield from _wrapped("slowest", text, width)
    if cost := render_cost(summary.groups):
        yield from _wrapped("cost", cost, width)


def _answers(groups: Iterable[Group], width: int) -> Iterator[str]:
    """Yield each target's recommendation with its reason, as a sentence of a line or more.

    Where these are long, the first line says it of all targets in short.
    """
    asked = headline(groups)
    sentences = [
        line
        for group in asked
        for line in whole_lines_of(f"{group.target.label}: {group.recommendation.sentence}", width, INDENT)
    ]
    if len(asked) > 1 and len(sentences) > ANSWER_LINES:
        yield from whole_lines_of(IN_SHORT + _in_short(asked, width), width, INDENT)
    yield from sentences


def _in_short(groups: Sequence[Group], width: int) -> str:
    """Return the targets of each kind of recommendation, as many as two lines have room for."""
    names = _names(groups)
    found: dict[str, list[str]] = {}
    for group in groups:
        found.setdefault(group.recommendation.kind, []).append(names[group.target.label])
    room = 2 * width // len(found)
    return "; ".join(
        f"{word}: {listed(found[kind], room - len(word))}"
        for kind, word in KIND_WORDS.items()
        if kind in found
    )


def _names(groups: Sequence[Group]) -> dict[str, str]:
    labels = (group.target.label for group in groups)
    return dict(zip(labels, short_names(groups), strict=True))


def _by_reason(gates: Iterable[GateResult]) -> Iterator[tuple[str, list[GateResult]]]:
    """Yield the gates that one reason holds for on one target, together; failed ones first."""
    found: dict[tuple[str, str, str], list[GateResult]] = {}
    for gate in gates:
        found.setdefault((gate.ruling, gate.target, gate.reason), []).append(gate)
    for ruling, label in RULINGS.items():
        yield from ((label, together) for (said, *_), together in found.items() if said == ruling)


def _of_comparison(summary: Summary, width: int) -> Iterator[tuple[str, str]]:
    compared = summary.comparison
    if compared is None:
        return
    yield "compared with", one_line(compared.baseline, width)
    for one in compared.targets:
        word = one.verdicts.word.removesuffix(" seen")
        yield from _wrapped(word, f"{_shortened(name_of(one), width)}: {in_short(one)}", width)
        for note in one.notes:
            yield from _wrapped("", f"but {note}", width)
    if not compared.targets:
        yield "not compared", "no target is in both runs"
    if apart := reasons_in_short(compared):
        yield from _wrapped("set aside", apart, width)
    for note in compared.notes:
        yield from _wrapped("", note, width)


def _of_surface(summary: Summary, width: int) -> Iterator[tuple[str, str]]:
    """Yield what OpenClaw's own request costs each model, and where it comes from."""
    costs = [*cost_in_short(summary)]
    for target, text in costs:
        yield from _wrapped("surface", f"{_shortened(target, width)}: {text}", width)
    if note := surface_note(summary):
        yield from _wrapped("" if costs else "surface", note, width)


def _shortened(name: str, width: int) -> str:
    """Return a target's name in front of a sentence; a wide terminal has room for all of it."""
    return one_line(name, width if width >= WIDE_TEXT else NAME_WIDTH)


def _wrapped(label: str, text: str, width: int) -> Iterator[tuple[str, str]]:
    return labeled(label, lines_of(text, width))


class _Finding(NamedTuple):
    """A target's, with what is advised; `is_named` if the text has its name already."""

    label: str
    text: str
    advice: str = ""
    is_named: bool = False


def _of_groups(summary: Summary, width: int) -> Iterator[tuple[str, str]]:
    """Yield the findings of all targets by label, which is printed once."""
    found: dict[tuple[str, str], list[tuple[str, str]]] = {}
    names = _names(summary.groups)
    for group in summary.groups:
        name = _shortened(names[group.target.label], width)
        for label, text, advice, is_named in _of_group(group):
            is_alone = is_named or len(summary.groups) == 1
            found.setdefault((label, advice), []).append(("" if is_alone else f"{name}: ", text))
    labels = [label for label, _ in found]
    for (label, advice), entries in sorted(found.items(), key=lambda entry: labels.index(entry[0][0])):
        yield from _of_label(label, advice, entries, width)
    if rests_on_text(summary.groups):
        yield from _wrapped("text alone", TEXT_ALONE, width)
    if summary.best:
        best = whole_lines_of(render_best(summary.best, names=names), width)
        yield from labeled("best with tools", best)


def _of_label(
    label: str, advice: str, entries: Sequence[tuple[str, str]], width: int
) -> Iterator[tuple[str, str]]:
    """Return what targets have in common: each on a line of its own, or counts together, and the advice."""
    texts = [f"{name}{text}" for name, text in entries]
    if advice:
        texts = [f"{'; '.join(texts)};", advice]
    return labeled(label, (line for text in texts for line in lines_of(text, width)))


def _of_group(group: Group) -> Iterator[_Finding]:
    view = view_of(group)
    for label in ("not tier 1", "not conclusive", "text alone"):
        if text := view.notes.get(label):
            yield _Finding(label, text)
    if miss := view.miss:
        yield _Finding(miss.outcome, miss.how_often, miss.advice)
    for label in FINDINGS:
        if text := view.notes.get(label):
            yield _Finding(label, text)
    if group.effective_models:
        models = f"{', '.join(group.effective_models)} instead of {group.target.label}"
        yield _Finding("answered by", models, is_named=True)
    if group.unknown_finish_reasons:
        yield _Finding("ended by", unknown_endings(group))
    missing = group.n_total - group.n_ok
    if missing and group.n_ok:
        reason = next(iter(group.reasons.values()), "")
        yield _Finding("not answered", f"{counted(missing, 'cell')}: {reason}")
    yield from (_Finding(result.role, result.sentence) for result in group.roles)


def _known_failures(summary: Summary, width: int) -> str:
    """Return how many known failures were as expected, and which were none any more."""
    passing = [known for known in summary.known_failures if not known.is_as_expected]
    count = f"{len(summary.known_failures) - len(passing)} as expected"
    if not passing:
        return count
    names = ", ".join(dict.fromkeys(known.prompt_id for known in passing))
    return one_line(f"{count}; passing now: {names}", width)
