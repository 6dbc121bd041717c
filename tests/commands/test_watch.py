"""`watch`: invocations as cron starts them, with a server on loopback that gets worse, changes, or is away."""

from __future__ import annotations

import json
import shutil
import signal
import subprocess
import sys
import threading
from collections.abc import Iterator, Sequence
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any, cast

import pytest

from pytest_openclaw.commands import main
from pytest_openclaw.core.locks import LockFile
from tests.conftest import NO_OTHER_PLUGINS, require_engine
from tests.providers.servers.misbehaving import unused_port

pytestmark = pytest.mark.newest

N = 8
ASK = ["watch", "--every", "1d", "--baseline", "5", "--", "benchmarks", "-p", "no:cacheprovider"]
PROMPT = (
    '[[prompts]]\nid = "P{0}"\nprompt = "Is {0} it?"\nvalidator = {{ type = "contains", value = "yes" }}\n'
)
NOTE = """
import json, os, pathlib, sys
result = json.load(sys.stdin)
report = pathlib.Path(os.environ["OPENCLAW_WATCH_REPORT"])
with open("calls.txt", "a") as file:
    file.write(f"{result['word']} {report.name} {report.exists()} {sys.argv[1]}\\n")
"""


class Server(ThreadingHTTPServer):
    """Answers chat completions with `answer`, and says that its version is `version`."""

    answer = "yes"
    version = "1.0"
    is_held = False

    def __init__(self) -> None:
        super().__init__(("127.0.0.1", 0), _Handler)
        self.arrived, self.released = threading.Event(), threading.Event()


class _Handler(BaseHTTPRequestHandler):
    def log_message(self, *args: object) -> None:
        return

    def do_GET(self) -> None:
        known = self.path == "/api/version"
        self._send(200 if known else 404, json.dumps({"version": self._own.version}), "application/json")

    def do_POST(self) -> None:
        asked = json.loads(self.rfile.read(int(self.headers["content-length"])))
        if not self.path.endswith("/chat/completions"):
            self._send(404, "{}", "application/json")
            return
        self._own.arrived.set()
        if self._own.is_held:
            self._own.released.wait()
        choice = {"index": 0, "finish_reason": "stop", "delta": {"content": self._own.answer}}
        chunk = json.dumps({"model": asked["model"], "choices": [choice]})
        self._send(200, f"data: {chunk}\n\ndata: [DONE]\n\n", "text/event-stream")

    @property
    def _own(self) -> Server:
        return cast(Server, self.server)

    def _send(self, status: int, text: str, kind: str) -> None:
        self.send_response(status)
        self.send_header("content-type", kind)
        self.send_header("content-length", str(len(text)))
        self.end_headers()
        try:
            self.wfile.write(text.encode())
        except ConnectionError:  # the session was ended meanwhile
            return


@pytest.fixture(scope="module")
def server() -> Iterator[Server]:
    """A server that runs for all tests of this file."""
    with Server() as server:
        thread = threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.02})
        thread.start()
        yield server
        server.released.set()
        server.shutdown()
        thread.join()


