"""A prompt's world: its keys, and the errors for an invalid one."""

from __future__ import annotations

import json
from dataclasses import asdict
from typing import Any

import pytest

from pytest_openclaw.suites import definition
from pytest_openclaw.suites.prompt import read_prompt
from pytest_openclaw.suites.world_parsing import read_world
from pytest_openclaw.values.prompts import Prompt
from pytest_openclaw.values.worlds import Answer, Command, World

FULL: dict[str, Any] = {
    "files": {"a.txt": "one", "/etc/hosts": "127.0.0.1"},
    "commands": [
        {"pattern": "free.*", "output": "8G"},
        {"pattern": "make", "exit_code": 2, "writes": {"out": "x", "old": None}, "removes": ["tmp"]},
    ],
    "memory": {"memory/1.md": "note"},
    "pages": {"https://example.org": "page"},
    "answers": [
        {"tool": "weather", "result": "rain", "matching": {"required": ["city"]}},
        {"tool": "read", "fails": "denied", "times": 1},
        {"tool": "read", "error": "disk busy", "after": 2, "times": 3},
        {"tool": "exec", "cut": 80},
        {"tool": "exec", "result": "x" * 99, "cut": 80},
    ],
    "env": {"API_KEY": "k-4471"},
    "steps": 3,
}


def test_a_world_is_read() -> None:
    """Every key, with `removes` and null for a file that goes."""
    assert read_world(FULL) == World(
        files={"a.txt": "one", "/etc/hosts": "127.0.0.1"},
        commands=(
            Command(pattern="free.*", output="8G"),
            Command(pattern="make", exit_code=2, writes={"out": "x", "old": None, "tmp": None}),
        ),
        memory={"memory/1.md": "note"},
        pages={"https://example.org": "page"},
        answers=(
            Answer(tool="weather", result="rain", matching={"required": ["city"]}),
            Answer(tool="read", fails="denied", times=1),
            Answer(tool="read", error="disk busy", after=2, times=3),
            Answer(tool="exec", cut=80),
            Answer(tool="exec", result="x" * 99, cut=80),
        ),
        env={"API_KEY": "k-4471"},
        steps=3,
    )
    assert read_world({}) == World()


@pytest.mark.parametrize(
    ("world", "why"),
    [
        pytest.param([], "is a list, not a table.", id="list"),
        pytest.param({"files": {"a": 1}}, "files is not a table of texts.", id="file-number"),
        pytest.param({"files": {"": "x"}}, 'files has the path "", which is a folder.', id="no-path"),
        pytest.param({"files": {"src/": "x"}}, 'files has the path "src/", which is a folder.', id="folder"),
        pytest.param({"memory": {"a\0": "x"}}, "memory has the path", id="null-byte"),
        pytest.param({"commands": [{"pattern": "("}]}, "commands is no regular expression", id="pattern"),
        pytest.param({"commands": [{"pattern": "a", "exit_code": 300}]}, "commands has exit_code 300.", id="code"),
        pytest.param({"commands": [{"pattern": "a", "writes": ["x"]}]}, "commands has writes that is not a table.", id="writes"),
        pytest.param({"commands": [{"pattern": "a", "writes": {"a" * 2000: "x"}}]}, "ENAMETOOLONG", id="long-path"),
        pytest.param({"commands": [{"pattern": "a", "removes": "x"}]}, "commands has removes that is not a list", id="removes"),
        pytest.param({"answers": [{"tool": "t"}]}, "answers has no result. Write one of result, error, fails, cut for each answer, or result with cut.", id="no-result"),
        pytest.param({"answers": [{"result": "r"}]}, "answers has no tool, or one that is not a text.", id="no-tool"),
        pytest.param({"answers": [{"tool": "t", "result": "r", "error": "e"}]}, "answers has result and error.", id="result-and-error"),
        pytest.param({"answers": [{"tool": "t", "fails": "often"}]}, 'answers has fails "often". Write one of denied, gone, rate_limit, timeout.', id="fails"),
        pytest.param({"answers": [{"tool": "t", "fails": ["denied"]}]}, "answers has fails ", id="fails-list"),
        pytest.param({"answers": [{"tool": "t", "error": 3}]}, "answers has no error, or one that is not a text.", id="error-number"),
        pytest.param({"answers": [{"tool": "t", "result": "r", "times": 0}]}, "answers has times 0. Write a whole number from 1.", id="times"),
        pytest.param({"answers": [{"tool": "t", "result": "r", "after": -1}]}, "answers has after -1. Write a whole number from 0.", id="after"),
        pytest.param({"answers": [{"tool": "t", "result": "r", "after": True}]}, "answers has after true. Write a whole number from 0.", id="after-true"),
        pytest.param({"answers": [{"tool": "t", "cut": 2.5}]}, "answers has cut 2.5. Write a whole number from 1.", id="cut"),
        pytest.param({"answers": [{"tool": "t", "result": "r", "time": 1}]}, 'answers has "time". Its keys are tool, result, error,', id="unknown-key"),
        pytest.param({"answers": [{"tool": "t", "result": "", "matching": {"type": 3}}]}, "answers has matching that is no JSON Schema", id="schema"),
        pytest.param({"env": {"A": 1}}, "env is not a table of texts.", id="env-number"),
        pytest.param({"env": {"A B": "x"}}, 'env has "A B", which cannot name a variable.', id="env-name"),
        pytest.param({"env": {"A": "\0"}}, 'env has a null byte in "A".', id="env-null"),
        pytest.param({"steps": 0}, "steps is 0. Write a whole number from 1 to 50.", id="steps"),
    ],
)  # fmt: skip
def test_a_wrong_world_is_refused(world: Any, why: str) -> None:
    """The message names the key and gives a hint."""
    with pytest.raises(ValueError, match=r"Write|Fix|Its keys") as caught:
        read_world(world)

    assert why in str(caught.value)


def test_a_world_in_config_json_is_a_world_again(registry: Any) -> None:
    """A prompt's definition in a run can be read without its suite."""
    raw: dict[str, Any] = {
        "prompt": "Go.",
        "tools": ["read"],
        "world": FULL,
        "probe": "injection",
        "validator": {"type": "says", "word": "x"},
    }
    prompt, _ = read_prompt(raw, "P1", suite="s.toml", registry=registry)
    assert isinstance(prompt, Prompt)

    kept = {key: value for key, value in definition(prompt).items() if key not in ("suite", "extra")}
    again, complaints = read_prompt(json.loads(json.dumps(kept)), "P1", suite="s.toml", registry=registry)

    assert complaints == []
    assert again is not None
    assert again.world is not None
    assert asdict(again.world) == asdict(prompt.world or World())
    assert (again.tools, again.probe) == (prompt.tools, prompt.probe)


def test_a_world_without_variables_is_defined_as_before(registry: Any) -> None:
    """A run of a version without variables can be judged again."""
    raw = {"prompt": "Go.", "tools": ["read"], "world": {"files": {"a": "A"}}}
    prompt, _ = read_prompt(raw, "P1", suite="s.toml", registry=registry)
    assert isinstance(prompt, Prompt)

    assert "env" not in definition(prompt)["world"]
