"""A prompt on the surface `openclaw`: what it is offered, what is behind the bridge, and what stays its own."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest

from pytest_openclaw.suites import build_cells
from pytest_openclaw.suites.definitions import definition
from pytest_openclaw.suites.surfaced import as_listed, on_surface, why_not_on_openclaw
from pytest_openclaw.tools.bridge import BRIDGE, reached_tools
from pytest_openclaw.tools.catalogue import load_catalogue
from pytest_openclaw.tools.dispatch import dispatch
from pytest_openclaw.tools.surface_sources import fill, substitute_surface, with_directory
from pytest_openclaw.types.prompts import Prompt
from pytest_openclaw.types.surface import LOOKUP_TURNS, surface_from_json, surface_to_json
from pytest_openclaw.types.targets import OPENCLAW, OPENCLAW_CODE, Target
from pytest_openclaw.types.tool_calls import Tool, ToolCall
from pytest_openclaw.types.worlds import World

SURFACE = substitute_surface()
OWN = Tool(name="tide_table", description="The tides of a port.")
SECTIONS = [
    "Tooling", "Tool Call Style", "Execution Bias", "Promised Work", "Safety", "Runtime Context", "OpenClaw Control",
    "Skills", "Skill Workshop", "Memory Recall", "Workspace", "Documentation", "Workspace Files (injected)",
    "/workspace/AGENTS.md", "/workspace/SOUL.md", "/workspace/IDENTITY.md", "Temporal Context",
    "Assistant Output Directives", "Silent Replies", "UI Presentation", "Messaging", "Runtime",
]  # fmt: skip


def prompt(*tools: str | Tool, **changes: Any) -> Prompt:
    """A prompt that lists these tools."""
    catalogue = load_catalogue()
    found = tuple(tool if isinstance(tool, Tool) else catalogue.tools[tool] for tool in tools)
    spec = [{"name": tool.name} if isinstance(tool, Tool) else tool for tool in tools]
    usual: dict[str, Any] = {"suite": "s", "id": "P", "name": "n", "prompt": "Q", "validator": None}
    return Prompt(**{**usual, "tools": found, "tools_spec": spec, **changes})


def names(tools: Any) -> list[str]:
    """Return the names of tools."""
    return [tool.name for tool in tools]


def test_the_substitute_has_the_sections_order_and_size_of_the_release() -> None:
    """2026.9.6 sends 25.6 KB to an empty workspace; descriptions of tools are shorter here."""
    headings = [line[3:] for line in SURFACE.system.splitlines() if line.startswith("## ")]

    assert headings == SECTIONS
    assert 20_000 < len(SURFACE.system.encode()) < 26_000
    assert (SURFACE.source, names(SURFACE.tools)) == ("substitute", names(load_catalogue().surface("direct")))
    assert "- web_search (core): " in SURFACE.system
    assert not [
        word for word in ("<workspace>", "<time>", "<host>", "<id>", "<state>") if word in SURFACE.system
    ]


def test_tools_are_sent_or_behind_the_bridge() -> None:
    """The surface's tools are sent; what the prompt lists beside them is reached, and in the directory."""
    asked = on_surface(prompt("read", "web_search", OWN), SURFACE)

    assert asked.tools is not None
    assert names(asked.tools) == names(SURFACE.tools)
    reached = names(reached_tools(asked.tools))
    assert {"read", "web_search", "tide_table"} <= {*reached}
    assert "- tide_table (core): The tides of a port.\n" in (asked.system or "")
    assert (asked.system or "").count("- web_search (core)") == 1


def test_a_tool_of_the_suites_own_takes_the_place_of_its_namesake() -> None:
    """It is judged by the suite's schema, wherever it is."""
    own = [Tool(name=name, description="mine") for name in ("read", "web_search")]

    asked = on_surface(prompt(*own), SURFACE)

    found = {tool.name: tool for tool in reached_tools(asked.tools or ())}
    assert [found["read"].description, found["web_search"].description] == ["mine", "mine"]


def test_a_system_text_is_that_of_agents_md() -> None:
    """OpenClaw writes its own system prompt, in which a user's text has this place."""
    asked = on_surface(prompt("read", system=r"Answer in \1 German."), SURFACE)

    assert "## /workspace/AGENTS.md\nAnswer in \\1 German.\n## /workspace/SOUL.md" in (asked.system or "")


