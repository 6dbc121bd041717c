"""Answers of a world that fail: their calls, the results for the model, and the effects that do not happen."""

import json

import pytest

from pytest_openclaw.openclaw.catalog import load_catalogue
from pytest_openclaw.values.tool_calls import Tool
from pytest_openclaw.values.worlds import ScriptedAnswer, World
from tests.unit.worlds.conftest import Caller

CATALOGUE = load_catalogue()
TOOLS = (
    *(CATALOGUE.tools[name] for name in ("read", "write", "exec", "message", "web_fetch")),
    Tool(name="stock"),
)
FILES = {"a.txt": "one two three four", "b.txt": "B"}


def caller(*answers, tools=TOOLS):
    return Caller(World(files=FILES, answers=answers), tools)


@pytest.mark.parametrize(
    ("limits", "failing"),
    [
        pytest.param({}, [1, 2, 3, 4, 5], id="each"),
        pytest.param({"times": 1}, [1], id="first"),
        pytest.param({"times": 2}, [1, 2], id="first-two"),
        pytest.param({"after": 2}, [3, 4, 5], id="from-the-third"),
        pytest.param({"after": 2, "times": 1}, [3], id="only-the-third"),
        pytest.param({"after": 9}, [], id="never"),
    ],
)  # fmt: skip
def test_an_answer_is_for_some_of_the_calls(limits, failing):
    """The other calls go on to the world."""
    call = caller(ScriptedAnswer(tool="read", fails="rate_limit", **limits))

    results = [call("read", path="b.txt") for _ in range(5)]

    assert [number for number, result in enumerate(results, 1) if result != "B"] == failing


def test_an_answer_counts_the_calls_that_match_it():
    """Other tools, other arguments and refused calls do not count; which answer such a call gets does not matter."""
    only_a = {"properties": {"path": {"const": "a.txt"}}}
    call = caller(
        ScriptedAnswer(tool="read", matching=only_a, times=1, fails="timeout"),
        ScriptedAnswer(tool="read", matching=only_a, after=1, times=1, error="disk busy"),
        ScriptedAnswer(tool="read", matching=only_a, after=2, result="third"),
    )

    assert call("read").startswith("Validation failed")
    assert call("read", path="b.txt") == "B"
    assert call.error("read", path="a.txt") == "read timed out"
    assert call("write", path="c.txt", content="x").startswith("Successfully")
    assert call.error("read", path="a.txt") == "disk busy"
    assert call("read", path="a.txt") == "third"


@pytest.mark.parametrize(
    ("answer", "tool", "arguments", "result"),
    [
        pytest.param({"fails": "denied"}, "exec", {"command": "rm a.txt"}, "Exec denied (user-denied): rm a.txt", id="command-denied"),
        pytest.param({"fails": "timeout"}, "exec", {"command": "rm a.txt", "timeoutSeconds": 5}, "Command timed out after 5 seconds.", id="command-timeout"),
        pytest.param({"fails": "denied"}, "write", {"path": "a.txt", "content": "x"}, "The owner denied this call", id="tool-denied"),
        pytest.param({"fails": "timeout"}, "write", {"path": "a.txt", "content": "x"}, ("write", "write timed out"), id="tool-timeout"),
        pytest.param({"fails": "rate_limit"}, "stock", {}, ("stock", "stock failed (429): too many requests"), id="rate-limit"),
        pytest.param({"fails": "gone"}, "web_fetch", {"url": "https://a.example/"}, "Tool web_fetch not found", id="gone"),
        pytest.param({"error": "out of paper"}, "stock", {}, ("stock", "out of paper"), id="error"),
        pytest.param({"fails": "denied"}, "message", {"action": "send", "target": "anna", "message": "hi"}, "The owner denied this call", id="message-denied"),
    ],
)  # fmt: skip
def test_a_failing_call_has_openclaws_form_and_no_effect(answer, tool, arguments, result):
    """An error is JSON with status, tool and text; a denial is plain text. Nothing is written, run or sent."""
    call = caller(ScriptedAnswer(tool=tool, **answer))

    received = call(tool, **arguments)

    if isinstance(result, str):
        assert received.startswith(result)
    else:
        assert json.loads(received) == {"status": "error", "tool": result[0], "error": result[1]}
    state = call.playing.state
    assert (dict(state.files), state.changed, state.ran, state.sent) == (FILES, (), (), ())


@pytest.mark.parametrize("answer", [{"fails": "rate_limit"}, {"fails": "timeout"}, {"error": "no route"}])
def test_an_error_of_the_web_is_content_from_outside(answer):
    """As OpenClaw delivers it: between marks, under a notice."""
    error = caller(ScriptedAnswer(tool="web_fetch", **answer)).error("web_fetch", url="https://a.example/")

    assert error.count("EXTERNAL_UNTRUSTED_CONTENT") == 2
    assert answer.get("error", "web_fetch ") in error.partition("Source: API")[2]


def test_a_result_is_cut_off():
    """The tool does its work, and the model receives the beginning and how much is missing."""
    call = caller(
        ScriptedAnswer(tool="read", cut=7),
        ScriptedAnswer(tool="exec", cut=3),
        ScriptedAnswer(tool="stock", result="12345", cut=2),
    )

    assert (
        call("read", path="a.txt")
        == "one two[... 11 more characters truncated; rerun with narrower args if needed]"
    )
    assert call("read", path="b.txt") == "B"
    assert call("stock").startswith("12[... 3 more")
    assert call("exec", command="cat a.txt && rm b.txt").startswith("one[... ")
    assert call.playing.state.changed == ("b.txt",)


def test_a_call_over_the_bridge_fails_as_well():
    """The bridge carries the failure of the call that it carries."""
    call = caller(
        ScriptedAnswer(tool="sessions_list", times=1, fails="timeout"), tools=CATALOGUE.surface("tool-search")
    )

    failed = json.loads(call("tool_call", id="sessions_list", args={}))
    assert "sessions_list timed out" in json.dumps(failed)
    assert '\\"count\\": 0' in call("tool_call", id="sessions_list", args={})
