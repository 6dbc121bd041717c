"""Facts about one target: how long a turn of OpenClaw waits, what it withstands, which part is at fault."""

import pytest

from pytest_openclaw.parts.diagnosis import advice_on, diagnosis_of, evidence_in, parser_remedy
from pytest_openclaw.parts.pressure import pressure_levels, strain_of
from pytest_openclaw.parts.serving import context_in, turn_of
from pytest_openclaw.stats.tool_use import GOOD_OUTCOMES, OUTCOMES
from tests.unit.reports.summaries import (
    TARGET,
    cell,
    fault,
    group_of,
    pressed,
    record,
    restraint_cells,
    tool_cells,
)


def read(speed, tokens=1000, cached=None, **changes):
    return record(input_tokens=tokens, cached_tokens=cached, prompt_tokens_per_s=speed, **changes)


@pytest.mark.parametrize(
    ("rows", "wait_ms", "bearable"),
    [
        pytest.param([read(1000.0)], 10_000, "yes", id="at-the-limit"),
        pytest.param([read(999.0)], 10_010, "slow", id="above"),
        pytest.param([read(10_000 / 300)], 300_000, "slow", id="just-not-aborted"),
        pytest.param([read(33.0)], 303_030, "aborted", id="aborted"),
        pytest.param([read(1000.0, 3000), read(100.0, 1000)], 32_500, "slow", id="all-tokens-by-all-time"),
        pytest.param([read(1000.0), read(1.0, 1010, 1000)], 10_000, "yes", id="a-cached-prompt-says-nothing"),
    ],
)  # fmt: skip
def test_a_turn_waits_for_its_prompt(rows, wait_ms, bearable):
    """10,000 tokens at the speed at which the server reads; after 300 s OpenClaw aborts the request."""
    turn = turn_of(rows, None)

    assert (turn.wait_ms, turn.bearable, turn.fits) == (wait_ms, bearable, None)


def test_the_prompt_of_a_turn_is_measured_on_its_surface():
    """The row of an exchange has the sum of all its turns."""
    exchange = read(None, 20_000, surface="openclaw", ended_by="answer")

    turn = turn_of([read(1000.0, 9000, surface="openclaw"), exchange], None)

    assert (turn.prompt_tokens, turn.wait_ms) == (9000, 9000)


@pytest.mark.parametrize(("context", "fits"), [(16_384, True), (16_383, False)])
def test_the_context_that_it_needs(context, fits):
    """It is what OpenClaw's onboarding requires; the speed need not be known."""
    turn = turn_of([], context)

    assert (turn.fits, turn.wait_ms, turn.bearable) == (fits, None, None)
    assert turn_of([], None) is None


def test_the_context_of_a_server():
    """The smallest of a merged run's parts; a server that does not report it has none."""
    here = {"p/m": {"server": {"context_length": 8192}}}
    there = {"parts": [{"targets": {"p/m": {"server": {"context_length": 4096}}}}]}

    assert context_in({"targets": here}, "p/m") == 8192
    assert context_in({"targets": here, **there}, "p/m") == 4096
    assert context_in({"targets": {"p/m": {"warm_up": {}, "server": None}}}, "p/m") is None


def group(speed, context=None, **changes):
    given = {"tools_offered": 2, "tool_demand": "call", "input_tokens": 100, "prompt_tokens_per_s": speed}
    rows = [*tool_cells(30, 0, **{**given, **changes}), *restraint_cells(30, 0, tools_offered=2)]
    return group_of(rows, inventory={"targets": {TARGET.label: {"server": {"context_length": context}}}})


