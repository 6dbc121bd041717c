"""Benchmarks written as Python functions: mark → `Prompt`, the fixture `reply`, and the test's verdict."""

from __future__ import annotations

from dataclasses import dataclass, replace
from functools import partial
from typing import TYPE_CHECKING, ClassVar

import pytest

from pytest_openclaw.session.cells import CellRun, KeptCell, run_of
from pytest_openclaw.session.reporting import STRICT, passed_strictly
from pytest_openclaw.suites.load import check_id, images_in, read_prompt
from pytest_openclaw.values.prompts import NOTE, Cell
from pytest_openclaw.values.replies import Verdict

if TYPE_CHECKING:
    from pytest_openclaw.judging.judge import JudgedCell
    from pytest_openclaw.judging.registry import Registry
    from pytest_openclaw.session.cells import CellParts
    from pytest_openclaw.values.prompts import Prompt
    from pytest_openclaw.values.replies import Reply
    from pytest_openclaw.values.rows import Record

KEYS = (
    *("id", "prompt", "name", "expected_tools", "category", "tags", "system", "images", "messages", "turns"),
    *("max_output_tokens", "timeout_s", "repeat", "pass_", "tools", "world"),
)


@dataclass(frozen=True)
class JudgedByTest:
    """Stand-in for a validator: the test itself judges the reply."""

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
        read_file=images_in(definition.path.parent),
    )
    if prompt is None:
        raise collector.CollectError("\n".join(f"{where}: {complaint}" for complaint in complaints))
    return replace(prompt, validator=JudgedByTest(), validator_spec={"type": JudgedByTest.type})


def add_cell(item: pytest.Item, parts: CellParts) -> None:
    """Give a benchmark's item its cell; the item of a kept cell only repeats the verdict."""
    callspec = getattr(item, "callspec", None)
    if not isinstance(item, pytest.Function) or callspec is None or not item.get_closest_marker("openclaw"):
        return
    parameter = callspec.params.get("reply")
    if isinstance(parameter, Cell):
        held = parts.held(_with_parameters(parameter, callspec.id), BenchmarkRun)
        vars(item)["held"] = held
        if isinstance(held, KeptCell):  # neither its fixtures nor its test run again
            vars(item).update(setup=lambda: None, runtest=partial(held.test, item))


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

    def record(self, result: JudgedCell, report: pytest.TestReport) -> Record:
        """Return the cell's row; the test's marks say whether it was expected to fail."""
        return replace(super().record(result, report), known_failure=_expectation_of(report))


def _expectation_of(report: pytest.TestReport) -> str | None:
    """Return the reason of an xfail, whether the test failed or passed; None without an xfail."""
    if passed_strictly(report):
        return str(report.longrepr).removeprefix(STRICT) or "expected to fail"
    why: str | None = getattr(report, "wasxfail", None)
    # The reason of `pytest.xfail()` in a test has a prefix.
    return why if why is None else why.removeprefix("reason: ") or "expected to fail"


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
