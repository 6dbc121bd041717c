r"""Regular expressions and JSON Schemas that always terminate, and the time limit for judging one reply.

Patterns have the syntax of Python's `re`, but `regex` matches them: it has a timeout and lets other threads
run. The two differ in rare characters, such as separators in `\s`.

Schemas are Draft 2020-12, and nothing is fetched. Three parts of a plain jsonschema validator can take
forever: `re` in patterns, the comparison of all pairs in `uniqueItems`, and alternatives that recurse. Here
patterns are bounded, `uniqueItems` is linear, and every keyword checks the time limit.

Other parts of judging take time proportional to the length of the reply, which is bounded; only the code of
plugins is not. The libraries are imported with the first pattern or schema.
"""

from __future__ import annotations

import asyncio
import math
import re
import time
import warnings
from collections.abc import Callable, Iterator, Mapping
from concurrent.futures import Future
from contextlib import contextmanager
from contextvars import ContextVar
from functools import cache, lru_cache
from itertools import islice
from threading import Thread
from typing import TYPE_CHECKING, Any, TypeVar

from pytest_openclaw.util.errors import OpenClawError
from pytest_openclaw.util.json_text import identity, shown_value
from pytest_openclaw.util.text import MAX_SHOWN_CHARS, shortened, shown, shown_pattern

if TYPE_CHECKING:
    import regex
    from jsonschema import ValidationError

_T = TypeVar("_T")
_DEADLINE: ContextVar[float] = ContextVar("deadline", default=math.inf)


@contextmanager
def within(seconds: float) -> Iterator[None]:
    """Limit the judging in a `with` block to this time, or to the time that an outer block has left."""
    token = _DEADLINE.set(min(time.monotonic() + seconds, _DEADLINE.get()))
    try:
        yield
    finally:
        _DEADLINE.reset(token)


def left_s() -> float:
    """Return the remaining seconds; negative after the limit, infinite without a limit."""
    return _DEADLINE.get() - time.monotonic()


async def in_thread(work: Callable[[], _T]) -> _T:
    """Await work in its own thread, for which neither work of others nor the end of the process waits."""
    done = Future[_T]()
    done.set_running_or_notify_cancel()  # it cannot be cancelled

    def run() -> None:
        try:
            done.set_result(work())
        except BaseException as error:
            done.set_exception(error)

    Thread(target=run, daemon=True).start()
    return await asyncio.wrap_future(done)


# --- patterns -----------------------------------------------------------------------------------

PATTERN_TIMEOUT_S = 2.0
_SHORTEST_S = 0.001


def fullmatches(pattern: str, text: str) -> bool:
    """Whether the whole text matches.

    Raises:
        OpenClawError: the match cannot be decided within 2 s, the remaining time, or the available memory.
    """
    return _decide(compile_pattern(pattern).fullmatch, pattern, text)


def searches(pattern: str, text: str) -> bool:
    """Whether the pattern matches somewhere in the text; raises as `fullmatches` does."""
    return _decide(compile_pattern(pattern).search, pattern, text)


@lru_cache(maxsize=256)
def compile_pattern(pattern: str) -> regex.Pattern[str]:
    """Compile a pattern of Python's `re`.

    Raises:
        ValueError: `re` rejects it; the message continues a sentence that begins with the key.
    """
    import regex  # most suites have no pattern

    with warnings.catch_warnings():
        warnings.simplefilter("ignore", FutureWarning)
        try:
            re.compile(pattern)
            return regex.compile(pattern, regex.V0)
        except (re.error, regex.error, RecursionError, OverflowError, MemoryError) as error:
            why = (
                f"is not a regular expression ({error}): {shown(pattern)}. Fix it, or use another validator."
            )
            raise ValueError(why) from error