@pytest.mark.parametrize(
    ("speed", "context", "code", "words"),
    [
        pytest.param(244.0, None, "turn_slow", "an OpenClaw turn of 10,000 tokens waits about 41 s for its first token unless they are cached, longer than the 10 s that are bearable", id="slow"),
        pytest.param(25.0, None, "turn_aborted", "waits about 400 s for its first token unless they are cached, and OpenClaw aborts it after 300 s", id="aborted"),
        pytest.param(5000.0, 8192, "context_too_small", "OpenClaw needs 16,384 tokens of context, the server has 8,192", id="context"),
    ],
)  # fmt: skip
def test_the_recommendation_says_it(speed, context, code, words):
    """A turn that takes too long, or that does not fit, is part of the sentence."""
    found = group(speed, context).recommendation

    assert words in found.sentence
    assert code in {caveat.code for caveat in found.caveats}


def test_a_bearable_turn_is_a_reason():
    """It is not a caveat; without the server's timing there is no statement."""
    found, unknown = group(5000.0, 32_768).recommendation, group(None).recommendation

    assert "an OpenClaw turn of 10,000 tokens waits about 2.0 s for its first token" in {
        reason.text for reason in found.reasons
    }
    assert "OpenClaw turn" not in found.sentence + unknown.sentence
    assert "turn" not in {reason.code for reason in unknown.reasons}


def test_the_release_is_named():
    """The recommendation has it as a value and as a reason, or has neither."""
    rows = tool_cells(3, 0, tools_offered=2)

    named, unnamed = (
        group_of(rows, inventory={"openclaw_release": release}).recommendation
        for release in ("2026.9.6", None)
    )

    assert (named.release, unnamed.release) == ("2026.9.6", None)
    assert named.reasons[-1].text == "by the tools and rules of OpenClaw 2026.9.6"
    assert [reason.code for reason in unnamed.reasons] == [reason.code for reason in named.reasons[:-1]]
    assert named.sentence == unnamed.sentence


EASY = pressed("1t", 8, 0, tools=1)
USUAL = pressed("11t", 8, 0, tools=11)
AWAY = [fault(prompt_id=f"X{n}-54t", pressure_of=f"X{n}", tools_offered=54) for n in range(8)]


def test_levels_count_their_own_cells():
    """Overflowed cells are separate, other faults are ignored; without a rule about tools the verdict counts."""
    plain = {"prompt_id": "Q-2k", "pressure_of": "Q", "padding_tokens": 2000}
    rows = [
        *pressed("16k", 1, 2, padding=16_000, overflown=3),
        *pressed("11t", 2, 0),
        *AWAY,
        *tool_cells(5, 0, tools_offered=11),
        record(**plain),
        record(**plain, objective_pass=False),
    ]

    levels = [
        (one.tools_offered, one.padding_tokens, one.n_success, one.n, one.n_overflow)
        for one in pressure_levels(rows)
    ]

    assert levels == [(11, 0, 2, 2, 0), (54, None, 0, 0, 0), (None, 2000, 1, 2, 0), (11, 16_000, 1, 3, 3)]


@pytest.mark.parametrize(
    ("rows", "holds_to", "breaks_at"),
    [
        pytest.param([*EASY, *USUAL, *pressed("54t", 8, 0, tools=54)], (54, None), (None, None), id="holds"),
        pytest.param([*EASY, *USUAL, *pressed("54t", 3, 5, tools=54)], (11, None), (54, None), id="half"),
        pytest.param([*EASY, *USUAL, *pressed("54t", 0, 0, tools=54, overflown=8)], (11, None), (54, None), id="overflow"),
        pytest.param([*pressed("1t", 5, 3, tools=1), *pressed("11t", 3, 5)], (1, None), (11, None), id="under-the-floor"),
        pytest.param([*EASY, *pressed("11t", 4, 4)], (11, None), (None, None), id="on-the-floor"),
        pytest.param([*pressed("1t", 3, 5, tools=1), *pressed("11t", 2, 6)], (None, None), (None, None), id="never-right"),
        pytest.param([*USUAL, *pressed("2k", 8, 0, padding=2000), *pressed("16k", 0, 0, padding=16_000, overflown=8)], (11, 2000), (None, 16_000), id="text"),
        pytest.param([*pressed("2k", 8, 0, padding=2000), *pressed("16k", 3, 5, padding=16_000)], (None, 2000), (None, 16_000), id="only-text"),
        pytest.param([*EASY, *pressed("54t", 0, 8, tools=54), *pressed("2k", 5, 3, tools=1, padding=2000)], (1, 2000), (54, None), id="text-is-compared-with-the-same-tools"),
        pytest.param([*EASY, *AWAY], (1, None), (None, None), id="no-reply"),
        pytest.param([*pressed("1t", 0, 0, tools=1, overflown=8)], (None, None), (1, None), id="overflow-at-once"),
    ],
)  # fmt: skip
def test_where_it_breaks(rows, holds_to, breaks_at):
    """The first level that keeps less than half, falls under Tier 2's floor, or does not fit at all."""
    strain = strain_of(pressure_levels(rows))

    found = [(load.tools_offered, load.padding_tokens) for load in strain]
    assert found == [holds_to, breaks_at]


