"""Resolves a prompt's `tools` to the tools that a model is offered, on each surface and under pressure."""

from __future__ import annotations

import re
import tomllib
from collections.abc import Iterator
from dataclasses import replace
from functools import cache, lru_cache, partial
from importlib import resources
from pathlib import Path
from typing import Annotated, Any, Literal, NamedTuple

from msgspec import Meta, Struct, structs

from pytest_openclaw.openclaw.catalog import (
    CALL,
    Bridge,
    Catalogue,
    flattened,
    load_catalogue,
    read_catalogue,
    suite_tools,
    with_directory,
)
from pytest_openclaw.openclaw.dispatch import BRIDGE
from pytest_openclaw.util.files import JsonObject
from pytest_openclaw.util.text import closest
from pytest_openclaw.util.typed import Filled, prefixed, shown
from pytest_openclaw.values.prompts import NOTE, Key, Prompt
from pytest_openclaw.values.tool_calls import LOOKUP_TURNS, Effect, OwnTool, Surface, Tool


def of_catalogue(catalogue: Catalogue, tools: Any) -> JsonObject:
    """Return `tools` from a captured catalogue: the catalogue's file, its hash, and the suite's value."""
    return {"catalogue": catalogue.source, "sha256": catalogue.sha256, "tools": tools}


def catalogue_of(tools: Any) -> Catalogue | None:
    """Return the captured catalogue of a prompt's tools, or None; raise `ValueError` if it has changed."""
    if suite_tools(tools) is tools:
        return None
    return _captured(str(tools["catalogue"]), str(tools["sha256"]))


class ToolSpec(Struct, forbid_unknown_fields=True):
    """A tool that the suite itself describes; see `OwnTool`."""

    name: Filled
    description: str = ""
    parameters: dict[str, Any] = {}
    effect: Effect = "read"

    def __post_init__(self) -> None:
        self.parameters = self.parameters or {"type": "object", "properties": {}}
        if self.parameters.get("type") != "object":
            raise ValueError(
                'has parameters whose schema is not of type object. Write { type = "object", … }.'
            )
        from pytest_openclaw.util.bounded import BoundedSchema

        with prefixed("has parameters with a schema that"):
            BoundedSchema(self.parameters)


def _tools_of(value: str | list[str | ToolSpec], catalogue: Catalogue | None = None) -> tuple[Tool, ...]:
    catalogue = catalogue or load_catalogue()
    if isinstance(value, str):
        if value not in catalogue.surfaces:
            known = ", ".join(sorted(catalogue.surfaces))
            raise ValueError(f"names the unknown surface {shown(value)}; {catalogue.source} has {known}.")
        tools = catalogue.surface(value)
    else:
        tools = ()
        for entry in value:
            if isinstance(entry, ToolSpec):
                given = structs.asdict(entry) | {"parameters": flattened(entry.parameters)}
                tools += (OwnTool(**given),)
            elif entry in catalogue.tools:
                tools += (catalogue.tool(entry),)
            else:
                hint = closest(entry, catalogue.tools) or " Describe it: name, description, parameters."
                raise ValueError(f"names {shown(entry)}, which {catalogue.source} does not have.{hint}")
    names = [tool.name for tool in tools]
    if twice := next((name for name in names if names.count(name) > 1), None):
        raise ValueError(f"offers {shown(twice)} twice. Keep one of them.")
    return tools


def without_notes(table: Any, *lists: str) -> Any:
    """Return a table without the author's own keys, also in the tables of these lists."""
    if not isinstance(table, dict):
        return table
    plain = {key: value for key, value in table.items() if not key.startswith(NOTE)}
    inner = {name: plain[name] for name in lists if isinstance(plain.get(name), list)}
    return plain | {name: [without_notes(one) for one in tables] for name, tables in inner.items()}


_LIST = Key(str | list[str | ToolSpec], '"direct" or tools = ["read", { name = "get_weather" }]')


