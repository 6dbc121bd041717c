"""The part of an item that sends its cell and judges the reply, or repeats an earlier verdict.

Also benchmarks in Python: the prompt of a mark, the fixture `reply`, and the test's verdict.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from functools import partial
from typing import TYPE_CHECKING, ClassVar, NoReturn

import pytest

from pytest_openclaw.judging.judge import JudgedCell
from pytest_openclaw.judging.registry import Registry
from pytest_openclaw.runs.rows import record_of
from pytest_openclaw.session.reporting import STRICT, passed_strictly
from pytest_openclaw.suites.load import check_id, images_in, read_prompt, written_messages
from pytest_openclaw.util.errors import AskerFailed, CellNotSent
from pytest_openclaw.util.text import clip, printable
from pytest_openclaw.values.faults import BUDGET_SPENT
from pytest_openclaw.values.prompts import NOTE, Cell, Prompt
from pytest_openclaw.values.replies import CallResult, Reply, Verdict
from pytest_openclaw.values.requests import CellKey
from pytest_openclaw.values.rows import KeptVerdict, LeftOut, Payload, Record
from pytest_openclaw.values.settings import Settings

if TYPE_CHECKING:
    from pytest_openclaw.runs.session import EarlierVerdict
    from pytest_openclaw.util.redact import Redactor


class Missed(pytest.fail.Exception, AssertionError):  # type: ignore[name-defined,misc]  # no type to mypy
    """The cell missed: its verdict is not a pass, or it has no usable answer.

    Also an `AssertionError`, as in a Python benchmark.
    """

    __module__ = "builtins"  # as pytest's own outcomes do, for a short name in its last lines

    def __init__(self, text: str) -> None:
        super().__init__(text, pytrace=False)  # type: ignore[call-arg]


@dataclass(frozen=True, kw_only=True)
class CellParts:
    """The objects that the cells of a session share.

    Attributes:
        ask: waits for the result of a cell's call, from the `Asker` or over the channel of a worker.
        done: forgets the reply of a cell whose test has ended.
        sends: whether the session asks models.
        kept: the verdicts that a resumed run keeps.
    """

    settings: Settings
    ask: Callable[[str, Cell], CallResult]
    done: Callable[[str], None]
    redactor: Redactor
    sends: bool
    kept: Mapping[CellKey, EarlierVerdict]

    def run_of(self, cell: Cell, kind: type[CellRun]) -> CellRun:
        """Return the run of a cell, which repeats its kept verdict if there is one."""
        return (KeptCell if cell.key in self.kept else kind)(cell, self)


class CellRun:
    """The cell of a suite's item, from its call to its verdict.

    Attributes:
        result: the result of the call, until the item has ended.
        verdict_errors: the exceptions that mean a verdict on the model.
    """

    __slots__ = ("_is_settled", "cell", "parts", "result")  # ten thousand cells have one each
    verdict_errors: ClassVar[tuple[type[BaseException], ...]] = (Missed,)

    def __init__(self, cell: Cell, parts: CellParts) -> None:
        self.cell = cell
        self.parts = parts
        self.result: JudgedCell | None = None
        self._is_settled = False

    # --- the phases of a test ---

    def set_up(self, token: str) -> None:
        """Send the cell and judge its reply; skip or fail the item if there is none."""
        self.call(token)
        self._judge()

    def call(self, token: str) -> JudgedCell:
        """Return the result of the cell's call; skip or fail the item if there is no reply.

        Raises:
            Exception: our own code or a plugin's provider broke; the row has a harness error.
        """
        parts, cell = self.parts, self.cell
        if not parts.sends:
            pytest.skip("no model is asked here")
        try:
            self.result = JudgedCell(cell=cell, call=parts.ask(token, cell))
        except CellNotSent as why:
            self._is_settled = True
            self._end(str(why), is_skipped=True)
        except Exception as error:
            self.result = JudgedCell.never_sent(cell, error)
            if isinstance(error, AskerFailed):  # our traceback would show nothing more
                self._end(f"{cell.id}: {error}")
            raise
        if (fault := self.result.fault) and self.result.outcome.pytest != "failed":
            self._judge()
            is_spent = fault.failure_type == BUDGET_SPENT  # the user's own limit, not a missing server
            is_missing = fault.status == "skipped_unavailable"
            is_skipped = is_missing and (is_spent or not parts.settings.fail_unavailable)
            self._end(fault.message, is_skipped=is_skipped)
        return self.result

    def _end(self, why: str, *, is_skipped: bool = False) -> NoReturn:
        text = printable(self.parts.redactor.text(why))
        if is_skipped:
            # At the item's place, so that pytest's summary counts them by suite and not by this line.
            raise pytest.skip.Exception(text, _use_item_location=True) from None
        raise pytest.fail.Exception(text, pytrace=False) from None

    def _judge(self) -> None:
        """Add the verdict of the suite's validator, or the harm that was done before a fault."""
        result = self.result
        assert result is not None, "the call has ended"
        try:
            self.result = result.judged(self.parts.settings.timeout_s)
        except pytest.skip.Exception as error:
            wrong = TypeError("a validator returns a Verdict; it cannot skip")
            self.result = result.broken(wrong)
            raise wrong from error
        except (Exception, pytest.fail.Exception) as error:
            self.result = result.broken(error)
            raise

    def before_test(self) -> None:
        """Fail a cell for a reason that the test itself does not check."""

    def test(self, item: pytest.Item) -> None:  # noqa: ARG002 - for kept cells
        """Fail with the verdict's reasons unless the reply passed."""
        assert self.result is not None, "set-up has sent the cell"
        self.assert_passed(self.result)

    def assert_passed(self, result: JudgedCell) -> None:
        """Fail the item if the model gave no usable answer, or the verdict is against it."""
        from pytest_openclaw.reports.cells import render_failure

        if result.outcome.pytest != "failed":
            return
        prompt = self.cell.prompt
        shown = {
            "prompt": prompt.prompt,
            "messages": written_messages(prompt.messages),
            "validator": prompt.validator_spec,
        }
        text = render_failure(self._row(result), shown, prompt.tools)
        raise Missed(self.parts.redactor.text(text))

    # --- the report ---

    def payload(self, call: pytest.CallInfo[None], report: pytest.TestReport) -> Payload:  # noqa: ARG002
        """Return the report's payload: the row, or `LeftOut` if the cell was not sent."""
        result = self.result_after(call)
        if result is not None:
            return self._row(result)
        key, is_settled = self.cell.key, self._is_settled
        return LeftOut(**{**key._asdict(), "target": key.target.label}, is_settled=is_settled)

    def result_after(self, call: pytest.CallInfo[None]) -> JudgedCell | None:
        """Return the cell's result after a phase; None if it was skipped before it was sent."""
        if self.result is not None:
            return self.result
        error = call.excinfo.value if call.excinfo else None
        if error is None or isinstance(error, pytest.skip.Exception):
            return None
        return JudgedCell.never_sent(self.cell, error)

    def _row(self, result: JudgedCell) -> Record:
        run_id, redactor = self.parts.settings.run_id, self.parts.redactor
        return record_of(run_id, self.cell, result.call, result.judgment or result.done, redactor)


