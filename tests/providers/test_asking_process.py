"""The asker process of built-in providers: its clock, its deaths, its end."""

from __future__ import annotations

import os
import pickle
import signal
import subprocess
import sys
import tempfile
import threading
import time
from collections.abc import Callable, Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import psutil
import pytest

from pytest_openclaw.asking import client as client_module
from pytest_openclaw.asking import links
from pytest_openclaw.asking.client import AskingClient
from pytest_openclaw.asking.messages import Listed
from pytest_openclaw.core.errors import AskingBroke, HostDied
from pytest_openclaw.core.signals import interrupted_by_signals
from pytest_openclaw.providers.ollama_openai import OllamaOpenAI
from pytest_openclaw.providers.openai_responses import OpenAIResponses
from pytest_openclaw.types.prompts import Cell, Prompt
from pytest_openclaw.types.protocols import ProviderSetup
from pytest_openclaw.types.replies import CallResult, Fault, Reply
from pytest_openclaw.types.settings import Concurrency, Settings
from pytest_openclaw.types.targets import Target
from pytest_openclaw.validators.text import Noop
from tests.e2e.processes import children, is_gone, wait_until
from tests.performance.serving import MockServer
from tests.providers.fake_claude import environ_of, provider_of
from tests.providers.servers.apis import RESPONSES
from tests.providers.servers.misbehaving import Hang, MisbehavingServer, Pause, Script, unused_port

pytestmark = pytest.mark.skipif(os.name != "posix", reason="elsewhere everybody is asked in a thread")

ANSWER = Script.stream(RESPONSES.text("Hi."), RESPONSES.end())
SLOW = Script.stream(RESPONSES.text("Hi."), Pause(0.05), RESPONSES.end())
STUCK = Script.stream(RESPONSES.text("Hi."), Hang())
PATIENCE_S = 120


def cell(name: str = "P1") -> Cell:
    """A cell whose prompt is its name."""
    prompt = Prompt(suite="s.toml", id=name, name=name, prompt=name, validator=Noop())
    return Cell(prompt=prompt, target=Target(provider="openai_responses", model="m"))


def provider_at(url: str, **environ: str) -> OpenAIResponses:
    """A built-in provider that asks this server."""
    return OpenAIResponses(
        ProviderSetup(name="openai_responses", environ={"OPENAI_BASE_URL": url, **environ})
    )


@pytest.fixture
def server() -> Iterator[MisbehavingServer]:
    """A server that each test configures."""
    with MisbehavingServer() as one:
        yield one


@pytest.fixture
def at_once() -> int:
    """How many requests may be in flight on the server's endpoint."""
    return 4


in_turn = pytest.mark.parametrize("at_once", [1], ids=["in-turn"])
by_two = pytest.mark.parametrize("at_once", [2], ids=["by-two"])


@pytest.fixture
def opened(server: MisbehavingServer, tmp_path: Path, at_once: int) -> Iterator[AskingClient]:
    """An client that uses the server."""
    settings = Settings(concurrency=Concurrency(everywhere=at_once), timeout_s=PATIENCE_S, retries=0)
    with AskingClient({"openai_responses": provider_at(server.url)}, settings, tmp_path) as client:
        yield client


def answering(server: MisbehavingServer, of: Callable[[str], Script]) -> None:
    """Let the server answer each prompt by its text."""
    server.on("*", lambda request: of(request.json["input"]))


def child() -> psutil.Process:
    """The asker process."""
    (pid,) = [pid for pid, command in children(os.getpid()) if "asking.asker_process" in command]
    return psutil.Process(pid)


def expect(client: AskingClient, *names: str) -> dict[str, Cell]:
    """Let the client ask cells of these names ahead."""
    cells = {name: cell(name) for name in names}
    client.plan([Listed(token, one) for token, one in cells.items()])
    return cells


def take(client: AskingClient, token: str, one: Cell) -> CallResult:
    """Use the reply of a cell, as its test does."""
    try:
        return client.ask(token, one)
    finally:
        client.release(token)


def text_of(ending: Any) -> str:
    """Return the reply's text; fail if there is none."""
    assert isinstance(ending.result, Reply), ending.result
    return ending.result.text


