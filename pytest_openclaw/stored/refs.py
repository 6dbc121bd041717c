"""Finds OpenClaw's names for the targets of a stored run, and whether they are served locally."""

from __future__ import annotations

import ipaddress
import re
from dataclasses import dataclass
from typing import TYPE_CHECKING
from urllib.parse import urlsplit

from pytest_openclaw.core.errors import OpenClawError
from pytest_openclaw.providers.address import is_loopback
from pytest_openclaw.types.targets import OPENCLAW_ITSELF

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

    from pytest_openclaw.core.json_types import JsonObject
    from pytest_openclaw.types.targets import Target

OPENCLAW_PROVIDERS = {
    "ollama_native": "ollama",
    "ollama_openai": "ollama",
    "openai_responses": "openai",
    "anthropic_messages": "anthropic",
    "gemini": "google",
    "claude_code_cli": "anthropic",
}
PROVIDER_ID = re.compile(r"[A-Za-z0-9][A-Za-z0-9._-]*")
"""A provider's name in OpenClaw, which ends before the first `/` of a ref."""
ELSEWHERE = frozenset({"openai_responses", "anthropic_messages", "gemini", "claude_code_cli"})
"""Kinds that are not local if no address is known."""
_REMARKS = {
    "ollama_openai": "it was asked at /v1, and OpenClaw asks Ollama at /api/chat: ask ollama_native too; if "
    "this is no Ollama, name OpenClaw's provider by --provider ollama_openai=NAME",
    "claude_code_cli": "it was asked through the Claude CLI; run by OpenClaw through that CLI, the CLI's own "
    "tools ignore the policies of OpenClaw",
    "llama_cpp": "the embedded engine is no provider of OpenClaw; if one of its own serves this model, name "
    "it by --provider llama_cpp=NAME",
}


@dataclass(frozen=True, kw_only=True)
class Ref:
    """A target's name in OpenClaw.

    Attributes:
        name: `provider/model`; None if there is none.
        is_local: whether it is served on this machine or network, or at an unknown place.
        rank: 1 if OpenClaw reaches this provider in another way, else 0.
        remarks: what to check about the name.
    """

    name: str | None
    is_local: bool
    rank: int = 0
    remarks: tuple[str, ...] = ()


def check_overrides(overrides: Mapping[str, str], targets: Mapping[Target, object]) -> None:
    """Reject a name for a provider that the run has not used.

    Raises:
        OpenClawError: there is such a name; the message lists the run's providers.
    """
    asked = sorted({target.provider for target in targets})
    for ours, theirs in overrides.items():
        if ours not in asked:
            known = ", ".join(asked)
            raise OpenClawError(f"--provider {ours}={theirs}: the run has no provider {ours}; it has {known}")


def ref_of(target: Target, config: JsonObject, overrides: Mapping[str, str]) -> Ref:
    """Return the name of a target.

    Args:
        target: of the run.
        config: the run's `config.json`.
        overrides: our provider → OpenClaw's, as set by the user.
    """
    ours = target.provider
    is_local = _is_local(ours, config)
    if ours in overrides:
        return Ref(name=f"{overrides[ours]}/{target.model}", is_local=is_local, rank=_rank(ours))
    if ours == OPENCLAW_ITSELF:
        return Ref(name=target.model, is_local=is_local, rank=_rank(ours))
    remarks = (_REMARKS[ours],) if ours in _REMARKS else ()
    if theirs := OPENCLAW_PROVIDERS.get(ours):
        name = f"{theirs}/{target.model}"
        return Ref(name=name, is_local=is_local, rank=_rank(ours), remarks=remarks)
    if remarks:
        return Ref(name=None, is_local=is_local, remarks=remarks)
    if not PROVIDER_ID.fullmatch(ours):
        remark = f"{ours} can be no provider's name there; give one by --provider {ours}=NAME"
        return Ref(name=None, is_local=is_local, remarks=(remark,))
    remark = (
        f"{ours} is the name in this run; if OpenClaw's provider has another, give --provider {ours}=NAME"
    )
    return Ref(name=f"{ours}/{target.model}", is_local=is_local, remarks=(remark,))


def _rank(provider: str) -> int:
    return int(provider in ("ollama_openai", "claude_code_cli"))


def _is_local(provider: str, config: JsonObject) -> bool:
    described = list(_described(provider, config))
    addresses = [url for one in described if isinstance(url := one.get("base_url"), str)]
    if addresses:
        return any(map(_is_near, addresses))
    kinds = {one.get("kind") or provider for one in described} or {provider}
    return not kinds <= ELSEWHERE


def _described(provider: str, config: JsonObject) -> Iterator[JsonObject]:
    """Yield a run's settings of a provider; of a merged run, those of each part."""
    for one in config.get("parts") or (config,):
        found = one["providers"].get(provider)
        if isinstance(found, dict):
            yield found


def _is_near(url: str) -> bool:
    try:
        host = urlsplit(url).hostname or ""
    except ValueError:
        return True
    try:
        return is_loopback(host) or ipaddress.ip_address(host.partition("%")[0]).is_private
    except ValueError:  # a host name: without a dot, or of the local network, it is local
        return "." not in host.rstrip(".") or host.rstrip(".").endswith((".local", ".lan", ".internal"))
