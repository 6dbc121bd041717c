"""Folders import one way, modules without circles, and a plain session loads little."""

from __future__ import annotations

import ast
import subprocess
import sys
from collections.abc import Iterator, Mapping
from functools import cache
from pathlib import Path
from typing import Literal, NamedTuple

import pytest

import pytest_openclaw

pytestmark = pytest.mark.newest

PACKAGE = "pytest_openclaw"
ROOT = Path(pytest_openclaw.__file__).parent

# The map, top to bottom: a module imports from its own entry and from those below.
MAP = (
    "__main__",
    "plugin",
    "hookspecs",
    "__init__",
    "features",  # the core imports none of them; the command line loads them by name
    "cli",
    "session",
    "options",  # a file at the top, so that a session without benchmarks loads no folder
    "runs",
    "asking",
    "reports",
    "stats",
    "providers",
    "suites",
    "judging",
    "worlds",
    "openclaw",
    "values",
    "util",
)
TOP_FILES = {"__init__.py", "__main__.py", "hookspecs.py", "options.py", "plugin.py", "py.typed"}
# Imports that break a rule below, each with its reason: (importing module, imported module).
UPWARD: Mapping[tuple[str, str], str] = {}
CIRCULAR: Mapping[tuple[str, str], str] = {}
HEAVY = {
    "bashkit",
    "httpx2",
    "jsonschema",
    "msgspec",
    "psutil",
    "regex",
    "tabulate",
    "asyncio",
    "xdist",
    "genai_prices",
}
LIGHT_MODULES = ("__init__", "plugin", "hookspecs", "options")
LIGHT = {PACKAGE if name == "__init__" else f"{PACKAGE}.{name}" for name in LIGHT_MODULES}


class Import(NamedTuple):
    """An import of one of our modules.

    Attributes:
        kind: executed with the module, for types alone, or inside a function.
    """

    module: str
    imported: str
    kind: Literal["module", "types", "function"]


def _name(path: Path) -> str:
    parts = path.relative_to(ROOT.parent).with_suffix("").parts
    return ".".join(parts[:-1] if parts[-1] == "__init__" else parts)


MODULES = {_name(path): path for path in sorted(ROOT.rglob("*.py"))}


def _place(module: str) -> str:
    """The entry of the map to which a module belongs."""
    return module.split(".")[1] if "." in module else "__init__"


@cache
def _imports() -> tuple[Import, ...]:
    found = []
    for module, path in MODULES.items():
        tree = ast.parse(path.read_text("utf-8"))
        found += [Import(module, name, kind) for name, kind in _walk(tree, "module") if name != module]
    return tuple(dict.fromkeys(found))


def _walk(
    node: ast.AST, kind: Literal["module", "types", "function"]
) -> Iterator[tuple[str, Literal["module", "types", "function"]]]:
    for child in ast.iter_child_nodes(node):
        inner = kind
        if isinstance(child, ast.FunctionDef | ast.AsyncFunctionDef | ast.Lambda):
            inner = "function"
        elif isinstance(child, ast.If) and ast.unparse(child.test).endswith("TYPE_CHECKING"):
            inner = "types"
        for name in _imported(child):
            yield name, inner
        yield from _walk(child, inner)


def _imported(node: ast.AST) -> Iterator[str]:
    """Yield our modules that a statement imports; names such as `__version__` belong to no module's import."""
    if isinstance(node, ast.Import):
        yield from (alias.name for alias in node.names if alias.name in MODULES)
    elif isinstance(node, ast.ImportFrom):
        assert not node.level, "imports are absolute"
        for alias in node.names:
            full = f"{node.module}.{alias.name}"
            if full in MODULES:
                yield full
            elif node.module in MODULES and not (node.module == PACKAGE and alias.name.startswith("__")):
                yield node.module


def _circles(kinds: set[str]) -> list[list[str]]:
    """Return the sets of modules that import each other, found by removing modules outside of circles."""
    graph: dict[str, set[str]] = {module: set() for module in MODULES}
    for one in _imports():
        if one.kind in kinds and (one.module, one.imported) not in CIRCULAR:
            graph[one.module].add(one.imported)
    while ends := {m for m, out in graph.items() if not out or not any(m in o for o in graph.values())}:
        graph = {module: out - ends for module, out in graph.items() if module not in ends}
    return [sorted(graph)] if graph else []


def test_the_map_names_everything_at_the_top() -> None:
    """A new folder or file there must be added to the map."""
    assert {_place(module) for module in MODULES} == set(MAP)


def test_the_top_has_few_files() -> None:
    """Six files connect pytest to the folders."""
    assert {path.name for path in ROOT.iterdir() if path.is_file()} == TOP_FILES


@pytest.mark.parametrize("folder", [name for name in MAP if (ROOT / name).is_dir()])
def test_a_folder_states_its_job(folder: str) -> None:
    """In one sentence, the first of its `__init__.py`."""
    text = ast.get_docstring(ast.parse((ROOT / folder / "__init__.py").read_text("utf-8"))) or ""

    assert text.partition("\n\n")[0].rstrip().endswith(".")


def test_imports_go_one_way() -> None:
    """No module imports from a folder above its own: not lazily, and not for types."""
    upward = {
        (one.module, one.imported)
        for one in _imports()
        if MAP.index(_place(one.imported)) < MAP.index(_place(one.module))
    }

    assert upward == set(UPWARD)


@pytest.mark.parametrize(
    "kinds", [{"module"}, {"module", "types"}, {"module", "function"}, {"module", "types", "function"}]
)
def test_no_modules_import_each_other(kinds: set[str]) -> None:
    """There is no circle, whichever imports count."""
    assert _circles(kinds) == []


def test_every_exception_is_needed() -> None:
    """An exception goes when its import does."""
    assert {*UPWARD, *CIRCULAR} <= {(one.module, one.imported) for one in _imports()}


@pytest.mark.parametrize("module", LIGHT_MODULES)
def test_modules_of_every_session_import_nothing_heavy(module: str) -> None:
    """A pytest session without benchmarks imports no heavy library for us."""
    tree = ast.parse((ROOT / f"{module}.py").read_text("utf-8"))
    names = [alias.name for node in tree.body if isinstance(node, ast.Import) for alias in node.names]
    names += [node.module or "" for node in tree.body if isinstance(node, ast.ImportFrom)]

    assert HEAVY.isdisjoint(name.split(".")[0] for name in names)


def test_a_plain_session_loads_four_modules(tmp_path: Path) -> None:
    """A project without benchmarks loads the options and the hooks alone."""
    assert _loaded_in_a_session(tmp_path) == LIGHT


def _loaded_in_a_session(folder: Path) -> set[str]:
    """Return our modules that a pytest session has loaded."""
    (folder / "test_own.py").write_text("def test_own(): pass")
    (folder / "conftest.py").write_text(
        "import sys\n"
        "def pytest_unconfigure():\n"
        f"    print('loaded', *(name for name in sys.modules if name.startswith('{PACKAGE}')))\n"
    )

    done = subprocess.run(
        [sys.executable, "-m", "pytest", "-q", "-p", "no:cacheprovider", str(folder)],
        cwd=folder, capture_output=True, text=True, timeout=300,
    )  # fmt: skip

    lines = [line.split() for line in done.stdout.splitlines() if line.startswith("loaded")]
    assert len(lines) == 1, done.stdout + done.stderr
    return set(lines[0][1:])