def test_a_built_in_provider_is_asked_in_a_process_of_its_own(
    server: MisbehavingServer, opened: AskingClient
) -> None:
    """It gives the same replies, and its process ends when the client is closed."""
    answering(server, lambda prompt: ANSWER)
    opened.start()
    process = child()

    ending = take(opened, "a", cell())

    assert text_of(ending) == "Hi."
    assert (ending.attempts, ending.in_flight, ending.cold_start) == (1, 1, True)
    opened.close()
    opened.let_go()
    assert not process.is_running()


def test_a_busy_test_delays_no_clock(tmp_path: Path) -> None:
    """While a test holds the interpreter, the measured times remain those of the server."""
    name = "ollama_openai"
    prompt = Prompt(suite="s.toml", id="P1", name="P1", prompt="item-000001", validator=Noop())
    one = Cell(prompt=prompt, target=Target(provider=name, model="m"))
    with MockServer() as server:
        base = server.base("ttft=100")
        provider = OllamaOpenAI(ProviderSetup(name=name, environ={"OLLAMA_OPENAI_BASE": base}))
        with AskingClient({name: provider}, Settings(), tmp_path) as client:
            take(client, "warm", replace(one, prompt=replace(prompt, prompt="item-000000")))
            client.plan([Listed("a", one)])
            before = time.perf_counter()
            sum(range(10**8))  # one long step of the interpreter: no other thread runs
            busy_ms = (time.perf_counter() - before) * 1000
            timing = take(client, "a", one).timing
        log = server.log(base).by_item["item-000001"]

    assert timing.ttft_ms is not None
    assert abs(timing.ttft_ms - log.ttft_ms) < busy_ms / 2
    assert abs(timing.e2e_ms - log.e2e_ms) < busy_ms / 2


def test_when_it_is_killed_waiting_cells_fail_at_once_and_the_next_are_asked(
    server: MisbehavingServer, opened: AskingClient
) -> None:
    """Requests in flight are lost with the reason; a new process asks the rest."""
    answering(server, lambda prompt: STUCK if prompt.startswith("stuck") else ANSWER)
    cells = expect(opened, "stuck 1", "stuck 2", "stuck 3")
    server.wait_for(lambda: server.total == 3)
    child().kill()

    for token, one in cells.items():
        with pytest.raises(HostDied, match=r"the process that asks was killed by SIGKILL"):
            take(opened, token, one)
    assert text_of(take(opened, "after", cell("after"))) == "Hi."


@by_two
def test_what_had_come_before_it_was_killed_is_kept(server: MisbehavingServer, opened: AskingClient) -> None:
    """A reply that is still in the socket counts."""
    answering(server, lambda prompt: STUCK if prompt == "stuck" else ANSWER)
    cells = expect(opened, "first", "stuck")
    # Beside the one that is stuck it has to wait until the first one has been answered.
    take(opened, "other", cell("other"))
    server.wait_for(lambda: server.total == 3)
    child().kill()

    assert text_of(take(opened, "first", cells["first"])) == "Hi."
    with pytest.raises(HostDied):
        take(opened, "stuck", cells["stuck"])


