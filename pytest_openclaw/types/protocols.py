"""What a provider and a validator offer; guests implement these."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import ClassVar, Protocol, runtime_checkable

from pytest_openclaw.core.json_types import JsonObject
from pytest_openclaw.types.replies import Reply, Verdict
from pytest_openclaw.types.requests import Request


@runtime_checkable
class Validator(Protocol):
    """A rule for replies: a frozen dataclass whose fields are the keys a suite author writes.

    `{"type": "max_words", "value": 8}` *is* `MaxWords(value=8)`. Bad values raise `ValueError` in
    `__post_init__`, with a text that names the key and the mend.
    """

    type: ClassVar[str]

    def check(self, reply: Reply) -> Verdict:
        """Judge the reply; `reply.text` is the answer, without thinking."""
        ...


@dataclass(frozen=True, kw_only=True)
class ProviderSetup:
    """What a provider is made from.

    Attributes:
        name: as in rows and target specs; an endpoint of the ini file has a name of its own.
        base_url: from the ini's endpoint line; None lets the provider look in its own environment
            variables and fall back to its default.
        key_env: the environment variable that holds the key; None is the provider's own convention.
        environ: the environment; never `os.environ` directly, so that tests can empty it.
        options: ini values of single providers, such as `claude_command`, as they were written.
        shared_dir: a folder of this run on this machine, common to all its processes.
    """

    name: str
    base_url: str | None = None
    key_env: str | None = None
    environ: Mapping[str, str] = field(default_factory=dict, repr=False)
    options: Mapping[str, str] = field(default_factory=dict)
    shared_dir: Path = Path()


class Provider(Protocol):
    """One way of reaching models. Subclass it, give it a `name` and an `ask`; the rest has defaults.

    All methods run in one event loop, away from the tests.
    """

    name: ClassVar[str]
    #: asked one token once before the first cell, because loading a model is not latency
    warms_up: ClassVar[bool] = False
    #: sends `request.tools` and `request.history`; a prompt that offers tools is asked of no other
    takes_tools: ClassVar[bool] = False
    #: answers the calls of `request.world` itself, and returns the whole exchange as one reply
    plays_worlds: ClassVar[bool] = False

    setup: ProviderSetup

    def __init__(self, setup: ProviderSetup) -> None:
        self.setup = setup

    async def ask(self, request: Request) -> Reply:
        """Send the request once and return what came back.

        Raises:
            CallFailed: there is no reply; `fault` says why. Anything else that is raised here is a
                `harness_error`: our own code broke, which says nothing about a model.
        """
        ...

    @property
    def endpoint(self) -> str:
        """What may not be overloaded: a base URL, a CLI. Providers with equal endpoints share its limit."""
        return self.setup.name

    @property
    def is_local(self) -> bool:
        """Whether the endpoint is on this machine, where concurrent requests spoil each other's times."""
        return False

    @property
    def is_free(self) -> bool:
        """Whether nobody charges for a call, because the model is on this machine."""
        return False

    @property
    def billed_at(self) -> str | None:
        """The address by which a price list knows who charges for calls; None if no list can know."""
        return None

    @property
    def secrets(self) -> tuple[str, ...]:
        """Texts that must never be written anywhere: keys, passwords in addresses."""
        return ()

    def describe(self) -> JsonObject:
        """What shapes a request here, for `config.json`: the address, the key's variable, never the key."""
        return {}

    async def models(self) -> tuple[str, ...]:
        """Names of the models served, for `*` in a target spec.

        Raises:
            CallFailed: it cannot be asked, or does not say.
        """
        return ()

    async def fingerprint(self, model: str) -> JsonObject:
        """What is being served, as far as the server says: version, digest, quantisation, context length."""
        return {}

    async def aclose(self) -> None:
        """Give back what was opened."""
        return
