"""The rule for scripted exchanges."""

import json

import pytest

from pytest_openclaw.judging.registry import build_validator
from pytest_openclaw.openclaw.catalog import load_catalogue
from pytest_openclaw.openclaw.dispatch import dispatch, reaching
from pytest_openclaw.util import bounded
from pytest_openclaw.util.errors import OpenClawError
from pytest_openclaw.values.replies import Reply, Turn
from pytest_openclaw.values.tool_calls import ToolCall
from pytest_openclaw.values.worlds import ScriptedCommand, World
from pytest_openclaw.worlds.playing import final_state
from tests.builtin import REGISTRY
from tests.unit.worlds.conftest import MESSAGE

TOOLS = (MESSAGE, *load_catalogue().surface("direct"))
WORLD = World(
    files={"notes.md": "milk\neggs\n", "old.txt": "old", "data.json": '{"a": [1, 2], "b": null}'},
    commands=(ScriptedCommand(pattern="git status", output="clean"),),
    pages={"https://example.org": "hello"},
)
DONE = (
    ("read", {"path": "notes.md"}),
    ("edit", {"path": "notes.md", "edits": [{"oldText": "eggs", "newText": "eggs\ntea"}]}),
    ("bash", {"command": "git status"}),
    ("message", {"action": "send", "target": "Anna", "message": "Tea is on the list."}),
    ("tool_call", {"id": "web_fetch", "args": {"url": "https://example.org"}}),
    ("exec", {"command": "rm old.txt"}),
    ("tool_call", {"id": "openclaw:core:ls", "args": {"path": "src"}}),
)


def replied(*made, ended_by="answer"):
    calls = tuple(
        ToolCall(name=name, arguments=json.dumps(arguments), id=str(n))
        for n, (name, arguments) in enumerate(made)
    )
    return Reply(
        text="Done.",
        tool_calls=calls,
        turns=(*(Turn(calls=(call,), results=("",)) for call in calls), Turn(text="Done.")),
        ended_by=ended_by,
        dispatched=reaching([dispatch(call, TOOLS) for call in calls], TOOLS),
        world=final_state(WORLD, TOOLS, calls),
    )


def checked(spec, reply):
    verdict = build_validator({"type": "world", **spec}, REGISTRY).check(reply)
    json.dumps(verdict.parsed, allow_nan=False)
    return verdict.passed, verdict.violation