def read_tools(value: Any) -> tuple[Tool, ...]:
    """Return the tools of a prompt: of a surface, or of a list of catalogue names and own tools.

    A `ValueError` names the key and has a hint.
    """
    with prefixed("tools"):
        catalogue = catalogue_of(value)
    listed = suite_tools(value)
    plain = [*map(without_notes, listed)] if isinstance(listed, list) else listed
    tools: tuple[Tool, ...] = _LIST.read("tools", plain, partial(_tools_of, catalogue=catalogue))
    return tools


@cache
def _captured(file: str, sha256: str) -> Catalogue:
    try:
        found = read_catalogue(Path(file))
    except ValueError as error:
        raise ValueError(f"are from {file}, which {error}.") from None
    if found.sha256 != sha256:
        raise ValueError(f"are from {file}, which has changed since.")
    return found


_INSTRUCTIONS = re.compile(r"(^## \S*AGENTS\.md\n)\[MISSING\][^\n]*", re.MULTILINE)


def why_not_on_openclaw(prompt: Prompt) -> str:
    """Return why a prompt is asked only on `listed`; empty if it can be asked on `openclaw`."""
    if prompt.tools is None:
        return "lists no tools"
    if prompt.is_private:
        return "has the tools and the system text of a recorded session"
    return "varies the tools that it lists" if prompt.pressure_of else ""


def on_surface(prompt: Prompt, surface: Surface) -> Prompt:
    """Return the prompt as OpenClaw asks it.

    The prompt offers the surface's tools. A tool that the suite itself describes replaces a sent tool of the
    same name; every other tool that the prompt lists is behind the bridge, and in the directory. The prompt's
    system text becomes the text of AGENTS.md.
    """
    assert prompt.tools is not None, "a prompt without tools is asked only on `listed`"
    own = {tool.name: tool for tool in prompt.tools if isinstance(tool, OwnTool)}
    sent = {tool.name: own.get(tool.name, tool) for tool in surface.tools}
    behind = {tool.name: own.get(tool.name, tool) for tool in surface.deferred}
    added = [tool for tool in prompt.tools if tool.name not in {*sent, *behind, *BRIDGE}]
    if CALL not in sent:  # the surface has no bridge: all tools are sent
        sent |= {tool.name: tool for tool in added}
        added = []
    behind |= {tool.name: tool for tool in added}
    if CALL in sent:
        sent[CALL] = Bridge.of(sent[CALL], tuple(behind.values()))
    world = prompt.world and structs.replace(prompt.world, steps=prompt.world.steps + LOOKUP_TURNS)
    return replace(
        prompt,
        system=_system(surface.system, tuple((tool.name, tool.description) for tool in added), prompt.system),
        tools=tuple(sent.values()),
        world=world,
        surface=surface,
        listed=prompt,
    )


def as_listed(prompt: Prompt) -> Prompt:
    """Return the prompt as the suite lists it, with its present id."""
    return prompt if prompt.listed is None else replace(prompt.listed, id=prompt.id)


@cache  # prompts that add nothing share one text, because each request contains it
def _system(system: str, added: tuple[tuple[str, str], ...], instructions: str | None) -> str:
    system = with_directory(system, dict(added))
    if not instructions:
        return system
    filled, n = _INSTRUCTIONS.subn(lambda found: found[1] + instructions, system, count=1)
    return filled if n else f"{system}\n## AGENTS.md\n{instructions}"


# --- pressure: the same prompt with more tools, and with more text before it ----------------------

TOKENS_PER_WORD = 1.3
"""An estimate for plain English and common tokenizers; the row has the server's count."""


