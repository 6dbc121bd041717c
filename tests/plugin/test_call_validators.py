"""A plugin's validator of native calls, which counts as the built-in ones do."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

pytestmark = pytest.mark.newest

EXAMPLE = Path(__file__).parents[1] / "examples" / "call_validator.py"
# Makes the call "NAME PATH" that its prompt asks for, or says hi.
PROVIDER = """
import json
from pytest_openclaw import Provider, Reply, ToolCall


class Caller(Provider):
    name = "caller"
    takes_tools = True

    async def ask(self, request):
        name, _, path = request.prompt.partition(" ")
        if not path:
            return Reply(text="hi")
        return Reply(tool_calls=(ToolCall(name=name, arguments=json.dumps({"path": path})),))


def pytest_openclaw_providers():
    return [Caller]


"""
READS = {"type": "reads_only", "folder": "notes/"}


def suite_of(prompts: dict[str, tuple[str, Any]]) -> list[dict[str, Any]]:
    """Prompts that offer OpenClaw's tools."""
    return [
        {"id": key, "prompt": text, "validator": rule, "tools": "direct"}
        for key, (text, rule) in prompts.items()
    ]


def run(project: Any, prompts: list[dict[str, Any]]) -> Any:
    """A session with the plugin's validator."""
    import json

    project.pytester.makeconftest(PROVIDER + EXAMPLE.read_text("utf-8"))
    folder = project.folder / "benchmarks"
    folder.mkdir(exist_ok=True)
    (folder / "prompts_a.json").write_text(json.dumps(prompts), "utf-8")
    return project.run(models="caller/m")


@pytest.mark.parametrize(
    ("prompt", "validator", "passed", "outcome", "tested"),
    [
        pytest.param("read notes/a.md", READS, True, "valid", ["read"], id="right"),
        pytest.param("read secret.md", READS, False, "unfinished", ["read"], id="wrong-path"),
        pytest.param("write notes/a.md", READS, False, "bad_arguments", ["read"], id="refused-call"),
        pytest.param("hi", READS, False, "no_call", ["read"], id="no-call"),
        pytest.param(
            "read notes/a.md",
            {"type": "all_of", "validators": [READS, {"type": "max_words", "value": 9}]},
            True,
            "valid",
            ["read"],
            id="all-of",
        ),
        pytest.param(
            "read notes/a.md",
            {"type": "any_of", "validators": [READS, {"type": "tool_call", "calls": [{"name": "exec"}]}]},
            True,
            "valid",
            ["read"],
            id="any-of",
        ),
    ],
)
def test_outcomes(
    plain_project: Any, prompt: str, validator: Any, passed: bool, outcome: str, tested: list[str]
) -> None:
    """A cell has the outcome of its calls, and is evidence about the tools that are demanded."""
    row = run(plain_project, suite_of({"C1": (prompt, validator)})).row("C1")

    assert (row["objective_pass"], row["tool_outcome"], row["tools_tested"]) == (passed, outcome, tested)
    assert (row["tool_demand"], row["tool_use_success"]) == ("call", passed)
