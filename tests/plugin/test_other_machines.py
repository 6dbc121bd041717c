"""Workers on other machines, with `-d --tx`: they judge, and the controller asks and records."""

import os
import shutil
import socket
import subprocess
import sys
from collections import Counter
from contextlib import contextmanager

import pytest

from tests.plugin.bad_servers import ModelServer, point_at
from tests.providers.servers.misbehaving import Script

pytestmark = pytest.mark.workers

MODEL = "openai_responses/m"
PROMPTS = {f"P{n}": (f"word {n}", {"type": "exact", "value": "yes"}) for n in range(6)}
IN_PYTHON = """
import os
import pytest

@pytest.mark.openclaw(id="R1", prompt="a word from Python")
def test_python(reply):
    assert reply.text == "yes"
    assert not os.environ.get("OPENAI_API_KEY")
"""


def yes(api):
    return Script.stream(api.text("yes"), api.end())


@pytest.fixture
def server(monkeypatch):
    with ModelServer({"m": yes}) as server:
        point_at(monkeypatch, server)
        yield server


@pytest.fixture
def far(plain_project):
    plain_project.suite(PROMPTS, name="prompts_words.json")
    (plain_project.folder / "benchmarks" / "test_words.py").write_text(IN_PYTHON, "utf-8")
    plain_project.pytester.makeini("[pytest]\ntestpaths = benchmarks")
    folder = plain_project.folder.with_name(f"{plain_project.folder.name}-far")
    shutil.copytree(plain_project.folder, folder, dirs_exist_ok=True)
    return folder


@contextmanager
def socket_server(folder):
    """Run execnet's server, which knows no key and no server of models; yield the value for `--tx`."""
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        where = f"127.0.0.1:{free.getsockname()[1]}"
    names = ("PATH", "HOME", "PYTHONPATH", "PYTEST_ADDOPTS")
    known = {name: os.environ[name] for name in names if name in os.environ}
    with subprocess.Popen(
        [sys.executable, "-u", "-m", "execnet.script.socketserver", where],
        cwd=folder, env=known, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.STDOUT,
    ) as process:  # fmt: skip
        try:
            assert process.stdout.readline(), "it says that it listens"
            yield f"socket={where}//chdir={folder}"
        finally:
            process.kill()


@contextmanager
def popen(folder):
    """Another folder of this machine, with an empty key; yield the value for `--tx`."""
    yield f"popen//chdir={folder}//env:OPENAI_API_KEY="


@contextmanager
def ssh(folder):
    """Put a program `ssh` first in PATH that runs its command here, in an environment of its own."""
    program = folder / "bin" / "ssh"
    program.parent.mkdir()
    program.write_text(
        '#!/bin/sh\nshift 2\nexec env -i PATH="$PATH" HOME="$HOME" PYTEST_ADDOPTS="$PYTEST_ADDOPTS" sh -c "$*"\n',
        "utf-8",
    )
    program.chmod(0o755)
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("PATH", str(program.parent), prepend=os.pathsep)
        yield f"ssh=elsewhere//python={sys.executable}//chdir={folder}"


@pytest.mark.parametrize("way", [popen, socket_server, pytest.param(ssh, marks=pytest.mark.nightly)])
def test_a_worker_elsewhere_judges(plain_project, server, far, way):
    """The controller asks each cell once, with its own key, and has a row of each."""
    with way(far) as spec:
        session = plain_project.run("-d", "--tx", spec, models=MODEL, target="", apart=True)

    session.outcomes(passed=7)
    assert Counter(asked.prompt for asked in server.asked) == Counter(
        [*(prompt for prompt, _ in PROMPTS.values()), "a word from Python"]
    )
    rows = session.rows
    assert sorted(row["prompt_id"] for row in rows) == sorted([*PROMPTS, "R1"])
    assert all(row["objective_pass"] for row in rows)
