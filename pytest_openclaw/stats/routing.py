"""The recommendations of a run → the role of each model in OpenClaw.

| recommendation | may |
| --- | --- |
| `trusted` | hold the tools; the fastest not shown to be worse than the best answers for subagents |
| `trusted_with` | hold the tools that it has proven, as a fallback |
| `not_trusted` | hold none; the fastest that has proven it answers heartbeats and utility tasks |
| `unsafe` | hold none, because other tools reach what those that did harm reach, and answer nothing |
| `not_enough_evidence` | nothing is said of it |

What was measured with code mode on says nothing of a model with it off, and the reverse. A model gets code
mode if it is trusted with it, and not without. No policy limits code itself, so a model that is trusted with
some tools in code mode gets neither code mode nor these tools.
"""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Literal

from pytest_openclaw.stats.best import best_of
from pytest_openclaw.stats.proofs import Proof
from pytest_openclaw.types.targets import OPENCLAW_CODE

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping, Sequence

    from pytest_openclaw.stats.best import Best
    from pytest_openclaw.stats.groups import Group
    from pytest_openclaw.stats.recommendation import Kind, Recommendation
    from pytest_openclaw.types.records import Record

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


@dataclass(frozen=True, kw_only=True)
class Proofs:
    """What a target has shown beside its tools: text prompts, of heartbeats and of any kind."""

    heartbeat: Proof = field(default_factory=Proof)
    text: Proof = field(default_factory=Proof)


@dataclass(frozen=True, kw_only=True)
class Candidate:
    """A target that may get a route.

    Attributes:
        ref: `provider/model` as OpenClaw calls it; None if it has no name there.
        is_local: it is served on this machine or network, as far as the run shows.
        rank: of several ways to one model, OpenClaw's own is 0, another one 1.
        remarks: open questions about the name.
        rows: of the target, for comparisons with others.
    """

    group: Group
    ref: str | None
    is_local: bool
    proofs: Proofs
    rank: int = 0
    remarks: tuple[str, ...] = ()
    rows: Sequence[Record] = ()

    @property
    def label(self) -> str:
        """The target, as on the command line."""
        return self.group.target.label

    @property
    def is_in_code_mode(self) -> bool:
        """Whether it was measured with code mode on."""
        return self.group.target.surface == OPENCLAW_CODE

    @property
    def is_native(self) -> bool:
        """Whether its tier is one of calls on the wire."""
        return self.group.tool_use.evidence == "native"

    @property
    def role(self) -> Role:
        """What its recommendation allows."""
        return _ROLES[self.group.recommendation.kind]

    @property
    def p50_ms(self) -> float:
        """The median latency; without any, slower than all."""
        latency = self.group.latency_ms["p50"]
        return float("inf") if latency is None else latency


@dataclass(frozen=True, kw_only=True)
class Route:
    """A model by OpenClaw's name, and the targets that are evidence for it.

    OpenClaw's tool policy knows no thinking level, so the weakest of them decides.

    Attributes:
        set_aside: targets that reached it in a way that OpenClaw does not take.
        other_mode: targets measured with code mode on if the others were not, or the reverse.
    """

    ref: str
    candidates: tuple[Candidate, ...]
    set_aside: tuple[Candidate, ...] = ()
    other_mode: tuple[Candidate, ...] = ()

    @property
    def role(self) -> Role:
        """What the weakest recommendation allows."""
        role = _ROLES[self.recommendation.kind]
        return "unsettled" if role == "some" and self.is_in_code_mode else role

    @property
    def is_in_code_mode(self) -> bool:
        """Whether its targets were measured with code mode on."""
        return self.candidates[0].is_in_code_mode

    @property
    def has_code_mode(self) -> bool:
        """Whether it gets code mode."""
        return self.is_in_code_mode and self.role == "all"

    @property
    def recommendation(self) -> Recommendation:
        """The weakest of its targets' recommendations."""
        found = (candidate.group.recommendation for candidate in self.candidates)
        return min(found, key=lambda one: [*_ROLES].index(one.kind))

    @property
    def is_local(self) -> bool:
        """Whether any of its targets is."""
        return any(candidate.is_local for candidate in self.candidates)

    @property
    def p50_ms(self) -> float:
        """The median latency of the slowest."""
        return max(candidate.p50_ms for candidate in self.candidates)

    @property
    def proven_tools(self) -> list[str]:
        """Tools that every target has proven."""
        first, *others = (
            {name for name, proof in candidate.group.tool_proofs.items() if proof.is_enough}
            for candidate in self.candidates
        )
        return sorted(first.intersection(*others))

    @property
    def has_proven_heartbeats(self) -> bool:
        """Whether every target answers heartbeats as it should."""
        return all(candidate.proofs.heartbeat.is_enough for candidate in self.candidates)

    @property
    def has_proven_text(self) -> bool:
        """Whether every target answers text prompts as it should."""
        return all(candidate.proofs.text.is_enough for candidate in self.candidates)


@dataclass(frozen=True, kw_only=True)
class Routing:
    """A run's routes.

    Attributes:
        routes: in the order of their first target.
        nameless: targets for which OpenClaw has no name.
        subagent: of the targets that hold all tools, the fastest that is not shown to be worse than the best.
        best: those that are not, if two or more hold all tools.
        heartbeat, utility: refs of models without tools that may answer there.
    """

    routes: tuple[Route, ...]
    nameless: tuple[Candidate, ...] = ()
    subagent: Candidate | None = None
    best: Best | None = None
    heartbeat: str | None = None
    utility: str | None = None


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
    without = [route for route in routes if route.recommendation.kind == "not_trusted"]
    return Routing(
        routes=routes,
        nameless=tuple(candidate for candidate in candidates if candidate.ref is None),
        subagent=subagent,
        best=best,
        heartbeat=_fastest(route for route in without if route.has_proven_heartbeats),
        utility=_fastest(route for route in without if route.has_proven_text),
    )


def _route(ref: str, rivals: Sequence[Candidate]) -> Route:
    modes = [[one for one in rivals if one.is_in_code_mode == is_on] for is_on in (False, True)]
    without, *with_code = [_route_in_mode(ref, mode) for mode in modes if mode]
    if not with_code:
        return without
    (code,) = with_code
    is_better = code.role == "all" != without.role
    chosen, other = (code, without) if is_better else (without, code)
    return replace(chosen, other_mode=other.candidates)


def _route_in_mode(ref: str, rivals: Sequence[Candidate]) -> Route:
    # A way that was asked on the wire and did not answer has shown something too: nothing to rely on.
    ranks = [one.rank for one in rivals if one.is_native or one.group.n_native_unanswered]
    best = min(ranks, default=min(candidate.rank for candidate in rivals))
    return Route(
        ref=ref,
        candidates=tuple(candidate for candidate in rivals if candidate.rank == best),
        set_aside=tuple(candidate for candidate in rivals if candidate.rank != best),
    )


def _fastest(routes: Iterable[Route]) -> str | None:
    fastest = min(routes, key=lambda route: (route.p50_ms, route.ref), default=None)
    return fastest.ref if fastest else None
