"""Ways of reaching models, one a file; `BUILTIN` is the table of contents.

What two of them have to know of the program that they start stands in a folder: `claude`, `openclaw`.
"""

from __future__ import annotations

import importlib
from dataclasses import dataclass
from typing import TYPE_CHECKING, cast

if TYPE_CHECKING:
    from pytest_openclaw.protocols import Provider, ProviderSetup


@dataclass(frozen=True)
class Builtin:
    """A provider of ours, known by its name; its file is imported when the first one is made.

    Attributes:
        name: the provider's, and its file's.
        kind: its class.
    """

    name: str
    kind: str

    def load(self) -> type[Provider]:
        """Return the class."""
        return cast("type[Provider]", getattr(importlib.import_module(f"{__name__}.{self.name}"), self.kind))

    def __call__(self, setup: ProviderSetup) -> Provider:
        """Make one, as calling the class would."""
        return self.load()(setup)


BUILTIN = (
    Builtin("ollama_openai", "OllamaOpenAI"),
    Builtin("ollama_native", "OllamaNative"),
    Builtin("openai_responses", "OpenAIResponses"),
    Builtin("claude_code_cli", "ClaudeCodeCLI"),
    Builtin("llama_cpp", "LlamaCpp"),
    Builtin("openclaw_agent", "OpenClawAgent"),
)
