"""Builds the request of a cell: what every provider is asked, and what OpenClaw's surface adds."""

from __future__ import annotations

from dataclasses import replace
from functools import cache
from typing import TYPE_CHECKING

from pytest_openclaw.types.requests import Request
from pytest_openclaw.types.settings import SERVER, THINKING_ROOM_TOKENS
from pytest_openclaw.types.surface import LOOKUP_TURNS

if TYPE_CHECKING:
    from pytest_openclaw.types.prompts import Cell
    from pytest_openclaw.types.protocols import Provider
    from pytest_openclaw.types.settings import Settings


def request_for(cell: Cell, settings: Settings, provider: Provider | None = None) -> Request:
    """Return what every provider is asked for this cell.

    Args:
        cell: the cell.
        settings: timeout, streaming, sampling.
        provider: is asked; None for any, on the surface `listed`.
    """
    prompt, level = cell.prompt, cell.target.thinking_level
    # Every API counts thinking as output; without room for it no answer would be reached.
    room = THINKING_ROOM_TOKENS[level] if level else 0
    listed = Request(
        model=cell.target.model,
        prompt=prompt.prompt,
        system=prompt.system,
        images=prompt.images,
        messages=prompt.messages,
        thinking_level=level,
        max_output_tokens=prompt.max_output_tokens + room,
        temperature=None if settings.temperature == SERVER else settings.temperature,
        top_p=settings.top_p,
        seed=_seed(cell, settings),
        tool_choice=settings.tool_choice,
        fields=settings.request_fields.get(cell.target.provider, {}),
        stream=settings.stream,
        timeout_s=prompt.timeout_s or settings.timeout_s,
        tools=prompt.tools or (),
        turns=prompt.turns,
        world=prompt.world,
    )
    if prompt.surface is None or prompt.listed is None or provider is None:
        return listed
    asked = replace(
        listed,
        temperature=None,
        top_p=None,
        seed=None,
        tool_choice="auto",
        lookup_turns=0 if listed.world else LOOKUP_TURNS,
        surface=cell.target.surface,
    )
    if provider.is_openclaw:  # it adds the rest itself
        return replace(asked, system=prompt.listed.system, listed_tools=prompt.listed.tools or ())
    surface, model = prompt.surface, f"{cell.target.provider}/{cell.target.model}"
    return replace(
        asked,
        prompt=f"{_named(surface.before, model)}{asked.prompt}{_named(surface.after, model)}",
        system=_named(asked.system or "", model),
        context=_named(surface.context, model),
        fields={**(surface.fields if provider.api == surface.api else {}), **asked.fields},
    )


def _seed(cell: Cell, settings: Settings) -> int | None:
    """Return the seed that distinguishes a repeat; a single question has the user's, if there is one."""
    if settings.seed is not None:
        return settings.seed + cell.repeat - 1
    return cell.repeat if cell.n_repeats > 1 else None


@cache  # one text for all cells of a target, because a plan has thousands
def _named(text: str, model: str) -> str:
    return text.replace("<model>", model)
