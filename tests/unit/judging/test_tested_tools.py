"""Which tools of OpenClaw a cell is evidence about."""

from __future__ import annotations

from typing import Any

import pytest

from pytest_openclaw.judging.judge import judge
from pytest_openclaw.judging.registry import BUILTIN, build_registry, build_validator
from pytest_openclaw.openclaw.catalog import load_catalogue
from pytest_openclaw.suites.offered import read_tools
from pytest_openclaw.values.prompts import Prompt
from pytest_openclaw.values.replies import Reply, Turn
from pytest_openclaw.values.tool_calls import ToolCall

REGISTRY = build_registry(("pytest-openclaw", validator) for validator in BUILTIN)
OWN_READ = {"name": "read", "description": "Ours.", "parameters": {"type": "object", "properties": {}}}


def _calling(*names: Any) -> dict[str, Any]:
    return {"type": "tool_call", "calls": [{"name": name} for name in names]}


def _tested(
    spec: dict[str, Any], *calls: tuple[str, str], tools: Any = "direct", **reply: Any
) -> tuple[str, ...]:
    prompt = Prompt(
        suite="s.toml",
        id="N1",
        name="x",
        prompt="Read notes.md.",
        validator=build_validator(spec, REGISTRY),
        tools=None if tools is None else read_tools(tools),
        tools_spec=tools,
    )
    made = tuple(ToolCall(name=name, arguments=arguments) for name, arguments in calls)
    return judge(prompt, Reply(tool_calls=made, **{"text": "" if made else "Done?", **reply})).tools_tested


READ, LS = ("read", '{"path": "a"}'), ("exec", '{"command": "ls"}')


@pytest.mark.parametrize(
    ("spec", "calls", "tools"),
    [
        pytest.param(_calling("read"), [READ], ("read",), id="right"),
        pytest.param(_calling("read"), [], ("read",), id="no-call"),
        pytest.param(_calling("read"), [LS], ("read",), id="another-tool"),
        pytest.param(_calling(["read", "exec"]), [LS], ("exec",), id="one-of-two-that-would-do"),
        pytest.param(_calling(["read", "exec"]), [], ("exec", "read"), id="none-of-two-that-would-do"),
        pytest.param(_calling("read", "exec"), [READ, LS], ("exec", "read"), id="both"),
        pytest.param(_calling("read"), [READ, LS], ("read",), id="beside-another"),
        pytest.param(_calling("bash"), [LS], ("exec",), id="by-another-name"),
        pytest.param(_calling("functions.Read"), [("Read", '{"path": "a"}')], ("read",), id="as-openclaw-reads-names"),
        pytest.param(_calling(["read", "exec"]), [("exec", "{}"), READ], ("read",), id="one-was-refused"),
        pytest.param(_calling("get_weather"), [], (), id="no-tool-of-openclaw"),
        pytest.param(
            {"type": "all_of", "validators": [_calling("read"), {"type": "noop"}]}, [READ], ("read",), id="all-of"
        ),
        pytest.param(
            {"type": "any_of", "validators": [_calling("read"), _calling("exec")]}, [], ("exec", "read"), id="any-of"
        ),
        pytest.param(_calling(), [], (), id="restraint"),
        pytest.param({"type": "tool_invocation", "expected_tools": ["read"]}, [], (), id="by-the-text-detector"),
        pytest.param({"type": "noop"}, [READ], (), id="nothing-demanded"),
    ],
)  # fmt: skip
def test_a_cell_tests_tools(
    spec: dict[str, Any], calls: list[tuple[str, str]], tools: tuple[str, ...]
) -> None:
    """A right cell is evidence for the demanded tools that it called, another one against all demanded ones."""
    assert _tested(spec, *calls) == tools


def test_without_tools_on_the_wire_none_is_tested() -> None:
    """A call in a text runs nothing."""
    assert _tested(_calling("read"), tools=None) == ()


def test_a_suites_own_tool_is_none_of_openclaws() -> None:
    """It may have a name of OpenClaw's."""
    assert _tested(_calling("read", "exec"), tools=[OWN_READ, "exec"]) == ("exec",)


def test_a_call_over_the_bridge_tests_the_tool_that_it_reaches() -> None:
    """`tool_call` carries it."""
    carried = ("tool_call", '{"id": "openclaw:core:automations", "args": {"action": "list"}}')
    deferred = {tool.name for tool in load_catalogue().deferred_tools()}

    assert "automations" in deferred
    assert _tested(_calling("automations"), carried, tools="tool-search") == ("automations",)
    assert _tested(_calling("automations"), tools="tool-search") == ("automations",)


def test_an_exchange_counts_its_executed_calls() -> None:
    """A call of any turn will do."""
    call = ToolCall(name="exec", arguments='{"command": "ls"}')

    tested = _tested(
        _calling(["read", "exec"]),
        LS,
        text="Done.",
        ended_by="answer",
        turns=(Turn(calls=(call,)), Turn(text="Done.")),
    )

    assert tested == ("exec",)
