"""A run that is resumed: found, locked and read, and the command that continues it."""

from __future__ import annotations

import re
import shlex
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

import pytest

from pytest_openclaw.options import options_given
from pytest_openclaw.util.errors import OpenClawError

if TYPE_CHECKING:
    from collections.abc import Collection, Mapping, Sequence
    from contextlib import ExitStack

    from pytest_openclaw.runs.directory import RunDirectory
    from pytest_openclaw.runs.reading import StoredRun
    from pytest_openclaw.runs.resume import Plan, Replay
    from pytest_openclaw.values.requests import CellKey
    from pytest_openclaw.values.settings import Settings

# Options that a resumed run keeps itself, and those that would end it at the first replayed verdict.
DROPPED = ("--openclaw-models", "--openclaw-providers", "--openclaw-thinking", "--openclaw-run-id",
           "--openclaw-resume", "--maxfail")  # fmt: skip
STOPPING = {"-x", "--exitfirst", "--sw", "--stepwise", "--stepwise-skip", "--sw-skip"}


@dataclass(frozen=True, kw_only=True)
class ResumedRun:
    """The run that this session continues, as earlier sessions left it.

    Attributes:
        settings: of this session, with those that the run keeps.
        kept: the kept verdicts, by cell.
        directory: locked until the session ends; None if the session writes nothing.
    """

    earlier: StoredRun
    settings: Settings
    kept: Mapping[CellKey, Replay]
    directory: RunDirectory | None = None

    def refuse_changes(self, plan: Plan, settings: Settings) -> None:
        """Reject a session that would change the definition of the run.

        Raises:
            pytest.UsageError: something differs; the message lists it.
        """
        from pytest_openclaw.runs.resume import find_changes, refusal

        if changes := find_changes(self.earlier.config, self.kept, plan, settings):
            raise pytest.UsageError(refusal(self.earlier.run_id, changes))


def resume_run(
    config: pytest.Config, settings: Settings, providers: Collection[str], stack: ExitStack, *, writes: bool
) -> ResumedRun:
    """Return the run to resume; if the session writes, it is locked until the stack is closed.

    Raises:
        pytest.UsageError: there is no such run, it cannot be read, another session is running it, or the
            command line selects another one.
    """
    from pytest_openclaw.runs.directory import RunDirectory
    from pytest_openclaw.runs.reading import find_run, load_run
    from pytest_openclaw.runs.resume import other_targets, refusal, replays_of, settings_of

    try:
        path = find_run(settings.runs_dir, settings.resume)
        directory = stack.enter_context(RunDirectory.reopen(path)) if writes else None
        earlier = load_run(path, even_active=True)
        if settings.run_id_given and settings.run_id != path.name:
            wanted = f"--openclaw-run-id={settings.run_id}"
            raise OpenClawError(f"the run is {path.name}, and {wanted} another one; leave that out")
        if gone := [target.label for target in earlier.n_selected if target.provider not in providers]:
            there_are = ", ".join(sorted(providers))
            what = f"the run asked {gone[0]}, and there is no such provider now"
            raise OpenClawError(f"{what}; there are {there_are}")
    except (OpenClawError, OSError) as error:
        raise pytest.UsageError(f"--openclaw-resume={settings.resume}: {error}.") from None
    if settings.targets and (changes := other_targets(earlier.config, settings.targets)):
        raise pytest.UsageError(refusal(path.name, [f"--openclaw-models: {change}" for change in changes]))
    recorded = settings_of(earlier.config, settings, options_given(config))
    return ResumedRun(
        earlier=earlier,
        settings=replace(recorded, run_id=path.name),
        kept=replays_of(earlier),
        directory=directory,
    )


def resume_command(args: Sequence[str], run_id: str) -> str:
    """Return the command that continues a run: this session's own, for the same cells."""
    kept: list[str] = []
    words = iter(args)
    for word in words:
        name, has_value, _ = word.partition("=")
        if name in DROPPED:
            if not has_value:
                next(words, None)
        elif word not in STOPPING:
            # Combined switches of pytest, such as -xq.
            bundle = re.fullmatch(r"-[xvqsl]+", word)
            kept += [word.replace("x", "")] if bundle else [word]
    return shlex.join(["pytest", *kept, f"--openclaw-resume={run_id}"])
