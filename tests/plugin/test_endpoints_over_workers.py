"""However cells are assigned to workers, here or elsewhere, each is asked once, and a limit holds for all."""

import os
import shutil
import socket
import subprocess
import sys
from collections import Counter
from contextlib import contextmanager

import pytest

from tests.plugin.bad_servers import ModelServer, point_at
from tests.plugin.conftest import NOOP
from tests.providers.servers.misbehaving import Pause, Script

pytestmark = pytest.mark.workers

MODEL = "openai_responses/m"
DISTRIBUTIONS = ("load", "loadscope", "loadfile", "loadgroup", "worksteal")
GROUPS = """
import pytest

def pytest_collection_modifyitems(items):
    for n, item in enumerate(items):
        item.add_marker(pytest.mark.xdist_group(str(n % 3)))
"""


class CountingServer(ModelServer):
    """Pauses before the first byte of each answer, in which consecutive requests never overlap."""

    def __init__(self, behaviors, pause_s):
        super().__init__(behaviors)
        self.pause_s = pause_s

    def _script(self, request):
        return Script((Pause(self.pause_s), *super()._script(request).steps))

    @property
    def by_cell(self):
        return Counter((asked.target, asked.prompt) for asked in self.asked)


def answers(api):
    return Script.stream(api.text("Hi."), api.end())


def write_suites(project, n):
    for name in "ab":
        project.suite({f"P{k}": (f"{name} {k}", NOOP) for k in range(n)}, name=f"prompts_{name}.json")
    return [f"{name} {k}" for name in "ab" for k in range(n)]


def cell_of(row):
    return row["provider"], row["model"], row["suite"], row["prompt_id"]


@pytest.mark.parametrize(
    "words",
    [
        "-n2",
        *(
            pytest.param(words, marks=pytest.mark.nightly)
            for words in ("-n4", *(f"-n2 --dist={name}" for name in DISTRIBUTIONS))
        ),
    ],
)
def test_a_local_server_has_one_request_at_a_time(plain_project, monkeypatch, words):
    """Two models, warm-ups, questions about the server and retries: never two of them together."""
    prompts = write_suites(plain_project, 4)
    plain_project.extend_conftest(GROUPS)

    with CountingServer(
        {
            "a": answers,
            "b": lambda api: [Script.answer({"error": "later"}, status=429, retry_after="0"), answers(api)],
            "c": answers,
        },
        pause_s=0.02,
    ) as server:
        point_at(monkeypatch, server)
        session = plain_project.run(*words.split(), models="a,b,openai_responses/c")

    session.outcomes(passed=24)
    assert server.most_paused_at_once == 1
    assert server.by_cell == {
        (target, prompt): 2 if target == "ollama_openai/b" else 1
        for target in ("ollama_openai/a", "ollama_openai/b", "openai_responses/c")
        for prompt in prompts
    }
    assert sorted(server.warm_ups) == ["ollama_openai/a", "ollama_openai/b"]
    assert len(session.rows) == len({cell_of(row) for row in session.rows}) == 24


@pytest.mark.nightly
@pytest.mark.parametrize("words", [[], ["--dist=worksteal"]], ids=["ours", "worksteal"])
def test_an_end_at_the_first_failure_ends_the_asking(plain_project, monkeypatch, words):
    """With `-x` no worker continues with its assigned cells, and nothing is asked twice."""
    write_suites(plain_project, 40)

    def fails(api):
        return Script.answer({"error": "no"}, status=400)

    # Long, so that a busy machine does not ask half of the cells before every worker is stopped.
    with CountingServer({"m": answers, "a 1": fails}, pause_s=0.7) as server:
        point_at(monkeypatch, server)
        session = plain_project.run("-n", "2", *words, "-x", "--openclaw-concurrency=3", models=MODEL)

    assert session.status == pytest.ExitCode.INTERRUPTED
    assert "stopping after 1 failures" in session.text
    assert set(server.by_cell.values()) == {1}
    # One worker has half of the 80 cells.
    assert len(server.asked) < 40
    assert server.most_paused_at_once <= 3
    assert len({cell_of(row) for row in session.rows}) == len(session.rows) <= len(server.asked)


@pytest.mark.nightly
def test_every_cell_by_every_worker_is_refused(plain_project):
    """`--dist=each` would make several rows of one cell; no request is sent, and other tests may use it."""
    plain_project.suite({"P1": ("say yes", NOOP)})

    session = plain_project.run("-n", "2", "--dist=each")

    session.is_refused("--dist=each would ask every cell once in each worker")


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
