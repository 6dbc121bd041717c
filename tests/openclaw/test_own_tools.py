"""Tools of a suite's own through the provider around OpenClaw, which adds them to a fake by its plugin."""

from __future__ import annotations

import asyncio
import json
import shlex
import sys
from pathlib import Path
from typing import Any

import pytest

from pytest_openclaw.judging.judge import judge
from pytest_openclaw.judging.registry import BUILTIN, build_registry, build_validator
from pytest_openclaw.openclaw.catalog import load_catalogue
from pytest_openclaw.openclaw.surfaces import substitute_surface
from pytest_openclaw.providers.openclaw_agent import OpenClawAgent
from pytest_openclaw.suites.offered import on_surface
from pytest_openclaw.values.faults import CallFailed
from pytest_openclaw.values.prompts import Prompt
from pytest_openclaw.values.protocols import ProviderSetup
from pytest_openclaw.values.replies import Fault, Reply
from pytest_openclaw.values.requests import LISTED, OPENCLAW, Request, SurfaceName
from pytest_openclaw.values.tool_calls import LOOKUP_TURNS, Tool
from tests.openclaw.model_server import ScriptedModel

pytestmark = [
    pytest.mark.newest,
    pytest.mark.skipif(sys.platform == "win32", reason="the fake is called by a POSIX command line"),
    pytest.mark.usefixtures("scratch"),
]

FAKE = Path(__file__).with_name("fake_openclaw.py")
WEATHER = Tool(
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


def prompt(surface: SurfaceName) -> Prompt:
    """A prompt with its own tool and one of OpenClaw's, on a surface."""
    registry = build_registry(("pytest-openclaw", validator) for validator in BUILTIN)
    listed = Prompt(
        suite="s",
        id="P",
        name="n",
        prompt="What is the weather in Oslo?",
        tools=(WEATHER, load_catalogue().tools["read"]),
        tools_spec=[{"name": "get_weather"}, "read"],
        validator=build_validator(SPEC, registry),
    )
    return listed if surface == LISTED else on_surface(listed, substitute_surface())


def request(asked: Prompt, surface: SurfaceName, **changes: Any) -> Request:
    """The request for a prompt."""
    usual: dict[str, Any] = {"model": "local/tiny", "prompt": asked.prompt, "timeout_s": 240.0}
    usual |= {"tools": asked.tools, "surface": surface}
    if asked.listed is not None:
        usual |= {"listed_tools": asked.listed.tools, "lookup_turns": LOOKUP_TURNS}
    return Request(**usual | changes)


def ask(command: str, asked: Request, *turns: Any, **environ: str) -> tuple[Reply | Fault, list[Any]]:
    """Ask a model that plays these turns; return the reply, and the requests to the model."""
    with ScriptedModel(*turns, prompt_tokens=3000) as model:
        own = {"OPENCLAW_AGENT_COMMAND": command, "OPENCLAW_AGENT_BASE_URL": model.url}
        provider = OpenClawAgent(ProviderSetup(name="openclaw_agent", environ=environ | own))

        async def one() -> Reply | Fault:
            try:
                return await provider.ask(asked)
            except CallFailed as failed:
                return failed.fault
            finally:
                await provider.aclose()

        return asyncio.run(one()), model.asked


def fake(tmp_path: Path, mode: str = "answer") -> str:
    """The command of the fake."""
    return shlex.join([sys.executable, str(FAKE), mode, str(tmp_path / "seen.json")])


@pytest.mark.parametrize("surface", [LISTED, OPENCLAW])
def test_the_agent_gets_the_prompts_own_tools(tmp_path: Path, surface: SurfaceName) -> None:
    """The plugin has name, description and schema of the tool, and the policy allows it in addition to the others."""
    asked = prompt(surface)

    reply, _ = ask(fake(tmp_path), request(asked, surface), [CALLS[surface]], "Done.")

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
def test_the_model_is_not_asked_without_them(tmp_path: Path, surface: SurfaceName) -> None:
    """An OpenClaw that does not take the tool would measure another prompt: the cell is skipped, with the reason."""
    asked = prompt(surface)

    fault, bodies = ask(fake(tmp_path, "deaf"), request(asked, surface), [CALLS[surface]], "Done.")

    assert isinstance(fault, Fault)
    assert fault.status == "skipped_unavailable"
    assert "does not offer get_weather without a gateway" in fault.message
    assert bodies == []
