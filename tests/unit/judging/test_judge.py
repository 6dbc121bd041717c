"""A reply becomes a judgment: the answer, the tools, the verdict and what they mean."""

from dataclasses import replace

import pytest
from hypothesis import given
from hypothesis import strategies as st

from pytest_openclaw.judging.calls import demands_of
from pytest_openclaw.judging.combine import AllOf, AnyOf, Not, ToolInvocation
from pytest_openclaw.judging.judge import judge, read
from pytest_openclaw.judging.registry import build_validator
from pytest_openclaw.judging.text import Noop
from pytest_openclaw.openclaw.thinking import strip_thinking
from pytest_openclaw.suites.offered import read_tools
from pytest_openclaw.values.prompts import Prompt
from pytest_openclaw.values.replies import Reply, Turn, Verdict
from pytest_openclaw.values.tool_calls import ToolCall
from tests.builtin import REGISTRY

FREE = {"type": "tool_invocation", "expected_tools": ["free"]}
ANY_TOOL = {"type": "tool_invocation", "expected_tools": []}
NO_TOOL = {"type": "not", "validator": ANY_TOOL}
OK = {"type": "exact", "value": "OK"}
NOOP = {"type": "noop"}


def all_of(*specs):
    return {"type": "all_of", "validators": list(specs)}


def make_prompt(spec, expected_tool_calls=None):
    return Prompt(
        suite="benchmarks/prompts_x.toml",
        id="P1",
        name="x",
        prompt="Do it.",
        validator=build_validator(spec, REGISTRY),
        validator_spec=spec,
        expected_tool_calls=expected_tool_calls,
    )


@pytest.mark.parametrize(
    ("spec", "text", "passed", "pytest_outcome"),
    [
        pytest.param(OK, "OK", True, "passed", id="passed"),
        pytest.param(OK, "no", False, "failed", id="failed"),
        pytest.param(NOOP, "whatever", None, "passed", id="noop"),
        pytest.param(OK, "<think>No. Or?</think>\nOK", True, "passed", id="thinking-is-not-an-answer"),
        pytest.param(OK, "No. Or?\n</think>\nOK", True, "passed", id="thinking-opened-by-the-template"),
        pytest.param(OK, "<think>OK", False, "failed", id="thinking-never-closed"),
        pytest.param({"type": "max_words", "value": 1}, "<think>a b c</think>d", True, "passed", id="words"),
    ],
)
def test_the_verdict_is_about_the_answer(spec, text, passed, pytest_outcome):
    """The validator gets only the answer, and its verdict decides pytest's outcome."""
    judgment = judge(make_prompt(spec), Reply(text=text))

    assert (judgment.verdict.passed, judgment.outcome.pytest) == (passed, pytest_outcome)
    assert (judgment.outcome.status, judgment.outcome.success) == ("ok", True)


@pytest.mark.parametrize(
    ("reply", "failure_type"),
    [
        pytest.param(Reply(), "empty_response", id="nothing"),
        pytest.param(Reply(text=" \t\r\n"), "empty_response", id="blanks"),
        pytest.param(Reply(text="<think>OK</think>\n"), "empty_response", id="only-thinking"),
        pytest.param(Reply(reasoning="OK"), "empty_response", id="only-reasoning"),
        pytest.param(Reply(text="OK", refusal="I will not."), "refusal", id="refused"),
        pytest.param(Reply(text="OK", finish_reason="refusal"), "refusal", id="refused-at-the-end"),
        pytest.param(Reply(text="OK", finish_reason="content_filter"), "content_filter", id="filtered"),
    ],
)
def test_without_an_answer_there_is_no_verdict(reply, failure_type):
    """A reply without an answer is not judged, not a success, and fails."""
    judgment = judge(make_prompt({"type": "max_words", "value": 8}), reply)

    assert judgment.verdict == Verdict(passed=None)
    assert (judgment.outcome.success, judgment.outcome.failure_type) == (False, failure_type)
    assert (judgment.outcome.status, judgment.outcome.pytest) == ("ok", "failed")


def test_a_native_call_is_an_answer():
    """A reply that is only a native tool call is judged, and its name counts in any case."""
    judgment = judge(make_prompt(FREE), Reply(tool_calls=(ToolCall(name="Free"),)))

    assert (judgment.verdict.passed, judgment.outcome.success, judgment.tool_outcome) == (True, True, "valid")


