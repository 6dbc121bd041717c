"""The forecast of a run, from its cells, earlier runs of them, endpoint limits and prices."""

from __future__ import annotations

from collections import Counter
from dataclasses import replace
from typing import TYPE_CHECKING

from pytest_openclaw.asking.limits import endpoint_limits
from pytest_openclaw.core.errors import OpenClawError
from pytest_openclaw.providers.prices import Prices, has_list, install_list
from pytest_openclaw.recording.run_directory import RESULTS
from pytest_openclaw.session.spending import how_to_price
from pytest_openclaw.stats.forecast import Forecast, Line, PastAnswers, Sum, Typical
from pytest_openclaw.stored.reading import StoredRow, read_rows, runs_by_age
from pytest_openclaw.suites import is_wildcard
from pytest_openclaw.types.replies import Usage
from pytest_openclaw.types.worlds import most_turns

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence
    from pathlib import Path

    from pytest_openclaw.types.prompts import Cell
    from pytest_openclaw.types.protocols import Provider
    from pytest_openclaw.types.records import Record
    from pytest_openclaw.types.settings import Settings
    from pytest_openclaw.types.targets import Target

MOST_RUNS = 10
_BY_SERVED = "{label} means every model served there; each of them takes as much"
_NO_PRICE = "what {label} costs is not known; in the ini file: openclaw_prices = {label} = INPUT OUTPUT"
_AT_MOST = "tool prompts are asked at most so often: repeats end once a tier is settled"


def forecast(cells: Sequence[Cell], providers: Mapping[str, Provider], settings: Settings) -> Forecast:
    """Return the calls, tokens, time and cost that these cells would take.

    Args:
        cells: those that would be run, in order.
        providers: of their targets; no call is made.
        settings: the run's.
    """
    notes: list[str] = []
    history = PastAnswers(newest_runs(settings.runs_dir, notes))
    typical = {cell.key: history.typical(cell.key) for cell in cells}
    by_target: dict[Target, list[Cell]] = {}
    for cell in cells:
        by_target.setdefault(cell.target, []).append(cell)
    limits, prices = endpoint_limits(providers, settings), Prices(providers, settings)
    lines = []
    for target, its in by_target.items():
        typicals = [typical[cell.key] for cell in its]
        endpoint = providers[target.provider].endpoint
        lines.append(
            Line(
                label=target.label,
                endpoint=endpoint,
                n_cells=len(its),
                n_calls=sum(most_turns(cell.prompt.world, 1 + len(cell.prompt.turns)) for cell in its),
                input_tokens=Sum.of(one.input_tokens for one in typicals),
                output_tokens=Sum.of(one.output_tokens for one in typicals),
                seconds=_seconds(typicals, limits[endpoint]),
                usd=Sum.of(_usd(prices, target, one) for one in typicals),
            )
        )
    based_on = Counter(one.run_id for one in typical.values() if one.run_id is not None)
    notes += _notes(by_target, settings)
    unpriced = [target for target in by_target if not prices.is_known(target)]
    by_list = [target.label for target in unpriced if prices.needs_list(target)]
    needs_extra = bool(by_list) and not has_list()
    if needs_extra:
        notes.append(how_to_price(by_list))
    elif unpriced:
        notes.append(_NO_PRICE.format(label=unpriced[0].label))
    return Forecast(
        lines=lines,
        based_on=based_on,
        budget_usd=settings.budget_usd,
        notes=notes,
        next_command=install_list() if needs_extra else "",
    )


def newest_runs(runs_dir: Path, notes: list[str]) -> Iterator[tuple[str, list[Record]]]:
    """Yield the newest runs, newest first, each with its rows without the models' replies.

    Args:
        runs_dir: where they are.
        notes: receives a sentence about each run that cannot be read.
    """
    for path in runs_by_age(runs_dir)[:MOST_RUNS]:
        try:
            yield path.name, [*_bare_rows(path / RESULTS)]
        except OpenClawError as error:
            notes.append(f"left out: {error}")


def _bare_rows(results: Path) -> Iterator[Record]:
    for row in read_rows(results):
        if isinstance(row, StoredRow):
            yield replace(row.record, raw_output="", parsed_output=None, tool_call_details=(), turns=None)


def _seconds(typicals: Sequence[Typical], limit: int) -> Sum:
    """Return the time of these cells with `limit` at a time; at least that of the longest."""
    alone = Sum.of(one.e2e_ms for one in typicals)
    longest_ms = max((one.e2e_ms or 0.0 for one in typicals), default=0.0)
    return replace(alone, value=max(alone.value / limit, longest_ms) / 1000)


def _usd(prices: Prices, target: Target, one: Typical) -> float | None:
    if is_wildcard(target) and not prices.is_free(target):
        return None
    usage = Usage(
        input_tokens=one.input_tokens, output_tokens=one.output_tokens, cached_tokens=one.cached_tokens
    )
    return prices.estimate_usd(target, usage)


def _notes(by_target: Mapping[Target, Sequence[Cell]], settings: Settings) -> Iterator[str]:
    for target in by_target:
        if is_wildcard(target):
            yield _BY_SERVED.format(label=target.label)
    if settings.until_conclusive:
        yield _AT_MOST
