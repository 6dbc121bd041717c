"""Tools of a suite's own in the real OpenClaw: offered on `listed`, found over the bridge."""

import json

import pytest

from pytest_openclaw.judging.judge import judge
from pytest_openclaw.values.replies import Reply
from pytest_openclaw.values.requests import LISTED, OPENCLAW
from tests.openclaw.test_own_tools import WEATHER, asked_of, prompt

pytestmark = [pytest.mark.openclaw_cli, pytest.mark.nightly]

TURNS = {
    LISTED: [],
    OPENCLAW: [[("tool_search", '{"query": "weather"}')], [("tool_describe", '{"id": "get_weather"}')]],
}


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
