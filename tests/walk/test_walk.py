"""A walk through typical tasks on a real terminal: every width, with colors and without."""

import os
import re
from dataclasses import dataclass
from pathlib import Path

import pytest

from tests.conftest import NO_OTHER_PLUGINS
from tests.walk.lab import SKILLS, serve, write_project
from tests.walk.screens import run_on_terminal, words_of

pytest.importorskip("pty", reason="Windows has no pseudo-terminals of this kind")
pytestmark = [pytest.mark.newest, pytest.mark.nightly]

LOOKS = [(60, True), (80, False), (140, True)]
TITLE = "which model may hold the tools?"

MODELS = "--openclaw-models=qwen3:8b,llama3.2:3b,smollm2:135m"


@dataclass(frozen=True)
class Step:
    """A command, its exit status, parts of its output in any width, and the start of its first line."""

    name: str
    line: str
    status: int
    says: tuple[str, ...]
    first: str = ""


TASKS = (
    Step("run", f"pytest benchmarks {MODELS}", 1, ("T1", "wrote"), first="qwen3:8b"),
    Step("list", f"pytest benchmarks --collect-only -q {MODELS}", 0, ("T0[ollama_native/qwen3:8b]", "69 tests collected")),
    Step("plan-a-run", f"pytest benchmarks --openclaw-dry-run {MODELS}", 0, ("qwen3:8b",)),
    Step("one-kind-of-evidence", f"pytest benchmarks/prompts_shell.toml {MODELS}", 1, ("calls found in texts",), first="qwen3:8b"),
    Step("misses", "pytest-openclaw show second --failed", 0, ("why", "smollm2:135m"), first="qwen3:8b"),
    Step("one-cell", 'pytest-openclaw show second "T1[ollama_native/smollm2:135m]"', 0, ("Read todo.md.", "verdict")),
    Step("compare", "pytest-openclaw compare first second", 0, ("no difference seen",)),
    Step("history", "pytest-openclaw history", 0, ("passed", "tier", "first", "second")),
    Step("route", "pytest-openclaw route second", 0, ("qwen3:8b",)),
    Step("report", "pytest-openclaw report second --baseline first", 0, ("69 cells on 3 targets", "report.html")),
)  # fmt: skip


@pytest.fixture(scope="module")
def lab(tmp_path_factory):
    folder = tmp_path_factory.mktemp("lab")
    write_project(folder)
    with serve() as server:
        environ = {"OLLAMA_HOST": server.origin, "PYTEST_ADDOPTS": NO_OTHER_PLUGINS}
        for name in ("first", "second"):
            line = f"pytest benchmarks -q --openclaw-run-id={name} {MODELS}"
            assert run_on_terminal(line, folder, environ, columns=80, color=False).status == 1
        yield folder, environ


EVERY = [
    pytest.param(step, columns, color, id=f"{step.name}-{columns}-{'color' if color else 'plain'}")
    for step in TASKS
    for columns, color in LOOKS
]


@pytest.mark.parametrize(("step", "columns", "color"), EVERY)
def test_a_task_has_its_answer_first(lab, step, columns, color):
    """The first line answers, and no row of ours is wider than the terminal."""
    folder, environ = lab

    shown = run_on_terminal(step.line, folder, environ, columns=columns, color=color)

    assert shown.status == step.status, shown.text
    assert [part for part in step.says if part not in words_of(shown.raw)] == [], shown.text
    assert color or not shown.has_color
    ours = shown.lines
    if step.line.startswith("pytest "):
        starts = [n for n, line in enumerate(ours) if TITLE in line]
        ours = ours[starts[0] + 1 :] if starts else []
    assert [line for line in ours if len(line) > columns and not _is_to_copy(line)] == []
    if step.first:
        assert ours[0].startswith(f"ollama_native/{step.first}: ")
        assert shown.has_color == color or not step.line.startswith("pytest ")
        assert columns < 140 or all(name in shown.text for name in SKILLS)


def _is_to_copy(line):
    return bool(
        re.match(r"(next |check it: |wrote |benchmarks/| *(more prompts +)?pytest |in full: |\S+$)", line)
    )


@pytest.mark.browser
def test_pictures_are_made(lab, tmp_path):
    """Those of the docs: OPENCLAW_TEST_PICTURES names the folder that takes them."""
    from tests.walk.pictures import take_pictures

    folder, environ = lab
    into = Path(os.environ.get("OPENCLAW_TEST_PICTURES") or tmp_path)

    made = take_pictures(folder, environ, into)

    assert len(made) == 5
    assert all(path.stat().st_size > 5000 for path in made)
