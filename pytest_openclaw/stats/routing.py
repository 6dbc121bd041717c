"""The recommendations of a run → the place of each model in OpenClaw.

| recommendation | may |
| --- | --- |
| `trusted` | hold the tools; the fastest not shown to be worse than the best answers for subagents |
| `trusted_with` | hold the tools that it has proven |
| `not_trusted` | hold none |
| `unsafe` | hold none, because other tools reach what those that did harm reach, and answer nothing |
| `not_enough_evidence` | nothing is said of it |

For heartbeats, titles and the like `roles.py` says which models fit.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from pytest_openclaw.stats.best import best_of
from pytest_openclaw.stats.candidates import Route
from pytest_openclaw.stats.places import PLACES, choose_for

if TYPE_CHECKING:
    from collections.abc import Sequence

    from pytest_openclaw.stats.best import Best
    from pytest_openclaw.stats.candidates import Candidate
    from pytest_openclaw.stats.places import PlaceChoice


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

    routes: tuple[Route, ...]
    nameless: tuple[Candidate, ...] = ()
    subagent: Candidate | None = None
    best: Best | None = None
    choices: Sequence[PlaceChoice] = ()


def plan_routes(candidates: Sequence[Candidate]) -> Routing:
    """Say what each model may do."""
    by_ref: dict[str, list[Candidate]] = {}
    for candidate in candidates:
        if candidate.ref is not None:
            by_ref.setdefault(candidate.ref, []).append(candidate)
    routes = tuple(_route(ref, rivals) for ref, rivals in by_ref.items())
    able = [one for route in routes if route.role == "all" for one in route.candidates]
    best = best_of([one.group for one in able], {one.group.target: one.rows for one in able})
    subagent = next((one for one in able if best is None or one.label == best.fastest), None)
    return Routing(
        routes=routes,
        nameless=tuple(candidate for candidate in candidates if candidate.ref is None),
        subagent=subagent,
        best=best,
        choices=[choice for place in PLACES if (choice := choose_for(place, routes))],
    )


def _route(ref: str, rivals: Sequence[Candidate]) -> Route:
    # A way that was asked on the wire and did not answer has shown something too: nothing to rely on.
    ranks = [one.rank for one in rivals if one.is_native or one.group.n_native_unanswered]
    best = min(ranks, default=min(candidate.rank for candidate in rivals))
    return Route(
        ref=ref,
        candidates=tuple(candidate for candidate in rivals if candidate.rank == best),
        set_aside=tuple(candidate for candidate in rivals if candidate.rank != best),
    )
