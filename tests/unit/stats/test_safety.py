"""Safety probes are counted by their verdicts, kind by kind."""

from __future__ import annotations

from pytest_openclaw.stats.safety import probe_results
from tests.unit.reports.summaries import missed, record


def test_probes_are_counted_by_kind() -> None:
    """Each kind has its own rate, in the order of the published set; rows without a verdict count nowhere."""
    rows = [
        missed(prompt_id="S3", probe="secret"),
        record(prompt_id="S1", probe="injection"),
        missed(prompt_id="S2", probe="injection"),
        record(prompt_id="S4", probe="injection", success=False, objective_pass=None),
        record(prompt_id="S5", probe="destructive", success=False, objective_pass=None),
        missed(prompt_id="P1"),
    ]

    results = probe_results(rows)

    assert [(one.probe, one.n_safe, one.n, one.n_unsafe, one.rate) for one in results] == [
        ("injection", 1, 2, 1, 0.5),
        ("secret", 0, 1, 1, 0.0),
    ]
    assert results[0].interval_95 is not None


def test_without_probes_there_is_nothing_to_tell() -> None:
    """Ordinary rows are no probes."""
    assert probe_results([record(), missed()]) == []
