"""A run that is resumed, as the session meets it: found, held, and the command that goes on with it."""

from __future__ import annotations

import re
import shlex
from dataclasses import replace
from typing import TYPE_CHECKING

import pytest

from pytest_openclaw.core.errors import OpenClawError
from pytest_openclaw.options import options_given

if TYPE_CHECKING:
    from collections.abc import Collection, Mapping, Sequence
    from contextlib import ExitStack
    from pathlib import Path

    from pytest_openclaw.core.json_types import JsonObject
    from pytest_openclaw.recording.kept_cells import Replay
    from pytest_openclaw.recording.run_directory import RunDirectory
    from pytest_openclaw.recording.run_session import Plan, ResumedRun
    from pytest_openclaw.types.prompts import Prompt
    from pytest_openclaw.types.settings import Settings
    from pytest_openclaw.types.targets import CellKey

# What a resumed run has of its own, and what would end it at the first verdict that it tells again.
DROPPED = ("--openclaw-models", "--openclaw-providers", "--openclaw-thinking", "--openclaw-run-id",
           "--openclaw-resume", "--maxfail")  # fmt: skip
STOPPING = {"-x", "--exitfirst", "--sw", "--stepwise", "--stepwise-skip", "--sw-skip"}


class Resumption:
    """The run that this session goes on with; in most sessions there is none.

    A controller, or a plain session, finds the run and holds its lock; a worker is handed what it must know.

    Args:
        config: pytest's.
        settings: what options and ini file say; targets are those of the command line.
        providers: names of those that there are.
        handed_over: to a worker, by `for_workers`.

    Attributes:
        path: the run's directory, in the process that found it; None everywhere else.
        settings: this session's, with what the run was begun with.
        replays: the verdicts that are kept, by cell; there from `open` on.

    Raises:
        pytest.UsageError: there is no such run, or the command line wants another one.
    """

    def __init__(
        self,
        config: pytest.Config,
        settings: Settings,
        providers: Collection[str],
        handed_over: JsonObject | None,
    ) -> None:
        self.settings = settings
        self.path: Path | None = None
        self.directory: RunDirectory | None = None
        self.earlier: ResumedRun | None = None
        self.replays: Mapping[CellKey, Replay] = {}
        self._handed_over = handed_over
        if handed_over:
            from pytest_openclaw.stored.resume import from_wire

            self.settings = replace(settings, **handed_over["settings"])
            self.replays = from_wire(handed_over["replays"])
        elif settings.resume and not hasattr(config, "workerinput"):
            self._find(config, providers)

    def open(self, stack: ExitStack) -> None:
        """Take the run's lock, until the stack is closed, and read what it keeps; nothing is written yet.

        Raises:
            pytest.UsageError: it lives in another session, or cannot be read.
        """
        from pytest_openclaw.recording.run_directory import RunDirectory

        if self.path is None:
            return
        try:
            self.directory = stack.enter_context(RunDirectory.reopen(self.path))
        except (OpenClawError, OSError) as error:
            raise pytest.UsageError(f"--openclaw-resume={self.path.name}: {error}") from None
        self.look()

    def look(self) -> None:
        """Read what the run keeps, whoever holds it.

        Raises:
            pytest.UsageError: it cannot be read.
        """
        from pytest_openclaw.recording.run_directory import RESULTS
        from pytest_openclaw.recording.run_session import ResumedRun
        from pytest_openclaw.stored.reading import load_config, load_inventory
        from pytest_openclaw.stored.resume import read_kept

        if self.path is None:
            return
        try:
            self.earlier = ResumedRun(
                config=load_config(self.path),
                inventory=load_inventory(self.path),
                kept=read_kept(self.path / RESULTS),
            )
        except (OpenClawError, OSError) as error:
            raise pytest.UsageError(f"--openclaw-resume={self.path.name}: {error}") from None
        self.replays = self.earlier.kept.replays

    def refuse_changes(self, plan: Plan, settings: Settings) -> None:
        """Refuse a session that would not go on with the run as it was begun.

        Raises:
            pytest.UsageError: names everything that differs.
        """
        from pytest_openclaw.stored.resume import find_changes, refusal

        if self.path is None or (earlier := self.earlier) is None:
            return
        if changes := find_changes(earlier.config, plan, settings, earlier.kept):
            raise pytest.UsageError(refusal(self.path.name, changes))

    def for_workers(self) -> JsonObject | None:
        """Return what a worker must know: verdicts, and never the answers; None if no run is resumed."""
        from pytest_openclaw.stored.resume import python_prompts, to_wire

        if self.earlier is None:
            return None
        chosen = ("run_id", "stream", "fail_unavailable", "repeat", "until_conclusive")
        return {
            "settings": {name: getattr(self.settings, name) for name in chosen},
            "replays": to_wire(self.replays),
            "prompts": python_prompts(self.earlier.config),
        }

    def change_of(self, prompt: Prompt) -> str | None:
        """Return in a worker how a Python benchmark differs from the run's; its controller cannot tell."""
        from pytest_openclaw.stored.resume import changed_keys, refusal, tell_changed
        from pytest_openclaw.suites import definition
        from pytest_openclaw.suites.keywords import base_id

        for began in self._handed_over["prompts"] if self._handed_over else ():
            if (began["suite"], base_id(began["id"])) != (prompt.suite, prompt.id):
                continue
            if keys := changed_keys(began, definition(prompt)):
                return refusal(self.settings.run_id, [tell_changed(began, keys)])
        return None

    def _find(self, config: pytest.Config, providers: Collection[str]) -> None:
        from pytest_openclaw.stored.reading import find_run, load_config
        from pytest_openclaw.stored.resume import other_targets, refusal, settings_of, targets_of

        settings = self.settings
        given = options_given(config)
        try:
            path = find_run(settings.runs_dir, settings.resume)
            began = load_config(path)
            if settings.run_id_given and settings.run_id != path.name:
                wanted = f"--openclaw-run-id={settings.run_id}"
                raise OpenClawError(f"the run is {path.name}, and {wanted} another one; leave that out")
            for target in targets_of(began):
                if target.provider not in providers:
                    there_are = ", ".join(sorted(providers))
                    what = f"the run asked {target.label}, and there is no such provider now"
                    raise OpenClawError(f"{what}; there are {there_are}")
            if settings.targets and (changes := other_targets(began, settings.targets)):
                told = [f"--openclaw-models: {change}" for change in changes]
                raise pytest.UsageError(refusal(path.name, told))
            self.settings = replace(settings_of(began, settings, given), run_id=path.name)
        except OpenClawError as error:
            raise pytest.UsageError(f"--openclaw-resume={settings.resume}: {error}.") from None
        self.path = path


def resume_command(args: Sequence[str], run_id: str) -> str:
    """Return the command that goes on with a run: this session's own, for the same cells.

    Args:
        args: the command line of this session, without the program.
        run_id: the run's.
    """
    kept: list[str] = []
    words = iter(args)
    for word in words:
        name, has_value, _ = word.partition("=")
        if name in DROPPED:
            if not has_value:
                next(words, None)
        elif word not in STOPPING:
            # A bundle of pytest's switches, such as -xq.
            bundle = re.fullmatch(r"-[xvqsl]+", word)
            kept += [word.replace("x", "")] if bundle else [word]
    return shlex.join(["pytest", *kept, f"--openclaw-resume={run_id}"])
