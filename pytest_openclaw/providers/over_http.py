"""The base class of providers over HTTP: address, key, and one path from a request to its reply."""

from __future__ import annotations

import re
from collections import defaultdict
from collections.abc import Mapping
from dataclasses import replace
from functools import cached_property
from types import MappingProxyType
from typing import TYPE_CHECKING, ClassVar

from pytest_openclaw.providers.address import Address, check_network, parse_address
from pytest_openclaw.providers.answer import Answer
from pytest_openclaw.providers.stream import AnswerBody, Dialect, HttpCall
from pytest_openclaw.providers.wire import objects_in, text_in, with_fields
from pytest_openclaw.util.errors import TargetError
from pytest_openclaw.util.files import JsonObject
from pytest_openclaw.values import faults
from pytest_openclaw.values.faults import CallFailed
from pytest_openclaw.values.protocols import Provider, ProviderSetup
from pytest_openclaw.values.replies import MALFORMED_CALL, Fault, Reply
from pytest_openclaw.values.requests import Request

if TYPE_CHECKING:
    from pytest_openclaw.providers.http import HttpClient

MODELS_TIMEOUT_S = 10.0
MOST_MODELS = 1000
"""The most models of a server that are read."""


class OverHttp(Provider):
    """A server at a base URL; a subclass defines the paths, bodies and answers of its API.

    Under the class's own name, it is the server of a vendor or program, at the address in `base_env`, else in
    the ini, else `own_url`. Under a name from the user, it is any server with that API, at the address in its
    ini line.

    Attributes:
        key_envs: environment variables for the key, of which the first that is set counts. An ini line names
            its own variable.
        key_header: the API's own header for the key, instead of a bearer token. Servers other than the
            vendor's receive both, since gateways differ in which one they read.
        needs_key: whether another machine is never asked without a key.
        refusable: parts of a body that some models refuse → a pattern of their servers' errors; `refused` has
            the parts that are left out, by model.
    """

    own_url: ClassVar[str | None] = None
    base_env: ClassVar[str | None] = None
    key_envs: ClassVar[tuple[str, ...]] = ()
    key_header: ClassVar[str] = ""
    needs_key: ClassVar[bool] = False
    takes_tools: ClassVar[bool] = True
    takes_messages: ClassVar[bool] = True
    takes: ClassVar[frozenset[str]] = frozenset({"temperature", "seed", "fields", "images"})
    path: ClassVar[str]
    models_path: ClassVar[str] = "/models"
    dialect: ClassVar[Dialect]
    headers: ClassVar[Mapping[str, str]] = MappingProxyType({})
    refusable: ClassVar[Mapping[str, str]] = {}

    def __init__(self, setup: ProviderSetup) -> None:
        """Find the address; raise `TargetError` if it, a proxy or the certificates cannot be used."""
        super().__init__(setup)
        self.address = self.find_address()
        check_network(self.address, setup.environ)
        self.refused: defaultdict[str, set[str]] = defaultdict(set)

    # --- for subclasses to override -----------------------------------------------------------

    @property
    def is_own(self) -> bool:
        """Whether the provider has the class's own name, not the name of an ini line."""
        return self.setup.name == self.name

    def find_address(self) -> Address:
        """Return the server's address."""
        name, base_url = self.setup.name, self.setup.base_url
        if self.is_own and self.base_env and (base := self.setup.environ.get(self.base_env, "").strip()):
            return parse_address(base, source=self.base_env)
        if self.is_own:
            base_url = base_url or self.own_url
        if base_url is None:
            raise TargetError(f"{name}: no address. Add one to its line in openclaw_endpoints.")
        return parse_address(base_url, source=name)

    @property
    def key_env(self) -> str | None:
        """The environment variable with the key; an endpoint of the ini names it in its line."""
        if self.setup.key_env or not self.is_own:
            return self.setup.key_env
        given = [name for name in self.key_envs if self.setup.environ.get(name, "").strip()]
        return next(iter(given or self.key_envs), None)

    def key(self) -> str | None:
        """Return the key, which is read each time, so that no attribute contains it."""
        return self.setup.environ.get(self.key_env, "").strip() or None if self.key_env else None

    def key_headers(self, key: str) -> Mapping[str, str]:
        """Return the headers with the key."""
        bearer = {"authorization": f"Bearer {key}"}
        if not self.key_header:
            return bearer
        is_vendors = self.is_own or self.address.base_url == self.own_url
        return {self.key_header: key} | ({} if is_vendors else bearer)

    def route(self, request: Request) -> str:
        """Return the path that answers `request`, under the base URL."""
        del request
        return self.path

    def body(self, request: Request) -> JsonObject:
        """Return the JSON body for `request`, without the parts that the server refuses."""
        return self.dialect.body(request, self.refused[request.model])

    async def may_see(self, model: str) -> bool:
        """Whether the model takes images; this matters for a server that would answer without them."""
        del model  # most servers refuse an image that the model cannot see
        return True

    # --- for the asker and the run ------------------------------------------------------------

    async def ask(self, request: Request) -> Reply:
        """Send the request; if the server refuses parts of it, leave them out, now and in later requests."""
        if request.images and not await self.may_see(request.model):
            raise CallFailed(faults.sees_no_images(self.setup.name, request.model))
        while True:
            body, answer = self.body(request), Answer(streaming=request.stream)
            call = self.call(self.route(request), with_fields(body, request.fields), model=request.model)
            reader = AnswerBody(self.setup.name, request.model, self.dialect, answer)
            try:
                await self.http.send(call, reader, timeout_s=request.timeout_s)
            except CallFailed as failed:
                fault = failed.fault
                if fault.written:  # the server could not read a call; this is the model's text
                    return Reply(
                        text=fault.written,
                        raw=f"{fault.raw}{fault.written}",
                        finish_reason=MALFORMED_CALL,
                        timing=fault.timing,
                        usage=fault.usage,
                    )
                if self.adapt(request, body, fault):
                    continue
                if fault.status == "auth_error":
                    fault = replace(fault, message=f"{fault.message.rstrip('.')}. {self._key_hint}")
                raise CallFailed(fault) from None
            # The next request, which only a scripted exchange has, needs the carried parts.
            return answer.reply() if request.is_exchange else replace(answer.reply(), carried=())

    def adapt(self, request: Request, body: JsonObject, fault: Fault) -> bool:
        """Note the refused parts of `body`; return whether the next body will lack them."""
        refused = self.refused[request.model]
        kinds = ("http_400", "http_422", "no_tools")  # the last, if `tool_choice` is refused
        for part, words in self.refusable.items() if fault.failure_type in kinds else ():
            if re.search(words, fault.message, re.IGNORECASE):
                self.refused[request.model] = refused | {part}
                if self.body(request) != body:  # also if another request has noted the part meanwhile
                    return True
                self.refused[request.model] = refused
        return False

    @property
    def endpoint(self) -> str:
        """The server, whichever of its APIs is used."""
        return self.address.server

    @property
    def is_local(self) -> bool:
        """Whether the server is on this machine."""
        return self.address.is_loopback

    @property
    def is_free(self) -> bool:
        """Whether the server is on this machine."""
        return self.address.is_loopback

    @property
    def billed_at(self) -> str | None:
        """The base URL, unless it is in a private network."""
        return self.address.base_url if self.address.is_public else None

    @property
    def secrets(self) -> tuple[str, ...]:
        """The key and the address's user info."""
        key = self.key()
        return (*((key,) if key else ()), *self.address.secrets)

    def describe(self) -> JsonObject:
        """The address, the route and the name of the key's variable."""
        return {"base_url": self.address.base_url, "path": self.path, "key_env": self.key_env}

    async def models(self) -> tuple[str, ...]:
        """Names from the server's list."""
        entries = await self.listed_models()
        return tuple(name for entry in entries if (name := text_in(entry.get("id") or entry.get("name"))))

    async def listed_models(self) -> list[JsonObject]:
        """Return the entries of the server's list of models."""
        answer = await self.fetch(self.models_path, timeout_s=MODELS_TIMEOUT_S)
        if not ("data" in answer or "models" in answer):
            raise CallFailed(faults.malformed(self.setup.name, "it has no list of models"))
        listed = answer.get("data") or answer.get("models")  # null from Ollama without models
        return objects_in(listed)[:MOST_MODELS]

    # --- HTTP ---------------------------------------------------------------------------------

    @cached_property
    def http(self) -> HttpClient:
        """The connections; only the process that sends requests makes them and loads the HTTP library."""
        from pytest_openclaw.providers.http import HttpClient

        return HttpClient(self.setup.name)

    async def fetch(self, path: str, body: JsonObject | None = None, *, timeout_s: float) -> JsonObject:
        """Query the server about itself: GET, or POST with a body."""
        return await self.http.fetch(self.call(path, body), timeout_s=timeout_s)

    async def aclose(self) -> None:
        """Close the connections, if there are any."""
        if "http" in vars(self):
            await self.http.aclose()

    def call(self, path: str, body: JsonObject | None, *, model: str = "") -> HttpCall:
        """Return a request to a path under the base URL, or to a whole URL, with the key."""
        headers = {
            "content-type": "application/json",
            "accept": "application/json, text/event-stream, application/x-ndjson",
            **self.headers,
            **self._credentials(),
        }
        url = path if "://" in path else self.address.base_url + path
        return HttpCall(base_url=self.address.base_url, url=url, body=body, headers=headers, model=model)

    def _credentials(self) -> Mapping[str, str]:
        name, env = self.setup.name, self.key_env
        if key := self.key():
            if key.isascii() and key.isprintable():
                return self.key_headers(key)
            # The HTTP library would reject the key too, but print it.
            raise CallFailed(faults.auth_missing(name, f"{env} has characters that cannot be in a key."))
        if basic := self.address.basic_authorization():
            return {"authorization": basic}
        if (self.needs_key or self.setup.key_env) and not self.address.is_loopback:
            raise CallFailed(faults.auth_missing(name, f"there is no key. {self._key_hint}"))
        return {}

    @property
    def _key_hint(self) -> str:
        if not self.key_env:
            return "Name its variable as the last word of its line in openclaw_endpoints."
        return f"The key is in {self.key_env}." if self.key() else f"Set {self.key_env}."
