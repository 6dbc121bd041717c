"""A tool's schema → its parameters, each with a path of its own, and what it takes in a line."""

from __future__ import annotations

import json
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

    from pytest_openclaw.types.tool_calls import Tool

_LIMITS = (
    "minLength", "maxLength", "pattern", "format", "minimum", "maximum", "exclusiveMinimum",
    "exclusiveMaximum", "multipleOf", "minItems", "maxItems", "uniqueItems", "default", "const",
)  # fmt: skip


@dataclass(frozen=True, kw_only=True)
class Parameter:
    """A parameter of a tool, or a part of one.

    Attributes:
        path: such as `edits[].oldText`; empty for the arguments as a whole.
        form: its type, values and limits, in a line.
        words: its description.
    """

    path: str
    form: str
    is_required: bool
    words: str


def parameters_of(tool: Tool) -> Iterator[Parameter]:
    """Yield all parameters of a tool, those within others too, and first the arguments as a whole."""
    yield from _parts(tool.parameters, "", is_required=True)


def _parts(schema: Any, path: str, *, is_required: bool) -> Iterator[Parameter]:
    if not isinstance(schema, dict):
        return
    words = schema.get("description")
    yield Parameter(
        path=path, form=_form(schema), is_required=is_required, words=words if isinstance(words, str) else ""
    )
    required = schema.get("required") or ()
    for name, part in (schema.get("properties") or {}).items():
        yield from _parts(part, f"{path}.{name}" if path else name, is_required=name in required)
    if isinstance(items := schema.get("items"), dict):
        yield from _parts(items, f"{path}[]", is_required=True)
    if isinstance(others := schema.get("additionalProperties"), dict):
        yield from _parts(others, f"{path}.*" if path else "*", is_required=False)
    for way in ("anyOf", "oneOf", "allOf"):
        for number, part in enumerate(schema.get(way) or (), 1):
            yield from _parts(part, f"{path}<{number}>", is_required=True)


def _form(schema: Mapping[str, Any]) -> str:
    """Return type, values and limits: everything here that is none of the parts."""
    types = schema.get("type")
    said = "/".join(map(str, types)) if isinstance(types, list) else str(types or "")
    for way in ("anyOf", "oneOf", "allOf"):
        if way in schema:
            said += f" {way}({len(schema[way])})"
    if "enum" in schema:
        said += f" {'|'.join(str(value) for value in schema['enum'])}"
    limits = [f"{key}={json.dumps(schema[key])}" for key in _LIMITS if key in schema]
    if schema.get("additionalProperties") is False:
        limits.append("no others")
    said = said.strip() or "anything"
    return f"{said} ({', '.join(limits)})" if limits else said
