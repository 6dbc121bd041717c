"""OpenClaw's check of a patch, as text lines and as JSON."""

from __future__ import annotations

import os
import sys
from dataclasses import replace
from typing import TYPE_CHECKING

from pytest_openclaw.core.text import counted

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator
    from pathlib import Path

    from pytest_openclaw.core.json_types import JsonObject
    from pytest_openclaw.providers.openclaw.ruling import Checked, Remark, Ruling


def have_checked(patch: str, config: Path | None) -> Checked:
    """Have the installed OpenClaw check a patch; print the current step on stderr.

    Raises:
        OpenClawError: the check cannot be made.
    """
    from pytest_openclaw.providers.openclaw.patching import check_patch

    def show(sentence: str) -> None:
        print(f"{sentence} …", file=sys.stderr, flush=True)  # noqa: T201

    return check_patch(patch, os.environ, config=config, notify=show)


def render_checked(checked: Checked) -> Iterator[str]:
    """Yield the result in a few lines."""
    where = f"a copy of {checked.config}" if checked.config else "a fresh config, because there is none yet"
    yield f"checked by {checked.version or 'OpenClaw'} in {where}:"
    if checked.is_refused_before:
        yield "  refused: your config as it is, before the patch"
        yield from _remarks(checked.issues_before)
        return
    yield from _step("dry run", checked.dry_run, "the patch is accepted")
    if checked.applied:
        yield from _step("apply", checked.applied, "the copy is patched")
    if checked.validated and (checked.validated.ok or checked.issues_of_patch):
        issues = checked.issues_of_patch
        yield from _step("validate", replace(checked.validated, issues=tuple(issues)), "the config is valid")
    elif checked.validated:
        yield "  validate: ok, the patch adds nothing to what your config is refused for without it"
        yield from _remarks(checked.issues_before)
    yield from _set_aside(checked)


def _set_aside(checked: Checked) -> Iterator[str]:
    from pytest_openclaw.providers.openclaw.ruling import is_of_unset

    others = [remark for remark in checked.warnings if not is_of_unset(remark)]
    if others:
        yield f"  {counted(len(others), 'warning')}:"
        yield from _remarks(others)
    if checked.unset:
        yield f"  not resolved, because OpenClaw is given no variable here: {', '.join(checked.unset)}"
    if checked.skipped_refs:
        yield f"  not resolved, because a command would fetch it: {counted(checked.skipped_refs, 'secret')}"


def checked_as_json(checked: Checked) -> JsonObject:
    """Return the result as plain values."""
    return {
        "valid": checked.is_valid,
        "openclaw": checked.version,
        "config": str(checked.config) if checked.config else None,
        "dry_run": _as_json(checked.dry_run),
        "apply": _as_json(checked.applied),
        "validate": _as_json(checked.validated),
        "before": _as_json(checked.before),
        "unset": checked.unset,
        "skipped_refs": checked.skipped_refs,
    }


def _step(name: str, ruling: Ruling, agreed: str) -> Iterator[str]:
    yield f"  {name}: {'ok, ' + agreed if ruling.ok else 'refused'}"
    yield from _remarks(ruling.issues)


def _remarks(remarks: Iterable[Remark]) -> Iterator[str]:
    for remark in remarks:
        path = f"{remark.path}: " if remark.path else ""
        yield f"    {path}{remark.message}"


def _as_json(ruling: Ruling | None) -> JsonObject | None:
    def plain(remarks: Iterable[Remark]) -> list[JsonObject]:
        return [{"path": remark.path, "message": remark.message} for remark in remarks]

    if ruling is None:
        return None
    return {"ok": ruling.ok, "issues": plain(ruling.issues), "warnings": plain(ruling.warnings)}
