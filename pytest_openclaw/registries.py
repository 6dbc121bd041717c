"""What the hooks brought: providers and validators by name, a name claimed once."""

from __future__ import annotations

import os
from typing import TYPE_CHECKING, Any

import pytest

from pytest_openclaw.errors import OpenClawError
from pytest_openclaw.protocols import Provider, ProviderSetup
from pytest_openclaw.providers import Builtin

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping
    from pathlib import Path

    import pluggy

    from pytest_openclaw.settings import Settings
    from pytest_openclaw.validators.registry import Registry


def provider_classes(config: pytest.Config) -> dict[str, type[Provider] | Builtin]:
    """Return every provider's class by its name; a built-in one's is imported when it is called.

    Raises:
        pytest.UsageError: a name is claimed twice, or something is no provider.
    """
    claimed: dict[str, tuple[str, type[Provider] | Builtin]] = {}
    provider: type[Provider] | Builtin
    for claimant, provider in _claims(config.hook.pytest_openclaw_providers):
        name = getattr(provider, "name", None)
        can_ask = isinstance(provider, Builtin) or callable(getattr(provider, "ask", None))
        if not isinstance(name, str) or not name or "/" in name or not can_ask:
            raise pytest.UsageError(
                f"{claimant}: {provider!r} is no provider: it needs a name without / and an async ask."
            )
        if name in claimed:
            raise pytest.UsageError(
                f"the provider {name!r} is claimed by {claimed[name][0]} and by {claimant}; rename one."
            )
        claimed[name] = (claimant, provider)
    return {name: provider for name, (_, provider) in claimed.items()}


def validator_registry(config: pytest.Config) -> Registry:
    """Return every validator by its type.

    Raises:
        pytest.UsageError: a type is claimed twice.
    """
    from pytest_openclaw.validators.registry import build_registry

    try:
        return build_registry(_claims(config.hook.pytest_openclaw_validators))
    except OpenClawError as error:
        raise pytest.UsageError(str(error)) from None


def make_providers(
    classes: Mapping[str, type[Provider] | Builtin], settings: Settings, shared_dir: Path
) -> dict[str, Provider]:
    """Return the providers that this run's targets name, ready to be asked.

    Raises:
        pytest.UsageError: the address of one cannot be used.
    """
    endpoints = {endpoint.name: endpoint for endpoint in settings.endpoints}
    providers: dict[str, Provider] = {}
    for name in dict.fromkeys(target.provider for target in settings.targets):
        endpoint = endpoints.get(name)
        setup = ProviderSetup(
            name=name,
            base_url=endpoint.base_url if endpoint else None,
            key_env=endpoint.key_env if endpoint else None,
            environ=os.environ,
            options=settings.provider_options,
            shared_dir=shared_dir,
        )
        try:
            providers[name] = classes[endpoint.kind if endpoint else name](setup)
        except OpenClawError as error:
            raise pytest.UsageError(str(error)) from None
    return providers


def _claims(hook: pluggy.HookCaller) -> Iterable[tuple[str, Any]]:
    """Each class with the name of the plugin that brought it, which a hook call would not tell."""
    for implementation in hook.get_hookimpls():
        brought = implementation.function()
        if not isinstance(brought, list | tuple | None):
            raise pytest.UsageError(
                f"{implementation.plugin_name}: {hook.name} returned {brought!r}, not a list of classes."
            )
        for item in brought or ():
            yield implementation.plugin_name, item
