"""Targets and the keys of their cells."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal, NamedTuple

ThinkingLevel = Literal["low", "medium", "high", "xhigh"]
THINKING_LEVELS: tuple[ThinkingLevel, ...] = ("low", "medium", "high", "xhigh")


@dataclass(frozen=True, kw_only=True)
class Target:
    """What is measured: a model, through a provider, at a thinking level."""

    provider: str
    model: str
    thinking_level: ThinkingLevel | None = None

    @property
    def label(self) -> str:
        """`provider/model@level`, as on the command line."""
        level = f"@{self.thinking_level}" if self.thinking_level else ""
        return f"{self.provider}/{self.model}{level}"


class CellKey(NamedTuple):
    """What a cell is, in ids, rows, resumed runs and comparisons alike."""

    suite: str
    prompt_id: str
    target: Target
    repeat: int

    @property
    def name(self) -> str:
        """`P1[ollama_openai/llama3.2:3b@low]-r2`; no `-r1`, because there may be one repeat alone."""
        repeat = f"-r{self.repeat}" if self.repeat > 1 else ""
        return f"{self.prompt_id}[{self.target.label}]{repeat}"
