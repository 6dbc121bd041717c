"""What OpenClaw says of a patch and of the config that it is for: its answers, and what follows from them."""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import TYPE_CHECKING

from pytest_openclaw.providers.json_values import objects_in, text_in

if TYPE_CHECKING:
    from pathlib import Path

    from pytest_openclaw.core.json_types import JsonObject

_UNSET = re.compile(r'missing env var "([^"]+)"', re.IGNORECASE)


@dataclass(frozen=True, kw_only=True)
class Remark:
    """Something that OpenClaw says of a config, in its words.

    Attributes:
        path: of the key; empty if it names none.
    """

    path: str
    message: str


@dataclass(frozen=True, kw_only=True)
class Ruling:
    """What one start of OpenClaw has said.

    Attributes:
        ok: it agrees.
        issues: what it does not agree to.
        warnings: what it puts up with.
    """

    ok: bool
    issues: tuple[Remark, ...] = ()
    warnings: tuple[Remark, ...] = ()


@dataclass(frozen=True, kw_only=True)
class Checked:
    """What OpenClaw makes of a patch.

    Attributes:
        version: of OpenClaw, in its own words.
        config: whose copy was patched; None if there is none, and a fresh one was.
        dry_run: of the patch.
        applied: of the patch, to the copy; None if the dry run was refused.
        validated: of the copy with the patch; None if it was not applied.
        before: of the config as it is, asked only where OpenClaw has refused anything.
        skipped_refs: secrets that a command would have to fetch, and was not asked for.
    """

    version: str
    config: Path | None
    dry_run: Ruling
    applied: Ruling | None = None
    validated: Ruling | None = None
    before: Ruling | None = None
    skipped_refs: int = 0

    @property
    def is_valid(self) -> bool:
        """Whether OpenClaw takes the patch, and finds nothing in its company that was not there before."""
        if self.applied is None or self.validated is None or not self.applied.ok:
            return False
        return self.validated.ok or (bool(self.issues_before) and not self.issues_of_patch)

    @property
    def is_refused_before(self) -> bool:
        """Whether the dry run refused the config as it is, so that no patch of it can be checked."""
        refused = not self.dry_run.ok and bool(self.issues_before)
        return refused and all(issue in self.issues_before for issue in self.dry_run.issues)

    @property
    def issues_before(self) -> list[Remark]:
        """What is wrong with the config as it is."""
        return list(self.before.issues) if self.before else []

    @property
    def issues_of_patch(self) -> list[Remark]:
        """What is wrong with the config since the patch."""
        issues = self.validated.issues if self.validated else ()
        return [issue for issue in issues if issue not in self.issues_before]

    @property
    def warnings(self) -> tuple[Remark, ...]:
        """What OpenClaw puts up with in the config."""
        last = self.validated or self.before
        return last.warnings if last else ()

    @property
    def unset(self) -> list[str]:
        """Variables that the config names; OpenClaw was given none of the user's."""
        told = (_UNSET.search(remark.message) for remark in self.warnings)
        return sorted({found[1] for found in told if found})


def is_of_unset(remark: Remark) -> bool:
    """Whether a warning is of a variable that OpenClaw was not given here."""
    return _UNSET.search(remark.message) is not None


def ruling_of(answer: JsonObject, *, ok: bool) -> Ruling:
    """Return what an answer says; `ok` is whether it agrees."""
    # A dry run calls what is wrong with the patch errors, and what is wrong with the config issues.
    issues = [*_remarks(answer.get("issues")), *_remarks(answer.get("errors"))]
    error = answer.get("error")
    if not ok and not issues:
        said = error.get("message") if isinstance(error, dict) else error
        issues = [Remark(path="", message=text_in(said) or "no reason given")]
    return Ruling(ok=ok, issues=tuple(issues), warnings=tuple(_remarks(answer.get("warnings"))))


def _remarks(entries: object) -> list[Remark]:
    return [
        Remark(path=text_in(entry.get("path") or entry.get("ref")), message=text_in(entry.get("message")))
        for entry in objects_in(entries)
    ]
