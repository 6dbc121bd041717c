"""OpenClaw's answers about a patch and its config, and the conclusions from them."""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import TYPE_CHECKING

from pytest_openclaw.providers.json_values import objects_in, text_in

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

    from pytest_openclaw.core.json_types import JsonObject

_UNSET = re.compile(r'missing env var "([^"]+)"', re.IGNORECASE)


@dataclass(frozen=True, kw_only=True)
class Remark:
    """A remark of OpenClaw about a config, in its words.

    Attributes:
        path: of the key; empty if it names none.
    """

    path: str
    message: str


@dataclass(frozen=True, kw_only=True)
class Ruling:
    """The answer of one start of OpenClaw.

    Attributes:
        ok: whether it accepts the config or patch.
        issues: errors.
        warnings: problems that it tolerates.
    """

    ok: bool
    issues: tuple[Remark, ...] = ()
    warnings: tuple[Remark, ...] = ()


@dataclass(frozen=True, kw_only=True)
class Checked:
    """The result of a patch's check.

    Attributes:
        version: of OpenClaw, in its own words.
        config: the config whose copy was patched; None if there is none and an empty one was patched.
        dry_run: of the patch.
        applied: of the patch, to the copy; None if the dry run was refused.
        validated: of the copy with the patch; None if it was not applied.
        before: of the config without the patch, checked only if OpenClaw has rejected something.
        skipped_refs: number of secrets from commands, which were not run.
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
        """Whether OpenClaw accepts the patch, and finds no new issue with it."""
        if self.applied is None or self.validated is None or not self.applied.ok:
            return False
        return self.validated.ok or (bool(self.issues_before) and not self.issues_of_patch)

    @property
    def is_refused_before(self) -> bool:
        """Whether the dry run rejected the config itself, so that no patch of it can be checked."""
        refused = not self.dry_run.ok and bool(self.issues_before)
        return refused and all(issue in self.issues_before for issue in self.dry_run.issues)

    @property
    def issues_before(self) -> list[Remark]:
        """The issues of the config without the patch."""
        return list(self.before.issues) if self.before else []

    @property
    def issues_of_patch(self) -> list[Remark]:
        """The issues that the patch adds."""
        issues = self.validated.issues if self.validated else ()
        return [issue for issue in issues if issue not in self.issues_before]

    @property
    def warnings(self) -> tuple[Remark, ...]:
        """OpenClaw's warnings about the config."""
        last = self.validated or self.before
        return last.warnings if last else ()

    @property
    def unset(self) -> list[str]:
        """Variables in the config that are unset because OpenClaw gets none of the user's."""
        matches = (_UNSET.search(remark.message) for remark in self.warnings)
        return sorted({found[1] for found in matches if found})


def is_of_unset(remark: Remark) -> bool:
    """Whether a warning is about a variable that OpenClaw does not get here."""
    return _UNSET.search(remark.message) is not None


def ruling_of(answer: JsonObject, clean: Callable[[str], str], *, ok: bool) -> Ruling:
    """Parse an answer, with clean texts; `ok` is whether OpenClaw accepts."""
    # In a dry run, problems of the patch are errors, and problems of the config issues.
    issues = [*_remarks(answer.get("issues"), clean), *_remarks(answer.get("errors"), clean)]
    error = answer.get("error")
    if not ok and not issues:
        said = error.get("message") if isinstance(error, dict) else error
        issues = [Remark(path="", message=clean(text_in(said)) or "no reason given")]
    return Ruling(ok=ok, issues=tuple(issues), warnings=tuple(_remarks(answer.get("warnings"), clean)))


def _remarks(entries: object, clean: Callable[[str], str]) -> list[Remark]:
    texts = ((entry.get("path") or entry.get("ref"), entry.get("message")) for entry in objects_in(entries))
    return [Remark(path=clean(text_in(path)), message=clean(text_in(message))) for path, message in texts]
