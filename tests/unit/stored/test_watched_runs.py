"""A watch adds runs to its baseline, compares later ones, and keeps what it found until it is acknowledged."""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path
from typing import Any

import jsonschema
import pytest

from pytest_openclaw.core.errors import OpenClawError
from pytest_openclaw.stats.watching import Watched, WatchState
from pytest_openclaw.stored.baseline import read_measured
from pytest_openclaw.stored.watched_runs import (
    KEPT,
    WatchRules,
    finished_run,
    judge_run,
    load_state,
    save_state,
    state_path,
)
from pytest_openclaw.types.documents import load_schema
from tests.unit.stored.stored_runs import A, B, row, store

DAILY = WatchRules(false_alarms_per_month=0.1, every_s=86_400)
PROMPTS = [f"P{n}" for n in range(6)]
SIZE = 5


def _store(folder: Path, name: str, *, lost: int = 0, at_ms: int = 0, target: Any = A, **given: Any) -> str:
    """A run in which the first so many prompts fail."""
    rows = [
        row(target, one, objective_pass=n >= lost, run_id=name, started_at_ms=1000 + at_ms)
        for n, one in enumerate(PROMPTS)
    ]
    store(folder / name, rows, **given)
    return name


def _judge(folder: Path, state: WatchState, name: str, rules: WatchRules = DAILY) -> Watched:
    return judge_run(state, read_measured(folder / name), folder, rules)


@pytest.fixture
def complete(tmp_path: Path) -> WatchState:
    """A watch whose baseline is complete."""
    state = WatchState(size=SIZE)
    for n in range(SIZE):
        state = _judge(tmp_path, state, _store(tmp_path, f"b{n}")).state
    return state


def test_the_first_runs_are_the_baseline(complete: WatchState, tmp_path: Path) -> None:
    """The next one is compared, and is not part of it."""
    found = _judge(tmp_path, complete, _store(tmp_path, "r"))

    assert complete.baseline == tuple(f"b{n}" for n in range(SIZE))
    assert (found.word, found.state.recent, found.state.n_compared) == ("not_worse", ("r",), 1)
    assert found.limit == pytest.approx(0.1 / 30 / 6)


def test_what_got_worse_remains_until_it_is_acknowledged(complete: WatchState, tmp_path: Path) -> None:
    """Also after runs as good as before; it is found once."""
    worse = _judge(tmp_path, complete, _store(tmp_path, "r1", lost=6))
    again = _judge(tmp_path, worse.state, _store(tmp_path, "r2", lost=6))
    good = _judge(tmp_path, again.state, _store(tmp_path, "r3"))

    (finding,) = good.state.findings
    assert [one.word for one in (worse, again, good)] == ["worse"] * 3
    assert (finding.run, finding.look.n_runs, finding.look.measure) == ("r1", 1, "passed")
    assert finding.look.chance == pytest.approx(6**-6)


@pytest.mark.parametrize(
    ("given", "reason"),
    [
        pytest.param(
            {"serving": {"lab/a": {"server": {"version": "2"}}}},
            "served differently (version 1 -> 2), 6 cells; --across=serving compares it",
            id="server",
        ),
        pytest.param({"temperature": 1}, "asked differently (temperature 0 -> 1), 6 cells", id="settings"),
        pytest.param({"target": B}, "it is not in this run", id="target"),
    ],
)
def test_a_changed_server_or_setting_has_no_verdict(
    given: dict[str, Any], reason: str, tmp_path: Path
) -> None:
    """It says what has changed; such a run is in no window and in no baseline."""
    serving = {"lab/a": {"server": {"version": "1"}}}
    state = WatchState(size=SIZE)
    for n in range(SIZE):
        state = _judge(tmp_path, state, _store(tmp_path, f"b{n}", serving=serving)).state

    found = _judge(tmp_path, state, _store(tmp_path, "r", lost=6, **{"serving": serving, **given}))
    in_between = _judge(tmp_path, replace(state, size=SIZE + 1), "r")

    assert (found.word, found.state.recent, found.state.n_compared) == ("no_verdict", (), 0)
    assert str(found.targets[0].reason).startswith(reason)
    assert in_between.state.baseline == state.baseline


def test_a_difference_that_is_looked_across_is_compared(tmp_path: Path, complete: WatchState) -> None:
    """As in every comparison."""
    _store(tmp_path, "r", lost=6, temperature=1)

    assert _judge(tmp_path, complete, "r", replace(DAILY, across={"settings"})).word == "worse"


def test_a_run_that_was_not_answered_does_not_count(complete: WatchState, tmp_path: Path) -> None:
    """The message is the server's."""
    rows = [
        row(A, one, availability_status="skipped_unavailable", success=False, fault_message="It is down.")
        for one in PROMPTS
    ]
    store(tmp_path / "down", rows)

    found = _judge(tmp_path, complete, "down")

    assert (found.word, found.state.recent) == ("no_verdict", ())
    assert found.targets[0].reason == "6 of 6 cells were not answered: It is down"


def test_only_the_newest_runs_are_kept(complete: WatchState, tmp_path: Path) -> None:
    """As many as the longest window; a removed one is left out, one of the baseline is missed."""
    state = complete
    for n in range(KEPT + 2):
        state = _judge(tmp_path, state, _store(tmp_path, f"r{n:02}")).state
    (tmp_path / "r20").rename(tmp_path / "gone")
    left = _judge(tmp_path, state, _store(tmp_path, "last"))
    (tmp_path / "b0").rename(tmp_path / "b")

    assert state.recent == tuple(f"r{n:02}" for n in range(2, KEPT + 2))
    assert left.word == "not_worse"
    with pytest.raises(OpenClawError, match=r"the run b0 of the baseline is not in .*--new-baseline"):
        _judge(tmp_path, state, "last")


def test_the_schedule_is_measured_if_it_is_not_given(tmp_path: Path) -> None:
    """The usual time between runs; one that was given once is remembered."""
    state = WatchState(size=SIZE)
    for n in range(SIZE):
        _store(tmp_path, f"b{n}", at_ms=n * 7_200_000)
        state = _judge(tmp_path, state, f"b{n}", replace(DAILY, every_s=None)).state
    _store(tmp_path, "r", at_ms=SIZE * 7_200_000)

    measured = _judge(tmp_path, state, "r", replace(DAILY, every_s=None))
    given = _judge(tmp_path, _judge(tmp_path, state, "r").state, "r", replace(DAILY, every_s=None))

    assert (measured.every_s, given.every_s) == (7200, 86_400)


def test_the_state_is_read_as_it_was_written(complete: WatchState, tmp_path: Path) -> None:
    """It follows the published schema."""
    state = _judge(tmp_path, complete, _store(tmp_path, "r", lost=6)).state
    path = state_path(tmp_path, "watch")

    save_state(path, state)

    assert load_state(path) == state
    assert load_state(tmp_path / "other") is None
    jsonschema.validate(json.loads(path.read_text()), load_schema("watch"))


def test_an_unfinished_run_is_none(tmp_path: Path) -> None:
    """Only its summary says that it was asked to the end."""
    _store(tmp_path, "cut")
    _store(tmp_path, "whole")
    (tmp_path / "whole/summary.json").write_text(json.dumps({"state": "finished", "n_rows": 6}))

    assert finished_run(tmp_path / "cut") is None
    assert finished_run(tmp_path / "none") is None
    assert finished_run(tmp_path / "whole") is not None