def test_one_that_is_stopped_is_waited_for_with_a_bound(
    server: MisbehavingServer, opened: AskingClient, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A process that does nothing and does not end either is killed."""
    monkeypatch.setattr(client_module, "SILENCE_S", 1.0 - PATIENCE_S)  # beyond the attempt's time
    monkeypatch.setattr(links, "CLOSING_S", 1.0)
    answering(server, lambda prompt: STUCK)
    cells = expect(opened, "stuck")
    process = child()
    server.wait_for(lambda: server.total == 1)
    process.send_signal(signal.SIGSTOP)

    with pytest.raises(HostDied, match="said nothing for 1 s"):
        take(opened, "stuck", cells["stuck"])

    assert not process.is_running()


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM], ids=["ctrl-c", "sigterm"])
def test_it_ends_with_its_parent_and_not_before(
    server: MisbehavingServer, opened: AskingClient, number: signal.Signals
) -> None:
    """A signal to all processes of a terminal or job loses no reply in progress."""
    answering(server, lambda prompt: SLOW)
    take(opened, "warm", cell("warm"))

    child().send_signal(number)

    assert text_of(take(opened, "a", cell())) == "Hi."


@pytest.fixture
def kept_off() -> Iterator[None]:
    """SIGINT is ignored here, as a shell does for background jobs, and SIGTERM is blocked."""
    before = signal.signal(signal.SIGINT, signal.SIG_IGN)
    mask = signal.pthread_sigmask(signal.SIG_BLOCK, {signal.SIGTERM})
    yield
    signal.pthread_sigmask(signal.SIG_SETMASK, mask)
    signal.signal(signal.SIGINT, before)


def cli_cell() -> Cell:
    """A cell of the Claude CLI."""
    return replace(cell(), target=Target(provider="claude_code_cli", model="m"))


@pytest.mark.usefixtures("kept_off")
def test_programs_start_with_the_usual_signals(tmp_path: Path) -> None:
    """A program inherits ignored and blocked signals; the asker process resets both."""
    provider = provider_of(environ_of("dispositions"))
    with AskingClient({"claude_code_cli": provider}, Settings(), tmp_path) as client:
        assert text_of(take(client, "a", cli_cell())) == "kept off: []"


@pytest.mark.parametrize(
    ("mode", "how"),
    [
        pytest.param("waits", "was killed by SIGTERM", id="no-handler"),
        pytest.param("waits politely", "ended with exit status 143 (SIGTERM)", id="a-handler"),
    ],
)
def test_sigterm_ends_a_cli_and_is_not_the_models_fault(tmp_path: Path, mode: str, how: str) -> None:
    """A CLI that a signal from outside ends fails only its cell, with a fault that names the signal."""
    file = tmp_path / "pid"
    name, *rest = mode.split()
    provider = provider_of(environ_of(name, str(file), *rest))
    with AskingClient({"claude_code_cli": provider}, Settings(), tmp_path) as client:
        client.plan([Listed("a", cli_cell())])
        assert wait_until(lambda: file.exists() and bool(file.read_text(encoding="utf-8")))
        os.kill(int(file.read_text(encoding="utf-8")), signal.SIGTERM)
        fault = take(client, "a", cli_cell()).result

    assert isinstance(fault, Fault)
    assert (fault.failure_type, fault.status) == ("harness_error", "error")
    assert fault.message == f"claude_code_cli: the CLI {how}."


@by_two
def test_closing_keeps_what_had_come_and_gives_up_the_rest(
    server: MisbehavingServer, opened: AskingClient
) -> None:
    """Replies that no test took are returned; a request in progress does not delay the end."""
    answering(server, lambda prompt: STUCK if prompt == "stuck" else ANSWER)
    expect(opened, "P1", "stuck", "P2")
    # Beside the one that is stuck it comes after the two others.
    take(opened, "P0", cell("P0"))

    left = opened.close()

    assert [one.prompt.id for one, _ in left] == ["P1", "P2"]


def test_a_lost_key_is_read_where_the_session_runs(server: MisbehavingServer, tmp_path: Path) -> None:
    """The child gets the provider's environment of this process, and sends that key."""
    answering(server, lambda prompt: ANSWER)
    provider = provider_at(server.url, OPENAI_API_KEY="dummy-key-of-a-test")

    with AskingClient({"openai_responses": provider}, Settings(), tmp_path) as client:
        take(client, "a", cell())

    assert server.requests[-1].headers["authorization"] == "Bearer dummy-key-of-a-test"


def test_an_exception_is_reported_here_without_secrets(
    server: MisbehavingServer, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """An exception of our own code arrives with its name, its text and its traceback."""
    (tmp_path / "sitecustomize.py").write_text(
        "from pytest_openclaw.providers.openai_responses import OpenAIResponses\n"
        "def body(self, request): raise ValueError('broken by ' + self.key())\n"
        "OpenAIResponses.body = body\n"
    )
    monkeypatch.setenv("PYTHONPATH", os.pathsep.join([str(tmp_path), *sys.path]))
    provider = provider_at(server.url, OPENAI_API_KEY="dummy-key-of-a-test")

    with (
        AskingClient({"openai_responses": provider}, Settings(), tmp_path) as client,
        pytest.raises(AskingBroke, match=r"ValueError: broken by \[secret\]") as caught,
    ):
        take(client, "a", cell())

    (note,) = caught.value.__notes__
    assert "Traceback" in note
    assert "dummy-key-of-a-test" not in note


PARENT = """
import sys, time
from pathlib import Path
from tests.providers.test_asking_process import cell, expect, provider_at
from pytest_openclaw.asking.client import AskingClient
from pytest_openclaw.types.settings import Settings
client = AskingClient({"openai_responses": provider_at(sys.argv[1])}, Settings(), Path(sys.argv[2]))
expect(client, "stuck")
time.sleep(600)
"""


def test_it_ends_when_its_parent_is_killed(server: MisbehavingServer, tmp_path: Path) -> None:
    """However this process ends, no more requests are sent."""
    answering(server, lambda prompt: STUCK)
    root = str(Path(__file__).parents[2])
    environ = {**os.environ, "PYTHONPATH": os.pathsep.join([root, *sys.path])}
    parent = subprocess.Popen([sys.executable, "-c", PARENT, server.url, str(tmp_path)], env=environ)
    try:
        server.wait_for(lambda: server.total == 1, timeout_s=PATIENCE_S)
        (process,) = psutil.Process(parent.pid).children()
    finally:
        parent.kill()
        parent.wait()

    process.wait(PATIENCE_S)


def test_a_dead_server_is_a_fault_there_too(tmp_path: Path) -> None:
    """Faults cross the socket unchanged."""
    with (
        unused_port() as port,
        AskingClient(
            {"openai_responses": provider_at(f"http://127.0.0.1:{port}/v1")}, Settings(), tmp_path
        ) as client,
    ):
        first, second = (take(client, name, cell(name)).result for name in ("a", "b"))

    assert isinstance(first, Fault)
    assert isinstance(second, Fault)
    assert (first.failure_type, first.scope) == ("connect_error", "endpoint")
    assert second.message.startswith("not asked: ")


LARGE = Script.stream(RESPONSES.text("long " * 40_000), RESPONSES.end())


def test_replies_are_kept_while_a_test_runs(server: MisbehavingServer, opened: AskingClient) -> None:
    """More replies than a socket buffers, received while a test runs, are available when the session ends."""
    answering(server, lambda prompt: STUCK if prompt.startswith("stuck") else LARGE)
    expect(opened, *(f"P{n}" for n in range(6)), *(f"stuck {n}" for n in range(4)))
    # When these four are asked, all others have been answered.
    server.wait_for(lambda: server.total == 10)

    left = opened.close()

    assert [one.prompt.id for one, _ in left] == [f"P{n}" for n in range(6)]
    assert {len(text_of(ending)) for _, ending in left} == {200_000}


@in_turn
def test_ctrl_c_between_reading_and_taking_garbles_nothing(
    server: MisbehavingServer, opened: AskingClient, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A session interrupted just when a reply arrives still has that reply and all later ones."""
    answering(server, lambda prompt: ANSWER)
    cells = expect(opened, "P0", "P1", "P2")
    server.wait_for(lambda: server.total == 3)
    loads = pickle.loads

    def interrupted(frame: bytes) -> Any:
        monkeypatch.setattr(links.pickle, "loads", loads)
        os.kill(os.getpid(), signal.SIGINT)
        return loads(frame)

    monkeypatch.setattr(links.pickle, "loads", interrupted)
    with pytest.raises(KeyboardInterrupt), interrupted_by_signals():
        take(opened, "P0", cells["P0"])

    assert text_of(take(opened, "last", cell("last"))) == "Hi."
    assert [one.prompt.id for one, _ in opened.close()] == ["P0", "P1", "P2"]


def test_one_that_is_stopped_does_not_hold_the_end_up(
    server: MisbehavingServer, opened: AskingClient, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Closing waits for it for a limited time, and then ends it."""
    monkeypatch.setattr(links, "CLOSING_S", 0.5)
    answering(server, lambda prompt: STUCK if prompt == "stuck" else ANSWER)
    expect(opened, "P0", "stuck")
    take(opened, "P1", cell("P1"))
    process = child()
    process.send_signal(signal.SIGSTOP)

    left = opened.close()

    opened.let_go()
    assert not process.is_running()
    assert {one.prompt.id for one, _ in left} <= {"P0"}


def test_one_that_takes_no_job_is_ended(
    server: MisbehavingServer, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    """A process that stops reading does not block the sender of more than a socket buffers."""
    answering(server, lambda prompt: ANSWER)
    monkeypatch.setattr(client_module, "SILENCE_S", 2.0)
    settings = Settings(timeout_s=0.5, retries=0)
    with AskingClient({"openai_responses": provider_at(server.url)}, settings, tmp_path) as client:
        take(client, "warm", cell("warm"))
        process = child()
        process.send_signal(signal.SIGSTOP)

        with pytest.raises(HostDied):
            take(client, "long", cell("x" * 5_000_000))

        assert wait_until(lambda: is_gone(process.pid))
        monkeypatch.setattr(client_module, "SILENCE_S", 60.0)
        patient = cell("next")
        # The next asker takes its time to start.
        patient = replace(patient, prompt=replace(patient.prompt, timeout_s=PATIENCE_S))
        assert text_of(take(client, "next", patient)) == "Hi."


def test_a_failed_start_is_reported_by_each_cell(
    tmp_path: Path, server: MisbehavingServer, monkeypatch: pytest.MonkeyPatch
) -> None:
    """If the machine cannot start a process, the cells fail, and nothing else does."""

    def fails(*args: Any, **kwargs: Any) -> None:
        raise OSError("no more processes")

    monkeypatch.setattr(client_module, "start_process", fails)
    with AskingClient({"openai_responses": provider_at(server.url)}, Settings(), tmp_path) as client:
        client.start()
        cells = expect(client, "P1", "P2", "P3", "P4")
        for token, one in cells.items():
            with pytest.raises(HostDied):
                take(client, token, one)

    assert client.close() == []


@in_turn
def test_after_three_deaths_no_cell_is_asked(server: MisbehavingServer, opened: AskingClient) -> None:
    """A process that dies repeatedly does not use up a whole run's calls; later cells say so."""
    answering(server, lambda prompt: STUCK if prompt.startswith("stuck") else ANSWER)
    cells = expect(opened, "stuck 0", "stuck 1", "stuck 2", "P1")
    for n in range(3):
        server.wait_for(lambda n=n: server.total == n + 1)
        child().kill()
        with pytest.raises(HostDied, match="SIGKILL"):
            take(opened, f"stuck {n}", cells[f"stuck {n}"])

    with pytest.raises(HostDied, match="no more cells are asked"):
        take(opened, "P1", cells["P1"])
    assert server.total == 3


def test_clients_leave_nothing_behind(server: MisbehavingServer, tmp_path: Path) -> None:
    """Opened, used, killed and closed many times, clients leave no process, thread or descriptor."""
    answering(server, lambda prompt: ANSWER)
    here, others = psutil.Process(), set(threading.enumerate())  # threads of other tests may still be ending

    def all_ended() -> bool:
        return set(threading.enumerate()) <= others

    def use(n: int) -> None:
        folder = Path(tempfile.mkdtemp(dir=tmp_path))
        with AskingClient({"openai_responses": provider_at(server.url)}, Settings(), folder) as client:
            take(client, "a", cell())
            if n % 2:
                child().kill()
                with pytest.raises(HostDied):
                    take(client, "b", cell())
            client.close()
            assert client.close() == []

    use(0), use(1)
    # The server has a thread and a socket for each connection, in this process, until it sees the end.
    server.wait_for(all_ended)
    n_fds, started = here.num_fds(), set(here.children())
    for n in range(6):
        use(n)

    server.wait_for(all_ended)
    assert here.num_fds() <= n_fds
    assert set(here.children()) <= started
