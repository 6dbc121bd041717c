"""Suites and cells as pytest sees them: a file, its items, and the `reply` of a Python benchmark."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING, Any, NoReturn

import pytest

from pytest_openclaw.errors import HostDied, SuiteError
from pytest_openclaw.state import STATE
from pytest_openclaw.tolerance import expectation_of, passed_strictly

if TYPE_CHECKING:
    import os
    from collections.abc import Iterable, Iterator

    from pytest_openclaw.records import Cell, JsonObject, Reply
    from pytest_openclaw.run.asking import Asked
    from pytest_openclaw.run.resume import Replay
    from pytest_openclaw.state import State


class Missed(pytest.fail.Exception, AssertionError):  # type: ignore[name-defined,misc]  # no type to mypy
    """The verdict is against the cell, or there is no usable answer; nothing but that raises it.

    An `AssertionError` too, because that is what a Python benchmark would have raised.
    """

    __module__ = "builtins"  # pytest's own outcomes say so too, for a short name in its last lines

    def __init__(self, text: str) -> None:
        super().__init__(text, pytrace=False)  # type: ignore[call-arg]


ASKED = pytest.StashKey["Asked"]()
CELL = pytest.StashKey["Cell"]()


class SuiteFile(pytest.File):
    """A prompt file; its items are cells."""

    def collect(self) -> Iterator[CellItem]:
        """Yield an item for each selected prompt on each target and each repeat of it, target by target."""
        from pytest_openclaw.reports.numbers import printable
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
        asked = ask(self)
        state = self.config.stash[STATE]
        try:
            asked = state.asker.judge(asked)
        except (Exception, pytest.fail.Exception) as error:
            self.stash[ASKED] = _broken(asked, error)
            raise
        except pytest.skip.Exception as error:
            wrong = TypeError("a validator returns a Verdict; it cannot skip")
            self.stash[ASKED] = _broken(asked, wrong)
            raise wrong from error
        self.stash[ASKED] = asked

    def runtest(self) -> None:
        """Fail with the verdict's reasons unless the reply passed."""
        if not kept_of(self):
            assert_passed(self, self.stash[ASKED])

    def reportinfo(self) -> tuple[os.PathLike[str] | str, int | None, str]:
        """Return where the cell stands, for pytest's headings; TOML and JSON tell no lines."""
        return self.path, 0, self.name


def assert_passed(item: pytest.Item, asked: Asked) -> None:
    """Fail the item if the model gave no usable answer, or the verdict is against it."""
    from pytest_openclaw.records import Fault
    from pytest_openclaw.reports.failure import render_failure

    if asked.outcome.pytest != "failed":
        return
    result, judgement = asked.ending.result, asked.judgement
    text = render_failure(
        asked.cell,
        None if isinstance(result, Fault) else judgement.reply if judgement else result,
        asked.ending.timing,
        what=(judgement and judgement.verdict.violation)
        or (result.message if isinstance(result, Fault) else None),
        failure_type=asked.outcome.failure_type,
        tool_outcome=judgement.tool_outcome if judgement else None,
    )
    raise Missed(item.config.stash[STATE].redactor.text(text))


def kept_of(item: pytest.Item) -> Replay | None:
    """Return the verdict of an item's cell that a resumed run keeps; None for all others."""
    cell = cell_of(item)
    return item.config.stash[STATE].replay(cell) if cell else None


def replay(item: pytest.Item) -> None:
    """Fail an item whose cell is kept, if its verdict was against it."""
    from pytest_openclaw.records import Reply, Timing
    from pytest_openclaw.reports.failure import render_failure

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
    from pytest_openclaw.reports.numbers import printable
    from pytest_openclaw.suites import known_failure_of

    if (known := known_failure_of(cell.prompt, cell.target)) is None:
        return None
    strict = {} if known.strict is None else {"strict": known.strict}
    return pytest.mark.xfail(reason=printable(known.reason), raises=Missed, **strict)


