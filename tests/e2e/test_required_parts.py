"""If CI requires a real part, its absence is a failure and not a skip."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from tests import conftest as shared
from tests.e2e.install_claude import VERSION


@pytest.fixture(autouse=True)
def _nothing_is_here(monkeypatch: pytest.MonkeyPatch) -> None:
    """A machine without engine and CLI."""
    monkeypatch.setattr(shared, "embedded_model_is_installed", lambda: False)
    for name in ("OPENCLAW_TEST_CLAUDE", "OPENCLAW_TEST_CLAUDE_DIR"):
        monkeypatch.delenv(name, raising=False)


def ending(require: object) -> type[BaseException]:
    """How a test that requires a part ends."""
    assert callable(require)
    with pytest.raises((pytest.skip.Exception, pytest.fail.Exception)) as caught:
        require()
    return caught.type


@pytest.mark.parametrize("required", [[], ["engine"], ["engine", "claude"]])
def test_a_missing_part(monkeypatch: pytest.MonkeyPatch, required: list[str]) -> None:
    """A missing part is a skip, or a failure if it is required."""
    monkeypatch.setattr(shared, "REQUIRED", required)

    for name, require in (("engine", shared.require_engine), ("claude", shared.require_claude)):
        wanted = pytest.fail.Exception if name in required else pytest.skip.Exception
        assert ending(require) is wanted


def test_a_folder_without_the_cli_is_a_missing_part(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    """An installation of another version does not count."""
    monkeypatch.setattr(shared, "REQUIRED", ["claude"])
    monkeypatch.setenv("OPENCLAW_TEST_CLAUDE_DIR", str(installed(tmp_path, "0.0.1").parents[3]))

    assert ending(shared.require_claude) is pytest.fail.Exception


def test_the_cli_is_found_in_its_folder_or_by_its_command(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    """The folder given to the installer is enough; a command takes precedence."""
    program = installed(tmp_path, VERSION)
    monkeypatch.setenv("OPENCLAW_TEST_CLAUDE_DIR", str(tmp_path))
    found = shared.require_claude()
    monkeypatch.setenv("OPENCLAW_TEST_CLAUDE", "claude --debug")

    assert found == str(program)
    assert shared.require_claude() == "claude --debug"


def installed(folder: Path, version: str) -> Path:
    """Write the files of an npm installation."""
    package = folder / "node_modules" / "@anthropic-ai" / "claude-code-some-system"
    package.mkdir(parents=True)
    (package / "package.json").write_text(json.dumps({"version": version}), "utf-8")
    (package / "claude").touch()
    return package / "claude"
