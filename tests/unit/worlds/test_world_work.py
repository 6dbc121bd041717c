"""The work that calls may take: counted, reproducible, and limited by a timeout."""

from __future__ import annotations

import json
import time
from collections.abc import Sequence
from dataclasses import replace
from typing import Any

import jsonschema
import pytest
from hypothesis import given

from pytest_openclaw.asking.cell_records import record_of
from pytest_openclaw.core.redact import Redactor
from pytest_openclaw.judging.judge import judge
from pytest_openclaw.tools.dispatch.arguments import MAX_VALUES
from pytest_openclaw.types.documents import load_schema
from pytest_openclaw.types.prompts import Cell, Prompt
from pytest_openclaw.types.replies import CallResult, Reply, Timing, Turn
from pytest_openclaw.types.rows import to_row
from pytest_openclaw.types.targets import Target
from pytest_openclaw.types.tool_calls import ToolCall
from pytest_openclaw.types.worlds import World
from pytest_openclaw.validators.text import Noop
from pytest_openclaw.worlds.edits import MOST_MARKS
from pytest_openclaw.worlds.playing import Playing, final_state
from pytest_openclaw.worlds.work import (
    CALL_STEPS,
    EXCHANGE_STEPS,
    MOST_CALLS,
    OutOfWorkError,
    Work,
    n_read,
)
from pytest_openclaw.worlds.workspace import ROOM_CHARS
from tests.searching import examples
from tests.unit.worlds.conftest import TOOLS
from tests.unit.worlds.hostile import turns, worlds

LATE = "Command timed out after 1800 seconds.\n\nThe command was terminated, but external side effects may"
MANY = World(files={f"d{n % 50}/f{n}": "" for n in range(1900)})
FLAT = World(files={f"{'n' * 200}{n}": "" for n in range(1900)})
LINES = World(files={"b": "x\n" * 450_000, "c": "é" * 300_000, "memory/a.md": "a\n\n" * 300_000})


def patch(*lines: str) -> str:
    """A patch of these lines."""
    return "\n".join(["*** Begin Patch", *lines, "*** End Patch"])


@pytest.mark.parametrize(
    ("world", "command"),
    [
        pytest.param(FLAT, "echo " + " ".join(f"n*{n}a*" for n in range(1500)), id="patterns"),
        pytest.param(MANY, "echo " + "d1*q " * 4900, id="patterns-of-folders"),
        pytest.param(MANY, "find " + " ".join("./" * n + "." for n in range(165)), id="one-folder-in-many-spellings"),
        pytest.param(LINES, "grep '.*x.*y.*z' c c", id="a-pattern"),
        pytest.param(LINES, "sed 's/\\(x*\\)*y/z/g' b b", id="sed"),
        pytest.param(MANY, "for a in *; do find . -name \"$a\"; done", id="loops"),
        pytest.param(World(), 'a=xxxxxxxxxxxxxxxx; for i in {1..300}; do a="$a$a"; a=${a%%*q}; done', id="a-value-that-doubles"),
        pytest.param(MANY, "; ".join(f"touch y{n}; echo d1/* d2/* d3/*" for n in range(24)), id="listings-that-change"),
        pytest.param(LINES, "cat b b | sort -nr | sort -nr", id="sorting"),
        pytest.param(LINES, "grep -in x b", id="grep"),
    ],
)  # fmt: skip
def test_a_command_that_takes_too_long_times_out(calls_in: Any, world: World, command: str) -> None:
    """It ends as OpenClaw's own exec ends, within the steps of a call."""
    call = calls_in(world)

    assert call.sh(command).startswith(LATE)
    assert 0 < call.playing.steps <= CALL_STEPS
    assert call.playing.state.timed_out == (0,)


@pytest.mark.parametrize(
    ("arguments", "after"),
    [
        pytest.param({}, "Command timed out after 1800 seconds.", id="default"),
        pytest.param({"timeoutSeconds": 20}, "Command timed out after 20 seconds.", id="asked-for"),
        pytest.param({"timeoutSeconds": 2.5}, "Command timed out after 2.5 seconds.", id="a-part"),
        pytest.param({"timeoutSeconds": 0}, "Command timed out.", id="none"),
    ],
)
def test_a_timeout_names_its_seconds(calls_in: Any, arguments: dict[str, Any], after: str) -> None:
    """The seconds are those of the call, else OpenClaw's 30 minutes."""
    answer = calls_in(LINES).sh("sort -n b | sort -n | sort -n", **arguments)

    assert answer.startswith(f"{after}\n\nThe command was terminated")