class KeptCell(CellRun):
    """A cell that a resumed run keeps: its test repeats the verdict."""

    __slots__ = ()

    def set_up(self, token: str) -> None:
        """Send nothing."""

    def payload(self, call: pytest.CallInfo[None], report: pytest.TestReport) -> Payload:  # noqa: ARG002
        """Return the report's payload, without a row, because the run has the row already."""
        return KeptVerdict(target=self.cell.target.label, passed=self.parts.kept[self.cell.key].passed)

    def test(self, item: pytest.Item) -> None:
        """Fail the item as its test did before."""
        kept = self.parts.kept[self.cell.key]
        if kept.passed:
            return
        if kept.known_failure is not None and not any(item.iter_markers("xfail")):
            pytest.xfail(kept.known_failure)  # as its test did
        prompt, run_id = self.cell.prompt, self.parts.settings.run_id
        text = f"{prompt.id} {prompt.name}: {kept.what}\n  kept    from run {run_id}, not asked again"
        raise Missed(self.parts.redactor.text(text))


def run_of(item: pytest.Item) -> CellRun | None:
    """Return the run of an item's cell; None for an item without a cell."""
    # An attribute, even on pytest's own items, because a stash takes 100 bytes more per item.
    run = getattr(item, "run_of_cell", None)
    return run if isinstance(run, CellRun) else None


def cell_of(item: pytest.Item) -> Cell | None:
    """Return the item's cell, kept or not; None if it has no cell."""
    run = run_of(item)
    return run.cell if run else None


# --- benchmarks in Python ---------------------------------------------------------------------------

KEYS = (
    *("id", "prompt", "name", "expected_tools", "category", "tags", "system", "images", "messages", "turns"),
    *("max_output_tokens", "timeout_s", "repeat", "pass_", "tools", "world"),
)


@dataclass(frozen=True)
class JudgedElsewhere:
    """Stand-in for a validator: the test itself judges the reply, or a worker with a plugin's validator."""

    type: ClassVar[str] = "python"

    def check(self, reply: Reply) -> Verdict:  # noqa: ARG002 - the protocol's signature
        """Return no verdict; the test's assertions decide."""
        return Verdict(passed=None)


