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
from pytest_openclaw.types.run_config import NO_TEMPERATURE, temperature_of
from pytest_openclaw.types.targets import Target
from tests.unit.reports.summaries import fault, missed, record
from tests.unit.stored.stored_runs import A, B, row, store


def _plan(capsys: pytest.CaptureFixture[str], *words: str) -> Any:
    assert main(["plan", *words, "--json"]) == 0
    return json.loads(capsys.readouterr().out)


def test_how_many_prompts_see_a_loss(capsys: pytest.CaptureFixture[str]) -> None:
    """Each number of repeats has a line with its number of calls."""
    assert main(["plan", "--detect=0.1"]) == 0

    shown = capsys.readouterr().out.splitlines()
    assert shown[0] == "two repeats of a prompt differ in 20 % of cases (assumed, not measured)"
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


def test_a_run_with_repeats_measures_each_target(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """1 of 3 passed: 2 of 3 pairs differ; with a prompt whose repeats agree, 1 of 3 on average."""
    monkeypatch.chdir(tmp_path)
    rows = [row(A, "P1", repeat=n, objective_pass=n == 1) for n in (1, 2, 3)]
    rows += [row(A, "P2", repeat=n) for n in (1, 2, 3)]
    store(
        tmp_path / "runs" / "noise", [*rows, *(row(B, "P1", repeat=n) for n in (1, 2))], temperature="server"
    )

    printed = _plan(capsys, "--detect=0.1", "--from=noise")

    a, b = printed["by_target"]
    assert (a["target"], a["flips"], b["target"], b["flips"]) == (A.label, pytest.approx(1 / 3), B.label, 0)
    assert (a["assumed"], a["temperature"], a["run_id"]) == (False, "server", "noise")
    assert (a["n_prompts"], a["n_cells"], a["n_differing"]) == (2, 6, 1)
    # Wilson's interval of a rate of 1/3 in 2 prompts: (0.3333 + 0.9604 ± 1.1615) / 2.9207.
    assert a["interval_95"] == pytest.approx({"low": 0.0453, "high": 0.8406}, abs=1e-4)
    assert [one["prompts"] for one in b["plans"]] == [fewest_prompts(r, 0, 0.1) for r in (1, 2, 3, 5, 10)]
    assert (printed["flips"], printed["plans"]) == (a["flips"], a["plans"])
    main(["plan", "--detect=0.1", "--from=noise"])
    assert (
        f"{A.label}: two repeats of a prompt differ in 33.3 % of cases (95 %: 4.5 % to 84.0 %), measured in noise:"
        " 2 prompts, 3 repeats each, at the server's own temperature; 1 of them differ"
    ) in " ".join(capsys.readouterr().out.split())


@pytest.mark.parametrize(
    ("repeats", "temperature", "why"),
    [
        pytest.param((1,), "server", "r1 has no repeats of this target; measure with", id="no-repeats"),
        pytest.param(
            (1, 2), 0, "the repeats in r1 are at temperature 0, where they differ in 100 %", id="zero"
        ),
    ],
)
def test_what_was_not_measured_is_assumed(
    repeats: tuple[int, ...],
    temperature: object,
    why: str,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    """The output says why, and names the assumption."""
    monkeypatch.chdir(tmp_path)
    rows = [row(A, "P1", repeat=n, objective_pass=n == 1) for n in repeats]
    store(tmp_path / "runs" / "r1", rows, temperature=temperature)

    printed = _plan(capsys, "--detect=0.1", "--from=r1")

    assert (printed["flips"], printed["assumed"]) == (0.2, True)
    main(["plan", "--detect=0.1", "--from=r1"])
    shown = " ".join(capsys.readouterr().out.split())
    assert f"differ in 20 % of cases (assumed, not measured: {why}" in shown


@pytest.mark.parametrize(
    ("config", "target", "temperature"),
    [
        pytest.param({"temperature": 0}, A, 0, id="setting"),
        pytest.param({"temperature": 0.7}, A, 0.7, id="above-0"),
        pytest.param({"temperature": "server"}, A, "server", id="server"),
        pytest.param({"temperature": 0}, A.on("openclaw"), "server", id="openclaw-sends-none"),
        pytest.param({"request_fields": {"lab": {"temperature": 0.5}}}, A.on("openclaw"), 0.5, id="field"),
        pytest.param({"request_fields": {"lab": {"temperature": None}}}, A, "server", id="left-out"),
        pytest.param({"request_fields": {"lab": {"options": {"temperature": 1}}}}, A, 1, id="ollama"),
        pytest.param({"temperature": 0}, Target(provider="claude_code_cli", model="m"), "server", id="cli"),
    ],
)
def test_the_temperature_is_the_one_that_was_sent(config: Any, target: Target, temperature: object) -> None:
    """A provider, a surface or a field of a server decides before the setting."""
    assert temperature_of(config, target) == temperature


def test_who_sends_no_temperature() -> None:
    """The list is that of the providers themselves."""
    from pytest_openclaw.providers import BUILTIN

    assert {one.name for one in BUILTIN if "temperature" not in one.load().takes} == NO_TEMPERATURE


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