def ask(item: pytest.Item) -> Asked:
    """Ask the item's cell; skip or fail the item if there is no reply.

    Raises:
        Exception: our own code or a guest's provider broke; the item's row says so.
    """
    from pytest_openclaw.records import Fault
    from pytest_openclaw.reports.numbers import printable

    state, cell = item.config.stash[STATE], item.stash[CELL]
    if state.calls_nobody:
        pytest.skip("no model is asked here")
    # What was asked before that was decided is an answer like any other.
    if (why := state.repeats.why_left_out(cell)) and not state.asker.executor.is_asked(item.nodeid):
        raise pytest.skip.Exception(why, _use_item_location=True)
    try:
        asked = state.asker.ask(item.nodeid, cell)
    except HostDied as error:
        # Something else has ended it, which no traceback of ours tells.
        item.stash[ASKED] = _broken(_never_asked(cell), error)
        text = printable(state.asker.redactor.text(f"{cell.id}: {error}"))
        raise pytest.fail.Exception(text, pytrace=False) from None
    except Exception as error:
        item.stash[ASKED] = _broken(_never_asked(cell), error)
        raise
    item.stash[ASKED] = asked
    if isinstance(asked.ending.result, Fault) and asked.outcome.pytest != "failed":
        _end_without_reply(state, asked)
    return asked


def _end_without_reply(state: State, asked: Asked) -> NoReturn:
    from pytest_openclaw.faults import BUDGET_SPENT
    from pytest_openclaw.records import Fault
    from pytest_openclaw.reports.numbers import printable

    assert isinstance(asked.ending.result, Fault), "only a fault has no reply"
    message = printable(state.asker.redactor.text(asked.ending.result.message))
    is_spent = asked.outcome.failure_type == BUDGET_SPENT  # the user's own wish, and no server's lack
    if asked.outcome.pytest == "skipped" and (is_spent or not state.settings.fail_unavailable):
        # At the item's place, so that pytest's summary counts them by suite and not by this line.
        raise pytest.skip.Exception(message, _use_item_location=True)
    pytest.fail(message, pytrace=False)


def _broken(asked: Asked, error: BaseException) -> Asked:
    from pytest_openclaw.run.asking import broken

    return broken(asked, error)


def _never_asked(cell: Cell) -> Asked:
    from pytest_openclaw import faults
    from pytest_openclaw.run.asking import Asked
    from pytest_openclaw.run.fetching import never_asked

    return Asked(cell=cell, ending=never_asked(faults.broke(cell.id, "it was never asked")))


# --- Python benchmarks --------------------------------------------------------------------------


def parametrize_reply(metafunc: pytest.Metafunc, state: State) -> None:
    """Make one item a target, and a repeat, of a function that is marked as a benchmark and takes `reply`."""
    from pytest_openclaw.python_benchmarks import prompt_of
    from pytest_openclaw.suites import build_cells, select_prompts

    marker = metafunc.definition.get_closest_marker("openclaw")
    if marker is None or "reply" not in metafunc.fixturenames:
        return
    prompt = prompt_of(marker, metafunc.definition, state)
    settings = state.settings
    if not select_prompts([prompt], settings.prompts):
        return
    state.get_ready()
    cells = build_cells([prompt], settings.targets, settings.repeat, of_tools_alone=settings.until_conclusive)
    ids = [f"{cell.target.label}{cell.repeat_suffix}" for cell in cells]
    metafunc.parametrize("reply", cells, indirect=True, ids=ids)


def fetch_reply(request: pytest.FixtureRequest) -> Reply:
    """Ask the benchmark's cell and return its reply; skip or fail the item if there is none."""
    item: pytest.Item = request.node
    if not hasattr(request, "param"):
        pytest.fail("`reply` needs @pytest.mark.openclaw(id=…, prompt=…) on the test", pytrace=False)
    cell = cell_of(item)
    assert cell is not None, "`reply` was parametrized with cells"
    item.stash[CELL] = cell
    return item.config.stash[STATE].asker.prepared(ask(item))


def assert_answered(item: pytest.Item) -> None:
    """Fail a Python benchmark before its test runs, if the model gave no usable answer."""
    asked = item.stash.get(ASKED, None)
    if asked is not None and not isinstance(item, CellItem):
        assert_passed(item, judged_by_test(item, None))


def judged_by_test(item: pytest.Item, call: pytest.CallInfo[None] | None) -> Asked:
    """Return a Python benchmark's cell with the verdict that its test reached.

    An `AssertionError` or `pytest.fail` is a verdict; any other exception is our kind of breakage. Before
    the test has run (`call` is None) there is nothing against it.
    """
    from pytest_openclaw.judge import conclude, prepare
    from pytest_openclaw.records import Reply, Verdict

    asked = item.stash[ASKED]
    result = asked.ending.result
    if not isinstance(result, Reply):
        return asked
    error = call.excinfo.value if call and call.excinfo else None
    if error is None:
        verdict = Verdict(passed=True)
    elif isinstance(error, pytest.skip.Exception):
        verdict = Verdict(passed=None)
    elif isinstance(error, AssertionError | pytest.fail.Exception) and call and call.when == "call":
        verdict = Verdict(passed=False, violation=str(error) or "the test's assertion failed")
    else:
        return _broken(asked, error)
    prompt = asked.cell.prompt
    return replace(asked, judgement=conclude(prompt, prepare(prompt, result), verdict))


