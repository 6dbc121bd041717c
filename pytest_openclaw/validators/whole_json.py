"""Validators that judge a whole JSON value: equal to another one, or valid under a JSON Schema."""

from __future__ import annotations

import json
from dataclasses import dataclass, field
from functools import cached_property
from typing import TYPE_CHECKING, Any, ClassVar

from pytest_openclaw.core.json_schema import BoundedSchema
from pytest_openclaw.core.json_text import same, to_text
from pytest_openclaw.core.quoting import shortened
from pytest_openclaw.validators.answer import answer, judged_json
from pytest_openclaw.validators.keys import flag_value, hint, table_value, what

if TYPE_CHECKING:
    from collections.abc import Mapping

    from pytest_openclaw.types.replies import Reply, Verdict


@dataclass(frozen=True, kw_only=True)
class JsonEquals:
    """The answer holds one JSON object, or array, that equals `value`.

    The order of keys does not matter, that of array items does; 1 equals 1.0, and true equals no
    number. `strict` allows neither a fence nor prose around it.
    """

    type: ClassVar[str] = "json_equals"
    value: Mapping[str, Any] | list[Any] = field(
        metadata=hint('Write the object or array wanted, for example "value": {"route": "local"}.')
    )
    strict: bool = False

    def __post_init__(self) -> None:
        flag_value(self.type, "strict", self.strict)
        if not isinstance(self.value, dict | list):
            hint = "Write an object or an array, or use the validator exact."
            raise ValueError(f'validator {self.type}: "value" is {what(self.value)}. {hint}')
        try:
            json.dumps(self.value, allow_nan=False)
        except TypeError as error:
            raise ValueError(f'validator {self.type}: "value" is no JSON: {error}.') from error
        except (ValueError, RecursionError) as error:
            why = "NaN, infinity and endless nesting cannot be written"
            raise ValueError(f'validator {self.type}: "value" is no JSON: {why}.') from error

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
        flag_value(self.type, "strict", self.strict)
        table_value(self.type, "schema", self.schema)
        try:
            self._bounded  # noqa: B018 - a bad schema is reported when the suite is read
        except ValueError as error:
            raise ValueError(f'validator {self.type}: "schema" {error}') from error

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
