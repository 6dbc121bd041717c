"""Plays a task's reference solution in place of a model, which tests the task, its world and its grader."""

from __future__ import annotations

import json
import sysconfig
from importlib import metadata
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from pytest_openclaw.parts.tasks.task import SOLUTION
from pytest_openclaw.values.protocols import Provider
from pytest_openclaw.values.replies import Reply
from pytest_openclaw.values.tool_calls import ToolCall
from pytest_openclaw.worlds.workspace import ROOT

if TYPE_CHECKING:
    from pytest_openclaw.values.requests import Request

_FOLDERS = {"claw-bench": "share/claw-bench/tasks"}


class Oracle(Provider):
    """Runs the solution that is in the world, then ends its turn."""

    name = "oracle"
    takes_tools = True

    async def ask(self, request: Request) -> Reply:
        """Return the call that runs the solution."""
        if request.history:
            return Reply(text="Done.")
        command = {"command": f"bash {SOLUTION} {ROOT}"}
        return Reply(tool_calls=(ToolCall(name="exec", arguments=json.dumps(command)),))


def pytest_openclaw_providers() -> list[type[Provider]]:
    """Register what plays the solutions."""
    return [Oracle]


def installed_tasks(name: str) -> str:
    """Return the folder of the tasks that a package has installed.

    Raises:
        pytest.UsageError: there is none.
    """
    below = _FOLDERS.get(name)
    if below is None:
        raise pytest.UsageError(
            f"--openclaw-tasks={name}: give {', '.join(_FOLDERS)}, or name a folder of tasks."
        )
    folder = Path(sysconfig.get_path("data"), below)
    try:
        files = metadata.files(name) or []
    except metadata.PackageNotFoundError:
        files = []
    marks = (str(file.locate()).partition(f"{below}/") for file in files)
    found = next((Path(before, below) for before, sep, _ in marks if sep), folder)
    if not found.is_dir():
        raise pytest.UsageError(f"--openclaw-tasks={name}: not installed. Run: pip install --no-deps {name}")
    return str(found.resolve())
