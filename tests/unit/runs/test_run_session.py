"""One run: its rows on disk, its other files, and its summary."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

import pytest

from pytest_openclaw.runs.directory import RunDirectory
from pytest_openclaw.runs.environment import file_names
from pytest_openclaw.runs.resume import Plan
from pytest_openclaw.runs.session import RunSession
from pytest_openclaw.suites.cells import Stage
from pytest_openclaw.values.requests import CellKey, Target
from pytest_openclaw.values.rows import LeftOut, Record
from pytest_openclaw.values.settings import IDENTITY, OTHER, SETTINGS, Settings
from tests.unit.reports.summaries import missed, record

A = Target(provider="p", model="a")
B = Target(provider="p", model="b", thinking_level="low")


@pytest.fixture
def directory(tmp_path: Path) -> Iterator[RunDirectory]:
    """An open run directory."""
    with RunDirectory.new(tmp_path, "r", exactly=True) as opened:
        yield opened


def _plan(
    n_cells: Mapping[tuple[Target, int], int], ids: Sequence[str] = (), fixed: Mapping[str, int] | None = None
) -> Plan:
    """A plan with so many cells by target and repeat; the prompts in `fixed` set their own repeats."""
    cells = {
        CellKey("s", f"T{n}", target, repeat): False
        for (target, repeat), total in n_cells.items()
        for n in range(total)
    }
    targets = tuple(dict.fromkeys(target for target, _ in n_cells))
    prompts = [{"suite": "s", "id": name} for name in ids]
    for name, repeats in (fixed or {}).items():
        prompts.append({"suite": "s", "id": name, "repeat": repeats})
        cells |= {CellKey("s", name, target, n + 1): True for target in targets for n in range(repeats)}
    return Plan(
        cells=frozenset(cells),
        targets=targets,
        prompts={(one["suite"], one["id"]): one for one in prompts},
        providers={"p": {"kind": "p"}},
        stages={key: Stage(key.repeat, key.repeat, is_fixed) for key, is_fixed in cells.items()},
    )


def _session(directory: RunDirectory, n_selected: Mapping[Target, int]) -> RunSession:
    plan = _plan({(target, 1): n for target, n in n_selected.items()}, ["P1"])
    return RunSession(directory, Settings(), plan)


def _take(session: RunSession, target: Target, **facts: Any) -> None:
    session.environment.take(target, facts)


def _left_out(prompt_id: str = "T0", repeat: int = 1, *, of: Target = A) -> LeftOut:
    return LeftOut(suite="s", prompt_id=prompt_id, target=of.label, repeat=repeat)


def _load(directory: RunDirectory, name: str) -> Any:
    return json.loads((directory.path / name).read_text("utf-8"))


def test_a_run_says_whether_it_is_whole(directory: RunDirectory) -> None:
    """With a row for each cell it is finished; a cell skipped by a mark is none."""
    session = _session(directory, {A: 2, B: 1})
    session.add(record(A))
    before = session.finish().state
    session.leave_out(_left_out(of=B))
    session.add(missed(A, prompt_id="P2"))

    assert (before, session.finish().state) == ("interrupted", "finished")
    assert session.finish().n_cells == 2


def test_what_a_server_says_is_put_together(directory: RunDirectory) -> None:
    """The warm-up comes first, the server's description after a reply; another description is kept, too."""
    session = _session(directory, {A: 3})
    warm_up = {"warm_up": {"ok": True, "e2e_ms": 5, "message": None}}

    _take(session, A, **warm_up)
    _take(session, A, server={"version": "1"})
    facts = {**warm_up, "server": {"version": "1"}}
    assert _load(directory, "inventory.json")["targets"] == {"p/a": facts}

    _take(session, A, server={"version": "2"})
    facts["server_when_resumed"] = {"version": "2"}
    assert _load(directory, "inventory.json")["targets"] == {"p/a": facts}


def test_snapshots_are_files_and_in_the_summary(directory: RunDirectory) -> None:
    """The one after is taken with the last cell of a target, or at the end."""
    session = _session(directory, {A: 1, B: 2})
    _take(session, A, resources_before={"n": 1})
    _take(session, B, resources_before={"n": 5})
    session.add(record(A))
    assert (directory.path / "resources_p__a_after.txt").exists()
    session.add(record(B))

    groups = session.finish().groups

    assert [group.resources_before for group in groups] == [{"n": 1}, {"n": 5}]
    assert all(group.resources_after for group in groups)
    assert (directory.path / "resources_p__a_after.txt").read_text().splitlines()[0] == "# p/a, after"


def test_targets_have_safe_names_of_their_own() -> None:
    """Names that a file system would treat as equal get a number; nothing leaves the folder."""
    models = ["a/b:c", "a_b_c", "A_B_C", "../../x", "é" * 200, "con"]

    names = list(file_names(Target(provider="p", model=model) for model in models).values())

    assert names[:4] == ["p__a_b_c", "p__a_b_c_2", "p__A_B_C_3", "p__.._.._x"]
    assert len({name.casefold() for name in names}) == len(names)
    assert all(len(name) <= 123 and "/" not in name for name in names)


def test_each_setting_has_a_rule(directory: RunDirectory) -> None:
    """The rules say whether runs that differ in a setting are the same run; a new setting needs one."""
    _session(directory, {A: 1}).add(record(A))

    assert {*_load(directory, "config.json")} - {*IDENTITY} == {*SETTINGS} - {OTHER}


# --- repeats ---


def _missed_tools(target: Target, repeat: int) -> list[Record]:
    return [record(target, prompt_id=f"T{n}", repeat=repeat, tool_outcome="no_call") for n in range(8)]


def test_a_conclusive_target_still_needs_its_fixed_repeats(directory: RunDirectory) -> None:
    """Prompts with their own number are cells of the run, except those that a mark skips."""
    plan = _plan({(A, repeat): 8 for repeat in (1, 2, 3)}, fixed={"F1": 4})
    session = RunSession(directory, Settings(repeat=3, until_conclusive=True), plan)
    for row in [*_missed_tools(A, 1), record(A, prompt_id="F1", repeat=1)]:
        session.add(row)
    session.add(record(A, prompt_id="F1", repeat=2))

    session.leave_out(_left_out("F1", 4))
    session.leave_out(_left_out("T0", 2))

    summary = session.finish()
    assert (summary.n_cells, summary.n_rows, summary.state) == (11, 10, "interrupted")
