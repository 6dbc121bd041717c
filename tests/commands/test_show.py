"""`show`: a run's summary and cells, one cell in full, and which cell a name means."""

import json
import re

import pytest

from pytest_openclaw.judging.text import Noop
from pytest_openclaw.reports.cells import render_cell, turns_of
from pytest_openclaw.suites import cells
from pytest_openclaw.suites.load import parse_suite
from tests.unit.runs.stored_runs import SUITE, A, B, definition, files_of, load, row, store

NAMED_P1 = ("x.json::P1[lab/a]", "y.toml::P1[lab/a]", "x.json::P1[lab/b@low]")
OTHER = "benchmarks/prompts_y.toml"
MISS = {"objective_pass": False, "violation": "5 words, at most 4 allowed"}
LIMITED = {
    "availability_status": "rate_limited",
    "failure_type": "http_429",
    "fault_message": "lab: HTTP 429",
}
FAULT = {**LIMITED, "success": False, "objective_pass": None}


@pytest.fixture
def runs(project):
    """A folder with one run that has every kind of outcome."""
    records = [
        row(B, "P1", raw_output="low"),
        row(A, "P2", repeat=2, **FAULT),
        row(A, "P1", prompt_name="restart", raw_output="<think>\nhm\nso\n</think>\n\nyes\nit is", attempts=2),
        row(A, "P2", raw_output="no", **MISS),
        row(A, "P1", suite=OTHER, raw_output="other"),
        row(A, "P3", objective_pass=None),
    ]
    prompts = [definition("P1", system="Be kind."), definition("P2")]
    prompts += [definition("P1", suite=OTHER), definition("P3")]
    store(project / "runs/one", records, prompts=prompts, n_selected={A: 5, B: 1})
    return project / "runs"


def test_a_run_is_its_summary_and_its_cells(runs, command):
    """Cells are sorted by target, prompt and repeat; the output fits 80 columns and nothing is changed."""
    before = files_of(runs / "one")

    shown = command("show", "last").out

    answers, table, *_ = shown.split("\n\n")
    listed = shown.split("\n\ncell ")[1]
    assert answers.startswith("lab/a: not enough evidence")
    assert table.startswith("target ")
    assert [line.split()[0] for line in table.splitlines()[1:]] == ["lab/a", "lab/b@low"]
    assert [" ".join(line.split()) for line in listed.splitlines()] == [
        "verdict took",
        "why",
        "benchmarks/prompts_x.json::P1[lab/a] passed 100 ms",
        "P2[lab/a-r1] failed –",
        "5 words, at most 4 allowed",
        "P2[lab/a-r2] http_429 –",
        "lab: HTTP 429",
        "benchmarks/prompts_y.toml::P1[lab/a] passed –",
        "P3[lab/a] not judged –",
        "benchmarks/prompts_x.json::P1[lab/b@low] passed –",
    ]
    assert max(map(len, shown.splitlines())) <= 80
    assert files_of(runs / "one") == before


@pytest.mark.parametrize(
    ("words", "cells"),
    [
        pytest.param([], 6, id="all"),
        pytest.param(["--failed"], 2, id="failed"),
        pytest.param(["--target", "LAB/A"], 5, id="target-in-capitals"),
        pytest.param(["--prompt", "P[12]"], 5, id="prompt-glob"),
        pytest.param(["--target", "missing"], 0, id="none"),
    ],
)
def test_filters_choose_cells(runs, words, cells, command):
    """The summary remains that of the whole run."""
    data = command.json("show", "one", *words)

    assert len(data["cells"]) == cells
    assert data["summary"]["n_rows"] == 6
    assert ("no cell fits" in command("show", "one", *words).out) == (cells == 0)


def test_the_keys_for_programs(runs, command):
    """The keys are those listed in the documentation."""
    data = command.json("show", "one", "--failed")

    assert list(data) == ["run", "summary", "cells"]
    assert data["cells"][0] == {
        "cell": "P2[lab/a-r1]",
        "suite": SUITE,
        "prompt_id": "P2",
        "target": "lab/a",
        "repeat": 1,
        "verdict": "failed",
        "violation": "5 words, at most 4 allowed",
        "fault_message": None,
        "tool_outcome": None,
        "e2e_ms": data["cells"][0]["e2e_ms"],
    }


@pytest.mark.parametrize(
    ("name", "answer"),
    [
        pytest.param("P3", "", id="an-id-that-is-enough"),
        pytest.param("P1[lab/b@low]", "low", id="as-pytest-shows-it"),
        pytest.param("P2[lab/a-r1]", "no", id="with-its-repeat"),
        pytest.param("restart", "yes\nit is", id="name"),
        pytest.param("prompts_y.toml::P1[lab/a]", "other", id="suite-without-its-folder"),
    ],
)
def test_a_cell_is_named_by_as_much_as_is_enough(runs, name, answer, command):
    """Id, name, target, repeat or suite, as far as needed to distinguish it."""
    assert command.json("show", "one", name)["turns"][0]["text"] == answer


def test_a_name_of_several_cells_lists_them(runs, command):
    """Each with its verdict, by a name that is enough; a command shows the first miss, or the first cell."""
    *lines, hint = command("show", "one", "P1").out.splitlines()

    assert [line.split()[0] for line in lines[2:]] == [f"benchmarks/prompts_{name}" for name in NAMED_P1]
    assert hint == f"in full: pytest-openclaw show one 'benchmarks/prompts_{NAMED_P1[0]}'"
    assert command("show", "one", "P2").out.endswith("show one 'P2[lab/a-r1]'\n")
    message = "runs/one has no row for a cell P2[lab/b]; did you mean P2[lab/a]"
    assert message in command.refused("show", "one", "P2[lab/b]")


