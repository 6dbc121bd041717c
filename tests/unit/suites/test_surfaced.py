"""A prompt on the surface `openclaw`: the offered tools, the tools behind the bridge, and its own."""

from dataclasses import replace

from pytest_openclaw.openclaw.catalog import load_catalogue, substitute_surface
from pytest_openclaw.openclaw.dispatch import reached_tools
from pytest_openclaw.suites.cells import definition
from pytest_openclaw.suites.offered import as_listed, on_surface
from pytest_openclaw.values.prompts import Prompt
from pytest_openclaw.values.tool_calls import LOOKUP_TURNS, OwnTool, Tool
from pytest_openclaw.values.worlds import World

SURFACE = substitute_surface()
OWN = OwnTool(name="tide_table", description="The tides of a port.")
SECTIONS = [
    "Tooling", "Tool Call Style", "Execution Bias", "Promised Work", "Safety", "Runtime Context", "OpenClaw Control",
    "Skills", "Skill Workshop", "Memory Recall", "Workspace", "Documentation", "Workspace Files (injected)",
    "/workspace/AGENTS.md", "/workspace/SOUL.md", "/workspace/IDENTITY.md", "Temporal Context",
    "Assistant Output Directives", "Silent Replies", "UI Presentation", "Messaging", "Runtime",
]  # fmt: skip


def prompt(*tools, **changes):
    catalogue = load_catalogue()
    found = tuple(tool if isinstance(tool, Tool) else catalogue.tools[tool] for tool in tools)
    spec = [{"name": tool.name} if isinstance(tool, Tool) else tool for tool in tools]
    usual = {"suite": "s", "id": "P", "name": "n", "prompt": "Q", "validator": None}
    return Prompt(**{**usual, "tools": found, "tools_spec": spec, **changes})


def names(tools):
    return [tool.name for tool in tools]


def test_the_substitute_has_the_sections_order_and_size_of_the_release():
    """2026.9.6 sends 25.6 KB to an empty workspace; descriptions of tools are shorter here."""
    headings = [line[3:] for line in SURFACE.system.splitlines() if line.startswith("## ")]

    assert headings == SECTIONS
    assert 20_000 < len(SURFACE.system.encode()) < 26_000
    assert (SURFACE.source, names(SURFACE.tools)) == ("substitute", names(load_catalogue().surface("direct")))
    assert "- web_search (core): " in SURFACE.system
    assert not [
        word for word in ("<workspace>", "<time>", "<host>", "<id>", "<state>") if word in SURFACE.system
    ]


def test_tools_are_sent_or_behind_the_bridge():
    """The surface's tools are sent; the prompt's other tools are reached, and in the directory."""
    asked = on_surface(prompt("read", "web_search", OWN), SURFACE)

    assert names(asked.tools) == names(SURFACE.tools)
    reached = names(reached_tools(asked.tools))
    assert {"read", "web_search", "tide_table"} <= {*reached}
    assert "- tide_table (core): The tides of a port.\n" in (asked.system or "")
    assert (asked.system or "").count("- web_search (core)") == 1


def test_a_tool_of_the_suites_own_takes_the_place_of_its_namesake():
    """It is judged by the suite's schema, wherever it is."""
    own = [OwnTool(name=name, description="mine") for name in ("read", "web_search")]

    asked = on_surface(prompt(*own), SURFACE)

    found = {tool.name: tool for tool in reached_tools(asked.tools or ())}
    assert [found["read"].description, found["web_search"].description] == ["mine", "mine"]


def test_a_system_text_is_that_of_agents_md():
    """OpenClaw writes its own system prompt, in which a user's text has this place."""
    asked = on_surface(prompt("read", system=r"Answer in \1 German."), SURFACE)

    assert "## /workspace/AGENTS.md\nAnswer in \\1 German.\n## /workspace/SOUL.md" in (asked.system or "")


def test_config_json_keeps_the_prompt_of_the_suite():
    """A run on both surfaces defines each prompt once; a world has more steps only on the surface."""
    one = prompt("read", world=World(steps=3))

    asked = on_surface(one, SURFACE)

    assert definition(asked) == definition(one)
    assert asked.world.steps == 3 + LOOKUP_TURNS
    assert as_listed(replace(asked, id="P[a]")) == replace(one, id="P[a]")


def test_a_surface_without_a_bridge_sends_everything():
    """A user's own config may switch tool search off."""
    direct = replace(SURFACE, tools=SURFACE.tools[:2], deferred=(), system="Be brief.")

    asked = on_surface(prompt("read", OWN), direct)

    assert names(asked.tools) == [*names(direct.tools), "read", "tide_table"]
    assert asked.system == "Be brief."
