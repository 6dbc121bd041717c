"""Files that only this user can read, whatever the umask."""

import os
import stat
import sys
import tempfile

import pytest

from pytest_openclaw.providers import claude_code_cli as claude
from pytest_openclaw.providers.openclaw import call as openclaw
from pytest_openclaw.providers.processes import new_folders
from pytest_openclaw.values.requests import Request
from pytest_openclaw.values.tool_calls import Tool

pytestmark = pytest.mark.skipif(sys.platform == "win32", reason="Windows has no permission bits")


@pytest.fixture(autouse=True)
def umask():
    before = os.umask(0)
    yield
    os.umask(before)


@pytest.fixture
def temporary(tmp_path, monkeypatch):
    monkeypatch.setattr(tempfile, "tempdir", str(tmp_path))
    return tmp_path


def others_may_use(folder):
    found = [folder, *folder.rglob("*")]
    modes = {str(path.relative_to(folder)): path.stat().st_mode for path in found}
    return {name: stat.filemode(mode) for name, mode in modes.items() if mode & 0o077}


@pytest.mark.usefixtures("temporary")
def test_the_environment_of_the_claude_cli():
    """Its folders, the system prompt and the token of our server are private."""
    request = Request(model="m", prompt="p", system="Be brief.", tools=(Tool(name="read"),))
    with new_folders(*claude.FOLDERS) as folder:
        claude.write_files(folder, request, "http://127.0.0.1:9", "token")

        assert others_may_use(folder) == {}
        files = sorted(path.name for path in folder.iterdir() if path.is_file())
        assert files == ["mcp.json", "system.txt"]


@pytest.mark.usefixtures("temporary")
def test_the_environment_of_openclaw():
    """Its folders and its config with the token are private."""
    with openclaw.scratch_folder() as scratch:
        openclaw.write_config(scratch, "local", {"id": "m"}, url="http://x", key="t", api="ollama")

        assert others_may_use(scratch.folder) == {}
        assert '"apiKey": "t"' in scratch.config.read_text("utf-8")
