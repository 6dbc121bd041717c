"""Targets, the keys of their cells, and the request to a provider."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field, fields, replace
from fnmatch import fnmatchcase
from pathlib import PurePath
from typing import TYPE_CHECKING, Any, Literal, NamedTuple

from pytest_openclaw.values.replies import Image, Turn

if TYPE_CHECKING:
    from pytest_openclaw.values.tool_calls import Tool
    from pytest_openclaw.values.worlds import World


ThinkingLevel = Literal["low", "medium", "high", "xhigh"]
THINKING_LEVELS: tuple[ThinkingLevel, ...] = ("low", "medium", "high", "xhigh")
SurfaceName = Literal["listed", "openclaw"]
LISTED: SurfaceName = "listed"
OPENCLAW: SurfaceName = "openclaw"
SURFACES: tuple[SurfaceName, ...] = (LISTED, OPENCLAW)
"""The kinds of requests: a suite's own list of tools, or OpenClaw's whole request."""


@dataclass(frozen=True, kw_only=True)
class Target:
    """The thing measured: a model, through a provider, at a thinking level, asked on a surface."""

    provider: str
    model: str
    thinking_level: ThinkingLevel | None = None
    surface: SurfaceName = LISTED

    @property
    def label(self) -> str:
        """`provider/model@level+surface`, as on the command line; without the surface if it is `listed`.

        A model that is a file is named without its folders.
        """
        model = PurePath(self.model).name if self.model.lower().endswith(".gguf") else self.model
        level = f"@{self.thinking_level}" if self.thinking_level else ""
        surface = "" if self.surface == LISTED else f"+{self.surface}"
        return f"{self.provider}/{model}{level}{surface}"

    def on(self, surface: SurfaceName) -> Target:
        """Return the same target on another surface."""
        return self if self.surface == surface else replace(self, surface=surface)


def target_of(entry: Mapping[str, Any]) -> Target:
    """Return a target from its entry in `config.json` or `summary.json`."""
    return Target(**{one.name: entry[one.name] for one in fields(Target)})


def most_realistic(targets: Iterable[Target]) -> list[Target]:
    """Return the targets, without those on `listed` that were also asked on `openclaw`."""
    named = [*targets]
    as_openclaw = {one.on(LISTED) for one in named if one.surface != LISTED}
    return [one for one in named if one.surface != LISTED or one not in as_openclaw]


def label_fits(label: str, glob: str) -> bool:
    """Whether a glob matches a label, or the label without its surface; case does not matter."""
    plain = (label.removesuffix(f"+{surface}") for surface in SURFACES)
    return any(fnmatchcase(one.casefold(), glob.casefold()) for one in (label, *plain))


PromptKey = tuple[str, str]
"""Suite and prompt id."""


class CellKey(NamedTuple):
    """The identity of a cell in ids, rows, resumed runs and comparisons."""

    suite: str
    prompt_id: str
    target: Target
    repeat: int

    @property
    def name(self) -> str:
        """`P1[ollama_openai/llama3.2:3b@low-r2]`; no `-r1`, because there may be only one repeat."""
        repeat = f"-r{self.repeat}" if self.repeat > 1 else ""
        return f"{self.prompt_id}[{self.target.label}{repeat}]"


DEFAULT_MAX_OUTPUT_TOKENS = 1024
DEFAULT_CONTEXT_TOKENS = 128_000
"""The context of a model whose provider does not report it.

OpenClaw 2026.9.6 uses this value for a custom server (`CUSTOM_PROVIDER_DEFAULT_CONTEXT_WINDOW_TOKENS`).
"""


NEW = "/new "
"""OpenClaw's command at the beginning of a message: the rest of the message begins a new session."""


def in_new_conversation(message: str) -> str | None:
    """Return the text that begins a new conversation; None if a message continues the present one."""
    text = message.removeprefix(NEW).strip()
    return text if text and message.startswith(NEW) else None


@dataclass(frozen=True, kw_only=True)
class Request:
    """A request, in the same form for every provider.

    Attributes:
        temperature: 0 to 2; None leaves the choice to the server, as for `seed`.
        listed_tools: on the surface `openclaw`, the tools that the prompt itself lists.
        messages: the turns before `prompt`, with the results of their calls.
        history: the turns after `prompt`.
        turns: further messages of the user, each sent after the answer to the previous message, or in a new
            conversation; see `in_new_conversation`.
        context: a message in the user's role that ends the request, after the history; empty for none.
        world: answers the calls; None requests one turn for each message of the user.
        lookup_turns: without a world, the maximum number of turns for looking up tools before a call.
        surface: the kind of request; on `openclaw` the fields have the names that OpenClaw uses.
    """

    model: str
    prompt: str
    system: str | None = None
    thinking_level: ThinkingLevel | None = None
    max_output_tokens: int = DEFAULT_MAX_OUTPUT_TOKENS
    temperature: float | None = 0.0
    seed: int | None = None
    stream: bool = True
    timeout_s: float = 300.0
    tools: tuple[Tool, ...] = ()
    listed_tools: tuple[Tool, ...] = ()
    fields: Mapping[str, Any] = field(default_factory=dict)
    images: tuple[Image, ...] = ()
    messages: tuple[Turn, ...] = ()
    history: tuple[Turn, ...] = ()
    turns: tuple[str, ...] = ()
    context: str = ""
    world: World | None = None
    lookup_turns: int = 0
    surface: SurfaceName = LISTED

    @property
    def is_exchange(self) -> bool:
        """Whether the model may take several turns."""
        return self.world is not None or bool(self.turns or self.lookup_turns)

    @property
    def most_turns(self) -> int:
        """The maximum number of turns of the model."""
        steps = self.world.steps if self.world else 1
        return (1 + len(self.turns)) * steps + self.lookup_turns

    @property
    def conversation(self) -> tuple[Turn, ...]:
        """All turns in order, including `prompt` as a message of the user, without the system text."""
        return (*self.messages, Turn(user=self.prompt, images=self.images), *self.history)
