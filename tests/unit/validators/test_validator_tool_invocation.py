"""tool_invocation, and a validator's statement about the tools of its prompt."""

import pytest

from pytest_openclaw.judging.combine import AllOf, AnyOf, Not, ToolInvocation
from pytest_openclaw.judging.keys import demands_of
from pytest_openclaw.judging.text import Noop
from pytest_openclaw.values.replies import Reply
from pytest_openclaw.values.tool_calls import ToolCall

FREE = ToolInvocation(expected_tools=("free",))
DU = ToolInvocation(expected_tools=("du", "free"))
ANY = ToolInvocation(expected_tools=())


def called(name):
    """A reply that is one native call."""
    return Reply(tool_calls=(ToolCall(name=name, arguments="{}"),))


@pytest.mark.parametrize(
    ("expected", "reply", "passed", "violation"),
    [
        pytest.param(["free"], Reply(text="`free -h`"), True, None, id="text"),
        pytest.param(["exec"], called("exec"), True, None, id="native"),
        pytest.param(["Exec"], called("EXEC"), True, None, id="any-case"),
        pytest.param(["du", "free"], Reply(text="`free -h`"), True, None, id="one-is-enough"),
        pytest.param(["du"], Reply(text="`free -h`"), False, 'invoked: "free"; expected: one of "du"', id="another"),
        pytest.param(["du"], Reply(text="No."), False, 'invoked: no tool; expected: one of "du"', id="none"),
        pytest.param(["free -h"], Reply(text="`free -h`"), False, 'invoked: "free"; expected: one of "free -h"', id="blank"),
        pytest.param([], Reply(text="`du`"), True, None, id="any-tool"),
        pytest.param([], Reply(text="No."), False, "invoked: no tool; expected: any tool", id="any-tool-none"),
    ],
)  # fmt: skip
def test_tool_invocation(expected, reply, passed, violation):
    """tool_invocation passes if one of the expected tools is invoked, or any if none is named."""
    verdict = ToolInvocation(expected_tools=expected).check(reply)

    assert (verdict.passed, verdict.violation) == (passed, violation)


def test_parsed_tools():
    """parsed_output lists the tools invoked, each once."""
    verdict = FREE.check(Reply(text="`free -h`, then `du`, then `free`"))

    assert verdict.parsed == {"tools": ["free", "du"]}


@pytest.mark.parametrize(
    ("validator", "tools"),
    [
        pytest.param(Noop(), None, id="asks-for-none"),
        pytest.param(FREE, ("free",), id="itself"),
        pytest.param(ANY, (), id="any-tool"),
        pytest.param(AllOf(validators=(Noop(), FREE)), ("free",), id="all_of"),
        pytest.param(
            AnyOf(validators=(FREE, AllOf(validators=(DU,)))), ("free", "du"), id="nested-each-once"
        ),
        pytest.param(AnyOf(validators=(FREE, ANY)), (), id="any_of-any-tool"),
        pytest.param(AllOf(validators=(FREE, ANY)), ("free",), id="all_of-any-tool"),
        pytest.param(AllOf(validators=(Noop(),)), None, id="all_of-without"),
        pytest.param(Not(validator=FREE), None, id="not"),
    ],
)
def test_expected_tools(validator, tools):
    """The expected tools are those of tool_invocation, also within all_of and any_of, not within not."""
    assert demands_of(validator).expected_tools == tools


@pytest.mark.parametrize(
    ("validator", "answer"),
    [
        pytest.param(Not(validator=ANY), True, id="no-tool-at-all"),
        pytest.param(AllOf(validators=(Noop(), AllOf(validators=(Not(validator=ANY),)))), True, id="all_of"),
        pytest.param(AnyOf(validators=(Not(validator=ANY),)), False, id="any_of"),
        pytest.param(Not(validator=FREE), False, id="one-tool-forbidden"),
        pytest.param(Not(validator=Noop()), False, id="not-something-else"),
        pytest.param(ANY, False, id="asks-for-a-tool"),
    ],
)
def test_restrains(validator, answer):
    """A prompt restrains if no tool at all may be invoked."""
    assert demands_of(validator).restrains is answer
