"""Grades a task: its `grade` runs in a child process, on the transcript and the files of the world."""

from __future__ import annotations

import json
import math
import os
import signal
import subprocess
import sys
import tempfile
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any, ClassVar

from pytest_openclaw.util.errors import OpenClawError
from pytest_openclaw.util.text import file_bytes, listed, valid_text
from pytest_openclaw.values.replies import Verdict
from pytest_openclaw.worlds.workspace import is_inside

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

    from pytest_openclaw.util.files import JsonObject
    from pytest_openclaw.values.replies import Reply

GRADE_S = 60.0
MOST_BYTES = 2 << 30
"""Limits of a `grade`: seconds, and bytes of memory where the system can limit them."""
_CHILD = Path(__file__).with_name("child.py")


@dataclass(frozen=True, kw_only=True)
class Grade:
    """The automated checks of a task: code that defines `grade(transcript, workspace_path)`."""

    type: ClassVar[str] = "pinchbench"
    code: str
    prompt: str
    pass_at: float
    where: str

    def check(self, reply: Reply) -> Verdict:
        """Return the score, which is the mean of the criteria, and 0 without any.

        Raises:
            OpenClawError: `grade` failed, which says nothing about the model.
        """
        criteria = self._graded(
            [*transcript_of(self.prompt, reply)], reply.world.files if reply.world else {}
        )
        score = sum(criteria.values()) / len(criteria) if criteria else 0.0
        missed = [name for name, value in criteria.items() if value < 1]
        violation = f"score {score:.2f} of {self.pass_at:g}; missed: {listed(missed, 'all')}"
        passed = score >= self.pass_at - 1e-9
        parsed = {"score": round(score, 6), "criteria": criteria}
        return Verdict(passed=passed, violation=None if passed else violation, parsed=parsed)

    def _graded(self, transcript: list[JsonObject], files: Mapping[str, str]) -> dict[str, float]:
        with tempfile.TemporaryDirectory(prefix="openclaw-", ignore_cleanup_errors=True) as scratch:
            workspace = Path(scratch) / "workspace"
            _lay_out(files, workspace)
            task = {"code": self.code, "name": self.where, "most_bytes": MOST_BYTES}
            done = _run({**task, "transcript": transcript, "workspace": str(workspace)}, workspace)
        scores = done.get("scores")
        if not isinstance(scores, dict):
            raise OpenClawError(f"{self.where}: grade failed: {done.get('error', 'it returned no dict')}")
        # PinchBench ignores other values, too.
        criteria = {name: float(one) for name, one in scores.items() if isinstance(one, int | float)}
        if not all(map(math.isfinite, criteria.values())):
            raise OpenClawError(f"{self.where}: grade returned a score that is not a number")
        return {valid_text(name): value for name, value in criteria.items()}


def transcript_of(prompt: str, reply: Reply) -> Iterator[JsonObject]:
    """Yield the lines of OpenClaw's session file: messages of the user, the model and its tools."""
    yield _message("user", prompt)
    dispatched = iter(reply.dispatched)
    for n, turn in enumerate(reply.steps):
        ids = [call.id or f"call_{n}_{k}" for k, call in enumerate(turn.calls)]
        calls = [
            {"type": "toolCall", "id": call_id, "name": call.name, "arguments": dict(made.arguments or {})}
            for call_id, call, made in zip(ids, turn.calls, dispatched, strict=False)
        ]
        yield _message("assistant", turn.text, *calls)
        for call_id, call, result in zip(ids, turn.calls, turn.results, strict=False):
            yield _message("toolResult", result, toolCallId=call_id, toolName=call.name)
    # Later tasks read this event of OpenClaw's trajectory.
    texts = [turn.text for turn in reply.steps if turn.text]
    yield {"type": "model.completed", "data": {"assistantTexts": texts}}


def _message(role: str, text: str, *calls: JsonObject, **more: Any) -> JsonObject:
    content = [{"type": "text", "text": text}] if text else []
    return {"type": "message", "message": {"role": role, "content": [*content, *calls], **more}}


def _lay_out(files: Mapping[str, str], workspace: Path) -> None:
    """Write the files of a world; a name that this machine's disk cannot have is left out."""
    workspace.mkdir()
    for path, text in files.items():
        if is_inside(path):
            with suppress(OSError, ValueError):
                file = workspace / path
                file.parent.mkdir(parents=True, exist_ok=True)
                file.write_bytes(file_bytes(text))


def _run(task: JsonObject, folder: Path) -> dict[str, Any]:
    """Run a `grade` in a child with an empty environment, and return its scores or its error."""
    child = subprocess.Popen(  # noqa: S603
        [sys.executable, "-I", "-B", str(_CHILD)],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        cwd=folder,
        env={name: value for name, value in os.environ.items() if name == "SYSTEMROOT"},  # on Windows
        start_new_session=True,
    )
    try:
        output, errors = child.communicate(json.dumps(task).encode(), timeout=GRADE_S)
        done: dict[str, Any] = json.loads(output)
    except subprocess.TimeoutExpired:
        return {"error": f"it took more than {GRADE_S:g} s"}
    except ValueError:
        said = errors.decode(errors="replace").strip()[-1000:]
        return {"error": f"its process ended with status {child.returncode} {said}".strip()}
    else:
        return done
    finally:
        with child, suppress(OSError):  # end what it has started, wait, and close the pipes
            os.killpg(child.pid, signal.SIGKILL) if hasattr(os, "killpg") else child.kill()