@lru_cache(maxsize=16)
def padding(tokens: int) -> str:
    """Return about `tokens` tokens of a description of a town; the text is always the same."""
    file = resources.files("pytest_openclaw.suites").joinpath("passage.toml")
    words = tomllib.loads(file.read_text("utf-8"))
    begins, ends = words["begins"], words["ends"]
    # Lists of 10, 10, 7 and 8 entries with different steps repeat only after some hundred sentences.
    lists = [(words["places"], 1), (words["things"], 3), (words["qualities"], 2), (words["habits"], 1)]
    sentences = [begins]
    n_words = len(f"{begins} {ends}".split())
    while n_words * TOKENS_PER_WORD < tokens:
        n = len(sentences)
        place, thing, quality, habit = (one[n // step % len(one)] for one, step in lists)
        sentences.append(f"On page {n}, the {thing} near the {place} is {quality}, and {habit}.")
        n_words += len(sentences[-1].split())
    return " ".join([*sentences, ends])


#: number of tools → the surface with about that number; 1 is the entry's own tools
SURFACES = {1: None, 11: "direct", 54: "full"}
MOST_PADDING_TOKENS = 200_000


class PressureSpec(Struct, forbid_unknown_fields=True):
    """The value of `pressure` in an entry."""

    tools: list[Literal[1, 11, 54]] = []
    padding_tokens: list[Annotated[int, Meta(ge=1, le=MOST_PADDING_TOKENS)]] = []

    def __post_init__(self) -> None:
        if not (self.tools or self.padding_tokens):
            raise ValueError("is empty. Write for example { tools = [1, 11, 54], padding_tokens = [2000] }.")


PRESSURE = Key(PressureSpec, "{ tools = [1, 11, 54], padding_tokens = [2000] }")


class Form(NamedTuple):
    """The value of `pressure` in an entry that is a harder form of another entry."""

    of: str
    padding_tokens: int


def under_pressure(entries: list[Any], catalogue: Catalogue | None = None) -> list[Any]:
    """Return the entries, with each entry that has a `pressure` replaced by its harder forms.

    `pressure = { tools = [1, 11, 54], padding_tokens = [2000, 16000] }` on X1 gives X1-1t, X1-11t, X1-54t,
    X1-2k and X1-16k; the last two offer the entry's own tools. A malformed entry is unchanged;
    `flaws_of` explains it.
    """
    found: list[Any] = []
    for entry in entries:
        if isinstance(entry, dict) and "pressure" in entry and not flaws_of(entry):
            found += _forms(entry, catalogue or load_catalogue())
        else:
            found.append(entry)
    return found


def flaws_of(entry: dict[str, Any]) -> list[str]:
    """Return the errors of an entry's `pressure`, with hints."""
    try:
        pressure: PressureSpec = PRESSURE.read("pressure", entry["pressure"])
    except ValueError as error:
        return [str(error)]
    tools = entry.get("tools")
    if not isinstance(tools, list) or not tools:
        return ['pressure needs "tools" in the prompt, as a list. Write for example tools = ["read"].']
    if 1 in pressure.tools and len(tools) != 1:
        return [f"pressure has 1 tool, but {len(tools)} are offered. Offer only the one that the task needs."]
    return []


def _forms(entry: dict[str, Any], catalogue: Catalogue) -> Iterator[dict[str, Any]]:
    pressure, own = entry["pressure"], str(entry.get("id"))
    for n in dict.fromkeys(pressure.get("tools", [])):
        tools = _with(entry["tools"], n, catalogue)
        yield {**entry, "id": f"{own}-{n}t", "tools": tools, "pressure": Form(own, 0)}
    for n in dict.fromkeys(pressure.get("padding_tokens", [])):
        text = f"{padding(n)}\n\n{entry.get('prompt')}"
        short = f"{n // 1000}k" if n % 1000 == 0 else str(n)
        yield {**entry, "id": f"{own}-{short}", "prompt": text, "pressure": Form(own, n)}


def _with(own: list[Any], n: int, catalogue: Catalogue) -> Any:
    """Return the surface of about n tools; own tools that the surface lacks replace its last tools."""
    surface = SURFACES[n]
    if surface is None:
        return own
    whole = catalogue.surfaces.get(surface, ())
    others = [name for name in whole if name not in own]
    if len(others) + len(own) == len(whole) or not whole:
        return surface
    return [*own, *others[: len(whole) - len(own)]]
