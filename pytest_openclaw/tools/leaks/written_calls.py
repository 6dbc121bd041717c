"""A written call, and the lookup of the tool that it names."""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import TYPE_CHECKING

from pytest_openclaw.tools.dispatch.names import ALIASES
from pytest_openclaw.types.tool_calls import Tool

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

TEMPLATES = frozenset(
    {"hermes", "llama", "mistral", "deepseek", "kimi", "glm", "gemma", "harmony", "phi", "command"}
    | {"function-tag", "invoke", "functionary"}
)
"""Forms that no prose has."""
NAME = r"[A-Za-z_][\w.:/-]{0,99}+"
_PREFIX = re.compile(
    r"(?:(?:default_api|functions?|tools?|api|assistant|openclaw|multi_tool_use|self|client)[./:])+",
    re.IGNORECASE,
)
_LONG_NAME_CHARS = 8
_NUMBER = re.compile(r":\d{1,4}$")


@dataclass(frozen=True, kw_only=True)
class Leak:
    """A call in a text.

    Attributes:
        name: of the tool, as it was offered.
        arguments: as they were written; empty if there are none.
        form: the dialect, such as `hermes`.
        start, end: its position.
    """

    name: str
    arguments: str
    form: str
    start: int
    end: int


class KnownTools:
    """The tools that count, found by the names that models write."""

    def __init__(self, tools: Sequence[Tool], expected: Iterable[str] = ()) -> None:
        """Set the offered tools, and further expected names."""
        self._tools = {tool.name.casefold(): tool for tool in reversed(tools)}
        for name in expected:
            if self.find(name) is None:
                self._tools[name.strip().casefold()] = Tool(name=name.strip())

    def find(self, name: str) -> Tool | None:
        """Return the tool that a written name means; None if there is none."""
        plain = _PREFIX.sub("", _NUMBER.sub("", name.strip().strip("`'\"*")), count=1).casefold()
        plain = plain.removesuffix(".call")  # the form of Llama's built-in tools
        return self._tools.get(plain) or self._tools.get(ALIASES.get(plain, plain))

    def ending(self, text: str) -> Tool | None:
        """Return the tool with whose name a text ends, the longest; None if there is none.

        A short name counts only as a word of its own: `tools` does not end with `ls`.
        """
        for size in sorted({*map(len, self._tools)}, reverse=True):
            tool = self._tools.get(text[-size:].casefold())
            before = text[-size - 1 : -size]
            if tool and (size >= _LONG_NAME_CHARS or not (before.isalnum() or before == "_")):
                return tool
        return None


def parameters_of(tool: Tool) -> frozenset[str]:
    """Return the names of a tool's parameters."""
    return frozenset(tool.parameters.get("properties", {}))


def required_of(tool: Tool) -> frozenset[str]:
    """Return the names of the required parameters."""
    return frozenset(tool.parameters.get("required", ()))
