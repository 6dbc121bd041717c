"""The conditions under which two runs can be compared cell by cell."""

from __future__ import annotations

import json
import os
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pytest

from pytest_openclaw.runs.directory import RunDirectory
from pytest_openclaw.runs.reading import load_run, read_baseline
from pytest_openclaw.stats.comparison import ComparedRuns
from pytest_openclaw.stats.run_comparison import Measured, compare_runs, named_targets, parse_across
from pytest_openclaw.util.errors import OpenClawError
from tests.unit.reports.summaries import missed
from tests.unit.runs.stored_runs import SUITE, A, B, definition, row, store

ROWS = [row(A, f"P{n}", raw_output="x" * 100) for n in (1, 2)]
LAB = {"kind": "ollama_openai", "base_url": "http://127.0.0.1:1/v1"}


def _server(**server: Any) -> dict[str, Any]:
    return {"serving": {A.label: {"server": server}}}


def _prompts(**second: Any) -> dict[str, Any]:
    return {"prompts": [definition("P1"), definition("P2", **second)]}


@pytest.fixture
def compared(tmp_path: Path) -> Any:
    """Compares two stored runs with these rows and changes."""

    def compare(base: dict[str, Any], candidate: dict[str, Any], **more: Any) -> ComparedRuns:
        runs = [
            _measured(store(tmp_path / name, given.pop("rows", ROWS), **given))
            for name, given in (("before", base), ("after", candidate))
        ]
        return compare_runs(runs[0], runs[1], **more)

    return compare


@pytest.mark.parametrize(
    ("base", "candidate", "reason", "detail", "n", "across"),
    [
        pytest.param(_prompts(), _prompts(prompt="Do it."), "prompt_changed", "prompt", 1, "prompt", id="prompt"),
        pytest.param(_prompts(), _prompts(validator={"type": "exact", "value": "x"}), "validator_changed", "validator", 1, "validator", id="validator"),
        pytest.param({}, {"stream": False}, "asked_differently", "stream true -> false", 2, "settings", id="setting"),
        pytest.param({}, {"providers": {"lab": {**LAB, "num_ctx": 9}}}, None, "", 0, "", id="setting-of-one-version-alone"),
        pytest.param({"providers": {"lab": {**LAB, "num_ctx": 8}}}, {"providers": {"lab": {**LAB, "num_ctx": 9}}}, "asked_differently", "num_ctx 8 -> 9", 2, "settings", id="setting-of-a-provider"),
        pytest.param(_server(server_version="0.5.1", digest="a"), _server(server_version="0.6.0", digest="b"), "served_differently", "digest a -> b; server version 0.5.1 -> 0.6.0", 2, "serving", id="serving"),
    ],
)  # fmt: skip
def test_what_differs_is_set_aside_unless_looked_across(
    compared: Any,
    base: Any,
    candidate: Any,
    reason: str | None,
    detail: str,
    n: int,
    across: str,
    tmp_path: Path,
) -> None:
    """Each difference has its reason and its detail, and each can be ignored by an option."""
    first = compared(dict(base), dict(candidate))

    found = [(one.reason, one.detail, one.n_cells) for one in first.set_aside]
    assert found == ([(reason, detail, n)] if reason else [])
    looked_across = compare_runs(
        _measured(tmp_path / "before"), _measured(tmp_path / "after"), across={across}
    )
    assert looked_across.set_aside == ()


@pytest.mark.parametrize(
    ("base", "candidate"),
    [
        pytest.param({}, {"retries": 9, "concurrency": {"everywhere": 4}, "verdict": "gate"}, id="pace-and-verdict"),
        pytest.param({}, {"repeat": 5, "baseline": "x", "across": ["serving"]}, id="repeats-and-baselines"),
        pytest.param({}, {"providers": {"lab": {**LAB, "base_url": "http://10.0.0.1/v1"}}}, id="address"),
        pytest.param(_prompts(), _prompts(tags=["new"], name="other", category="c", repeat=3), id="names-of-a-prompt"),
        pytest.param(_server(digest="a"), _server(server_version="1"), id="known-of-one-alone"),
    ],
)  # fmt: skip
def test_what_shapes_neither_question_nor_verdict_may_differ(
    compared: Any, base: Any, candidate: Any
) -> None:
    """These are settings such as speed, number and place of requests, or a prompt's name."""
    assert compared(dict(base), dict(candidate)).set_aside == ()


def test_hosts_and_parts_serve_too(tmp_path: Path) -> None:
    """A server counts wherever it is recorded: on another machine, in a merged part, when resumed."""
    before = store(tmp_path / "before", ROWS, **_server(digest="a"))
    after = store(tmp_path / "after", ROWS)
    inventory = json.loads((after / "inventory.json").read_text())
    inventory["hosts"] = {"h": {"targets": {A.label: {"server": {"digest": "a"}}}}}
    inventory["parts"] = [
        {
            "run_id": "p",
            "targets": {A.label: {"server": {"digest": "a"}, "server_when_resumed": {"digest": "c"}}},
        }
    ]
    (after / "inventory.json").write_text(json.dumps(inventory))

    (apart,) = compare_runs(_measured(before), _measured(after)).set_aside

    assert apart.detail == "digest a -> a or c"


