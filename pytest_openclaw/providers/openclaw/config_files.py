"""Finds OpenClaw's config, and copies it with all files that it includes.

OpenClaw may read and write the copy. Comments and JSON5 are unchanged, except absolute paths of included
files, which are replaced by those of their copies.
"""

from __future__ import annotations

import json
import os
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from pytest_openclaw.core.private import FOLDER_MODE, write_private
from pytest_openclaw.providers.openclaw.config_text import includes_in, secrets_in

if TYPE_CHECKING:
    from collections.abc import Mapping

CONFIG_ENV = "OPENCLAW_CONFIG_PATH"
STATE_ENV = "OPENCLAW_STATE_DIR"
ROOTS_ENV = "OPENCLAW_INCLUDE_ROOTS"
NAMES = ("openclaw.json", "clawdbot.json")
STATE_NAMES = (".openclaw", ".clawdbot")


@dataclass(frozen=True, kw_only=True)
class Copied:
    """The copy of a config.

    Attributes:
        path: of the copy.
        secrets: values of keys with secret-like names, and passwords in addresses.
        include_roots: the `OPENCLAW_INCLUDE_ROOTS` that it needs; empty for none.
    """

    path: Path
    secrets: tuple[str, ...] = ()
    include_roots: str = ""

    @property
    def environ(self) -> dict[str, str]:
        """The environment variables with which OpenClaw uses the copy."""
        roots = {ROOTS_ENV: self.include_roots} if self.include_roots else {}
        return {CONFIG_ENV: str(self.path), **roots}


def config_path(environ: Mapping[str, str]) -> Path:
    """Return the path of OpenClaw's config, which may not exist."""
    if configured := environ.get(CONFIG_ENV, "").strip():
        return _at_home(configured, environ)
    if state := environ.get(STATE_ENV, "").strip():
        folders = [_at_home(state, environ)]
    else:
        folders = [_home(environ) / name for name in STATE_NAMES]
    paths = [folder / name for folder in folders for name in NAMES]
    return next((path for path in paths if path.exists()), paths[0])


def copy_config(source: Path, folder: Path, environ: Mapping[str, str]) -> Copied:
    """Copy a config and the files that it includes into a folder, with the same subfolders.

    Included files from elsewhere, which OpenClaw allows under `OPENCLAW_INCLUDE_ROOTS` and never writes, are
    read in place.

    Raises:
        OSError: the config cannot be read.
    """
    root = source.absolute().parent
    secrets: list[str] = []
    to_copy, copied = [source.absolute()], set[Path]()
    while to_copy:
        file = to_copy.pop()
        if file in copied:
            continue
        copied.add(file)
        # OpenClaw itself handles bytes that are not UTF-8.
        text = file.read_bytes().decode("utf-8", "surrogateescape")
        secrets += secrets_in(text)
        moved, included = _moved(text, file.parent, root, folder)
        to_copy += included
        _write(folder / file.relative_to(root), moved)
    return Copied(path=folder / source.name, secrets=tuple(secrets), include_roots=_include_roots(environ))


def empty_config(folder: Path) -> Copied:
    """Write an empty config."""
    path = folder / NAMES[0]
    _write(path, "{}\n")
    return Copied(path=path)


# --- how ----------------------------------------------------------------------------------------


def _moved(text: str, here: Path, root: Path, folder: Path) -> tuple[str, list[Path]]:
    """Return the text with paths that are valid in its copy, and the included files to copy."""
    pieces, end, inside = [], 0, []
    for include in includes_in(text):
        target = Path(os.path.normpath(here / include.path))
        if not (target.is_relative_to(root) and _is_really_inside(target, root)):
            new = str(target)
        else:
            is_absolute = Path(include.path).is_absolute()
            new = str(folder / target.relative_to(root)) if is_absolute else include.path
            if target.is_file():
                inside.append(target)
        written = text[include.begin : include.end]
        pieces += [text[end : include.begin], written if new == include.path else json.dumps(new)]
        end = include.end
    return "".join([*pieces, text[end:]]), inside


def _is_really_inside(target: Path, root: Path) -> bool:
    """Whether the target is inside after resolving links; OpenClaw rejects others and invalid paths."""
    try:
        target.exists()
        return target.resolve().is_relative_to(root.resolve())
    except (OSError, ValueError, RuntimeError):  # too long, with a NUL, or a circle of links
        return False


def _write(path: Path, text: str) -> None:
    path.parent.mkdir(FOLDER_MODE, parents=True, exist_ok=True)
    write_private(path, text.encode("utf-8", "surrogateescape"))


def _include_roots(environ: Mapping[str, str]) -> str:
    """Return `OPENCLAW_INCLUDE_ROOTS` with absolute paths: `~` means another home for the copy."""
    roots = environ.get(ROOTS_ENV, "").split(os.pathsep)
    return os.pathsep.join(str(_at_home(root.strip(), environ)) for root in roots if root.strip())


def _home(environ: Mapping[str, str]) -> Path:
    own = (environ.get(name, "").strip() for name in ("HOME", "USERPROFILE"))
    home = next(filter(None, own), "") or str(Path.home())
    configured = environ.get("OPENCLAW_HOME", "").strip()
    return Path(_with_home(configured, home) if configured else home).absolute()


def _at_home(path: str, environ: Mapping[str, str]) -> Path:
    return Path(_with_home(path, str(_home(environ)))).absolute()


def _with_home(path: str, home: str) -> str:
    return home + path[1:] if path == "~" or path.startswith(("~/", "~\\")) else path
