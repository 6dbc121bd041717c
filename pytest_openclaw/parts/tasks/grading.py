"""Grades a task: `script.py` runs its grader in a world with the files that the model left.

A grader is code of a suite's author that may import or run files of the model. In a world's Python and shell
neither can reach this machine. Graders that need more are left out, or run as `machine.py` says.
"""

from __future__ import annotations

import json
import math
from dataclasses import dataclass, field
from functools import cache
from importlib import resources
from typing import TYPE_CHECKING, Any, ClassVar, NamedTuple

from pytest_openclaw.parts.tasks import machine
from pytest_openclaw.util.errors import OpenClawError
from pytest_openclaw.util.text import cut, listed, valid_text
from pytest_openclaw.values.replies import Reply, Verdict
from pytest_openclaw.worlds import shell
from pytest_openclaw.worlds.workspace import ROOT

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator, Mapping

    from pytest_openclaw.util.files import JsonObject

GRADE_S = 60.0
SCRIPT = "script.py"
#: errors of a grader's own code that no file of a model causes
_OWN_ERRORS = ("NameError", "UnboundLocalError")


class Score(NamedTuple):
    """The result of a grader: a score of 0 to 1, and that of each criterion."""

    score: float
    criteria: Mapping[str, float]


class _Failed(NamedTuple):
    why: str
    is_own: bool = False


def mean_score(scores: Any) -> Score:
    """Return the mean of the values that are numbers, as PinchBench counts; 0 without any."""
    if not isinstance(scores, dict):
        raise TypeError("it returned no dict")
    criteria = {valid_text(name): float(one) for name, one in scores.items() if isinstance(one, int | float)}
    if not all(map(math.isfinite, criteria.values())):
        raise ValueError("it returned a score that is not a number")
    return Score(sum(criteria.values()) / len(criteria) if criteria else 0.0, criteria)


@dataclass(frozen=True, kw_only=True)
class Grader:
    """The code that grades a task.

    Attributes:
        run: what `script.py` is to run.
        arguments: makes its arguments of the prompt, the reply and the path of the workspace.
        files: the grader's own files, by their path in its folder.
        score: makes a score of what a function returned.
    """

    run: JsonObject
    arguments: Callable[[str, Reply, str], list[Any]]
    files: Mapping[str, str] = field(default_factory=dict)
    score: Callable[[Any], Score] = mean_score


@dataclass(frozen=True, kw_only=True)
class Grade:
    """The validator of a task; `on_machine` is whether its grader runs there."""

    type: ClassVar[str] = "task"
    grader: Grader
    prompt: str
    pass_at: float
    where: str
    on_machine: bool = False

    def check(self, reply: Reply) -> Verdict:
        """Return the score.

        A grader that fails although it can grade the files as they were before has failed at what the model
        wrote, which is a miss.

        Raises:
            OpenClawError: the grader failed for another reason, which says nothing about the model.
        """
        world = reply.world
        files, start = (world.files, world.start) if world else ({}, {})
        score, failed = self._graded(files, reply)
        if failed and (failed.is_own or files == start or self._graded(start, reply)[1]):
            raise OpenClawError(f"{self.where}: grade failed: {failed.why}")
        missed = listed([name for name, value in score.criteria.items() if value < 1], "all")
        violation = f"score {score.score:.2f} of {self.pass_at:g}; missed: {missed}"
        if failed:
            violation += f"; its grader failed on these files: {cut(failed.why, 300)}"
        passed = score.score >= self.pass_at - 1e-9 and not failed
        return Verdict(
            passed=passed,
            violation=None if passed else violation,
            parsed={"score": round(score.score, 6), "criteria": dict(score.criteria)},
        )

    def _graded(self, files: Mapping[str, str], reply: Reply) -> tuple[Score, _Failed | None]:
        grader = self.grader
        arguments = grader.arguments(self.prompt, reply, ROOT)
        task = json.dumps({**grader.run, "arguments": arguments, "workspace": ROOT})
        own = {**grader.files, SCRIPT: _script(), "task.json": task, "pytest.ini": "[pytest]\n"}
        done = (machine if self.on_machine else shell).grade(own, SCRIPT, files, GRADE_S)
        failed, lines = None, [*_lines(done.result)]
        if error := next((line for line in lines if "error" in line), None):
            is_own = bool(error.get("is_own")) and error.get("kind") in _OWN_ERRORS
            failed = _Failed(valid_text(str(error["error"])), is_own)
        elif done.timed_out:
            failed = _Failed(f"it took more than {GRADE_S:g} s, or too much memory")
        elif not any("scores" in line or "ended" in line for line in lines):
            failed = _Failed(
                f"its process ended with status {done.code} {done.output.strip()[-500:]}".strip()
            )
        try:
            if "pytest" in grader.run:
                return _share(lines), failed
            return grader.score(next((line["scores"] for line in lines if "scores" in line), None)), failed
        except (TypeError, ValueError, KeyError, AttributeError) as error:
            return Score(0.0, {}), failed or _Failed(str(error))


def _lines(result: str) -> Iterator[JsonObject]:
    for line in result.splitlines():
        try:
            value = json.loads(line)
        except ValueError:
            continue
        if isinstance(value, dict):
            yield value


def _share(lines: Iterable[JsonObject]) -> Score:
    """Return the share of checks that passed; one without a result has failed, skipped ones do not count."""
    checks: dict[str, bool | None] = {}
    for line in lines:
        if "checks" in line:
            checks |= dict.fromkeys(map(str, line["checks"]), False)
        elif line.get("check") in checks:
            # A check that passed may fail when its fixtures end.
            checks[line["check"]] = line["passed"]
    criteria = {valid_text(name): float(passed) for name, passed in checks.items() if passed is not None}
    if not checks:
        raise ValueError("it has no checks")
    return Score(sum(criteria.values()) / len(criteria) if criteria else 0.0, criteria)


@cache
def _script() -> str:
    return resources.files(__package__).joinpath(SCRIPT).read_text("utf-8")


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
