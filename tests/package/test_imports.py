"""Folders import one way, modules without circles, and a plain session loads little."""

import ast
import re
import subprocess
import sys
from functools import cache
from pathlib import Path
from typing import NamedTuple

import pytest

import pytest_openclaw
from pytest_openclaw.parts import TABLE
from tests.conftest import NO_OTHER_PLUGINS

pytestmark = pytest.mark.newest

PACKAGE = "pytest_openclaw"
ROOT = Path(pytest_openclaw.__file__).parent
REPOSITORY = Path(__file__).parents[2]

# The map, top to bottom: a module imports from its own entry and from those below.
MAP = (
    "__main__",
    "plugin",
    "hookspecs",
    "__init__",
    "parts",  # the core imports none of them; `values/parts.py` loads them by name
    "cli",
    "session",
    "options",  # a file at the top, so that a session without benchmarks loads no folder
    "runs",
    "asking",
    "reports",
    "conclusions",
    "stats",
    "providers",
    "suites",
    "judging",
    "worlds",
    "openclaw",
    "values",
    "util",
)
HEAVY = {
    *["bashkit", "httpx2", "jsonschema", "msgspec", "psutil", "regex", "tabulate", "asyncio", "genai_prices"]
}
PLUGINS = [f"parts.{name}" for name, entry in TABLE.items() if entry.is_plugin]
LIGHT = {
    PACKAGE,
    *(
        f"{PACKAGE}.{name}"
        for name in (
            "plugin",
            "hookspecs",
            "options",
            "parts",
            "values",
            "values.parts",
            *PLUGINS,
        )
    ),
}


class Import(NamedTuple):
    """An import of one of our modules, wherever it is: for types and inside functions too."""

    module: str
    imported: str


def _name(path):
    parts = path.relative_to(ROOT.parent).with_suffix("").parts
    return ".".join(parts[:-1] if parts[-1] == "__init__" else parts)


MODULES = {_name(path): path for path in sorted(ROOT.rglob("*.py"))}


def _place(module):
    return module.split(".")[1] if "." in module else "__init__"


@cache
def _imports():
    return frozenset(
        Import(module, name)
        for module, path in MODULES.items()
        for node in ast.walk(ast.parse(path.read_text("utf-8")))
        for name in _imported(node)
        if name != module
    )


def _imported(node):
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


def test_the_map_names_everything_at_the_top():
    """A new folder or file there must be added to the map."""
    assert {_place(module) for module in MODULES} == set(MAP)


def test_the_page_of_the_architecture_names_what_there_is():
    """Each path of the page exists, and each function that it names for a file is in that file."""
    page = (REPOSITORY / "docs/maintaining/architecture.md").read_text("utf-8")
    found = re.findall(r"`([\w./]+(?:/|\.py))`(?:: ((?:`\w+`(?:, )?)+))?", page)
    found += [(path, name) for name, path in re.findall(r"`(\w+)` in `([\w./]+\.py)`", page)]

    assert len(found) > 40
    for path, names in found:
        place = next((one for one in (ROOT / path, REPOSITORY / path) if one.exists()), None)
        assert place, path
        for name in re.findall(r"\w+", names):
            there = rf"^ *(?:(?:async )?def |class )?{name}\b"
            assert re.search(there, place.read_text("utf-8"), re.MULTILINE), f"{path}: {name}"


@pytest.mark.parametrize("folder", [name for name in MAP if (ROOT / name).is_dir()])
def test_a_folder_states_its_job(folder):
    """In one sentence, the first of its `__init__.py`."""
    text = ast.get_docstring(ast.parse((ROOT / folder / "__init__.py").read_text("utf-8"))) or ""

    assert text.partition("\n\n")[0].rstrip().endswith(".")


def test_imports_go_one_way():
    """No module imports from a folder above its own."""
    places = {name: number for number, name in enumerate(MAP)}

    assert [one for one in _imports() if places[_place(one.imported)] < places[_place(one.module)]] == []


def test_no_modules_import_each_other():
    """There is no circle: without the modules at either end of the imports, nothing is left."""
    graph = {module: set() for module in MODULES}
    for one in _imports():
        graph[one.module].add(one.imported)
    while ends := {m for m, out in graph.items() if not out or not any(m in o for o in graph.values())}:
        graph = {module: out - ends for module, out in graph.items() if module not in ends}

    assert sorted(graph) == []


def test_a_plain_session_loads_few_modules(tmp_path):
    """A project without benchmarks loads only options, hooks and parts with hooks, and no heavy library."""
    (tmp_path / "test_own.py").write_text("def test_own(): pass")
    prints = "import sys\ndef pytest_unconfigure():\n    print('loaded', *sys.modules)\n"
    (tmp_path / "conftest.py").write_text(prints)
    words = f"-q -p no:cacheprovider -p no:xdist {NO_OTHER_PLUGINS}".split()
    command = [sys.executable, "-m", "pytest", *words, str(tmp_path)]

    done = subprocess.run(command, cwd=tmp_path, capture_output=True, text=True, timeout=300)

    (line,) = (line for line in done.stdout.splitlines() if line.startswith("loaded"))
    loaded = set(line.split()[1:])
    assert {name for name in loaded if name.startswith(PACKAGE)} == LIGHT
    assert HEAVY.isdisjoint(loaded)


def test_no_two_classes_share_a_name():
    """A name of a class means one thing in the whole package."""
    classes = [
        node.name
        for path in ROOT.rglob("*.py")
        for node in ast.walk(ast.parse(path.read_text("utf-8")))
        if isinstance(node, ast.ClassDef)
    ]

    assert sorted({name for name in classes if classes.count(name) > 1}) == []


def test_few_hooks_depend_on_the_order_of_plugins():
    """At most eight have a mark, so that the others can be read in the order of their steps."""
    marked = [
        f"{path.relative_to(ROOT)}: {line.strip()}"
        for path in ROOT.rglob("*.py")
        for line in path.read_text("utf-8").splitlines()
        if re.search(r"@pytest\.hookimpl\(.*(tryfirst|trylast|wrapper)=", line)
    ]

    assert len(marked) <= 8, marked
