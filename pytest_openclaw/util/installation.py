"""Where this copy of the plugin was installed from, so that a command to install more of it works.

An installer writes the origin into `direct_url.json` (PEP 610); a copy from a package index has no such file.
"""

from __future__ import annotations

import json
import re
import shlex
from importlib import metadata
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

NAME = "pytest-openclaw"
WHEELS = "wheels"
_NEEDS_QUOTING = re.compile(r"[\"$`!]")


def _direct_url() -> dict[str, Any]:
    try:
        text = metadata.distribution(NAME).read_text("direct_url.json")
    except metadata.PackageNotFoundError:  # imported from a folder that is not installed
        text = None
    found: dict[str, Any] = json.loads(text) if text else {}
    return found


def requirement(extra: str = "") -> str:
    """Return the requirement by which pip installs this copy, with an extra."""
    found = _direct_url()
    extras = f"[{extra}]" if extra else ""
    url = str(found.get("url", ""))
    if "dir_info" in found:
        from urllib.request import url2pathname  # it loads 6 ms of HTTP

        return f"{url2pathname(urlsplit(url).path)}{extras}"
    if not url:
        return f"{NAME}{extras}"
    if vcs := found.get("vcs_info"):
        url = f"{vcs['vcs']}+{url}@{vcs['commit_id']}"
    below = f"#subdirectory={found['subdirectory']}" if found.get("subdirectory") else ""
    return f"{NAME}{extras} @ {url}{below}"


def install_command(extra: str = "") -> str:
    """Return the command that installs an extra of this copy."""
    editable = "-e " if _direct_url().get("dir_info", {}).get("editable") else ""
    return f"pip install {editable}{quoted(requirement(extra))}"


def is_local() -> bool:
    """Whether this copy came from this machine, so that another one needs a wheel of it."""
    return str(_direct_url().get("url", "")).startswith("file:")


def wheel() -> str:
    """Return the path in a project of the wheel that `wheel_command` makes."""
    return f"{WHEELS}/{NAME.replace('-', '_')}-{metadata.version(NAME)}-py3-none-any.whl"


def wheel_command() -> str:
    """Return the command that adds a wheel of this copy to a project."""
    return f"pip wheel --no-deps --wheel-dir {WHEELS} {quoted(requirement())}"


def quoted(text: str) -> str:
    """Quote a requirement for a shell; double quotes where they are enough, which every shell takes."""
    return shlex.quote(text) if _NEEDS_QUOTING.search(text) else f'"{text}"'


def packaged_file(distribution: str, name: str) -> Path | None:
    """Return the path of an installed distribution's file; None without it. Nothing is imported."""
    try:
        files = metadata.files(distribution) or []
    except metadata.PackageNotFoundError:
        return None
    paths = (Path(str(file.locate())) for file in files if file.name == name)
    return next((path.resolve() for path in paths if path.is_file()), None)
