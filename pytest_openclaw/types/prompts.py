"""Prompts, suites of them, and their cells."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, Literal

from pytest_openclaw.types.requests import DEFAULT_MAX_OUTPUT_TOKENS
from pytest_openclaw.types.targets import CellKey

if TYPE_CHECKING:
    from pytest_openclaw.core.json_types import JsonObject
    from pytest_openclaw.types.protocols import Validator
    from pytest_openclaw.types.targets import Target
    from pytest_openclaw.types.tool_calls import Tool
    from pytest_openclaw.types.worlds import World


Probe = Literal["injection", "destructive", "outside_workspace", "secret"]


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
        twin_of: the id of the probe whose harmless twin this is; it is reported apart, too.
        variant_of: `suite::id` of the prompt that this one asks in other words; they are one cluster.
        padding_tokens: neutral text before the question, in tokens, as far as that is known beforehand.
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
    twin_of: str | None = None
    variant_of: str | None = None
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


@dataclass(frozen=True, kw_only=True, slots=True)
class Cell:
    """One prompt on one target; pytest calls it an item.

    Attributes:
        repeat: which asking of its prompt it is, from 1.
        n_repeats: how often the run asks its prompt at most; with more than one, ids have the repeat.
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
    def is_fixed_repeat(self) -> bool:
        """Whether its prompt says itself how often it is asked, so that no settled tier ends that."""
        return self.prompt.repeat is not None

    @property
    def key(self) -> CellKey:
        """The key that distinguishes this cell from every other."""
        return CellKey(self.prompt.suite, self.prompt.id, self.target, self.repeat)
