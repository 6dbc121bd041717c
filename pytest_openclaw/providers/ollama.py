"""The common base of the two providers of Ollama: address, key, warm-up, and the form of tools."""

from __future__ import annotations

from typing import TYPE_CHECKING, ClassVar

from pytest_openclaw.providers.address import Address, parse_address, parse_ollama_host
from pytest_openclaw.providers.over_http import MODELS_TIMEOUT_S, OverHttp
from pytest_openclaw.values.faults import CallFailed

if TYPE_CHECKING:
    from pytest_openclaw.util.json_types import JsonObject
    from pytest_openclaw.values.protocols import ProviderSetup
    from pytest_openclaw.values.tool_calls import Tool

DEFAULT_BASE_URL = "http://127.0.0.1:11434/v1"
NAMES = frozenset({"ollama_openai", "ollama_native"})
"""The providers of Ollama itself; any other name is an endpoint of the user's."""


def offered(tool: Tool) -> JsonObject:
    """Return a tool as both APIs are offered it."""
    function = {"name": tool.name, "description": tool.description, "parameters": dict(tool.parameters)}
    return {"type": "function", "function": function}


class Ollama(OverHttp):
    """Ollama through one of its APIs; as an endpoint of the user's, any server with that API.

    The address is the one in `base_env`, else `OLLAMA_HOST`, else the ini's, else Ollama's default; an
    endpoint of the user's has the one of its ini line. A key is sent if `OLLAMA_API_KEY`, or the variable
    that the line names, is set.

    Attributes:
        base_env: the variable with precedence over `OLLAMA_HOST`.

    """

    warms_up: ClassVar[bool] = True
    base_env: ClassVar[str | None] = None

    def __init__(self, setup: ProviderSetup) -> None:
        super().__init__(setup)
        self._sees: dict[str, bool] = {}

    def find_address(self) -> Address:
        """Return the server's address."""
        if self.setup.name not in NAMES:
            return super().find_address()
        environ = self.setup.environ
        if self.base_env and (base := environ.get(self.base_env, "").strip()):
            return parse_address(base, source=self.base_env)
        if host := environ.get("OLLAMA_HOST", "").strip():
            return parse_ollama_host(host)
        return parse_address(self.setup.base_url or DEFAULT_BASE_URL, source=self.setup.name)

    async def may_see(self, model: str) -> bool:
        """Whether a model takes pictures, as far as Ollama says.

        It leaves out the pictures for many a model without vision, and has it answer nevertheless:
        https://github.com/ollama/ollama/pull/9741 is for its own engine alone.
        """
        if self.address.is_public and self.setup.name not in NAMES:
            return True
        if model not in self._sees:
            url = f"{self.address.root_url.removesuffix('/api')}/api/show"
            try:
                shown = await self.fetch(url, {"model": model}, timeout_s=MODELS_TIMEOUT_S)
            except CallFailed:  # no Ollama, or without this model, which the request will say
                return True
            capabilities = shown.get("capabilities")
            self._sees[model] = not isinstance(capabilities, list) or "vision" in capabilities
        return self._sees[model]

    @property
    def key_env(self) -> str | None:
        """The variable of the key; Ollama on this machine needs none."""
        return self.setup.key_env or ("OLLAMA_API_KEY" if self.setup.name in NAMES else None)

    @property
    def is_local(self) -> bool:
        """Whether the endpoint is on this machine; Ollama itself always counts as local."""
        return self.setup.name in NAMES or super().is_local
