"""The values that travel: from a prompt in a file to a row in `results.jsonl`.

Frozen, keyword-only, without behaviour beyond names. `schema.py` knows their JSON form.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, Literal, NamedTuple

if TYPE_CHECKING:
    from collections.abc import Mapping

    from pytest_openclaw.protocols import Validator
    from pytest_openclaw.toolcalls import Dispatched, Tool, ToolCall, ToolDemand, ToolOutcome
    from pytest_openclaw.worlds import World, WorldState

AvailabilityStatus = Literal["ok", "skipped_unavailable", "auth_error", "rate_limited", "error"]
ThinkingLevel = Literal["low", "medium", "high", "xhigh"]
Probe = Literal["injection", "destructive", "outside_workspace", "secret"]
EndedBy = Literal["answer", "step_limit", "loop", "malformed_call"]
PytestOutcome = Literal["passed", "failed", "skipped", "error"]

JsonObject = dict[str, Any]

THINKING_LEVELS: tuple[ThinkingLevel, ...] = ("low", "medium", "high", "xhigh")
DEFAULT_MAX_OUTPUT_TOKENS = 1024


@dataclass(frozen=True, kw_only=True, slots=True)
class KnownFailure:
    """Of which targets it is expected that they miss a prompt, and why.

    Attributes:
        target: a glob over the target's label, in which case makes no difference.
        strict: a target that passes all the same is a failure; None leaves that to pytest's ini.
    """

    target: str = "*"
    reason: str
    strict: bool | None = None


@dataclass(frozen=True, kw_only=True, slots=True)
class Prompt:
    """One prompt of a suite, with the rule that judges its replies.

    Attributes:
        suite: the suite's file, relative to the root folder, with `/`.
        id: unique within its suite, such as `P1`.
        validator: the rule; `validator_spec` is the same as the author wrote it.
        expected_tool_calls: tools of which one must be invoked, unless the validator has a list itself.
        timeout_s: seconds for one attempt, and for judging it; None takes the run's `--openclaw-timeout`.
        tools: what the model is offered on the wire; None asks for tool use in words, or for none.
            `tools_spec` is the same as the author wrote it.
        world: in which the calls are answered, turn by turn; None asks one question.
        probe: what a safety probe tries; it is reported apart.
        padding_tokens: neutral text before the question, in tokens, as far as that can be told beforehand.
        pressure_of: the id of the entry that this one is a harder form of.
        repeat: how often it is asked, whatever the run's `--openclaw-repeat`; None leaves it to that.
        min_passes: how many of its `repeat` cells on a target must pass; None judges each by itself.
        known_failures: the first that fits a target counts.
        extra: keys of the file that mean nothing here; kept for `config.json`.
    """

    suite: str
    id: str
    name: str
    prompt: str
    validator: Validator
    validator_spec: JsonObject = field(default_factory=lambda: {"type": "noop"})
    expected_tool_calls: tuple[str, ...] | None = None
    category: str | None = None
    tags: tuple[str, ...] = ()
    system: str | None = None
    max_output_tokens: int = DEFAULT_MAX_OUTPUT_TOKENS
    timeout_s: float | None = None
    tools: tuple[Tool, ...] | None = None
    tools_spec: Any = None
    world: World | None = None
    probe: Probe | None = None
    padding_tokens: int | None = None
    pressure_of: str | None = None
    repeat: int | None = None
    min_passes: int | None = None
    known_failures: tuple[KnownFailure, ...] = ()
    extra: JsonObject = field(default_factory=dict)


@dataclass(frozen=True, kw_only=True)
class Suite:
    """A file of prompts; ids are unique within it.

    Attributes:
        named_only: it is collected only if its file is named.
    """

    path: str
    prompts: tuple[Prompt, ...]
    named_only: bool = False


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


@dataclass(frozen=True, kw_only=True, slots=True)
class Cell:
    """One prompt on one target; pytest calls it an item.

    Attributes:
        repeat: which asking of its prompt it is, from 1.
        n_repeats: how often the run asks its prompt at most; with more than one, ids tell the repeat.
    """

    prompt: Prompt
    target: Target
    repeat: int = 1
    n_repeats: int = 1

    @property
    def id(self) -> str:
        """`P1[ollama_openai/llama3.2:3b@low]`, the item's name, and `-r2` behind it if there are repeats."""
        return f"{self.prompt.id}[{self.target.label}]{self.repeat_suffix}"

    @property
    def repeat_suffix(self) -> str:
        """`-r2`, or nothing if a prompt is asked once."""
        return f"-r{self.repeat}" if self.n_repeats > 1 else ""

    @property
    def is_asked_anyway(self) -> bool:
        """Whether its prompt says itself how often it is asked, so that no settled tier ends that."""
        return self.prompt.repeat is not None

    @property
    def key(self) -> CellKey:
        """What tells this cell from every other."""
        return CellKey(self.prompt.suite, self.prompt.id, self.target, self.repeat)


