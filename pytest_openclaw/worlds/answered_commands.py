"""The suite's answers to shell commands."""

from __future__ import annotations

from typing import TYPE_CHECKING

from pytest_openclaw.openclaw.paths import place_of
from pytest_openclaw.util.bounded_regex import fullmatches

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable

    from pytest_openclaw.values.worlds import Command


def find_answer(
    commands: Iterable[Command], source: str, text_of: Callable[[str], str | None]
) -> Command | None:
    """Return the first answer of the suite to a command at this moment; None if it has none.

    Args:
        commands: of the suite.
        source: the command.
        text_of: returns the text of the file at a place; None if there is none.

    Raises:
        OpenClawError: a pattern cannot be decided.

    """
    return next(
        (one for one in commands if fullmatches(one.pattern, source) and _is_time(one, text_of)), None
    )


def is_answered(commands: Iterable[Command], source: str) -> bool:
    """Whether the suite has an answer to a command at some moment; raises as `find_answer` does."""
    return any(fullmatches(one.pattern, source) for one in commands)


def _is_time(command: Command, text_of: Callable[[str], str | None]) -> bool:
    texts = ((text_of(place_of(path)), pattern) for path, pattern in command.when.items())
    return all(text is not None and fullmatches(pattern, text) for text, pattern in texts)
