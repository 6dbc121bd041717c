"""A prompt's world: its keys, and the errors for an invalid one."""

import json
from typing import Any

from pytest_openclaw.suites.cells import definition
from pytest_openclaw.suites.load import read_prompt
from pytest_openclaw.values.prompts import KEYS, Prompt
from pytest_openclaw.values.worlds import Answer, Command, World

FULL: dict[str, Any] = {
    "files": {"a.txt": "one", "/etc/hosts": "127.0.0.1"},
    "commands": [
        {"pattern": "free.*", "output": "8G"},
        {"pattern": "make", "exit_code": 2, "writes": {"out": "x"}, "removes": ["tmp"]},
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
    """Every key is read."""
    assert KEYS["world"].read("world", FULL) == World(
        files={"a.txt": "one", "/etc/hosts": "127.0.0.1"},
        commands=(
            Command(pattern="free.*", output="8G"),
            Command(pattern="make", exit_code=2, writes={"out": "x"}, removes=("tmp",)),
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
    assert KEYS["world"].read("world", {}) == World()


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
    assert again.world == prompt.world
    assert (again.tools, again.probe) == (prompt.tools, prompt.probe)