def cell_of(item: pytest.Item) -> Cell | None:
    """Return the item's cell, also before it is set up; None for everything that is no cell."""
    if (cell := item.stash.get(CELL, None)) is not None:
        return cell
    callspec = getattr(item, "callspec", None)
    if callspec is None or item.get_closest_marker("openclaw") is None:
        return None
    from pytest_openclaw.python_benchmarks import with_parameters
    from pytest_openclaw.records import Cell

    parameter = callspec.params.get("reply")
    if not isinstance(parameter, Cell):
        return None
    item.stash[CELL] = with_parameters(parameter, callspec.id)
    return item.stash[CELL]


def asked_of(item: pytest.Item, call: pytest.CallInfo[None]) -> Asked | None:
    """Return how a cell has ended; None if it was skipped before anybody was asked."""
    asked = item.stash.get(ASKED, None)
    if asked is None:
        error = call.excinfo.value if call.excinfo else None
        if error is None or isinstance(error, pytest.skip.Exception):
            return None
        cell = cell_of(item)
        assert cell is not None, "only cells are asked"
        return _broken(_never_asked(cell), error)
    return asked if isinstance(item, CellItem) else judged_by_test(item, call)


def benchmarks_of(collected: Iterable[pytest.Item]) -> JsonObject:
    """Return what the Python benchmarks are cells of, by id: target, repeat, and whether it is asked anyway.

    An xdist controller sees ids alone, which do not tell a repeat from a parameter that is called `r2`.
    """
    cells = ((item.nodeid, cell_of(item)) for item in collected if not isinstance(item, CellItem))
    return {nodeid: [cell.target.label, cell.repeat, cell.is_asked_anyway] for nodeid, cell in cells if cell}


def may_ask_ahead(item: pytest.Item) -> bool:
    """Whether the item will want its reply, as far as its marks tell."""
    return not any(
        mark.name in ("skip", "skipif") or (mark.name == "xfail" and not mark.kwargs.get("run", True))
        for mark in item.iter_markers()
    )


def is_verdict(item: pytest.Item, report: pytest.TestReport, call: pytest.CallInfo[None]) -> bool:
    """Whether an item failed by what its model said, and not by a fault or by somebody else's hook."""
    if not report.failed or call.when != "call":
        return False
    if call.excinfo is None:
        return passed_strictly(report)
    verdicts = Missed if isinstance(item, CellItem) else (AssertionError, pytest.fail.Exception)
    return isinstance(call.excinfo.value, verdicts)


def in_hand(item: pytest.Item) -> Asked | None:
    """Return how an item's cell has ended, if that is known while its test is under way.

    One that is still to be judged may be what holds the session up.
    """
    from pytest_openclaw.records import Fault

    asked = item.stash.get(ASKED, None)
    ends = asked is not None and (asked.judgement is not None or isinstance(asked.ending.result, Fault))
    return asked if ends and isinstance(item, CellItem) else None


def forget(item: pytest.Item) -> None:
    """Drop the reply: pytest keeps every item to the end, and an answer may have megabytes."""
    if ASKED in item.stash:
        del item.stash[ASKED]


def payload(item: pytest.Item, asked: Asked, report: pytest.TestReport, *, last: bool) -> JsonObject:
    """Return what the item's report carries to the recorder."""
    from pytest_openclaw.suites import definition

    state = item.config.stash[STATE]
    record = state.asker.record(state.settings.run_id, asked)
    if not isinstance(item, CellItem):
        record = replace(record, known_failure=expectation_of(report))
    carried = state.asker.payload(record, last_of_target=last)
    if not isinstance(item, CellItem):
        carried["prompt"] = definition(asked.cell.prompt)
    if state.is_worker:
        carried["n_out"] = state.n_out
        if state.settings.budget_usd is not None:
            carried["spent_usd"] = state.purse.here_usd
    return carried
