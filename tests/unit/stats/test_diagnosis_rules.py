"""The part at fault, from the repeats of one cell."""

from __future__ import annotations

from typing import Any

import pytest

from pytest_openclaw.stats.diagnosis import diagnosis_of, evidence_in
from tests.unit.reports.summaries import cell

CALLED, WORDS, LEAKED = (
    {"outcome": outcome, "input_tokens": 90} for outcome in ("called", "no_call", "leaked_as_text")
)
SHORT = {"outcome": "no_call", "input_tokens": 40}


def evidence(server: dict[str, Any] | None = None, **tries: Any) -> dict[str, Any]:
    """What was sent and what came back."""
    repeats = {"as_asked": WORDS, "unstreamed": WORDS, "without_tools": SHORT, **tries}
    return {
        "suite": "s",
        "prompt_id": "P1",
        "outcome": "no_call",
        "tools_offered": 2,
        "server": server or {},
        "tries": [{"change": change, **found} for change, found in repeats.items()],
    }


CASES: list[Any] = [
    pytest.param(evidence(), "model", "answers with words and no call", "larger model", id="words"),
    pytest.param(evidence(without_tools={**SHORT, "input_tokens": 90}), "template", "90 tokens with its 2 tools and 90", "tool parser", id="as-long"),
    pytest.param(evidence({"server": "llama.cpp", "template_shows_tools": False}, without_tools={"outcome": "fault"}), "template", "own description", "--jinja", id="says-so"),
    # The count is what happened; the server's word is what should have.
    pytest.param(evidence({"template_shows_tools": False}), "model", "sees its tools", "larger", id="count-over-word"),
    # Ollama's counts leave out cached tokens.
    pytest.param(evidence({"server": "ollama", "template_shows_tools": True}, without_tools={**SHORT, "input_tokens": 99}), "model", "sees its tools", "larger", id="ollama-cached"),
    pytest.param(evidence({"server": "ollama", "template_shows_tools": False}), "template", "capabilities", "ollama_native", id="ollama-v1"),
    pytest.param(evidence(unstreamed=LEAKED), "parser", "the server does not read it", "tool parser", id="leaked"),
    pytest.param(evidence(unstreamed={"outcome": "empty", "input_tokens": 90, "output_tokens": 31}), "parser", "generates 31 tokens", "tool parser", id="swallowed"),
    pytest.param(evidence(unstreamed={"outcome": "empty", "input_tokens": 90, "output_tokens": 1}), "model", "answers with nothing", "larger", id="silent"),
    pytest.param(evidence(unstreamed=CALLED, streamed_again=WORDS), "stream", "streamed words and no call", "-stream=off", id="stream"),
    pytest.param(evidence(unstreamed=CALLED, streamed_again=CALLED), None, "its answers vary", "", id="varies"),
    pytest.param(evidence(unstreamed={"outcome": "fault", "message": "no room"}), None, "could not be repeated: no room", "", id="fault"),
]  # fmt: skip


@pytest.mark.parametrize(("found", "cause", "finding", "fix"), CASES)
def test_the_cause(found: dict[str, Any], cause: str | None, finding: str, fix: str) -> None:
    """Each kind of evidence names its part, and what to change."""
    diagnosis = diagnosis_of(found, [cell("P1", "no_call", tools_offered=2)])

    assert diagnosis is not None
    assert diagnosis.cause == cause, diagnosis
    assert finding in diagnosis.finding
    assert fix in diagnosis.fix
    assert bool(diagnosis.fix) == (cause is not None)


def test_a_parser_that_works_elsewhere() -> None:
    """A call as text next to real calls is the model's fault."""
    rows = [cell("P1", "leaked_as_text", tools_offered=2), cell("P2", "valid", tools_offered=2)]

    alone, among = (diagnosis_of(evidence(unstreamed=LEAKED), some) for some in (rows[:1], rows))

    assert alone is not None
    assert among is not None
    assert (alone.cause, among.cause) == ("parser", "model")
    assert "in 1 other cell," in among.finding


def test_where_the_evidence_is() -> None:
    """It is found in the run and in a part of a merged run."""
    serving = {"p/m": {"diagnosis": {"suite": "s"}, "server": {"server": "ollama"}}}
    expected = {"suite": "s", "server": {"server": "ollama"}}
    merged = {
        "targets": {"p/m": {"diagnosis": None}},
        "parts": [{"targets": serving}],
    }

    for inventory in ({"targets": serving}, merged):
        assert evidence_in(inventory, "p/m") == expected
