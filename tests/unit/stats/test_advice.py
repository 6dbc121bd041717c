"""Each way in which tool use fails has its advice."""

from __future__ import annotations

import pytest

from pytest_openclaw.stats.diagnosis import advice_on, parser_remedy
from pytest_openclaw.stats.tool_use import GOOD_OUTCOMES, OUTCOMES


def test_every_bad_outcome_has_its_advice() -> None:
    """Every failure has a hint, and a success needs none."""
    assert {outcome for outcome in OUTCOMES if advice_on(outcome, "native")} == set(OUTCOMES) - GOOD_OUTCOMES


@pytest.mark.parametrize(
    ("provider", "server", "remedy"),
    [
        pytest.param("ollama_openai", "ollama", "use ollama_native", id="ollama-by-v1"),
        pytest.param("ollama_native", None, "take a model that `ollama show`", id="ollama"),
        pytest.param("lab", "llama.cpp", "start llama-server with --jinja", id="llama-server"),
        pytest.param("llama_cpp", "llama.cpp", "serve it by llama-server", id="embedded"),
        pytest.param("lab", "vllm", "start vLLM", id="vllm"),
        pytest.param("lab", "sglang", "start SGLang", id="sglang"),
        pytest.param("gemini", None, "take the model from another provider", id="cloud"),
        pytest.param("lab", None, "configure the chat template", id="unknown"),
    ],
)
def test_what_makes_a_server_read_calls(provider: str, server: str | None, remedy: str) -> None:
    """Each server has a setting of its own."""
    assert parser_remedy(provider, server).startswith(remedy)