def test_a_suite_is_a_heading_where_names_are_too_long(runs, command, monkeypatch):
    """The id of a cell is never cut out of its name."""
    monkeypatch.setenv("COLUMNS", "60")

    shown = [line.split()[0] for line in command("show", "one", "P1").out.splitlines()[2:-1]]

    x, y = "benchmarks/prompts_x.json", "benchmarks/prompts_y.toml"
    assert shown == [x, "P1[lab/a]", y, "P1[lab/a]", x, "P1[lab/b@low]"]


def test_a_cell_in_full(runs, command):
    """What was due and done in words; prompt, system, thinking and reply in full, line by line."""
    shown = command("show", "one", "restart").out

    assert shown.startswith("benchmarks/prompts_x.json::P1[lab/a]\n")
    assert _lines(shown) == [
        f"suite {SUITE}", "name restart", "verdict passed", "due any answer", "did answered: “yes it is”",
        'validator { "type": "noop" }', "system Be kind.", "prompt Do P1.", "thinking hm so", "reply yes it is",
    ]  # fmt: skip
    assert " attempts: 2\n" in shown
    assert not any(usual in shown for usual in ("host:", "run id:", "in flight:", "surface:"))


def _lines(shown):
    text = re.sub(r"\n {6,}", " ", shown)
    lines = [" ".join(line.split()) for line in text.splitlines()[1:]]
    return [line for line in lines if not line.startswith("measured")]


def test_a_scripted_exchange_turn_by_turn(runs, command):
    """Each turn shows its times, thinking, text, calls with arguments, results, and why a call was refused."""
    read = {"id": "1", "name": "read", "arguments": '{"path": "a"}', "result": "eggs\nmilk", "problem": None}
    raed = {"id": "2", "name": "raed", "arguments": "{}", "result": "Tool raed not found"}
    unknown = dict.fromkeys(("e2e_ms", "ttft_ms", "input_tokens", "output_tokens", "finish_reason"))
    turn = {**unknown, "text": "I look.", "reasoning": "hm", "e2e_ms": 300, "ttft_ms": 80}
    turn["calls"] = [read, {**raed, "problem": "unknown_tool"}]
    last = {**unknown, "text": "Done.", "reasoning": "", "calls": []}
    store(runs / "world", [row(A, "W1", turns=(turn, last), ended_by="loop", tool_outcome="valid")])

    shown = command("show", "world", "W1").out

    assert "ended in a loop: the same call with the same result" in _lines(shown)[4]
    assert _lines(shown)[-8:] == [
        "prompt Do W1.",
        "thinking hm", "turn 1 I look.", 'turn 1 read { "path": "a" }', "-> eggs milk",
        "turn 1 raed (unknown_tool) {}", "-> Tool raed not found", "turn 2 Done.",
    ]  # fmt: skip


def test_openclaws_reading_of_a_call(runs, command):
    """If the offered tools are known, the calls of a single question are judged again for the reader."""
    text = json.dumps([{"id": "N1", "prompt": "Read it.", "tools": ["read"], "validator": {"type": "noop"}}])
    (prompt,) = parse_suite(text, format="json", name=SUITE, registry={Noop.type: Noop}).prompts
    made = {"id": "1", "name": "Functions.read", "arguments": "{}"}
    native = row(A, "N1", tool_call_details=(made,), tools_offered=1)
    known = cells.definition(prompt)
    store(runs / "now", [native], prompts=[known])
    store(runs / "then", [native], prompts=[{**known, "tools_sha256": "another"}])

    (call,) = command.json("show", "now", "N1")["turns"][0]["calls"]
    (unknown,) = command.json("show", "then", "N1")["turns"][0]["calls"]

    assert call["problem"] == "bad_arguments"
    assert 'Validation failed for tool "read"' in call["message"]
    assert "was taken for read" in call["notes"][0]
    assert (unknown["problem"], unknown["message"]) == (None, "")
    assert "call      Functions.read (bad_arguments) {}" in command("show", "now", "N1").out


def test_no_line_of_a_cell_can_control_a_terminal():
    """Prompt, reply, calls and results are already escaped, whichever command prints them."""
    bad = "\x1b[2J\r\u202e"
    call = {"name": bad, "arguments": bad, "result": bad, "problem": None, "told": bad}
    turn = {"user": bad, "text": bad, "reasoning": bad, "calls": [call]}
    made = [{"name": bad, "arguments": {bad: bad}}]
    messages = [{"role": "user", "content": bad}, {"role": "assistant", "content": bad, "calls": made}]
    prompt = definition("P1", prompt=bad, system=bad, messages=messages, validator={"type": bad})
    texts = {"prompt_name": bad, "violation": bad, "finish_reason": bad, "host": bad, "tool_calls": (bad,)}

    for turns in (None, (turn,)):
        record = row(A, bad, suite=bad, turns=turns, raw_output=bad, tool_call_details=(call,), **texts)
        lines = render_cell(bad, record, prompt, turns_of(record, None))
        assert not set("\x1b\r\u202e") & set("".join(lines))


def test_the_row_is_whole_for_programs(runs, command):
    """`row` is the row of results.jsonl, with the keys of plugins."""
    store(runs / "plugins", [row(A, "P1", extra={"x_lab": {"a": 1}})])
    data = command.json("show", "plugins", "P1")

    assert list(data) == ["run", "cell", "prompt", "turns", "row"]
    assert data["row"] == json.loads((runs / "plugins/results.jsonl").read_text())
    assert data["prompt"] == load(runs / "plugins", "config.json")["prompts"][0]
    assert 'x lab: {"a": 1}' in " ".join(command("show", "plugins", "P1").out.split())
