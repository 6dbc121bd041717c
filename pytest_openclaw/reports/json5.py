"""An object → JSON5, with comments before its keys."""

from __future__ import annotations

import json
import textwrap
from collections.abc import Mapping
from typing import TYPE_CHECKING

from pytest_openclaw.core.text import printable

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from pytest_openclaw.core.json_types import JsonObject

Path = tuple[str, ...]
WIDTH = 100


def render_object(value: JsonObject, path: Path, comments: Mapping[Path, Sequence[str]]) -> Iterator[str]:
    """Yield the lines of an object, the comments of a place before it; strings are ASCII, as JSON has them.

    Args:
        value: objects in it are written line by line, other values on one.
        path: where it is, from the outermost object.
        comments: finished lines, by place.
    """
    indent = "  " * len(path)
    yield f"{indent}{_key(path)}{{"
    for key, inner in value.items():
        place = (*path, key)
        yield from (f"  {indent}{line}" for line in comments.get(place, ()))
        if isinstance(inner, Mapping):
            yield from render_object(dict(inner), place, comments)
        else:
            yield f"  {indent}{_key(place)}{json.dumps(inner)},"
    yield f"{indent}}}{',' if path else ''}"


def _key(path: Path) -> str:
    return f"{json.dumps(path[-1])}: " if path else ""


def comment(text: str, depth: int = 0) -> list[str]:
    """Return a foreign text as comment lines; nothing in it can end the comment."""
    # A no-break space keeps a number and its % together.
    line = printable(" ".join(text.split())).replace(" %", "\N{NO-BREAK SPACE}%")
    indent = "// " + "  " * depth
    lines = textwrap.wrap(
        line,
        WIDTH,
        initial_indent=indent,
        subsequent_indent=indent + "  ",
        break_long_words=False,
        break_on_hyphens=False,
    )
    return [one.replace("\N{NO-BREAK SPACE}%", " %") for one in lines]
