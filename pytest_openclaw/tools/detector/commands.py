"""The names that the text detector knows, from `commands.toml`, and the detection of a command's arguments.

The detector needs them only where a text is ambiguous: `"ps aux"` is a command and `"free will"` is
not, though both are two plain words in quotes.
"""

from __future__ import annotations

import re
from functools import cache
from typing import NamedTuple

_VERSION = re.compile(r"[\d.]+$")
_OPTION_OR_PATH = re.compile(r"\s*(?:--?[A-Za-z]|~(?:/|\s*$)|\.{0,2}/[\w.*~$-])")
_OPERAND = re.compile(r"\s*(?:-\d|\+%|[*$]\w*|[/.](?=\s|$)|[\w./-]{1,80}\.[A-Za-z]\w{0,5}(?=\s|$)|\d+\s*$)")
_PIPED = re.compile(r"(?:^|\s)\|\s*([a-z][a-z0-9._-]{0,63})")


class Names(NamedTuple):
    """The names of `commands.toml`, by its keys; `commands` has those of both kinds."""

    well_known: frozenset[str]
    everyday: frozenset[str]
    openclaw_tools: frozenset[str]
    commands: frozenset[str]


@cache
def names() -> Names:
    """Return the names, which few texts need."""
    import tomllib
    from importlib import resources

    text = resources.files("pytest_openclaw.tools").joinpath("commands.toml").read_text("utf-8")
    kinds = {kind: frozenset(words.split()) for kind, words in tomllib.loads(text).items()}
    return Names(**kinds, commands=kinds["well_known"] | kinds["everyday"])


def is_known(name: str) -> bool:
    """Whether `name`, in lower case, is a command or a tool of OpenClaw; `python3.11` is `python`."""
    known = names()
    return name in known.openclaw_tools or not known.commands.isdisjoint((name, _VERSION.sub("", name)))


def takes_arguments(name: str, rest: str) -> bool:
    """Whether `rest` looks like the arguments of `name`: an option, a path, or a pipe into a command.

    An everyday word may also be followed by a file name, a number alone, `*`, `$x`, `.` or `/`.
    """
    if _OPTION_OR_PATH.match(rest):
        return True
    if name in names().everyday and _OPERAND.match(rest):
        return True
    return any(piped[1] in names().commands for piped in _PIPED.finditer(rest))
