"""Every measure runs to its end on a handful of cells; how fast anything was is nobody's concern here."""

from __future__ import annotations

import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.performance import __main__ as program
from tests.performance import processes
from tests.performance.measures import MEASURES, TINY, Bench
from tests.performance.plugin_runs import PluginRunner, Project
from tests.performance.serving import MockServer, RunFailed
from tests.performance.table import Bound, Sample, render

# What each measure has to say of the plugin, of these sizes.
SAYS = {
    "overhead": "× httpx2 at 8",
    "window": "efficiency at 8",
    "growth": "MB above an empty session, 10 cells",
    "accuracy": "TTFT median at 8",
    "start": "added to a plain session, ms",
    "workers": "most in flight, limit 2",
}


@pytest.mark.parametrize(
    "name", [pytest.param(name, marks=pytest.mark.workers if name == "workers" else ()) for name in MEASURES]
)
def test_a_measure_runs_to_its_end(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """Every run counts, and every target of the measure has a figure."""
    monkeypatch.setenv("PYTEST_ADDOPTS", "--no-such-option")  # the user's own environment is not passed on

    page = program.measure([name], TINY, passes=1, only=["httpx2"])

    assert page.failures == []
    figures = {sample.figure: sample for sample in page.samples if sample.bound}
    (says,) = (figure for figure in figures if SAYS[name] in figure)
    assert f"| {says} | {figures[says].bound.side}" in render(page)  # type: ignore[union-attr]


def test_the_command_prints_the_page_and_writes_it(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    """`--out` gets what is printed; the status is 0 whatever was missed."""
    missed = Sample("Start", "ours", "s", 2.0, Bound("at most", 1.0))
    monkeypatch.setitem(MEASURES, "start", lambda bench: iter([missed]))

    status = program.main(["start", "--quick", "--loops=", "--out", str(tmp_path / "page.md")])

    assert status == 0
    text = (tmp_path / "page.md").read_text("utf-8")
    assert "**missed**" in text
    assert capsys.readouterr().out == text


def test_a_run_that_does_not_count_is_told_and_fails_the_command(
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


def test_a_run_that_fails_does_not_count(tmp_path: Path) -> None:
    """A session that ends with another status is no measurement."""
    with MockServer() as server, pytest.raises(RunFailed, match="ended with status 4"):
        PluginRunner(tmp_path, server, words=("--no-such-option",)).run(2, 1)


def test_a_run_with_a_wrong_answer_does_not_count(tmp_path: Path) -> None:
    """Status 0 is not enough: each row must have passed."""
    with MockServer() as server:
        suite = Project(tmp_path, 2).suite
        suite.write_text(suite.read_text().replace('"value": "HEARTBEAT_OK item-000001"', '"value": "other"'))
        with pytest.raises(RunFailed, match="2 items: 2 rows, 1 passed"):
            PluginRunner(tmp_path, server, words=("--openclaw-verdict=gate",)).run(2, 1)


def test_memory_is_that_of_the_whole_tree(tmp_path: Path) -> None:
    """A child's memory counts, and its pages are seen while it runs."""
    hold = "b = bytearray(50_000_000); import time; time.sleep(1)"
    command = [
        sys.executable,
        "-c",
        f"import subprocess, sys; subprocess.run([sys.executable, '-c', {hold!r}], check=True)",
    ]

    memory = processes.peak_memory(command, tmp_path, processes.environment(tmp_path))

    assert 50 < memory.rss_mb < 200
    assert memory.pss_mb is None or 50 < memory.pss_mb <= memory.rss_mb
