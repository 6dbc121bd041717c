"""Grades a task: `script.py` runs its grader in a world with the files that the model left.

A grader is code of a suite's author that may import or run files of the model. In a world's Python and shell
neither can reach this machine. Graders that need more are left out, or run as `machine.py` says.
"""

from __future__ import annotations

import builtins
import json
import math
import re
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cache
from importlib import resources
from symtable import symtable
from typing import Any, ClassVar, NamedTuple

from pytest_openclaw.parts.tasks import machine
from pytest_openclaw.util.errors import OpenClawError
from pytest_openclaw.util.files import JsonObject
from pytest_openclaw.util.text import MAX_TEXT_BYTES, cut, listed, valid_text
from pytest_openclaw.values.replies import Reply, Verdict
from pytest_openclaw.values.requests import in_new_conversation
from pytest_openclaw.worlds import shell
from pytest_openclaw.worlds.workspace import ROOT

GRADE_S = 60.0
SCRIPT = "script.py"
#: names of each module that are not in `builtins`
_OF_MODULES = ("__annotations__", "__builtins__", "__cached__", "__file__")
_UNDEFINED = re.compile(r"NameError: name '(\w+)' is not defined")


class Score(NamedTuple):
    """The result of a grader: a score of 0 to 1, that of each criterion, and more for `parsed_output`.

    `harms` are violations of safety; None if the grader does not look for them.
    """

    score: float
    criteria: Mapping[str, float]
    more: Mapping[str, Any] = {}
    harms: Sequence[str] | None = None


def mean_score(scores: Any, _reply: Reply, of_judge: float = 0.0) -> Score:
    """Return the mean of the values that are numbers, as PinchBench counts; 0 without any.

    `of_judge` is the share of the task's whole score that a judge would give.
    """
    criteria = numbers_in(scores["grade"])
    more = {"without_judge": of_judge} if of_judge else {}
    return Score(sum(criteria.values()) / len(criteria) if criteria else 0.0, criteria, more)


def numbers_in(values: Any) -> dict[str, float]:
    """Return the values of a grader's dict that are numbers.

    Raises:
        TypeError: it is not a dict.
        ValueError: a number is infinite, or not a number.
    """
    if not isinstance(values, dict):
        raise TypeError("it returned no dict")
    numbers = {valid_text(name): float(one) for name, one in values.items() if isinstance(one, int | float)}
    if not all(map(math.isfinite, numbers.values())):
        raise ValueError("it returned a score that is not a number")
    return numbers


@dataclass(frozen=True, kw_only=True)
class Grader:
    """The code that grades a task. Workers pickle it, so its functions must be defined in a module.

    Attributes:
        run: the file with its code, a pytest file or one with functions.
        files: the grader's own files, by their path in its folder.
        arguments: makes of the reply a list for pytest, or one for each function that the file may have.
        score: makes a score of what each of these returned, and of the reply.
    """

    run: str
    files: Mapping[str, str]
    arguments: Callable[[Reply], list[str] | dict[str, list[Any]]]
    score: Callable[[Any, Reply], Score] = mean_score


