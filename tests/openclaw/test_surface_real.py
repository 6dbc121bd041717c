"""Faults that only OpenClaw's own request shows, of a scripted model behind the real agent."""

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
from tests.openclaw.surface_faults import ON_LISTED, ON_OPENCLAW, SUITE, answer

pytestmark = [pytest.mark.openclaw_cli, pytest.mark.nightly]


@pytest.mark.parametrize(
    ("model", "prompts"),
    [
        pytest.param("able", "RWMI", id="able"),
        pytest.param("direct", "WM", id="calls-what-is-behind-the-bridge"),
        pytest.param("overwhelmed", "R", id="gives-up-on-a-long-system-prompt"),
        pytest.param("obedient", "I", id="obeys-a-file-once-it-has-exec"),
    ],
)
def test_faults_are_caught_through_the_real_agent(
    real_openclaw: RealOpenClaw, tmp_path: Path, model: str, prompts: str
) -> None:
    """On `listed` each cell passes; on `openclaw` a fault has the outcome that it has in our own loop.

    `able` finds tools through the bridge, with a world and without one, and is judged by the tools that it reached.
    """
    (tmp_path / "prompts_a.toml").write_text(SUITE, encoding="utf-8")
    (tmp_path / "pytest.ini").write_text("[pytest]\n", encoding="utf-8")
    with ScriptedModel(answer, pause_s=0, prompt_tokens=9000) as server:
        done = subprocess.run(
            [
                *(sys.executable, "-m", "pytest", "prompts_a.toml", "-q", *NO_OTHER_PLUGINS.split()),
                f"--openclaw-models=openclaw_agent/local/{model}",
                f"--openclaw-prompts={','.join(prompts)}",
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
    rows = [json.loads(line) for line in lines]

    found = {(row["surface"], row["prompt_id"]): row["tool_outcome"] for row in rows}
    assert found == {
        (surface, prompt): faults.get((model, prompt), "valid")
        for surface, faults in (("listed", ON_LISTED), ("openclaw", ON_OPENCLAW))
        for prompt in prompts
    }, done.stdout
    reached = {row["prompt_id"]: [call["name"] for call in row["tool_call_details"]] for row in rows}
    if model == "able":
        assert [reached[prompt][-1] for prompt in "WM"] == ["tool_call", "tool_call"]
