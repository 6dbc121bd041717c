"""Finds where a project configures its models, and adds them there without changing existing lines."""

from __future__ import annotations

import json
import os
import tomllib
from configparser import Error, RawConfigParser
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Sequence

RUNS = "runs"
PYPROJECT = "pyproject.toml"
SECTION = "tool.pytest.ini_options"
# Files of pytest's own, in its order; the first that exists is used, even if it is empty.
OWN_TOML = ("pytest.toml", ".pytest.toml")
OWN_INI = ("pytest.ini", ".pytest.ini")
# Files of other tools, used only with a section for pytest.
SHARED_INI = (("tox.ini", "pytest"), ("setup.cfg", "tool:pytest"))


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
    tests = ["tests"] if (folder / "tests").is_dir() else []
    for found in _configured(folder):
        text = _as_toml(models) if found.file.suffix == ".toml" else _as_ini(models)
        return Settled(file=found.file, section=found.section, text=text, is_there=found.is_there)
    pyproject = folder / PYPROJECT
    if pyproject.exists():
        text = _as_toml(models, tests)
        wrote = _append(pyproject, f"[{SECTION}]\n{text}")
        return Settled(file=pyproject, section=SECTION, text=text, wrote=wrote)
    own = folder / OWN_INI[0]
    text = _as_ini(models, tests)
    with own.open("x", encoding="utf-8", newline="\n") as file:
        file.write(f"[pytest]\n{text}")
    return Settled(file=own, section="pytest", text=text, wrote=True)


def project_folder(start: Path) -> Path:
    """Return the root folder that pytest would find from a folder below it; the folder itself if none is."""
    return next((folder for folder in (start, *start.parents) if _configured(folder)), start)


def runs_folder(start: Path) -> Path:
    """Return where the sessions of a project write runs, relative to a folder at or below its root."""
    root = project_folder(start)
    named = next((_value(found, "openclaw_runs_dir") for found in _configured(root)), None)
    own = Path(RUNS)
    if named is None and (root == start or (start / own).is_dir()):
        return own
    return Path(os.path.relpath(root / Path(named or RUNS).expanduser(), start))


def _value(found: Settled, key: str) -> str | None:
    """Return a key of a file's section; None if it is not there."""
    if found.file.suffix == ".toml":
        value = _table(found.file, [*found.section.split("."), key])
        return value if isinstance(value, str) else None
    try:
        return _ini(found.file).get(found.section, key, fallback=None)
    except (Error, ValueError):
        return None  # pytest reports what is wrong in it


def _configured(folder: Path) -> list[Settled]:
    """Return the files with configuration of pytest, in its order."""
    files = [folder / name for name in (*OWN_TOML, *OWN_INI)]
    found = [
        Settled(file=file, section="pytest", is_there=_names_models(file)) for file in files if file.exists()
    ]
    file = folder / PYPROJECT
    for section in (SECTION, "tool.pytest"):
        if file.exists() and _table(file, section.split(".")) is not None:
            is_there = _toml_has(file, section.split("."))
            found.append(Settled(file=file, section=section, is_there=is_there))
    for name, section in SHARED_INI:
        if (file := folder / name).exists() and (has := _ini_has(file, section)) is not None:
            found.append(Settled(file=file, section=section, is_there=has))
    return found


def _table(file: Path, keys: Sequence[str]) -> object:
    """Return a table of a TOML file; None if it has none or is malformed."""
    value: object
    try:
        value = tomllib.loads(file.read_text("utf-8"))
    except ValueError:
        return None
    for key in keys:
        value = value.get(key) if isinstance(value, dict) else None
    return value


def _names_models(file: Path) -> bool:
    """Whether a file of pytest's own names models."""
    return _toml_has(file, ["pytest"]) if file.suffix == ".toml" else _ini_has(file, "pytest") is True


def _toml_has(file: Path, keys: Sequence[str]) -> bool:
    return _table(file, [*keys, "openclaw_models"]) is not None


def _ini_has(file: Path, section: str) -> bool | None:
    """Whether a section of an ini file names models; None if there is no such section."""
    try:
        parser = _ini(file)
    except (Error, ValueError):
        return False  # the user has to fix it; no other file is written
    return parser.has_option(section, "openclaw_models") if parser.has_section(section) else None


def _ini(file: Path) -> RawConfigParser:
    parser = RawConfigParser(strict=False, allow_no_value=True)
    parser.read_string(file.read_text("utf-8"))
    return parser


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


def _as_toml(models: Sequence[str], tests: Sequence[str] = ()) -> str:
    # JSON strings and lists are valid TOML as long as characters are not escaped.
    lines = [f"openclaw_models = {json.dumps([*models], ensure_ascii=False)}"]
    return _with_comment([*lines, *([f"testpaths = {json.dumps([*tests])}"] if tests else [])], bool(tests))


def _as_ini(models: Sequence[str], tests: Sequence[str] = ()) -> str:
    lines = ["openclaw_models =", *(f"    {model}" for model in models)]
    return _with_comment([*lines, *([f"testpaths = {' '.join(tests)}"] if tests else [])], bool(tests))


def _with_comment(lines: Sequence[str], has_tests: bool) -> str:
    bare = "a bare `pytest` runs your tests alone" if has_tests else "a bare `pytest` asks them too"
    return "\n".join([f"# `pytest benchmarks/` asks these models; {bare}.", *lines, ""])
