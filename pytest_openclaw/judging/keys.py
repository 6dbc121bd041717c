"""What validators share: the keys that a suite author writes, the answer, verdicts, and demands of tools."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import fields
from functools import cache
from typing import (
    TYPE_CHECKING,
    Any,
    ClassVar,
    Literal,
    NamedTuple,
    cast,
    get_args,
    get_origin,
    get_type_hints,
)

from pytest_openclaw.util.bounded_regex import compile_pattern
from pytest_openclaw.util.json_text import find_json
from pytest_openclaw.util.text import valid_text
from pytest_openclaw.util.typed import converted, shown
from pytest_openclaw.values.protocols import NO_DEMANDS, Validator
from pytest_openclaw.values.replies import Reply, Verdict

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Sequence

    from pytest_openclaw.util.files import JsonObject
    from pytest_openclaw.values.protocols import Demands


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

    The annotation of a field says which values it takes. A class with further rules calls
    `super().__post_init__()` first. Fields in `nested` hold validators, which `check_nested` checks.
    """

    type: ClassVar[str]
    nested: ClassVar[tuple[str, ...]] = ()

    def __post_init__(self) -> None:
        for field in fields(cast("Any", self)):
            if field.name not in self.nested:
                kind, example = _kinds(cast("Any", type(self)))[field.name], field.metadata.get("hint", "")
                value = read_key(self.type, field.name, getattr(self, field.name), kind, example)
                settle(self, **{field.name: value})


@cache
def _kinds(cls: type) -> dict[str, Any]:
    return get_type_hints(cls, include_extras=True)


def read_key(owner: str, key: str, value: object, kind: Any, example: str = "") -> Any:
    """Return the value of a key as a value of this type.

    Raises:
        ValueError: it does not fit; the message names validator, key and value, and says what to write.
    """
    if get_origin(kind) is Mapping and isinstance(value, Mapping):
        inner = get_args(kind)[1]
        return {name: read_key(owner, f"{key}.{name}", one, inner, example) for name, one in value.items()}
    try:
        return converted(value, kind, key)
    except ValueError as error:
        text = str(error)
        text = text if text.endswith(".") else f"{text}. {example}".rstrip()
        raise ValueError(f"validator {owner}: {text}") from None


def check_nested(owner: str, key: str, value: object) -> None:
    """Reject a value that is not a validator."""
    if not isinstance(value, Validator):
        example = '{"type": "max_words", "value": 8}'
        raise ValueError(
            f"validator {owner}: {key} is {shown(value)}, not a validator. Write for example {example}."
        )


def check_pattern(owner: str, key: str, pattern: str) -> None:
    """Reject a text that is no regular expression."""
    try:
        compile_pattern(pattern)
    except ValueError as error:
        raise ValueError(f"validator {owner}: {key} {error}") from error


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