@pytest.mark.parametrize(
    ("spec", "expected_tool_calls", "text", "success", "tool_outcome"),
    [
        pytest.param(FREE, None, "`free -h`", True, "valid", id="expected"),
        pytest.param(FREE, None, "`FREE -h`", True, "valid", id="expected-in-capitals"),
        pytest.param(FREE, None, "`ls` and `free`", True, "valid", id="expected-among-others"),
        pytest.param(FREE, None, "`ls`", False, "wrong_tool", id="another"),
        pytest.param(FREE, None, "free -h", False, "no_call", id="none"),
        pytest.param(FREE, None, "", False, "no_call", id="empty"),
        pytest.param(FREE, None, "<think>`free`</think>Sure.", False, "no_call", id="in-a-thought"),
        pytest.param(FREE, ("du",), "`du`", False, "wrong_tool", id="validator-goes-before-the-prompt"),
        pytest.param(ANY_TOOL, None, "`ls`", True, "valid", id="any-tool"),
        pytest.param(ANY_TOOL, None, "Sure.", False, "no_call", id="any-tool-but-none"),
        pytest.param(all_of(FREE, OK), None, "`free`", True, "valid", id="in-all-of-though-the-rest-fails"),
        pytest.param(OK, ("Free",), "`free`", True, "valid", id="prompt-expects"),
        pytest.param(NOOP, ("free", "du"), "`du`", True, "valid", id="prompt-expects-one-of"),
        pytest.param(NOOP, ("free -h",), "`free -h`", False, "wrong_tool", id="expected-with-a-blank"),
        pytest.param(NOOP, (), "`ls`", True, "valid", id="prompt-expects-any"),
        pytest.param(OK, None, "`free`", False, None, id="no-tool-check"),
        pytest.param(NO_TOOL, None, "It is 4.", False, "restrained", id="restrained"),
        pytest.param(NO_TOOL, None, "`ls`", False, "called_needlessly", id="called-needlessly"),
        pytest.param(NO_TOOL, (), "`ls`", False, "called_needlessly", id="restraint-goes-before-the-prompt"),
        pytest.param(all_of(NO_TOOL, OK), None, "OK", False, "restrained", id="restrained-in-all-of"),
    ],
)
def test_tool_use(spec, expected_tool_calls, text, success, tool_outcome):
    """Success means that one expected tool was invoked; a prompt with a rule about tools has one outcome."""
    judgment = judge(make_prompt(spec, expected_tool_calls), Reply(text=text))

    assert (judgment.tool_use_success, judgment.tool_outcome) == (success, tool_outcome)


@pytest.mark.parametrize(
    ("spec", "tool_outcome"),
    [pytest.param(FREE, "no_call", id="tool"), pytest.param(NO_TOOL, "called_needlessly", id="restraint")],
)
def test_tools_in_a_filtered_reply(spec, tool_outcome):
    """A filtered reply counts as no tool use, but its needless calls count; their names are recorded."""
    judgment = judge(make_prompt(spec), Reply(text="`free -h`", finish_reason="content_filter"))

    assert (judgment.tool_use_success, judgment.tool_outcome) == (False, tool_outcome)
    assert judgment.reply.tool_names == ("free",)


@pytest.mark.parametrize(
    ("reply", "text", "raw", "tool_names"),
    [
        pytest.param(Reply(text="`ls`"), "`ls`", "", ("ls",), id="no-thinking"),
        pytest.param(Reply(text="<think>a</think>`ls`"), "`ls`", "<think>a</think>`ls`", ("ls",), id="raw-keeps-thinking"),
        pytest.param(Reply(text="<think>a</think>b", raw="all"), "b", "all", (), id="raw-of-the-provider"),
        pytest.param(Reply(text="`ls`", tool_calls=(ToolCall(name="Exec"),), tool_names=("old",)), "`ls`", "", ("Exec", "ls"), id="names-are-made-anew"),
    ],
)  # fmt: skip
def test_prepare(reply, text, raw, tool_names):
    """Benchmarks get the answer and the names of its tools; the whole reply stays in `raw`."""
    answer = read(make_prompt(NOOP), reply).answer

    assert (answer.text, answer.raw, answer.tool_names) == (text, raw, tool_names)


@given(text=st.text(alphabet=st.characters(exclude_categories=())))
def test_every_reply_is_judged(text):
    """Whatever a model replies, a judgment is reached, and only an answer has a verdict."""
    judgment = judge(make_prompt(all_of(FREE, OK)), Reply(text=text))

    assert judgment.outcome.success == (judgment.verdict.passed is not None)
    assert judgment.reply.text == strip_thinking(text)


def _calling(*names):
    return {"type": "tool_call", "calls": [{"name": name} for name in names]}


