"""A call over OpenClaw's bridge is judged as a call of the tool that it reaches."""

import json
from pathlib import Path

import pytest

from pytest_openclaw.judging.judge import judge
from pytest_openclaw.judging.registry import build_validator
from pytest_openclaw.openclaw.catalog import load_catalogue, signature
from pytest_openclaw.openclaw.dispatch import dispatch, inner_call
from pytest_openclaw.runs.rows import judgment_fields
from pytest_openclaw.values.prompts import Prompt
from pytest_openclaw.values.replies import Reply
from pytest_openclaw.values.tool_calls import ToolCall
from pytest_openclaw.values.worlds import World
from pytest_openclaw.worlds.playing import Playing
from tests.builtin import REGISTRY

pytestmark = pytest.mark.newest

DIRECT = load_catalogue().surface("direct")
MEASURED = json.loads(Path(__file__).with_name("signatures.json").read_text("utf-8"))
LS = {"command": "ls"}


def bridged(tool, arguments):
    return ToolCall(name="tool_call", arguments=json.dumps({"id": tool, "args": arguments}))


def judged(spec, *calls):
    """Judge these calls for a prompt on the surface that OpenClaw sends a local model."""
    validator = build_validator(spec, REGISTRY)
    prompt = Prompt(suite="s", id="N0", name="n", prompt="?", tools=DIRECT, validator=validator)
    return judge(prompt, Reply(tool_calls=calls, finish_reason="tool_calls"))


@pytest.mark.parametrize(
    "arguments",
    [
        pytest.param({"id": "exec", "args": LS}, id="under-args"),
        pytest.param({"id": "openclaw:core:exec", "args": LS}, id="by-id"),
        pytest.param({"id": " exec ", "args": json.dumps(LS)}, id="as-json-text"),
        pytest.param({"id": "exec", "input": LS}, id="under-input"),
        pytest.param({"id": "exec", **LS}, id="next-to-the-id"),
        pytest.param({"id": "exec", "args": {}, **LS}, id="next-to-empty-args"),
    ],
)
def test_inner_arguments_are_read_as_the_release_reads_them(arguments):
    """Wherever they are, the same call is found."""
    call = ToolCall(name="tool_call", arguments=json.dumps(arguments))
    inner = inner_call(dispatch(call, DIRECT), DIRECT)

    assert (inner.tool, inner.problem) == ("exec", None)
    assert inner.arguments["command"] == "ls"


@pytest.mark.parametrize(
    ("arguments", "problem", "said"),
    [
        pytest.param(
            {"id": "exec", "args": {}},
            "bad_arguments",
            "Invalid arguments for tool \"openclaw:core:exec\": command: must have required property 'command'."
            " Expected input: { command: string; ask?: string; background?: boolean;",
            id="missing",
        ),
        pytest.param({"id": "exec", "args": "ls"}, "bad_arguments", 'Validation failed for tool "tool_call"', id="text-that-is-not-json"),
        pytest.param({"id": "Exec", "args": LS}, "unknown_tool", "Unknown tool id: Exec. Did you mean: exec", id="names-are-exact"),
        pytest.param({"id": "qzx", "args": {}}, "unknown_tool", "Unknown tool id: qzx. Use tool_search to find a tool, tool_describe to inspect it,", id="like-nothing"),
    ],
)  # fmt: skip
def test_calls_that_the_bridge_refuses(arguments, problem, said):
    """The world gives the release's answer, and the call has the problem of the call inside."""
    call = ToolCall(name="tool_call", arguments=json.dumps(arguments))
    made = dispatch(call, DIRECT)

    assert (inner_call(made, DIRECT) or made).problem == problem
    assert said in Playing(World(), DIRECT).answer(call).replace('\\"', '"')


@pytest.mark.parametrize(
    ("tool", "arguments", "said"),
    [
        pytest.param("write", {}, "path: must have required property 'path'; content: must have required property 'content'.", id="missing"),
        pytest.param("write", {"path": 1, "x": 1}, "content: must have required property 'content'; path: must be string.", id="not-converted"),
        pytest.param("memory_get", {"file": "x"}, "path: must have required property 'path'; <root>: must not have additional properties: \"file\".", id="unknown-key"),
        pytest.param("edit", {"path": "a", "edits": [{"oldText": 1}]}, "edits.0.newText: must have required property 'newText'; edits.0.oldText: must be string.", id="nested"),
        pytest.param("memory_get", {"path": "a", "from": 0, "corpus": "x"}, 'from: must be >= 1; corpus: must be equal to one of the allowed values (allowed: "memory", "wiki", "all").', id="values"),
    ],
)  # fmt: skip
def test_the_release_and_ours_reject_the_same_arguments(tool, arguments, said):
    """The answers of OpenClaw 2026.9.6 to the same calls, up to the expected input; it converts no types."""
    offered = load_catalogue().surface("tool-search")
    inner = inner_call(dispatch(bridged(tool, arguments), offered), offered)

    assert inner.problem == "bad_arguments"
    assert inner.message.partition(" Expected input: ")[0].partition('": ')[2] == said


@pytest.mark.parametrize("name", MEASURED)
def test_a_signature_is_that_of_the_release(name):
    """Each tool's signature is the same as in OpenClaw 2026.9.6, including bounds."""
    assert signature(load_catalogue().tools[name].parameters) == MEASURED[name]


EXEC = {"name": "exec", "arguments": {"command": "ls"}}


@pytest.mark.parametrize(
    ("spec", "calls", "passed", "outcome"),
    [
        pytest.param({"calls": [EXEC]}, [bridged("exec", LS)], True, "valid", id="demanded"),
        pytest.param({"calls": [EXEC]}, [bridged("exec", json.dumps(LS))], True, "valid", id="as-text"),
        pytest.param({"calls": [EXEC]}, [bridged("exec", {"command": "pwd"})], False, "bad_arguments", id="other-values"),
        pytest.param({"calls": [EXEC]}, [bridged("exec", {})], False, "bad_arguments", id="refused"),
        pytest.param({"calls": [EXEC]}, [bridged("run", LS)], False, "unknown_tool", id="unknown"),
        pytest.param({"calls": [EXEC]}, [bridged("read", {"path": "a"})], False, "wrong_tool", id="another-tool"),
        pytest.param({"calls": [EXEC], "forbidden": ["*"]}, [bridged("exec", LS)], True, "valid", id="star"),
        pytest.param({"calls": [EXEC, {"name": "read"}], "ordered": True}, [bridged("read", {"path": "a"}), bridged("exec", LS)], False, "unfinished", id="ordered"),
        pytest.param({"calls": [{"name": "tool_call"}]}, [bridged("exec", LS)], True, "valid", id="the-bridge-itself"),
        pytest.param({"calls": [{"name": "read"}], "forbidden": ["exec"]}, [bridged("read", {"path": "a"}), bridged("exec", LS)], False, "forbidden_call", id="forbidden"),
    ],
)  # fmt: skip
def test_a_bridged_call_counts(spec, calls, passed, outcome):
    """A `tool_call` validator looks through the bridge, in its verdict and in the outcome."""
    judgment = judged({"type": "tool_call", **spec}, *calls)

    assert (judgment.verdict.passed, judgment.tool_outcome) == (passed, outcome)
    assert judgment.tool_use_success is passed


def test_a_row_names_both():
    """`tool_calls` has the bridge and the tool behind it, so that the text rule finds it there, too."""
    judgment = judged({"type": "tool_invocation", "expected_tools": ["exec"]}, bridged("exec", LS))

    assert judgment_fields(judgment)["tool_calls"] == ("tool_call", "exec")
    assert judgment.tool_use_success is True
