"""The protocols of providers and validators, which plugins implement."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import ClassVar, Protocol, runtime_checkable

from pytest_openclaw.util.files import JsonObject
from pytest_openclaw.values.replies import Reply, Verdict
from pytest_openclaw.values.requests import DEFAULT_CONTEXT_TOKENS, Request


@runtime_checkable
class Validator(Protocol):
    """A rule for replies: a frozen dataclass whose fields are the keys a suite author writes.

    `{"type": "max_words", "value": 8}` *is* `MaxWords(value=8)`. Invalid values raise `ValueError` in
    `__post_init__`, with a message that names the key and has a hint.

    A validator of calls also has a property `demands`, a `Demands`. Without it, no call is demanded.
    """

    type: ClassVar[str]

    def check(self, reply: Reply) -> Verdict:
        """Judge the reply; `reply.text` is the answer, without thinking."""
        ...


@dataclass(frozen=True, kw_only=True)
class ProviderSetup:
    """The settings of a provider.

    Attributes:
        name: the name in rows and target specs; an endpoint of the ini file has its own name.
        base_url: the address in the endpoint's ini line; None means the provider's own variable or default.
        key_env: the environment variable with the key; None means the provider's own.
        environ: the environment; use it instead of `os.environ`, so that tests can empty it.
        options: ini values for single providers, such as `num_ctx`, as written.
    """

    name: str
    base_url: str | None = None
    key_env: str | None = None
    environ: Mapping[str, str] = field(default_factory=dict, repr=False)
    options: Mapping[str, str] = field(default_factory=dict)


class Provider(Protocol):
    """One way of reaching models. A subclass needs a `name` and an `ask`; the rest has defaults.

    All methods run in one event loop, in a thread of the process that owns the run. A method that blocks or
    computes for long delays the requests of all providers: use `asyncio.to_thread`.
    """

    name: ClassVar[str]
    #: whether to send a request for one token before the first cell, because loading a model is not latency
    warms_up: ClassVar[bool] = False
    #: whether it sends `request.tools` and `request.history`; only then does it receive prompts with tools
    takes_tools: ClassVar[bool] = False
    #: whether it sends `request.messages` and `request.history`, for example as `request.conversation`; only
    #: then does it receive prompts with `messages` or `turns`
    takes_messages: ClassVar[bool] = False
    #: whether it answers the calls of `request.world` and sends `request.turns` itself, and returns the whole
    #: exchange as one reply
    plays_worlds: ClassVar[bool] = False
    #: which of temperature, seed, fields and images of a request it sends; only with images does it receive
    #: prompts with images
    takes: ClassVar[frozenset[str]] = frozenset()
    #: whether it is OpenClaw itself, which adds its own parts to a question
    is_openclaw: ClassVar[bool] = False
    #: OpenClaw's name of the API that it speaks; empty if OpenClaw's surface cannot be captured with that API
    api: ClassVar[str] = ""

    setup: ProviderSetup

    def __init__(self, setup: ProviderSetup) -> None:
        self.setup = setup

    async def ask(self, request: Request) -> Reply:
        """Send the request once and return its reply.

        Raises:
            CallFailed: there is no reply; `fault` has the reason. Any other exception is a `harness_error`, a
                failure of our own code that says nothing about the model.
        """
        ...

    @property
    def endpoint(self) -> str:
        """The server or CLI whose load is limited. Providers with equal endpoints share the limit."""
        return self.setup.name

    @property
    def is_local(self) -> bool:
        """Whether the endpoint is on this machine, where concurrent requests distort each other's times."""
        return False

    @property
    def is_free(self) -> bool:
        """Whether a call costs nothing, because the model is on this machine."""
        return False

    @property
    def billed_at(self) -> str | None:
        """The address by which a price list identifies the provider; None if no list has it."""
        return None

    @property
    def secrets(self) -> tuple[str, ...]:
        """Texts that must never be written anywhere: keys, passwords in addresses."""
        return ()

    def describe(self) -> JsonObject:
        """Return the settings that shape a request, for `config.json`, such as the address; never a key."""
        return {}

    def context_tokens(self, request: Request) -> int:
        """Return the context of a request in tokens, by which long results of calls are cut."""
        del request  # most providers cannot set it
        return DEFAULT_CONTEXT_TOKENS

    async def models(self) -> tuple[str, ...]:
        """Return the names of the served models, for `*` in a target spec.

        Raises:
            CallFailed: the server cannot be reached, or has no list.
        """
        return ()

    async def fingerprint(self, model: str) -> JsonObject:
        """Return the server's facts about a model: version, digest, quantization, context length."""
        return {}

    async def aclose(self) -> None:
        """Close connections and other resources."""
        return
