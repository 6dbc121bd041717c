"""What an item tells of its cell: whether to ask it ahead, how it has ended, what its report carries."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from pytest_openclaw.session.items import RESULT, CellItem, Missed, cell_of
from pytest_openclaw.session.python_benchmarks import judged_by_test
from pytest_openclaw.session.repeat_threshold import passed_strictly

if TYPE_CHECKING:
    from collections.abc import Iterable

    from pytest_openclaw.core.json_types import JsonObject
    from pytest_openclaw.judging.cell_result import CellResult


def may_ask_ahead(item: pytest.Item) -> bool:
    """Whether the item will want its reply, as far as its marks tell."""
    return not any(
        mark.name in ("skip", "skipif") or (mark.name == "xfail" and not mark.kwargs.get("run", True))
        for mark in item.iter_markers()
    )


def benchmarks_of(collected: Iterable[pytest.Item]) -> JsonObject:
    """Return the cells of Python benchmarks by id: target, repeat, and whether its repeats are fixed.

    An xdist controller sees ids alone, which do not tell a repeat from a parameter that is called `r2`.
    """
    cells = ((item.nodeid, cell_of(item)) for item in collected if not isinstance(item, CellItem))
    return {nodeid: [cell.target.label, cell.repeat, cell.is_fixed_repeat] for nodeid, cell in cells if cell}


def in_hand(item: pytest.Item) -> CellResult | None:
    """Return how an item's cell has ended, if that is known while its test is under way.

    One that is still to be judged may be what holds the session up.
    """
    result = item.stash.get(RESULT, None)
    has_ended = result is not None and (result.judgment or result.fault)
    return result if has_ended and isinstance(item, CellItem) else None


def is_verdict(item: pytest.Item, report: pytest.TestReport, call: pytest.CallInfo[None]) -> bool:
    """Whether an item failed by what its model said, and not by a fault or by somebody else's hook."""
    if not report.failed or call.when != "call":
        return False
    if call.excinfo is None:
        return passed_strictly(report)
    verdicts = Missed if isinstance(item, CellItem) else (AssertionError, pytest.fail.Exception)
    return isinstance(call.excinfo.value, verdicts)


def result_of(item: pytest.Item, call: pytest.CallInfo[None]) -> CellResult | None:
    """Return how a cell has ended; None if it was skipped before it was sent."""
    from pytest_openclaw.judging.cell_result import CellResult

    result = item.stash.get(RESULT, None)
    if result is None:
        error = call.excinfo.value if call.excinfo else None
        if error is None or isinstance(error, pytest.skip.Exception):
            return None
        cell = cell_of(item)
        assert cell is not None, "only cells have results"
        return CellResult.never_sent(cell, error)
    return result if isinstance(item, CellItem) else judged_by_test(result, call)


def forget(item: pytest.Item) -> None:
    """Drop the reply: pytest keeps every item to the end, and an answer may have megabytes."""
    if RESULT in item.stash:
        del item.stash[RESULT]
