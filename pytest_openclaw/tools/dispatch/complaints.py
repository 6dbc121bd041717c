"""OpenClaw 2026.9.6's messages for arguments that violate a tool's schema, in its words and order."""

from __future__ import annotations

import json
import re
from itertools import islice
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Mapping

    from jsonschema.exceptions import ValidationError

MAX_COMPLAINTS = 8
"""The most messages that the release sends."""

_ORDER = """
    type required additionalProperties dependentRequired dependentSchemas patternProperties properties
    propertyNames minProperties maxProperties contains items maxContains maxItems minContains minItems
    prefixItems uniqueItems maxLength minLength format pattern exclusiveMaximum exclusiveMinimum maximum
    minimum multipleOf $ref $dynamicRef const enum if not allOf anyOf oneOf
"""
_RANKS = {keyword: rank for rank, keyword in enumerate(_ORDER.split())}
_MAPS = ("properties", "patternProperties", "dependentSchemas", "$defs")

_WORDS = {
    "enum": "must be equal to one of the allowed values",
    "const": "must be equal to constant",
    "additionalProperties": "must not have additional properties",
    "anyOf": "must match a schema in anyOf",
    "oneOf": "must match exactly one schema in oneOf",
    "not": "must not be valid",
    "uniqueItems": "must not have duplicate items",
    "minimum": "must be >= {0}",
    "maximum": "must be <= {0}",
    "exclusiveMinimum": "must be > {0}",
    "exclusiveMaximum": "must be < {0}",
    "multipleOf": "must be multiple of {0}",
    "minLength": "must not have fewer than {0} characters",
    "maxLength": "must not have more than {0} characters",
    "minItems": "must not have fewer than {0} items",
    "maxItems": "must not have more than {0} items",
    "minProperties": "must not have fewer than {0} properties",
    "maxProperties": "must not have more than {0} properties",
    "pattern": 'must match pattern "{0}"',
    "format": 'must match format "{0}"',
}


def in_order(schema: Any) -> Any:
    """Return the same schema with its keywords in the order in which the release checks them."""
    if isinstance(schema, list):
        return [in_order(part) for part in schema]
    if not isinstance(schema, dict):
        return schema
    keywords = sorted(schema, key=lambda keyword: _RANKS.get(keyword, len(_RANKS)))
    return {keyword: _part_in_order(keyword, schema[keyword]) for keyword in keywords}


def _part_in_order(keyword: str, part: Any) -> Any:
    if keyword in ("const", "enum", "default", "examples"):
        return part
    if keyword in _MAPS and isinstance(part, dict):
        return {name: in_order(inner) for name, inner in part.items()}
    return in_order(part)


def error_text(tool: str, error: str) -> str:
    """Return an error of a tool in the form in which OpenClaw sends it to the model."""
    return json.dumps({"status": "error", "tool": tool, "error": error}, ensure_ascii=False, indent=2)


def worded(errors: Iterable[ValidationError]) -> list[str]:
    """Return a line for each violation, eight at most; all keys that an object lacks are one violation."""
    return list(islice(_lines(errors), MAX_COMPLAINTS))


def worded_by_bridge(errors: Iterable[ValidationError]) -> list[str]:
    """Return the same in the words of the bridge: a line for each missing key, and what is allowed."""
    return list(islice((line for error in errors for line in _bridge_lines(error)), MAX_COMPLAINTS))


def _bridge_lines(error: ValidationError) -> Iterator[str]:
    place = _place(error) if error.absolute_path else "<root>"
    value: Any = error.validator_value
    if error.validator == "required":
        # One error for each key that is missing.
        (name,) = re.findall(r"^'(.*)' is a required property$", error.message, re.DOTALL)
        yield f"{_place(error, name)}: must have required property '{name}'"
    elif error.validator == "additionalProperties":
        names = ", ".join(json.dumps(name, ensure_ascii=False) for name in _unknown(error))
        yield f"{place}: must not have additional properties: {names}"
    elif error.validator == "enum":
        allowed = ", ".join(json.dumps(one, ensure_ascii=False) for one in value)
        yield f"{place}: must be equal to one of the allowed values (allowed: {allowed})"
    else:
        for inner in error.context or ():
            yield from _bridge_lines(inner)
        yield f"{place}{_line(error)[len(_place(error)) :]}"


def _lines(errors: Iterable[ValidationError]) -> Iterator[str]:
    sent = set()
    for error in errors:
        yield from _lines(error.context or ())
        if error.validator in ("required", "additionalProperties"):
            whole = (tuple(error.absolute_path), tuple(error.absolute_schema_path))
            if whole in sent:
                continue
            sent.add(whole)
        if error.validator == "additionalProperties":
            yield from (f"{_place(error, name)}: schema is false" for name in _unknown(error))
        yield _line(error)


def _place(error: ValidationError, *further: str) -> str:
    return ".".join(str(step) for step in (*error.absolute_path, *further)) or "root"


def _line(error: ValidationError) -> str:
    wanted: Any = error.validator_value
    if error.validator == "required":
        missing = [name for name in wanted if name not in _keys(error.instance)]
        return f"{_place(error, missing[0])}: must have required properties {', '.join(missing)}"
    if error.validator == "type":
        kinds = wanted if isinstance(wanted, str) else f"either {' or '.join(wanted)}"
        return f"{_place(error)}: must be {kinds}"
    words = _WORDS.get(str(error.validator))
    return f"{_place(error)}: {words.format(wanted) if words else error.message[:200]}"


def _unknown(error: ValidationError) -> Iterator[str]:
    """Return the keys of an object that the schema does not allow."""
    from pytest_openclaw.core.bounded_regex import searches

    schema: Any = error.schema
    patterns = schema.get("patternProperties", {})
    for name in _keys(error.instance):
        if name not in schema.get("properties", {}) and not any(searches(text, name) for text in patterns):
            yield name


def _keys(instance: Any) -> Mapping[str, Any]:
    return instance if isinstance(instance, dict) else {}