def test_versions_and_missing_rows_are_noted(compared: Any, tmp_path: Path) -> None:
    """The possible reason of a difference is next to it."""
    compared({}, {"rows": ROWS[:1], "n_selected": {A: 2}})
    for name, version in (("before", "1"), ("after", "2")):
        path = tmp_path / name / "inventory.json"
        path.write_text(
            json.dumps({**json.loads(path.read_text()), "packages": {"pytest-openclaw": version}})
        )

    notes = compare_runs(_measured(tmp_path / "before"), _measured(tmp_path / "after")).notes

    assert notes == (
        "after is not finished: 1 of its cells have no row",
        "judged by pytest-openclaw 1 -> 2; `rescore` judges both by one version",
    )


def test_different_timeouts_are_noted(compared: Any) -> None:
    """They decide which slow cells are answered, and no verdict; so the cells are compared."""
    result = compared(_prompts(), {**_prompts(timeout_s=9.0), "timeout_s": 60.0})

    assert result.notes == ("timeout_s 300.0 -> 60.0",)
    assert result.set_aside == ()


# --- targets ------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("base", "candidate", "expected"),
    [
        pytest.param([A, B], [A, B], [(A.label, A.label), (B.label, B.label)], id="common"),
        pytest.param([A], [A, B], [(A.label, A.label)], id="one-common"),
        pytest.param([A], [B], [(A.label, B.label)], id="two-models"),
        pytest.param([A, B], [row(A, "P1").target], [(A.label, A.label)], id="one-gone"),
    ],
)
def test_which_targets_are_compared(compared: Any, base: Any, candidate: Any, expected: Any) -> None:
    """Targets of both runs are compared; or the only one of each, if they have none in common."""
    rows = [[row(target, "P1") for target in targets] for targets in (base, candidate)]

    targets = compared({"rows": rows[0]}, {"rows": rows[1]}).targets

    assert [(one.base_target, one.target) for one in targets] == expected


def test_two_models_are_not_served_alike(compared: Any) -> None:
    """If two models are compared, their servers and answering names do not exclude them."""
    result = compared(
        {"rows": [row(A, "P1", effective_model="a")], "serving": {A.label: {"server": {"digest": "a"}}}},
        {"rows": [missed(B, prompt_id="P1", suite=SUITE, effective_model="b")], "serving": {B.label: {"server": {"digest": "b"}}}},
    )  # fmt: skip

    assert result.set_aside == ()
    assert result.targets[0].verdicts.n_worse == 1


def test_targets_can_be_named(tmp_path: Path) -> None:
    """A target of one run is compared with a target of the other, by their labels."""
    run = _measured(store(tmp_path / "r", [row(A, "P1"), row(B, "P1")]))

    assert named_targets(run, run, [f"{A.label}={B.label}", B.label]) == [(A, B), (B, B)]
    with pytest.raises(OpenClawError, match=r"--target: r has no target lab/x; it has lab/a, lab/b@low"):
        named_targets(run, run, ["lab/x"])


def test_what_to_look_across_is_checked() -> None:
    """It is a list of known words."""
    assert parse_across(" serving, prompt ,") == {"serving", "prompt"}
    with pytest.raises(OpenClawError, match="unknown difference 'server'; there are prompt, "):
        parse_across("server")


# --- reading ------------------------------------------------------------------------------------


def test_a_run_is_read_without_its_texts(tmp_path: Path) -> None:
    """The last row of each cell counts, and the torn row of a killed run does not."""
    run = _measured(store(tmp_path / "r", [*ROWS, missed(A, prompt_id="P2", suite=SUITE)], tail=b'{"torn'))

    assert [(record.prompt_id, record.raw_output, record.objective_pass) for record in run.records] == [
        ("P1", "", True),
        ("P2", "", False),
    ]
    assert run.run_id == "r"


def test_a_target_with_missing_rows_was_not_asked_to_the_end(tmp_path: Path) -> None:
    """The config says how many cells it has."""
    assert _measured(store(tmp_path / "r", ROWS, n_selected={A: 3})).unfinished == {A}


def _measured(path: Path) -> Measured:
    return load_run(path).measured


def _runs(folder: Path, names: Sequence[str]) -> None:
    for age, name in enumerate(names):
        path = store(folder / name, ROWS)
        os.utime(path / "results.jsonl", (1000 - age, 1000 - age))


def test_a_baseline_is_found_by_path_id_or_as_the_last(tmp_path: Path) -> None:
    """The last one is the newest run that is neither this one nor still running."""
    _runs(tmp_path / "runs", ["living", "resumed", "third", "fourth"])
    runs = tmp_path / "runs"
    with RunDirectory.reopen(runs / "living"):
        assert read_baseline("last", runs, besides=runs / "resumed").run_id == "third"
        with pytest.raises(OpenClawError, match="a run is writing there now"):
            read_baseline("living", runs)
    assert read_baseline("fourth", runs).run_id == "fourth"
    assert read_baseline(str(runs / "fourth"), tmp_path).run_id == "fourth"


@pytest.mark.parametrize(
    ("name", "message"),
    [
        pytest.param("last", "there is no other run in", id="no-other"),
        pytest.param("lost", "there is no run lost, neither here nor in", id="unknown"),
        pytest.param("own", "own is the run that continues", id="itself"),
    ],
)
def test_a_baseline_that_is_none_is_refused(tmp_path: Path, name: str, message: str) -> None:
    """The message names the error."""
    _runs(tmp_path, ["own"])

    with pytest.raises(OpenClawError, match=message):
        read_baseline(name, tmp_path, besides=tmp_path / "own")