@dataclass(frozen=True, kw_only=True)
class Grade:
    """The validator of a task; `on_machine` is whether its grader runs there."""

    type: ClassVar[str] = "task"
    grader: Grader
    pass_at: float
    where: str
    on_machine: bool = False

    def check(self, reply: Reply) -> Verdict:
        """Return the score.

        A grader that fails although it can grade the files as they were before, and no reply, has failed at
        what the model wrote, which is a miss. Its score does not depend on what the grader says of its error.

        Raises:
            OpenClawError: the grader failed for another reason, which says nothing about the model.
        """
        world = reply.world
        files, start = (world.files, world.start) if world else ({}, {})
        score, failed = self._graded(files, reply)
        if failed and (_is_undefined(failed, self.grader) or self._graded(start, Reply())[1]):
            raise OpenClawError(f"{self.where}: grade failed: {failed}")
        missed = listed([name for name, value in score.criteria.items() if value < 1], "all")
        violation = f"score {score.score:.2f} of {self.pass_at:g}; missed: {missed}"
        if score.harms:
            violation += f"; violations of safety: {cut(listed(score.harms), 300)}"
        if failed:
            violation += f"; its grader failed on these files: {cut(failed, 300)}"
        passed = score.score >= self.pass_at - 1e-9 and not failed and not score.harms
        return Verdict(
            passed=passed,
            violation=None if passed else violation,
            parsed={"score": round(score.score, 6), "criteria": dict(score.criteria), **score.more},
            harm=None if score.harms is None else bool(score.harms),
        )

    def _graded(self, files: Mapping[str, str], reply: Reply) -> tuple[Score, str]:
        grader = self.grader
        arguments = grader.arguments(reply)
        task = json.dumps({"grader": grader.run, "arguments": arguments, "workspace": ROOT})
        own = {**grader.files, SCRIPT: _script(), "task.json": task, "pytest.ini": "[pytest]\n"}
        done = (machine if self.on_machine else shell).grade(own, SCRIPT, files, GRADE_S)
        failed, lines = "", [*_lines(done.result)]
        if error := next((line for line in lines if "error" in line), None):
            failed = valid_text(str(error["error"])) or "error"
        elif done.timed_out:
            failed = f"it took more than {GRADE_S:g} s, or too much memory"
        elif not any("scores" in line or "ended" in line for line in lines):
            failed = f"its process ended with status {done.code} {done.output.strip()[-500:]}".strip()
        try:
            scores: Any = next((line["scores"] for line in lines if "scores" in line), {})
            score = _share(lines) if isinstance(arguments, list) else grader.score(scores, reply)
            if len(json.dumps(score)) > MAX_TEXT_BYTES:
                raise ValueError("its scores are too long")
        except (TypeError, ValueError, ArithmeticError, LookupError, AttributeError) as error:
            return Score(0.0, {}), failed or str(error) or repr(error)
        return score._replace(score=min(1.0, max(0.0, score.score))), failed


def _is_undefined(error: str, grader: Grader) -> bool:
    """Whether a grader failed at a name that its code uses and nowhere defines, which no model causes."""
    code = grader.files[grader.run]
    if (found := _UNDEFINED.match(error)) is None or found[1] in {*dir(builtins), *_OF_MODULES}:
        return False
    if re.search(r"import\s*\*|\bglobals\b", code):  # which may define any name
        return False
    tables = [symtable(code, grader.run, "exec")]
    for table in tables:  # to which those inside are added
        tables += table.get_children()
    uses = [one for table in tables for one in table.get_symbols() if one.get_name() == found[1]]
    return bool(uses) and not any(
        one.is_assigned() or one.is_imported() or one.is_parameter() for one in uses
    )


def _lines(result: str) -> Iterator[JsonObject]:
    for line in result.splitlines():
        try:
            value = json.loads(line)
        except (ValueError, RecursionError):
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
    """Yield the lines of OpenClaw's session files: messages of the user, the model and its tools."""
    yield _message("user", prompt)
    dispatched = iter(reply.dispatched)
    for n, turn in enumerate(reply.steps):
        if turn.user:
            yield _message("user", in_new_conversation(turn.user) or turn.user)
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


def trace_of(prompt: str, reply: Reply) -> JsonObject:
    """Return an exchange as OpenClawProBench's checks read it, with the names of paths that they look for."""
    events: list[JsonObject] = []
    for line in transcript_of(prompt, reply):
        message = line.get("message", {"role": "", "content": []})
        own = {"tool": message.get("toolName"), "call_id": message.get("toolCallId"), "status": 200}
        for item in message["content"]:
            if item["type"] == "toolCall":
                given = item["arguments"]
                paths = dict.fromkeys(("path", "file_path"), given["file"]) if given.get("file") else {}
                call = {"tool": item["name"], "args": paths | given, "call_id": item["id"]}
                events.append({"type": "tool_call", **call})
            elif message["role"] == "toolResult":
                events.append({"type": "tool_result", "result": item["text"], **own})
            else:
                events.append({"type": f"{message['role']}_message", "text": item["text"]})
    tokens = {"input_tokens": reply.input_tokens or 0, "output_tokens": reply.output_tokens or 0}
    n_calls = sum(event["type"] == "tool_call" for event in events)
    metrics = {"assistant_turns": len(reply.steps), "tool_calls": n_calls, **tokens}
    events = [{**event, "seq": n} for n, event in enumerate(events)]
    return {"events": events, "metrics": metrics, "audit_state": {}}
