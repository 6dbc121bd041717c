"""A feature can be removed: the rest of the package runs benchmarks without it."""

from __future__ import annotations

import json
import os
import re
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

import pytest_openclaw
from pytest_openclaw.features import BUILTIN
from tests.conftest import NO_OTHER_PLUGINS

pytestmark = pytest.mark.newest

ROOT = Path(pytest_openclaw.__file__).parent
PROJECT = {
    "conftest.py": (Path(__file__).parent.parent / "examples/parrot_provider.py").read_text("utf-8"),
    "benchmarks/prompts_two.toml": "".join(
        f'[[prompts]]\nid = "P{n}"\nprompt = "yes"\nvalidator = {{ type = "exact", value = "yes" }}\n'
        for n in (1, 2)
    ),
}


def _without(feature: str, folder: Path) -> Path:
    """Copy the package without a feature and its name."""
    package = folder / "pytest_openclaw"
    shutil.copytree(ROOT, package, ignore=shutil.ignore_patterns("__pycache__"))
    (removed,) = (path for path in (package / "features").iterdir() if path.stem == feature)
    shutil.rmtree(removed) if removed.is_dir() else removed.unlink()
    names = package / "features/__init__.py"
    text, n = re.subn(rf'^    "{feature}": .*\n', "", names.read_text("utf-8"), flags=re.MULTILINE)
    assert n == 1
    names.write_text(text, "utf-8")
    return package


FIRST, *OTHERS = BUILTIN


@pytest.mark.parametrize(
    "feature", [FIRST, *(pytest.param(one, marks=pytest.mark.nightly) for one in OTHERS)]
)
def test_a_run_needs_no_feature(feature: str, tmp_path: Path) -> None:
    """Four cells pass, and the other commands are there."""
    package = _without(feature, tmp_path / "copy")
    for name, text in PROJECT.items():
        (tmp_path / name).parent.mkdir(exist_ok=True)
        (tmp_path / name).write_text(text, "utf-8")

    def run(*words: str) -> str:
        done = subprocess.run(
            [sys.executable, "-m", *words], cwd=tmp_path, env={**os.environ, "PYTHONPATH": str(package.parent)},
            capture_output=True, encoding="utf-8", timeout=300,
        )  # fmt: skip
        assert done.returncode == 0, done.stdout + done.stderr
        return done.stdout

    words = ("benchmarks", "--openclaw-models=parrot/a,parrot/b", "--openclaw-run-id=r")
    assert "4 passed" in run("pytest", *NO_OTHER_PLUGINS.split(), *words)
    assert len(json.loads(run("pytest_openclaw", "show", "r", "--json"))["cells"]) == 4
    commands = set(re.findall(r"^    ([a-z-]+)\s", run("pytest_openclaw"), re.MULTILINE))
    assert commands == {"init", "providers", "show", "surfaces", "validators"} | {
        command for name, added in BUILTIN.items() if name != feature for command in added.commands
    }
