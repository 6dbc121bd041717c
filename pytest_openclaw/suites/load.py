"""Loads a suite file and its pictures; the only module of this folder that opens files."""

from __future__ import annotations

from functools import cache
from typing import TYPE_CHECKING

from pytest_openclaw.core.errors import SuiteError
from pytest_openclaw.suites.parse import parse_suite
from pytest_openclaw.suites.pictures import MOST_BYTES
from pytest_openclaw.suites.wording import shown

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

    from pytest_openclaw.suites.document import SuiteFormat
    from pytest_openclaw.tools.catalogue import Catalogue
    from pytest_openclaw.types.prompts import Suite
    from pytest_openclaw.validators.registry import Registry

_FORMATS: dict[str, SuiteFormat] = {".toml": "toml", ".json": "json"}


def is_suite_file(name: str) -> bool:
    """Whether a file is a suite; any other one has benchmarks written in Python."""
    return name.endswith(tuple(_FORMATS))


def load_suite(path: Path, *, name: str, registry: Registry, catalogue: Catalogue | None = None) -> Suite:
    """Return the suite in a `.toml` or `.json` file.

    Args:
        path: the file.
        name: what rows and errors call it: relative to the root folder, with `/`.
        registry: the existing validators.
        catalogue: a captured one with tools and surfaces; None for the shipped one.

    Raises:
        SuiteError: it cannot be read, or `parse_suite` rejects it.
    """
    form = _FORMATS.get(path.suffix)
    if form is None:
        lower = path.suffix.lower()
        hint = f"Rename it to {path.stem}{lower}" if lower in _FORMATS else "Convert it"
        raise SuiteError(
            f"{name}: suites are TOML or JSON, in files that end in .toml or .json, and this one ends in "
            f"{path.suffix}. {hint}."
        )
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
        read_file=pictures_beside(path.parent),
    )


def pictures_beside(folder: Path) -> Callable[[str], bytes]:
    """Return a function that reads a picture in a suite's folder, once however many prompts have it.

    Of a file that is too long it returns one byte more than a picture may have. It raises `ValueError` if the
    file cannot be read, or is a link to one elsewhere.
    """

    @cache
    def read_file(path: str) -> bytes:
        file = folder / path
        if not file.is_file():
            raise ValueError(f"{shown(path)} is not there. Put the picture into {folder}, or fix the path.")
        if not file.resolve().is_relative_to(folder.resolve()):
            raise ValueError(f"{shown(path)} is a link out of the suite's folder. Copy the picture there.")
        try:
            with file.open("rb") as picture:
                return picture.read(MOST_BYTES + 1)
        except OSError as error:
            why = error.strerror or type(error).__name__
            raise ValueError(f"{shown(path)} cannot be read ({why}). Allow it to be read.") from None

    return read_file
