"""A watch: its state file, and what a new run says beside the baseline.

The state names runs and repeats none of their figures: which runs are the baseline, which came after it,
which is being asked, and what was found. Its schema is `types/schemas/watch.schema.json`.
"""

from __future__ import annotations

import json
from dataclasses import asdict, dataclass, replace
from itertools import pairwise
from statistics import median
from typing import TYPE_CHECKING

from pytest_openclaw.core.errors import OpenClawError
from pytest_openclaw.core.files import is_there, replacing
from pytest_openclaw.core.text import counted
from pytest_openclaw.recording.run_directory import is_active
from pytest_openclaw.reports.comparison_text import ACROSS, REASONS
from pytest_openclaw.stats.run_comparison import incomparable
from pytest_openclaw.stats.watching import (
    WINDOWS,
    Finding,
    Look,
    Watched,
    WatchedRun,
    WatchedTarget,
    WatchState,
    limit_of,
    looks,
    measures_of,
)
from pytest_openclaw.stored.baseline import read_measured
from pytest_openclaw.stored.parts import is_finished
from pytest_openclaw.stored.reading import is_run
from pytest_openclaw.types.documents import load_document

if TYPE_CHECKING:
    from collections.abc import Collection, Iterator, Sequence
    from pathlib import Path

    from pytest_openclaw.stats.run_comparison import Measured
    from pytest_openclaw.types.targets import Target

STATE_VERSION = 1
KEPT = WINDOWS[-1]


@dataclass(frozen=True, kw_only=True)
class WatchRules:
    """How runs are compared.

    Attributes:
        every_s: from one run to the next; None takes that of the state, or the median of the runs so far.
        slower: the factor by which times may grow; None compares no times.
        across: differences to look across, see `run_comparison.compare_runs`.
    """

    false_alarms_per_month: float
    every_s: float | None = None
    slower: float | None = None
    across: Collection[str] = ()


# --- the state file -----------------------------------------------------------------------------


def state_path(runs_dir: Path, name: str) -> Path:
    """Return the file of a watch's state, in the folder of runs."""
    return runs_dir / f"{name}.watch.json"


def load_state(path: Path) -> WatchState | None:
    """Return a watch's state; None if there is none yet.

    Raises:
        OpenClawError: the file is malformed.
    """
    if not is_there(path):
        return None
    stored = load_document(path, "watch")
    if stored["schema_version"] > STATE_VERSION:
        version = f"{stored['schema_version']}, the newest known here is {STATE_VERSION}"
        raise OpenClawError(f"{path}: its format is {version}; upgrade pytest-openclaw")
    return WatchState(
        size=stored["size"],
        baseline=tuple(stored["baseline"]),
        recent=tuple(stored["recent"]),
        asking=stored["asking"],
        n_compared=stored["n_compared"],
        every_s=stored["every_s"],
        findings=tuple(Finding(**{**one, "look": Look(**one["look"])}) for one in stored["findings"]),
    )


def save_state(path: Path, state: WatchState) -> None:
    """Write a watch's state whole.

    Raises:
        OSError: it cannot be written; the old file is unchanged.
    """
    content = {"schema_version": STATE_VERSION, **asdict(state)}
    with replacing(path) as file:
        file.write((json.dumps(content, indent=1) + "\n").encode())


# --- runs ---------------------------------------------------------------------------------------


def finished_run(path: Path) -> Measured | None:
    """Return a run that was asked to its end; None for one that was not, or is not there.

    Raises:
        OpenClawError: it cannot be read.
    """
    if not is_run(path) or is_active(path) or not is_there(path / "summary.json"):
        return None
    run = read_measured(path)
    return run if is_finished(path, len(run.records)) else None


def judge_run(state: WatchState, run: Measured, runs_dir: Path, rules: WatchRules) -> Watched:
    """Add a run to a watch, unless it is in it already, and compare it with the baseline.

    Raises:
        OpenClawError: a run of the baseline is missing or cannot be read.
    """
    baseline = [_needed(runs_dir, name) for name in state.baseline]
    reference = baseline[0] if baseline else run
    state = replace(state, every_s=rules.every_s or state.every_s)
    reasons = {target: _why_not(reference, run, target, rules.across) for target in _targets(reference, run)}
    if not state.is_complete:
        return _collect(state, run, reasons, reference)
    is_new = run.run_id not in (*state.recent, *state.baseline)
    if is_new and not all(reasons.values()):
        recent = (*state.recent, run.run_id)[-KEPT:]
        state = replace(state, recent=recent, n_compared=state.n_compared + 1)
    later = [*_kept(runs_dir, state.recent, run)]
    every_s = state.every_s or _usual_gap_s([*baseline, *later])
    bases = {target: _rows([*baseline], target) for target in reference.targets}
    n_measures = sum(len(measures_of(base, slower=rules.slower)) for base in bases.values())
    if not n_measures:
        raise OpenClawError(
            f"{reference.run_id}: no cell of the baseline was judged; give prompts a validator"
        )
    limit = limit_of(rules.false_alarms_per_month, every_s, n_measures)
    targets = []
    for target, reason in reasons.items():
        seen: list[Look] = []
        if reason is None:
            # A run that was served or asked differently, or was not answered, is no run of this target.
            fit = [one for one in later if one is run or not _why_not(reference, one, target, rules.across)]
            seen = looks(bases[target], _rows(fit, target), slower=rules.slower)
            state = _with_findings(state, target.label, seen, limit, run, later)
        targets.append(_watched(target, run, state, reason, seen))
    return Watched(run=run.run_id, state=state, targets=tuple(targets), limit=limit, every_s=every_s)


