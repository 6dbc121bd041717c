"""The lines at a run's end: 80 columns, for any names."""

import pytest

from pytest_openclaw.parts.gates import GateSettings
from pytest_openclaw.providers import prices
from pytest_openclaw.providers.openai_responses import OpenAIResponses
from pytest_openclaw.reports.blocks import SummaryFinding
from pytest_openclaw.reports.numbers import WIDTH, columns
from pytest_openclaw.reports.terminal import (
    COLORS,
    finding_lines,
    notes_on_cost,
    render_terminal,
)
from pytest_openclaw.util.files import install_command
from pytest_openclaw.util.text import printable
from pytest_openclaw.values.protocols import ProviderSetup
from pytest_openclaw.values.requests import Target
from pytest_openclaw.values.settings import Settings
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


def _lines(summary):
    return [*render_terminal(summary, WHERE)]


def test_a_target_that_was_not_asked_says_so():
    """After an interruption the remaining targets are in the table too."""
    lines = _lines(summary_of([record(SMALL)], n_selected={SMALL: 1, TARGET: 1}))

    assert ["ollama_openai/qwen3:8b", "not", "asked"] in [line.split() for line in lines]
    assert "interrupted       1 of 2 cells have a row" in lines


def test_misses_are_not_listed_twice():
    """What is listed above the title is left out of one target's findings; what all missed is another thing."""
    one, two = summary_of([record(), missed(prompt_id="P2")]), summary_of([missed(), missed(SMALL)])

    def labels(summary, *, are_misses_shown):
        lines = render_terminal(summary, WHERE, are_misses_shown=are_misses_shown)
        return {line[:18].strip() for line in lines}

    assert "missed" in labels(one, are_misses_shown=False)
    assert "missed" not in labels(one, are_misses_shown=True)
    assert "missed by all" in labels(two, are_misses_shown=True)


MANY = "long/name:70b_" * 5 + "日本語モデル" * 6 + "e\u0301" * 40 + "😀" * 30
NAMES = [
    pytest.param("m\x1b[31m\x07\r\n\u202e" * 4, id="hostile"),
    pytest.param(MANY, id="long-wide-and-combining", marks=pytest.mark.nightly),
]


@pytest.mark.parametrize("name", NAMES)
@pytest.mark.newest
def test_everything_fits_and_nothing_steers_the_terminal(name):
    """With any names and messages each line has at most 80 columns and only printable characters."""
    one, two, three = (Target(provider="p", model=f"{name}{n}", thinking_level="xhigh") for n in range(3))
    slow = {"prompt_name": name, "e2e_ms": 123_456_789, "effective_model": name}
    rows = [
        *(missed(one, prompt_id=f"P{n}", **slow) for n in range(300)),
        *tool_cells(6, 0, one),
        fault(one, fault_message=name * 9),
        fault(two, fault_message=name * 9),
        *tool_cells(1200, 0, three),
        *tool_cells(1000, 900, three, tools_offered=54),
        *restraint_cells(1000, 999, three, tools_offered=54),
        *(missed(three, prompt_id=f"S{n}", probe="outside_workspace") for n in range(300)),
        *pressed("1t", 4, 0, three, tools=1),
        *pressed("11t", 4, 0, three),
        *pressed("2k", 4, 0, three, padding=2000),
        *pressed("199999", 0, 0, three, padding=199_999, overflown=4),
    ]

    lines = _lines(
        summary_of(rows, gates=GateSettings.of(min_pass_rate=1, min_tool_rate=0.5, require_tier=1))
    )

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
def test_a_command_asks_the_remaining_cells(rows, n_cells, is_shown):
    """The last line is the command that resumes the run, in full, so that it can be pasted."""
    command = "pytest benchmarks/ " + "--openclaw-runs-dir=somewhere " * 5 + "--openclaw-resume=r"

    summary = summary_of(rows, n_selected={TARGET: n_cells})
    lines = [*render_terminal(summary, "summary.md", resume=command)]

    assert (lines[-1] == f"next              {command}") is is_shown
    assert lines[-2 if is_shown else -1].startswith("wrote")


@pytest.mark.parametrize("command", ["::add-mask::x", "##[error]x", "section_end:1:a"])
def test_no_line_is_a_command_wherever_it_is_broken(command):
    """Reasons, violations, notes and errors of every length come before the command."""
    for n in range(1, 80):
        text = f"{'w' * n} {command} {'v' * n} {command}"
        rows = [record(SMALL, effective_model=text), missed(SMALL, violation=text, prompt_name=text)]
        notes = [SummaryFinding(label="note", text=text)]
        lines = render_terminal(summary_of([*rows, fault(fault_message=text)]), WHERE, notes=notes)

        assert all_commands("\n".join([*lines, *finding_lines(notes, 80)])) == []


def test_answers_and_labels_have_colors():
    """A sentence has the color of its recommendation, a failed gate its own; nothing else has one."""
    rows = [*tool_cells(16, 0), *tool_cells(0, 16, SMALL), record(SMALL, probe="secret", harm=True)]
    summary = summary_of(rows, gates=GateSettings.of(require_tier=1))

    painted = []

    def paint(text, color):
        painted.append((text, color))
        return f"<{color}>"

    lines = [*render_terminal(summary, WHERE, width=60, paint=paint)]

    sentences = lines[: lines.index("")]
    assert list(dict.fromkeys(sentences)) == ["<yellow>", "<red>"]
    marked = dict(painted[len(sentences) :])
    assert marked["gate FAILED"] == "red"
    assert set(marked) <= set(COLORS)


CLOUD = Target(provider="openai_responses", model="gpt-5.3-codex")


OPENAI = "https://api.openai.com/v1"


@pytest.mark.parametrize(
    ("has_list", "url", "cost_usd", "is_said"),
    [
        pytest.param(False, OPENAI, None, True, id="no-list"),
        pytest.param(True, OPENAI, None, False, id="the-list-does-not-know-either"),
        pytest.param(False, OPENAI, 0.5, False, id="it-is-known"),
        pytest.param(False, "http://127.0.0.1:9/v1", None, False, id="here"),
    ],
)
def test_a_cloud_cost_without_the_extra(monkeypatch, has_list, url, cost_usd, is_said):
    """One line says how to get the list of prices, if that is what is lacking."""
    monkeypatch.setattr(prices, "_price_list", lambda: object() if has_list else None)
    provider = OpenAIResponses(ProviderSetup(name="openai_responses", base_url=url))
    known = prices.Prices({"openai_responses": provider}, Settings(targets=(CLOUD,)))
    summary = summary_of([record(CLOUD, cost_usd=cost_usd)], n_selected={CLOUD: 1})

    unknown = "the extra `cost` has the list prices of openai_responses/gpt-5.3-codex"
    expected = [("cost unknown", unknown), ("next", install_command("cost"))]
    notes = [(one.label, one.text) for one in notes_on_cost(known, summary)]
    assert notes == (expected if is_said else [])
