"""Every measure runs to its end with a few cells; its speed does not matter here."""

from __future__ import annotations

import sys
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

import pytest

from tests.performance import __main__ as program
from tests.performance import processes
from tests.performance.measures import MEASURES, TINY, Bench, beyond_start, efficiency, errors_of, middle
from tests.performance.peer_runs import find_peers
from tests.performance.plugin_runs import PluginRunner, Project
from tests.performance.processes import Cost, Memory
from tests.performance.runs import Run, Times
from tests.performance.serving import MockServer, RunFailed, Served, ServerLog
from tests.performance.table import Bound, Sample, render

pytestmark = pytest.mark.newest

# The figures of the plugin that each measure must have, with these sizes.
SAYS = {
    "overhead": "× httpx2 at 8",
    "window": "efficiency at 8",
    "growth": "MB above an empty session, 10 cells",
    "accuracy": "TTFT median at 8",
    "start": "added to a plain session, ms",
    "workers": "most in flight, limit 2",
    "fleet": "merged, summarized and exported, s",
}


@pytest.mark.parametrize("name", [pytest.param(name, marks=pytest.mark.nightly) for name in MEASURES])
def test_a_measure_runs_to_its_end(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """Every run counts, and every target of the measure has a figure."""
    monkeypatch.setenv("PYTEST_ADDOPTS", "--no-such-option")  # the user's own environment is not passed on

    page = program.measure([name], TINY, passes=1, only=["httpx2"])

    assert page.failures == []
    figures = {sample.figure: sample for sample in page.samples if sample.bound}
    (says,) = (figure for figure in figures if SAYS[name] in figure)
    assert f"| {says} | {figures[says].bound.side}" in render(page)  # type: ignore[union-attr]


@pytest.mark.nightly
def test_the_command_prints_the_page_and_writes_it(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    """`--out` gets the printed page; the status is 0 whatever was missed."""
    missed = Sample("Start", "ours", "s", 2.0, Bound("at most", 1.0))
    monkeypatch.setitem(MEASURES, "start", lambda bench: iter([missed]))

    status = program.main(["start", "--quick", "--loops=", "--out", str(tmp_path / "page.md")])

    assert status == 0
    text = (tmp_path / "page.md").read_text("utf-8")
    assert "**missed**" in text
    assert capsys.readouterr().out == text


@pytest.mark.nightly
def test_a_run_that_does_not_count_is_reported_and_fails_the_command(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    """The other figures are printed all the same."""

    def measure(bench: Bench) -> Iterator[Sample]:
        with bench.counting("Start", "ours"):
            raise RunFailed("2 items: 1 row")
        yield Sample("Start", "theirs", "s", 2.0)

    monkeypatch.setitem(MEASURES, "start", measure)

    status = program.main(["start", "--quick", "--loops="])

    assert status == 1
    text = capsys.readouterr().out
    assert "ours did not count: 2 items: 1 row" in text
    assert "| s | 2 |" in text


def _run(*answered: tuple[Served, Times]) -> Run:
    log = ServerLog(tuple(served for served, _ in answered), n_other=0, n_given_up=0, max_in_flight=1)
    return Run(Cost(1.0, 1.0, ""), log, {served.item: times for served, times in answered})


def test_a_cells_cost_is_that_of_the_cells_after_the_first() -> None:
    """1.5 s for 11 cells and 0.5 s for one, in the median, are 100 ms a cell."""
    one = middle([Cost(0.5, 0.25, ""), Cost(0.4, 0.2, ""), Cost(9.0, 8.0, "")])

    assert beyond_start(one, Cost(1.5, 0.5, ""), 11) == (100.0, 25.0)


def test_efficiency_is_ideal_rounds_by_the_time_they_took() -> None:
    """9 calls at 8 in flight are two rounds of 195 ms, here in half a second of the server's time."""
    times = Times(ttft_ms=None, e2e_ms=None)
    run = _run((Served("a", 10.0, 10.1, 10.2), times), (Served("b", 10.25, 10.4, 10.5), times))

    assert efficiency(run, 9, 8) == pytest.approx(0.39 / 0.5)


def test_errors_are_against_the_servers_own_times() -> None:
    """Too long and too short count alike, reply by reply; a program without times has no error."""
    run = _run(
        (Served("a", 10.0, 10.1, 10.2), Times(ttft_ms=101.0, e2e_ms=198.0)),
        (Served("b", 11.0, 11.1, 11.5), Times(ttft_ms=None, e2e_ms=503.0)),
    )  # fmt: skip

    errors = errors_of(run)

    assert errors["TTFT"] == pytest.approx([1.0])
    assert errors["e2e"] == pytest.approx([2.0, 3.0])
    assert errors_of(_run((Served("a", 1.0, 1.1, 1.2), Times(None, None)))) == {}


def test_memory_is_compared_as_pss_if_the_system_reports_it() -> None:
    """Otherwise as RSS."""
    ours, empty = Memory(pss_mb=50.0, rss_mb=90.0), Memory(pss_mb=30.0, rss_mb=40.0)

    assert ours.above(empty) == (20.0, "PSS")
    assert replace(ours, pss_mb=None).above(empty) == (50.0, "RSS")


def test_peers_are_found_by_their_environments_python(tmp_path: Path) -> None:
    """What an environment lacks is left out."""
    python = tmp_path / "python"
    python.write_text('#!/bin/sh\ncase "$2" in *inspect-ai*) echo 1.2.3;; *) exit 1;; esac\n')
    python.chmod(0o755)

    peers = find_peers(str(python), tmp_path, MockServer())

    assert [peer.name for peer in peers] == ["inspect-ai 1.2.3"]


def test_a_run_that_fails_does_not_count(tmp_path: Path) -> None:
    """A session that ends with another status is no measurement."""
    with MockServer() as server, pytest.raises(RunFailed, match="ended with status 4"):
        PluginRunner(tmp_path, server, words=("--no-such-option",)).run(2, 1)


@pytest.mark.nightly
def test_a_run_with_a_wrong_answer_does_not_count(tmp_path: Path) -> None:
    """Status 0 is not enough: each row must have passed."""
    with MockServer() as server:
        suite = Project(tmp_path, 2).suite
        suite.write_text(suite.read_text().replace('"value": "HEARTBEAT_OK item-000001"', '"value": "other"'))
        with pytest.raises(RunFailed, match="2 items: 2 rows, 1 passed"):
            PluginRunner(tmp_path, server, words=("--openclaw-verdict=gate",)).run(2, 1)


def test_memory_is_that_of_the_whole_tree(tmp_path: Path) -> None:
    """A child's memory counts, and its pages are seen while it runs."""
    hold = "b = bytearray(50_000_000); import time; time.sleep(3)"
    command = [
        sys.executable,
        "-c",
        f"import subprocess, sys; subprocess.run([sys.executable, '-c', {hold!r}], check=True)",
    ]

    memory = processes.peak_memory(command, tmp_path, processes.environment(tmp_path))

    assert 50 < memory.rss_mb < 200
    assert memory.pss_mb is None or 50 < memory.pss_mb <= memory.rss_mb
