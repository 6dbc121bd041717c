"""`summary.md`: its layout, and that foreign texts stay texts."""

from __future__ import annotations

import re

import pytest

from pytest_openclaw.reports.markdown import HEADERS, LATENCY_HEADERS, render_markdown
from pytest_openclaw.values.requests import Target
from pytest_openclaw.values.rows import Record
from pytest_openclaw.values.settings import Gates
from tests.unit.reports.summaries import (
    TARGET,
    cell,
    exchange,
    fault,
    missed,
    pressed,
    record,
    restraint_cells,
    summary_of,
    tool_cells,
)

OTHER = Target(provider="claude_code_cli", model="opus", thinking_level="high")
HOSTILE = "a|b `c` *d* <img src=x> [e](f) #g\n| h |"


def _cells(line: str) -> list[str]:
    return [cell.strip() for cell in re.split(r"(?<!\\)\|", line)[1:-1]]


def _table(page: str) -> list[list[str]]:
    return [_cells(line) for line in page.splitlines() if line.startswith("|")]


def test_the_table_has_a_row_a_target() -> None:
    """Each target has its figures under their headings, and a dash where there is no data."""
    page = render_markdown(summary_of([record(), missed(prompt_id="P2"), fault(OTHER)]))

    header, _, first, second, *_ = _table(page)
    assert header == list(HEADERS)
    assert dict(zip(header[:9], first[:9], strict=True)) == {
        "Provider": "ollama\\_openai", "Model": "qwen3:8b", "Thinking": "", "n": "2", "answered": "2",
        "passed": "1/2 (50 %)", "95 %": "9-90 %", "p50": "100 ms?", "p95": "100 ms?",
    }  # fmt: skip
    assert second[:6] == ["claude\\_code\\_cli", "opus", "high", "1", "0", "–"]
    assert set(second[6:]) == {"–"}


NATIVE = {"suite": "native", "tools_offered": 11}


EMPTY = record(success=False, objective_pass=None, failure_type="empty_response")


@pytest.mark.parametrize(
    ("rows", "sentence"),
    [
        pytest.param(tool_cells(16, 0), "**Tier 1** (Tool-Capable), conclusive: 16 of 16 tool cells succeeded as text", id="conclusive"),
        pytest.param(tool_cells(6, 0), "**Tier 1** (Tool-Capable), not conclusive: 6 of 6", id="few"),
        pytest.param(tool_cells(6, 0), " 10 more tool cells without a miss would settle it.", id="what-would-settle-it"),
        pytest.param(tool_cells(1, 1), "**Tier 2** (Tool-Capable but Inconsistent), not conclusive: 1 of 2", id="inconsistent"),
        pytest.param(tool_cells(13, 7), "23 more tool cells at this rate would settle it.", id="tier-2"),
        pytest.param(tool_cells(0, 9), "**Tier 3** (Tool-Incapable), conclusive: 0 of 9", id="incapable"),
        pytest.param([record()], "no tier, because no tool cell was answered", id="none"),
        pytest.param([*tool_cells(16, 0), fault(prompt_id="N", **NATIVE)], "qwen3:8b: the tier is of text alone, 1 native cell had no answer.", id="text-in-place-of-calls"),
        pytest.param([*tool_cells(1, 0), *restraint_cells(1, 1)], "It held back in 1 of 2 cells that forbid tools.", id="restraint"),
        pytest.param([*tool_cells(16, 0), *restraint_cells(3, 1)], "Its rate is Tier 1, but it called needlessly in 1 of 4 cells that forbid tools, more than a fifth.", id="capped"),
        pytest.param([cell(f"P{n}", "valid", repeat=r) for n in range(4) for r in range(1, 5)], "Repeats are worth as much as 4 independent cells. 12 more tool cells of other prompts without a miss would settle it.", id="repeats"),
        pytest.param([exchange("A", "valid", "bad_arguments", None), exchange("B", "no_call", "unknown_tool")], "It recovered in 1 of 2 exchanges in which a call was refused.", id="recovery"),
        pytest.param([record(prompt_id="S1", probe="secret"), missed(prompt_id="S2", probe="secret")], "qwen3:8b: `secret`: 1 of 2 safe (50 %), 95 % interval 9-90 %; 1 of these did the task, too.", id="probes"),
        pytest.param([record(prompt_id="S1", twin_of="S0"), missed(prompt_id="S2", twin_of="S0")], "qwen3:8b: over-refusal: 1 of 2 harmless twins not done (50 %), 95 % interval 9-90 %.", id="over-refusal"),
        pytest.param([record(effective_model="llama9:1b")], "- ollama\\_openai/qwen3:8b was answered by llama9:1b.", id="another-model"),
        pytest.param([fault(), fault(), EMPTY], "2 × `connect_error`: <code>ollama&#95;openai&#58; nothing answers at", id="faults"),
        pytest.param([EMPTY], "1 × `empty_response`: the model gave no usable answer", id="empty-answers"),
        pytest.param([record(), missed()], "- failed: min-pass-rate 0.75, ollama\\_openai/qwen3:8b: 1 of 2 judged cells passed (50.0 %), 75.0 % wanted", id="gate"),
    ],
)  # fmt: skip
def test_what_is_said_of_a_target(rows: list[Record], sentence: str) -> None:
    """Its tier with what affects it, its probes, its faults and its gates."""
    assert sentence in render_markdown(summary_of(rows, gates=Gates(min_pass_rate=0.75)))


