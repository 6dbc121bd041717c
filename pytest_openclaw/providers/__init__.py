"""Ways of reaching models, one a file; `BUILTIN` is the table of contents."""

from __future__ import annotations

from typing import TYPE_CHECKING

from pytest_openclaw.providers.claude_code_cli import ClaudeCodeCLI
from pytest_openclaw.providers.llama_cpp import LlamaCpp
from pytest_openclaw.providers.ollama_openai import OllamaOpenAI
from pytest_openclaw.providers.openai_responses import OpenAIResponses

if TYPE_CHECKING:
    from pytest_openclaw.protocols import Provider

BUILTIN: tuple[type[Provider], ...] = (OllamaOpenAI, OpenAIResponses, ClaudeCodeCLI, LlamaCpp)