def _decide(match: Callable[..., object], pattern: str, text: str) -> bool:
    # Without remaining time, most patterns can still be decided quickly.
    timeout_s = max(_SHORTEST_S, min(PATTERN_TIMEOUT_S, left_s()))
    try:
        return match(text, concurrent=True, timeout=timeout_s) is not None
    except (TimeoutError, MemoryError) as error:
        raise OpenClawError(
            f"the pattern {shown(pattern)} cannot be decided on a reply of {len(text)} characters within"
            f" {timeout_s:.3g} s. Write it without nested repeats, such as (a+)+."
        ) from error


# --- schemas ------------------------------------------------------------------------------------

SCHEMA_TIMEOUT_S = 10.0
_DIALECT = "https://json-schema.org/draft/2020-12/schema"
_STEPS: ContextVar[Iterator[int] | None] = ContextVar("steps", default=None)

Errors = Iterator["ValidationError"]
Keyword = Callable[[Any, Any, Any, Mapping[str, Any]], "Errors | None"]


class BoundedSchema:
    """A valid JSON Schema that always terminates.

    Raises:
        ValueError: the schema is invalid or not supported; the message continues a sentence that begins
            with the key.
    """

    def __init__(self, schema: Mapping[str, Any]) -> None:
        import referencing

        self._schema = schema
        _check_form(schema)
        _check_references(schema)
        own = {key: value for key, value in schema.items() if key != "$schema"}
        self._validator = _bounded_validator()(own, registry=referencing.Registry())
        try:
            self.violation({})
        except OpenClawError as error:
            raise ValueError("refers to itself without end. Look at its $ref.") from error

    def __reduce__(self) -> tuple[type[BoundedSchema], tuple[Mapping[str, Any]]]:
        # Workers send prompts to the owner, and jsonschema's local classes cannot be pickled.
        return BoundedSchema, (self._schema,)

    def violation(self, value: Any) -> str | None:
        """Return the first violation as path and reason, None for a valid value.

        Raises:
            OpenClawError: the schema recurses endlessly or cannot be decided within 10 s.
        """
        found = next(iter(self.errors(value, limit=1)), None)
        if found is None:
            return None
        path = found.json_path.removeprefix("$").removeprefix(".")
        return f"{path}{path and ': '}{_said(found)}"

    def errors(self, value: Any, *, limit: int) -> tuple[ValidationError, ...]:
        """Return the first violations, in the order of the schema's keywords; raises as `violation` does."""
        with within(SCHEMA_TIMEOUT_S):
            try:
                return tuple(islice(self._validator.iter_errors(value), limit))
            except RecursionError as error:
                raise OpenClawError(
                    "the schema of a json_schema validator refers to itself without end. Look at its $ref."
                ) from error


@contextmanager
def within_steps(steps: int) -> Iterator[None]:
    """Limit the schemas in a `with` block to this number of keywords in total, without a time limit."""
    token = _STEPS.set(iter(range(steps)))
    try:
        yield
    finally:
        _STEPS.reset(token)


def _check_form(schema: Mapping[str, Any]) -> None:
    from jsonschema import Draft202012Validator, SchemaError

    try:
        with warnings.catch_warnings():
            # re warns about patterns whose meaning may change
            warnings.simplefilter("ignore", FutureWarning)
            Draft202012Validator.check_schema(schema)
    except SchemaError as error:
        why = f"is not a JSON Schema: {error.json_path}: {shortened(error.message)}."
        raise ValueError(f"{why} Fix it by Draft 2020-12.") from error
    except (RecursionError, OverflowError) as error:
        raise ValueError(f"is not a JSON Schema that can be judged: {error}.") from error


def _check_references(schema: Mapping[str, Any]) -> None:
    """Reject a reference that cannot be resolved, which would otherwise fail only with the first reply."""
    import referencing
    from referencing.exceptions import Unresolvable
    from referencing.jsonschema import DRAFT202012

    if schema.get("$schema", _DIALECT) not in (_DIALECT, f"{_DIALECT}#"):
        raise ValueError(f"has another dialect, {shown(str(schema['$schema']))}. Write it in Draft 2020-12.")
    root: Any = DRAFT202012.create_resource(schema)
    todo = [(root, referencing.Registry().resolver_with_root(root))]
    while todo:
        part, resolver = todo.pop()
        todo += [(inner, resolver.in_subresource(inner)) for inner in part.subresources()]
        for key in ("$ref", "$dynamicRef") if isinstance(part.contents, Mapping) else ():
            if (reference := part.contents.get(key)) is None:
                continue
            try:
                resolver.lookup(reference)
            except Unresolvable as error:
                why = f"has a {key} to {shown(reference)}, which is not in the schema."
                raise ValueError(f"{why} Put it under $defs; nothing is fetched.") from error


