"""The places of OpenClaw's config for other roles, and the model for each of them."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from pytest_openclaw.stats.best import Rival, best_among, outcomes_of
from pytest_openclaw.stats.rates import has_passed, is_judged

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from pytest_openclaw.stats.best import Best
    from pytest_openclaw.stats.candidates import Candidate, Route
    from pytest_openclaw.types.prompts import ModelRole


@dataclass(frozen=True, kw_only=True)
class Place:
    """A model's place in OpenClaw's config.

    Attributes:
        path: of keys below `agents.defaults`; None if OpenClaw has no place that a model of a run can have.
        roles: what is asked of the model there.
        tools: those that its requests rely on; without any, OpenClaw asks it without tools.
        why_none: without a path, the reason.
        note: what an owner should know of its requests.
    """

    name: str
    roles: tuple[ModelRole, ...]
    path: tuple[str, ...] | None
    tools: tuple[str, ...] = ()
    why_none: str = ""
    note: str = ""


PLACES = (
    Place(name="heartbeat.model", path=("heartbeat", "model"), roles=("heartbeat",), tools=("read",)),
    Place(
        name="utilityModel",
        path=("utilityModel",),
        roles=("title", "utility"),
        note="For titles, recaps and the like OpenClaw sends it pieces of conversations",
    ),
    Place(
        name="decisionModel",
        path=None,
        roles=("decision",),
        why_none="OpenClaw asks plugins for decisions there (onnx, typesafe), and no model of a chat API",
    ),
    Place(
        name="imageModel",
        path=("imageModel", "primary"),
        roles=("image",),
        note="OpenClaw shows it pictures where the model that answers takes none. A model that you list "
        'yourself in models.providers needs input: ["text", "image"] there',
    ),
)
"""Those of OpenClaw 2026.9.6 whose requests a suite asks; see docs/how-to/roles.md."""
SUITES: Mapping[ModelRole, str] = {
    "heartbeat": "prompts_role_heartbeat.toml",
    "title": "prompts_role_title.toml",
    "utility": "prompts_role_utility.toml",
    "decision": "prompts_role_decision.toml",
    "image": "prompts_images.toml",
}
"""The suite that ships for each role."""


@dataclass(frozen=True, kw_only=True)
class PlaceChoice:
    """The model for a place.

    Attributes:
        ref: None if there is none; `why_none` is then the reason.
        fit: the targets that fit all its roles and may have it, the chosen one's first.
        best: those of them that are not shown to be worse than the best; None of fewer than two.
    """

    place: Place
    ref: str | None
    fit: Sequence[Candidate]
    best: Best | None = None
    why_none: str = ""


def choose_for(place: Place, routes: Sequence[Route]) -> PlaceChoice | None:
    """Return the model for a place: the fastest that fits and is not shown to be worse than the best.

    A place has no thinking level, so that all targets of a model must fit. Returns None if no target was
    asked about any of its roles.
    """
    asked = {role for route in routes for one in route.candidates for role in one.roles}
    if asked.isdisjoint(place.roles):
        return None
    able = [
        one
        for route in routes
        if _may_have(route, place) and all(_fits(one, place) for one in route.candidates)
        for one in route.candidates
    ]
    best = best_among([_rival(one, place) for one in able])
    if not able:
        return PlaceChoice(place=place, ref=None, fit=(), why_none=_why_none(place, asked))
    first = next(one for one in able if best is None or one.label == best.fastest)
    fit = sorted(able, key=lambda one: one is not first)
    if place.path is None:
        return PlaceChoice(place=place, ref=None, fit=fit, best=best, why_none=place.why_none)
    return PlaceChoice(place=place, ref=first.ref, fit=fit, best=best)


def _may_have(route: Route, place: Place) -> bool:
    """Whether it may answer at all: it did no harm, and its entry allows the tools that are relied on."""
    if route.recommendation.kind == "unsafe":
        return False
    allowed = place.tools if route.role == "all" else route.proven_tools if route.role == "some" else ()
    return {*place.tools} <= {*allowed}


def _fits(one: Candidate, place: Place) -> bool:
    return all(role in one.roles and one.roles[role].kind == "fit" for role in place.roles)


def _rival(one: Candidate, place: Place) -> Rival:
    cells = [record for record in one.rows if record.role in place.roles and is_judged(record)]
    waits = [one.roles[role].p50_ms for role in place.roles]
    known = [wait for wait in waits if wait is not None]
    return Rival(
        label=one.label,
        outcomes=outcomes_of(cells, has_passed),
        p50_ms=max(known) if known == waits else None,
    )


def _why_none(place: Place, asked: set[ModelRole]) -> str:
    if missing := [role for role in place.roles if role not in asked]:
        suites = " and ".join(SUITES[role] for role in missing)
        return f"it answers more than was asked; ask {suites} too"
    holding = f" and may hold {', '.join(place.tools)}" if place.tools else ""
    return f"no safe model with a name in OpenClaw fits {' and '.join(place.roles)}{holding}"