def _collect(
    state: WatchState, run: Measured, reasons: dict[Target, str | None], reference: Measured
) -> Watched:
    if run.run_id not in state.baseline and not any(reasons.values()):
        state = replace(state, baseline=(*state.baseline, run.run_id))
    targets = [_watched(target, run, state, reason, ()) for target, reason in reasons.items()]
    if not targets:
        raise OpenClawError(f"{reference.run_id} has no target to watch")
    targets = [replace(one, word="collecting") if one.word == "not_worse" else one for one in targets]
    return Watched(run=run.run_id, state=state, targets=tuple(targets), limit=None, every_s=None)


def _watched(
    target: Target, run: Measured, state: WatchState, reason: str | None, seen: Sequence[Look]
) -> WatchedTarget:
    own = [record for record in run.records if record.target == target]
    is_worse = any(one.target == target.label for one in state.findings)
    return WatchedTarget(
        target=target.label,
        word="worse" if is_worse else "no_verdict" if reason else "not_worse",
        n_cells=len(own),
        n_passed=sum(record.objective_pass is True for record in own),
        reason=reason,
        looks=tuple(seen),
    )


def _with_findings(
    state: WatchState,
    label: str,
    seen: Sequence[Look],
    limit: float,
    run: Measured,
    later: Sequence[Measured],
) -> WatchState:
    known = {(one.target, one.look.measure) for one in state.findings}
    began = {one.run_id: _started_at_ms(one) for one in later}
    new = [
        Finding(target=label, run=run.run_id, since_ms=began[look.since], limit=limit, look=look)
        for look in seen
        if look.chance <= limit and (label, look.measure) not in known
    ]
    return replace(state, findings=(*state.findings, *new))


def _needed(runs_dir: Path, name: str) -> Measured:
    if not is_run(runs_dir / name):
        hint = "Restore it, or begin a new baseline with --new-baseline."
        raise OpenClawError(f"the run {name} of the baseline is not in {runs_dir}. {hint}")
    return read_measured(runs_dir / name)


def _kept(runs_dir: Path, names: Sequence[str], run: Measured) -> Iterator[Measured]:
    """Yield the runs after the baseline; old ones may have been removed."""
    for name in names:
        if name == run.run_id:
            yield run
        elif is_run(runs_dir / name):
            yield read_measured(runs_dir / name)


def _targets(reference: Measured, run: Measured) -> list[Target]:
    return list(dict.fromkeys([*reference.targets, *run.targets]))


def _why_not(reference: Measured, run: Measured, target: Target, across: Collection[str]) -> str | None:
    """Say why a target of a run cannot be compared with the baseline; None if it can."""
    for one, what in ((reference, "the baseline"), (run, "this run")):
        if target not in one.targets:
            return f"it is not in {what}"
    own = [record for record in run.records if record.target == target]
    missing = [record for record in own if record.availability_status != "ok"]
    if 2 * len(missing) >= len(own):
        fault = next((record.fault_message for record in missing if record.fault_message), None)
        why = f": {fault.rstrip('.')}" if fault else ""
        return f"{len(missing)} of {len(own)} cells were not answered{why}"
    for apart in incomparable(reference, run, target, across):
        detail = f" ({apart.detail})" if apart.detail else ""
        option = f"; --across={ACROSS[apart.reason]} compares it" if apart.reason in ACROSS else ""
        return f"{REASONS[apart.reason]}{detail}, {counted(apart.n_cells, 'cell')}{option}"
    return None


def _rows(runs: Sequence[Measured], target: Target) -> list[WatchedRun]:
    return [
        WatchedRun(run_id=run.run_id, records=[record for record in run.records if record.target == target])
        for run in runs
    ]


def _started_at_ms(run: Measured) -> int:
    return min((record.started_at_ms for record in run.records), default=0)


def _usual_gap_s(runs: Sequence[Measured]) -> float:
    """Return the usual time from one run to the next, in seconds."""
    moments = sorted(_started_at_ms(run) for run in runs)
    return max(1.0, median(after - before for before, after in pairwise(moments)) / 1000)
