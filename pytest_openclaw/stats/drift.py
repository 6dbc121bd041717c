"""Two catalogues → what has changed in the tools that OpenClaw sends, by a release or by a config."""

from __future__ import annotations

import json
import re
from dataclasses import dataclass
from typing import TYPE_CHECKING

from pytest_openclaw.stats.parameters import parameters_of

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence

    from pytest_openclaw.core.json_types import JsonObject
    from pytest_openclaw.types.tool_calls import Tool


_HEADING = re.compile(r"#{1,3} (.+)")


@dataclass(frozen=True, kw_only=True)
class ComparedSurface:
    """The request that OpenClaw sends on one surface.

    Attributes:
        tools: in order.
        fields: of the request, but for tools and conversation; None where they are not known.
        n_bytes: size of the tools with the release's own descriptions; None if unknown.
        words: whose the descriptions are.
        system: the system prompt; None where it is not known.
    """

    tools: Sequence[Tool]
    fields: JsonObject | None = None
    n_bytes: int | None = None
    words: str = "release"
    system: str | None = None


@dataclass(frozen=True, kw_only=True)
class ToolChange:
    """What has changed in a tool.

    Attributes:
        added, removed: paths of parameters, such as `job.schedule.kind` or `edits[].oldText`.
        retyped: path → the type, values or limits before and now.
        required, optional: paths of parameters that have become so.
        reworded: its description has changed, or that of a parameter.
    """

    name: str
    added: tuple[str, ...] = ()
    removed: tuple[str, ...] = ()
    retyped: Mapping[str, tuple[str, str]]
    required: tuple[str, ...] = ()
    optional: tuple[str, ...] = ()
    reworded: bool = False

    @property
    def takes_other_calls(self) -> bool:
        """Whether more than words has changed."""
        return bool(self.added or self.removed or self.retyped or self.required or self.optional)


@dataclass(frozen=True, kw_only=True)
class Drift:
    """The changes of one surface.

    Attributes:
        surface: its name now.
        beside: the name of the surface that it is compared with.
        added, removed: names of tools.
        changed: those in both.
        reordered: the tools in both are in another order.
        fields: field of the request → its value before and now, as JSON; None where it was not there.
        n_bytes: before and now; None where it is not known.
        n_prompt_bytes: of the system prompt, likewise.
        sections: headings of the system prompt that are new, gone, or have another text.
    """

    surface: str
    beside: str
    n_tools: int
    added: tuple[str, ...]
    removed: tuple[str, ...]
    changed: tuple[ToolChange, ...]
    reordered: bool
    fields: Mapping[str, tuple[str | None, str | None]]
    n_bytes: tuple[int | None, int | None]
    n_prompt_bytes: tuple[int | None, int | None] = (None, None)
    sections: tuple[str, ...] = ()

    @property
    def is_any(self) -> bool:
        """Whether tools or fields have changed; the system prompt lists what else is on a machine."""
        return bool(self.added or self.removed or self.changed or self.reordered or self.fields)


def compare_surfaces(before: ComparedSurface, now: ComparedSurface, *, surface: str, beside: str) -> Drift:
    """Return what has changed; descriptions only where both have the release's own."""
    old, new = ({tool.name: tool for tool in one.tools} for one in (before, now))
    same_words = before.words == now.words
    changes = (compare_tools(old[name], new[name], with_words=same_words) for name in new if name in old)
    return Drift(
        surface=surface,
        beside=beside,
        n_tools=len(new),
        added=tuple(name for name in new if name not in old),
        removed=tuple(name for name in old if name not in new),
        changed=tuple(change for change in changes if change is not None),
        reordered=[name for name in old if name in new] != [name for name in new if name in old],
        fields=dict(_changed_fields(before.fields, now.fields)),
        n_bytes=(before.n_bytes, now.n_bytes),
        n_prompt_bytes=(_size(before.system), _size(now.system)),
        sections=tuple(_changed_sections(before.system, now.system)),
    )


def compare_tools(before: Tool, now: Tool, *, with_words: bool) -> ToolChange | None:
    """Return the changes of a tool; None without any."""
    old, new = ({part.path: part for part in parameters_of(tool)} for tool in (before, now))
    both = [path for path in new if path in old]
    words = before.description != now.description or any(old[path].words != new[path].words for path in both)
    change = ToolChange(
        name=now.name,
        added=tuple(path for path in new if path not in old),
        removed=tuple(path for path in old if path not in new),
        retyped={path: (old[path].form, new[path].form) for path in both if old[path].form != new[path].form},
        required=tuple(path for path in both if new[path].is_required > old[path].is_required),
        optional=tuple(path for path in both if new[path].is_required < old[path].is_required),
        reworded=with_words and words,
    )
    return change if change.takes_other_calls or change.reworded else None


def nearest(tools: Sequence[Tool], surfaces: Mapping[str, Sequence[str]]) -> str:
    """Return the surface that has the most of these tools and the fewest others; the first of equals."""
    names = {tool.name for tool in tools}
    return max(
        surfaces, key=lambda name: len(names & {*surfaces[name]}) / (len(names | {*surfaces[name]}) or 1)
    )


def _size(system: str | None) -> int | None:
    return None if system is None else len(system.encode())


def _changed_sections(before: str | None, now: str | None) -> Iterator[str]:
    if before is None or now is None:
        return
    old, new = _sections(before), _sections(now)
    yield from (heading for heading in {**old, **new} if old.get(heading) != new.get(heading))


def _sections(system: str) -> dict[str, str]:
    """Return the texts below the headings; the text before the first one is the beginning."""
    texts = {"(beginning)": ""}
    heading = "(beginning)"
    for line in system.splitlines():
        if match := _HEADING.match(line):
            heading = match[1]
            texts.setdefault(heading, "")
        texts[heading] += f"{line}\n"
    return texts


def _changed_fields(
    before: JsonObject | None, now: JsonObject | None
) -> Iterator[tuple[str, tuple[str | None, str | None]]]:
    if before is None or now is None:
        return
    for key in {**before, **now}:
        old, new = (json.dumps(one[key], sort_keys=True) if key in one else None for one in (before, now))
        if old != new:
            yield key, (old, new)
