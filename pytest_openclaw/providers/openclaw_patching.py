"""What the real OpenClaw makes of a patch of its config, in a copy of that config.

It is started for `config patch --dry-run --json`, for the patch applied to the copy, and for
`config validate --json` on what came of it. The user's own files are read and never written, and no key of
the environment is passed on.
"""

from __future__ import annotations

import re
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

from pytest_openclaw.errors import OpenClawError
from pytest_openclaw.providers.json_values import count_in, objects_in, text_in
from pytest_openclaw.providers.openclaw_call import scratch_folder
from pytest_openclaw.providers.openclaw_files import config_path, copy_config, empty_config
from pytest_openclaw.providers.openclaw_once import PATIENCE_S, OpenClaw, find_openclaw
from pytest_openclaw.providers.openclaw_output import find_object
from pytest_openclaw.providers.wire_errors import shortened
from pytest_openclaw.redact import Redactor

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Mapping
    from pathlib import Path

    from pytest_openclaw.providers.openclaw_files import Copied
    from pytest_openclaw.providers.openclaw_once import Printed
    from pytest_openclaw.records import JsonObject

# Its log file is the user's in any folder for temporary files, and may hold what a config holds.
_QUIET = {"OPENCLAW_LOG_LEVEL": "silent"}
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
        operations: how many values the patch has, as OpenClaw counts them.
        skipped_refs: secrets that a command would have to fetch, and was not asked for.
    """

    version: str
    config: Path | None
    dry_run: Ruling
    applied: Ruling | None = None
    validated: Ruling | None = None
    before: Ruling | None = None
    operations: int | None = None
    skipped_refs: int = 0

    @property
    def is_valid(self) -> bool:
        """Whether OpenClaw takes the patch, and finds nothing in its company that was not there before."""
        if self.applied is None or self.validated is None or not self.applied.ok:
            return False
        return self.validated.ok or (bool(self.issues_before) and not self.issues_of_patch)

    @property
    def is_refused_before(self) -> bool:
        """Whether the config was refused as it is, so that no patch of it can be."""
        return self.applied is None and self.before is not None and not self.before.ok

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


def check_patch(
    patch: str,
    environ: Mapping[str, str],
    *,
    name: str,
    config: Path | None = None,
    patience_s: float = PATIENCE_S,
    told: Callable[[str], None] | None = None,
) -> Checked:
    """Have the installed OpenClaw check a patch.

    Args:
        patch: JSON5.
        environ: the environment; it says where OpenClaw and its config are.
        name: of who asks, for the wording.
        config: the user's; None is where OpenClaw would look.
        patience_s: for each start of OpenClaw.
        told: called with a sentence when a start takes long.

    Raises:
        OpenClawError: there is no answer.
        OSError: the config cannot be read.
    """
    command = find_openclaw(environ, name=name)
    with scratch_folder() as scratch:
        own = config or config_path(environ)
        is_there = config is not None or own.exists()

        def copy(name: str) -> Copied:
            folder = scratch.folder / name
            return copy_config(own, folder, environ) if is_there else empty_config(folder)

        def openclaw_at(copied: Copied) -> OpenClaw:
            return OpenClaw(
                command=command,
                scratch=scratch,
                environ=environ,
                more=copied.environ | _QUIET,
                patience_s=patience_s,
                told=told,
            )

        file = scratch.folder / "openclaw.patch.json5"
        file.write_text(patch, "utf-8")
        patched = copy("config")
        words = _Words(patched, own if is_there else None)
        checked = words.of(_patch(openclaw_at(patched), str(file)))
        if not (checked.validated and checked.validated.ok):
            untouched = copy("before")
            before = _validate(openclaw_at(untouched))
            checked = replace(checked, before=_Words(untouched, own if is_there else None).ruling(before))
        return replace(checked, config=own.absolute() if is_there else None)


def _patch(openclaw: OpenClaw, file: str) -> Checked:
    version = (openclaw.run("--version").stdout.strip().splitlines() or [""])[-1]
    patching = ("config", "patch", "--file", file)
    told = _object(openclaw.run(*patching, "--dry-run", "--json"), "config patch --dry-run", _is_answer)
    checked = Checked(
        version=version,
        config=None,
        dry_run=_ruling(told, ok=told["ok"]),
        operations=count_in(told.get("operations")),
        skipped_refs=count_in(told.get("skippedExecRefs")) or 0,
    )
    if not checked.dry_run.ok:
        return checked
    printed = openclaw.run(*patching)
    if printed.exit_status != 0:
        words = shortened(printed.stderr or printed.stdout) or "no reason given"
        return replace(checked, applied=Ruling(ok=False, issues=(Remark(path="", message=words),)))
    return replace(checked, applied=Ruling(ok=True), validated=_validate(openclaw))


def _validate(openclaw: OpenClaw) -> Ruling:
    told = _object(openclaw.run("config", "validate", "--json"), "config validate", _is_validation)
    return _ruling(told, ok=told["valid"])


def _is_answer(value: JsonObject) -> bool:
    return isinstance(value.get("ok"), bool)


def _is_validation(value: JsonObject) -> bool:
    return isinstance(value.get("valid"), bool)


def _object(printed: Printed, what: str, fits: Callable[[JsonObject], bool]) -> JsonObject:
    found = find_object(printed.stdout, printed.stderr, fits)
    if found is None:
        words = f": {shortened(printed.stderr)}" if printed.stderr else ""
        status = f"exit status {printed.exit_status}"
        raise OpenClawError(f"openclaw {what} ended ({status}) without its JSON{words}")
    return found


def _ruling(answer: JsonObject, *, ok: bool) -> Ruling:
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


class _Words:
    """OpenClaw's words with the user's paths in them, and without keys."""

    def __init__(self, copied: Copied, own: Path | None) -> None:
        self._redactor = Redactor.of(copied.secrets)
        self._folder = str(copied.path.parent)
        self._theirs = str(own.absolute().parent) if own else "."

    def of(self, checked: Checked) -> Checked:
        """Return the same in clean words."""
        return replace(
            checked,
            version=self._clean(checked.version),
            dry_run=self.ruling(checked.dry_run),
            applied=self.ruling(checked.applied) if checked.applied else None,
            validated=self.ruling(checked.validated) if checked.validated else None,
        )

    def ruling(self, ruling: Ruling) -> Ruling:
        """Return the same in clean words."""
        issues, warnings = self._remarks(ruling.issues), self._remarks(ruling.warnings)
        return replace(ruling, issues=issues, warnings=warnings)

    def _remarks(self, remarks: Iterable[Remark]) -> tuple[Remark, ...]:
        return tuple(Remark(path=self._clean(one.path), message=self._clean(one.message)) for one in remarks)

    def _clean(self, text: str) -> str:
        return self._redactor.text(text.replace(self._folder, self._theirs))
