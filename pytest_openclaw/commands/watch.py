"""Ask a small suite on a schedule, and say when a model got worse.

Each invocation, from cron or a systemd timer, runs pytest once with the words
after --, and compares the run with the pooled runs of the baseline. The first
runs are the baseline. After them the newest 1, 2, 4 … 32 runs together are
compared with it, prompt by prompt: passed cells, unsafe calls, and with
--slower times. Where nothing changes, at most --false-alarms-per-month runs in
a month are called worse.

The state is NAME.watch.json in the folder of runs. What was found remains
until --acknowledge or --new-baseline.

Exit status: 0 nothing found, 1 something got worse, 10 no verdict (not
answered, changed since the baseline, or the earlier invocation still runs),
4 an error.

Example:
  pytest-openclaw watch --every 1h -- benchmarks/prompts_core.toml
  pytest-openclaw watch --every 1h --on-worse ./page.sh -- benchmarks/
  pytest-openclaw watch --status
  pytest-openclaw watch --acknowledge
"""

from __future__ import annotations

import json
import os
import re
import shlex
import subprocess
import sys
from dataclasses import replace
from datetime import datetime
from typing import TYPE_CHECKING

from pytest_openclaw.commands.result import (
    CommandResult,
    add_across,
    add_runs_dir,
    in_lines,
    or_argument_error,
    run_paths,
)
from pytest_openclaw.core.errors import OpenClawError
from pytest_openclaw.types.settings import parse_run_id

if TYPE_CHECKING:
    import argparse
    from collections.abc import Sequence
    from pathlib import Path

    from pytest_openclaw.stats.watching import Watched
    from pytest_openclaw.stored.watched_runs import WatchRules

