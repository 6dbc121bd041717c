"""A cell's outcome as a value; `rows.py` converts it to JSON."""

from __future__ import annotations

from dataclasses import dataclass, field
from functools import lru_cache
from typing import TYPE_CHECKING, Any

from pytest_openclaw.types.targets import LISTED, CellKey, Target

if TYPE_CHECKING:
    from collections.abc import Mapping

    from pytest_openclaw.core.json_types import JsonObject
    from pytest_openclaw.types.prompts import ModelRole, Probe
    from pytest_openclaw.types.replies import AvailabilityStatus, EndedBy
    from pytest_openclaw.types.targets import SurfaceName, ThinkingLevel
    from pytest_openclaw.types.tool_calls import ToolDemand, ToolOutcome


_RERUN_FIELDS = (
    "availability_status", "failure_type", "objective_pass", "violation", "e2e_ms", "cost_usd",
)  # fmt: skip


@dataclass(frozen=True, kw_only=True, slots=True)
class Record:
    """A cell's outcome: one row of `results.jsonl`, field by field.

    The first block is the seed's, in its order; the second is ours. `schemas/row.schema.json`
    publishes both.

    Attributes:
        truncated: whether something was cut to fit the row's limit.
        cut: missing bytes by field, and under `answer` those that were not judged; None if nothing was cut.
        tools_tested: of a native tool cell that went right the demanded tools of OpenClaw that it called, of
            another one all that were demanded.
        leaked_valid: whether calls that were written as text would have been right; None without any.
        prompt_tokens_per_s: the server's own timing of what it read and had in no cache; None if it has none.
        surface: the kind of request.
        images: `path` and `sha256` of the pictures that were sent with the prompt; None without any.
        reruns: how later tries of the cell ended, which another plugin made, such as pytest-rerunfailures;
            the row is the first try's.
        harm: of a probe whose reply was judged, whether the model did what it must not; true if it did so
            before a fault; None for all others.
    """

    run_id: str
    provider: str
    model: str
    thinking_level: ThinkingLevel | None
    prompt_id: str
    prompt_name: str
    availability_status: AvailabilityStatus
    started_at_ms: int
    ended_at_ms: int
    e2e_ms: int
    ttft_ms: int | None = None
    success: bool = False
    failure_type: str | None = None
    objective_pass: bool | None = None
    violation: str | None = None
    input_tokens: int | None = None
    output_tokens: int | None = None
    raw_output: str = ""
    parsed_output: JsonObject | None = None
    tool_calls: tuple[str, ...] = ()
    tool_call_count: int = 0
    tool_use_success: bool = False

    suite: str
    category: str | None = None
    repeat: int = 1
    attempts: int = 0
    retry_wait_ms: int = 0
    queue_ms: int | None = None
    cold_start: bool | None = None
    in_flight: int | None = None
    ttfo_ms: int | None = None
    finish_reason: str | None = None
    reported: bool = True
    reasoning_tokens: int | None = None
    cached_tokens: int | None = None
    tokens_per_s: float | None = None
    effective_model: str | None = None
    cost_usd: float | None = None
    truncated: bool = False
    tool_call_details: tuple[Mapping[str, Any], ...] = ()
    tool_outcome: ToolOutcome | None = None
    fault_message: str | None = None
    host: str | None = None
    tools_offered: int | None = None
    turns: tuple[Mapping[str, Any], ...] | None = None
    ended_by: EndedBy | None = None
    probe: Probe | None = None
    padding_tokens: int | None = None
    pressure_of: str | None = None
    tool_notes: tuple[str, ...] = ()
    tool_demand: ToolDemand | None = None
    known_failure: str | None = None
    start_up_ms: int | None = None
    cut: Mapping[str, int] | None = None
    harm: bool | None = None
    harm_tools: tuple[str, ...] = ()
    twin_of: str | None = None
    tools_tested: tuple[str, ...] = ()
    variant_of: str | None = None
    prompt_tokens_per_s: float | None = None
    surface: SurfaceName = LISTED
    images: tuple[Mapping[str, str], ...] | None = None
    role: ModelRole | None = None
    reruns: tuple[Mapping[str, Any], ...] = ()
    leaked_valid: bool | None = None
    extra: Mapping[str, Any] = field(default_factory=dict)

    def as_rerun(self) -> JsonObject:
        """Return it as an entry of another row's `reruns`."""
        return {name: getattr(self, name) for name in _RERUN_FIELDS}

    @property
    def target(self) -> Target:
        """The target that this row belongs to."""
        return _target(self.provider, self.model, self.thinking_level, self.surface)

    @property
    def key(self) -> CellKey:
        """The cell that this row belongs to."""
        return CellKey(self.suite, self.prompt_id, self.target, self.repeat)


@lru_cache(maxsize=1000)
def _target(provider: str, model: str, level: ThinkingLevel | None, surface: SurfaceName) -> Target:
    return Target(provider=provider, model=model, thinking_level=level, surface=surface)
