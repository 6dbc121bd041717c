"""Parses the text of a suite file into its prompts as written, or raises an error that names the line.

Finds values in a prompt that a row or `config.json` cannot represent.
"""

from __future__ import annotations

import json
import math
import re
from dataclasses import dataclass
from datetime import date, time
from difflib import get_close_matches
from typing import TYPE_CHECKING, Any, Literal, get_args

from pytest_openclaw.suites.wording import kind_of, shown
from pytest_openclaw.util.errors import SuiteError
from pytest_openclaw.values.prompts import ModelRole

if TYPE_CHECKING:
    from collections.abc import Iterator

    from pytest_openclaw.util.json_types import JsonObject


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


_DEEPEST = 40
_SURROGATE = re.compile("[\ud800-\udfff]")
# The range of a float; Python also refuses to print whole numbers of many thousand digits.
_LARGEST_BITS = 1024


def find_flaws(value: Any, place: str = "", depth: int = 0) -> Iterator[str]:
    """Yield a sentence, with its hint, for each value below `value` that cannot be used.

    Args:
        value: a prompt as it was written, or a part of it.
        place: the keys that lead to it, such as `validator.values[0]`.
        depth: how many objects and lists contain it.

    """
    if depth > _DEEPEST:
        yield f"{place} is nested more than {_DEEPEST} deep. Flatten it."
    elif isinstance(value, dict):
        yield from _flaws_of_keys(value, place)
        for key, inner in value.items():
            yield from find_flaws(inner, _below(place, key), depth + 1)
    elif isinstance(value, list):
        for position, inner in enumerate(value):
            yield from find_flaws(inner, f"{place}[{position}]", depth + 1)
    elif flaw := _flaw_of_scalar(value):
        yield f"{place} {flaw}"


def _flaws_of_keys(value: dict[str, Any], place: str) -> Iterator[str]:
    if isinstance(value, Repeating):
        for key in value.repeated:
            yield f"{_below(place, key)} is there twice. Keep one of them."
    for key in value:
        if _SURROGATE.search(key):
            yield f"the key {_below(place, key)} holds half a surrogate pair. Write the whole character."


def _flaw_of_scalar(value: Any) -> str:
    if isinstance(value, str) and _SURROGATE.search(value):
        return "holds half a surrogate pair. Write the whole character."
    if isinstance(value, float) and not math.isfinite(value):
        return "is NaN or infinite. Write a finite number."
    if isinstance(value, int) and value.bit_length() > _LARGEST_BITS:
        return "is a number of more than 300 digits. Shorten it."
    if isinstance(value, date | time):
        return "is a date or time. Put it in quotes."
    return ""


def _below(place: str, key: str) -> str:
    shown_key = key if key.isidentifier() else shown(key)
    return f"{place}.{shown_key}" if place else shown_key
