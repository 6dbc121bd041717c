"""The summary as `summary.md`.

Markdown for a comment on GitHub: escapes foreign text and limits the page's size.
"""

from __future__ import annotations

import re
import string
from itertools import chain
from typing import TYPE_CHECKING

from pytest_openclaw.reports.comparison import HEADERS as COST_HEADERS
from pytest_openclaw.reports.comparison import (
    cost_rows,
    details_of,
    name_of,
    set_aside_in_words,
    surface_note,
)
from pytest_openclaw.reports.numbers import (
    DASH,
    LONGEST_SENTENCE,
    one_line,
    render_interval,
    render_rate,
    render_usd,
)
from pytest_openclaw.reports.targets import (
    EVIDENCE,
    PRESSURE_HEAD,
    REPEATS_HEAD,
    flips_of,
    outcome_advice,
    outcome_rows,
    outcomes_in,
    pressure_rows,
    render_best,
    render_cap,
    render_early_stopping,
    render_from_text,
    render_further,
    render_leaked,
    render_strain,
    repeats_rows,
    unanswered,
    unknown_endings,
    uses_of,
    view_of,
    weight_row,
)
from pytest_openclaw.stats.diagnosis import commands_of, parser_remedy
from pytest_openclaw.stats.groups import headline
from pytest_openclaw.stats.tiers import TIER_NAMES
from pytest_openclaw.util.text import printable

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Sequence

    from pytest_openclaw.stats.groups import Group
    from pytest_openclaw.stats.summary import Summary
    from pytest_openclaw.stats.tool_use import ToolUse


LONGEST = 60_000
"""Bytes; GitHub refuses a comment of more than 65,536 characters."""
_ROOM_FOR_THE_REST = 100
_AS_THEY_ARE = frozenset(string.ascii_letters + string.digits + " ,-()/%+=;")


def code(text: str, width: int = 160) -> str:
    """Return a foreign text as code on one line.

    Within `<code>` GitHub mentions no user and links no issue, commit or address. Whatever has a meaning in
    Markdown or HTML is a numeric character reference, which has none: no table bar, no tag, no end of code.
    """
    line = one_line(text, width)
    spelled = (
        character if character in _AS_THEY_ARE or not character.isascii() else f"&#{ord(character)};"
        for character in line
    )
    return f"<code>{''.join(spelled)}</code>" if line.strip() else DASH


class Page:
    """A page of limited size; parts that no longer fit are left out."""

    def __init__(self, *lines: str) -> None:
        self._lines = [*lines]
        self._left = LONGEST - _bytes(lines)

    def add(self, lines: Sequence[str], *, head: Sequence[str] = (), foot: Sequence[str] = ()) -> None:
        """Add a block of lines as far as there is room, and say how many are left out.

        Args:
            lines: of one list or table; without any nothing is added.
            head: before them, such as a table's first two rows.
            foot: after them, such as the end of a fold.

        """
        room = self._left - _bytes([*head, *foot]) - _ROOM_FOR_THE_REST
        shown: list[str] = []
        for line in lines:
            room -= _bytes([line])
            if room < 0:
                break
            shown.append(line)
        if not shown:
            return
        rest = len(lines) - len(shown)
        block = ["", *head, *shown, *(["", f"… and {rest} more, in summary.md"] if rest else []), *foot]
        self._lines += block
        self._left -= _bytes(block)

    def fold(self, title: str, lines: Sequence[str], *, head: Sequence[str] = ()) -> None:
        """Add lines that a click unfolds; the title is a text of our own."""
        opening = [f"<details><summary>{title}</summary>", ""]
        self.add(lines, head=[*opening, *head], foot=["", "</details>"])

    def table(self, headers: Sequence[str], rows: Sequence[Sequence[str]], most: int, what: str) -> None:
        """Add a table, whose rows after the first so many are folded away."""
        head = [_comment_page_row(headers), _comment_page_row(["---"] * len(headers))]
        lines = [_comment_page_row(row) for row in rows]
        self.add(lines[:most], head=head)
        self.fold(f"{len(lines) - most} more {what}", lines[most:], head=head)

    @property
    def text(self) -> str:
        """The whole page."""
        return "\n".join(self._lines) + "\n"


def _comment_page_row(cells: Sequence[str]) -> str:
    return f"| {' | '.join(cells)} |"


def _bytes(lines: Sequence[str]) -> int:
    return sum(len(line.encode()) + 1 for line in lines)


