"""PinchBench's task files, graders and transcripts."""

from __future__ import annotations

from pathlib import Path

import pytest

from pytest_openclaw.parts.pinchbench import grading
from pytest_openclaw.parts.pinchbench.grading import Grade, transcript_of
from pytest_openclaw.parts.pinchbench.tasks import read_task
from pytest_openclaw.util.errors import OpenClawError, SuiteError
from pytest_openclaw.values.replies import Reply, Turn
from pytest_openclaw.values.tool_calls import Dispatched, ToolCall

FRONT = "---\nid: task_a\ngrading_type: automated\ntimeout_seconds: 90\n"
PROMPT = "---\n\n## Prompt\n\nDo it.\n\n```md\n## Not a section\n```\n\n---\n\n"
CODE = "def grade(transcript, workspace_path):\n    return {}\n"
CHECKS = f"## Automated Checks\n\n```python\n{CODE}```\n"
REST = PROMPT + CHECKS


def _read(folder: Path, text: str):
    file = folder / "skill/tasks/task_a.md"
    file.parent.mkdir(parents=True)
    file.write_text(text)
    return read_task(file, "skill/tasks/task_a.md", pass_at=1.0)


def _file(entry: str) -> str:
    return f"{FRONT}workspace_files: [{entry}]\n{REST}"


def test_a_task_is_a_prompt_in_a_world(tmp_path):
    """Its prompt ends before the rule, with OpenClaw's default tools and a world with a shell."""
    (prompt,) = _read(tmp_path, FRONT + PROMPT + CHECKS).prompts

    assert (prompt.id, prompt.timeout_s) == ("task_a", 90)
    assert prompt.prompt == "Do it.\n\n```md\n## Not a section\n```\n\n---"
    assert {"exec", "read", "write"} <= {tool.name for tool in prompt.tools}
    assert prompt.world.python
    assert "code" not in prompt.validator_spec


@pytest.mark.parametrize(
    ("text", "error"),
    [
        pytest.param("## Prompt\n", "has no front matter", id="no-front-matter"),
        pytest.param("---\nid: [\n---\n", "its front matter is not YAML", id="no-yaml"),
        pytest.param("---\nname: a\n---\n", "id is missing", id="no-id"),
        pytest.param(FRONT.replace("90", "soon") + REST, 'timeout_seconds is "soon"', id="no-number"),
        pytest.param(FRONT.replace("task_a", "a/b") + REST, 'id is "a/b"', id="id-for-no-test"),
        pytest.param(FRONT + "---\n" + CHECKS, "has no section ## Prompt", id="no-prompt"),
        pytest.param(FRONT + PROMPT, "has no section ## Automated Checks", id="no-checks"),
        pytest.param(FRONT + PROMPT + CHECKS.replace("def ", "der "), "are not Python", id="no-python"),
        pytest.param(FRONT + PROMPT + CHECKS.replace("grade(", "rate("), "define no grade(", id="no-grade"),
        pytest.param(_file("sum.py"), "workspace_files[0]", id="bare-file"),
        pytest.param(_file("{source: x, dest: y}"), 'has "x", which is not in', id="no-asset"),
        pytest.param(_file("{source: ../tasks/task_a.md, dest: y}"), "which is not in", id="elsewhere"),
        pytest.param(_file("{path: ../../etc/x, content: y}"), "not a file of the workspace", id="outside"),
    ],
)
def test_a_broken_task(tmp_path, text, error):
    """The message names the file and the error."""
    (tmp_path / "skill/assets").mkdir(parents=True)

    with pytest.raises(SuiteError) as raised:
        _read(tmp_path, text)

    assert str(raised.value).startswith("skill/tasks/task_a.md: ")
    assert error in str(raised.value)


@pytest.mark.parametrize(
    ("front", "why"),
    [
        (FRONT.replace("automated", "llm_judge"), "only an LLM judge grades it"),
        (FRONT + "sessions: [{prompt: x}]\n", "it has several sessions"),
        (FRONT + "prerequisites: ['npm:fws', 'cli:gws']\n", "it needs npm:fws, cli:gws"),
    ],
)
def test_a_task_that_is_left_out(tmp_path, front, why):
    """It has the reason and is not read further."""
    suite = _read(tmp_path, front + "---\n")

    assert (suite.prompts, suite.left_out) == ((), {"task_a": why})


def _grade(code: str) -> Grade:
    code = f"def grade(transcript, workspace_path):\n    {code}\n"
    return Grade(code=code, prompt="p", pass_at=1.0, where="t.md")


@pytest.mark.parametrize(
    ("code", "score", "passed"),
    [
        ("return {'a': 1.0, 'b': 0.5, 'c': 'words'}", 0.75, False),
        ("return {'a': True}", 1.0, True),
        ("return {}", 0.0, False),
    ],
)
def test_the_score_is_the_mean_of_numbers(code, score, passed):
    """As PinchBench counts it."""
    verdict = _grade(code).check(Reply(text="hi"))

    assert (verdict.parsed["score"], verdict.passed) == (score, passed)


@pytest.mark.parametrize(
    ("code", "error"),
    [
        ("raise KeyError('x')", "KeyError: 'x' (line 2 of its code)"),
        ("import sys; sys.exit(3)", "SystemExit: 3"),
        ("import os; os._exit(3)", "its process ended with status 3"),
        ("return 1", "it returned no dict"),
        ("return {'a': float('nan')}", "a score that is not a number"),
        ("return {'a': len(bytearray(4 << 30))}", "MemoryError"),
        ("import time; time.sleep(60)", "it took more than 1 s"),
    ],
)
def test_a_grader_that_fails(monkeypatch, code, error):
    """It is an error of the harness."""
    monkeypatch.setattr(grading, "GRADE_S", 1.0 if "sleep" in code else 60.0)

    with pytest.raises(OpenClawError) as raised:
        _grade(code).check(Reply(text="hi"))

    assert error in str(raised.value)


def test_a_transcript_is_as_openclaws_session_file():
    """Messages with texts, calls and results, and the event that later tasks read."""
    call = ToolCall(name="read", arguments='{"path": "a"}', id="c1")
    reply = Reply(
        text="two",
        tool_calls=(call,),
        turns=(Turn(text="one", calls=(call,), results=("A",)), Turn(text="two")),
        dispatched=(Dispatched(call=call, tool="read", arguments={"path": "a"}),),
    )

    *messages, event = transcript_of("do", reply)

    def text(words):
        return {"type": "text", "text": words}

    called = {"type": "toolCall", "id": "c1", "name": "read", "arguments": {"path": "a"}}
    result = {"role": "toolResult", "content": [text("A")], "toolCallId": "c1", "toolName": "read"}
    assert [one["message"] for one in messages] == [
        {"role": "user", "content": [text("do")]},
        {"role": "assistant", "content": [text("one"), called]},
        result,
        {"role": "assistant", "content": [text("two")]},
    ]
    assert event == {"type": "model.completed", "data": {"assistantTexts": ["one", "two"]}}
