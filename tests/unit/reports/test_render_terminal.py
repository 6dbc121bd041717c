"""The lines at a run's end: 80 columns, for any names."""

from __future__ import annotations

from dataclasses import replace

import pytest

from pytest_openclaw.reports.blocks import Finding
from pytest_openclaw.reports.numbers import WIDTH, columns
from pytest_openclaw.reports.terminal import COLORS, colored_lines, finding_lines, render_terminal
from pytest_openclaw.stats.summary import Summary
from pytest_openclaw.util.text import printable
from pytest_openclaw.values.requests import Target
from pytest_openclaw.values.rows import Record
from pytest_openclaw.values.settings import Gates
from tests.ci_systems import all_commands
from tests.unit.reports.summaries import (
    TARGET,
    fault,
    missed,
    pressed,
    record,
    restraint_cells,
    summary_of,
    tool_cells,
)

WHERE = "runs/20261121_233059/summary.md"
SMALL = Target(provider="llama_cpp", model="smollm2:135m")


def _lines(summary: Summary) -> list[str]:
    return render_terminal(summary, WHERE)


def _table(summary: Summary) -> list[str]:
    """The lines after the sentences."""
    lines = _lines(summary)
    return lines[lines.index("") + 1 :]


def test_a_target_that_was_not_asked_says_so() -> None:
    """After an interruption the remaining targets are in the table too."""
    lines = _table(summary_of([record(SMALL)], n_selected={SMALL: 1, TARGET: 1}))

    assert lines[2].split() == ["ollama_openai/qwen3:8b", "not", "asked"]
    assert "interrupted       1 of 2 cells have a row" in lines


HELD = [*pressed("1t", 4, 0, tools=1), *pressed("11t", 4, 0), *pressed("2k", 4, 0, padding=2000)]


def test_misses_are_not_listed_twice() -> None:
    """What is listed above the title is left out of one target's findings; what all missed is another thing."""
    one = summary_of([record(), missed(prompt_id="P2")])
    two = summary_of([missed(), missed(SMALL)])

    def _labels(summary: Summary) -> set[str]:
        return {line[:18].strip() for line in render_terminal(summary, WHERE, are_misses_shown=True)}

    assert "missed" not in _labels(one)
    assert "missed" in {line[:18].strip() for line in _lines(one)}
    assert "missed by all" in _labels(two)


LONG = "a-very-long-provider-name/with-a-model-name-that-goes-on-and-on:70b-instruct-q4_K_M"
NAMES = [
    pytest.param("m", id="short", marks=pytest.mark.nightly),
    pytest.param(LONG, id="long", marks=pytest.mark.nightly),
    pytest.param("日本語モデル" * 6, id="wide", marks=pytest.mark.nightly),
    pytest.param("e\u0301" * 40, id="combining", marks=pytest.mark.nightly),
    pytest.param("😀" * 30, id="emoji", marks=pytest.mark.nightly),
    pytest.param("m\x1b[31m\x07\r\n\u202e" * 4, id="hostile"),
]


@pytest.mark.parametrize("name", NAMES)
@pytest.mark.newest
def test_everything_fits_and_nothing_steers_the_terminal(name: str) -> None:
    """With any names and messages each line has at most 80 columns and only printable characters."""
    targets = [Target(provider="p", model=f"{name}{n}", thinking_level="xhigh") for n in range(3)]
    rows = [
        *(
            missed(targets[0], prompt_id=f"P{n}", prompt_name=name, e2e_ms=123_456_789, effective_model=name)
            for n in range(300)
        ),
        *tool_cells(6, 0, targets[0]),
        fault(targets[0], fault_message=name * 9),
        fault(targets[1], fault_message=name * 9),
        *tool_cells(1200, 0, targets[2]),
        *tool_cells(1000, 900, targets[2], tools_offered=54),
        *restraint_cells(1000, 999, targets[2], tools_offered=54),
        *(missed(targets[2], prompt_id=f"S{n}", probe="outside_workspace") for n in range(300)),
        *(
            replace(row, model=targets[2].model, provider="p", thinking_level="xhigh")
            for row in [*HELD, *pressed("199999", 0, 0, padding=199_999, overflown=4)]
        ),
    ]

    lines = _lines(summary_of(rows, gates=Gates(min_pass_rate=1, min_tool_rate=0.5, require_tier=1)))

    assert max(map(columns, lines)) <= WIDTH
    assert [printable(line) for line in lines] == lines


@pytest.mark.parametrize(
    ("rows", "n_cells", "is_shown"),
    [
        pytest.param([record()], 1, False, id="finished"),
        pytest.param([record()], 2, True, id="interrupted"),
        pytest.param([record(), fault()], 2, True, id="unavailable"),
        pytest.param([missed()], 1, False, id="missed"),
    ],
)
def test_what_is_left_to_ask_has_its_command(rows: list[Record], n_cells: int, is_shown: bool) -> None:
    """The last line is the command that resumes the run, in full, so that it can be pasted."""
    command = "pytest benchmarks/ " + "--openclaw-runs-dir=somewhere " * 5 + "--openclaw-resume=r"

    lines = render_terminal(summary_of(rows, n_selected={TARGET: n_cells}), "summary.md", resume=command)

    assert (lines[-1] == f"next              {command}") is is_shown
    assert lines[-2 if is_shown else -1].startswith("wrote")


@pytest.mark.parametrize("command", ["::add-mask::x", "##[error]x", "section_end:1:a"])
def test_no_line_is_a_command_wherever_it_is_broken(command: str) -> None:
    """Reasons, violations, notes and errors of every length come before the command."""
    for n in range(1, 80):
        text = f"{'w' * n} {command} {'v' * n} {command}"
        rows = [record(SMALL, effective_model=text), missed(SMALL, violation=text, prompt_name=text)]
        notes = [Finding(label="note", text=text)]
        lines = render_terminal(summary_of([*rows, fault(fault_message=text)]), WHERE, notes=notes)

        assert all_commands("\n".join([*lines, *finding_lines(notes, 80)])) == []


def test_answers_and_labels_have_colors() -> None:
    """A sentence has the color of its recommendation, a failed gate its own; nothing else has one."""
    rows = [*tool_cells(16, 0), *tool_cells(0, 16, SMALL), record(SMALL, probe="secret", harm=True)]
    summary = summary_of(rows, gates=Gates(require_tier=1))

    lines = [*colored_lines(summary, WHERE, width=60)]

    n_sentences = next(n for n, line in enumerate(lines) if not line.text)
    colors = [line.color for line in lines[:n_sentences]]
    assert sorted(set(colors), key=colors.index) == ["yellow", "red"]
    marked = {line.text.strip(): line.color for line in lines[n_sentences:] if line.color}
    assert marked["gate FAILED"] == "red"
    assert set(marked) <= set(COLORS)
