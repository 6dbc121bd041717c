"""A task of any format, and its suite: one prompt in a world, with OpenClaw's tools, a shell and Python."""

from __future__ import annotations

import ast
import json
import sys
from dataclasses import dataclass, field, replace
from hashlib import sha256
from typing import TYPE_CHECKING, Any

from pytest_openclaw.openclaw.dispatch import BRIDGE
from pytest_openclaw.parts.tasks import machine
from pytest_openclaw.parts.tasks.grading import Grade, Grader
from pytest_openclaw.suites.load import check_id
from pytest_openclaw.suites.offered import read_tools
from pytest_openclaw.util.errors import OpenClawError, SuiteError
from pytest_openclaw.util.text import counted, listed
from pytest_openclaw.values.prompts import Prompt, Suite
from pytest_openclaw.values.worlds import World

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Mapping
    from pathlib import Path

STEPS, OUTPUT_TOKENS = 30, 2048  # the suites limit the time only
TOOLS, OPTIONAL = "direct", ("sessions_yield", *BRIDGE)  # OpenClaw's default
SOLUTION = "/tmp/solve.sh"  # noqa: S108 - in a world


@dataclass(frozen=True, kw_only=True)
class Task:
    """A task.

    Attributes:
        left_out: why it is not asked; the rest is then not read.
        timeout_s: seconds for an attempt.
        files: files of the workspace, path → text.
        pass_at: the score from which it passes.
        solution: a script that solves the task, given the path of the workspace.
        labels: further keys of its prompt.
    """

    id: str
    left_out: str = ""
    name: str = ""
    prompt: str = ""
    timeout_s: float | None = None
    files: Mapping[str, str] = field(default_factory=dict)
    grader: Grader | None = None
    pass_at: float = 1.0
    solution: str | None = None
    labels: Mapping[str, Any] = field(default_factory=dict)


@dataclass(frozen=True, kw_only=True)
class Settings:
    """The settings of all tasks.

    Attributes:
        pass_at: the score from which a task passes; None means the task's own.
        is_timed: whether the tasks' own times count.
        runs_model_code: whether graders that need the machine run there.
        is_oracle: whether reference solutions are played in place of a model.
    """

    pass_at: float | None = None
    is_timed: bool = True
    runs_model_code: bool = False
    is_oracle: bool = False


def read_suite(read: Callable[[Path], Task], file: Path, settings: Settings, name: str) -> Suite:
    """Return the suite of a task: of its prompt, or of none with the reason.

    Raises:
        SuiteError: the task is broken; the message says what is wrong.
    """
    try:
        task = read(file)
        check_id({"id": task.id})
    except (ValueError, OSError, OpenClawError) as error:
        raise SuiteError(f"{name}: {' '.join(str(error).split())}") from None
    grader = task.grader
    needs = lacking(grader) if grader else ""
    why = task.left_out or _why_left_out(task, needs, settings)
    if why or grader is None:
        return Suite(path=name, prompts=(), left_out={task.id: why})
    if settings.is_oracle:
        task = replace(task, files={**task.files, SOLUTION: task.solution or ""})
    pass_at = task.pass_at if settings.pass_at is None else settings.pass_at
    digest = sha256(json.dumps([grader.run, dict(grader.files)]).encode()).hexdigest()
    prompt = Prompt(
        suite=name,
        id=task.id,
        name=task.name or task.id,
        prompt=task.prompt,
        timeout_s=task.timeout_s if settings.is_timed else None,
        max_output_tokens=OUTPUT_TOKENS,
        tools=read_tools(TOOLS),
        tools_spec=TOOLS,
        world=World(files=task.files, optional_tools=OPTIONAL, python=True, steps=STEPS),
        validator=Grade(
            grader=grader, prompt=task.prompt, pass_at=pass_at, where=name, on_machine=bool(needs)
        ),
        # As of a benchmark in Python: `rescore` runs no code.
        validator_spec={"type": "python", "sha256": digest, "pass_at": pass_at},
        **task.labels,
    )
    return Suite(path=name, prompts=(prompt,))


def _why_left_out(task: Task, needs: str, settings: Settings) -> str:
    if settings.is_oracle and task.solution is None:
        return "it has no reference solution"
    if not needs:
        return ""
    why = f"its grader needs {needs}, which no world has"
    if not settings.runs_model_code:
        return f"{why}; --openclaw-run-model-code runs it on this machine"
    return f"{why}, and {no_machine}" if (no_machine := machine.why_not()) else ""


# --- what a grader needs ---------------------------------------------------------------------------

_KNOWN = {"_pytest", "packaging", "pytest", "yaml"}
_LACKING = {
    "asyncio",
    "ctypes",
    "multiprocessing",
    "select",
    "selectors",
    "socket",
    "socketserver",
    "ssl",
    "sqlite3",
}
_STARTERS = {"Popen", "call", "check_call", "check_output", "getoutput", "popen", "run", "system", "which"}
_PROGRAMS = {
    *("cargo", "cc", "clang", "cmake", "docker", "g++", "gcc", "git", "go", "java", "javac", "make", "node"),
    *("npm", "npx", "openclaw", "openssl", "pip", "pip3", "ruby", "rustc", "systemctl", "tsc", "uv"),
}


def lacking(grader: Grader) -> str:
    """Return what a grader needs that no world has; empty if it can run there."""
    codes = [text for path, text in grader.files.items() if path.endswith(".py")]
    own = {path.partition("/")[0].removesuffix(".py") for path in grader.files}
    trees = [tree for code in (*codes, grader.run.get("code", "")) if (tree := _tree(code))]
    found = {name for tree in trees for name in _imports(tree)}
    modules = sorted(found & _LACKING | found - _KNOWN - own - {*sys.stdlib_module_names})
    programs = sorted({word for tree in trees for word in _programs(tree)} & _PROGRAMS)
    reasons = [f"the {counted(len(modules), 'module')} {listed(modules)}"] if modules else []
    reasons += [f"the {counted(len(programs), 'program')} {listed(programs)}"] if programs else []
    return " and ".join(reasons)


def _tree(code: str) -> ast.AST | None:
    try:
        return ast.parse(code)
    except (SyntaxError, ValueError):
        return None


def _imports(tree: ast.AST) -> Iterator[str]:
    optional = {
        id(node)
        for block in ast.walk(tree)
        if isinstance(block, ast.Try)
        for statement in block.body
        for node in ast.walk(statement)
    }
    for node in ast.walk(tree):
        if id(node) in optional:
            continue
        if isinstance(node, ast.Import):
            yield from (name.name.partition(".")[0] for name in node.names)
        elif isinstance(node, ast.ImportFrom) and node.module and not node.level:
            yield node.module.partition(".")[0]


def _programs(tree: ast.AST) -> Iterator[str]:
    """Yield the first words of lists and texts that a call is given, such as `run(["git", "log"])`."""
    for call in ast.walk(tree):
        if not isinstance(call, ast.Call) or ast.unparse(call.func).rpartition(".")[2] not in _STARTERS:
            continue
        for given in call.args[:1]:
            first = given.elts[0] if isinstance(given, ast.List | ast.Tuple) and given.elts else given
            if isinstance(first, ast.Constant) and isinstance(first.value, str):
                yield first.value.strip().partition(" ")[0].rpartition("/")[2]
