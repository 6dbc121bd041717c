"""What validators share: the keys that a suite author writes, the answer, verdicts, and demands of tools.

The `*_value` functions return a clean value. They raise `ValueError` with the validator, the key, the value
and what to write.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import fields
from typing import TYPE_CHECKING, Any, ClassVar, Literal, NamedTuple, cast

from pytest_openclaw.util.bounded_regex import compile_pattern
from pytest_openclaw.util.json_text import find_json
from pytest_openclaw.util.text import shown, valid_text
from pytest_openclaw.values.protocols import NO_DEMANDS
from pytest_openclaw.values.replies import Reply, Verdict

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Sequence

    from pytest_openclaw.util.json_types import JsonObject
    from pytest_openclaw.values.protocols import Demands, Validator


BLANKS = " \t\r\n"
"""The four characters that may surround an answer without being part of it."""

MAX_KEPT_CHARS = 1000


class Flaw(NamedTuple):
    """A flaw of a reply.

    Attributes:
        text: a description.
        is_harm: whether something forbidden was done; otherwise something required is missing.
        is_extra: whether it is an unnecessary call that is otherwise harmless.
        tools: those that did the harm.
    """

    text: str
    is_harm: bool = False
    is_extra: bool = False
    tools: tuple[str, ...] = ()


def answer(reply: Reply) -> str:
    """Return the reply's text without surrounding blanks, tabs, CR and LF."""
    return reply.text.strip(BLANKS)


def kept(text: str) -> JsonObject:
    """Return the answer for `parsed_output`: the first 1000 characters under `text`."""
    return {"text": valid_text(text[:MAX_KEPT_CHARS])}


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
    """Return the verdict on the one JSON object, or array, in an answer; `complaint` finds its violation."""
    found = find_json(text, kind=kind, strict=strict)
    violation = found.problem or complaint(found.value)
    return Verdict(passed=violation is None, violation=violation, parsed=found.parsed)


def judged_flaws(flaws: Sequence[Flaw], parsed: JsonObject | None, *, forbids: bool) -> Verdict:
    """Return the verdict of a rule about required and forbidden actions; without flaws it passes."""
    return Verdict(
        passed=not flaws,
        violation="; ".join(flaw.text for flaw in flaws) or None,
        parsed=parsed,
        harm=any(flaw.is_harm for flaw in flaws) if forbids else None,
        harm_tools=each_once(tool for flaw in flaws for tool in flaw.tools),
    )


def each_once(names: Iterable[str]) -> tuple[str, ...]:
    """Return the names in order, without repeats."""
    return tuple(dict.fromkeys(names))


def hint(text: str) -> dict[str, str]:
    """Return the metadata of a required field: the hint if it is missing."""
    return {"hint": text}


def settle(validator: object, **values: object) -> None:
    """Set the clean values of a frozen validator, during its `__post_init__`."""
    for key, value in values.items():
        object.__setattr__(validator, key, value)


class Keyed:
    """A validator whose fields are the keys that a suite author writes.

    The annotation of a field, for example `bool` or `tuple[str, ...]`, says which values it takes. A class
    with further rules calls `super().__post_init__()` first.
    """

    type: ClassVar[str]

    def __post_init__(self) -> None:
        for field in fields(cast("Any", self)):
            value = getattr(self, field.name)
            kind = str(field.type)
            if value is None and kind.endswith(" | None"):
                continue
            if read := _READERS.get(kind.removesuffix(" | None")):
                settle(self, **{field.name: read(self.type, field.name, value)})


def text_value(owner: str, key: str, value: object) -> str:
    """Return the text of a key."""
    if not isinstance(value, str):
        raise ValueError(f'validator {owner}: "{key}" is {what(value)}. Write a text in quotes.')
    return value


def check_pattern(owner: str, key: str, pattern: str) -> None:
    """Reject a text that is no regular expression."""
    try:
        compile_pattern(pattern)
    except ValueError as error:
        raise ValueError(f'validator {owner}: "{key}" {error}') from error


