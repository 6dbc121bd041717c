"""The patch of OpenClaw's config: its comments, its keys, and that it can be parsed."""

from __future__ import annotations

import json
from dataclasses import replace
from typing import Any

import json5
import pytest
from hypothesis import given
from hypothesis import strategies as st

from pytest_openclaw.features.routing.patch import Patch, check_command, render_patch
from pytest_openclaw.features.routing.routes import Candidate, Ref, plan_routes
from pytest_openclaw.values.prompts import ModelRole
from tests.searching import examples
from tests.unit.reports.summaries import record
from tests.unit.stats.routes import (
    Share,
    as_text,
    candidate,
    capped,
    rows_of,
    settled,
    target,
    unsafe,
    unsettled,
)

ROLES: dict[ModelRole, Share] = {"heartbeat": (12, 1), "title": (9, 0), "utility": (8, 0), "image": (7, 0)}
SEARCH = ["tool_search", "tool_describe", "tool_call", "tool_search_code"]


def _render(*candidates: Candidate) -> Patch:
    return render_patch(plan_routes(candidates), "20261121_233059")


def _read(text: str) -> Any:
    """A JSON5 text as a value; the reader keeps halves of surrogate pairs separate."""
    return json.loads(json.dumps(json5.loads(text)))


def _said(patch: Patch) -> str:
    """The comments as one line of text."""
    lines = (line.strip() for line in patch.text.splitlines())
    return " ".join(" ".join(line.removeprefix("//") for line in lines if line.startswith("//")).split())


EVERY_ROUTE = (
    settled("best", 1, e2e_ms=50),
    settled("far", 1, level="high", is_local=False),
    settled("some", 2, roles=ROLES),
    settled("far-some", 2, is_local=False),
    settled("unproven", 2, tools=()),
    unsafe("unsafe"),
    settled("none", 3),
    unsettled("few"),
    as_text("text"),
    settled("nameless", 1, has_name=False),
)


def test_each_tier_has_its_keys() -> None:
    """The table from tier to keys is complete; the file has the same content as the object."""
    patch = _render(*EVERY_ROUTE)

    assert patch.value == {
        "agents": {
            "defaults": {
                "subagents": {"model": "ollama/best"},
                "heartbeat": {"model": "ollama/some"},
                "utilityModel": "ollama/some",
                "imageModel": {"primary": "ollama/some"},
            }
        },
        "tools": {
            "byProvider": {
                "ollama/best": {"profile": "coding", "deny": ["group:web", "browser"]},
                "ollama/far": {"profile": "coding"},
                "ollama/some": {
                    "allow": ["read"],
                    "alsoAllow": None,
                    "deny": ["group:web", "browser", *SEARCH],
                },
                "ollama/far-some": {"allow": ["read"], "alsoAllow": None, "deny": SEARCH},
                "ollama/unsafe": {"deny": ["*"]},
                "ollama/none": {"deny": ["*"]},
            }
        },
    }
    assert _read(patch.text) == patch.value


@pytest.mark.parametrize(
    ("proven", "denied"),
    [
        pytest.param(["read"], SEARCH, id="another-tool"),
        pytest.param(["write"], ["apply_patch", *SEARCH], id="write"),
        pytest.param(["apply_patch", "write"], SEARCH, id="both-proven"),
    ],
)
def test_write_does_not_bring_apply_patch(proven: list[str], denied: list[str]) -> None:
    """OpenClaw gives apply_patch to every agent that is allowed to write, unless it is denied."""
    value = _render(settled("m", 2, is_local=False, tools=tuple(proven))).value

    entry = value["tools"]["byProvider"]["ollama/m"]
    assert (entry["allow"], entry["deny"]) == (proven, denied)


def test_a_subagent_has_the_measured_thinking_level() -> None:
    """The thinking level of the best target is beside its model."""
    value = _render(settled("m", 1, level="high")).value

    assert value["agents"]["defaults"]["subagents"] == {"model": "ollama/m", "thinking": "high"}


# --- comments -----------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("one", "expected"),
    [
        pytest.param(settled("m", 2), "Proven tools, by at least 3 right prompts and 80 %: read.", id="proven-tools"),
        pytest.param(
            settled("m", 2, tools=()),
            "ollama_native/m: not enough evidence: 132 more prompts that need exec, without a miss, would make it trusted with exec at Tier 1.",
            id="nothing-proven",
        ),
        pytest.param(capped("m"), "Not Tier 1, because it called needlessly in 40 of 80 cells that forbid tools", id="capped"),
        pytest.param(settled("m", 2, roles=ROLES), "ollama_native/m alone fits heartbeat. ollama_native/m: heartbeat fit: 12 of 13 cells right (95 % interval 66.6 % to 98.6 %).", id="heartbeats"),
        pytest.param(unsettled("m"), "No entry for ollama/m: there is not enough evidence, so what you have now stays.", id="unsettled"),
        pytest.param(unsettled("m"), "19 more tool cells without a miss would settle the tier", id="what-would-settle-it"),
        pytest.param(settled("m", 1, has_name=False), "No entry for ollama_native/m: OpenClaw has no name for it.", id="nameless"),
        pytest.param(candidate("m", [*rows_of(1, target("m")), record(target("m"), effective_model="m-mini")]), "Answers came from m-mini.", id="another-model-answered"),
    ],
)  # fmt: skip
def test_the_evidence_is_in_comments(one: Candidate, expected: str) -> None:
    """The file shows the reason for each entry, and for each missing one."""
    assert expected in _said(_render(one))


def test_levels_and_other_ways_are_listed() -> None:
    """If a model has several targets, each is named with its result."""
    patch = _render(settled("m", 1), settled("m", 2, level="low"), settled("m", 3, is_detour=True))

    said = _said(patch)
    assert "ollama_native/m: trusted with tools; on listed tools only" in said
    assert "ollama_native/m@low: trusted with read" in said
    assert "the weakest of these decides" in said
    assert "in another way: ollama_native/m: not trusted with tools" in said


@pytest.mark.parametrize(
    "one",
    [
        pytest.param(unsettled("m"), id="unsettled"),
        pytest.param(settled("m", 1, has_name=False), id="nameless"),
    ],
)
def test_nothing_settled_is_an_empty_patch(one: Candidate) -> None:
    """It is an object without a key, and its heading has no command that would refuse it."""
    patch = _render(one)

    assert (patch.value, _read(patch.text)) == ({}, {})
    assert "It is empty" in _said(patch)
    assert "--dry-run" not in patch.text


def test_the_command_can_be_pasted() -> None:
    """It is on one line, whatever the file's name is."""
    assert check_command("a b.json5") == "openclaw config patch --file 'a b.json5' --dry-run --json"
    assert check_command(None) == "openclaw config patch --stdin --dry-run --json"
    assert f"//   {check_command('openclaw.patch.json5')}\n" in _render(settled("m", 1)).text


SETTLED = {tier: settled("m", tier, roles=ROLES) for tier in (1, 2, 3)}


@examples(15)
@given(name=st.text(max_size=40), remark=st.text(max_size=200), tier=st.sampled_from([1, 2, 3]))
def test_any_name_can_be_parsed_again(name: str, remark: str, tier: int) -> None:
    """Whatever the names and notes are, the file has the object."""
    patch = _render(replace(SETTLED[tier], ref=Ref(f"ollama/{name}", remark=remark)))

    assert _read(patch.text) == patch.value
