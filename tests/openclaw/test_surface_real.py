"""Calls over the bridge, in whole sessions with a scripted model behind the real agent."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

from tests.conftest import NO_OTHER_PLUGINS
from tests.openclaw.model_server import ScriptedModel
from tests.openclaw.real import RealOpenClaw
from tests.openclaw.surface_faults import answer

pytestmark = [pytest.mark.openclaw_cli, pytest.mark.nightly]

SUITE = """
[[prompts]]
id = "R"
prompt = "Read notes.md."
tools = ["read"]
validator = { type = "tool_call", calls = [{ name = "read", arguments = { path = "notes.md" } }] }

[[prompts]]
id = "W"
prompt = "Search the web for tide tables."
tools = ["web_search"]
validator = { type = "tool_call", calls = [{ name = "web_search" }] }

[[prompts]]
id = "M"
prompt = "Which tea did I choose?"
tools = ["memory_search"]
validator = { type = "world", calls = [{ name = "memory_search" }], answer = { type = "contains", value = "oolong" } }
[prompts.world]
memory = { "MEMORY.md" = "The tea that I chose is oolong.\\n" }
"""


@pytest.mark.parametrize(("model", "behind_the_bridge"), [("able", "valid"), ("direct", "unknown_tool")])
def test_faults_are_caught_through_the_real_agent(
    real_openclaw: RealOpenClaw, tmp_path: Path, model: str, behind_the_bridge: str
) -> None:
    """On `listed` each cell passes; on `openclaw` only a model that finds tools through the bridge.

    It does so with a world and without one, and is judged by the tools that it reached.
    """
    (tmp_path / "prompts_a.toml").write_text(SUITE, encoding="utf-8")
    (tmp_path / "pytest.ini").write_text("[pytest]\n", encoding="utf-8")
    with ScriptedModel(answer, pause_s=0, prompt_tokens=9000) as server:
        done = subprocess.run(
            [
                *(sys.executable, "-m", "pytest", "prompts_a.toml", "-q", *NO_OTHER_PLUGINS.split()),
                f"--openclaw-models=openclaw_agent/local/{model}",
                # The agent sends its own surface: nothing needs to be captured.
                *("--openclaw-surface=listed,openclaw", "--openclaw-catalogue=substitute"),
                "--openclaw-run-id=r",
            ],
            cwd=tmp_path,
            env=real_openclaw.environ
            | {"OPENCLAW_AGENT_COMMAND": real_openclaw.command, "OPENCLAW_AGENT_BASE_URL": server.url}
            | {"HOME": str(tmp_path), "PYTHONPATH": os.pathsep.join(sys.path)},
            capture_output=True,
            text=True,
            timeout=1200,
            check=False,
        )
    assert done.returncode in (0, 1), done.stdout + done.stderr
    lines = (tmp_path / "runs/r/results.jsonl").read_text("utf-8").splitlines()
    rows = {(row["surface"], row["prompt_id"]): row for row in map(json.loads, lines)}

    assert {key: row["tool_outcome"] for key, row in rows.items()} == {
        **{(surface, prompt): "valid" for surface in ("listed", "openclaw") for prompt in "RWM"},
        **{("openclaw", prompt): behind_the_bridge for prompt in "WM"},
    }, done.stdout
    if model == "able":
        for prompt in "WM":
            calls = rows["openclaw", prompt]["tool_call_details"]
            assert [call["name"] for call in calls][-1] == "tool_call"
