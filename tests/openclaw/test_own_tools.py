"""Tools of a suite's own through the provider around OpenClaw, which adds them by its plugin: to a fake, and to the real one."""

import json
import sys

import pytest

from pytest_openclaw.judging.judge import judge
from pytest_openclaw.judging.registry import build_validator
from pytest_openclaw.openclaw.catalog import load_catalogue, substitute_surface
from pytest_openclaw.suites.offered import on_surface
from pytest_openclaw.values.prompts import Prompt
from pytest_openclaw.values.replies import Reply
from pytest_openclaw.values.requests import LISTED, OPENCLAW
from pytest_openclaw.values.tool_calls import LOOKUP_TURNS, OwnTool
from tests.builtin import REGISTRY
from tests.openclaw.asking import agent, ask, fake_command
from tests.openclaw.model_server import ScriptedModel

pytestmark = [
    pytest.mark.newest,
    pytest.mark.skipif(sys.platform == "win32", reason="the fake is called by a POSIX command line"),
    pytest.mark.usefixtures("scratch"),
]

WEATHER = OwnTool(
    name="get_weather",
    description="Current weather in a city.",
    parameters={
        "type": "object",
        "properties": {"city": {"type": "string"}, "unit": {"type": "string", "enum": ["celsius", "kelvin"]}},
        "required": ["city"],
    },
)
SPEC = {"type": "tool_call", "calls": [{"name": "get_weather", "arguments": {"city": "Oslo"}}]}
OSLO = {"city": "Oslo"}
CALLS = {
    LISTED: ("get_weather", json.dumps(OSLO)),
    OPENCLAW: ("tool_call", json.dumps({"id": "get_weather", "args": OSLO})),
}


def prompt(surface):
    listed = Prompt(
        suite="s",
        id="P",
        name="n",
        prompt="What is the weather in Oslo?",
        tools=(WEATHER, load_catalogue().tools["read"]),
        tools_spec=[{"name": "get_weather"}, "read"],
        validator=build_validator(SPEC, REGISTRY),
    )
    return listed if surface == LISTED else on_surface(listed, substitute_surface())


def asked_of(command, asked, surface, *turns, environ=None):
    """Ask an OpenClaw whose model plays these turns and calls the tool; return the result and its requests."""
    request = {"prompt": asked.prompt, "timeout_s": 240.0, "tools": asked.tools}
    if asked.listed is not None:
        request |= {"listed_tools": asked.listed.tools, "lookup_turns": LOOKUP_TURNS}
    with ScriptedModel(*turns, [CALLS[surface]], "Done.", prompt_tokens=3000) as model:
        return ask(agent(command, model.url, **environ or {}), **request, surface=surface), model.asked


@pytest.mark.parametrize("surface", [LISTED, OPENCLAW])
def test_the_agent_gets_the_prompts_own_tools(tmp_path, surface):
    """The plugin has name, description and schema of the tool, and the policy allows it in addition to the others."""
    asked = prompt(surface)

    reply, _ = asked_of(fake_command(tmp_path / "seen.json"), asked, surface)

    assert isinstance(reply, Reply), reply
    assert judge(asked, reply).tool_outcome == "valid"
    seen = json.loads((tmp_path / "seen.json").read_text("utf-8"))
    assert seen["arguments"][:2] == ["agent", "--local"]
    (entry,) = seen["config"]["plugins"]["entries"].values()
    described = {"description": WEATHER.description, "parameters": WEATHER.parameters}
    assert entry["config"]["tools"] == [{"name": "get_weather", **described}]
    tools = seen["config"]["tools"]
    if surface == LISTED:
        assert (tools["allow"], tools["profile"]) == (["get_weather", "read"], "full")
    else:
        assert (tools["alsoAllow"], tools["profile"]) == (["get_weather"], "coding")


@pytest.mark.parametrize("surface", [LISTED, OPENCLAW])
def test_the_model_is_not_asked_without_them(tmp_path, surface):
    """An OpenClaw that does not take the tool would measure another prompt: the cell is skipped, with the reason."""
    fault, bodies = asked_of(fake_command(tmp_path / "seen.json", "deaf"), prompt(surface), surface)

    assert fault.status == "skipped_unavailable"
    assert "does not offer get_weather without a gateway" in fault.message
    assert bodies == []


TURNS = {
    LISTED: [],
    OPENCLAW: [[("tool_search", '{"query": "weather"}')], [("tool_describe", '{"id": "get_weather"}')]],
}


@pytest.mark.openclaw_cli
@pytest.mark.nightly
@pytest.mark.parametrize("surface", [LISTED, OPENCLAW])
def test_the_agent_offers_the_prompts_own_tools(real_openclaw, surface):
    """The model sees the suite's description and schema, where it finds tools; its call is judged, not made."""
    asked = prompt(surface)

    environ = real_openclaw.environ
    reply, bodies = asked_of(real_openclaw.command, asked, surface, *TURNS[surface], environ=environ)

    assert isinstance(reply, Reply), reply
    assert judge(asked, reply).tool_outcome == "valid"
    assert len(bodies) == 1 + len(TURNS[surface])
    assert WEATHER.description in json.dumps(bodies[-1])
    if surface == LISTED:
        offered = {tool["function"]["name"]: tool["function"] for tool in bodies[0]["tools"]}
        assert sorted(offered) == ["get_weather", "read"]
        assert offered["get_weather"]["parameters"] == WEATHER.parameters
    if surface == OPENCLAW:
        described = json.loads(reply.turns[1].results[0])
        assert described["parameters"] == WEATHER.parameters
