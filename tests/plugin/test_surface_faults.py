"""Faults that only OpenClaw's own request shows, of a scripted model asked over HTTP."""

from __future__ import annotations

from typing import Any

import pytest

from tests.openclaw.model_server import ScriptedModel
from tests.openclaw.surface_faults import MODELS, ON_LISTED, ON_OPENCLAW, PROMPTS, SUITE, answer

pytestmark = pytest.mark.newest


@pytest.mark.parametrize("provider", ["ollama_openai", "ollama_native"])
def test_faults_are_caught_on_the_surface_alone(plain_project: Any, provider: str) -> None:
    """Each model passes every prompt on `listed`; on `openclaw` each fault ends in its own outcome."""
    plain_project.suite(SUITE)
    with ScriptedModel(answer, pause_s=0, prompt_tokens=9000) as model:
        plain_project.pytester.makeini(
            f"[pytest]\nopenclaw_endpoints =\n    lab = {provider} "
            f"{model.url if provider == 'ollama_openai' else model.root}\n"
        )

        session = plain_project.run(
            *("--openclaw-surface=listed,openclaw", "--openclaw-catalogue=substitute"),
            models=",".join(f"lab/{one}" for one in MODELS),
        )

    found = {(row["surface"], row["model"], row["prompt_id"]): row["tool_outcome"] for row in session.rows}
    assert found == {
        (surface, one, prompt): faults.get((one, prompt), "valid")
        for surface, faults in (("listed", ON_LISTED), ("openclaw", ON_OPENCLAW))
        for one in MODELS
        for prompt in PROMPTS
    }
    costs = {one["base_target"]: one["verdicts"] for one in session.summary["surface_cost"]["targets"]}
    lost = {name.removeprefix("lab/"): one["n_base"] - one["n_candidate"] for name, one in costs.items()}
    assert lost == {one: sum(model == one for model, _ in ON_OPENCLAW) for one in MODELS}
