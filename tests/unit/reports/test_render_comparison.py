"""Two runs compared, in words."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest

from pytest_openclaw.reports.comparison import in_short, render_comparison, render_p
from pytest_openclaw.reports.markdown import render_markdown
from pytest_openclaw.reports.numbers import columns
from pytest_openclaw.reports.terminal import render_terminal
from pytest_openclaw.stats.comparison import Obstacle, Obstacles
from tests.unit.reports.summaries import TARGET, fault, record, summary_of
from tests.unit.stats.compared import cells, compare


@pytest.mark.parametrize(
    ("p", "shown"),
    [(1.0, "1.00"), (0.5, "0.50"), (0.0312, "0.03"), (0.0496, "0.050"), (0.04996, "0.050"), (0.0042, "0.004"), (0.00031, "0.0003"), (0.00001, "< 0.0001")],
)  # fmt: skip
def test_p_is_short(p: float, shown: str) -> None:
    """It has two digits, or as many as it needs to be more than zero."""
    assert render_p(p) == shown


@pytest.mark.parametrize(
    ("base", "candidate", "said"),
    [
        pytest.param(cells("+" * 9), cells("+" * 2 + "-" * 7), "9/9 -> 2/9, p 0.02", id="worse"),
        pytest.param(cells("-" * 9), cells("+" * 9), "0/9 -> 9/9, p 0.004", id="better"),
        pytest.param(cells("+++"), cells("++-"), "3/3 -> 2/3, p 1.00", id="no-difference"),
        pytest.param(cells("oo"), cells("oo"), "no judged cell could be compared", id="nothing-judged"),
        pytest.param(cells("o" * 6), cells("o" * 6, e2e_ms=250, ttft_ms=10, output_tokens=18), "no judged cell could be compared; 2.5x slower; TTFT 2x faster; 2x more output tokens", id="ratios"),
    ],
)  # fmt: skip
def test_a_target_in_one_line(base: Any, candidate: Any, said: str) -> None:
    """Verdicts and other differences."""
    (one,) = compare(base, candidate).targets

    assert in_short(one) == said


def test_everything_is_reported() -> None:
    """Every figure, the excluded cells with the option to include them, and the notes."""
    base = [*cells("+" * 9, host="a"), record(prompt_id="Q"), fault(prompt_id="F")]
    candidate = [*cells("-" * 8 + "+", host="b", e2e_ms=150), fault(prompt_id="Q"), record(prompt_id="F")]

    lines = [
        *render_comparison(
            compare(
                base,
                candidate,
                obstacles=Obstacles(of_prompts={("s", "P9"): Obstacle("validator_changed", "validator")}),
                notes=["an older run"],
            ),
            width=120,
        )
    ]

    label = TARGET.label
    assert lines == [
        f"{label}: worse",
        "  passed         8/8 -> 0/8: -100 points, 95 % -100 to -37; p 0.008",
        "  prompts        8: 0 better, 8 worse",
        "  latency        1.50x slower, 95 % 1.50x to 1.50x; 8 prompts, p 0.008",
        "  TTFT           no difference seen: 1.00x, 95 % 1.00x to 1.00x; 8 prompts, p 1.00",
        "  output tokens  no difference seen: 1.00x, 95 % 1.00x to 1.00x; 8 prompts, p 1.00",
        "  note           host: a -> b",
        f"set aside: 1 cell of {label}: the validator has changed (validator): P9; --across=validator compares them",
        f"set aside: 1 cell of {label}: not answered in the candidate: Q",
        f"set aside: 1 cell of {label}: not answered in the baseline: F",
        "note: an older run",
    ]


def test_what_is_faster_is_faster_at_both_ends() -> None:
    """The interval is inverted with the words: of 0.4 to 0.8 the ends are 2.5 times and 1.25 times faster."""
    base = cells("+" * 6, e2e_ms=100)
    candidate = [replace(row, e2e_ms=ms) for row, ms in zip(base, (40, 50, 50, 50, 50, 80), strict=True)]

    assert "  latency        2x faster, 95 % 1.25x to 2.5x; 6 prompts, p 0.03" in render_comparison(
        compare(base, candidate)
    )


def test_a_run_ends_with_its_comparison() -> None:
    """A few lines are in the terminal, all of it on the page; hostile names are harmless and narrow."""
    base, candidate = cells("+" * 9, host="<a>|"), [*cells("-" * 9, host="b" * 90), record(prompt_id="|new|")]
    summary = replace(summary_of(candidate), comparison=compare(base, candidate, notes=["x | y"]))

    lines = render_terminal(summary, "summary.md")
    page = render_markdown(summary)

    shown = "\n".join(lines)
    assert (
        "compared with     before\nworse             ollama_openai/qwen3:8b: 9/9 -> 0/9, p 0.004\n" in shown
    )
    assert "set aside         1 cell only in the candidate" in shown
    assert max(map(columns, lines)) <= 80
    assert "## Compared with the baseline\n\nThe baseline is before" in page
    assert "| verdicts      | worse " in page
    assert "- Set aside: 1 cell of ollama\\_openai/qwen3:8b: only in the candidate: \\|new\\|" in page
    assert "host: &lt;a&gt;\\|" in page


def test_runs_without_a_common_target_say_so() -> None:
    """An empty comparison is reported, too."""
    compared = compare(cells("+"), cells("+"), [])
    summary = replace(summary_of(cells("+")), comparison=compared)

    assert "no target is in both runs" in "\n".join(render_terminal(summary, "x"))
    assert "No target is in both runs." in render_markdown(summary)
    assert "--target BASE=CANDIDATE" in "\n".join(render_comparison(compared))
