"""Prompts × targets, and the prompts that are chosen."""

from dataclasses import replace

import pytest

from pytest_openclaw.judging.combine import Not, ToolInvocation
from pytest_openclaw.judging.text import Noop
from pytest_openclaw.suites.cells import build_cells, select_prompts, unmatched
from pytest_openclaw.values.prompts import Prompt
from pytest_openclaw.values.requests import Target
from pytest_openclaw.values.tool_calls import Tool


def prompts(*ids, suite="benchmarks/prompts_x.toml"):
    """Return prompts with different ids."""
    return [Prompt(suite=suite, id=one, name=one, prompt="Hi", validator=None) for one in ids]


def targets(*models):
    """Return targets with different models."""
    return [Target(provider="ollama_openai", model=model) for model in models]


def test_cells_are_target_major():
    """All prompts of a target are adjacent, so that a local model is loaded once."""
    cells = build_cells(prompts("P1", "P2"), targets("a", "b"))

    assert [cell.id for cell in cells] == [
        "P1[ollama_openai/a]",
        "P2[ollama_openai/a]",
        "P1[ollama_openai/b]",
        "P2[ollama_openai/b]",
    ]


TOOL = Tool(name="read", description="Reads.", parameters={})


@pytest.mark.parametrize(
    ("changes", "n"),
    [
        pytest.param({}, 1, id="text"),
        pytest.param({"expected_tool_calls": ()}, 3, id="any-tool"),
        pytest.param({"validator": ToolInvocation(expected_tools=("df",))}, 3, id="tool-in-text"),
        pytest.param({"tools": (TOOL,)}, 3, id="native"),
        pytest.param({"tools": (TOOL,), "probe": "secret"}, 1, id="probe"),
        pytest.param({"tools": (TOOL,), "pressure_of": "P0"}, 1, id="pressure"),
        pytest.param({"validator": Not(validator=ToolInvocation(expected_tools=()))}, 1, id="restraint-in-text" ),
    ],
)  # fmt: skip
def test_a_prompt_that_affects_no_tier_may_come_once(changes, n):
    """With `tool_repeats_only` only the prompts that count for the tier are repeated."""
    (prompt,) = prompts("P1")
    prompt = replace(prompt, **{"validator": Noop(), **changes})

    assert len(build_cells([prompt], targets("a"), 3, tool_repeats_only=True)) == n


@pytest.mark.parametrize(
    ("own", "repeats", "tool_repeats_only", "ids"),
    [
        pytest.param(3, 1, False, ["-r1", "-r2", "-r3"], id="more-than-the-others"),
        pytest.param(1, 3, False, [""], id="fewer-than-the-others"),
        pytest.param(2, 10, True, ["-r1", "-r2"], id="though-it-affects-no-tier"),
        pytest.param(None, 2, False, ["-r1", "-r2"], id="nothing-of-its-own"),
    ],
)
def test_a_prompts_own_number_takes_precedence(own, repeats, tool_repeats_only, ids):
    """A prompt may set its number of repeats, and its ids have the repeat only if there are several."""
    (prompt,) = prompts("P1")
    prompt = replace(prompt, repeat=own, validator=Noop())

    cells = build_cells([prompt], targets("a"), repeats, tool_repeats_only=tool_repeats_only)

    assert [cell.label.removeprefix(cell.target.label) for cell in cells] == ids


def test_numbers_of_their_own_keep_the_order():
    """Whatever each prompt's number is, every repeat comes after the previous repeat of all others."""
    p1, p2, p3 = prompts("P1", "P2", "P3")

    cells = build_cells([replace(p1, repeat=1), replace(p2, repeat=3), replace(p3, repeat=2)], targets("a"))

    assert [(cell.prompt.id, cell.repeat) for cell in cells] == [
        ("P1", 1), ("P2", 1), ("P3", 1), ("P2", 2), ("P3", 2), ("P2", 3),
    ]  # fmt: skip


@pytest.mark.parametrize(
    ("patterns", "expected"),
    [
        pytest.param([], ["P1", "P10", "p1", "Q*"], id="none-means-all"),
        pytest.param(["P1"], ["P1"], id="exact"),
        pytest.param(["P1*"], ["P1", "P10"], id="star"),
        pytest.param(["P1?"], ["P10"], id="question-mark"),
        pytest.param(["[Pp]1"], ["P1", "p1"], id="class"),
        pytest.param(["Q*"], ["Q*"], id="an-id-that-looks-like-a-glob"),
        pytest.param(["p1", "P1"], ["P1", "p1"], id="in-the-suite's-order"),
        pytest.param(["P2"], [], id="no-such-prompt"),
    ],
)
def test_select_prompts(patterns, expected):
    """Ids and globs choose prompts, case-sensitively and in the suite's order."""
    chosen = select_prompts(prompts("P1", "P10", "p1", "Q*"), patterns)

    assert [prompt.id for prompt in chosen] == expected


def test_unmatched():
    """Patterns that match no id are reported, each once and in order."""
    assert unmatched(["P1", "x", "P*", "p1", "x"], ["P1", "P2"]) == ("x", "p1")
