"""Imports run one way: surface, run, ask, suites, judge, tell, values."""

from __future__ import annotations

import ast
from pathlib import Path

import pytest

import pytest_openclaw

pytestmark = pytest.mark.newest

ROOT = Path(pytest_openclaw.__file__).parent

# The wings of the house, top to bottom; a module imports from its own wing and from those below.
WINGS = [
    {"plugin", "cells", "recorder", "distributed", "crew", "scheduling", "items", "item_reports", "python_benchmarks", "start",
     "state", "ledger", "spending", "dry_run", "ci", "report_texts", "registries", "resuming", "choices", "options",
     "hookspecs", "commands", "__main__", "gate_lines", "tolerance"},
    {"run"},
    {"providers", "engine", "prices"},
    {"suites"},
    {"judge", "validators", "tools"},
    {"stats", "reports"},
    {"records", "settings", "schema", "schema_check", "files", "private", "protocols", "errors", "faults", "redact", "escapes",
     "key_formats", "secret_env", "text", "once", "clock",
     "signals", "toolcalls", "worlds", "__init__"},
]  # fmt: skip
HEAVY = {
    "httpx2",
    "jsonschema",
    "psutil",
    "tabulate",
    "regex",
    "filelock",
    "asyncio",
    "xdist",
    "genai_prices",
}
LIGHT_MODULES = ("plugin", "options", "hookspecs", "__init__")


def _wing_of(room: str) -> int:
    return next(number for number, rooms in enumerate(WINGS) if room in rooms)


def _room_of(path: Path) -> str:
    return path.relative_to(ROOT).with_suffix("").parts[0]


def _imports(path: Path) -> list[tuple[str, bool]]:
    """Rooms and packages that a module imports, and whether it does so on its own import."""
    tree = ast.parse(path.read_text("utf-8"))
    outside = {id(node) for node in tree.body}
    found = []
    for node in ast.walk(tree):
        if isinstance(node, ast.ImportFrom) and node.module and not node.level:
            names = (
                [node.module]
                if node.module != "pytest_openclaw"
                else [f"{node.module}.{a.name}" for a in node.names]
            )
        elif isinstance(node, ast.Import):
            names = [alias.name for alias in node.names]
        else:
            continue
        found += [(name, id(node) in outside) for name in names]
    return found


MODULES = sorted(path for path in ROOT.rglob("*.py"))


@pytest.mark.parametrize("path", MODULES, ids=lambda path: path.relative_to(ROOT).as_posix())
def test_a_module_imports_from_its_own_wing_or_below(path: Path) -> None:
    """No module looks up the ladder, not even lazily or for types."""
    own = _wing_of(_room_of(path))

    for name, _ in _imports(path):
        package, _, rest = name.partition(".")
        if package == "pytest_openclaw" and rest:
            room = rest.split(".")[0]
            if room.startswith("__") or not ((ROOT / room).is_dir() or (ROOT / f"{room}.py").exists()):
                continue
            if _room_of(path) == "__init__":
                continue  # the package's face shows what lies below it
            assert _wing_of(room) >= own, f"{path.name} imports {name}, which lies above it"


@pytest.mark.parametrize("module", LIGHT_MODULES)
def test_what_every_session_loads_is_light(module: str) -> None:
    """A pytest session without benchmarks imports nothing heavy for us."""
    heavy = [
        name for name, at_once in _imports(ROOT / f"{module}.py") if at_once and name.split(".")[0] in HEAVY
    ]

    assert heavy == []


def test_every_room_has_its_place() -> None:
    """A new room at the top is put into the map."""
    rooms = {_room_of(path) for path in MODULES}

    assert rooms == set().union(*WINGS)
