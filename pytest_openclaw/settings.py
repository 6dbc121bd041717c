"""A run's choices, as one frozen value; options and ini keys end here."""

from __future__ import annotations

from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Literal

if TYPE_CHECKING:
    from collections.abc import Mapping

    from pytest_openclaw.records import Target, ThinkingLevel

VerdictMode = Literal["cells", "gate"]
ACROSS = ("prompt", "validator", "serving", "settings")
"""Differences between two runs that a comparison can look across."""

DEFAULT_PROVIDER = "ollama_openai"
EMBEDDED_TARGET = "llama_cpp/smollm2:135m"
THINKING_ROOM_TOKENS: Mapping[ThinkingLevel, int] = {
    "low": 1024,
    "medium": 4096,
    "high": 8192,
    "xhigh": 16384,
}
"""What a thinking level adds to a prompt's `max_output_tokens`, which is meant for the answer alone."""
MOST_REPEATS = 10
"""How often `--openclaw-until-conclusive` asks a prompt at most, if nothing else is said."""
LOCAL_LANE_LIMIT = 1
CLOUD_LANE_LIMIT = 8


@dataclass(frozen=True, kw_only=True)
class Endpoint:
    """A server of the user's own: an ini line `name = kind base_url KEY_ENV_NAME`.

    Attributes:
        name: the provider's name in specs and rows.
        kind: the built-in or guest provider that speaks its API.
        base_url: such as `http://127.0.0.1:8000/v1`.
        key_env: the environment variable that holds its key; None sends no key.
    """

    name: str
    kind: str
    base_url: str
    key_env: str | None = None


@dataclass(frozen=True, kw_only=True)
class Concurrency:
    """Requests in flight on a lane: by provider, else one number for all, else the lane's own."""

    everywhere: int | None = None
    by_provider: Mapping[str, int] = field(default_factory=dict)

    def limit(self, provider: str, *, is_local: bool) -> int:
        """Return how many requests may be under way at once on this provider's lane."""
        if provider in self.by_provider:
            return self.by_provider[provider]
        if self.everywhere is not None:
            return self.everywhere
        return LOCAL_LANE_LIMIT if is_local else CLOUD_LANE_LIMIT


@dataclass(frozen=True, kw_only=True)
class Gates:
    """What each target must reach; None asks for nothing.

    Attributes:
        min_pass_rate: 0 to 1, of the answered and judged cells.
        min_tool_rate: 0 to 1, of the answered tool cells.
        require_tier: 1, 2 or 3; the evidence must exclude every worse tier.
        fail_on_regression: no target may be worse than in the baseline.
    """

    min_pass_rate: float | None = None
    min_tool_rate: float | None = None
    require_tier: int | None = None
    fail_on_regression: bool = False


@dataclass(frozen=True, kw_only=True)
class Settings:
    """Everything that the user chose for this run.

    Attributes:
        targets: in the order of the command line; empty means that no cell is collected.
        suite_dirs: folders below which `prompts_*.toml` and `prompts_*.json` are suites.
        prompts: ids or globs that select prompts; empty means all.
        repeat: how often each prompt is asked; with `until_conclusive` a tool prompt, and at most so often.
        until_conclusive: a target's repeats end when its tier is settled.
        timeout_s: seconds for one attempt, from the send to the end of the reply.
        retries: attempts after the first.
        run_id: fixed by `--openclaw-run-id`; else the time of the start.
        run_id_given: whether the user chose it.
        resume: the id of the run to go on with, or `last`; empty begins a new one.
        baseline: the run to compare with: a path, its id, or `last`; empty compares with none.
        across: what may differ from the baseline all the same, of `ACROSS`.
    """

    targets: tuple[Target, ...] = ()
    suite_dirs: tuple[Path, ...] = ()
    prompts: tuple[str, ...] = ()
    repeat: int = 1
    until_conclusive: bool = False
    timeout_s: float = 300.0
    retries: int = 5
    concurrency: Concurrency = Concurrency()
    stream: bool = True
    runs_dir: Path = Path("runs")
    run_id: str = ""
    run_id_given: bool = False
    resume: str = ""
    verdict: VerdictMode = "cells"
    gates: Gates = Gates()
    baseline: str = ""
    across: frozenset[str] = frozenset()
    fail_unavailable: bool = False
    endpoints: tuple[Endpoint, ...] = ()
    provider_options: Mapping[str, str] = field(default_factory=dict)
