"""Recorded outcomes of the real OpenClaw, so that our loop can be compared with them without OpenClaw."""

from __future__ import annotations

import json
from dataclasses import dataclass, field
from pathlib import Path

import msgspec

from tests.openclaw.agreement.cases import Case
from tests.openclaw.agreement.outcomes import Outcome

FILE = Path(__file__).with_name("observed.json")


@dataclass(frozen=True, kw_only=True)
class Releases:
    """The versions of the programs, and the date of the latest case."""

    openclaw: str
    node: str
    pytest_openclaw: str
    date: str


@dataclass(frozen=True, kw_only=True)
class Kept:
    """An outcome, with the digest of its case's content."""

    digest: str
    outcome: Outcome


@dataclass(kw_only=True)
class Observed:
    """Outcomes by the id of their case."""

    releases: Releases | None = None
    cases: dict[str, Kept] = field(default_factory=dict)

    def outcome(self, case: Case) -> Outcome | None:
        """Return the outcome of a case; None if it has not been played with its current content."""
        kept = self.cases.get(case.id)
        return kept.outcome if kept and kept.digest == case.digest else None

    def save(self) -> None:
        """Write everything."""
        text = json.dumps(msgspec.to_builtins(self), indent=1, ensure_ascii=False)
        FILE.write_text(f"{text}\n", encoding="utf-8")


def load() -> Observed:
    """Return the stored outcomes."""
    return msgspec.json.decode(FILE.read_bytes(), type=Observed)