CALLED, WORDS, LEAKED = (
    {"outcome": outcome, "input_tokens": 90} for outcome in ("called", "no_call", "leaked_as_text")
)
SHORT = {"outcome": "no_call", "input_tokens": 40}


def evidence(server=None, **tries):
    repeats = {"as_asked": WORDS, "unstreamed": WORDS, "without_tools": SHORT, **tries}
    return {
        "suite": "s",
        "prompt_id": "P1",
        "outcome": "no_call",
        "tools_offered": 2,
        "server": server or {},
        "tries": [{"change": change, **found} for change, found in repeats.items()],
    }


CASES = [
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
def test_the_cause(found, cause, finding, fix):
    """Each kind of evidence names its part, and what to change."""
    diagnosis = diagnosis_of(found, [cell("P1", "no_call", tools_offered=2)])

    assert diagnosis.cause == cause, diagnosis
    assert finding in diagnosis.finding
    assert fix in diagnosis.fix
    assert bool(diagnosis.fix) == (cause is not None)


def test_a_parser_that_works_elsewhere():
    """A call as text next to real calls is the model's fault."""
    rows = [cell("P1", "leaked_as_text", tools_offered=2), cell("P2", "valid", tools_offered=2)]

    diagnosis = diagnosis_of(evidence(unstreamed=LEAKED), rows)

    assert diagnosis.cause == "model"
    assert "in 1 other cell," in diagnosis.finding


def test_the_evidence_of_a_run_or_of_a_part():
    """A merged run has it in a part."""
    serving = {"p/m": {"diagnosis": {"suite": "s"}, "server": {"server": "ollama"}}}
    merged = {"targets": {"p/m": {"diagnosis": None}}, "parts": [{"targets": serving}]}

    for inventory in ({"targets": serving}, merged):
        assert evidence_in(inventory, "p/m") == {"suite": "s", "server": {"server": "ollama"}}


def test_every_bad_outcome_has_its_advice():
    """Every failure has a hint, and a success needs none."""
    assert {outcome for outcome in OUTCOMES if advice_on(outcome, "native")} == set(OUTCOMES) - GOOD_OUTCOMES


@pytest.mark.parametrize(
    ("provider", "server", "remedy"),
    [
        pytest.param("ollama_native", None, "take a model that `ollama show`", id="ollama"),
        pytest.param("llama_cpp", "llama.cpp", "serve it by llama-server", id="embedded"),
        pytest.param("lab", "vllm", "start vLLM", id="vllm"),
        pytest.param("lab", "sglang", "start SGLang", id="sglang"),
        pytest.param("gemini", None, "take the model from another provider", id="cloud"),
    ],
)
def test_each_server_has_its_remedy(provider, server, remedy):
    """Each server has a setting of its own."""
    assert parser_remedy(provider, server).startswith(remedy)
