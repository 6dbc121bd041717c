"""Where this copy of the plugin was installed from, so that a command to install more of it works.

An installer writes the origin into `direct_url.json` (PEP 610); a copy from a package index has no such file.
"""

from __future__ import annotations

import json
import re
import shlex
from dataclasses import dataclass
from importlib import metadata
from pathlib import Path
from typing import TYPE_CHECKING, Any
from urllib.parse import urlsplit, urlunsplit

if TYPE_CHECKING:
    from collections.abc import Mapping

NAME = "pytest-openclaw"
WHEELS = "wheels"
_NEEDS_QUOTING = re.compile(r"[\"$`!]")


@dataclass(frozen=True, kw_only=True)
class InstallSource:
    """What the installed copy came from: a folder, another address, or an index if both are None.

    Attributes:
        folder: with the sources.
        is_editable: the folder itself is imported.
        url: as it follows ` @ ` in a requirement, without a password.
    """

    folder: Path | None = None
    is_editable: bool = False
    url: str | None = None

    def requirement(self, extra: str = "") -> str:
        """Return what pip takes to install this copy, with an extra."""
        extras = f"[{extra}]" if extra else ""
        if self.folder:
            return f"{self.folder}{extras}"
        return f"{NAME}{extras} @ {self.url}" if self.url else f"{NAME}{extras}"


@dataclass(frozen=True, kw_only=True)
class Portable:
    """How another machine installs this copy.

    Attributes:
        requirement: what pip takes there, in the project's folder.
        prepare: the command that first adds the plugin to the project; None if there is nothing to add.
    """

    requirement: str
    prepare: str | None = None


def origin() -> InstallSource:
    """Return the origin of the installed copy."""
    try:
        found = metadata.distribution(NAME)
    except metadata.PackageNotFoundError:  # imported from a folder that is not installed
        return InstallSource()
    text = found.read_text("direct_url.json")
    return parse_origin(json.loads(text)) if text else InstallSource()


def parse_origin(direct_url: Mapping[str, Any]) -> InstallSource:
    """Return the origin that a `direct_url.json` names."""
    url = str(direct_url["url"])
    if "dir_info" in direct_url:
        from urllib.request import url2pathname  # it loads 6 ms of HTTP

        folder = Path(url2pathname(urlsplit(url).path))
        return InstallSource(folder=folder, is_editable=bool(direct_url["dir_info"].get("editable")))
    where = _without_password(url)
    if vcs := direct_url.get("vcs_info"):
        where = f"{vcs['vcs']}+{where}@{vcs['commit_id']}"
    subdirectory = direct_url.get("subdirectory")
    return InstallSource(url=f"{where}#subdirectory={subdirectory}" if subdirectory else where)


def install_command(extra: str = "", source: InstallSource | None = None) -> str:
    """Return the command that installs an extra of this copy."""
    source = source or origin()
    editable = "-e " if source.is_editable else ""
    return f"pip install {editable}{quoted(source.requirement(extra))}"


def portable(extra: str = "", source: InstallSource | None = None) -> Portable:
    """Return how a machine that has only the project's repository, as CI has, installs this copy.

    A copy from this machine is replaced by a wheel in the project.
    """
    source = source or origin()
    if not source.folder and not (source.url or "").startswith("file:"):
        return Portable(requirement=source.requirement(extra))
    version = metadata.version(NAME)
    wheel = f"{WHEELS}/{NAME.replace('-', '_')}-{version}-py3-none-any.whl"
    return Portable(
        requirement=f"{wheel}[{extra}]" if extra else wheel,
        prepare=f"pip wheel --no-deps --wheel-dir {WHEELS} {quoted(source.requirement())}",
    )


def quoted(requirement: str) -> str:
    """Quote a requirement for a shell; double quotes where they are enough, which every shell takes."""
    return shlex.quote(requirement) if _NEEDS_QUOTING.search(requirement) else f'"{requirement}"'


def _without_password(url: str) -> str:
    """Keep a variable such as `${TOKEN}` and the user `git`; pip removes anything else, others may not."""
    parts = urlsplit(url)
    user, at, host = parts.netloc.rpartition("@")
    if not at or user == "git" or all(re.fullmatch(r"\$\{\w+\}", part) for part in user.split(":")):
        return url
    return urlunsplit(parts._replace(netloc=host))