@dataclass(frozen=True, kw_only=True)
class Request:
    """What a provider is asked: the same for every provider.

    Attributes:
        timeout_s: seconds for the whole attempt, from the send to the end of the reply.
        temperature: 0 to 2; left out where an API refuses it.
        seed: tells the repeats of a prompt apart, where an API takes one; None leaves it to the server.
        tools: offered to the model, which decides whether it calls one.
        history: what came after `prompt`: the model's turns, and what its calls were answered.
        world: in which the calls are to be answered; None asks for one turn.
    """

    model: str
    prompt: str
    system: str | None = None
    thinking_level: ThinkingLevel | None = None
    max_output_tokens: int = DEFAULT_MAX_OUTPUT_TOKENS
    temperature: float = 0.0
    seed: int | None = None
    stream: bool = True
    timeout_s: float = 300.0
    tools: tuple[Tool, ...] = ()
    history: tuple[Turn, ...] = ()
    world: World | None = None


@dataclass(frozen=True, kw_only=True)
class Timing:
    """When an attempt happened.

    Attributes:
        started_at_ms: wall clock at the send, ms since the epoch; a connection, if it had to be opened for
            the request, was open then.
        ended_at_ms: `started_at_ms` plus the monotonic duration, so that it never runs backwards.
        e2e_ms: from the send to the end of the reply, monotonic clock.
        ttft_ms: from the send to the first generated token on any channel (text, reasoning, tool call).
        ttfo_ms: from the send to the first token of the answer itself (text or tool call).
    """

    started_at_ms: int
    ended_at_ms: int
    e2e_ms: float
    ttft_ms: float | None = None
    ttfo_ms: float | None = None


@dataclass(frozen=True, kw_only=True)
class Turn:
    """One step of an exchange: what the model said and called, and what its calls were answered.

    Attributes:
        results: one text for each of `calls`; fewer if the exchange ended there.
        timing: of this step alone.
        nudge: what is said to the model because it gave no answer; such a turn holds nothing else.
    """

    text: str = ""
    reasoning: str = ""
    calls: tuple[ToolCall, ...] = ()
    results: tuple[str, ...] = ()
    finish_reason: str | None = None
    timing: Timing | None = None
    input_tokens: int | None = None
    output_tokens: int | None = None
    nudge: str = ""


@dataclass(frozen=True, kw_only=True)
class Usage:
    """What a server counted of one request, as far as its price depends on it; None where it did not say.

    Attributes:
        model: that answered; None is the one that was asked.
        input_tokens: all that was read; what came from a cache and what went into one are part of it.
        cached_tokens: of these, read from a cache.
        cache_write_tokens: of these, written into a cache; `cache_write_1h_tokens` of those for an hour.
        output_tokens: all that was generated; reasoning is part of it.
    """

    model: str | None = None
    input_tokens: int | None = None
    output_tokens: int | None = None
    cached_tokens: int | None = None
    cache_write_tokens: int | None = None
    cache_write_1h_tokens: int | None = None


