"""Features: each module contains all of one feature: its numbers, texts and command.

To remove a feature, delete its module and its name in `BUILTIN`; nothing outside this folder imports it.
"""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, NamedTuple

if TYPE_CHECKING:
    import pytest

    from pytest_openclaw.session.owner import Owner


class Feature(NamedTuple):
    """The parts that a feature adds.

    Attributes:
        commands: the names of the commands that the module has in `COMMANDS`.
        setting: the setting with which a session calls the module's `join_session(owner, config)`.
        is_plugin: whether the module has hooks; if so, every pytest session imports it.
    """

    commands: tuple[str, ...] = ()
    setting: str = ""
    is_plugin: bool = False


BUILTIN = {
    "capture": Feature(commands=("capture-tools",)),
    "comparison": Feature(commands=("compare",)),
    "diagnosing": Feature(setting="diagnose"),
    "dry_run": Feature(setting="dry_run"),
    "export": Feature(commands=("export",)),
    "gates": Feature(commands=("gate",)),
    "history": Feature(commands=("history",)),
    "merging": Feature(commands=("merge",)),
    "pages": Feature(commands=("report",), setting="report"),
    "pinchbench": Feature(is_plugin=True),
    "rescoring": Feature(commands=("rescore",)),
    "routing": Feature(commands=("route",)),
}


def register(pluginmanager: pytest.PytestPluginManager) -> None:
    """Register the features that have hooks."""
    for name, feature in BUILTIN.items():
        if feature.is_plugin:
            pluginmanager.register(import_module(f"{__name__}.{name}"), f"openclaw-{name}")


def join_session(owner: Owner, config: pytest.Config) -> None:
    """Add the features that the settings switch on to a session."""
    for name, feature in BUILTIN.items():
        if feature.setting and getattr(owner.settings, feature.setting):
            import_module(f"{__name__}.{name}").join_session(owner, config)
