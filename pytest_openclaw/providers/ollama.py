"""What the two ways of asking Ollama have in common: where it is, its key, and that it loads models."""

from __future__ import annotations

from typing import ClassVar

from pytest_openclaw.providers.address import Address, parse_address, parse_ollama_host
from pytest_openclaw.providers.over_http import OverHttp

DEFAULT_BASE_URL = "http://127.0.0.1:11434/v1"
NAMES = frozenset({"ollama_openai", "ollama_native"})
"""The providers that are Ollama itself; under any other name it is a server of the user's."""


class Ollama(OverHttp):
    """Ollama by one of its APIs; under a name of the user's, any server with that API.

    The address is the one in `base_env`, else `OLLAMA_HOST`, else the ini's, else Ollama's default; an
    endpoint of the user's has the one of its ini line. A key is sent if `OLLAMA_API_KEY`, or the variable
    that the line names, is set.

    Attributes:
        base_env: the variable that goes before `OLLAMA_HOST`.
    """

    warms_up: ClassVar[bool] = True
    base_env: ClassVar[str | None] = None

    def find_address(self) -> Address:
        """Return where the server is."""
        if self.setup.name not in NAMES:
            return super().find_address()
        environ = self.setup.environ
        if self.base_env and (base := environ.get(self.base_env, "").strip()):
            return parse_address(base, source=self.base_env)
        if host := environ.get("OLLAMA_HOST", "").strip():
            return parse_ollama_host(host)
        return parse_address(self.setup.base_url or DEFAULT_BASE_URL, source=self.setup.name)

    @property
    def key_env(self) -> str | None:
        """The key's variable, if there is one; Ollama on this machine needs none."""
        return self.setup.key_env or ("OLLAMA_API_KEY" if self.setup.name in NAMES else None)

    @property
    def is_local(self) -> bool:
        """Whether the endpoint is on this machine, as Ollama itself is taken to be."""
        return self.setup.name in NAMES or super().is_local
