"""Finds the calls that a reply writes into its text, in the form of whatever family trained the model.

Nothing executes such a call: the server's chat template has not turned it into a real one. An
explanation that shows how a call looks is none; `leak_context` distinguishes the two.
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

__all__ = ["Leak", "find_leaks"]

MOST_LEAKS = 256


def find_leaks(
    text: str, tools: Sequence[Tool], expected: Iterable[str] = (), *, shown_on_request: bool = False
) -> tuple[Leak, ...]:
    """Return the calls of known tools that `text` makes in writing, in order; linear, raises nothing.

    Of its calls no more than `MOST_LEAKS` are found.

    Args:
        text: the answer, as `strip_thinking` leaves it.
        tools: that were offered.
        expected: names of further tools that count.
        shown_on_request: the prompt asks how a call is written; one in a code block is its answer then.
    """
    answer = without_blocks(text)
    known = KnownTools(tools, expected)
    if not answer.strip():
        # A thought that never ends hides nothing that wears the tokens of a template.
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
    """Drop what is within another find: the JSON of a tagged call is the same call."""
    kept: list[Leak] = []
    for leak in sorted(found, key=lambda leak: (leak.start, -leak.end)):
        if not kept or leak.start >= kept[-1].end:
            kept.append(leak)
    return kept
