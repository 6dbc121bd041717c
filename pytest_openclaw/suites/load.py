"""Loads a suite file; the only module of this folder that opens a file."""

from __future__ import annotations

from typing import TYPE_CHECKING

from pytest_openclaw.core.errors import SuiteError
from pytest_openclaw.suites.parse import parse_suite

if TYPE_CHECKING:
    from pathlib import Path

    from pytest_openclaw.suites.document import SuiteFormat
    from pytest_openclaw.tools.catalogue import Catalogue
    from pytest_openclaw.types.prompts import Suite
    from pytest_openclaw.validators.registry import Registry

_FORMATS: dict[str, SuiteFormat] = {".toml": "toml", ".json": "json"}


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
    form = _FORMATS.get(path.suffix.lower())
    if form is None:
        raise SuiteError(f"{name}: is neither .toml nor .json. Rename it after what it holds.")
    try:
        content = path.read_bytes()
    except OSError as error:
        why = error.strerror or type(error).__name__
        raise SuiteError(f"{name}: cannot be read ({why}). Check that it is a file you may read.") from None
    return parse_suite(content, format=form, name=name, registry=registry, catalogue=catalogue)
