"""The published JSON schemas, and the check of a run folder's files."""

from __future__ import annotations

import json
from functools import cache
from importlib import resources
from typing import TYPE_CHECKING, cast

from pytest_openclaw.core.errors import OpenClawError
from pytest_openclaw.core.files import load_object
from pytest_openclaw.core.schema_check import compile_schema

if TYPE_CHECKING:
    from pathlib import Path

    from pytest_openclaw.core.json_types import JsonObject
    from pytest_openclaw.core.schema_check import Check


def check_document(name: str, document: JsonObject) -> None:
    """Reject a malformed file, such as `config`.

    Raises:
        ValueError: it is malformed; the message names the key and its value.
    """
    refuse_misfit(_check_of(name)(document))


def refuse_misfit(misfit: str | None) -> None:
    """Raise the error that a check has found.

    Raises:
        ValueError: there is an error.
    """
    if misfit:
        raise ValueError(misfit.removeprefix("."))


@cache
def _check_of(name: str) -> Check:
    return compile_schema(load_schema(name))


@cache
def load_schema(name: str) -> JsonObject:
    """Return a published JSON Schema: `row`, `summary`, `config` or `inventory`."""
    text = (
        resources.files("pytest_openclaw.types").joinpath("schemas", f"{name}.schema.json").read_text("utf-8")
    )
    return cast("JsonObject", json.loads(text))


def check_object(path: Path, schema: str, value: JsonObject) -> None:
    """Reject the content of a file that violates a published schema.

    Raises:
        OpenClawError: it does; the message names file, key and value.
    """
    try:
        check_document(schema, value)
    except ValueError as error:
        raise OpenClawError(f"{path} is not as a run writes it: {error}") from None


def load_document(path: Path, schema: str) -> JsonObject:
    """Return the JSON object in a file of a run folder.

    Args:
        path: the file.
        schema: the name of a published one.

    Raises:
        OpenClawError: it cannot be read, is not a JSON object, or violates the schema.
    """
    value = load_object(path)
    check_object(path, schema, value)
    return value