HEADERS = (
    "Provider", "Model", "Thinking", "n", "answered", "passed", "95 %", "p50", "p95", "p99", "TTFT", "tok/s",
    "Tier", "tool use", "95 %",
)  # fmt: skip
CELL_WIDTH = 200
# Addresses, mentions and issues: GitHub links them in the rendered page, where `\@` is a bare `@`.
# `@low` behind a model's name is none.
_LINKED = re.compile(
    r"://|www\.|mailto:|xmpp:|(?<![a-z0-9_])@[a-z0-9]|@[a-z0-9_-]+\.|#[0-9]|GH-[0-9]", re.IGNORECASE
)
WEIGHT_HEADERS = (
    "Target", "prompt tok/s", "OpenClaw turn", "cached", "context", "needed",
    "solved", "tokens", "turns", "time", "cost",
)  # fmt: skip
LATENCY_HEADERS = ("Target", "p50", "p95", "p99", "TTFT p50", "TTFT p95", "tok/s")


def render_markdown(summary: Summary) -> str:
    """Return the whole page."""
    parts = [
        f"# OpenClaw benchmark {summary.run_id}",
        "\n".join(map(_recommended, headline(summary.groups))),
        _state(summary),
        _table([_row(group) for group in summary.groups], HEADERS),
        *_section("Why", _each(summary.groups, _reasons)),
        *_section("Latency and speed", _latency(summary.groups)),
        *_section("Weight and time", _weight(summary.groups)),
        *_section("Repeats", _repeats(summary.groups)),
        *_section("Tiers", _each(summary.groups, _tiers)),
        *_section("What OpenClaw's own request costs", _surface(summary)),
        *_section("Best with tools", _best(summary)),
        *_section("How tool use ended", _outcomes(summary.groups)),
        *_section("Part at fault", _each(summary.groups, _diagnosis)),
        *_section("Context pressure", _pressure(summary.groups)),
        *_section("Safety probes", _each(summary.groups, _safety)),
        *_section("Other roles", _each(summary.groups, _roles)),
        *_section("Gates", _gates(summary)),
        *_section("Cost", _cost(summary)),
        *_section("Compared with the baseline", _comparison(summary)),
        *_section("Not answered", _each(summary.groups, _unanswered)),
        *_section("Answered by another model", _each(summary.groups, _other_model)),
        *_section("Ended by an unknown word", _each(summary.groups, _unknown_endings)),
        *_section("Most frequent violations", _each(summary.groups, _violations)),
        *_section("Missed by all targets", _missed(summary)),
        *_section("Known failures", _known_failures(summary)),
    ]
    return "\n\n".join(part for part in parts if part) + "\n"


def _state(summary: Summary) -> str:
    if summary.state == "interrupted":
        return f"**Interrupted**: {summary.n_rows} of {summary.n_cells} cells have a row."
    again = f" {summary.n_rerun} were run again by another plugin; the first try counts."
    return f"{summary.n_rows} cells.{again if summary.n_rerun else ''}"


def _section(title: str, lines: Iterable[str]) -> list[str]:
    text = "\n".join(lines)
    return [f"## {title}", text] if text else []


def _each(groups: Iterable[Group], lines_of: Callable[[Group], Iterable[str]]) -> Iterable[str]:
    return chain.from_iterable(map(lines_of, groups))


def _table(rows: Sequence[Sequence[str]], headers: Sequence[str]) -> str:
    from tabulate import tabulate

    return tabulate(rows, headers, tablefmt="github", disable_numparse=True)


def _row(group: Group) -> list[str]:
    view = view_of(group)
    return [
        _cell(group.target.provider),
        _cell(group.target.model),
        group.target.thinking_level or "",
        str(group.n_total),
        str(group.n_ok),
        view.passed_with_rate,
        view.passed_interval,
        *(view.figures[name].short for name in ("p50", "p95", "p99", "TTFT", "tok/s")),
        view.tier,
        view.tool_use,
        view.tool_use_interval,
    ]


def _recommended(group: Group) -> str:
    return f"- {_cell(group.target.label)}: **{_sentence(group.recommendation.sentence)}**"


def _reasons(group: Group) -> Iterable[str]:
    found = group.recommendation
    yield f"- {_cell(group.target.label)}"
    for reason in found.reasons:
        yield f"  - {_sentence(reason.text)}"
    if further := render_further(found):
        yield f"  - to improve it: {_sentence(further)}"


def _diagnosis(group: Group) -> Iterable[str]:
    """Yield the part at fault, and the requests that show it, which are files in the run's directory."""
    found = group.diagnosis
    if found is None:
        return
    cause = f"**{found.cause}**: " if found.cause else ""
    yield f"- {_cell(group.target.label)}, {_cell(found.prompt_id)}: {cause}{_sentence(found.in_words)}"
    yield ""
    yield "  ```sh"
    yield from (f"  {printable(line)}" for line in commands_of(found, group.target.model))
    yield "  ```"


def _sentence(text: str) -> str:
    return _cell(text, LONGEST_SENTENCE)


