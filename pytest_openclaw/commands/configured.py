"""Finds where a project configures its models, and adds them there without changing existing lines."""

from __future__ import annotations

import json
import os
import tomllib
from configparser import Error, RawConfigParser
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

RUNS = "runs"
PYPROJECT = "pyproject.toml"
SECTION = "tool.pytest.ini_options"
OWN_INI = "pytest.ini"
# Files of pytest's own, in its order; the first that exists is used, even if it is empty.
OWN = ("pytest.toml", ".pytest.toml", OWN_INI, ".pytest.ini")
# Files of other tools, used only with a section for pytest.
SHARED = (
    (PYPROJECT, SECTION),
    (PYPROJECT, "tool.pytest"),
    ("tox.ini", "pytest"),
    ("setup.cfg", "tool:pytest"),
)


@dataclass(frozen=True, kw_only=True)
class Settled:
    """The place where the models are named.

    Attributes:
        section: of the file.
        text: the lines to add there.
        wrote: whether they were written; otherwise the user has to add them, unless `is_there`.
    """

    file: Path
    section: str
    text: str = ""
    wrote: bool = False
    is_there: bool = False


def settle(folder: Path, models: Sequence[str]) -> Settled:
    """Add the models to pytest's configuration, if the project has none; never change a line.

    Args:
        folder: the project's.
        models: target specs.

    Raises:
        OSError: a file cannot be read or written.
    """
    for found in _configured(folder):
        return replace(found, text=_lines(found.file, models))
    has_tests = (folder / "tests").is_dir()
    pyproject = folder / PYPROJECT
    if pyproject.exists():
        text = _lines(pyproject, models, has_tests=has_tests)
        wrote = _append(pyproject, f"[{SECTION}]\n{text}")
        return Settled(file=pyproject, section=SECTION, text=text, wrote=wrote)
    own = folder / OWN_INI
    text = _lines(own, models, has_tests=has_tests)
    with own.open("x", encoding="utf-8", newline="\n") as file:
        file.write(f"[pytest]\n{text}")
    return Settled(file=own, section="pytest", text=text, wrote=True)


def project_folder(start: Path) -> Path:
    """Return the root folder that pytest would find from a folder below it; the folder itself if none is."""
    return next((folder for folder in (start, *start.parents) if _configured(folder)), start)


def runs_folder(start: Path) -> Path:
    """Return where the sessions of a project write runs, relative to a folder at or below its root."""
    root = project_folder(start)
    keys = next((_section(found.file, found.section) for found in _configured(root)), None)
    named = (keys or {}).get("openclaw_runs_dir")
    folder = named if isinstance(named, str) else None
    if folder is None and (root == start or (start / RUNS).is_dir()):
        return Path(RUNS)
    return Path(os.path.relpath(root / Path(folder or RUNS).expanduser(), start))


def _configured(folder: Path) -> list[Settled]:
    """Return the files with configuration of pytest, in its order."""
    found = []
    for name, section in (*((name, "pytest") for name in OWN), *SHARED):
        if (file := folder / name).exists():
            keys = _section(file, section)
            if keys is not None or name in OWN:
                is_there = "openclaw_models" in (keys or ())
                found.append(Settled(file=file, section=section, is_there=is_there))
    return found


def _section(file: Path, section: str) -> Mapping[str, object] | None:
    """Return the keys of a section; None if the file has none.

    The user has to fix a malformed file: a TOML file has no section then, an ini file an empty one.
    """
    try:
        text = file.read_text("utf-8")
        if file.suffix == ".toml":
            table: object = tomllib.loads(text)
            for name in section.split("."):
                table = table.get(name) if isinstance(table, dict) else None
            return table if isinstance(table, dict) else None
        parser = RawConfigParser(strict=False, allow_no_value=True)
        parser.read_string(text)
    except (Error, ValueError):
        return None if file.suffix == ".toml" else {}
    return parser[section] if parser.has_section(section) else None


def _append(pyproject: Path, text: str) -> bool:
    """Append a table, if the result is valid TOML; return whether it was appended."""
    old = pyproject.read_bytes()
    line_end = b"\r\n" if b"\r\n" in old else b"\n"
    gap = b"" if not old.strip() else line_end if old.endswith(b"\n") else 2 * line_end
    added = gap + text.encode().replace(b"\n", line_end)
    try:
        for text_so_far in (old, old + added):  # the table may exist in another notation
            tomllib.loads(text_so_far.decode())
    except ValueError:
        return False
    with pyproject.open("ab") as file:
        file.write(added)
    return True


def _lines(file: Path, models: Sequence[str], *, has_tests: bool = False) -> str:
    """Return the lines that name the models, in the file's notation."""
    if file.suffix == ".toml":
        # JSON strings and lists are valid TOML as long as characters are not escaped.
        lines = [f"openclaw_models = {json.dumps([*models], ensure_ascii=False)}"]
        paths = '["tests"]'
    else:
        lines = ["openclaw_models =", *(f"    {model}" for model in models)]
        paths = "tests"
    if has_tests:
        lines.append(f"testpaths = {paths}")
    bare = "a bare `pytest` runs your tests alone" if has_tests else "a bare `pytest` asks them too"
    return "\n".join([f"# `pytest benchmarks/` asks these models; {bare}.", *lines, ""])
