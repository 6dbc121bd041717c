"""Reads a suite file and its images, and reports all errors at once."""

from __future__ import annotations

import json
import tomllib
from dataclasses import replace
from functools import cache
from typing import TYPE_CHECKING, Any, Literal

from msgspec import Struct

from pytest_openclaw.suites.conversation import MOST_BYTES
from pytest_openclaw.suites.offered import of_catalogue, under_pressure
from pytest_openclaw.suites.prompt import check_id, read_prompt, unknown_keys
from pytest_openclaw.util.errors import SuiteError
from pytest_openclaw.util.text import listed
from pytest_openclaw.util.typed import converted, shown
from pytest_openclaw.values.prompts import ModelRole, Suite

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Sequence
    from pathlib import Path

    from pytest_openclaw.judging.registry import Registry
    from pytest_openclaw.openclaw.catalog import Catalogue
    from pytest_openclaw.suites.prompt import ReadFile
    from pytest_openclaw.values.prompts import Prompt

SuiteFormat = Literal["toml", "json"]

_EXAMPLE: dict[SuiteFormat, str] = {
    "toml": "Write each prompt below a line [[prompts]], with id, prompt and validator.",
    "json": 'Write a list of prompts: [{"id": "P1", "prompt": "…", "validator": {…}}].',
}


class Document(Struct, forbid_unknown_fields=True):
    """A suite file as it was written; see `parse_suite`."""

    prompts: list[Any] = []
    named_only: bool = False
    role: ModelRole | None = None


def read_document(text: str | bytes, *, format: SuiteFormat, name: str) -> Document:  # noqa: A002 (the public name)
    """Parse a suite file, but not its prompts; raise `SuiteError` if the file is malformed."""
    content = _parsed(text, format, name)
    if format == "json" and isinstance(content, list):
        content = {"prompts": content}
    try:
        document: Document = converted(content, Document)
    except ValueError as error:
        raise SuiteError(f"{name}: {str(error).rstrip('.')}. {_EXAMPLE[format]}") from None
    if not document.prompts:
        raise SuiteError(f"{name}: has no prompts. {_EXAMPLE[format]}")
    return document


def _parsed(text: str | bytes, form: SuiteFormat, name: str) -> Any:
    try:
        plain = text.removeprefix("\ufeff") if isinstance(text, str) else text.decode("utf-8-sig")
        if not plain.strip():
            return {}
        return tomllib.loads(plain) if form == "toml" else json.loads(plain)
    except UnicodeDecodeError:
        raise SuiteError(f"{name}: is not UTF-8. Save the file as UTF-8.") from None
    except (ValueError, RecursionError) as error:
        hint = {
            "toml": "Write texts in quotes, and each key once.",
            "json": "Write no comments, and no comma after the last entry.",
        }
        raise SuiteError(f"{name}: is not {form.upper()}: {error}. {hint[form]}") from None


MOST_ERRORS = 20


def parse_suite(
    text: str | bytes,
    *,
    format: SuiteFormat,  # noqa: A002 (it is the plainest name for the caller)
    name: str,
    registry: Registry,
    catalogue: Catalogue | None = None,
    read_file: ReadFile | None = None,
) -> Suite:
    """Parse a suite.

    TOML: tables `[[prompts]]`. JSON, as in the original harness: a list of objects, or an object with a list
    `prompts`. Keys that begin with `x_` are kept in `Prompt.extra`; null is absent.

    Args:
        text: the file; bytes must be UTF-8, with or without a byte order mark.
        format: the file's format.
        name: the file's name in rows and errors.
        registry: the existing validators.
        catalogue: a captured catalogue of tools and surfaces; None for the shipped one.
        read_file: reads an image in the suite's folder; None leaves images out.

    Raises:
        SuiteError: the message has a line for each of the first 20 faults, with file, prompt, key and hint.
    """
    document = read_document(text, format=format, name=name)
    entries = under_pressure(document.prompts, catalogue)
    if catalogue is not None:
        entries = [
            {**entry, "tools": of_catalogue(catalogue, entry["tools"])}
            if isinstance(entry, dict) and entry.get("tools") is not None
            else entry
            for entry in entries
        ]
    prompts: list[Prompt] = []
    complaints: list[str] = []
    ids: set[str] = set()
    for position, raw in enumerate(entries, start=1):
        label = f"prompt no. {position}"
        try:
            prompt_id = _id_of(raw, ids)
            label = f"prompt {prompt_id}"
            prompt, found = read_prompt(raw, prompt_id, suite=name, registry=registry, read_file=read_file)
            found += unknown_keys(raw, is_original=format == "json")
        except ValueError as error:
            prompt, found = None, [str(error)]
        complaints += (f"{label}: {complaint}" for complaint in found)
        if prompt is not None:
            prompts.append(replace(prompt, role=document.role) if document.role else prompt)
    complaints = complaints or [*_unpaired(prompts)]
    if complaints:
        rest = len(complaints) - MOST_ERRORS
        lines = complaints[:MOST_ERRORS] + ([f"and {rest} more."] if rest > 0 else [])
        raise SuiteError("\n".join(f"{name}: {line}" for line in lines))
    return Suite(path=name, prompts=tuple(prompts), named_only=document.named_only)


