"""Reads the TOML files of wordings beside this module; `claims.toml` begins with their form."""

from __future__ import annotations

import re
import tomllib
from importlib import resources
from typing import Any


def load_wordings(file: str, /, **groups: str) -> dict[str, Any]:
    """Return a file's tables, with a compiled pattern in place of each text.

    Args:
        file: its name, without `.toml`.
        **groups: patterns that it may name, beside those of its own.
    """
    text = resources.files("pytest_openclaw.tools").joinpath(f"{file}.toml").read_text("utf-8")
    data = tomllib.loads(text)
    for word, alternatives in data.pop("words", {}).items():
        groups[word] = (
            f"(?:{'|'.join(_filled(one.replace('_', ' '), groups) for one in alternatives.split())})"
        )
    for part, pattern in data.pop("parts", {}).items():
        groups[part] = _filled(pattern, groups)
    return {key: _compiled(value, groups) for key, value in data.items()}


def _compiled(value: Any, groups: dict[str, str]) -> Any:
    if isinstance(value, dict):
        return {key: _compiled(one, groups) for key, one in value.items()}
    if isinstance(value, list):
        return [_compiled(one, groups) for one in value]
    return re.compile(_filled(value, groups), re.IGNORECASE)


def _filled(pattern: str, groups: dict[str, str]) -> str:
    """Return the pattern on one line, with its groups; `{2,9}` is no name."""
    joined = "".join(line.lstrip() for line in pattern.split("\n"))
    return re.sub(r"\{([a-z_]+)\}", lambda found: groups[found[1]], joined)