@pytest.mark.parametrize(
    ("tool", "arguments"),
    [
        pytest.param("edit", {"path": "c", "edits": [{"oldText": "q", "newText": ""}]}, id="edit"),
        pytest.param("apply_patch", {"input": patch("*** Update File: b", "@@ z")}, id="apply_patch"),
        pytest.param("memory_search", {"query": "x"}, id="memory_search"),
    ],
)
def test_another_tool_times_out_too(calls_in: Any, tool: str, arguments: dict[str, Any]) -> None:
    """Its error is in the form of its other errors; nothing is changed."""
    call = calls_in(LINES)

    assert call.error(tool, **arguments) == f"{tool} timed out"
    assert call.playing.state.changed == ()


def test_what_was_done_before_a_timeout_stays(calls_in: Any) -> None:
    """As on a machine: the command is ended, the files that it wrote are kept."""
    call = calls_in(LINES)

    assert call.sh("echo hi > a.txt; sort -n b | sort -n | sort -n; rm a.txt").startswith(LATE)
    assert call.files["a.txt"] == "hi\n"
    assert call.sh("cat a.txt") == "hi", "the next call has its own steps"


def test_an_exchange_has_so_many_steps(calls_in: Any) -> None:
    """When they are used up, each further call that needs steps times out; small ones cost nearly nothing."""
    call = calls_in(LINES)
    for _ in range(100):
        call("read", path="memory/a.md", limit=1)
    late = [call.sh("grep -in x b").startswith(LATE) for _ in range(30)]

    assert late[-1]
    assert call.playing.steps <= EXCHANGE_STEPS
    assert call.sh("cat b").startswith(LATE)


def test_calls_that_are_normal_are_far_from_the_bound(call: Any) -> None:
    """A model's ordinary work takes less than a twentieth of the steps."""
    for n in range(40):
        call.sh(f"cat notes.md | grep -n egg | head -1 && ls -la src && echo {n} >> log.txt")
        call("edit", path="src/app.py", edits=[{"oldText": "'hi'", "newText": "'ho'"}])
        call("edit", path="src/app.py", edits=[{"oldText": "'ho'", "newText": "'hi'"}])
        call("memory_search", query="When is Anna's birthday?")
        call("apply_patch", input=patch("*** Update File: src/app.py", "@@ def leave():", "-    return 'bye'", "+    return 'bye'"))  # fmt: skip

    assert call.playing.state.timed_out == ()
    assert call.playing.steps < EXCHANGE_STEPS / 3


def test_steps_are_counted_before_they_are_taken() -> None:
    """A call that would exceed the limit is not counted, and leaves the remaining steps."""
    work = Work()
    work.spend(CALL_STEPS - 1)
    with pytest.raises(OutOfWorkError):
        work.spend(2)
    work.spend(1)
    with pytest.raises(OutOfWorkError):
        work.spend(1)
    work.begin_call()
    work.spend(1)

    assert work.spent == CALL_STEPS + 1


# --- many and large calls ------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("arguments", "n_made", "n"),
    [
        pytest.param("{}", 5, 5, id="all"),
        pytest.param("{}", 100_000, MOST_CALLS, id="many"),
        pytest.param(json.dumps({"a": "x" * 240_000}), 9, 4, id="large"),
        pytest.param(json.dumps({"a": [[]] * 100_000}), 9, 1, id="many-values"),
        pytest.param("x" * 10_000_000, 9, 3, id="too-large-to-be-arguments"),
    ],
)
def test_how_many_calls_of_a_turn_are_read(arguments: str, n_made: int, n: int) -> None:
    """The limit is more than any model writes, whatever a server sends."""
    assert n_read([ToolCall(name="read", arguments=arguments)] * n_made) == n


