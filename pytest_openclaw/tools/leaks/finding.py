"""Finds the calls that a reply writes into its text, in the format of any model family.

Such a call is not executed: the server's chat template has not turned it into a real one. An
explanation that shows the format of a call is not one; `context.py` distinguishes the two.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from pytest_openclaw.tools.leaks.code import find_code_calls
from pytest_openclaw.tools.leaks.context import own_acts
from pytest_openclaw.tools.leaks.markup import find_markup_calls
from pytest_openclaw.tools.leaks.objects import find_object_calls
from pytest_openclaw.tools.leaks.written_calls import TEMPLATES, KnownTools, Leak
from pytest_openclaw.tools.thinking import without_blocks

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

    from pytest_openclaw.types.tool_calls import Tool

MOST_LEAKS = 256


def find_leaks(
    text: str, tools: Sequence[Tool], expected: Iterable[str] = (), *, shown_on_request: bool = False
) -> tuple[Leak, ...]:
    """Return the written calls of known tools in `text`, in order; linear, raises nothing.

    At most `MOST_LEAKS` calls are found.

    Args:
        text: the answer, as `strip_thinking` leaves it.
        tools: the offered ones.
        expected: names of further tools that count.
        shown_on_request: whether the prompt asks for the format of a call; one in a code block is then
            the answer.
    """
    answer = without_blocks(text)
    known = KnownTools(tools, expected)
    if not answer.strip():
        # Unclosed thinking does not hide calls with a template's tokens.
        return tuple(leak for leak in _found(text, known) if leak.form in TEMPLATES)
    return own_acts(answer, _found(answer, known), shown_on_request=shown_on_request)


def _found(answer: str, known: KnownTools) -> list[Leak]:
    found = [
        *find_markup_calls(answer, known),
        *find_object_calls(answer, known),
        *find_code_calls(answer, known),
    ]
    return _outermost(found)[:MOST_LEAKS]


def _outermost(found: list[Leak]) -> list[Leak]:
    """Drop calls within another one: the JSON of a tagged call is the same call."""
    kept: list[Leak] = []
    for leak in sorted(found, key=lambda leak: (leak.start, -leak.end)):
        if not kept or leak.start >= kept[-1].end:
            kept.append(leak)
    return kept