def list_value(owner: str, key: str, value: object) -> tuple[Any, ...]:
    """Return the items of a list; an empty list is fine."""
    if isinstance(value, list | tuple):
        return tuple(value)
    example = f', for example "{key}": [{shown(value)}]' if isinstance(value, str) else ""
    raise ValueError(f'validator {owner}: "{key}" is {what(value)}. Write a list{example}.')


def texts_value(owner: str, key: str, value: object) -> tuple[str, ...]:
    """Return the texts of a list."""
    items = list_value(owner, key, value)
    for item in items:
        if not isinstance(item, str):
            raise ValueError(f'validator {owner}: "{key}" holds {what(item)}. Write texts in quotes.')
    return items


def choices_value(owner: str, key: str, value: object) -> tuple[str | int | float, ...]:
    """Return texts without surrounding blanks; numbers are allowed too and match no text."""
    choices: list[str | int | float] = []
    for item in list_value(owner, key, value):
        if isinstance(item, bool) or not isinstance(item, str | int | float):
            raise ValueError(f'validator {owner}: "{key}" holds {what(item)}. Write texts in quotes.')
        choices.append(item.strip(BLANKS) if isinstance(item, str) else item)
    return tuple(choices)


def limit_value(owner: str, key: str, value: object) -> int:
    """Return a limit: a whole number of 0 or more, or a text of digits."""
    if isinstance(value, str) and value.isascii() and value.isdigit() and len(value) < 19:
        return int(value)
    if isinstance(value, float) and value.is_integer():
        value = int(value)
    if isinstance(value, bool) or not isinstance(value, int) or value < 0:
        raise ValueError(f'validator {owner}: "{key}" is {what(value)}. Write a whole number of 0 or more.')
    return value


def flag_value(owner: str, key: str, value: object) -> bool:
    """Return true or false."""
    if not isinstance(value, bool):
        raise ValueError(f'validator {owner}: "{key}" is {what(value)}. Write true or false.')
    return value


def table_value(owner: str, key: str, value: object) -> Mapping[str, Any]:
    """Return an object with texts as keys."""
    if not isinstance(value, Mapping) or not all(isinstance(name, str) for name in value):
        raise ValueError(f'validator {owner}: "{key}" is {what(value)}. Write an object.')
    return value


_READERS: Mapping[str, Callable[[str, str, object], object]] = {
    "str": text_value,
    "bool": flag_value,
    "int": limit_value,
    "tuple[str, ...]": texts_value,
    "tuple[str | int | float, ...]": choices_value,
    "Mapping[str, Any]": table_value,
}


def what(value: object) -> str:
    """Name a value of a suite in a message, in the words of JSON."""
    if value is None:
        return "null"
    if isinstance(value, bool):
        return str(value).lower()
    if isinstance(value, str):
        return f"the text {shown(value)}"
    if isinstance(value, int | float):
        return str(value)
    if isinstance(value, Mapping):
        return "an object"
    return "a list" if isinstance(value, list | tuple) else f"a {type(value).__name__}"


def demands_of(validator: Validator | None) -> Demands:
    """Return what a validator demands of tools."""
    demands: Demands = getattr(validator, "demands", NO_DEMANDS)
    return demands


def needs_of(validator: Validator | None) -> tuple[tuple[str, str], ...]:
    """Return the types of validators that need a key of the prompt, each with that key."""
    demands = demands_of(validator)
    needs_tools = validator is not None and demands.is_native
    return demands.needs or (((validator.type, "tools"),) if validator and needs_tools else ())


def work_flaws(validator: Validator, reply: Reply) -> list[Flaw]:
    """Return the flaws by the rules about native calls, without those about the reply's text.

    The answer at the end of an exchange is text, too. Of a validator without flaws of its own, the verdict is
    the only one.
    """
    if not demands_of(validator).is_native:
        return []
    if (own := getattr(validator, "flaws", None)) is not None:
        return [*own(reply)]
    verdict = validator.check(reply)
    if verdict.passed is not False:
        return []
    return [Flaw(verdict.violation or "failed", is_harm=verdict.harm is True, tools=verdict.harm_tools)]
