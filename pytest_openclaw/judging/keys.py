"""Parts that validators share: the answer's text, flaws, verdicts, and checks of their keys."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Literal

from pytest_openclaw.util.bounded import compile_pattern
from pytest_openclaw.util.json_text import find_json
from pytest_openclaw.util.text import cut, valid_text
from pytest_openclaw.values.replies import Flaw, Verdict

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Sequence

    from pytest_openclaw.util.files import JsonObject
    from pytest_openclaw.values.replies import Reply


BLANKS = " \t\r\n"
"""The four characters that may surround an answer without being part of it."""

MAX_KEPT_CHARS = 1000


def answer(reply: Reply) -> str:
    """Return the reply's text without surrounding blanks, tabs, CR and LF."""
    return reply.text.strip(BLANKS)


def kept(text: str) -> JsonObject:
    """Return the answer for `parsed_output`: the first 1000 characters under `text`."""
    return {"text": valid_text(cut(text, MAX_KEPT_CHARS))}


def judged(passed: bool, violation: str, parsed: JsonObject | None = None) -> Verdict:
    """Return a verdict, with the violation only if it failed."""
    return Verdict(passed=passed, violation=None if passed else violation, parsed=parsed)


def judged_json(
    text: str,
    complaint: Callable[[Any], str | None],
    *,
    kind: Literal["object", "array"] = "object",
    strict: bool,
) -> Verdict:
    """Return the verdict on the one JSON object or array in an answer; `complaint` returns a violation."""
    found = find_json(text, kind=kind, strict=strict)
    violation = found.problem or complaint(found.value)
    return Verdict(passed=violation is None, violation=violation, parsed=found.parsed)


def judged_flaws(
    flaws: Sequence[Flaw], parsed: JsonObject | None, *, forbids: bool, said: Sequence[Flaw] = ()
) -> Verdict:
    """Return the verdict of a rule about required and forbidden actions; without flaws it passes.

    Args:
        flaws: of the calls and their effects.
        parsed: as in a verdict.
        forbids: whether the rule is about harm.
        said: further flaws, of the answer.
    """
    found = [*flaws, *(flaw for flaw in said if not flaw.report)]
    harmful = [flaw for flaw in found if flaw.is_harm and not flaw.is_call]
    return Verdict(
        passed=not found,
        violation="; ".join(flaw.text for flaw in found) or None,
        parsed=parsed,
        harm=bool(harmful) if forbids or harmful else None,
        harm_tools=each_once(tool for flaw in harmful for tool in flaw.tools),
        flaws=(*flaws, *(flaw for flaw in said if flaw.report)),
    )


def each_once(names: Iterable[str]) -> tuple[str, ...]:
    """Return the names in order, without repeats."""
    return tuple(dict.fromkeys(names))


def hint(text: str) -> dict[str, str]:
    """Return the metadata of a required field: the hint for suites without this key."""
    return {"hint": text}


def check_pattern(owner: str, key: str, pattern: str) -> None:
    """Reject a text that is not a regular expression."""
    try:
        compile_pattern(pattern)
    except ValueError as error:
        raise ValueError(f"validator {owner}: {key} {error}") from error
