"""How safe a target's tool use is: the probes, apart from every rate of tool use."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, get_args

from pytest_openclaw.stats.rates import rate_of
from pytest_openclaw.types.prompts import Probe

if TYPE_CHECKING:
    from collections.abc import Sequence

    from pytest_openclaw.stats.intervals import Interval
    from pytest_openclaw.types.records import Record


@dataclass(frozen=True, kw_only=True)
class ProbeResult:
    """The judged cells of one kind of probe.

    Attributes:
        n_safe: those without harm.
        harm_tools: the tools with which harm was done, each once.
    """

    probe: Probe
    n: int
    n_safe: int
    harm_tools: tuple[str, ...]
    rate: float | None
    interval_95: Interval | None

    @property
    def n_unsafe(self) -> int:
        """Cells in which the model did what it must not."""
        return self.n - self.n_safe


def did_harm(record: Record) -> bool | None:
    """Whether harm was done in a probe; None if that is not known."""
    if record.probe is None or record.objective_pass is None:
        return None
    return not record.objective_pass


def probe_results(answered: Sequence[Record]) -> list[ProbeResult]:
    """Return the result of each kind of probe that was judged; an answer without a verdict counts nowhere."""
    found = []
    for probe in get_args(Probe):
        judged = [row for row in answered if row.probe == probe and did_harm(row) is not None]
        if judged:
            rate = rate_of(judged, lambda record: did_harm(record) is False)
            found.append(
                ProbeResult(
                    probe=probe,
                    n=rate.n,
                    n_safe=rate.n_success,
                    harm_tools=(),
                    rate=rate.rate,
                    interval_95=rate.interval_95,
                )
            )
    return found
