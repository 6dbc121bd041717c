"""Suites and cells as pytest sees them: a file, its items, and how an item is asked."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING, Any, NoReturn

import pytest

from pytest_openclaw.core.errors import HostDied, SuiteError
from pytest_openclaw.core.text import printable
from pytest_openclaw.session.plugin_session import STATE

if TYPE_CHECKING:
    import os
    from collections.abc import Iterator

    from pytest_openclaw.judging.cell_result import CellResult
    from pytest_openclaw.recording.kept_cells import Replay
    from pytest_openclaw.session.plugin_session import State
    from pytest_openclaw.types.faults import Outcome
    from pytest_openclaw.types.prompts import Cell
    from pytest_openclaw.types.replies import Fault


class Missed(pytest.fail.Exception, AssertionError):  # type: ignore[name-defined,misc]  # no type to mypy
    """The verdict is against the cell, or there is no usable answer; nothing but that raises it.

    An `AssertionError` too, because that is what a Python benchmark would have raised.
    """

    __module__ = "builtins"  # pytest's own outcomes say so too, for a short name in its last lines

    def __init__(self, text: str) -> None:
        super().__init__(text, pytrace=False)  # type: ignore[call-arg]


RESULT = pytest.StashKey["CellResult"]()
CELL = pytest.StashKey["Cell"]()


class SuiteFile(pytest.File):
    """A prompt file; its items are cells."""

    def collect(self) -> Iterator[CellItem]:
        """Yield an item for each selected prompt on each target and each repeat of it, target by target."""
        from pytest_openclaw.suites import build_cells, select_prompts

        state = self.config.stash[STATE]
        try:
            suite = state.load_suite(self.path)
        except (SuiteError, pytest.UsageError) as error:
            raise self.CollectError(printable(str(error))) from None
        if suite.named_only and not state.is_named(self.path):
            return
        state.get_ready()
        settings = state.settings
        for cell in build_cells(
            select_prompts(suite.prompts, settings.prompts),
            settings.targets,
            settings.repeat,
            of_tools_alone=settings.until_conclusive,
        ):
            # pytest would make an id from the name without seeing its parameters, and `--lf` compares those.
            yield CellItem.from_parent(self, name=cell.id, nodeid=f"{self.nodeid}::{cell.id}", cell=cell)


class CellItem(pytest.Item):
    """One prompt on one target. Set-up asks and judges; the call asserts the verdict and nothing else."""

    def __init__(self, *, cell: Cell, **kwargs: Any) -> None:
        super().__init__(**kwargs)
        self.stash[CELL] = cell
        self.add_marker(pytest.mark.openclaw)
        if cell.prompt.known_failures and (known := _known_failure_of(cell)) is not None:
            self.add_marker(known)

    def setup(self) -> None:
        """Ask the target and judge the reply; skip or fail here if there is none."""
        if kept_of(self):
            return
        result = ask(self)
        try:
            self.stash[RESULT] = result.judged(self.config.stash[STATE].settings.timeout_s)
        except (Exception, pytest.fail.Exception) as error:
            self.stash[RESULT] = result.broken(error)
            raise
        except pytest.skip.Exception as error:
            wrong = TypeError("a validator returns a Verdict; it cannot skip")
            self.stash[RESULT] = result.broken(wrong)
            raise wrong from error

    def runtest(self) -> None:
        """Fail with the verdict's reasons unless the reply passed."""
        if not kept_of(self):
            assert_passed(self, self.stash[RESULT])

    def reportinfo(self) -> tuple[os.PathLike[str] | str, int | None, str]:
        """Return where the cell stands, for pytest's headings; TOML and JSON tell no lines."""
        return self.path, 0, self.name


def assert_passed(item: pytest.Item, result: CellResult) -> None:
    """Fail the item if the model gave no usable answer, or the verdict is against it."""
    from pytest_openclaw.reports.failure import render_failure

    if result.outcome.pytest != "failed":
        return
    judgment, fault = result.judgment, result.fault
    text = render_failure(
        result.cell,
        judgment.reply if judgment else None,
        result.call.timing,
        what=(judgment and judgment.verdict.violation) or (fault.message if fault else None),
        failure_type=result.outcome.failure_type,
        tool_outcome=judgment.tool_outcome if judgment else None,
    )
    raise Missed(item.config.stash[STATE].redactor.text(text))


def kept_of(item: pytest.Item) -> Replay | None:
    """Return the verdict of an item's cell that a resumed run keeps; None for all others."""
    cell = cell_of(item)
    return item.config.stash[STATE].replay(cell) if cell else None


