"""Targets and the keys of their cells."""

from __future__ import annotations

from dataclasses import dataclass, replace
from fnmatch import fnmatchcase
from typing import TYPE_CHECKING, Literal, NamedTuple

if TYPE_CHECKING:
    from collections.abc import Iterable

ThinkingLevel = Literal["low", "medium", "high", "xhigh"]
THINKING_LEVELS: tuple[ThinkingLevel, ...] = ("low", "medium", "high", "xhigh")
SurfaceName = Literal["listed", "openclaw"]
LISTED: SurfaceName = "listed"
OPENCLAW: SurfaceName = "openclaw"
SURFACES: tuple[SurfaceName, ...] = (LISTED, OPENCLAW)
"""The kinds of requests: a suite's own list of tools, or what OpenClaw sends."""

OPENCLAW_ITSELF = "openclaw_agent"
"""The provider that is OpenClaw: its models have OpenClaw's own names, and it sends the real request."""


@dataclass(frozen=True, kw_only=True)
class Target:
    """What is measured: a model, through a provider, at a thinking level, asked on a surface."""

    provider: str
    model: str
    thinking_level: ThinkingLevel | None = None
    surface: SurfaceName = LISTED

    @property
    def label(self) -> str:
        """`provider/model@level+surface`, as on the command line; without the surface if it is `listed`."""
        level = f"@{self.thinking_level}" if self.thinking_level else ""
        surface = "" if self.surface == LISTED else f"+{self.surface}"
        return f"{self.provider}/{self.model}{level}{surface}"

    def on(self, surface: SurfaceName) -> Target:
        """Return the same on another surface."""
        return self if self.surface == surface else replace(self, surface=surface)


def most_realistic(targets: Iterable[Target]) -> list[Target]:
    """Return the targets without those on `listed` that were asked as OpenClaw asks, too."""
    named = [*targets]
    as_openclaw = {one.on(LISTED) for one in named if one.surface != LISTED}
    return [one for one in named if one.surface != LISTED or one not in as_openclaw]


def label_fits(label: str, glob: str) -> bool:
    """Whether a glob matches a label, or the label without its surface; case does not matter."""
    plain = (label.removesuffix(f"+{surface}") for surface in SURFACES)
    return any(fnmatchcase(one.casefold(), glob.casefold()) for one in (label, *plain))


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
