"""OpenClaw's name of a target, and whether its server is local."""

from __future__ import annotations

from typing import Any

import pytest

from pytest_openclaw.features.routing import KNOWN, check_overrides, ref_of
from pytest_openclaw.providers import BUILTIN
from pytest_openclaw.util.errors import OpenClawError
from pytest_openclaw.values.requests import OPENCLAW_ITSELF, Target

CONFIG: dict[str, Any] = {"providers": {}}


def _target(provider: str, model: str = "qwen3:8b") -> Target:
    return Target(provider=provider, model=model, thinking_level="low")


@pytest.mark.parametrize(
    ("provider", "overrides", "name", "is_detour"),
    [
        pytest.param("ollama_native", {}, "ollama/qwen3:8b", False, id="ollama"),
        pytest.param("ollama_openai", {}, "ollama/qwen3:8b", True, id="ollama-by-another-way"),
        pytest.param("openai_responses", {}, "openai/qwen3:8b", False, id="openai"),
        pytest.param("anthropic_messages", {}, "anthropic/qwen3:8b", False, id="anthropic"),
        pytest.param("claude_code_cli", {}, "anthropic/qwen3:8b", True, id="anthropic-by-another-way"),
        pytest.param("gemini", {}, "google/qwen3:8b", False, id="gemini"),
        pytest.param("llama_cpp", {}, None, False, id="embedded"),
        pytest.param("lab", {}, "lab/qwen3:8b", False, id="endpoint"),
        pytest.param("my lab", {}, None, False, id="no-name-for-a-provider"),
        pytest.param("lab", {"lab": "vllm"}, "vllm/qwen3:8b", False, id="as-the-user-says"),
        pytest.param(
            "llama_cpp", {"llama_cpp": "llama-cpp"}, "llama-cpp/qwen3:8b", False, id="embedded-elsewhere"
        ),
        pytest.param("ollama_native", {"lab": "vllm"}, "ollama/qwen3:8b", False, id="another-was-named"),
    ],
)
def test_a_target_has_a_name(
    provider: str, overrides: dict[str, str], name: str | None, is_detour: bool
) -> None:
    """Our name is mapped to OpenClaw's, unless the user gives one or there is none; levels are left out."""
    ref = ref_of(_target(provider), CONFIG, overrides)

    assert (ref.name, ref.is_detour) == (name, is_detour)


def test_every_builtin_provider_has_a_rule() -> None:
    """A new one needs a name in OpenClaw or a rule that it has none."""
    assert {provider.name for provider in BUILTIN} == {*KNOWN, OPENCLAW_ITSELF}


@pytest.mark.parametrize("provider", ["ollama_openai", "claude_code_cli", "llama_cpp", "lab", "my lab"])
def test_a_name_to_check_is_reported(provider: str) -> None:
    """If the name may be wrong, a note says what to do; the user's own name needs none."""
    assert ref_of(_target(provider), CONFIG, {}).remark
    assert not ref_of(_target(provider), CONFIG, {provider: "theirs"}).remark


@pytest.mark.parametrize(
    ("provider", "described", "is_local"),
    [
        pytest.param("ollama_native", {"base_url": "http://127.0.0.1:11434"}, True, id="loopback"),
        pytest.param("ollama_native", {"base_url": "http://[::1]:11434"}, True, id="loopback-6"),
        pytest.param("ollama_native", {"base_url": "http://gpu.localhost/v1"}, True, id="localhost"),
        pytest.param("lab", {"base_url": "http://192.168.1.20:8000/v1"}, True, id="private"),
        pytest.param("lab", {"base_url": "http://gpubox:8000/v1"}, True, id="a-host-of-the-network"),
        pytest.param("lab", {"base_url": "http://gpubox.local./v1"}, True, id="mdns"),
        pytest.param("lab", {"base_url": "https://api.example.com/v1"}, False, id="elsewhere"),
        pytest.param("lab", {"base_url": "https://8.8.8.8/v1"}, False, id="elsewhere-by-number"),
        pytest.param("openai_responses", {"base_url": "http://127.0.0.1:1/v1"}, True, id="openai-near-by"),
        pytest.param("openai_responses", {"base_url": None}, False, id="openai"),
        pytest.param("claude_code_cli", {"kind": "claude_code_cli", "base_url": None}, False, id="claude"),
        pytest.param("acme", {"kind": "openai_responses"}, False, id="kind-elsewhere"),
        pytest.param("llama_cpp", {"kind": "llama_cpp"}, True, id="embedded"),
        pytest.param("plugin", {}, True, id="unknown"),
        pytest.param("lab", {"base_url": "http://["}, True, id="no-address"),
    ],
)
def test_what_is_served_near_by(provider: str, described: dict[str, Any], is_local: bool) -> None:
    """An address of this machine or network is local, and so is an unknown one."""
    config = {"providers": {provider: described}}

    assert ref_of(_target(provider), config, {}).is_local is is_local


@pytest.mark.parametrize(
    ("urls", "is_local"),
    [
        pytest.param(["https://a.example/v1", "https://b.example/v1"], False, id="all-elsewhere"),
        pytest.param(["https://a.example/v1", "http://127.0.0.1/v1"], True, id="one-near-by"),
    ],
)
def test_a_merged_run_is_asked_of_its_parts(urls: list[str], is_local: bool) -> None:
    """Parts may have used servers in different places; one local server is enough."""
    parts = [{"providers": {"lab": {"base_url": url}}} for url in urls]
    config = {"providers": {"lab": {"base_url": None}}, "parts": [*parts, {"providers": {}}]}

    assert ref_of(_target("lab"), config, {}).is_local is is_local


def test_a_name_without_a_provider_is_refused() -> None:
    """A provider that the run did not use is a typing error."""
    with pytest.raises(
        OpenClawError, match=r"--provider lap=vllm: the run has no provider lap; it has lab, ollama"
    ):
        check_overrides({"lap": "vllm"}, {_target("lab"): 1, _target("ollama_native"): 1})
