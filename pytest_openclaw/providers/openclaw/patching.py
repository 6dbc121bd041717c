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
from pytest_openclaw.providers.openclaw.envelope import find_object
from pytest_openclaw.providers.openclaw.installed import PATIENCE_S, OpenClaw, find_openclaw
from pytest_openclaw.providers.openclaw.ruling import Checked, Remark, Ruling, ruling_of
from pytest_openclaw.providers.wire_errors import shortened

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Mapping
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
    config: Path | None = None,
    patience_s: float = PATIENCE_S,
    notify: Callable[[str], None] | None = None,
) -> Checked:
    """Have the installed OpenClaw check a patch.

    Args:
        patch: JSON5.
        environ: the environment, to find OpenClaw and its config.
        config: the user's; None is OpenClaw's own.
        patience_s: the timeout of each start of OpenClaw.
        notify: called with a sentence when a start takes long.

    Raises:
        OpenClawError: OpenClaw gives no answer.
        OSError: the config cannot be read.
    """
    command = find_openclaw(environ, name="--check")
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
        with _cleaning(patched, own, scratch, environ) as clean:
            checked = _patch(openclaw_at(patched), str(file), clean)
        if not (checked.validated and checked.validated.ok):
            untouched = copy("before")
            with _cleaning(untouched, own, scratch, environ) as clean:
                checked = replace(checked, before=_validate(openclaw_at(untouched), clean))
        return replace(checked, config=own.absolute() if is_there else None)


def _patch(openclaw: OpenClaw, file: str, clean: Callable[[str], str]) -> Checked:
    version = (openclaw.run("--version").stdout.strip().splitlines() or [""])[-1]
    patching = ("config", "patch", "--file", file)
    answer = _object(openclaw.run(*patching, "--dry-run", "--json"), "config patch --dry-run", _is_answer)
    checked = Checked(
        version=clean(version),
        config=None,
        dry_run=ruling_of(answer, clean, ok=answer["ok"]),
        skipped_refs=count_in(answer.get("skippedExecRefs")) or 0,
    )
    if not checked.dry_run.ok:
        return checked
    printed = openclaw.run(*patching)
    if printed.exit_status != 0:
        words = clean(shortened(printed.stderr or printed.stdout)) or "no reason given"
        return replace(checked, applied=Ruling(ok=False, issues=(Remark(path="", message=words),)))
    return replace(checked, applied=Ruling(ok=True), validated=_validate(openclaw, clean))


def _validate(openclaw: OpenClaw, clean: Callable[[str], str]) -> Ruling:
    answer = _object(openclaw.run("config", "validate", "--json"), "config validate", _is_validation)
    return ruling_of(answer, clean, ok=answer["valid"])


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


@contextmanager
def _cleaning(
    copied: Copied, own: Path, scratch: AgentScratch, environ: Mapping[str, str]
) -> Iterator[Callable[[str], str]]:
    """Yield what replaces scratch paths in OpenClaw's text by the user's, and keys; also in errors."""
    redactor = Redactor.of((*copied.secrets, *secrets_in_environment(environ)))
    paths = {str(copied.path.parent): str(own.absolute().parent), str(scratch.folder / "home"): "~"}

    def clean(text: str) -> str:
        for theirs, users in paths.items():
            text = text.replace(theirs, users)
        return redactor.text(text)

    try:
        yield clean
    except OpenClawError as error:
        raise OpenClawError(clean(str(error))) from None