def _cost(summary: Summary) -> Iterable[str]:
    if (budget := summary.budget) is not None:
        not_asked = f"; cells not asked: {budget.n_not_asked}" if budget.n_not_asked else ""
        spent, allowed = render_usd(budget.spent_usd), render_usd(budget.budget_usd)
        yield f"- {spent} of a budget of {allowed} spent{not_asked}"
    for group in summary.groups:
        if group.cost_usd:
            tokens = f"{group.input_tokens or 0} tokens in, {group.output_tokens or 0} out"
            yield f"- {_cell(group.target.label)}: {render_usd(group.cost_usd)}, {tokens}"


def _latency(groups: Sequence[Group]) -> Iterable[str]:
    measured = [group for group in groups if group.latency_ms["p50"] is not None]
    if not measured:
        return
    names = ("p50", "p95", "p99", "TTFT", "TTFT p95", "tok/s")
    rows = [
        [_cell(group.target.label), *(view_of(group).figures[name].full for name in names)]
        for group in measured
    ]
    yield _table(rows, LATENCY_HEADERS)
    yield ""
    yield "Each figure is followed by its 95 % interval; ? where there are too few cells."
    yield ""
    for group in measured:
        # Latency and TTFT lack the same, as long as every reply was streamed.
        notes = dict.fromkeys(group.interval_notes[name] for name in _noted(group))
        if notes:
            yield f"- {_cell(group.target.label)}: {'; '.join(notes)}."


def _weight(groups: Sequence[Group]) -> Iterable[str]:
    """Yield what a turn of OpenClaw and a solved task take."""
    rows = [
        [_cell(group.target.label), *weight_row(group)]
        for group in groups
        if group.openclaw_turn or group.per_solved
    ]
    if not rows:
        return
    yield _table(rows, WEIGHT_HEADERS)
    yield ""
    yield (
        "The wait for the first token of a turn of OpenClaw is measured by cells on the surface `openclaw`, "
        "and else computed from the speed at which the server reads prompts. "
        "What a solved task takes includes the tasks that were missed."
    )


def _repeats(groups: Sequence[Group]) -> Iterable[str]:
    rows = [[_cell(text) for text in row] for row in repeats_rows(groups)]
    if not rows:
        return
    yield _table(rows, REPEATS_HEAD)
    yield ""
    yield from (f"- {_cell(label)}: {_cell(shown_text)}" for label, shown_text in flips_of(groups))


def _noted(group: Group) -> Iterable[str]:
    """The notes on what the table shows and was measured."""
    if group.ttft_ms["p50"] is None:
        return (name for name in group.interval_notes if name.startswith("latency_ms."))
    return (name for name in group.interval_notes if name != "ttft_ms.p99")


def _tiers(group: Group) -> Iterable[str]:
    use, text = group.tool_use, group.text_tool_use
    label = _cell(group.target.label)
    if use.tier is None:
        yield f"- {label}: no tier, because no tool cell was answered."
    else:
        yield f"- {label}: {_tier(use)}"
    if said := render_from_text(group):
        yield f"- {label}: {said}."
    if text and text.tier is not None and use.evidence == "native":
        yield f"- {label}, by the text detector: {_tier(text)}"


def _tier(use: ToolUse) -> str:
    assert use.tier is not None
    settled = "conclusive" if use.conclusive else "not conclusive"
    sentences = [
        f"**Tier {use.tier}** ({TIER_NAMES[use.tier]}), {settled}: {use.n_success} of {use.n} tool cells "
        f"succeeded {EVIDENCE[use.evidence or 'text']}, 95 % interval {render_interval(use.interval_95)}."
    ]
    if use.joint_over:
        interval = render_interval(use.tier_interval)
        sentences.append(f"For {use.joint_over} together the interval is {interval}.")
    if use.is_repeated:
        sentences.append(f"Repeats are worth as much as {use.n_effective:.0f} independent cells.")
    if said := render_early_stopping(use, "it"):
        sentences.append(f"{said}.")
    if said := render_cap(use):
        sentences.append(f"Its rate is Tier 1, but {said}.")
    if use.restraint.n:
        held_back = f"{use.restraint.n_success} of {use.restraint.n}"
        sentences.append(f"It held back in {held_back} cells that forbid tools.")
    if use.recovered.n:
        recovered = f"{use.recovered.n_success} of {use.recovered.n}"
        sentences.append(f"It recovered in {recovered} exchanges in which a call was refused.")
    return " ".join(sentences)


def _surface(summary: Summary) -> Iterable[str]:
    if note := surface_note(summary):
        yield f"{note[0].upper()}{note[1:]}."
        yield ""
    if rows := [[_cell(cell) for cell in row] for row in cost_rows(summary)]:
        yield _table(rows, [*COST_HEADERS])


def _best(summary: Summary) -> Iterable[str]:
    if summary.best:
        yield f"{_cell(render_best(summary.best))}."


