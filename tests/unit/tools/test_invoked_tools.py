"""Native calls and tools in the text, together."""

import pytest

from pytest_openclaw.openclaw.detector import invoked_tools
from pytest_openclaw.values.replies import Reply
from pytest_openclaw.values.tool_calls import ToolCall


@pytest.mark.parametrize(
    ("calls", "text", "tools"),
    [
        pytest.param((), "", (), id="nothing"),
        pytest.param((), "`free`", ("free",), id="text"),
        pytest.param(("exec",), "", ("exec",), id="native"),
        pytest.param(("exec",), "`free`", ("exec", "free"), id="native-first"),
        pytest.param(("b", "a", "b"), "", ("b", "a"), id="native-in-order-once"),
        pytest.param(("getWeather",), "<tool>GETWEATHER</tool>", ("getWeather",), id="as-called"),
        pytest.param(("Exec", "exec"), "", ("Exec",), id="case-ignored"),
        pytest.param(("exec",), "<think>`free`</think>", ("exec",), id="thinking"),
    ],
)
def test_invoked_tools(calls, text, tools):
    """Native names come first and unchanged, then those in the text, each once whatever its case."""
    reply = Reply(text=text, tool_calls=tuple(ToolCall(name=name) for name in calls))

    assert invoked_tools(reply) == tools
