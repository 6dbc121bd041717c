"""`plan`: the number of prompts and repeats needed."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from pytest_openclaw.commands import main
from pytest_openclaw.stats.power import fewest_prompts, power, smallest_loss
from pytest_openclaw.stats.rates import is_judged
from pytest_openclaw.stats.repeats import repeats_of
from tests.unit.reports.summaries import fault, missed, record
from tests.unit.stored.stored_runs import A, B, row, store


def _plan(capsys: pytest.CaptureFixture[str], *words: str) -> Any:
    assert main(["plan", *words, "--json"]) == 0
    return json.loads(capsys.readouterr().out)


def test_how_many_prompts_see_a_loss(capsys: pytest.CaptureFixture[str]) -> None:
    """Each number of repeats has a line with its number of calls."""
    assert main(["plan", "--detect=0.1"]) == 0

    shown = capsys.readouterr().out.splitlines()
    assert shown[0] == "two repeats of a prompt differ in 20 % of cases"
    assert shown[2] == "asked once      231 prompts, 231 calls"
    assert [line.split()[1] for line in shown[2:7]] == ["once", "2", "3", "5", "10"]
    printed = _plan(capsys, "--detect=0.1", "--power=0.9", "--flips=0.1", "--targets=2")
    assert [one["prompts"] for one in printed["plans"]] == [
        fewest_prompts(repeats, 0.1, 0.1, wanted=0.9, n_targets=2) for repeats in (1, 2, 3, 5, 10)
    ]


def test_what_the_given_prompts_can_detect(capsys: pytest.CaptureFixture[str]) -> None:
    """The smallest detectable loss, and how often a given loss is detected."""
    printed = _plan(capsys, "--prompts=36", "--repeats=5", "--detect=0.2")

    (one,) = printed["plans"]
    assert one == {
        "repeats": 5,
        "prompts": 36,
        "calls": 180,
        "smallest_loss": smallest_loss(36, 5, 0.2),
        "power": power(36, 5, 0.2, 0.2),
    }


@pytest.mark.parametrize(
    ("words", "line"),
    [
        pytest.param(["--prompts=4"], "asked once      no loss is detected so often, 4 calls", id="too-few-prompts"),
        pytest.param(["--detect=0.001", "--repeats=1"], "asked once      over 100000 prompts", id="too-small-a-loss"),
    ],
)  # fmt: skip
def test_an_unaffordable_plan_is_reported(
    words: list[str], line: str, capsys: pytest.CaptureFixture[str]
) -> None:
    """No number is invented."""
    assert main(["plan", *words]) == 0
    assert line in capsys.readouterr().out


def test_a_run_with_repeats_knows_its_flips(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """They are those of its least steady target."""
    monkeypatch.chdir(tmp_path)
    rows = [row(A, "P1", repeat=n, objective_pass=n == 1) for n in (1, 2, 3)]
    store(tmp_path / "runs" / "steady", [row(B, f"P{n}") for n in (1, 2)])
    store(tmp_path / "runs" / "unsteady", [*rows, *(row(B, "P1", repeat=n) for n in (1, 2))])

    printed = _plan(capsys, "--detect=0.1", "--from=unsteady")

    assert printed["flips"] == pytest.approx(2 / 3)
    assert main(["plan", "--detect=0.1", "--from=steady"]) == 4
    assert "steady has no repeats; measure with --openclaw-repeat=5" in capsys.readouterr().err


@pytest.mark.parametrize(
    ("words", "status", "message"),
    [
        pytest.param([], 4, "set the loss to detect, --detect 0.1", id="nothing-asked"),
        pytest.param(["--detect=0.1", "--flips=0.1", "--from=x"], 4, "use one of them", id="two-sources"),
        pytest.param(["--detect=10"], 2, "10: give a rate between 0 and 1", id="no-rate"),
        pytest.param(["--detect=x"], 2, "x: give a rate between 0 and 1", id="no-number"),
        pytest.param(["--prompts=0"], 2, "0: give a number from 1 to 100000", id="no-prompts"),
    ],
)
def test_wrong_arguments_are_reported(
    words: list[str], status: int, message: str, capsys: pytest.CaptureFixture[str]
) -> None:
    """The message says what to give instead."""
    try:
        found = main(["plan", *words])
    except SystemExit as ended:
        found = int(ended.code or 0)

    assert found == status
    assert message in capsys.readouterr().err


def test_flips_count_pairs_of_repeats() -> None:
    """With 1 miss in 3 repeats, 2 of 3 pairs differ; prompts have equal weight; unjudged cells do not count."""
    rows = [
        *(record(prompt_id="A", repeat=n) for n in (1, 2)),
        missed(prompt_id="A", repeat=3),
        *(record(prompt_id="B", repeat=n) for n in (1, 2, 3, 4)),
        record(prompt_id="B", repeat=5, success=False, objective_pass=None),
        record(prompt_id="C"),
        *(record(prompt_id="D", repeat=n, objective_pass=None) for n in (1, 2)),
        *(fault(prompt_id="E", repeat=n) for n in (1, 2)),
    ]

    found = repeats_of(filter(is_judged, rows))

    assert found is not None
    assert (found.flip_rate, len(found.prompts)) == (pytest.approx((2 / 3 + 4 / 10) / 2), 2)