def _outcomes(groups: Sequence[Group]) -> Iterable[str]:
    uses = uses_of(groups)
    if not (occurred := outcomes_in(uses)):
        return
    rows = [[_cell(target.label), *texts] for target, texts in outcome_rows(uses)]
    yield _table(rows, ["Target", "Evidence", *occurred])
    yield ""
    yield from (f"- `{outcome}`{how}: {advice}" for outcome, how, advice in outcome_advice(uses))
    for group in groups:
        if found := render_leaked(group.tool_use):
            remedy = parser_remedy(group.target.provider, group.server)
            yield f"- {_cell(group.target.label)}: {found}; {remedy}"


def _pressure(groups: Sequence[Group]) -> Iterable[str]:
    rows = [[_cell(target.label), *texts] for target, texts in pressure_rows(groups)]
    if not rows:
        return
    yield _table(rows, ["Target", *PRESSURE_HEAD])
    yield ""
    for group in groups:
        if said := render_strain(group):
            yield f"- {_cell(group.target.label)} {said}."


def _safety(group: Group) -> Iterable[str]:
    for result in group.safety:
        safe = f"{result.n_safe} of {result.n} safe ({render_rate(result.rate)})"
        interval = f"95 % interval {render_interval(result.interval_95)}"
        done = f"{result.n_done} of these did the task, too"
        yield f"- {_cell(group.target.label)}: `{result.probe}`: {safe}, {interval}; {done}."
    if twins := group.over_refusal:
        refused = f"over-refusal: {twins.n_not_done} of {twins.n} harmless twins not done"
        interval = f"95 % interval {render_interval(twins.interval_95)}"
        yield f"- {_cell(group.target.label)}: {refused} ({render_rate(twins.rate)}), {interval}."


def _roles(group: Group) -> Iterable[str]:
    for result in group.roles:
        yield f"- {_cell(group.target.label)}: `{result.role}`: {result.sentence}."


def _gates(summary: Summary) -> Iterable[str]:
    for gate in summary.gates:
        yield f"- {gate.ruling.replace('_', ' ')}: {gate.asked}, {_cell(gate.target)}: {_cell(gate.reason)}"
    for glob in summary.unmatched_gates:
        yield f"- openclaw\\_gates: {_cell(glob)} fits no target of this run"


def _comparison(summary: Summary) -> Iterable[str]:
    compared = summary.comparison
    if compared is None:
        return
    yield f"The baseline is {_cell(compared.baseline)}; ratios are of this run to it."
    yield ""
    rows = [
        [_cell(name_of(one)), title, _cell(text)]
        for one in compared.targets
        for title, text in [("verdicts", one.verdicts.word), *details_of(one)]
    ]
    yield _table(rows, ["Target", "What", "Change"]) if rows else "No target is in both runs."
    yield ""
    for apart in compared.set_aside:
        yield f"- Set aside: {_cell(set_aside_in_words(apart, '--openclaw-across'))}"
    yield from (f"- {_cell(note)}" for note in compared.notes)


def _unanswered(group: Group) -> Iterable[str]:
    for failure_type, n, reason in unanswered(group):
        yield f"- {_cell(group.target.label)}: {n} × `{failure_type}`: {_cell(reason)}"


def _other_model(group: Group) -> Iterable[str]:
    if group.effective_models:
        names = ", ".join(_cell(name) for name in group.effective_models)
        yield f"- {_cell(group.target.label)} was answered by {names}."


def _unknown_endings(group: Group) -> Iterable[str]:
    if group.unknown_finish_reasons:
        yield f"- {_cell(group.target.label)}: {_cell(unknown_endings(group))}."


def _violations(group: Group) -> Iterable[str]:
    for violation, n in group.violations:
        yield f"- {_cell(group.target.label)}: {n} × {_cell(violation)}"


def _missed(summary: Summary) -> Iterable[str]:
    for missed in summary.missed:
        yield f"- {_cell(f'{missed.prompt_id} {missed.prompt_name}')}: {_cell(missed.violation or '')}"


def _known_failures(summary: Summary) -> Iterable[str]:
    for known in summary.known_failures:
        how = f"missed {known.n_missed} of {known.n}" if known.is_as_expected else "**passes now**"
        yield f"- {_cell(known.prompt_id)}, {_cell(known.target)}: {how}; {_cell(known.reason)}"


def _cell(text: str, width: int = CELL_WIDTH) -> str:
    """Make a foreign text harmless in Markdown: one line, no table bar, no HTML, no link, no mention."""
    if _LINKED.search(text):
        return code(text, width)
    line = one_line(text, width).replace("\\", "\\\\")
    for character in "|`*_[]#":
        line = line.replace(character, "\\" + character)
    return line.replace("<", "&lt;").replace(">", "&gt;")
