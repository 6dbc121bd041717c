"""What the rows of a target prove beside its tier."""

from __future__ import annotations

from typing import Any

import pytest

from pytest_openclaw.core.json_types import JsonObject
from pytest_openclaw.stats.routing import Proof
from pytest_openclaw.stored.proofs import demanded_tools, proofs_of
from pytest_openclaw.types.records import Record
from pytest_openclaw.types.tool_calls import ToolOutcome
from tests.unit.reports.summaries import cell, fault
from tests.unit.stored.stored_runs import SUITE, A, definition, row

KNOWN = ("exec", "ls", "read", "write")


def _calling(*names: Any, kind: str = "tool_call") -> JsonObject:
    return {"type": kind, "calls": [{"name": name} for name in names]}


@pytest.mark.parametrize(
    ("validator", "tools"),
    [
        pytest.param(_calling("read"), ("read",), id="one"),
        pytest.param(_calling("write", "read"), ("read", "write"), id="several"),
        pytest.param(_calling(["read", "exec"]), ("exec", "read"), id="any-of-them"),
        pytest.param(_calling("bash", kind="world"), ("exec",), id="by-another-name"),
        pytest.param(_calling("functions.Read"), ("read",), id="as-openclaw-reads-names"),
        pytest.param(_calling("get_weather"), (), id="no-tool-of-openclaw"),
        pytest.param(
            {"type": "all_of", "validators": [_calling("ls"), {"type": "noop"}]}, ("ls",), id="all-of"
        ),
        pytest.param(
            {"type": "any_of", "validators": [_calling("ls"), _calling("read")]}, ("ls", "read"), id="any-of"
        ),
        pytest.param({"type": "not", "validator": _calling("ls")}, (), id="not"),
        pytest.param(_calling(), (), id="restraint"),
        pytest.param({"type": "tool_invocation", "expected_tools": ["read"]}, (), id="as-text"),
        pytest.param({"type": "tool_call", "calls": "read"}, (), id="nonsense"),
        pytest.param({"type": "tool_call", "calls": ["read", {"name": 3}]}, (), id="more-nonsense"),
        pytest.param(None, (), id="none"),
    ],
)
def test_a_validator_demands_tools(validator: object, tools: tuple[str, ...]) -> None:
    """The calls that it requires, by OpenClaw's names."""
    assert demanded_tools(definition("P1", validator=validator), KNOWN) == tools


def test_a_suites_own_tool_proves_nothing_of_openclaws() -> None:
    """A tool defined by the suite may have the name of OpenClaw's and is not its tool."""
    tools = [{"name": "read", "parameters": {"type": "object"}}, "ls"]

    assert demanded_tools(definition("P1", validator=_calling("read", "ls"), tools=tools), KNOWN) == ("ls",)


PROMPTS = {
    (SUITE, "R"): definition("R", validator=_calling("read")),
    (SUITE, "E"): definition("E", validator=_calling(["read", "exec"])),
    (SUITE, "H"): definition("H", tags=["heartbeat"]),
    (SUITE, "T"): definition("T"),
}


def _native(prompt_id: str, outcome: ToolOutcome = "valid", *called: str, **changes: Any) -> Record:
    given = {"suite": SUITE, "tools_offered": 11, "tool_calls": called, **changes}
    return cell(prompt_id, outcome, A, **given)


@pytest.mark.parametrize(
    ("records", "tools"),
    [
        pytest.param([_native("R", "valid", "read")], {"read": (1, 1)}, id="right"),
        pytest.param([_native("R", "no_call")], {"read": (1, 0)}, id="wrong"),
        pytest.param([_native("E", "valid", "bash")], {"exec": (1, 1)}, id="the-one-that-was-called"),
        pytest.param([_native("E", "wrong_tool", "ls")], {"exec": (1, 0), "read": (1, 0)}, id="none-of-both"),
        pytest.param([_native("R", "valid", "read", tools_offered=None)], {}, id="as-text"),
        pytest.param([_native("R", "valid", "read", probe="secret")], {}, id="probe"),
        pytest.param([_native("R", "valid", "read", pressure_of="R0")], {}, id="pressure"),
        pytest.param([_native("X", "valid", "read")], {}, id="no-definition"),
        pytest.param([fault(A, prompt_id="R", suite=SUITE, tools_offered=11)], {}, id="no-answer"),
        pytest.param(
            [_native("R", "valid", "read"), _native("R", "no_call", repeat=2), _native("E", "valid", "read")],
            {"read": (3, 2)}, id="counted",
        ),
    ],
)  # fmt: skip
def test_cells_prove_tools(records: list[Record], tools: dict[str, tuple[int, int]]) -> None:
    """A passed cell counts for the tools that it called, a failed one against all required ones."""
    proofs = proofs_of(records, PROMPTS, KNOWN).tools

    assert {tool: (proof.n, proof.n_right) for tool, proof in proofs.items()} == tools


def test_repeats_are_of_one_prompt() -> None:
    """A proof has the number of prompts of its cells."""
    records = [_native("R", "valid", "read", repeat=n) for n in (1, 2, 3)]

    assert proofs_of(records, PROMPTS, KNOWN).tools["read"] == Proof(
        n=3, n_right=3, n_prompts=1, n_right_prompts=1
    )


def test_text_prompts_prove_heartbeats_and_text() -> None:
    """Judged text cells count, those with the tag for heartbeats too; an empty reply is a failure."""
    records = [
        row(A, "H"),
        row(A, "H", repeat=2, objective_pass=False),
        row(A, "T", success=False, objective_pass=None, failure_type="empty_response"),
        row(A, "T", repeat=2, objective_pass=None),
        row(A, "T", repeat=3, tools_offered=3),
        row(A, "T", repeat=4, tool_outcome="valid"),
        fault(A, prompt_id="H", suite=SUITE, repeat=3),
    ]

    proofs = proofs_of(records, PROMPTS, KNOWN)

    assert proofs.heartbeat == Proof(n=2, n_right=1, n_prompts=1)
    assert proofs.text == Proof(n=3, n_right=1, n_prompts=2)


def _wire(name: str, arguments: str = "{}", **more: Any) -> JsonObject:
    return {"id": None, "name": name, "arguments": arguments, **more}


def _turns(*calls: JsonObject) -> Any:
    return ({"text": "", "calls": list(calls)},)


@pytest.mark.parametrize(
    ("changes", "proven"),
    [
        pytest.param({"tool_call_details": (_wire("read"),)}, {"read"}, id="called-and-another-named"),
        pytest.param({"tool_call_details": (_wire("read"), _wire("exec"))}, {"exec", "read"}, id="both"),
        pytest.param({}, {"exec", "read"}, id="made-of-the-text"),
        pytest.param(
            {"turns": _turns(_wire("exec", problem="bad_arguments"), _wire("read", problem=None))},
            {"read"},
            id="one-was-refused",
        ),
        pytest.param(
            {"tool_call_details": (_wire("tool_call", '{"id": "openclaw:core:exec"}'),)},
            {"exec"},
            id="over-the-bridge",
        ),
        pytest.param({"tool_call_details": (_wire("tool_call", "[" * 9000),)}, set(), id="broken-bridge"),
        pytest.param({"tool_call_details": (_wire("tool_call", '{"id": 3}'),)}, set(), id="no-id"),
    ],
)
def test_a_right_cell_proves_what_it_called(changes: dict[str, Any], proven: set[str]) -> None:
    """Of several valid tools, those that were called count; naming one in the text, as `exec`, is no call."""
    record = _native("E", "valid", "read", "exec", **changes)

    assert set(proofs_of([record], PROMPTS, KNOWN).tools) == proven
