"""A benchmark written as a Python function: its mark → `Prompt`, its `reply`, and the verdict of its test."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any, ClassVar

import pytest

from pytest_openclaw.session.items import CELL, RESULT, CellItem, ask, assert_passed, cell_of
from pytest_openclaw.session.plugin_session import suite_name
from pytest_openclaw.suites.prompt import check_id, read_prompt
from pytest_openclaw.types.replies import Verdict

if TYPE_CHECKING:
    from collections.abc import Mapping

    from pytest_openclaw.judging.cell_result import CellResult
    from pytest_openclaw.session.plugin_session import State
    from pytest_openclaw.types.prompts import Prompt
    from pytest_openclaw.types.replies import Reply

KEYS = (
    "id",
    "prompt",
    "name",
    "expected_tools",
    "category",
    "tags",
    "system",
    "max_output_tokens",
    "timeout_s",
    "repeat",
    "pass_",
)


@dataclass(frozen=True)
class JudgedByTest:
    """Stands in for a validator: the test itself is the judge."""

    type: ClassVar[str] = "python"

    def check(self, reply: Reply) -> Verdict:  # noqa: ARG002 - the protocol's signature
        """Reach no verdict; the test's assertions do."""
        return Verdict(passed=None)


def prompt_of(marker: pytest.Mark, definition: pytest.Function, state: State) -> Prompt:
    """Return the prompt that `@pytest.mark.openclaw(…)` describes.

    Raises:
        pytest.Collector.CollectError: the mark cannot be used; names the function and the key, with a hint.
    """
    collector = definition.parent
    assert collector is not None, "a function stands in a module"
    where = f"{definition.nodeid}: @pytest.mark.openclaw"
    if marker.args:
        raise collector.CollectError(f"{where} takes keywords only: {', '.join(KEYS)}.")
    if unknown := [key for key in marker.kwargs if key not in KEYS]:
        raise collector.CollectError(
            f"{where} does not know {', '.join(unknown)}. It knows {', '.join(KEYS)}."
        )
    raw = _as_in_a_suite(marker.kwargs, definition.originalname)
    try:
        prompt_id = check_id(raw)
    except ValueError as error:
        raise collector.CollectError(f"{where}: {error}") from None
    suite = suite_name(state.config, definition.path)
    prompt, complaints = read_prompt(raw, prompt_id, suite=suite, registry=state.registry)
    if prompt is None:
        raise collector.CollectError("\n".join(f"{where}: {complaint}" for complaint in complaints))
    prompt = replace(prompt, validator=JudgedByTest(), validator_spec={"type": JudgedByTest.type})
    if (other := state.claim_id(prompt, definition.nodeid)) != definition.nodeid:
        raise collector.CollectError(f"{where}: id {prompt_id!r} is that of {other} too. Give each its own.")
    if change := state.resumption.change_of(prompt):
        raise collector.CollectError(change)
    return prompt


def _as_in_a_suite(keywords: Mapping[str, Any], function: str) -> dict[str, Any]:
    """The mark's keywords as a suite would spell them; Python's tuples are its lists."""
    raw = {key: list(value) if isinstance(value, tuple) else value for key, value in keywords.items()}
    for keyword, key in (("expected_tools", "expected_tool_calls"), ("pass_", "pass")):
        if keyword in raw:
            raw[key] = raw.pop(keyword)
    return {"name": function, **raw}


def parametrize_reply(metafunc: pytest.Metafunc, state: State) -> None:
    """Make one item a target, and a repeat, of a function that is marked as a benchmark and takes `reply`."""
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
    return ask(item).prepared


def assert_answered(item: pytest.Item) -> None:
    """Fail a Python benchmark before its test runs, if the model gave no usable answer."""
    result = item.stash.get(RESULT, None)
    if result is not None and not isinstance(item, CellItem):
        assert_passed(item, judged_by_test(result, None))


def judged_by_test(result: CellResult, call: pytest.CallInfo[None] | None) -> CellResult:
    """Return a Python benchmark's result with the verdict that its test reached.

    An `AssertionError` or `pytest.fail` is a verdict; any other exception means that the benchmark broke.
    Before the test has run (`call` is None) the cell has passed.
    """
    if result.fault:
        return result
    error = call.excinfo.value if call and call.excinfo else None
    if error is None:
        return result.with_verdict(Verdict(passed=True))
    if isinstance(error, pytest.skip.Exception):
        return result.with_verdict(Verdict(passed=None))
    if isinstance(error, AssertionError | pytest.fail.Exception) and call and call.when == "call":
        violation = str(error) or "the test's assertion failed"
        return result.with_verdict(Verdict(passed=False, violation=violation))
    return result.broken(error)
