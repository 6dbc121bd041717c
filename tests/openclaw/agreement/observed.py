"""Recorded outcomes of the real OpenClaw, so that our loop can be compared with them without OpenClaw."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from tests.openclaw.agreement.cases import Case
from tests.openclaw.agreement.outcomes import Outcome

FILE = Path(__file__).with_name("observed.json")


@dataclass(frozen=True, kw_only=True)
class Releases:
    """The versions of the programs.

    Attributes:
        date: of the latest case.
    """

    openclaw: str
    node: str
    pytest_openclaw: str
    date: str


@dataclass(kw_only=True)
class Observed:
    """Outcomes by the id of their case, each with the digest of the case's content."""

    releases: Releases | None = None
    cases: dict[str, dict[str, Any]] = field(default_factory=dict)

    def outcome(self, case: Case) -> Outcome | None:
        """Return the outcome of a case; None if it has not been played with its current content."""
        kept: Mapping[str, Any] | None = self.cases.get(case.id)
        if kept is None or kept["digest"] != case.digest:
            return None
        return Outcome.of_json(kept["outcome"])

    def keep(self, case: Case, seen: Outcome) -> None:
        """Store the outcome of a case."""
        self.cases[case.id] = {"digest": case.digest, "outcome": seen.to_json()}

    def save(self, file: Path = FILE) -> None:
        """Write everything."""
        releases = vars(self.releases) if self.releases else None
        text = json.dumps({"releases": releases, "cases": self.cases}, indent=1, ensure_ascii=False)
        file.write_text(f"{text}\n", encoding="utf-8")


def load(file: Path = FILE) -> Observed:
    """Return the stored outcomes."""
    if not file.exists():
        return Observed()
    value = json.loads(file.read_text("utf-8"))
    releases = Releases(**value["releases"]) if value["releases"] else None
    return Observed(releases=releases, cases=value["cases"])