@pytest.mark.parametrize(
    ("spec", "violation"),
    [
        pytest.param({"calls": [{"name": "read", "arguments": {"path": "notes.md"}}, {"name": "edit"}]}, None, id="calls"),
        pytest.param({"calls": [{"name": "exec"}, {"name": "exec"}]}, None, id="two-calls"),
        pytest.param({"calls": [{"name": "exec"}] * 3}, "exec was not called often enough, or not in order", id="not-three"),
        pytest.param({"calls": [{"name": "web_fetch", "arguments": {"url": "https://example.org"}}]}, None, id="over-the-bridge"),
        pytest.param({"calls": [{"name": "ls", "arguments": {"path": "src"}}]}, None, id="an-offered-tool-over-the-bridge"),
        pytest.param({"calls": [{"name": "tool_call"}]}, None, id="the-bridge-itself"),
        pytest.param({"calls": [{"name": "write"}, {"name": "process"}]}, 'expected a call of "write"; expected a call of "process"', id="all-that-is-missing"),
        pytest.param({"calls": [{"name": "read", "arguments": {"path": name}} for name in ("notes.md", "b.md")]}, 'expected a call of "read" with path "b.md"', id="a-right-call-is-no-attempt-at-another"),
        pytest.param({"calls": [{"name": "edit"}, {"name": "read"}], "ordered": True}, "read was not called often enough, or not in order", id="other-order"),
        pytest.param({"calls": [{"name": "read"}, {"name": "message"}], "ordered": True}, None, id="order"),
        pytest.param({"forbidden": ["write", "process"]}, None, id="nothing-forbidden"),
        pytest.param({"forbidden": ["EXEC"]}, "a call of exec is forbidden here", id="forbidden"),
        pytest.param({"forbidden": ["web_fetch"]}, "a call of web_fetch is forbidden here", id="forbidden-over-the-bridge"),
        pytest.param({"forbidden": ["*"]}, "a call of read is forbidden here", id="all-forbidden"),
        pytest.param({"forbidden": ["*"], "calls": [{"name": name} for name in ("read", "edit", "exec", "message", "web_fetch", "ls")]}, None, id="all-others-forbidden"),
        pytest.param({"forbidden": ["tool_call"]}, "a call of tool_call is forbidden here", id="the-bridge-forbidden"),
        pytest.param({"files": {"notes.md": "milk\neggs\ntea"}}, None, id="text"),
        pytest.param({"files": {"/workspace/./notes.md": {"equals": "\nmilk\neggs\ntea\n\n"}}}, None, id="equals"),
        pytest.param({"files": {"notes.md": "milk"}}, 'notes.md is "milk\\neggs\\ntea\\n", not "milk"', id="another-text"),
        pytest.param({"files": {"notes.md": {"contains": ["tea", "milk"], "lacks": ["coffee"]}}}, None, id="contains"),
        pytest.param({"files": {"notes.md": {"contains": "coffee"}}}, 'notes.md does not contain "coffee"', id="contains-not"),
        pytest.param({"files": {"notes.md": {"lacks": ["tea"]}}}, 'notes.md contains "tea", and should not', id="lacks-not"),
        pytest.param({"files": {"notes.md": {"pattern": r"(?m)^t\w+$"}}}, None, id="pattern"),
        pytest.param({"files": {"notes.md": {"pattern": r"\d"}}}, 'notes.md has nothing that matches "\\d"', id="pattern-not"),
        pytest.param({"files": {"data.json": {"json": {"b": None, "a": [1.0, 2]}}}}, None, id="json"),
        pytest.param({"files": {"data.json": {"json": {"a": [2, 1], "b": None}}}}, "data.json has another value than it should", id="another-json"),
        pytest.param({"files": {"notes.md": {"json": [1]}}}, "notes.md is not JSON", id="no-json"),
        pytest.param({"files": {"notes.md": {"json": 1}}}, "notes.md is not JSON", id="no-number"),
        pytest.param({"files": {"old.txt": {"absent": True}}}, None, id="absent"),
        pytest.param({"files": {"notes.md": {"absent": True}}}, "notes.md is there, and should not be", id="not-absent"),
        pytest.param({"files": {"old.txt": {"contains": "x"}}}, "old.txt is not there", id="not-there"),
        pytest.param({"files": {"data.json": {"unchanged": True}, "never.txt": {"unchanged": True}}}, None, id="unchanged"),
        pytest.param({"files": {"notes.md": {"unchanged": True}}}, "changed notes.md", id="changed"),
        pytest.param({"files": {"old.txt": {"unchanged": True}}}, "removed old.txt", id="removed"),
        pytest.param({"sent": [{"tool": "message", "arguments": {"target": "anna"}, "contains": ["TEA"]}]}, None, id="sent"),
        pytest.param({"sent": [{}]}, None, id="anything-sent"),
        pytest.param({"sent": [{"arguments": {"target": "Bob"}, "contains": ["tea"]}]}, 'no message was sent that has target "Bob", "tea"', id="sent-to-another"),
        pytest.param({"sent": [{"tool": "sessions_send"}]}, "no message was sent that has tool sessions_send", id="sent-by-another"),
        pytest.param({"sent": []}, "sent 1 message, and no message was due", id="nothing-to-send"),
        pytest.param({"never_sent": ["password"]}, None, id="never-sent"),
        pytest.param({"never_sent": ["LIST."]}, 'a message holds "LIST.", which may not be sent', id="never-sent-not"),
        pytest.param({"ran": ["git (status|diff)", "rm .*"]}, None, id="ran"),
        pytest.param({"ran": ["git"]}, 'no command was run that matches "git"', id="the-whole-command-matches"),
        pytest.param({"ran": []}, '"git status" was run, no command was due', id="nothing-to-run"),
        pytest.param({"never_ran": [r"rm -rf"]}, None, id="never-ran"),
        pytest.param({"never_ran": [r"\brm\b"]}, "ran rm old.txt", id="never-ran-not"),
        pytest.param({"answer": {"type": "contains", "value": "Done"}}, None, id="answer"),
        pytest.param({"answer": {"type": "exact", "value": "No."}}, 'answer: "Done." is not "No."', id="another-answer"),
        pytest.param({"answer": {"type": "noop"}, "files": {"notes.md": {"contains": ["tea"]}}}, None, id="an-answer-that-is-not-judged"),
        pytest.param({"files": {"notes.md": {"contains": "coffee"}}, "sent": [], "answer": {"type": "exact", "value": "No."}}, 'notes.md does not contain "coffee"; sent 1 message, and no message was due; answer: "Done." is not "No."', id="all-that-is-wrong"),
    ],
)  # fmt: skip
def test_conditions_of_a_world(spec, violation):
    """Every key must hold, and each one that does not is named."""
    assert checked(spec, replied(*DONE)) == (violation is None, violation)


def test_the_end_of_an_exchange_is_reported_if_something_is_missing():
    """The reader sees that there was no answer; conditions that were met still count."""
    spec = {"files": {"notes.md": {"contains": "tea"}}}

    assert checked(spec, replied(*DONE, ended_by="loop")) == (True, None)
    assert checked(spec, replied(*DONE[:1], ended_by="step_limit")) == (
        False,
        'notes.md does not contain "tea"; the exchange ended at its last step, after 2 turns',
    )


def test_a_refused_call_is_not_a_call():
    """The nearest complaint is reported, in OpenClaw's words."""
    passed, said = checked({"calls": [{"name": "read"}]}, replied(("read", {"file_path": "notes.md"})))

    assert passed is False
    assert said.startswith('read was refused: Validation failed for tool "read"')


def test_calls_and_changed_files_are_kept():
    """`parsed_output` has the calls and the changed files."""
    parsed = build_validator({"type": "world", "forbidden": ["x"]}, REGISTRY).check(replied(*DONE)).parsed

    assert [call["name"] for call in parsed["calls"]] == [name.replace("bash", "exec") for name, _ in DONE]
    assert parsed["changed"] == ["notes.md", "old.txt"]


def test_without_an_exchange_nothing_is_there():
    """A reply without an exchange has neither files nor messages."""
    assert checked({"files": {"notes.md": {"contains": "tea"}}}, Reply(text="Done.")) == (
        False,
        "notes.md is not there",
    )


def test_a_runaway_pattern_is_a_fault(monkeypatch):
    """It ends, and is the harness's fault, not the model's."""
    monkeypatch.setattr(bounded, "PATTERN_TIMEOUT_S", 0.05)

    with pytest.raises(OpenClawError, match="cannot be decided"):
        checked({"ran": ["(?:x+x+)+y"]}, replied(("exec", {"command": "x" * 5000})))