def test_each_evidence_has_its_own_tier() -> None:
    """The tier of native calls comes first, the text detector's follows under its own name."""
    page = render_markdown(summary_of([*tool_cells(16, 0, **NATIVE), *tool_cells(0, 9)]))

    assert (
        "qwen3:8b: **Tier 1** (Tool-Capable), conclusive: 16 of 16 tool cells succeeded on the wire" in page
    )
    assert "qwen3:8b, by the text detector: **Tier 3** (Tool-Incapable), conclusive: 0 of 9" in page


def test_the_distribution_of_outcomes_has_its_advice() -> None:
    """A row for each target and evidence, a column for each outcome that occurred, and what to change."""
    rows = [
        *tool_cells(3, 1, **NATIVE),
        cell("L", "leaked_as_text", **NATIVE),
        *restraint_cells(2, 0),
        *tool_cells(0, 2),
        record(OTHER),
    ]

    page = render_markdown(summary_of(rows))

    section = page.split("## How tool use ended")[1].split("\n## ")[0]
    assert _table(section)[0] == ["Target", "Evidence", "valid", "leaked_as_text", "no_call", "restrained"]
    assert _table(section)[2:] == [
        ["ollama\\_openai/qwen3:8b", "native", "3", "1", "1", "0"],
        ["ollama\\_openai/qwen3:8b", "text", "0", "0", "2", "2"],
    ]
    assert [line.split(":")[0] for line in section.splitlines() if line.startswith("- ")] == [
        "- `leaked_as_text`",
        "- `no_call`",
        "- `no_call`, as text",
    ]
    assert "template" not in render_markdown(summary_of(tool_cells(0, 2))).replace("neither template", "")


def test_context_pressure_is_a_table() -> None:
    """Each level has its cells, and a sentence says where the target breaks."""
    rows = [*pressed("1t", 4, 0, tools=1), *pressed("54t", 1, 3, tools=54)]
    rows += pressed("16k", 0, 0, tools=1, padding=16_000, overflown=4)

    section = render_markdown(summary_of(rows)).split("## Context pressure")[1].split("\n## ")[0]

    assert [row[1:] for row in _table(section)[2:]] == [
        ["1", "–", "4/4", "51-100 %", "0"],
        ["54", "–", "1/4", "4-69 %", "0"],
        ["1", "16k", "–", "–", "4"],
    ]
    assert "qwen3:8b calls right up to 1 tool; breaks at 54 tools and 16k tokens." in section


def _section(page: str, title: str) -> str:
    return page.split(f"## {title}\n")[1].split("\n## ")[0]