@dataclass(frozen=True, kw_only=True)
class Reply:
    """What came back from a model.

    A provider gives `text` as it was on the wire. Validators and Python benchmarks get the answer:
    a leading closed thinking block is gone, and `tool_names` is filled.

    Attributes:
        text: the answer.
        reasoning: what came on a separate reasoning channel.
        raw: everything, thinking included; empty means `text` is everything.
        tool_calls: native calls, in order; in a scripted exchange those of all turns.
        tool_names: tools invoked, native ones first, then those found in the text; each once.
        refusal: the model's words of refusal, where the API tells refusals apart.
        finish_reason: as the server said it.
        effective_model: the model that the server says answered.
        timing: None lets the executor time the call from outside.
        input_tokens, output_tokens, reasoning_tokens, cached_tokens: as the server counted them;
            None where it did not say. What was read from a cache is part of the input, and reasoning of
            the output, however an API counts.
        usage: of each request that the reply took, for its price; empty means one request of these counts.
        tokens_per_s: speed of generation as the server timed it; None lets our own clock tell.
        start_up_ms: what a program took from its start until it asked the model; no part of `timing`.
        turns: of a scripted exchange, all of them; `text` is the last one's. Its tokens and the times of
            its turns are summed up, `ttft_ms` is that of the first turn.
        ended_by: how a scripted exchange ended; None if one question was asked.
        dispatched: what OpenClaw would make of each of `tool_calls`; filled before it is judged.
        world: what is there at the end of a scripted exchange; filled before it is judged, unless the
            provider has looked itself.
        cut: bytes that were left out of a reply that was too long, as in `Record.cut`; filled by the run.
    """

    text: str = ""
    reasoning: str = ""
    raw: str = ""
    tool_calls: tuple[ToolCall, ...] = ()
    tool_names: tuple[str, ...] = ()
    refusal: str | None = None
    finish_reason: str | None = None
    effective_model: str | None = None
    timing: Timing | None = None
    input_tokens: int | None = None
    output_tokens: int | None = None
    reasoning_tokens: int | None = None
    cached_tokens: int | None = None
    usage: tuple[Usage, ...] = ()
    tokens_per_s: float | None = None
    start_up_ms: float | None = None
    turns: tuple[Turn, ...] = ()
    ended_by: EndedBy | None = None
    dispatched: tuple[Dispatched, ...] = ()
    world: WorldState | None = None
    cut: Mapping[str, int] = field(default_factory=dict)


@dataclass(frozen=True, kw_only=True)
class Fault:
    """Why an attempt, or a cell that was never asked, has no reply.

    Made by the functions of `faults.py`, which alone decide what each failure means.

    Attributes:
        failure_type: one of `faults.FAILURE_TYPES`, or `http_<status>`.
        status: what the row says.
        message: a sentence for the user.
        retryable: another attempt may help.
        retry_after_s: how long the server asked us to wait.
        reach: what it tells about the cells to come: nothing, the whole target, or everything at
            this base URL.
        sent: False if it was found before anything was sent to the model.
        raw: what had come before it broke.
        turns: of a scripted exchange, those before the one that broke.
        usage: of each request that the server counted before it broke, for its price.
        cut: as in `Reply`.
    """

    failure_type: str
    status: AvailabilityStatus
    message: str
    retryable: bool = False
    retry_after_s: float | None = None
    reach: Literal["cell", "target", "lane"] = "cell"
    sent: bool = True
    raw: str = ""
    timing: Timing | None = None
    turns: tuple[Turn, ...] = ()
    usage: tuple[Usage, ...] = ()
    cut: Mapping[str, int] = field(default_factory=dict)


@dataclass(frozen=True, kw_only=True)
class Ending:
    """How the asking of a cell ended: with a reply or with a fault, after how many attempts.

    Attributes:
        attempts: requests sent; 0 if the cell was never asked.
        retry_wait_ms: waited between attempts.
        queue_ms: from the wish to ask until the first attempt was sent.
        cold_start: the first request to this target, and no warm-up came before it.
        in_flight: requests that this process had under way on the lane then, this one included.
        cost_usd: of all attempts and turns; None if it is not known.
    """

    result: Reply | Fault
    timing: Timing
    attempts: int = 1
    retry_wait_ms: float = 0.0
    queue_ms: float | None = None
    cold_start: bool | None = None
    in_flight: int | None = None
    cost_usd: float | None = None


@dataclass(frozen=True, kw_only=True)
class Verdict:
    """What a validator found: passed, failed (with the violation) or not judged (None)."""

    passed: bool | None
    violation: str | None = None
    parsed: JsonObject | None = None


@dataclass(frozen=True, kw_only=True, slots=True)
class Record:
    """A cell's outcome: one row of `results.jsonl`, field by field.

    The first block is the seed's, in its order; the second is ours. `schemas/row.schema.json`
    publishes both.

    Attributes:
        truncated: something was cut, so that the row is not longer than a row may be.
        cut: how many bytes were left out, by field, and under `answer` those that were not judged; None if
            nothing was. Rows of older versions have `truncated` alone.
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
    extra: Mapping[str, Any] = field(default_factory=dict)

    @property
    def target(self) -> Target:
        """The target that this row belongs to."""
        return Target(provider=self.provider, model=self.model, thinking_level=self.thinking_level)

    @property
    def key(self) -> CellKey:
        """The cell that this row belongs to."""
        return CellKey(self.suite, self.prompt_id, self.target, self.repeat)
