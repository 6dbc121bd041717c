"""Validators of an answer that is JSON: required keys, equality, and JSON Schema."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass, field
from functools import cached_property
from typing import TYPE_CHECKING, Any, ClassVar

from msgspec import Struct

from pytest_openclaw.judging.keys import answer, hint, judged_json
from pytest_openclaw.util.bounded import BoundedSchema
from pytest_openclaw.util.json_text import same, to_text
from pytest_openclaw.util.text import listed, shortened, shown

if TYPE_CHECKING:
    from pytest_openclaw.values.replies import Reply, Verdict


class _Number(Struct, frozen=True, tag_field="type", tag="number"):
    def violation(self, value: Any) -> str | None:
        is_number = isinstance(value, int | float) and not isinstance(value, bool)
        return None if is_number else f"{_written(value)} is not a number"


class _OneOf(Struct, frozen=True, tag_field="type", tag="one_of"):
    values: tuple[Any, ...]

    def violation(self, value: Any) -> str | None:
        if any(same(value, allowed) for allowed in self.values):
            return None
        return f"{_written(value)} is not one of {listed(self.values)}"


def _written(value: Any) -> str:
    return shown(value) if isinstance(value, str) else shortened(to_text(value))


@dataclass(frozen=True, kw_only=True)
class JsonKeys:
    """The answer holds one JSON object with all `required_keys`, whose values follow `key_rules`.

    A rule is `{"type": "number"}` or `{"type": "one_of", "values": [...]}`. It judges the key where it
    is there; only `required_keys` must be. `strict` allows neither a fence nor prose around the object.
    """

    type: ClassVar[str] = "json_keys"
    required_keys: tuple[str, ...] = field(
        metadata=hint('List the keys a reply must have, for example "required_keys": ["route"].')
    )
    key_rules: Mapping[str, _Number | _OneOf] = field(
        default_factory=dict,
        metadata=hint('Write for example "key_rules": {"size": {"type": "number"}}.'),
    )
    strict: bool = False

    def check(self, reply: Reply) -> Verdict:
        """Find the object and judge its keys; the first violation counts."""
        return judged_json(answer(reply), self._violation, strict=self.strict)

    def _violation(self, found: Mapping[str, Any]) -> str | None:
        for key in self.required_keys:
            if key not in found:
                return f"{shown(key)} is missing, the keys are {listed(list(found)[:20], 'none')}"
        for key, rule in self.key_rules.items():
            if key in found and (violation := rule.violation(found[key])):
                return f"{key}: {violation}"
        return None


@dataclass(frozen=True, kw_only=True)
class JsonEquals:
    """The answer holds one JSON object, or array, that equals `value`.

    The order of array items matters, the order of keys does not; 1 equals 1.0, and true equals no
    number. `strict` allows neither a fence nor prose around it.
    """

    type: ClassVar[str] = "json_equals"
    value: dict[str, Any] | list[Any] = field(
        metadata=hint('Write the object or array wanted, for example "value": {"route": "local"}.')
    )
    strict: bool = False

    def __post_init__(self) -> None:
        try:
            json.dumps(self.value, allow_nan=False)
        except (TypeError, ValueError, RecursionError) as error:
            raise ValueError(
                f"validator {self.type}: value cannot be written as JSON, which has no NaN, infinity or date."
            ) from error

    def check(self, reply: Reply) -> Verdict:
        """Find the JSON and compare it."""
        return judged_json(
            answer(reply),
            self._difference,
            kind="object" if isinstance(self.value, dict) else "array",
            strict=self.strict,
        )

    def _difference(self, found: Any) -> str | None:
        if same(found, self.value):
            return None
        return f"{shortened(to_text(found))} does not equal {shortened(to_text(self.value))}"


@dataclass(frozen=True, kw_only=True)
class JsonSchema:
    """The answer holds one JSON object that is valid under `schema`, Draft 2020-12.

    A schema of type `array` looks for an array. `format` is not judged, and a `$ref` may only point
    into the schema itself. `strict` allows neither a fence nor prose around the JSON.
    """

    type: ClassVar[str] = "json_schema"
    schema: Mapping[str, Any] = field(
        metadata=hint('Write a JSON Schema, for example "schema": {"type": "object", "required": ["route"]}.')
    )
    strict: bool = False

    def __post_init__(self) -> None:
        try:
            self._bounded  # noqa: B018 - a bad schema is reported when the suite is read
        except ValueError as error:
            raise ValueError(f"validator {self.type}: schema {error}") from error

    @cached_property
    def _bounded(self) -> BoundedSchema:
        return BoundedSchema(self.schema)

    def check(self, reply: Reply) -> Verdict:
        """Find the JSON and validate it; the first violation counts.

        Raises:
            OpenClawError: the schema recurses without end, or cannot be decided in time.
        """
        return judged_json(
            answer(reply),
            self._bounded.violation,
            kind="array" if self.schema.get("type") == "array" else "object",
            strict=self.strict,
        )
