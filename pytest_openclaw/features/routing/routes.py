"""The recommendations of a run → what each model may do in OpenClaw, and the models for its other roles.

| recommendation | may |
| --- | --- |
| `trusted` | hold the tools; the fastest not shown to be worse than the best answers for subagents |
| `trusted_with` | hold the tools that it has proven |
| `not_trusted` | hold none |
| `unsafe` | hold none, because other tools reach what those that did harm reach, and answer nothing |
| `not_enough_evidence` | nothing is said of it |
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Literal, NamedTuple

from pytest_openclaw.stats.intervals import has_passed, is_judged
from pytest_openclaw.stats.summary import Rival, best_among, best_of, outcomes_of

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from pytest_openclaw.stats.groups import Group
    from pytest_openclaw.stats.recommendation import Kind, Recommendation, RoleResult
    from pytest_openclaw.stats.summary import Best
    from pytest_openclaw.values.prompts import ModelRole
    from pytest_openclaw.values.rows import Record


Role = Literal["none", "unsettled", "some", "all"]
"""The tools that a model may hold, by what the evidence allows; `unsettled` says nothing of it."""

_ROLES: Mapping[Kind, Role] = {
    "unsafe": "none",
    "not_trusted": "none",
    "not_enough_evidence": "unsettled",
    "trusted_with": "some",
    "trusted": "all",
}
"""The weakest first."""


class Ref(NamedTuple):
    """A target's name in OpenClaw.

    Attributes:
        name: `provider/model`; None if there is none.
        is_local: whether it is served on this machine or network, or at an unknown place.
        is_detour: whether OpenClaw reaches the model by another API than the target.
        remark: what to check about the name.
    """

    name: str | None
    is_local: bool = True
    is_detour: bool = False
    remark: str = ""


@dataclass(frozen=True, kw_only=True)
class Candidate:
    """A target that may get a route.

    Attributes:
        rows: of the target, for comparisons with others; of `roles` too, which may be of another surface.
        roles: the results of the roles that it was asked about, on whichever surface.
    """

    group: Group
    ref: Ref
    rows: Sequence[Record] = ()
    roles: Mapping[ModelRole, RoleResult] = field(default_factory=dict)

    @property
    def label(self) -> str:
        """The target, as on the command line."""
        return self.group.target.label

    @property
    def role(self) -> Role:
        """What its recommendation allows."""
        return _ROLES[self.group.recommendation.kind]


@dataclass(frozen=True, kw_only=True)
class Route:
    """A model by OpenClaw's name, and the targets that are evidence for it.

    OpenClaw's tool policy knows no thinking level, so the weakest of them decides.

    Attributes:
        set_aside: targets that reached the model by a detour; empty if all did.
    """

    ref: str
    candidates: Sequence[Candidate]
    set_aside: Sequence[Candidate] = ()

    @property
    def role(self) -> Role:
        """What the weakest recommendation allows."""
        return _ROLES[self.recommendation.kind]

    @property
    def recommendation(self) -> Recommendation:
        """The weakest of its targets' recommendations."""
        found = (candidate.group.recommendation for candidate in self.candidates)
        return min(found, key=lambda one: [*_ROLES].index(one.kind))

    @property
    def is_local(self) -> bool:
        """Whether any of its targets is."""
        return any(candidate.ref.is_local for candidate in self.candidates)

    @property
    def proven_tools(self) -> list[str]:
        """Tools that every target has proven."""
        first, *others = (
            {name for name, proof in candidate.group.tool_proofs.items() if proof.is_enough}
            for candidate in self.candidates
        )
        return sorted(first.intersection(*others))


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
    if not able:
        return PlaceChoice(place=place, ref=None, fit=(), why_none=_why_none(place, asked))
    best = best_among([_rival(one, place) for one in able])
    fit = sorted(able, key=lambda one: best is not None and one.label != best.fastest)
    ref = fit[0].ref.name if place.path else None
    return PlaceChoice(place=place, ref=ref, fit=fit, best=best, why_none=place.why_none)


def _may_have(route: Route, place: Place) -> bool:
    """Whether it may answer at all: it did no harm, and its entry allows the tools that are relied on."""
    if route.recommendation.kind == "unsafe":
        return False
    needs_more = {*place.tools}.difference(route.proven_tools)
    return route.role == "all" or not place.tools or (route.role == "some" and not needs_more)


def _fits(one: Candidate, place: Place) -> bool:
    return all(role in one.roles and one.roles[role].kind == "fit" for role in place.roles)


def _rival(one: Candidate, place: Place) -> Rival:
    cells = [record for record in one.rows if record.role in place.roles and is_judged(record)]
    waits = [wait for role in place.roles if (wait := one.roles[role].p50_ms) is not None]
    return Rival(
        label=one.label,
        outcomes=outcomes_of(cells, has_passed),
        p50_ms=max(waits) if len(waits) == len(place.roles) else None,
    )


def _why_none(place: Place, asked: set[ModelRole]) -> str:
    if missing := [role for role in place.roles if role not in asked]:
        suites = " and ".join(SUITES[role] for role in missing)
        return f"it answers more than was asked; ask {suites} too"
    holding = f" and may hold {', '.join(place.tools)}" if place.tools else ""
    return f"no safe model with a name in OpenClaw fits {' and '.join(place.roles)}{holding}"


@dataclass(frozen=True, kw_only=True)
class Routing:
    """A run's routes.

    Attributes:
        routes: in the order of their first target.
        nameless: targets for which OpenClaw has no name.
        subagent: of the targets that hold all tools, the fastest that is not shown to be worse than the best.
        best: those that are not, if two or more hold all tools.
        choices: the other places of the config about whose roles any target was asked.
    """

    routes: Sequence[Route]
    nameless: Sequence[Candidate]
    subagent: Candidate | None
    best: Best | None
    choices: Sequence[PlaceChoice]


def plan_routes(candidates: Sequence[Candidate]) -> Routing:
    """Say what each model may do."""
    by_ref: dict[str, list[Candidate]] = {}
    for candidate in candidates:
        if candidate.ref.name is not None:
            by_ref.setdefault(candidate.ref.name, []).append(candidate)
    routes = [_route(ref, rivals) for ref, rivals in by_ref.items()]
    able = [one for route in routes if route.role == "all" for one in route.candidates]
    best = best_of([one.group for one in able], {one.group.target: one.rows for one in able})
    return Routing(
        routes=routes,
        nameless=[candidate for candidate in candidates if candidate.ref.name is None],
        subagent=next((one for one in able if best is None or one.label == best.fastest), None),
        best=best,
        choices=[choice for place in PLACES if (choice := choose_for(place, routes))],
    )


def _route(ref: str, rivals: Sequence[Candidate]) -> Route:
    direct = [one for one in rivals if not one.ref.is_detour]
    return Route(
        ref=ref,
        candidates=direct or rivals,
        set_aside=[one for one in rivals if one.ref.is_detour] if direct else (),
    )
