"""Parses the text of a suite file into its prompts as written, or raises an error that names the line."""

from __future__ import annotations

import json
import re
from dataclasses import dataclass
from difflib import get_close_matches
from typing import TYPE_CHECKING, Any, Literal, get_args

from pytest_openclaw.core.errors import SuiteError
from pytest_openclaw.suites.wording import kind_of, shown
from pytest_openclaw.types.prompts import ModelRole

if TYPE_CHECKING:
    from pytest_openclaw.core.json_types import JsonObject

SuiteFormat = Literal["toml", "json"]

_TOML_PLACE = re.compile(r" \(at (?:line (\d+), column (\d+)|end of document)\)\Z")
_HINT: dict[SuiteFormat, str] = {
    "toml": "Fix the TOML there: write texts in quotes, and each key once.",
    "json": "Fix the JSON there: no comments, and no comma after the last entry.",
}
_EXAMPLE: dict[SuiteFormat, str] = {
    "toml": "Write each prompt below a line [[prompts]], with id, prompt and validator.",
    "json": 'Write a list of prompts: [{"id": "P1", "prompt": "…", "validator": {…}}].',
}


_KEYS = ("prompts", "named_only", "role")


class Repeating(dict[str, Any]):
    """A JSON object with repeated keys, which makes the suite an error."""

    repeated: tuple[str, ...] = ()


@dataclass(frozen=True, kw_only=True)
class Document:
    """A suite file as it was written.

    Attributes:
        entries: its prompts, unchecked.
        named_only: it is collected only if its file is named.
        role: the role that all its prompts are evidence for.
    """

    entries: list[Any]
    named_only: bool = False
    role: ModelRole | None = None


def read_document(text: str | bytes, *, format: SuiteFormat, name: str) -> Document:  # noqa: A002 (the public name)
    """Parse a suite file.

    Args:
        text: the file; bytes must be UTF-8, with or without a byte order mark.
        format: of the file.
        name: of the file in errors.

    Raises:
        SuiteError: it is not text, TOML or JSON, has no list of prompts, or a wrong `named_only` or `role`.
    """
    decoded = _decode(text, name)
    if not decoded.strip():
        raise SuiteError(f"{name}: is empty. {_EXAMPLE[format]}")
    document = _parse(decoded, format, name)
    entries = _entries_of(document, format, name)
    if not entries:
        raise SuiteError(f"{name}: has no prompts. {_EXAMPLE[format]}")
    named_only = document.get("named_only", False) if isinstance(document, dict) else False
    if not isinstance(named_only, bool):
        raise SuiteError(f"{name}: named_only is {shown(named_only)}. Write true or false.")
    role = document.get("role") if isinstance(document, dict) else None
    if role is not None and role not in get_args(ModelRole):
        raise SuiteError(f"{name}: role is {shown(role)}. Write one of {', '.join(get_args(ModelRole))}.")
    return Document(entries=entries, named_only=named_only, role=role)


def _decode(text: str | bytes, name: str) -> str:
    if isinstance(text, str):
        return text.removeprefix("\ufeff")
    try:
        return text.decode("utf-8-sig")
    except UnicodeDecodeError as error:
        line = text.count(b"\n", 0, error.start) + 1
        raise SuiteError(f"{name}: line {line} is not UTF-8. Save the file as UTF-8.") from None


def _parse(text: str, form: SuiteFormat, name: str) -> Any:
    try:
        if form == "toml":
            return _toml(text, name)
        return json.loads(text, object_pairs_hook=_object)
    except json.JSONDecodeError as error:
        place = f"line {error.lineno}, column {error.colno}: {error.msg}"
        raise SuiteError(f"{name}: {place}. {_HINT[form]}") from None
    except RecursionError:
        raise SuiteError(f"{name}: is nested too deeply to be read. Flatten it.") from None
    except ValueError:
        # Python rejects numbers of more than some thousand digits, without their line.
        raise SuiteError(f"{name}: holds a number of thousands of digits. Shorten it.") from None


def _object(pairs: list[tuple[str, Any]]) -> JsonObject:
    plain = dict(pairs)
    if len(plain) == len(pairs):
        return plain
    keys = [key for key, _ in pairs]
    repeating = Repeating(plain)
    repeating.repeated = tuple(key for key in plain if keys.count(key) > 1)
    return repeating


def _toml(text: str, name: str) -> Any:
    import tomllib  # 2 ms, which suites of JSON need not wait for

    try:
        return tomllib.loads(text)
    except tomllib.TOMLDecodeError as error:
        raise SuiteError(f"{name}: {_toml_place(error)}. {_HINT['toml']}") from None


def _toml_place(error: ValueError) -> str:
    text = str(error)
    found = _TOML_PLACE.search(text)
    if found is None:
        return text
    what = text[: found.start()]
    return f"line {found[1]}, column {found[2]}: {what}" if found[1] else f"at its end: {what}"


def _entries_of(document: Any, form: SuiteFormat, name: str) -> list[Any]:
    if form == "json" and isinstance(document, list):
        return document
    if not isinstance(document, dict):
        raise SuiteError(f"{name}: the whole is {kind_of(document)}, not a list of prompts. {_EXAMPLE[form]}")
    if isinstance(document, Repeating):
        raise SuiteError(f"{name}: the key {shown(document.repeated[0])} is there twice. Keep one of them.")
    for key in document:
        if key not in _KEYS and (near := get_close_matches(key, _KEYS, n=1, cutoff=0.8)):
            # A misspelled heading would silently drop its prompts.
            raise SuiteError(f"{name}: has a key {shown(key)}. Did you mean {near[0]}?")
    if "prompts" not in document:
        raise SuiteError(f"{name}: has no prompts. {_EXAMPLE[form]}")
    entries = document["prompts"]
    if not isinstance(entries, list):
        raise SuiteError(f"{name}: prompts is {kind_of(entries)}, not a list. {_EXAMPLE[form]}")
    return entries
