"""Finds the calls that one reply makes in writing."""

from __future__ import annotations

from typing import TYPE_CHECKING

from pytest_openclaw.judging.written_calls import WrittenCallFinder

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

    from pytest_openclaw.judging.written_calls import Asked, WrittenCall
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
