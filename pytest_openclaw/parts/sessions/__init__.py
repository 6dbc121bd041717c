"""An owner's own history as cells: each step of the model in a session that OpenClaw has recorded."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any

from pytest_openclaw.options import lookup

if TYPE_CHECKING:
    import pytest

    from pytest_openclaw.conclusions.summary import SummaryPart
    from pytest_openclaw.values.prompts import Cell, Suite
    from pytest_openclaw.values.protocols import Provider
    from pytest_openclaw.values.rows import Record


def pytest_openclaw_suite(path: Path, config: pytest.Config) -> Callable[[str], Suite] | None:
    """Read the file of a recorded session as a suite of its steps."""
    if path.name != "manifest.json" and path.suffix != ".jsonl":
        return None
    from pytest_openclaw.parts.sessions.prompts import is_session, read_session

    if not is_session(path):
        return None
    return partial(read_session, path, is_replay=lookup(config, "sessions")[0] == "replay")


def pytest_openclaw_begin(
    cells: Sequence[Cell], providers: Mapping[str, Provider], config: pytest.Config
) -> None:
    """Refuse providers that cannot replay, and without permission those not on this machine."""
    private = [cell for cell in cells if cell.prompt.is_private]
    if private:
        from pytest_openclaw.parts.sessions.prompts import check_providers

        check_providers(private, providers, may_leave=bool(lookup(config, "sessions-may-leave")[0]))


def pytest_openclaw_summary(records: Sequence[Record]) -> SummaryPart | None:
    """Add how often each target agrees with the sessions."""
    from pytest_openclaw.parts.sessions.figures import agreement_of

    return agreement_of(records)


def __getattr__(name: str) -> Any:
    """Import the commands with the command line, and not with every pytest session."""
    if name != "COMMANDS":
        raise AttributeError(name)
    from pytest_openclaw.parts.sessions.commands import COMMANDS

    return COMMANDS
