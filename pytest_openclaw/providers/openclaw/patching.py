"""Checks a patch of OpenClaw's config with the real OpenClaw, in a copy of that config.

It is started for `config patch --dry-run --json`, to apply the patch to the copy, and for
`config validate --json` on the result. The user's own files are read and never written, and no key of the
environment is passed on.
"""

from __future__ import annotations

from contextlib import contextmanager
from dataclasses import replace
from typing import TYPE_CHECKING

from pytest_openclaw.core.errors import OpenClawError
from pytest_openclaw.core.private import write_private
from pytest_openclaw.core.redact import Redactor
from pytest_openclaw.core.secret_env import secrets_in_environment
from pytest_openclaw.core.signals import how_it_ended
from pytest_openclaw.providers.json_values import count_in
from pytest_openclaw.providers.openclaw.call import scratch_folder
from pytest_openclaw.providers.openclaw.config_files import config_path, copy_config, empty_config
from pytest_openclaw.providers.openclaw.installed import PATIENCE_S, OpenClaw, find_openclaw
from pytest_openclaw.providers.openclaw.output import find_object
from pytest_openclaw.providers.openclaw.ruling import Checked, Remark, Ruling, ruling_of
from pytest_openclaw.providers.wire_errors import shortened

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator, Mapping
    from pathlib import Path

    from pytest_openclaw.core.json_types import JsonObject
    from pytest_openclaw.providers.openclaw.call import AgentScratch
    from pytest_openclaw.providers.openclaw.config_files import Copied
    from pytest_openclaw.providers.openclaw.installed import Printed

# Its log file is the user's in any temporary folder, and may contain parts of the config.
_QUIET = {"OPENCLAW_LOG_LEVEL": "silent"}


def check_patch(
    patch: str,
    environ: Mapping[str, str],
    *,
    name: str,
    config: Path | None = None,
    patience_s: float = PATIENCE_S,
    notify: Callable[[str], None] | None = None,
) -> Checked:
    """Have the installed OpenClaw check a patch.

    Args:
        patch: JSON5.
        environ: the environment, to find OpenClaw and its config.
        name: of the caller, for messages.
        config: the user's; None is OpenClaw's own.
        patience_s: the timeout of each start of OpenClaw.
        notify: called with a sentence when a start takes long.

    Raises:
        OpenClawError: OpenClaw gives no answer.
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
                notify=notify,
            )

        file = scratch.folder / "openclaw.patch.json5"
        write_private(file, patch.encode())
        patched = copy("config")
        with _Words(patched, own, scratch, environ).in_errors() as words:
            checked = words.of(_patch(openclaw_at(patched), str(file)))
        if not (checked.validated and checked.validated.ok):
            untouched = copy("before")
            with _Words(untouched, own, scratch, environ).in_errors() as words:
                checked = replace(checked, before=words.ruling(_validate(openclaw_at(untouched))))
        return replace(checked, config=own.absolute() if is_there else None)


def _patch(openclaw: OpenClaw, file: str) -> Checked:
    version = (openclaw.run("--version").stdout.strip().splitlines() or [""])[-1]
    patching = ("config", "patch", "--file", file)
    answer = _object(openclaw.run(*patching, "--dry-run", "--json"), "config patch --dry-run", _is_answer)
    checked = Checked(
        version=version,
        config=None,
        dry_run=ruling_of(answer, ok=answer["ok"]),
        skipped_refs=count_in(answer.get("skippedExecRefs")) or 0,
    )
    if not checked.dry_run.ok:
        return checked
    printed = openclaw.run(*patching)
    if printed.exit_status != 0:
        words = shortened(printed.stderr or printed.stdout) or "no reason given"
        return replace(checked, applied=Ruling(ok=False, issues=(Remark(path="", message=words),)))
    return replace(checked, applied=Ruling(ok=True), validated=_validate(openclaw))


def _validate(openclaw: OpenClaw) -> Ruling:
    answer = _object(openclaw.run("config", "validate", "--json"), "config validate", _is_validation)
    return ruling_of(answer, ok=answer["valid"])


def _is_answer(value: JsonObject) -> bool:
    return isinstance(value.get("ok"), bool)


def _is_validation(value: JsonObject) -> bool:
    return isinstance(value.get("valid"), bool)


def _object(printed: Printed, what: str, fits: Callable[[JsonObject], bool]) -> JsonObject:
    found = find_object(printed.stdout, printed.stderr, fits)
    if found is None:
        words = f": {shortened(printed.stderr)}" if printed.stderr else ""
        how = how_it_ended(printed.exit_status)
        raise OpenClawError(f"openclaw {what} {how} without its JSON{words}")
    return found


class _Words:
    """Replaces scratch paths in OpenClaw's text by the user's, and removes keys."""

    def __init__(self, copied: Copied, own: Path, scratch: AgentScratch, environ: Mapping[str, str]) -> None:
        self._redactor = Redactor.of((*copied.secrets, *secrets_in_environment(environ)))
        self._paths = {
            str(copied.path.parent): str(own.absolute().parent),
            str(scratch.folder / "home"): "~",
        }

    @contextmanager
    def in_errors(self) -> Iterator[_Words]:
        """Clean the text of errors raised in the body."""
        try:
            yield self
        except OpenClawError as error:
            raise OpenClawError(self._clean(str(error))) from None

    def of(self, checked: Checked) -> Checked:
        """Return it with clean texts."""
        return replace(
            checked,
            version=self._clean(checked.version),
            dry_run=self.ruling(checked.dry_run),
            applied=self.ruling(checked.applied) if checked.applied else None,
            validated=self.ruling(checked.validated) if checked.validated else None,
        )

    def ruling(self, ruling: Ruling) -> Ruling:
        """Return it with clean texts."""
        issues, warnings = self._remarks(ruling.issues), self._remarks(ruling.warnings)
        return replace(ruling, issues=issues, warnings=warnings)

    def _remarks(self, remarks: Iterable[Remark]) -> tuple[Remark, ...]:
        return tuple(Remark(path=self._clean(one.path), message=self._clean(one.message)) for one in remarks)

    def _clean(self, text: str) -> str:
        for theirs, users in self._paths.items():
            text = text.replace(theirs, users)
        return self._redactor.text(text)