def _id_of(raw: Any, ids: set[str]) -> str:
    """Return the id of an entry, and add it to `ids`; raise `ValueError` if the entry has no valid id."""
    if not isinstance(raw, dict):
        raise ValueError(f"is {shown(raw)}, not an object. Write an object with id, prompt and validator.")
    try:
        json.dumps(raw, allow_nan=False, ensure_ascii=False).encode()
    except (TypeError, ValueError, RecursionError):
        hint = "Write whole characters and finite numbers, and put dates in quotes."
        raise ValueError(f"has a value that JSON cannot represent. {hint}") from None
    prompt_id = check_id(raw)
    if prompt_id in ids:
        raise ValueError(f"id {shown(prompt_id)} is the id of another prompt too. Give each its own id.")
    ids.add(prompt_id)
    return prompt_id


def _unpaired(prompts: Sequence[Prompt]) -> Iterator[str]:
    """Yield an error for each twin without its probe, and each variant without its original."""
    probes = {prompt.id for prompt in prompts if prompt.probe}
    for prompt in prompts:
        if prompt.twin_of is not None and prompt.twin_of not in probes:
            known = f"Probes: {listed(sorted(probes))}." if probes else "It has no prompt with probe."
            yield f"prompt {prompt.id}: twin_of {shown(prompt.twin_of)} is not a probe of this suite. {known}"
    ids = {prompt.id for prompt in prompts}
    for prompt in prompts:
        own, _, of = (prompt.variant_of or "").rpartition("::")
        # Another file may not be part of the session.
        if own == prompt.suite and (of == prompt.id or of not in ids):
            yield f"prompt {prompt.id}: variant_of {shown(of)} is not another prompt of this suite."


_FORMATS: dict[str, SuiteFormat] = {".toml": "toml", ".json": "json"}


def load_suite(path: Path, *, name: str, registry: Registry, catalogue: Catalogue | None = None) -> Suite:
    """Return the suite in a `.toml` or `.json` file; see `parse_suite`."""
    form = _FORMATS.get(path.suffix)
    if form is None:
        raise SuiteError(f"{name}: suites are TOML or JSON, in files that end in .toml or .json.")
    try:
        content = path.read_bytes()
    except OSError as error:
        why = error.strerror or type(error).__name__
        raise SuiteError(f"{name}: cannot be read ({why}). Check that it is a file you may read.") from None
    return parse_suite(
        content,
        format=form,
        name=name,
        registry=registry,
        catalogue=catalogue,
        read_file=images_in(path.parent),
    )


def images_in(folder: Path) -> Callable[[str], bytes]:
    """Return a function that reads an image in a suite's folder, once; see `images_key`."""

    @cache
    def read_file(path: str) -> bytes:
        file = (folder / path).resolve()
        if not file.is_file() or not file.is_relative_to(folder.resolve()):
            hint = f"Put the image into {folder}, and write its path from there."
            raise ValueError(f"{shown(path)} is not a file below the suite's folder. {hint}")
        try:
            with file.open("rb") as image:
                return image.read(MOST_BYTES + 1)
        except OSError as error:
            raise ValueError(f"{shown(path)} cannot be read ({error.strerror}).") from None

    return read_file