def _said(error: ValidationError) -> str:
    """Return the message of an error, without JSON that is cut."""
    value = error.instance
    message = error.message.replace("is not valid under any of the given schemas", "fits no form in the rule")
    if len(message) <= MAX_SHOWN_CHARS:
        return shortened(message)
    words = message.removeprefix(repr(value))
    if words == message or len(words) > MAX_SHOWN_CHARS:
        words = f' does not fit "{error.validator}" in the schema'
    return f"{shown_value(value)}{words}"


def _timed(keyword: Keyword) -> Keyword:
    def judge(validator: Any, value: Any, instance: Any, schema: Mapping[str, Any]) -> Errors | None:
        steps = _STEPS.get()
        if left_s() < 0 if steps is None else next(steps, None) is None:
            raise OpenClawError(
                f"the schema of a json_schema validator cannot be decided within {SCHEMA_TIMEOUT_S:g} s"
                " on this reply. Write a simpler schema, or allow fewer max_output_tokens."
            )
        return keyword(validator, value, instance, schema)

    return judge


def _pattern(_: Any, pattern: str, instance: Any, _schema: object) -> Errors:
    if isinstance(instance, str) and not searches(pattern, instance):
        yield _violation(f"{shown(instance)} does not match {shown_pattern(pattern)}")


def _pattern_properties(
    validator: Any, patterns: Mapping[str, Any], instance: Any, _schema: object
) -> Errors:
    if not isinstance(instance, dict):
        return
    for pattern, subschema in patterns.items():
        for key, value in instance.items():
            if searches(pattern, key):
                yield from validator.descend(value, subschema, path=key, schema_path=pattern)


def _additional_properties(
    validator: Any, additional: Any, instance: Any, schema: Mapping[str, Any]
) -> Errors:
    if not isinstance(instance, dict):
        return
    named = schema.get("properties", {})
    patterns = schema.get("patternProperties", {})
    for key, value in instance.items():
        if key in named or any(searches(pattern, key) for pattern in patterns):
            continue
        if additional is False:
            yield _violation(f"the key {shown(key)} is not allowed")
        else:
            yield from validator.descend(value, additional, path=key)


def _unique_items(_: Any, unique: bool, instance: Any, _schema: object) -> Errors:
    if unique and isinstance(instance, list) and len({identity(item) for item in instance}) < len(instance):
        yield _violation("an item is more than once in the array")


def _multiple_of(validator: Any, factor: float, instance: Any, schema: Mapping[str, Any]) -> Errors:
    from jsonschema import Draft202012Validator

    if instance in (math.inf, -math.inf):  # jsonschema raises OverflowError
        yield _violation(f"{instance} is not a multiple of {factor}")
    else:
        yield from Draft202012Validator.VALIDATORS["multipleOf"](validator, factor, instance, schema) or ()


def _violation(message: str) -> ValidationError:
    from jsonschema import ValidationError

    return ValidationError(message)


@cache
def _bounded_validator() -> Callable[..., Any]:
    from jsonschema import Draft202012Validator
    from jsonschema.validators import extend

    keywords: dict[str, Keyword] = {
        **Draft202012Validator.VALIDATORS,
        "pattern": _pattern,
        "patternProperties": _pattern_properties,
        "additionalProperties": _additional_properties,
        "uniqueItems": _unique_items,
        "multipleOf": _multiple_of,
    }
    return extend(  # type: ignore[no-any-return, no-untyped-call]
        Draft202012Validator, {name: _timed(judge) for name, judge in keywords.items()}
    )
