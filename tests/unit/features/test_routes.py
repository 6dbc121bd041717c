"""What each model may do, by its evidence."""

from __future__ import annotations

from dataclasses import replace

import pytest

from pytest_openclaw.features.routing.routes import Candidate, plan_routes
from tests.unit.reports.summaries import cell, restraint_cells
from tests.unit.stats.routes import NATIVE, as_text, candidate, capped, settled, target, unsafe, unsettled


@pytest.mark.parametrize(
    ("one", "role"),
    [
        pytest.param(settled("m", 1), "all", id="tier-1"),
        pytest.param(settled("m", 2), "some", id="tier-2"),
        pytest.param(settled("m", 3), "none", id="tier-3"),
        pytest.param(settled("m", 2, tools=()), "unsettled", id="tier-2-without-a-proven-tool"),
        pytest.param(capped("m"), "none", id="needless-calls"),
        pytest.param(unsafe("m"), "none", id="harm"),
        pytest.param(unsettled("m"), "unsettled", id="too-few-cells"),
        pytest.param(as_text("m", 1), "unsettled", id="tier-1-as-text"),
        pytest.param(as_text("m", 3), "unsettled", id="tier-3-as-text"),
        pytest.param(candidate("m", []), "unsettled", id="nothing-answered"),
    ],
)
def test_a_role_follows_the_recommendation(one: Candidate, role: str) -> None:
    """Which is one of settled tiers and restraint, by calls on the wire, without harm."""
    assert one.role == role


@pytest.mark.parametrize(
    ("rivals", "best"),
    [
        pytest.param([settled("a", 1, e2e_ms=900), settled("b", 1)], "b", id="as-sure-then-faster"),
        pytest.param([settled("b", 1), settled("a", 1)], "a", id="as-sure-as-fast-then-by-name"),
        pytest.param([settled("a", 2), settled("b", 3), unsettled("c"), as_text("d")], None, id="no-tier-1"),
        pytest.param(
            [settled("a", 1, has_name=False), settled("b", 1, e2e_ms=900)], "b", id="without-a-name"
        ),
    ],
)
def test_the_best_tier_1_answers_for_subagents(rivals: list[Candidate], best: str | None) -> None:
    """Of those not shown to be worse than the best the lowest p50 wins; no other tier is ever chosen."""
    found = plan_routes(rivals).subagent

    assert (found and found.ref.name) == (best and f"ollama/{best}")


@pytest.mark.parametrize(
    ("n_missed", "chosen"), [pytest.param(4, "fast", id="perhaps"), pytest.param(5, "sure", id="surely")]
)
def test_a_target_that_is_shown_to_be_worse_is_not_chosen(n_missed: int, chosen: str) -> None:
    """Of two Tier 1 targets the faster one is chosen only if it may be the best."""
    rows = {
        name: [
            *(
                cell(f"P{n}", "no_call" if n < n_wrong else "valid", target(name), e2e_ms=ms, **NATIVE)
                for n in range(100)
            ),
            *restraint_cells(40, 0, target(name), e2e_ms=ms, **NATIVE),
        ]
        for name, n_wrong, ms in (("fast", n_missed, 1), ("sure", 0, 9000))
    }
    rivals = [replace(candidate(name, its), rows=its) for name, its in rows.items()]
    routing = plan_routes(rivals)

    assert {one.role for one in rivals} == {"all"}
    assert routing.subagent is not None
    assert routing.subagent.ref.name == f"ollama/{chosen}"
    assert routing.best is not None
    assert routing.best.n_targets == 2


@pytest.mark.parametrize(
    ("others", "role"),
    [
        pytest.param([settled("m", 2, level="low")], "some", id="tier-2"),
        pytest.param([settled("m", 3, level="low"), unsettled("m")], "none", id="tier-3-and-unsettled"),
        pytest.param([unsettled("m")], "unsettled", id="unsettled"),
        pytest.param([settled("m", 1, level="low")], "all", id="tier-1-too"),
    ],
)
def test_the_weakest_level_decides(others: list[Candidate], role: str) -> None:
    """A policy knows no thinking level, so a model's levels have one route together."""
    (route,) = plan_routes([settled("m", 1), *others]).routes

    assert route.role == role


def test_a_subagent_is_no_level_of_a_weaker_route() -> None:
    """A level of Tier 1 is not chosen if the model's other level is none."""
    assert plan_routes([settled("m", 1), settled("m", 2, level="low")]).subagent is None


def test_openclaws_own_way_decides() -> None:
    """A target that reaches the model as OpenClaw does counts, one by a detour only without such a target."""
    other = settled("m", 3, is_detour=True)

    (route,) = plan_routes([other, settled("m", 1)]).routes
    (only,) = plan_routes([other]).routes

    assert (route.role, route.set_aside) == ("all", [other])
    assert (only.role, only.set_aside) == ("none", ())


def test_only_what_every_level_has_proven_is_proven() -> None:
    """Proven tools are those that all targets of a route have in common."""
    one = settled("m", 2, tools=("read", "ls"))
    other = settled("m", 2, level="low", tools=("exec", "read"))

    (route,) = plan_routes([one, other]).routes

    assert route.proven_tools == ["read"]


def test_a_target_without_a_name_is_separate() -> None:
    """It has no route, and is reported."""
    nameless = settled("m", 1, has_name=False)

    routing = plan_routes([nameless])

    assert (routing.routes, routing.nameless, routing.subagent) == ([], [nameless], None)
