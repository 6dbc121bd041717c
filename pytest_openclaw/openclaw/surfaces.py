"""Makes the surface `openclaw`: from a capture of the installed OpenClaw, or a substitute in our own words.

The substitute has the sections, order and size of a release's system prompt, and the tools of the catalog
that ships. It contains no text of OpenClaw's own.
"""

from __future__ import annotations

import re
from functools import cache
from importlib import resources
from typing import TYPE_CHECKING

from pytest_openclaw.openclaw.catalog import DIRECT, load_catalogue, plugin_of
from pytest_openclaw.values.tool_calls import SUBSTITUTE, Surface, Tool

if TYPE_CHECKING:
    from pytest_openclaw.openclaw.catalog import Catalogue

# The same values in each run: a day far from a change of clocks, and plain names, paths and addresses.
_FILLED = {
    "Current date: <time>": "Current date: 2026-11-23",
    "<time>": "Mon 2026-11-23 09:00 UTC",
    "<zone>": "UTC",
    "<host>": "workstation",
    "<os>": "Linux 6.12.0 (x64)",
    "<id>": "5f0c7d1e-8a34-4c1b-9d52-3b7e6a90c4d8",
    "<workspace>": "/workspace",
    "<state>": "/home/user/.openclaw",
    "<scratch>": "/home/user",
    "<home>": "/home/user",
    "<openclaw>": "/usr/lib/node_modules/openclaw",
    "<user>": "user",
    "<address>": "user@example.com",
    "<port>": "18789",
}
_USUAL = frozenset(
    {"model", "tools", "tool_choice", "stream", "stream_options", "options", "think", "truncate", "shift"}
    | {"max_tokens", "max_completion_tokens", "max_output_tokens"}
)
"""Fields that the providers send themselves."""
LONGEST_LINE = 180
"""The maximum length of a tool's description in the list of deferred tools."""


def captured_surface(catalogue: Catalogue) -> Surface:
    """Return the default surface of a captured catalog.

    Raises:
        ValueError: the catalogue has no request of that surface; the text continues the file's name.
    """
    if DIRECT not in catalogue.requests:
        raise ValueError("has no request of OpenClaw's default surface; `capture-tools` writes one")
    request = catalogue.requests[DIRECT]
    question = request["question"]
    return Surface(
        source="captured",
        release=catalogue.name,
        system=fill(request["system"]),
        before=fill(question["before"]),
        after=fill(question["after"]),
        context=fill(question["context"]),
        tools=tuple(_plain(tool) for tool in catalogue.surface(DIRECT)),
        deferred=catalogue.deferred_tools() if request.get("deferred") else (),
        api=request["api"],
        fields={name: value for name, value in request["fields"].items() if name not in _USUAL},
    )


def _plain(tool: Tool) -> Tool:
    return Tool(name=tool.name, description=tool.description, parameters=tool.parameters)


@cache
def substitute_surface() -> Surface:
    """Return the substitute for the release whose catalog ships."""
    catalogue = load_catalogue()
    folder = resources.files("pytest_openclaw.openclaw").joinpath("catalogues")
    text = folder.joinpath("substitute.md").read_text("utf-8")
    system, question, context = (part.strip() for part in text.split("\n=====\n"))
    before, _, after = question.partition("<question>")
    deferred = catalogue.deferred_tools()
    return Surface(
        source=SUBSTITUTE,
        release=catalogue.name,
        system=fill(with_directory(system, {tool.name: tool.description for tool in deferred})),
        before=fill(before),
        after=fill(after),
        context=fill(context),
        tools=catalogue.surface(DIRECT),
        deferred=deferred,
    )


def fill(text: str) -> str:
    """Return a masked text with plain values for its placeholders; `<model>` stays."""
    for placeholder, value in _FILLED.items():
        text = text.replace(placeholder, value)
    return text


_DIRECTORY = re.compile(r"^### Deferred Tool Schemas\n[^\n]*\n(?P<entries>(?:- [^\n]*\n)*)", re.MULTILINE)


def with_directory(system: str, added: dict[str, str]) -> str:
    """Return a system prompt with these tools in its list of deferred tools; `added` is name → description.

    A system prompt without such a list is returned unchanged: its release sends all tools.
    """
    found = _DIRECTORY.search(system)
    if found is None or not added:
        return system
    lines = [f"- {name} ({plugin_of(name)}): {_short(description)}\n" for name, description in added.items()]
    entries = sorted([*found["entries"].splitlines(keepends=True), *lines])
    return system[: found.start("entries")] + "".join(entries) + system[found.end("entries") :]


def _short(description: str) -> str:
    line = " ".join(description.split())
    return line if len(line) <= LONGEST_LINE else f"{line[: LONGEST_LINE - 3]}..."
