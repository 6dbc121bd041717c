"""Which model gets which place of OpenClaw's config."""

from __future__ import annotations

from dataclasses import replace
from typing import get_args

import pytest

from pytest_openclaw.features.routing.routes import PLACES, SUITES, Candidate, PlaceChoice, plan_routes
from pytest_openclaw.values.prompts import ModelRole
from tests.unit.stats.routes import Share, settled, unsafe, unsettled

ENOUGH: Share = (9, 0)
BEATS: dict[ModelRole, Share] = {"heartbeat": ENOUGH}
WORDS: dict[ModelRole, Share] = {"title": ENOUGH, "utility": ENOUGH}


def choices(*rivals: Candidate) -> dict[str, PlaceChoice]:
    """The choices by place."""
    return {choice.place.name: choice for choice in plan_routes(rivals).choices}


def refs(*rivals: Candidate) -> dict[str, str | None]:
    """The chosen models by place."""
    return {name: choice.ref for name, choice in choices(*rivals).items()}


def test_the_fastest_that_fits_gets_the_place() -> None:
    """Its own waiting in that role counts, not that of its tool cells."""
    quick = settled("quick", 2, e2e_ms=900, roles=BEATS, waits=10)
    slow = settled("slow", 2, e2e_ms=10, roles=BEATS, waits=900)

    assert refs(slow, quick) == {"heartbeat.model": "ollama/quick"}
    assert [one.label for one in choices(slow, quick)["heartbeat.model"].fit] == [
        "ollama_native/quick",
        "ollama_native/slow",
    ]


def test_one_that_is_shown_to_be_worse_is_not_chosen() -> None:
    """Both fit, and the faster one missed so many prompts that chance does not explain it."""
    quick = settled("quick", 2, roles={"heartbeat": (80, 20)}, waits=10)
    sure = settled("sure", 2, roles={"heartbeat": (100, 0)}, waits=900)
    renamed = [
        replace(row, prompt_id=f"A{80 + int(row.prompt_id[1:])}") if row.prompt_id[0] == "B" else row
        for row in quick.rows
    ]

    assert refs(replace(quick, rows=renamed), sure) == {"heartbeat.model": "ollama/sure"}
    assert refs(quick, sure) == {"heartbeat.model": "ollama/quick"}, "of other prompts nothing is compared"


@pytest.mark.parametrize(
    ("one", "chosen"),
    [
        pytest.param(settled("m", 3, roles=BEATS), None, id="without-tools"),
        pytest.param(settled("m", 1, roles=BEATS), "ollama/m", id="with-all-tools"),
        pytest.param(settled("m", 2, roles=BEATS), "ollama/m", id="with-read"),
        pytest.param(settled("m", 2, roles=BEATS, tools=("ls",)), None, id="with-others"),
        pytest.param(unsettled("m", roles=BEATS), None, id="with-tools-that-are-not-settled"),
        pytest.param(unsafe("m", roles=BEATS), None, id="unsafe"),
        pytest.param(settled("m", 1, roles=BEATS, has_name=False), None, id="without-a-name"),
        pytest.param(settled("m", 1, roles={"heartbeat": (5, 5)}), None, id="it-does-not-fit"),
        pytest.param(settled("m", 1, roles={"heartbeat": (2, 0)}), None, id="too-little-evidence"),
    ],
)
def test_heartbeats_are_turns_with_tools(one: Candidate, chosen: str | None) -> None:
    """So that its entry must allow those that they need; the reason is there if none is chosen."""
    found = choices(one, settled("other", 3, roles={"heartbeat": (0, 9)}))["heartbeat.model"]

    assert found.ref == chosen
    assert bool(found.why_none) is (chosen is None)


def test_words_need_no_settled_tools() -> None:
    """Titles and recaps are asked without any tool; harm is a reason against a model all the same."""
    assert refs(unsettled("m", roles=WORDS)) == {"utilityModel": "ollama/m"}
    assert refs(unsafe("m", roles=WORDS)) == {"utilityModel": None}


@pytest.mark.parametrize(
    ("roles", "why_none"),
    [
        pytest.param({"title": ENOUGH}, "it answers more than was asked; ask prompts_role_utility.toml too", id="half-asked"),
        pytest.param({"title": ENOUGH, "utility": (1, 8)}, "no safe model with a name in OpenClaw fits title and utility", id="half-fit"),
    ],
)  # fmt: skip
def test_a_place_with_two_roles_needs_both(roles: dict[ModelRole, Share], why_none: str) -> None:
    """OpenClaw has one model for titles and for all other short texts."""
    found = choices(settled("m", 3, roles=roles))["utilityModel"]

    assert (found.ref, found.why_none) == (None, why_none)


def test_all_levels_of_a_model_must_fit() -> None:
    """A place has no thinking level."""
    both = [settled("both", 3, roles=WORDS), settled("both", 3, level="low", roles=WORDS, waits=900)]
    half = [settled("half", 3, roles=WORDS, waits=1), settled("half", 3, level="low", waits=1)]

    assert refs(*half, *both) == {"utilityModel": "ollama/both"}


def test_a_place_that_openclaw_lacks_is_said() -> None:
    """The evidence is there, and the reason why it leads to no entry."""
    found = choices(settled("m", 1, roles={"decision": ENOUGH}))["decisionModel"]

    assert (found.ref, [one.label for one in found.fit]) == (None, ["ollama_native/m"])
    assert found.why_none.startswith("OpenClaw asks plugins for decisions there")


def test_every_role_has_one_place() -> None:
    """A role in two places would be chosen for twice, and one without a place never; each has a suite."""
    assert {*SUITES} == {*get_args(ModelRole)}
    assert sorted(role for place in PLACES for role in place.roles) == sorted(get_args(ModelRole))
    assert all(place.path or place.why_none for place in PLACES)
