"""Collects hooks' results: providers, validators and reports by unique name; row and summary hooks."""

from __future__ import annotations

import dataclasses
import os
import re
from collections.abc import Callable, Mapping
from functools import partial
from typing import TYPE_CHECKING, Any, TypeVar

import pytest

from pytest_openclaw.providers import Builtin
from pytest_openclaw.util.errors import OpenClawError
from pytest_openclaw.util.files import JsonObject
from pytest_openclaw.values.protocols import Provider, ProviderSetup

if TYPE_CHECKING:
    import pluggy

    from pytest_openclaw.judging.registry import Registry
    from pytest_openclaw.reports.pages import Report
    from pytest_openclaw.runs.summaries import PluginHook, Plugins
    from pytest_openclaw.values.settings import Settings

T = TypeVar("T")
Classes = Mapping[str, type[Provider] | Builtin]

_REPORT_NAME = re.compile(r"[A-Za-z0-9][A-Za-z0-9_.-]{0,99}", re.ASCII)
_TAKEN_NAMES = re.compile(
    r"(config|inventory|summary)\.json|results\.jsonl|resources_.*\.txt|openclaw\.patch\.json5",
    re.IGNORECASE,
)
"""The files of a run, and those that a resumed run or a command reads."""


def provider_classes(config: pytest.Config) -> dict[str, type[Provider] | Builtin]:
    """Return every provider's class by its name; a built-in class is imported on first use.

    Raises:
        pytest.UsageError: a name is registered twice, or a class is not a provider.
    """

    def problem(provider: Any, name: object) -> str:
        is_class = isinstance(provider, Builtin) or Provider in getattr(provider, "__mro__", ())
        if not is_class or not isinstance(name, str) or not name or "/" in name:
            hint = "derive the class from pytest_openclaw.Provider, with a name without / and an async ask"
            return f"is not a provider: {hint}."
        has_ask = getattr(provider, "ask", None) is not Provider.ask
        return "" if has_ask else "has no ask; write async def ask(self, request) -> Reply."

    return {name: one for name, (_, one) in _registered(config, "provider", "name", problem).items()}


def validator_registry(config: pytest.Config) -> Registry:
    """Return every validator by its type.

    Raises:
        pytest.UsageError: a type is registered twice, or a class is not a validator.
    """

    def problem(validator: Any, name: object) -> str:
        can_check = dataclasses.is_dataclass(validator) and callable(getattr(validator, "check", None))
        if isinstance(validator, type) and isinstance(name, str) and can_check:
            return ""
        hint = 'write a frozen dataclass with `type: ClassVar[str] = "my_rule"` and a method check(reply)'
        return f"is not a validator: {hint}."

    return {name: one for name, (_, one) in _registered(config, "validator", "type", problem).items()}


def reports_of(config: pytest.Config) -> tuple[tuple[str, Report], ...]:
    """Return plugin name and report of each report, in the order in which they are written.

    Raises:
        pytest.UsageError: a name is registered twice or is not a file name, or a class is not a report.
    """

    def problem(report: Any, name: object) -> str:
        if not isinstance(name, str) or not callable(getattr(report, "render", None)):
            return "is not a report: it needs a name and a render(summary)."
        is_free = _REPORT_NAME.fullmatch(name) and not _TAKEN_NAMES.fullmatch(name)
        return "" if is_free else f"cannot be named {name!r}; give a plain file name, such as tiers.csv."

    return tuple(_registered(config, "report", "name", problem).values())


def _registered(
    config: pytest.Config, what: str, key: str, problem: Callable[[Any, object], str]
) -> dict[str, tuple[str, Any]]:
    """Return what plugins register through a hook, each with the name of its plugin.

    The result is in order, by the attribute `key`, which ignores case, as some file systems do. `problem`
    returns the rest of an error about a wrong item.
    """
    hook: pluggy.HookCaller = getattr(config.hook, f"pytest_openclaw_{what}s")
    claimants: dict[str, str] = {}
    found: dict[str, tuple[str, Any]] = {}
    for implementation in hook.get_hookimpls():  # a call of the hook does not return the plugins
        claimant, returned = implementation.plugin_name, implementation.function()
        if not isinstance(returned, list | tuple):
            raise pytest.UsageError(
                f"{claimant}: {hook.name} returned {returned!r}, not a list of classes."
                " Write for example `return [MyClass]`, or `return []` for none."
            )
        for item in returned:
            value = _made(claimant, item) if what == "report" and isinstance(item, type) else item
            name: Any = getattr(value, key, None)
            if why := problem(value, name):
                raise pytest.UsageError(f"{claimant}: {item!r} {why}")
            if other := claimants.get(name.lower()):
                both = f"{other} and by {claimant}"
                raise pytest.UsageError(f"the {what} {name!r} is claimed by {both}; rename one.")
            claimants[name.lower()] = claimant
            found[name] = claimant, value
    return found


def _made(owner: str, cls: Callable[..., T], *arguments: object) -> T:
    try:
        return cls(*arguments)
    except OpenClawError as error:
        raise pytest.UsageError(str(error)) from None
    except Exception as error:
        what = f"{type(error).__name__}: {error}"
        raise pytest.UsageError(f"{owner}: {getattr(cls, '__name__', cls)} cannot be made: {what}") from error


def plugins_of(config: pytest.Config, clean: Callable[[Any], Any] = lambda value: value) -> Plugins:
    """Return the reports and hooks that the plugins of a session add to a run.

    Raises:
        pytest.UsageError: see `reports_of`.
    """
    from pytest_openclaw.runs.summaries import Plugins

    def hooks(hook: pluggy.HookCaller, argument: str) -> tuple[PluginHook, ...]:
        def see(one: pluggy.HookImpl, value: object) -> Any:
            return one.function(*({argument: value, "config": config}[name] for name in one.argnames))

        # In pytest's order, but called one by one, so that an error in a hook does not affect the others.
        return tuple((one.plugin_name, partial(see, one)) for one in reversed(hook.get_hookimpls()))

    return Plugins(
        reports=reports_of(config),
        row_hooks=hooks(config.hook.pytest_openclaw_record, "row"),
        summary_hooks=hooks(config.hook.pytest_openclaw_summary, "records"),
        clean=clean,
    )


def make_providers(classes: Classes, settings: Settings) -> dict[str, Provider]:
    """Return the providers of this run's targets.

    Raises:
        pytest.UsageError: an address is invalid, or a plugin's class is broken.
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
        )
        providers[name] = _made(f"provider {name}", classes[endpoint.kind if endpoint else name], setup)
    return providers


def describe(providers: Mapping[str, Provider]) -> dict[str, JsonObject]:
    """Return the settings that shape a request, by provider; no secrets."""
    return {
        name: {
            "kind": type(provider).name,
            **({"is_openclaw": True} if provider.is_openclaw else {}),
            **provider.describe(),
        }
        for name, provider in providers.items()
    }
