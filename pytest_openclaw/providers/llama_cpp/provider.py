"""The embedded engine: llama.cpp in its own process, used like any chat server."""

from __future__ import annotations

import asyncio
from contextlib import asynccontextmanager
from dataclasses import replace
from functools import cached_property, partial
from typing import TYPE_CHECKING, ClassVar

from pytest_openclaw.providers.address import Address, parse_address
from pytest_openclaw.providers.chat_completions import OllamaOpenAI
from pytest_openclaw.providers.llama_cpp.engine import CONTEXT_TOKENS, Engine, Engines, EngineSpec
from pytest_openclaw.providers.llama_cpp.weights import (
    EMBEDDED_MODEL,
    EMBEDDED_TRAINED_TOKENS,
    embedded_model_is_installed,
    engine_version,
    find_weights,
    sha256_of,
    template_for,
)
from pytest_openclaw.util.errors import EngineError, TargetError
from pytest_openclaw.values import faults
from pytest_openclaw.values.faults import CallFailed
from pytest_openclaw.values.requests import OPENCLAW

if TYPE_CHECKING:
    from collections.abc import AsyncIterator

    from pytest_openclaw.util.files import JsonObject
    from pytest_openclaw.values.protocols import ProviderSetup
    from pytest_openclaw.values.replies import Reply
    from pytest_openclaw.values.requests import Request

CONNECTION_LOST = frozenset({"connect_error", "stream_error", "malformed_response"})


class LlamaCpp(OllamaOpenAI):
    """The embedded model `smollm2:135m`, or any `.gguf` file by its path; one engine at a time.

    The ini's `openclaw_num_ctx` sets the context. The prompt cache is off, so that the time to first token
    includes reading the whole prompt; on `openclaw` the cache is on, as for OpenClaw itself.
    """

    name: ClassVar[str] = "llama_cpp"
    key_envs: ClassVar[tuple[str, ...]] = ()
    # The weights are one file; vision would need a second file.
    takes: ClassVar[frozenset[str]] = OllamaOpenAI.takes - {"images"}

    def __init__(self, setup: ProviderSetup) -> None:
        """Prepare the provider; the first request starts the engine.

        Raises:
            TargetError: the ini file sets an address.
        """
        super().__init__(setup)
        self._token: str | None = None
        self._context_tokens = int(setup.options.get("num_ctx") or CONTEXT_TOKENS)

    @cached_property
    def _engines(self) -> Engines:
        """Made in the event loop that uses it."""
        spec_of = partial(engine_spec, context_tokens=self._context_tokens)
        return Engines(spec_of, self.setup.environ)

    def find_address(self) -> Address:
        """Return a placeholder, because an engine has no address before it starts."""
        if self.setup.base_url is not None:
            raise TargetError(
                f"{self.setup.name}: llama_cpp starts its own server. For a running llama-server write: "
                f"{self.setup.name} = ollama_openai {self.setup.base_url}"
            )
        return parse_address("http://127.0.0.1", source=self.setup.name)

    @property
    def endpoint(self) -> str:
        """This machine's engine, whatever its address."""
        return self.setup.name

    def describe(self) -> JsonObject:
        """The settings that shape the engine's answers, without the address, which differs in every run."""
        return {
            "path": self.path,
            "context_tokens": self._context_tokens,
            "cache_prompt": False,
            "cache_prompt_on_openclaw": True,
        }

    def context_tokens(self, request: Request) -> int:
        """Return the engine's context."""
        del request  # it is the same for all
        return self._context_tokens

    def key(self) -> str | None:
        """Return the running engine's own key, which is in no variable."""
        return self._token

    def body(self, request: Request) -> JsonObject:
        """Return the JSON body for `request`; the prompt cache is on if the surface is OpenClaw's."""
        return {**super().body(request), "cache_prompt": request.surface == OPENCLAW}

    async def ask(self, request: Request) -> Reply:
        """Start the model's engine if it is not running, and send the request once; see `Provider.ask`."""
        async with self._serving(request.model) as engine:
            try:
                return await super().ask(request)
            except CallFailed as failed:
                fault = failed.fault
                if fault.failure_type == "context_overflow":
                    message = f"{fault.message}. Set openclaw_num_ctx in the ini."
                    raise CallFailed(replace(fault, message=message)) from None
                if fault.failure_type not in CONNECTION_LOST or not await engine.has_died():
                    raise
                message = f"{self.setup.name}: the embedded engine died while it was asked."
                died = replace(fault, message=message, status="error", scope="cell", sent=True)
                raise CallFailed(replace(died, retryable=not fault.raw)) from None

    async def models(self) -> tuple[str, ...]:
        """The embedded model, if it is installed."""
        return (EMBEDDED_MODEL,) if embedded_model_is_installed() else ()

    async def fingerprint(self, model: str) -> JsonObject:
        """Return llama.cpp's facts about the model, its package's version and the weights' SHA-256."""
        version = {"server_version": f"xllamacpp {engine_version()}"}
        try:
            async with self._serving(model):
                facts = await super().fingerprint(model)
            digest = await asyncio.to_thread(sha256_of, find_weights(model))
        except (CallFailed, EngineError):
            return version  # the cells report the reason; a fingerprint has only known facts
        return {**facts, **version, "digest": f"sha256:{digest}"}

    async def aclose(self) -> None:
        """Close the connections and end the engine."""
        await super().aclose()
        if "_engines" in vars(self):
            await self._engines.aclose()

    # --- how ----------------------------------------------------------------------------------

    @asynccontextmanager
    async def _serving(self, model: str) -> AsyncIterator[Engine]:
        """Set this provider's address to the model's engine while the body runs."""
        try:
            async with self._engines.serving(model) as engine:
                self.address = parse_address(engine.url, source=self.setup.name)
                self._token = engine.token
                yield engine
        except EngineError as error:
            raise CallFailed(faults.not_installed(self.setup.name, str(error), "target")) from None


def engine_spec(model: str, *, context_tokens: int) -> EngineSpec:
    """Return the engine of a model; the embedded model can have more context than it was trained for.

    Raises:
        EngineError: there are no such weights.
    """
    return EngineSpec(
        weights=find_weights(model),
        alias=model,
        template=template_for(model),
        context_tokens=context_tokens,
        trained_tokens=EMBEDDED_TRAINED_TOKENS if model == EMBEDDED_MODEL else None,
    )
