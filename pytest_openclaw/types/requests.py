"""The request to a provider."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, Literal

from pytest_openclaw.types.replies import Turn
from pytest_openclaw.types.targets import LISTED, SurfaceName
from pytest_openclaw.types.worlds import most_turns

if TYPE_CHECKING:
    from collections.abc import Mapping

    from pytest_openclaw.types.images import Image
    from pytest_openclaw.types.targets import ThinkingLevel
    from pytest_openclaw.types.tool_calls import Tool
    from pytest_openclaw.types.worlds import World


DEFAULT_MAX_OUTPUT_TOKENS = 1024
DEFAULT_CONTEXT_TOKENS = 128_000
"""The context of a model whose provider names none.

OpenClaw 2026.9.6 writes it for a server of one's own (`CUSTOM_PROVIDER_DEFAULT_CONTEXT_WINDOW_TOKENS`).
"""
ToolChoice = Literal["auto", "required"]


@dataclass(frozen=True, kw_only=True)
class Request:
    """A request, in the same form for every provider.

    Attributes:
        timeout_s: seconds for the whole attempt, from the send to the end of the reply.
        temperature: 0 to 2; not sent to an API that rejects it. None leaves it to the server.
        top_p: 0 to 1; None leaves it to the server.
        seed: distinguishes the repeats of a prompt, if the API has one; None leaves it to the server.
        tools: offered to the model.
        listed_tools: on the surface `openclaw`, those that the prompt lists itself.
        tool_choice: `auto` leaves it to the model whether to call one; `required` has the API force a call,
            if it can.
        fields: further fields of the request, as its API names them; they have precedence.
        images: pictures that belong to `prompt`.
        messages: the turns before `prompt`, with the results of their calls.
        history: the turns after `prompt`.
        turns: messages of the user, each to be sent after the answer to the one before.
        context: a message of the user's side that ends the request, after the history; empty for none.
        world: answers the calls; None requests one turn for each message of the user.
        lookup_turns: without a world, the most turns in which the model may look up tools before its call.
        surface: the kind of request; on `openclaw` the fields have the names that OpenClaw uses.
    """

    model: str
    prompt: str
    system: str | None = None
    thinking_level: ThinkingLevel | None = None
    max_output_tokens: int = DEFAULT_MAX_OUTPUT_TOKENS
    temperature: float | None = 0.0
    top_p: float | None = None
    seed: int | None = None
    stream: bool = True
    timeout_s: float = 300.0
    tools: tuple[Tool, ...] = ()
    listed_tools: tuple[Tool, ...] = ()
    tool_choice: ToolChoice = "auto"
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
        """Whether it may have several turns of the model."""
        return self.world is not None or bool(self.turns or self.lookup_turns)

    @property
    def most_turns(self) -> int:
        """The most turns of the model."""
        return most_turns(self.world, 1 + len(self.turns)) + self.lookup_turns

    @property
    def conversation(self) -> tuple[Turn, ...]:
        """All turns in order, with `prompt` as the user's message among them; the system text is not."""
        return (*self.messages, Turn(user=self.prompt, images=self.images), *self.history)