@pytest.fixture(scope="module")
def watched(server: Server, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A project whose first run, five times, is the baseline."""
    folder = tmp_path_factory.mktemp("watched")
    (folder / "benchmarks").mkdir()
    suite = "\n".join(PROMPT.format(n) for n in range(N))
    (folder / "benchmarks/prompts_small.toml").write_text(suite)
    (folder / "pytest.ini").write_text("[pytest]\nopenclaw_models = ollama_openai/small\n")
    (folder / "note.py").write_text(NOTE)
    with pytest.MonkeyPatch.context() as patch:
        _enter(folder, server, patch)
        assert main(ASK) == 0
        (first,) = _state(folder)["baseline"]
        for n in range(5):
            shutil.copytree(folder / "runs" / first, folder / f"runs/before_{n}")
        assert main(["watch", "--new-baseline", "before_*"]) == 0
    return folder


def _enter(folder: Path, server: Server, patch: pytest.MonkeyPatch) -> None:
    patch.chdir(folder)
    patch.setenv("OLLAMA_OPENAI_BASE", f"http://127.0.0.1:{server.server_port}/v1")
    patch.setenv("PYTEST_ADDOPTS", NO_OTHER_PLUGINS)
    patch.delenv("PYTEST_XDIST_WORKER", raising=False)


@pytest.fixture
def project(watched: Path, server: Server, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A copy of the project, and a server that answers as in the baseline."""
    shutil.copytree(watched, tmp_path / "project")
    _enter(tmp_path / "project", server, monkeypatch)
    server.answer, server.version, server.is_held = "yes", "1.0", False
    server.arrived.clear()
    server.released.clear()
    return tmp_path / "project"


def _state(project: Path) -> dict[str, Any]:
    state = json.loads((project / "runs/watch.watch.json").read_text("utf-8"))
    assert isinstance(state, dict)
    return state


def _on_worse(command: str) -> list[str]:
    return [*ASK[:1], "--on-worse", command, *ASK[1:]]


def test_a_server_that_gets_worse_is_reported_until_acknowledged(
    project: Path, server: Server, capsys: pytest.CaptureFixture[str]
) -> None:
    """As good as before: 0. Worse: 1, and the command is called once, without a shell; then until --acknowledge."""
    words = _on_worse(f"{sys.executable} note.py 'two words; echo'")
    equal = main(words)
    shown_equal = capsys.readouterr().out
    server.answer = "no"
    worse = main(words)
    shown = capsys.readouterr().out
    again = main(words)
    capsys.readouterr()
    status = main(["watch", "--status", "--json"])
    found = json.loads(capsys.readouterr().out)

    assert (equal, worse, again, status) == (0, 1, 1, 1)
    assert "ollama_openai/small: not shown to be worse; 100 % of 8 cells passed" in shown_equal
    assert "ollama_openai/small got worse: 0 % of 8 cells passed in the newest run, 100 % of 40" in shown
    assert "pytest-openclaw compare before_4 watch_" in shown
    assert found["findings"][0]["look"]["n_runs"] == 1
    assert (project / "calls.txt").read_text() == "worse summary.md True two words; echo\n"

    assert main(["watch", "--acknowledge"]) == 0
    assert (_state(project)["findings"], _state(project)["recent"]) == ([], [])
    assert len(_state(project)["baseline"]) == 5


@pytest.mark.nightly
def test_a_command_that_fails_is_called_again(
    project: Path, server: Server, capsys: pytest.CaptureFixture[str]
) -> None:
    """With a warning, also where there is no such program."""
    server.answer = "no"

    first = main(_on_worse(f"{sys.executable} -c 'raise SystemExit(3)'"))
    second = main(_on_worse("./not-there"))
    shown = capsys.readouterr().err
    third = main(_on_worse(f"{sys.executable} note.py x"))

    assert (first, second, third) == (1, 1, 1)
    assert "ended with exit status 3; it is called again after the next run" in shown
    assert "./not-there: No such file or directory; it is called again" in shown
    assert len((project / "calls.txt").read_text().splitlines()) == 1


def test_a_changed_or_absent_server_has_no_verdict(
    project: Path, server: Server, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """It is said what has changed, and that nothing was answered; neither is worse."""
    server.version = "2.0"
    changed = main(ASK)
    shown_changed = capsys.readouterr().out
    with unused_port() as port:
        monkeypatch.setenv("OLLAMA_OPENAI_BASE", f"http://127.0.0.1:{port}/v1")
        away = main(ASK)
    shown_away = capsys.readouterr().out

    assert (changed, away) == (10, 10)
    assert "served differently (server version 1.0 -> 2.0), 8 cells" in shown_changed
    assert "begin again with --new-baseline" in shown_changed
    assert "8 of 8 cells were not answered: ollama_openai: nothing answers at" in shown_away
    assert _state(project)["recent"] == []


def test_a_new_baseline(project: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """An empty one, or one of named runs, which must be finished ones of this folder."""
    (project / "runs/watch_cut").mkdir()
    (project / "runs/watch_cut/config.json").write_text("{}")

    assert main(["watch", "--new-baseline", "before_*"]) == 0
    named = _state(project)
    assert main(["watch", "--new-baseline", "*"]) == 4
    assert "watch_cut: a baseline has finished runs of the folder runs" in capsys.readouterr().err
    assert main(["watch", "--new-baseline", "--baseline", "7"]) == 0

    assert (named["size"], len(named["baseline"])) == (5, 5)
    assert (_state(project)["size"], _state(project)["baseline"]) == (7, [])


def test_overlapping_invocations_ask_nothing(project: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """The second one says so, with the status of no verdict."""
    with LockFile(project / "runs/.watch.watch.lock"):
        assert main(ASK) == 10

    assert "the earlier invocation is still under way; nothing was asked" in capsys.readouterr().out
    assert len(list((project / "runs").glob("watch_*"))) == 1


@pytest.mark.parametrize("is_finished", [True, False], ids=["finished", "cut"])
def test_the_run_of_a_killed_invocation(
    is_finished: bool, project: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """It is taken in if it was asked to its end; otherwise it is left aside, and named."""
    run_id = "watch_killed"
    shutil.copytree(project / "runs/before_0", project / "runs" / run_id)
    (project / "runs/watch.watch.json").write_text(json.dumps(_state(project) | {"asking": run_id}))
    if not is_finished:
        (project / "runs" / run_id / "summary.json").unlink()
    capsys.readouterr()

    assert main(ASK) == 0

    assert len(_state(project)["recent"]) == 1 + is_finished
    assert (f"the run {run_id} was interrupted and is left aside" in capsys.readouterr().err) != is_finished


@pytest.mark.skipif(sys.platform == "win32", reason="has no SIGTERM")
def test_a_time_limit_ends_the_session_too(project: Path, server: Server) -> None:
    """SIGTERM, as systemd and timeout send it, ends pytest; the next invocation goes on."""
    server.is_held = True
    process = subprocess.Popen(
        [sys.executable, "-m", "pytest_openclaw", *ASK],
        stderr=subprocess.PIPE,
        stdout=subprocess.PIPE,
        text=True,
    )
    assert server.arrived.wait(300)

    process.send_signal(signal.SIGTERM)
    server.released.set()
    _, said = process.communicate(timeout=300)

    assert process.returncode == 4, said
    assert "interrupted; the run watch_" in said
    server.is_held = False
    assert main(ASK) == 0


def test_words_that_ask_nothing_are_an_error(project: Path, capfd: pytest.CaptureFixture[str]) -> None:
    """Pytest's own output says what is wrong; the state is unchanged."""
    before = _state(project)

    assert main([*ASK[:-3], "not_there"]) == 4

    shown = capfd.readouterr().err
    assert "not_there" in shown
    assert "pytest ended with exit status 4, so there is no finished run watch_" in shown
    assert _state(project) == before


@pytest.mark.parametrize(
    ("words", "message"),
    [
        pytest.param(["--every", "soon"], "give a time such as 30min, 1h or 1d", id="every"),
        pytest.param(["--baseline", "2"], "give a number of runs from 5 to 200", id="baseline"),
        pytest.param(["--false-alarms-per-month", "0"], "give a number above 0", id="rate"),
        pytest.param(["--slower", "0.5"], "give a factor from 1 to 100", id="slower"),
        pytest.param(["--on-worse", ""], "name a program", id="command"),
        pytest.param(["--name", "last"], "last means the newest run", id="name"),
    ],
)
def test_wrong_words_are_refused(
    words: Sequence[str], message: str, capsys: pytest.CaptureFixture[str]
) -> None:
    """With the values that are allowed."""
    with pytest.raises(SystemExit):
        main(["watch", *words])

    assert message in capsys.readouterr().err


def test_there_is_nothing_to_show_or_to_acknowledge_yet(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """A watch begins with its first run."""
    monkeypatch.chdir(tmp_path)

    assert [main(["watch", one]) for one in ("--status", "--acknowledge")] == [4, 4]

    assert capsys.readouterr().err.count("watch.watch.json: this watch has no run yet") == 2


@pytest.mark.nightly
@pytest.mark.engine
def test_the_embedded_engine_is_watched(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """At temperature 0 it answers the same each time, so nothing is called worse."""
    require_engine()
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("PYTEST_ADDOPTS", NO_OTHER_PLUGINS)
    (tmp_path / "pytest.ini").write_text("[pytest]\n")
    (tmp_path / "benchmarks").mkdir()
    (tmp_path / "benchmarks/prompts_small.toml").write_text(PROMPT.format(1) + PROMPT.format(2))
    words = [*ASK, "--openclaw-models=llama_cpp/smollm2:135m"]

    assert [main(words) for _ in range(6)] == [0] * 6

    assert len(_state(tmp_path)["baseline"]) == 5
    assert len(_state(tmp_path)["recent"]) == 1
