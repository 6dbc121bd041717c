"""The lines at a run's end: 80 columns, for any names."""

from __future__ import annotations

import re
from dataclasses import replace

import pytest
from hypothesis import given
from hypothesis import strategies as st

from pytest_openclaw.reports.numbers import WIDTH, columns
from pytest_openclaw.reports.terminal import COLORS, colored, render_complaints, render_terminal
from pytest_openclaw.stats.summary import Summary
from pytest_openclaw.util.text import printable
from pytest_openclaw.values.requests import Target
from pytest_openclaw.values.rows import Record
from pytest_openclaw.values.settings import Gates
from tests.ci_systems import all_commands
from tests.unit.reports.summaries import (
    TARGET,
    cell,
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


def _shown(*records: Record) -> str:
    return "\n".join(_lines(summary_of(records)))


def test_a_target_has_its_figures_in_one_line() -> None:
    """Passed cells, their interval, latencies, speed, tier and tool cells are side by side."""
    header, line, *_ = _table(summary_of([record(e2e_ms=1200), *tool_cells(16, 0)]))

    assert header.split() == ["target", "passed", "95%", "CI", "p50", "p95", "TTFT", "tok/s", "tier", "tools"]
    assert line.split() == [
        "ollama_openai/qwen3:8b",
        "17/17",
        "81-100",
        "%",
        "100",
        "ms",
        "320",
        "ms?",
        "20",
        "ms",
        "100",
        "1",
        "16/16",
    ]


def test_intervals_are_below_the_figures() -> None:
    """Each figure with an interval has it there; one without has a question mark, and is not listed."""
    rows = [record(prompt_id=f"P{n}", e2e_ms=100 * n, ttft_ms=20 + n, tokens_per_s=n) for n in range(1, 7)]
    _, six, intervals, other, *_ = _table(
        summary_of([*rows, record(SMALL, tokens_per_s=None), *tool_cells(16, 0, SMALL)])
    )

    assert six.split()[4:] == ["350", "ms", "575", "ms?", "24", "ms", "4", "–"]
    assert intervals == "  95 %: p50 100-600 ms, TTFT 21-26 ms, 1-6 tok/s"
    assert other.startswith("llama_cpp/smollm2:135m")


def test_a_target_of_few_cells_has_no_line_of_intervals() -> None:
    """If no figure has an interval, there is no line below the row."""
    _, line, empty, *_ = _table(summary_of([record()]))

    assert line.split()[-2:] == ["100?", "–"]
    assert empty == ""


def test_prompts_that_flip_are_named() -> None:
    """The flakiest come first, with the repeats that passed; steady prompts and single ones are not named."""
    rows = [
        (record if repeat <= passed else missed)(prompt_id=f"P{passed}", repeat=repeat)
        for passed in (0, 1, 3, 5)
        for repeat in range(1, 6)
    ]

    assert "flaky             P3 3/5, P1 1/5" in _lines(summary_of(rows))
    assert "flaky" not in _shown(*rows[::5])


def test_no_data_is_a_dash() -> None:
    """A target without streaming, validators or tool cells has dashes, never zeros."""
    _, line, *_ = _table(summary_of([record(objective_pass=None, ttft_ms=None, tokens_per_s=None)]))

    assert line.split() == ["ollama_openai/qwen3:8b", "–", "–", "100", "ms?", "100", "ms?", "–", "–", "–"]


def test_a_target_without_an_answer_has_its_reason() -> None:
    """The reason replaces a row of dashes."""
    lines = _table(summary_of([record(SMALL), fault()]))

    assert lines[2:4] == [
        "ollama_openai/qwen3:8b ollama_openai: nothing answers at",
        "                       http://127.0.0.1:11434/v1 (refused).",
    ]


def test_a_target_that_was_not_asked_says_so() -> None:
    """After an interruption the remaining targets are in the table too."""
    lines = _table(summary_of([record(SMALL)], n_selected={SMALL: 1, TARGET: 1}))

    assert lines[2].split() == ["ollama_openai/qwen3:8b", "not", "asked"]
    assert "interrupted       1 of 2 cells have a row" in lines


def test_no_answer_at_all_is_said_in_one_line() -> None:
    """A run without an answered cell has no verdict, and no findings about models."""
    shown = _shown(fault(), fault())

    assert "no verdict        no cell was answered" in shown
    assert "missed" not in shown
    assert "slowest" not in shown


@pytest.mark.parametrize(
    ("gates", "label", "reason"),
    [
        (Gates(min_pass_rate=0.5), "gate passed", "1 of 2 judged cells passed (50.0 %), 50.0 % wanted"),
        (Gates(min_pass_rate=0.9), "gate FAILED", "1 of 2 judged cells passed (50.0 %), 90.0 % wanted"),
        (Gates(min_tool_rate=0.9), "gate NO VERDICT", "no answered cell counts for it (0 tool cells)"),
    ],
    ids=["passed", "failed", "no-verdict"],
)  # fmt: skip
def test_a_gate_has_its_ruling_and_its_reason(gates: Gates, label: str, reason: str) -> None:
    """A gate's line names it and its target; the reason is below."""
    lines = _lines(summary_of([record(), missed()], gates=gates))

    (at,) = (number for number, line in enumerate(lines) if line.startswith(label))
    assert "ollama_openai/qwen3:8b" in lines[at]
    assert lines[at + 1].strip() == reason


def test_the_findings() -> None:
    """Prompts that no target passed, slow cells, inconclusive tiers, other models, and the run's path."""
    rows = [
        *tool_cells(6, 0),
        missed(prompt_id="P7", e2e_ms=9800, prompt_name="long_operator", effective_model="other"),
    ]

    shown = _shown(*rows)

    assert "missed            1 prompt: P7" in shown
    assert "slowest           P7 long_operator: 9.8 s\n" in shown
    assert "10 more tool cells without a miss would settle tier 1" in " ".join(shown.split())
    assert "answered by       other instead of ollama_openai/qwen3:8b" in shown
    assert shown.endswith(f"wrote             {WHERE}")


NATIVE = {"suite": "native", "tools_offered": 11}
LEAKED = cell("L", "leaked_as_text", **NATIVE)
HELD = [*pressed("1t", 4, 0, tools=1), *pressed("11t", 4, 0), *pressed("2k", 4, 0, padding=2000)]


def test_the_figure_is_native_if_there_is_one() -> None:
    """Native calls are in the table, results of the text detector are not."""
    _, line, *_ = _table(summary_of([*tool_cells(16, 0, **NATIVE), *tool_cells(0, 9)]))

    assert line.split()[-2:] == ["1", "16/16"]


@pytest.mark.parametrize(
    ("rows", "found"),
    [
        pytest.param([*tool_cells(13, 7, **NATIVE)], ["not conclusive    23 more tool cells at this rate would settle tier 2\n"], id="tier-2"),
        pytest.param(
            [cell(f"P{n}", "valid", repeat=r, **NATIVE) for n in range(4) for r in range(1, 5)],
            [
                "not conclusive    12 more tool cells of other prompts without a miss would",
                "settle tier 1\n",
            ],
            id="repeats",
        ),
        pytest.param(
            [*tool_cells(16, 0, **NATIVE), *restraint_cells(5, 3, **NATIVE)],
            [
                "not tier 1        it called needlessly in 3 of 8 cells that forbid tools, more",
                "than a fifth",
                "more cells at these rates would",
            ],
            id="capped",
        ),
        pytest.param([*tool_cells(16, 0, **NATIVE), replace(LEAKED, leaked_valid=True)], ["leaked_as_text    1 of 17 cells;\n", "written calls     1 of 1 written call is right"], id="advice"),
        pytest.param([*tool_cells(16, 0, **NATIVE), *restraint_cells(8, 1, **NATIVE)], ["called_needlessly 1 of 9 cells;\n"], id="advice-on-restraint"),
        pytest.param([*tool_cells(16, 0), fault(prompt_id="N", **NATIVE)], ["text alone        the tier is of text alone, 1 native cell had no answer\n"], id="text-alone"),
        pytest.param(tool_cells(16, 0), ["text alone        tiers rest on calls found in texts, not on calls on the wire;\n"], id="another-kind-of-evidence"),
        pytest.param([*HELD, *pressed("54t", 1, 3, tools=54)], ["context           calls right up to 11 tools and 2k tokens; breaks at 54 tools\n"], id="context"),
        pytest.param([*HELD, *pressed("16k", 0, 0, padding=16_000, overflown=4)], ["calls right up to 11 tools and 2k tokens; breaks at 16k tokens"], id="overflow"),
        pytest.param(HELD, ["context           calls right up to 11 tools and 2k tokens\n"], id="holds"),
        pytest.param(pressed("1t", 1, 3, tools=1), ["calls right in 1 of 4 cells without any pressure"], id="never-right"),
        pytest.param(pressed("1t", 0, 0, tools=1, overflown=4), ["context           breaks at 1 tool"], id="never-fits"),
        pytest.param(
            [
                record(prompt_id="S1", probe="injection"),
                missed(prompt_id="S2", probe="injection"),
                missed(prompt_id="S3", probe="secret"),
            ],
            ["ollama_openai/qwen3:8b: unsafe: did harm in 2 of 3 safety probes (injection"],
            id="unsafe",
        ),
        pytest.param(
            [missed(prompt_id="S1", probe="injection", harm=False), missed(prompt_id="S2", twin_of="S1")],
            ["over-refusal      1 of 1 harmless twins of probes not done\n"],
            id="over-refusal",
        ),
    ],
)  # fmt: skip
def test_what_is_found_of_tool_use(rows: list[Record], found: list[str]) -> None:
    """Each finding is a line or two: why not Tier 1, advice, where it breaks, what was unsafe."""
    shown = _shown(record(), *rows)

    for text in found:
        assert text in shown


@pytest.mark.parametrize(
    ("rows", "label"),
    [
        pytest.param([*tool_cells(16, 0), *restraint_cells(4, 0)], "not ", id="nothing-wrong"),
        pytest.param(tool_cells(16, 0, **NATIVE), "text alone", id="on-the-wire"),
        pytest.param([record(prompt_id="S1", probe="secret")], "unsafe", id="safe"),
        pytest.param([missed(prompt_id="S1", probe="secret", harm=False)], "unsafe", id="safe-not-done"),
        pytest.param([record(prompt_id="S2", twin_of="S1")], "over-refusal", id="twin-done"),
        pytest.param([fault(prompt_id="X-1t", pressure_of="X", tools_offered=1), record()], "context", id="no-server"),
    ],
)  # fmt: skip
def test_a_normal_result_is_not_reported(rows: list[Record], label: str) -> None:
    """A normal result has no line."""
    lines = _lines(summary_of(rows))[2:]

    assert [line for line in lines if line.startswith(label) and not line.startswith("not answered")] == []


def test_findings_name_their_target_among_several() -> None:
    """With more than one target each line names its own."""
    shown = _shown(record(SMALL), *HELD)

    assert "context           ollama_openai/qwen3:8b: calls right up to 11 tools and 2k" in shown


def test_a_label_of_several_targets_is_printed_once() -> None:
    """Their names are short as in the table; counts with the same advice share its line."""
    targets = [Target(provider="p", model=name) for name in "ab"]
    rows = [row for target in targets for row in tool_cells(13, 7, target, **NATIVE)]

    lines = _lines(summary_of(rows))

    labels = [line[:18].strip() for line in lines[lines.index("", lines.index("") + 1) :]]
    assert labels.count("not conclusive") == 1
    at = labels.index("not conclusive") + len(lines) - len(labels)
    assert [line[18:].partition(":")[0] for line in lines[at : at + 2]] == ["a", "b"]
    assert f"{'no_call':<18}a: 7 of 20 cells; b: 7 of 20 cells;" in lines


def test_misses_are_not_listed_twice() -> None:
    """What is listed above the title is left out of one target's findings; what all missed is another thing."""
    one = summary_of([record(), missed(prompt_id="P2")])
    two = summary_of([missed(), missed(SMALL)])

    def _labels(summary: Summary) -> set[str]:
        return {line[:18].strip() for line in render_terminal(summary, WHERE, are_misses_shown=True)}

    assert "missed" not in _labels(one)
    assert "missed" in {line[:18].strip() for line in _lines(one)}
    assert "missed by all" in _labels(two)


def test_long_answers_begin_with_one_for_all() -> None:
    """Where the sentences take more than five lines, the first lines name the targets of each kind."""
    targets = [Target(provider="p", model=f"m{n}") for n in range(4)]
    rows = [
        row for n, target in enumerate(targets) for row in tool_cells(16 - 4 * n, 4 * n, target, **NATIVE)
    ]
    rows.append(record(targets[3], probe="secret", harm=True))
    summary = summary_of(rows)

    first, *rest = render_terminal(summary, WHERE, width=60)

    assert first.startswith("in short: ")
    said = " ".join([first, *(line.strip() for line in rest[: rest.index("")])]).partition("p/m0: ")[0]
    assert all(f"m{n}" in said for n in range(4))
    assert "; unsafe: m3" in said
    parts = [part for line in colored([first, *rest], summary.groups) for part in line]
    assert parts[0][1] == {"bold": True}
    assert not render_terminal(summary_of(tool_cells(16, 0, **NATIVE)), WHERE, width=60)[0].startswith(
        "in short"
    )


def test_one_cell_is_not_many() -> None:
    """A single cell is counted in the singular."""
    assert "not answered      1 cell: ollama_openai: nothing answers" in _shown(record(), fault())


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


@pytest.mark.parametrize("name", [name for name in NAMES if name.id != "short"])
def test_columns_are_aligned(name: str) -> None:
    """Names of any width leave the figures in their columns."""
    targets = [Target(provider="p", model="m"), Target(provider="p", model=name)]

    header, *lines = _table(summary_of([record(target) for target in targets]))[:3]

    assert {columns(line[: line.index("1/1")]) for line in lines} == {
        columns(header[: header.index("passed")]) + 3
    }


def test_many_targets_have_a_line_each() -> None:
    """Forty targets are forty lines, in the order of the command line; the provider of all is in the head."""
    targets = [Target(provider="p", model=f"m{n}") for n in range(40)]

    lines = _table(summary_of([record(target) for target in targets]))

    assert [line.split()[0] for line in lines[:41]] == ["target", *(target.model for target in targets)]
    assert lines[0].startswith("target p/… ")


@given(text=st.text(max_size=400))
def test_any_message_fits(text: str) -> None:
    """Whatever a server's message is, the page keeps its form."""
    lines = _lines(summary_of([record(), fault(fault_message=text or "x")], gates=Gates(min_pass_rate=1)))

    assert all(columns(line) <= WIDTH for line in lines)


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

    lines = render_terminal(summary_of(rows, n_selected={TARGET: n_cells}), "summary.md", command)

    assert (lines[-1] == f"next              {command}") is is_shown
    assert lines[-2 if is_shown else -1].startswith("wrote")


def test_costs_have_a_column() -> None:
    """A charged target has its price in its row, another one a dash or zero."""
    free, unknown = Target(provider="llama_cpp", model="smol"), Target(provider="lab", model="x")
    rows = [record(cost_usd=0.25), record(prompt_id="P2", cost_usd=0.5)]
    more = [record(free, cost_usd=0.0), record(unknown, cost_usd=None)]

    charged, not_charged = (_table(summary_of(some)) for some in ([*rows, *more], more))

    assert charged[0].split() == [
        "target",
        "passed",
        "95%",
        "CI",
        "p50",
        "p95",
        "TTFT",
        "tok/s",
        "USD",
        "tier",
    ]
    assert [line.split()[-2] for line in charged[1:4]] == ["0.75", "0.00", "–"]
    assert "cost              0.75 USD, ollama_openai/qwen3:8b" in charged
    assert "USD" not in "\n".join(not_charged)


def test_gates_of_one_reason_are_listed_together_and_failed_ones_first() -> None:
    """An unavailable target is named once, however many gates are set."""
    away = Target(provider="lab", model="away")
    rows = [fault(away, fault_message="no server is there"), record(), missed(prompt_id="P2")]

    lines = _lines(summary_of(rows, gates=Gates(min_pass_rate=0.4, max_p95_ms=1)))

    assert [line for line in lines if line.startswith("gate ")] == [
        "gate FAILED       max-p95-ms 1, ollama_openai/qwen3:8b",
        "gate NO VERDICT   min-pass-rate 0.4, max-p95-ms 1, lab/away",
        "gate passed       min-pass-rate 0.4, ollama_openai/qwen3:8b",
    ]
    assert sum("no server is there" in line for line in lines if line.startswith(" " * 18)) == 1


@pytest.mark.parametrize("command", ["::add-mask::x", "##[error]x", "section_end:1:a"])
def test_no_line_is_a_command_wherever_it_is_broken(command: str) -> None:
    """Reasons, violations, notes and errors of every length come before the command."""
    for n in range(1, 80):
        text = f"{'w' * n} {command} {'v' * n} {command}"
        rows = [record(SMALL, effective_model=text), missed(SMALL, violation=text, prompt_name=text)]
        lines = render_terminal(summary_of([*rows, fault(fault_message=text)]), WHERE, notes=[("", text)])

        assert all_commands("\n".join([*lines, *render_complaints([text])])) == []


LONG = Target(provider="ollama_native", model="hf.co/bartowski/Qwen2.5-Coder-32B-Instruct-GGUF:Q4_K_M")
ALWAYS = ["target", "passed", "tier", "tools"]


@pytest.mark.parametrize(
    ("width", "heads", "is_whole"),
    [
        pytest.param(60, [*ALWAYS[:2], "95% CI", "p50", *ALWAYS[2:]], False, id="60"),
        pytest.param(80, [*ALWAYS[:2], "95% CI", "p50", "p95", "TTFT", "USD", *ALWAYS[2:]], False, id="80"),
        pytest.param(140, [*ALWAYS[:2], "95% CI", "p50", "p95", "TTFT", "tok/s", "USD", *ALWAYS[2:]], True, id="140"),
    ],
)  # fmt: skip
def test_the_table_is_as_wide_as_the_terminal(width: int, heads: list[str], is_whole: bool) -> None:
    """No row is wider; columns are left out by priority, and a wide terminal cuts no name."""
    summary = summary_of([*tool_cells(16, 3, LONG), *tool_cells(16, 3, SMALL, cost_usd=0.12345)])

    lines = render_terminal(summary, WHERE, width=width)

    table = lines[lines.index("") + 1 :]
    assert re.split(r" {2,}| (?=p50|p95|TTFT|tok/s|USD|95%|tier|tools)", table[0]) == heads
    assert max(map(columns, lines)) <= width
    assert (LONG.label in table[1]) is is_whole


def test_answers_tiers_and_labels_have_colors() -> None:
    """A sentence has the color of its recommendation, a tier and a failed gate theirs; nothing else has one."""
    rows = [*tool_cells(16, 0), *tool_cells(0, 16, SMALL), record(SMALL, probe="secret", harm=True)]
    summary = summary_of(rows, gates=Gates(require_tier=1))
    lines = render_terminal(summary, WHERE, width=60)

    parts = [part for line in colored(lines, summary.groups) for part in line]

    assert "".join(text for text, _ in parts) == "".join(lines)
    marked = [(text.rstrip("?"), *markup) for text, markup in parts if markup]
    n_sentences = lines.index("")
    colors = [color for _, color in marked[:n_sentences]]
    assert sorted(set(colors), key=colors.index) == ["bold", "yellow", "red"]
    assert colors.index("red") == next(n for n, line in enumerate(lines) if line.startswith(SMALL.label))
    assert marked[n_sentences : n_sentences + 2] == [("1", "green"), ("3", "red")]
    assert ("gate FAILED", "red") in marked
    assert all(text in {"1", "3"} or text in COLORS for text, _ in marked[n_sentences:])


def test_the_answer_comes_first() -> None:
    """A sentence for each target is above the table; what does not fit on a line is indented below it."""
    summary = summary_of([*tool_cells(16, 0, **NATIVE), record(SMALL)])

    lines = _lines(summary)

    sentences = lines[: lines.index("")]
    if sentences[0].startswith("in short: "):
        sentences = sentences[next(n for n, line in enumerate(sentences) if "/" in line.partition(": ")[0]) :]
    starts = [line for line in sentences if not line.startswith("  ")]
    assert [line.partition(": ")[0] for line in starts] == [group.target.label for group in summary.groups]
    assert " ".join(line.strip() for line in sentences) == " ".join(
        f"{group.target.label}: {group.recommendation.sentence}" for group in summary.groups
    )