def _tested(spec, *calls, tools="direct"):
    """Return the tools that a cell tests, whether it asks once or plays an exchange."""
    prompt = replace(make_prompt(spec), tools=read_tools(tools), tools_spec=tools)
    made = tuple(ToolCall(name=name, arguments=arguments) for name, arguments in calls)
    single = Reply(tool_calls=made, text="" if made else "Done?")
    turns = (*(Turn(calls=(call,), results=("",)) for call in made), Turn(text="Done."))
    found = {
        judge(prompt, one).tools_tested
        for one in (single, replace(single, text="Done.", ended_by="answer", turns=turns))
    }
    assert len(found) == 1
    return found.pop()


READ, LS = ("read", '{"path": "a"}'), ("exec", '{"command": "ls"}')
CARRIED = ("tool_call", '{"id": "openclaw:core:automations", "args": {"action": "list"}}')
OWN_READ = {"name": "read", "description": "Ours.", "parameters": {"type": "object", "properties": {}}}


@pytest.mark.parametrize(
    ("offered", "spec", "calls", "tools"),
    [
        pytest.param("direct", _calling("read"), [READ], ("read",), id="right"),
        pytest.param("direct", _calling("read"), [], ("read",), id="no-call"),
        pytest.param("direct", _calling("read"), [LS], ("read",), id="another-tool"),
        pytest.param("direct", _calling(["read", "exec"]), [LS], ("exec",), id="one-of-two-that-would-do"),
        pytest.param("direct", _calling(["read", "exec"]), [], ("exec", "read"), id="none-of-two-that-would-do"),
        pytest.param("direct", _calling("read", "exec"), [READ, LS], ("exec", "read"), id="both"),
        pytest.param("direct", _calling("read"), [READ, LS], ("read",), id="next-to-another"),
        pytest.param("direct", _calling("bash"), [LS], ("exec",), id="by-another-name"),
        pytest.param("direct", _calling("functions.Read"), [("Read", READ[1])], ("read",), id="as-openclaw-reads-names"),
        pytest.param("direct", _calling(["read", "exec"]), [("exec", "{}"), READ], ("read",), id="one-was-refused"),
        pytest.param("direct", _calling("get_weather"), [], (), id="not-a-tool-of-openclaw"),
        pytest.param("direct", all_of(_calling("read"), NOOP), [READ], ("read",), id="all-of"),
        pytest.param("direct", {"type": "any_of", "validators": [_calling("read"), _calling("exec")]}, [], ("exec", "read"), id="any-of"),
        pytest.param("direct", _calling(), [], (), id="restraint"),
        pytest.param("direct", {"type": "tool_invocation", "expected_tools": ["read"]}, [], (), id="by-the-text-detector"),
        pytest.param("direct", NOOP, [READ], (), id="nothing-demanded"),
        pytest.param([OWN_READ, "exec"], _calling("read", "exec"), [], ("exec",), id="a-namesake-of-the-suite"),
        pytest.param("tool-search", _calling("automations"), [CARRIED], ("automations",), id="over-the-bridge"),
        pytest.param("tool-search", _calling("automations"), [], ("automations",), id="not-over-the-bridge"),
    ],
)  # fmt: skip
def test_a_cell_tests_tools(offered, spec, calls, tools):
    """A right cell is evidence for the demanded tools that it called, another one against all demanded ones."""
    assert _tested(spec, *calls, tools=offered) == tools


CALLS_FREE = ToolInvocation(expected_tools=("free",))
CALLS_DU = ToolInvocation(expected_tools=("du", "free"))
CALLS_ANY = ToolInvocation(expected_tools=())


@pytest.mark.parametrize(
    ("validator", "tools"),
    [
        pytest.param(Noop(), None, id="asks-for-none"),
        pytest.param(CALLS_FREE, ("free",), id="itself"),
        pytest.param(CALLS_ANY, (), id="any-tool"),
        pytest.param(AllOf(validators=(Noop(), CALLS_FREE)), ("free",), id="all_of"),
        pytest.param(AnyOf(validators=(CALLS_FREE, AllOf(validators=(CALLS_DU,)))), ("free", "du"), id="nested-each-once"),
        pytest.param(AnyOf(validators=(CALLS_FREE, CALLS_ANY)), (), id="any_of-any-tool"),
        pytest.param(AllOf(validators=(CALLS_FREE, CALLS_ANY)), ("free",), id="all_of-any-tool"),
        pytest.param(AllOf(validators=(Noop(),)), None, id="all_of-without"),
        pytest.param(Not(validator=CALLS_FREE), None, id="not"),
    ],
)  # fmt: skip
def test_expected_tools(validator, tools):
    """The expected tools come from tool_invocation, also within all_of and any_of, not within not."""
    assert demands_of(validator).expected_tools == tools