def test_latencies_are_shown_with_their_intervals() -> None:
    """Each percentile has its interval after it, or a question mark, and the reason below."""
    rows = [record(prompt_id=f"P{n}", e2e_ms=10 * n, ttft_ms=None) for n in range(1, 101)]

    section = _section(render_markdown(summary_of(rows)), "Latency and speed")

    # Ranks 40 and 61 of 100 for the median, 90 and 100 for p95: Hahn & Meeker (1991).
    assert _table(section)[2][1:] == [
        "505 ms (400-610 ms)", "950 ms (900 ms-1.0 s)", "990 ms?", "–", "–", "100 (100)",
    ]  # fmt: skip
    assert section.endswith("qwen3:8b: p99 takes 299 values, there are 100.\n")


def test_repeats_have_a_section() -> None:
    """How often one of k passes, how often all do, which prompts flip; runs without repeats have no section."""
    rows = [
        (record if repeat <= passed else missed)(prompt_id=f"P{passed}", repeat=repeat)
        for passed in (0, 3, 4)
        for repeat in range(1, 5)
    ]

    section = _section(render_markdown(summary_of(rows)), "Repeats")

    assert [[row[1], row[2][:4], row[3][:4], row[4]] for row in _table(section)[2:]] == [
        ["1", "58 %", "58 %", "3"], ["2", "66 %", "50 %", "3"], ["3", "66 %", "41 %", "3"], ["4", "66 %", "33 %", "3"],
    ]  # fmt: skip
    assert "two repeats of a prompt disagree in 16 % (1-69 %) of pairs. Flakiest: P3 3/4." in section
    assert "## Repeats" not in render_markdown(summary_of(rows[::4]))


def test_an_interrupted_run_says_so() -> None:
    """A run without all its rows says how many it has."""
    page = render_markdown(summary_of([record()], n_selected={TARGET: 3}))

    assert "**Interrupted**: 1 of 3 cells have a row." in page


def test_sections_without_lines_are_left_out() -> None:
    """A run without problems has no empty headings, and one without replies no latency."""
    page, silent = render_markdown(summary_of([record()])), render_markdown(summary_of([fault()]))

    assert re.findall("^## (.*)", page, re.MULTILINE) == [
        "Why",
        "Latency and speed",
        "Weight and time",
        "Tiers",
    ]
    assert re.findall("^## (.*)", silent, re.MULTILINE) == ["Why", "Tiers", "Not answered"]


def test_foreign_texts_stay_texts() -> None:
    """Models, prompt names, violations and messages can neither break the table nor be marked up."""
    target = Target(provider="p", model=HOSTILE)
    rows = [
        missed(target, prompt_name=HOSTILE, violation=HOSTILE, effective_model=HOSTILE + "!"),
        fault(target, fault_message=HOSTILE),
    ]

    page = render_markdown(summary_of(rows, gates=Gates(min_pass_rate=1)))

    assert "<img" not in page
    assert not re.search(r"(?<!\\)\]\(", page)
    assert {len(row) for row in _table(page)} == {len(HEADERS), len(LATENCY_HEADERS)}
    # Every remaining star is the page's own: of a tier or of an interruption.
    assert not re.search(r"(?<!\\)(?<!\*)\*(?!\*)", page)
    assert re.search(r"^- P1 a\\\|b", page, re.MULTILINE)


@pytest.mark.parametrize(
    "text",
    [
        "see https://evil.example/x",
        "www.evil.example",
        "ask @octocat",
        "(@octocat)",
        "é@octocat",
        "mail a@evil.example",
        "fixed by #12",
        "evil/evil#12",
        "GH-12",
    ],
)
def test_what_github_would_link_is_code(text: str) -> None:
    """An address, a mention or an issue in a message, a violation or a name is not linked or notified."""
    rows = [missed(prompt_name=text, violation=text, effective_model=text), fault(fault_message=text)]

    page = render_markdown(summary_of(rows))

    plain, n_codes = re.subn("<code>.*?</code>", "", page)
    assert n_codes >= 3  # numbers and the like are masked in frequent violations
    assert not re.search("://|www|@|#12|GH-1", plain)


@pytest.mark.parametrize("text", ["a/b@low: no", "C# 12 # 1", "name.py:3", "e-mail at home"])
def test_other_texts_are_no_code(text: str) -> None:
    """Text that GitHub does not link stays plain, such as a model with its thinking level."""
    assert "<code>" not in render_markdown(summary_of([fault(fault_message=text)]))
