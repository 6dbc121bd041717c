"""Reaches models, one API per file; `BUILTIN` is the table of contents.

Providers that start a program may have a folder for it: `openclaw`, `llama_cpp`.
"""

from __future__ import annotations

import importlib
from dataclasses import dataclass
from typing import TYPE_CHECKING, cast

if TYPE_CHECKING:
    from pytest_openclaw.values.protocols import Provider, ProviderSetup


@dataclass(frozen=True)
class Builtin:
    """A built-in provider, by the names of its class and its file, which is imported on first use."""

    name: str
    kind: str
    file: str | None = None
    example: str = "qwen3:8b"

    def load(self) -> type[Provider]:
        """Return the class."""
        module = importlib.import_module(f"{__name__}.{self.file or self.name}")
        return cast("type[Provider]", getattr(module, self.kind))

    def __call__(self, setup: ProviderSetup) -> Provider:
        """Make a provider, as a call of the class would."""
        return self.load()(setup)


BUILTIN = (
    Builtin("ollama_openai", "OllamaOpenAI", "chat_completions"),
    Builtin("ollama_native", "OllamaNative"),
    Builtin("openai_responses", "OpenAIResponses", example="gpt-5.3-codex@high"),
    Builtin("anthropic_messages", "AnthropicMessages", example="claude-opus-5@high"),
    Builtin("gemini", "Gemini", example="gemini-3-pro-preview@low"),
    Builtin("claude_code_cli", "ClaudeCodeCLI", example="claude-opus"),
    Builtin("llama_cpp", "LlamaCpp", "llama_cpp.provider", "smollm2:135m"),
    Builtin("openclaw_agent", "OpenClawAgent", example="ollama/qwen3:8b"),
)
