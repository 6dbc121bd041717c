"""Finds the calls that one reply makes in writing."""

from collections.abc import Iterable, Sequence

from pytest_openclaw.judging.written_calls import Asked, WrittenCall, WrittenCallFinder
from pytest_openclaw.values.tool_calls import Tool


def find_written_calls(
    text: str,
    tools: Sequence[Tool],
    expected: Iterable[str] = (),
    *,
    asked: Asked | None = None,
    thinking: str = "",
) -> tuple[WrittenCall, ...]:
    """Return the calls written in one reply."""
    return WrittenCallFinder(tools, expected, asked=asked).find(text, thinking)