def prompt_of(marker: pytest.Mark, definition: pytest.Function, suite: str, registry: Registry) -> Prompt:
    """Return the prompt that `@pytest.mark.openclaw(…)` describes.

    Raises:
        pytest.Collector.CollectError: the mark is malformed; the message names function and key, with a hint.
    """
    collector = definition.parent
    assert collector is not None, "a function is in a module"
    where = f"{definition.nodeid}: @pytest.mark.openclaw"
    if marker.args:
        raise collector.CollectError(f"{where} takes keywords only: {', '.join(KEYS)}.")
    if unknown := [key for key in marker.kwargs if key not in KEYS and not key.startswith(NOTE)]:
        raise collector.CollectError(
            f"{where} does not know {', '.join(unknown)}. It knows {', '.join(KEYS)}."
        )
    # As in a suite, with lists for tuples.
    raw = {key: list(value) if isinstance(value, tuple) else value for key, value in marker.kwargs.items()}
    for keyword, key in (("expected_tools", "expected_tool_calls"), ("pass_", "pass")):
        if keyword in raw:
            raw[key] = raw.pop(keyword)
    raw = {"name": definition.originalname, **raw}
    try:
        prompt_id = check_id(raw)
    except ValueError as error:
        raise collector.CollectError(f"{where}: {error}") from None
    prompt, complaints = read_prompt(
        raw,
        prompt_id,
        suite=suite,
        registry=registry,
        read_image=images_in(definition.path.parent),
    )
    if prompt is None:
        raise collector.CollectError("\n".join(f"{where}: {complaint}" for complaint in complaints))
    return replace(prompt, validator=JudgedElsewhere(), validator_spec={"type": JudgedElsewhere.type})


def add_cell(item: pytest.Item, parts: CellParts) -> None:
    """Give a benchmark's item its cell; the item of a kept cell only repeats the verdict."""
    callspec = getattr(item, "callspec", None)
    if not isinstance(item, pytest.Function) or callspec is None or not item.get_closest_marker("openclaw"):
        return
    parameter = callspec.params.get("reply")
    if isinstance(parameter, Cell):
        run = parts.run_of(_with_parameters(parameter, callspec.id), BenchmarkRun)
        vars(item)["run_of_cell"] = run
        if isinstance(run, KeptCell):  # neither its fixtures nor its test run again
            vars(item).update(setup=lambda: None, runtest=partial(run.test, item))


def fetch_reply(request: pytest.FixtureRequest) -> Reply:
    """Send the benchmark's cell and return its reply; skip or fail the item if there is none."""
    item: pytest.Item = request.node
    if not hasattr(request, "param"):
        pytest.fail("`reply` needs @pytest.mark.openclaw(id=…, prompt=…) on the test", pytrace=False)
    run = run_of(item)
    assert run, "the item has its cell"
    return run.call(item.nodeid).facts.answer


class BenchmarkRun(CellRun):
    """The cell of a Python benchmark, which its own test judges."""

    __slots__ = ()
    verdict_errors = (AssertionError, pytest.fail.Exception)

    def before_test(self) -> None:
        """Fail a cell whose reply is empty or refused, before the test's own assertions."""
        if self.result is not None:
            passed = self.result if self.result.fault else self.result.with_verdict(Verdict(passed=True))
            self.assert_passed(passed)

    def result_after(self, call: pytest.CallInfo[None]) -> JudgedCell | None:
        """Return the cell's result with the verdict of the test.

        An `AssertionError` or `pytest.fail` is a verdict; any other exception means that the benchmark broke.
        """
        result = super().result_after(call)
        if result is None or result.fault:
            return result
        error = call.excinfo.value if call.excinfo else None
        if error is None:
            return result.with_verdict(Verdict(passed=True))
        if isinstance(error, pytest.skip.Exception):
            return result.with_verdict(Verdict(passed=None))
        if isinstance(error, self.verdict_errors) and call.when == "call":
            violation = str(error) or "the test's assertion failed"
            return result.with_verdict(Verdict(passed=False, violation=violation))
        return result.broken(error)

    def payload(self, call: pytest.CallInfo[None], report: pytest.TestReport) -> Payload:
        """Return the report's payload; the test's marks say whether the cell was expected to fail."""
        payload, why = super().payload(call, report), getattr(report, "wasxfail", None)
        if passed_strictly(report):
            why = str(report.longrepr).removeprefix(STRICT)
        if why is None or not isinstance(payload, Record):
            return payload
        # The reason of `pytest.xfail()` in a test has a prefix.
        why = clip(self.parts.redactor.text(why.removeprefix("reason: ")))
        return replace(payload, known_failure=why or "expected to fail")


def _with_parameters(cell: Cell, callspec_id: str) -> Cell:
    """Return a parametrized item's cell, whose prompt id includes the parameters."""
    label = cell.label
    # pytest escapes characters outside ASCII by default.
    for form in (label, label.encode("unicode_escape").decode("ascii")):
        before, found, after = callspec_id.partition(form)
        if found:
            others = "-".join(filter(None, (before.removesuffix("-"), after.removeprefix("-"))))
            named = replace(cell.prompt, id=f"{cell.prompt.id}[{others}]") if others else cell.prompt
            return replace(cell, prompt=named)
    raise AssertionError(f"{callspec_id} has the target {label}, by which `reply` was parametrized")
