"""The targets that may get a place in OpenClaw's config, and the models that they are evidence for."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Literal

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from pytest_openclaw.stats.groups import Group
    from pytest_openclaw.stats.recommendation import Kind, Recommendation
    from pytest_openclaw.stats.roles import RoleResult
    from pytest_openclaw.types.prompts import ModelRole
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
class Candidate:
    """A target that may get a route.

    Attributes:
        ref: `provider/model` as OpenClaw calls it; None if it has no name there.
        is_local: it is served on this machine or network, as far as the run shows.
        rank: of several ways to one model, OpenClaw's own is 0, another one 1.
        remarks: open questions about the name.
        rows: of the target, for comparisons with others; of `roles` too, which may be of another surface.
        roles: the results of the roles that it was asked about, on whichever surface.
    """

    group: Group
    ref: str | None
    is_local: bool
    rank: int = 0
    remarks: tuple[str, ...] = ()
    rows: Sequence[Record] = ()
    roles: Mapping[ModelRole, RoleResult] = field(default_factory=dict)

    @property
    def label(self) -> str:
        """The target, as on the command line."""
        return self.group.target.label

    @property
    def is_native(self) -> bool:
        """Whether its tier is one of calls on the wire."""
        return self.group.tool_use.evidence == "native"

    @property
    def role(self) -> Role:
        """What its recommendation allows."""
        return _ROLES[self.group.recommendation.kind]


@dataclass(frozen=True, kw_only=True)
class Route:
    """A model by OpenClaw's name, and the targets that are evidence for it.

    OpenClaw's tool policy knows no thinking level, so the weakest of them decides.

    Attributes:
        set_aside: targets that reached it in a way that OpenClaw does not take.
    """

    ref: str
    candidates: tuple[Candidate, ...]
    set_aside: tuple[Candidate, ...] = ()

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
        return any(candidate.is_local for candidate in self.candidates)

    @property
    def proven_tools(self) -> list[str]:
        """Tools that every target has proven."""
        first, *others = (
            {name for name, proof in candidate.group.tool_proofs.items() if proof.is_enough}
            for candidate in self.candidates
        )
        return sorted(first.intersection(*others))