def test_what_config_json_keeps_is_the_prompt_of_the_suite() -> None:
    """A run on both surfaces defines each prompt once; a world has more steps on the surface alone."""
    one = prompt("read", world=World(steps=3))

    asked = on_surface(one, SURFACE)

    assert definition(asked) == definition(one)
    assert asked.world is not None
    assert asked.world.steps == 3 + LOOKUP_TURNS
    assert as_listed(replace(asked, id="P[a]")) == replace(one, id="P[a]")


def test_a_surface_without_a_bridge_sends_everything() -> None:
    """A user's own config may switch tool search off."""
    direct = replace(SURFACE, tools=SURFACE.tools[:2], deferred=(), system="Be brief.")

    asked = on_surface(prompt("read", OWN), direct)

    assert names(asked.tools) == [*names(direct.tools), "read", "tide_table"]
    assert asked.system == "Be brief."


def test_in_code_mode_two_tools_are_sent_and_code_calls_the_others() -> None:
    """The bridge is gone; a call on the wire reaches what is sent, a call of code everything else."""
    asked = on_surface(prompt("read", OWN), SURFACE, OPENCLAW_CODE)

    assert asked.tools is not None
    assert names(asked.tools) == ["exec", "wait", "sessions_yield"]
    reached = {tool.name for tool in reached_tools(asked.tools)}
    assert {"read", "exec", "web_search", "tide_table", "sessions_yield"} < reached
    assert not reached & {*BRIDGE}
    cat = '{"command": "cat a"}'
    made = {
        (name, in_code): dispatch(ToolCall(name=name, arguments=cat, in_code=in_code), asked.tools).problem
        for name in ("exec", "web_search", "sessions_yield")
        for in_code in (False, True)
    }
    assert made == {
        ("exec", False): "bad_arguments",
        ("exec", True): None,
        ("web_search", False): "unknown_tool",
        ("web_search", True): "bad_arguments",
        ("sessions_yield", False): None,
        ("sessions_yield", True): "unknown_tool",
    }


def test_some_prompts_are_asked_on_listed_alone() -> None:
    """Those judged as text, and those that vary the tools that are listed."""
    text = replace(prompt(), tools=None, tools_spec=None)
    harder = prompt("read", pressure_of="P")
    target = Target(provider="p", model="m")

    assert [why_not_on_openclaw(one) for one in (text, harder, prompt("read"))] == [
        "lists no tools", "varies the tools that it lists", "",
    ]  # fmt: skip
    cells = build_cells([text, harder, prompt("read")], [target, target.on(OPENCLAW)], surface=SURFACE)
    assert [cell.target.surface for cell in cells] == ["listed", "listed", "listed", "openclaw"]
    assert cells[-1].id == "P[p/m+openclaw]"


def test_a_surface_is_read_back_from_its_file() -> None:
    """Resumed and rescored runs use what was sent."""
    again = surface_from_json(surface_to_json(SURFACE))

    assert (again, again.sha256) == (SURFACE, SURFACE.sha256)
    assert replace(SURFACE, after="x").sha256 != SURFACE.sha256


@pytest.mark.parametrize(
    ("masked", "filled"),
    [
        ("[<time>] ", "[Mon 2026-11-23 09:00 UTC] "),
        ("Current date: <time>", "Current date: 2026-11-23"),
        ("<workspace>/AGENTS.md of <model>", "/workspace/AGENTS.md of <model>"),
    ],
)
def test_placeholders_get_the_same_values_in_each_run(masked: str, filled: str) -> None:
    """The model's name differs between requests, so it stays."""
    assert fill(masked) == filled


def test_a_long_description_is_cut_in_the_directory() -> None:
    """OpenClaw cuts them, too; a text without a directory stays as it is."""
    found = with_directory(SURFACE.system, {"x": "word " * 100})

    line = next(line for line in found.splitlines() if line.startswith("- x (core)"))
    assert line.endswith("...")
    assert len(line) < 200
    assert with_directory("nothing", {"x": "y"}) == "nothing"
