"""Each way in which tool use fails has its advice."""

from __future__ import annotations

import pytest

from pytest_openclaw.stats.diagnosis import ADVICE, PARSER_REMEDIES, TEXT_ADVICE, advice_on, parser_remedy
from pytest_openclaw.stats.tool_use import GOOD_OUTCOMES, OUTCOMES


def test_every_bad_outcome_has_its_advice() -> None:
    """Every failure has a hint, and a success needs none."""
    assert set(ADVICE) == set(OUTCOMES) - GOOD_OUTCOMES


def test_text_has_advice_of_its_own() -> None:
    """If nothing was offered, neither template nor API can be the cause."""
    assert set(TEXT_ADVICE) < set(ADVICE)
    assert advice_on("no_call", "text") == TEXT_ADVICE["no_call"]
    assert advice_on("no_call", "native") == ADVICE["no_call"]
    assert advice_on("valid", "text") is None


@pytest.mark.parametrize(
    ("provider", "server", "path", "remedy"),
    [
        pytest.param("ollama_openai", "ollama", None, "ollama /v1", id="ollama-by-v1"),
        pytest.param("lab", "ollama", "/api/chat", "ollama", id="a-second-ollama"),
        pytest.param("ollama_native", None, None, "ollama", id="ollama"),
        pytest.param("lab", "llama.cpp", None, "llama.cpp", id="llama-server"),
        pytest.param("llama_cpp", "llama.cpp", None, "llama_cpp", id="embedded"),
        pytest.param("lab", "vllm", None, "vllm", id="vllm"),
        pytest.param("lab", "sglang", None, "sglang", id="sglang"),
        pytest.param("gemini", None, None, "public", id="cloud"),
        pytest.param("lab", None, None, "", id="unknown"),
    ],
)
def test_what_makes_a_server_read_calls(
    provider: str, server: str | None, path: str | None, remedy: str
) -> None:
    """Each server has a setting of its own."""
    assert parser_remedy(provider, server, path) == PARSER_REMEDIES[remedy]