def test_a_call_that_is_not_read_is_answered_and_not_carried_out() -> None:
    """The turn keeps it, its result says that it is one too many, and a replay of the row skips it too."""
    large = [
        ToolCall(name="write", arguments=json.dumps({"path": str(n), "content": "x" * 150_000}))
        for n in range(9)
    ]
    playing = Playing(World(), TOOLS)

    results = playing.answer_turn(large)

    assert results is not None
    assert [text.startswith("Successfully") for text in results] == [True] * 6 + [False] * 3
    assert results[-1] == "Too many tool calls. This one was not executed."
    assert [*playing.state.files] == ["0", "1", "2", "3", "4", "5"]
    reply = Reply(tool_calls=tuple(large), turns=(Turn(calls=tuple(large), results=results),))
    prompt = _prompt(World())
    assert judge(prompt, reply).reply.world == playing.state


def test_arguments_of_too_many_values_are_refused(call: Any) -> None:
    """Checking a schema takes time for each value."""
    answer = call("edit", path="notes.md", edits=[{}] * MAX_VALUES)

    assert f"root: more than {MAX_VALUES} values" in answer


def test_marks_without_end_are_not_sorted(calls_in: Any) -> None:
    """A piece is found behind more marks on one letter than any language has."""
    text = "a" + "\u0301\u0316" * 20 * MOST_MARKS + "\nfi \n"

    call = calls_in(World(files={"a": text}))

    assert call("edit", path="a", edits=[{"oldText": "ﬁ\n", "newText": "x\n"}]).startswith("Successfully")
    assert call.files["a"] == text.replace("fi \n", "x\n")


# --- the row -------------------------------------------------------------------------------------


def _prompt(world: World) -> Prompt:
    return Prompt(suite="s.toml", id="P1", name="P1", prompt="?", validator=Noop(), tools=TOOLS, world=world)


def test_the_row_says_which_call_timed_out() -> None:
    """The replay finds it again, so that a stored row gives the same result when it is judged again."""
    made = [
        ToolCall(name=name, arguments=json.dumps(arguments))
        for name, arguments in (
            ("read", {"path": "x"}),
            ("exec", {"command": "sort -n b | sort -n | sort -n"}),
            ("ls", {}),
        )
    ]
    broken = (replace(made[0], arguments="{"),)
    playing = Playing(LINES, TOOLS)
    results = playing.answer_turn(made)
    assert results is not None
    reply = Reply(
        tool_calls=(*broken, *made), turns=(Turn(calls=broken), Turn(calls=tuple(made), results=results))
    )

    judgment = judge(_prompt(LINES), reply)

    cell = Cell(prompt=_prompt(LINES), target=Target(provider="p", model="m"))
    ending = CallResult(result=reply, timing=Timing(started_at_ms=0, ended_at_ms=1, e2e_ms=1))
    row = to_row(record_of("r", cell, ending, judgment, Redactor()))
    assert [call.get("timed_out") for call in row["tool_call_details"]] == [None, None, True, None]
    assert row["turns"][1]["calls"][1]["result"].startswith(LATE)
    jsonschema.validate(row, load_schema("row"))


# --- a search ------------------------------------------------------------------------------------


def _play(world: World, made: Sequence[Sequence[ToolCall]]) -> tuple[Playing, list[object], float]:
    playing = Playing(world, TOOLS)
    results: list[object] = []
    most_s = 0.0
    for turn in made:
        began = time.process_time()
        results.append(playing.answer_turn(turn))
        most_s = max(most_s, time.process_time() - began)
    return playing, results, most_s


@examples(4, many=2000)
@given(world=worlds(), made=turns())
def test_no_turn_takes_more_than_its_steps(world: World, made: tuple[tuple[ToolCall, ...], ...]) -> None:
    """Whatever is called: count and world stay within their limits, and a replay gives the same result."""
    playing, results, most_s = _play(world, made)

    assert playing.steps <= EXCHANGE_STEPS
    assert sum(map(len, playing.state.files.values())) <= sum(map(len, world.files.values())) + ROOM_CHARS
    assert most_s < 20, "seconds of the processor; far more than it takes on any machine"
    answered = [
        call for turn, given in zip(made, results, strict=True) if given for call in turn[: n_read(turn)]
    ]
    assert final_state(world, TOOLS, answered) == playing.state
