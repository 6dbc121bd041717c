"""A benchmark written as a Python function: its mark → `Prompt`."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any, ClassVar

from pytest_openclaw.records import Verdict
from pytest_openclaw.state import suite_name
from pytest_openclaw.suites.prompt import check_id, read_prompt

if TYPE_CHECKING:
    from collections.abc import Mapping

    import pytest

    from pytest_openclaw.records import Cell, Prompt, Reply
    from pytest_openclaw.state import State

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
        pytest.Collector.CollectError: the mark cannot be used; names the function, the key and the mend.
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


def with_parameters(cell: Cell, callspec_id: str) -> Cell:
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


def base_id(prompt_id: str) -> str:
    """Return the id in the mark of a benchmark, without the parameters of one of its items."""
    return prompt_id.partition("[")[0]


def _as_in_a_suite(keywords: Mapping[str, Any], function: str) -> dict[str, Any]:
    """The mark's keywords as a suite would spell them; Python's tuples are its lists."""
    raw = {key: list(value) if isinstance(value, tuple) else value for key, value in keywords.items()}
    for keyword, key in (("expected_tools", "expected_tool_calls"), ("pass_", "pass")):
        if keyword in raw:
            raw[key] = raw.pop(keyword)
    return {"name": function, **raw}