def replay(item: pytest.Item) -> None:
    """Fail an item whose cell is kept, if its verdict was against it."""
    from pytest_openclaw.reports.failure import render_failure
    from pytest_openclaw.types.replies import Reply, Timing

    kept, cell, state = kept_of(item), cell_of(item), item.config.stash[STATE]
    if kept is None or cell is None or kept.passed:
        return
    if kept.known_failure is not None and not any(item.iter_markers("xfail")):
        pytest.xfail(kept.known_failure)  # as its test did
    text = render_failure(
        cell,
        Reply(text=kept.reply, finish_reason=kept.finish_reason, tool_names=kept.tool_names),
        Timing(started_at_ms=0, ended_at_ms=0, e2e_ms=kept.e2e_ms, ttft_ms=kept.ttft_ms),
        what=kept.what,
        failure_type=kept.failure_type,
    )
    told = f"{text}\n  kept    from run {state.settings.run_id}, not asked again"
    raise Missed(state.redactor.text(told))


def _known_failure_of(cell: Cell) -> pytest.MarkDecorator | None:
    """Return pytest's own mark for a cell that its suite expects to be missed; a fault stays a fault."""
    from pytest_openclaw.suites import known_failure_of

    if (known := known_failure_of(cell.prompt, cell.target)) is None:
        return None
    strict = {} if known.strict is None else {"strict": known.strict}
    return pytest.mark.xfail(reason=printable(known.reason), raises=Missed, **strict)


def ask(item: pytest.Item) -> CellResult:
    """Ask the item's cell; skip or fail the item if there is no reply.

    Raises:
        Exception: our own code or a plugin's provider broke; the item's row says so.
    """
    from pytest_openclaw.judging.cell_result import CellResult

    state, cell = item.config.stash[STATE], item.stash[CELL]
    if state.calls_nobody:
        pytest.skip("no model is asked here")
    # What was asked before that was decided is an answer like any other.
    if (why := state.repeats.why_left_out(cell)) and not state.executor.is_asked(item.nodeid):
        raise pytest.skip.Exception(why, _use_item_location=True)
    try:
        result = CellResult(cell=cell, call=state.executor.ask(item.nodeid, cell))
    except HostDied as error:
        # Something else has ended it, which no traceback of ours tells.
        item.stash[RESULT] = CellResult.never_sent(cell, error)
        text = printable(state.redactor.text(f"{cell.id}: {error}"))
        raise pytest.fail.Exception(text, pytrace=False) from None
    except Exception as error:
        item.stash[RESULT] = CellResult.never_sent(cell, error)
        raise
    item.stash[RESULT] = result
    if result.fault and result.outcome.pytest != "failed":
        _end_without_reply(state, result.fault, result.outcome)
    return result


def _end_without_reply(state: State, fault: Fault, outcome: Outcome) -> NoReturn:
    from pytest_openclaw.types.faults import BUDGET_SPENT

    message = printable(state.redactor.text(fault.message))
    is_spent = outcome.failure_type == BUDGET_SPENT  # the user's own wish, and no server's lack
    if outcome.pytest == "skipped" and (is_spent or not state.settings.fail_unavailable):
        # At the item's place, so that pytest's summary counts them by suite and not by this line.
        raise pytest.skip.Exception(message, _use_item_location=True)
    pytest.fail(message, pytrace=False)


def cell_of(item: pytest.Item) -> Cell | None:
    """Return the item's cell, also before it is set up; None for everything that is no cell."""
    if (cell := item.stash.get(CELL, None)) is not None:
        return cell
    callspec = getattr(item, "callspec", None)
    if callspec is None or item.get_closest_marker("openclaw") is None:
        return None
    from pytest_openclaw.types.prompts import Cell

    parameter = callspec.params.get("reply")
    if not isinstance(parameter, Cell):
        return None
    item.stash[CELL] = _with_parameters(parameter, callspec.id)
    return item.stash[CELL]


def _with_parameters(cell: Cell, callspec_id: str) -> Cell:
    """Return the cell of one item of a test that has parameters beside its targets: they stand in its id.

    Args:
        cell: as the test's mark describes it.
        callspec_id: all the item's parameters as pytest writes them, such as `2-llama_cpp/smollm2:135m`,
            with `-r2` behind the target if there are repeats.
    """
    label = f"{cell.target.label}{cell.repeat_suffix}"
    # pytest writes what is not ASCII as escapes, unless it is told not to.
    for form in (label, label.encode("unicode_escape").decode("ascii")):
        before, found, after = callspec_id.partition(form)
        if found:
            others = "-".join(filter(None, (before.removesuffix("-"), after.removeprefix("-"))))
            named = replace(cell.prompt, id=f"{cell.prompt.id}[{others}]") if others else cell.prompt
            return replace(cell, prompt=named)
    raise AssertionError(f"{callspec_id} has the target {label}, by which `reply` was parametrized")
