"""A task of any format, and its suite: one prompt in a world, with OpenClaw's tools, a shell and Python.

Also here are what a grader needs of a machine, and the provider that plays reference solutions, which tests
tasks, worlds and graders.
"""

from __future__ import annotations

import ast
import json
import re
import sys
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from hashlib import sha256
from pathlib import Path, PurePosixPath
from typing import Any

from pytest_openclaw.openclaw.dispatch import BRIDGE
from pytest_openclaw.parts.tasks import machine
from pytest_openclaw.parts.tasks.grading import Grade, Grader
from pytest_openclaw.suites.load import check_id
from pytest_openclaw.suites.offered import read_tools
from pytest_openclaw.util.errors import OpenClawError, SuiteError
from pytest_openclaw.util.text import counted, listed
from pytest_openclaw.values.prompts import Prompt, Suite
from pytest_openclaw.values.protocols import Provider
from pytest_openclaw.values.replies import Reply
from pytest_openclaw.values.requests import Request
from pytest_openclaw.values.tool_calls import ToolCall
from pytest_openclaw.values.worlds import World
from pytest_openclaw.worlds.workspace import ROOT

STEPS, OUTPUT_TOKENS = 30, 2048  # the suites limit the time only
TOOLS, OPTIONAL = "direct", ("sessions_yield", *BRIDGE)  # OpenClaw's default
SOLUTION = "/tmp/solve.sh"  # noqa: S108 - in a world


@dataclass(frozen=True, kw_only=True)
class Task:
    """A task.

    Attributes:
        left_out: why it is not asked; the rest is then not read.
        turns: further messages of the user.
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
    turns: tuple[str, ...] = ()
    timeout_s: float | None = None
    files: Mapping[str, str] = field(default_factory=dict)
    grader: Grader | None = None
    pass_at: float = 1.0
    solution: str | None = None
    labels: Mapping[str, Any] = field(default_factory=dict)


@dataclass(frozen=True, kw_only=True)
class TaskSettings:
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


def read_suite(read: Callable[[Path], Task], file: Path, settings: TaskSettings, name: str) -> Suite:
    """Return the suite of a task: of its prompt, or of none with the reason.

    Raises:
        SuiteError: the task is broken; the message says what is wrong.
    """
    try:
        task = read(file)
        check_id({"id": task.id})
    except (ValueError, OSError, OpenClawError) as error:
        raise SuiteError(f"{name}: {' '.join(str(error).split())}") from None
    except (RecursionError, MemoryError):  # Python's parsers raise the latter, too
        raise SuiteError(f"{name}: is nested too deeply.") from None
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
        turns=task.turns,
        timeout_s=task.timeout_s if settings.is_timed else None,
        max_output_tokens=OUTPUT_TOKENS,
        tools=read_tools(TOOLS),
        tools_spec=TOOLS,
        world=World(files=task.files, optional_tools=OPTIONAL, python=True, steps=STEPS),
        validator=Grade(grader=grader, pass_at=pass_at, where=name, on_machine=bool(needs)),
        # As of a benchmark in Python: `rescore` runs no code.
        validator_spec={"type": "python", "sha256": digest, "pass_at": pass_at},
        **task.labels,
    )
    return Suite(path=name, prompts=(prompt,))


def _why_left_out(task: Task, needs: str, settings: TaskSettings) -> str:
    if settings.is_oracle and task.solution is None:
        return "it has no reference solution"
    if not needs:
        return ""
    why = f"its grader needs {needs}, which no world has"
    if not settings.runs_model_code:
        return f"{why}; --openclaw-run-model-code runs it on this machine"
    return f"{why}, and {no_machine}" if (no_machine := machine.why_not()) else ""


class Oracle(Provider):
    """Runs the reference solution, which is in the world, then ends its turn."""

    name = "oracle"
    takes_tools = True

    async def ask(self, request: Request) -> Reply:
        """Return the call that runs the solution."""
        if request.history:
            return Reply(text="Done.")
        command = {"command": f"bash {SOLUTION} {ROOT}"}
        return Reply(tool_calls=(ToolCall(name="exec", arguments=json.dumps(command)),))


def pytest_openclaw_providers() -> list[type[Provider]]:
    """Register what plays the solutions; this module is a plugin only with `--openclaw-oracle`."""
    return [Oracle]


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
    code = grader.files[grader.run]
    own = {part.removesuffix(".py") for path in grader.files for part in path.split("/")}
    trees = [nodes_of(text) for text in (code, *imported(code, grader.files).values())]
    found = {name for nodes in trees for name in _imports(nodes)}
    modules = sorted(found & _LACKING | found - _KNOWN - own - {*sys.stdlib_module_names})
    programs = sorted({word for nodes in trees for word in _programs(nodes)} & _PROGRAMS)
    reasons = [f"the {counted(len(modules), 'module')} {listed(modules)}"] if modules else []
    reasons += [f"the {counted(len(programs), 'program')} {listed(programs)}"] if programs else []
    return " and ".join(reasons)


def imported_words(code: str) -> set[str]:
    """Return the names in code's imports, of modules and of what it takes from them."""
    imports = (node for node in nodes_of(code) if isinstance(node, ast.Import | ast.ImportFrom))
    return {word for node in imports for word in re.findall(r"\w+", ast.unparse(node))}


def imported(code: str, files: Mapping[str, str]) -> dict[str, str]:
    """Return the files that code may import, and those that they import."""
    codes_at = [path for path in files if path.endswith(".py")]
    stems = {path: PurePosixPath(path.removesuffix("/__init__.py")).stem for path in codes_at}
    found, codes = dict[str, str](), [code]
    while codes:
        words = {"conftest", *imported_words(codes.pop())}
        new = {path: files[path] for path, stem in stems.items() if stem in words and path not in found}
        found |= new
        codes += new.values()
    return found


def functions_with(parameter: str, files: Mapping[str, str]) -> set[str]:
    """Return the names of the functions that have a parameter of this name."""
    nodes = (node for text in files.values() for node in nodes_of(text))
    functions = (node for node in nodes if isinstance(node, ast.FunctionDef))
    return {one.name for one in functions if re.search(rf"\b{parameter}\b", ast.unparse(one.args))}


def nodes_of(code: str) -> list[ast.AST]:
    """Return all parts of code; empty if it is not Python."""
    try:
        return [*ast.walk(ast.parse(code))]
    except (SyntaxError, ValueError):
        return []


def _imports(nodes: Sequence[ast.AST]) -> Iterator[str]:
    """Yield the modules that code imports, without those that it can do without."""
    optional = {
        id(node)
        for block in nodes
        if isinstance(block, ast.Try)
        for statement in block.body
        for node in ast.walk(statement)
    }
    for node in nodes:
        if id(node) in optional:
            continue
        if isinstance(node, ast.Import):
            yield from (name.name.partition(".")[0] for name in node.names)
        elif isinstance(node, ast.ImportFrom) and node.module and not node.level:
            yield node.module.partition(".")[0]


def _programs(nodes: Iterable[ast.AST]) -> Iterator[str]:
    """Yield the first words of lists and texts that a call is given, such as `run(["git", "log"])`."""
    for call in nodes:
        if not isinstance(call, ast.Call) or ast.unparse(call.func).rpartition(".")[2] not in _STARTERS:
            continue
        for given in call.args[:1]:
            first = given.elts[0] if isinstance(given, ast.List | ast.Tuple) and given.elts else given
            if isinstance(first, ast.Constant) and isinstance(first.value, str):
                yield first.value.strip().partition(" ")[0].rpartition("/")[2]
