"""What was due and what was done, in words."""

import json
import tomllib
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from pytest_openclaw.reports.cells import brief_call, did_of, due_of, miss_of, turns_of
from tests.unit.reports.summaries import fault, missed, record

READ = {"name": "read", "arguments": {"path": "a.txt"}}
LONG = "x" * 61


@pytest.mark.parametrize(
    ("validator", "due"),
    [
        pytest.param(None, [], id="none"),
        pytest.param({"type": "exact", "value": "yes"}, ['the answer "yes"'], id="exact"),
        pytest.param({"type": "one_of", "values": ["a", 2]}, ['one of the answers "a" or 2'], id="one-of"),
        pytest.param({"type": "max_words", "value": 20}, ["an answer of at most 20 words"], id="limit"),
        pytest.param(
            {"type": "not", "validator": {"type": "contains", "value": "no"}},
            ['not: an answer that contains "no"'],
            id="not",
        ),
        pytest.param({"type": "regex_fullmatch", "pattern": "(?s).*six.*"}, ["an answer like six"], id="pattern"),
        pytest.param(
            {"type": "regex_fullmatch", "pattern": LONG}, ["an answer like the pattern in the rule"], id="never-cut"
        ),
        pytest.param({"type": "tool_call"}, ["no call"], id="no-call"),
        pytest.param(
            {"type": "tool_call", "calls": [READ, {"name": ["write", "edit"]}], "ordered": True, "exact": True},
            ['call read with path "a.txt" and write or edit, in this order, and nothing else'],
            id="calls",
        ),
        pytest.param(
            {"type": "tool_call", "calls": [{"name": "exec", "matching": {"properties": {"command": {"pattern": LONG}}}}]},
            ["call exec with arguments as in the rule"],
            id="schema",
        ),
        pytest.param(
            {
                "type": "world",
                "forbidden": ["write"],
                "files": {"a.txt": "b", "c.txt": {"contains": ["d", "e"], "unchanged": True}},
                "sent": [{"tool": "message", "contains": ["f"]}],
                "ran": [],
                "never_sent": ["g"],
                "answer": {"type": "noop"},
            },
            [
                "no call of write",
                'a.txt: is "b"',
                'c.txt: contains "d" and "e"; unchanged',
                'send a message with tool message, "f"',
                "no command",
                "never send g",
                "any answer",
            ],
            id="world",
        ),
        pytest.param({"type": "ticket"}, ['what the rule "ticket" asks for'], id="of-a-plugin"),
        pytest.param({"type": "exact"}, ["what the rule asks for"], id="of-another-version"),
    ],
)  # fmt: skip
def test_a_rule_in_words(validator, due):
    """Each demand is a line; a pattern that is too long stays in the rule."""
    assert due_of({"validator": validator}) == due


def test_every_shipped_prompt_has_words():
    """A safety probe also asks for no harm."""
    for file in Path(__file__).parents[3].glob("benchmarks/prompts_*.toml"):
        for prompt in tomllib.loads(file.read_text("utf-8"))["prompts"]:
            due = due_of(prompt)
            assert due, prompt["id"]
            assert not any(line.startswith("what the rule") for line in due), prompt["id"]
            assert ("no harm" in due) == ("probe" in prompt)


JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.text(),
    lambda inner: st.lists(inner) | st.dictionaries(st.sampled_from(["type", "calls", "files", "validators", "name"]), inner),
)  # fmt: skip


@given(validator=JSON, kind=st.sampled_from(["tool_call", "world", "all_of", "one_of", "not"]))
def test_any_rule_of_a_foreign_run_has_words(validator, kind):
    """Nothing in config.json breaks the page."""
    rule = {**validator, "type": kind} if isinstance(validator, dict) else validator
    assert all(isinstance(line, str) for line in due_of({"validator": rule}))


def _call(name, arguments):
    return {"id": "c", "name": name, "arguments": arguments, "result": "", "problem": None}


REMOVED = _call("exec", '{"command": "rm -rf /"}')
LOOK, TURN = ({"text": "", "calls": [call]} for call in (_call("ls", "{}"), REMOVED))


@pytest.mark.parametrize(
    ("row", "did", "brief"),
    [
        pytest.param(record(raw_output="Yes."), ["answered: “Yes.”"], "", id="text"),
        pytest.param(
            missed(raw_output="It is read.", tools_offered=1), ["answered without a call: “It is read.”"], "", id="no-call"
        ),
        pytest.param(
            missed(turns=(LOOK, *(TURN,) * 8), ended_by="loop", harm=True, harm_tools=("exec",)),
            [
                "harm, with exec",
                "called ls",
                'called exec {"command": "rm -rf /"} ×8',
                "ended in a loop: the same call with the same result, again and again",
            ],
            "exec rm -rf / +8",
            id="harm",
        ),
        pytest.param(
            missed(raw_output="<call>", tools_offered=1, written_calls=({"name": "read", "arguments": '{"limit": 2, "path": "a"}'},)),
            ['wrote as text: read {"limit": 2, "path": "a"}'],
            "read a",
            id="written",
        ),
        pytest.param(
            missed(tools_offered=1, tool_call_details=({"id": None, "name": "read", "arguments": "{"},)),
            ["called read {"],
            "read {",
            id="not-json",
        ),
        pytest.param(
            missed(tool_call_details=({"id": None, "name": "write", "arguments": json.dumps({"content": "x" * 999, "n": 1})},)),
            [f'called write {{"content": "{"x" * 50}…{"x" * 49}", "n": 1}}'],
            f"write {'x' * 19}…{'x' * 24}",
            id="long",
        ),
        pytest.param(
            missed(success=False, objective_pass=None, failure_type="refusal"), ["the model refused"], "", id="refusal"
        ),
        pytest.param(fault(fault_message="lab: gone"), ["no answer: lab: gone"], "", id="fault"),
    ],
)  # fmt: skip
def test_a_row_in_words(row, did, brief):
    """Harm first, then calls with their number, the answer, and how an exchange ended."""
    turns = turns_of(row, None)
    assert (did_of(row, turns), brief_call(row, turns)) == (did, brief)
    assert not row.harm or miss_of(row, {}, ()) == 'did harm: exec {"command": "rm -rf /"} ×8'


def test_a_miss_without_a_due_call_names_the_written_one():
    """Of a graded folder: it says more than the checks that failed."""
    call = {"name": "write", "arguments": '{"path": "a"}'}
    row = missed(tools_offered=1, written_calls=(call,), violation="score 0.00 of 1", tool_outcome=None)

    said = 'wrote the call as text: write {"path": "a"}; score 0.00 of 1'
    assert miss_of(row, {"validator": {"type": "python"}}, ()) == said