STATUS = {"worse": 1, "no_verdict": 10, "collecting": 0, "not_worse": 0}
FEWEST_RUNS = 5
_DURATION = re.compile(r"(\d+(?:\.\d+)?)(s|min|m|h|d)")
_SECONDS = {"s": 1, "min": 60, "m": 60, "h": 3600, "d": 86_400}
_STDERR = 2  # stdout has the result alone
_TESTS_RAN = (0, 1, 10)
"""Exit status of pytest: passed, some failed, a gate without a verdict."""


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Add the arguments of `watch`."""
    parser.add_argument("words", nargs="*", metavar="-- ARGUMENT", help="the arguments of pytest, after --")
    parser.add_argument(
        "--name",
        type=or_argument_error(parse_run_id),
        default="watch",
        help="of the watch; its run ids begin with it (watch)",
    )
    parser.add_argument(
        "--every",
        type=or_argument_error(_duration),
        metavar="TIME",
        help="the schedule, such as 30min, 1h or 1d (the usual time between its runs)",
    )
    parser.add_argument(
        "--false-alarms-per-month",
        type=or_argument_error(_positive),
        default=0.1,
        metavar="N",
        help="expected at most where nothing changes, over all targets (0.1)",
    )
    parser.add_argument(
        "--baseline",
        type=or_argument_error(_size),
        default=20,
        metavar="N",
        help=f"how many runs it has, {FEWEST_RUNS} or more (20)",
    )
    parser.add_argument(
        "--slower",
        type=or_argument_error(_factor),
        metavar="FACTOR",
        help="times are worse if they are shown to have grown by more than this, such as 1.5",
    )
    parser.add_argument(
        "--on-worse",
        type=or_argument_error(_command),
        metavar="COMMAND",
        help="a program with arguments, called without a shell when something new is found",
    )
    add_across(parser)
    group = parser.add_mutually_exclusive_group()
    group.add_argument("--status", action="store_true", help="show the state and ask nothing")
    group.add_argument(
        "--acknowledge", action="store_true", help="forget what was found, keep the baseline, ask nothing"
    )
    group.add_argument(
        "--new-baseline",
        nargs="?",
        const="",
        metavar="RUNS",
        help="begin with an empty baseline, or take these runs (a glob of ids); ask nothing",
    )
    add_runs_dir(parser)


def run(arguments: argparse.Namespace) -> CommandResult:
    """Ask once and compare; or change or show the state."""
    from pytest_openclaw.core.files import check_regular
    from pytest_openclaw.core.locks import LockFile

    runs_dir: Path = arguments.runs_dir
    if arguments.status:
        return _show(arguments)
    runs_dir.mkdir(parents=True, exist_ok=True)
    lock = runs_dir / f".{arguments.name}.watch.lock"
    check_regular(lock)
    try:
        with LockFile(lock, timeout_s=0):
            if arguments.acknowledge or arguments.new_baseline is not None:
                return _change(arguments)
            return _ask_and_compare(arguments)
    except TimeoutError:
        text = "no verdict: the earlier invocation is still under way; nothing was asked. Ask less often."
        data = {"watch": arguments.name, "word": "no_verdict"}
        return CommandResult(lines=[text], data=data, status=STATUS["no_verdict"])


def _ask_and_compare(arguments: argparse.Namespace) -> CommandResult:
    from pytest_openclaw.recording.run_directory import is_active, living
    from pytest_openclaw.stats.watching import WatchState
    from pytest_openclaw.stored.watched_runs import (
        finished_run,
        judge_run,
        load_state,
        save_state,
        state_path,
    )

    runs_dir, rules = arguments.runs_dir, _rules(arguments)
    path = state_path(runs_dir, arguments.name)
    state, warnings = load_state(path) or WatchState(size=arguments.baseline), []
    if not state.is_complete:
        state = replace(state, size=arguments.baseline)
    if state.asking:
        # The invocation before this one was killed; its session may go on.
        if is_active(runs_dir / state.asking):
            raise OpenClawError(f"{living(runs_dir / state.asking)}; the invocation that began it was killed")
        if earlier := finished_run(runs_dir / state.asking):
            state = judge_run(state, earlier, runs_dir, rules).state
        else:
            warnings.append(f"the run {state.asking} was interrupted and is left aside")
    run_id = _new_id(runs_dir, arguments.name)
    state = replace(state, asking=run_id)
    save_state(path, state)
    status = _ask(arguments.words, run_id, runs_dir)
    run = finished_run(runs_dir / run_id)
    if run is None or status not in _TESTS_RAN:
        save_state(path, replace(state, asking=None))
        raise OpenClawError(_no_run(status, run_id))
    watched = judge_run(replace(state, asking=None), run, runs_dir, rules)
    save_state(path, watched.state)
    if arguments.on_worse and not all(one.called for one in watched.state.findings):
        if problem := _call(arguments, watched):
            warnings.append(problem)
        else:
            called = tuple(replace(one, called=True) for one in watched.state.findings)
            save_state(path, replace(watched.state, findings=called))
    return _result(arguments, watched, warnings)


def _rules(arguments: argparse.Namespace) -> WatchRules:
    from pytest_openclaw.stats.run_comparison import parse_across
    from pytest_openclaw.stored.watched_runs import WatchRules

    return WatchRules(
        false_alarms_per_month=arguments.false_alarms_per_month,
        every_s=arguments.every,
        slower=arguments.slower,
        across=parse_across(arguments.across),
    )


def _show(arguments: argparse.Namespace) -> CommandResult:
    """Compare the newest run again, and write nothing."""
    from pytest_openclaw.stored.baseline import read_measured
    from pytest_openclaw.stored.watched_runs import judge_run, load_state, state_path

    state = load_state(path := state_path(arguments.runs_dir, arguments.name))
    newest = next(iter([*state.baseline, *state.recent][::-1]), None) if state else None
    if state is None or newest is None:
        raise OpenClawError(f"{path}: this watch has no run yet")
    run = read_measured(arguments.runs_dir / newest)
    return _result(arguments, judge_run(state, run, arguments.runs_dir, _rules(arguments)), [])


def _change(arguments: argparse.Namespace) -> CommandResult:
    """Acknowledge what was found, or begin a new baseline."""
    from pytest_openclaw.stats.watching import WatchState
    from pytest_openclaw.stored.watched_runs import load_state, save_state, state_path

    path = state_path(arguments.runs_dir, arguments.name)
    state = load_state(path)
    if arguments.acknowledge:
        if state is None:
            raise OpenClawError(f"{path}: this watch has no run yet")
        text = "the next run is compared with the same baseline, and no earlier run with it"
        state = replace(state, findings=(), recent=(), asking=None)
    elif arguments.new_baseline:
        named = _named_runs(arguments.new_baseline, arguments.runs_dir)
        text = f"the baseline is {len(named)} runs, {named[0]} to {named[-1]}"
        state = WatchState(size=len(named), baseline=named)
    else:
        text = f"the next {arguments.baseline} runs are the baseline"
        state = WatchState(size=arguments.baseline)
    save_state(path, state)
    return CommandResult(
        lines=[text], data={"watch": arguments.name, "size": state.size, "baseline": list(state.baseline)}
    )


def _named_runs(glob: str, runs_dir: Path) -> tuple[str, ...]:
    from pytest_openclaw.stored.watched_runs import finished_run

    paths = run_paths(glob, runs_dir)
    if unfit := [path.name for path in paths if path.parent != runs_dir or not finished_run(path)]:
        raise OpenClawError(f"{', '.join(unfit)}: a baseline has finished runs of the folder {runs_dir}")
    if len(paths) < FEWEST_RUNS:
        raise OpenClawError(f"{glob} matches {len(paths)}; a baseline has {FEWEST_RUNS} runs or more")
    return tuple(
        path.name for path in sorted(paths, key=lambda path: (path / "results.jsonl").stat().st_mtime)
    )


def _new_id(runs_dir: Path, name: str) -> str:
    first = f"{name}_{datetime.now().astimezone():%Y%m%d_%H%M%S}"
    ids = (first if number == 1 else f"{first}_{number}" for number in range(1, 10_000))
    return next(one for one in ids if not (runs_dir / one).exists())


def _ask(words: Sequence[str], run_id: str, runs_dir: Path) -> int:
    """Run pytest; its output is shown on a terminal, otherwise only if there is no run.

    Raises:
        OpenClawError: Ctrl-C or SIGTERM came; pytest has ended, and its run is left aside.
    """
    from pytest_openclaw.core.signals import TerminatedBySIGTERM, interrupted_by_signals

    named = [f"--openclaw-run-id={run_id}", f"--openclaw-runs-dir={runs_dir.resolve()}"]
    command = [sys.executable, "-m", "pytest", *words, *named]
    out = None if sys.stderr.isatty() else subprocess.PIPE
    with interrupted_by_signals():
        process = subprocess.Popen(  # noqa: S603 - the user's own words
            command, stdout=out or _STDERR, stderr=subprocess.STDOUT
        )
        try:
            shown, _ = process.communicate()
        except KeyboardInterrupt as error:
            if isinstance(error, TerminatedBySIGTERM):  # Ctrl-C reaches pytest by itself
                process.terminate()
            process.communicate()
            raise OpenClawError(f"interrupted; the run {run_id} is left aside") from None
    if shown and process.returncode not in _TESTS_RAN:
        sys.stderr.write(shown.decode(errors="replace"))
    return process.returncode


def _no_run(status: int, run_id: str) -> str:
    from pytest_openclaw.core.signals import how_it_ended

    return (
        f"pytest {how_it_ended(status)}, so there is no finished run {run_id}; "
        "the arguments after -- must be those of a session that asks benchmarks"
    )


def _call(arguments: argparse.Namespace, watched: Watched) -> str | None:
    """Call the command for a finding; return its problem, if there is one."""
    from pytest_openclaw.reports.watch_text import watched_to_json

    folder = (arguments.runs_dir / watched.run).resolve()
    data = json.dumps(watched_to_json(watched, arguments.name, arguments.runs_dir))
    environ = {"OPENCLAW_WATCH_RUN": str(folder), "OPENCLAW_WATCH_REPORT": str(folder / "summary.md")}
    again = "it is called again after the next run"
    try:
        done = subprocess.run(  # noqa: S603 - the user's own command
            arguments.on_worse,
            input=data.encode(),
            env={**os.environ, **environ},
            stdout=_STDERR,
            check=False,
        )
    except OSError as error:
        return f"--on-worse: {arguments.on_worse[0]}: {error.strerror or error}; {again}"
    if done.returncode:
        return f"--on-worse: {arguments.on_worse[0]} ended with exit status {done.returncode}; {again}"
    return None


def _result(arguments: argparse.Namespace, watched: Watched, warnings: Sequence[str]) -> CommandResult:
    from pytest_openclaw.reports.watch_text import render_watched, watched_to_json

    sentences = render_watched(watched, arguments.runs_dir)
    return CommandResult(
        lines=[line for sentence in sentences for line in in_lines(sentence)],
        data=watched_to_json(watched, arguments.name, arguments.runs_dir),
        status=STATUS[watched.word],
        warnings=warnings,
    )


def _duration(text: str) -> float:
    found = _DURATION.fullmatch(text)
    if not found or not float(found[1]):
        raise ValueError("give a time such as 30min, 1h or 1d")
    return float(found[1]) * _SECONDS[found[2]]


def _positive(text: str) -> float:
    value = _number(text)
    if not 0 < value <= 100:
        raise ValueError("give a number above 0, such as 0.1 for one in ten months; at most 100")
    return value


def _factor(text: str) -> float:
    value = _number(text)
    if not 1 <= value <= 100:
        raise ValueError("give a factor from 1 to 100, such as 1.5")
    return value


def _number(text: str) -> float:
    try:
        return float(text)
    except ValueError:
        raise ValueError(f"{text} is no number") from None


def _size(text: str) -> int:
    if not (text.isascii() and text.isdecimal() and FEWEST_RUNS <= int(text) <= 200):
        raise ValueError(f"give a number of runs from {FEWEST_RUNS} to 200")
    return int(text)


def _command(text: str) -> list[str]:
    if not (words := shlex.split(text)):
        raise ValueError("name a program")
    return words
