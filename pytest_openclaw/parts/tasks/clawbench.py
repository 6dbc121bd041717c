"""Reads a task of claw-bench, a folder with `task.toml`, as a suite of one prompt with a world.

The format of the package claw-bench 0.1.0: `instruction.md`, `environment/setup.sh` with its data, a pytest
file in `verifier/`, and `solution/solve.sh`.
"""

from __future__ import annotations

import tomllib
from pathlib import Path
from typing import Annotated

from msgspec import Meta, Struct

from pytest_openclaw.parts.tasks.grading import Grader
from pytest_openclaw.parts.tasks.task import Task, texts_in
from pytest_openclaw.util.typed import Filled, converted
from pytest_openclaw.worlds import python, shell
from pytest_openclaw.worlds.workspace import ROOT

FILE = "task.toml"
_TASK, _CHECKS = "/task", "verifier/test_output.py"
SETUP_S = 60.0
_CONFTEST = 'def pytest_addoption(parser):\n    parser.addoption("--workspace")\n'
#: as claw-bench's `core/runner.py` begins a prompt, in which it makes the paths of files absolute
_PREAMBLE = f"""\
IMPORTANT: You must write all output files to the absolute path: {ROOT}/
Do NOT use relative paths. Use the exact absolute path above.
Execute shell commands to create the required files.

"""


class ClawBenchTask(Struct):
    """The file `task.toml`; other keys are for claw-bench's own program."""

    id: Filled
    timeout: Annotated[float, Meta(gt=0)] = 300
    title: str = ""
    domain: str | None = None
    level: str = ""
    tags: list[str] = []


def read_task(file: Path) -> Task:
    """Return the task of a file `task.toml`."""
    folder = file.parent
    spec = converted(tomllib.loads(file.read_text("utf-8")), ClawBenchTask)
    if not python.is_installed():  # it is needed by the setup of the workspace
        return Task(id=spec.id, left_out=python.hint())
    prompt = (folder / "instruction.md").read_text("utf-8").replace("workspace/", f"{ROOT}/").strip()
    files = texts_in(folder, "verifier")
    if _CHECKS not in files:
        raise ValueError(f"has no {_CHECKS}.")
    conftest = folder.parent.parent / "conftest.py"
    files["conftest.py"] = conftest.read_text("utf-8") if conftest.is_file() else _CONFTEST
    solution = folder / "solution" / "solve.sh"
    return Task(
        id=spec.id,
        name=spec.title,
        prompt=f"{_PREAMBLE}{prompt}",
        timeout_s=spec.timeout,
        files=_set_up(folder),
        grader=Grader(run=_CHECKS, files=files, arguments=_arguments),
        solution=solution.read_text("utf-8") if solution.is_file() else None,
        labels={"category": spec.domain, "tags": tuple(filter(None, (spec.level, *spec.tags)))},
    )


def _arguments(_reply: object, workspace: str) -> list[str]:
    return [f"--workspace={workspace}"]


def _set_up(folder: Path) -> dict[str, str]:
    """Return the files of the workspace: those of the task, and what its setup writes, in a world.

    Some scripts ignore the path of the workspace, and write into the folder of the task.
    """
    given = texts_in(folder, "workspace")
    script = "environment/setup.sh"
    task = {f"{_TASK}/{path}": text for path, text in texts_in(folder, "environment").items()}
    if f"{_TASK}/{script}" in task:
        task |= {f"{_TASK}/{path}": text for path, text in given.items()}
        done = shell.play(f"bash {_TASK}/{script} {ROOT}", task, SETUP_S)
        if done.code or done.timed_out:
            raise ValueError(f"{script} failed with status {done.code}: {done.output[-300:]}")
        prefix = f"{_TASK}/workspace/"
        given = {
            path.removeprefix(prefix): text for path, text in done.files.items() if path.startswith(prefix)
        }
        given |= {path: text for path, text in done.files.items() if not path.startswith("/")}
    return {path.removeprefix("workspace/"): text for path, text in given.items()}
