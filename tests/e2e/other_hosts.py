"""Hosts beside this one: network namespaces with their own loopback, or else other loopback addresses."""

from __future__ import annotations

import contextlib
import getpass
import json
import os
import shutil
import socket
import subprocess
import sys
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import pytest

from tests.e2e.processes import wait_until
from tests.e2e.sessions import KEPT, RunFolder

SESSION_BOUND_S = 600.0
MODEL_SERVER = Path(__file__).with_name("model_server.py")
OLLAMA_PORT = 11434
WORKER_PORT = 8888


@dataclass
class Host:
    """A machine: the command prefix that runs a program there, and a folder of its own.

    Attributes:
        address: the address under which the others reach it.
        enter: the words that run a command there; empty for this machine.
        model_address: the address of its own model server, on its loopback.
        environ: the environment variables that its user has set.
    """

    name: str
    folder: Path
    address: str
    model_address: str
    enter: Sequence[str] = ()
    environ: dict[str, str] = field(default_factory=dict)
    first_port: int = WORKER_PORT

    @property
    def project(self) -> Path:
        return self.folder / "project"

    @property
    def asked(self) -> list[dict[str, Any]]:
        """The requests to its model server, without warm-ups."""
        return [line for line in self._log if line["prompt"] != "Hi"]

    @property
    def n_warm_ups(self) -> int:
        return sum(line["prompt"] == "Hi" for line in self._log)

    @property
    def at_once(self) -> int:
        """The highest number of concurrent requests at its server."""
        return max((line["at_once"] for line in self._log), default=0)

    @property
    def log(self) -> Path:
        return self.folder / "asked.jsonl"

    @property
    def _log(self) -> list[dict[str, Any]]:
        if not self.log.exists():
            return []
        lines = self.log.read_text("utf-8").splitlines(keepends=True)
        return [json.loads(line) for line in lines if line.endswith("\n")]

    @property
    def n_arrived(self) -> int:
        """The number of prompts that its model server has received, answered or not."""
        arrived = self.log.with_name("arrived.txt")
        return arrived.stat().st_size if arrived.exists() else 0

    def hold(self, after: int = 0) -> None:
        """Let its model server answer this many prompts and no more, until `let_go`."""
        self.log.with_name("hold.txt").write_text(str(after))

    def let_go(self) -> None:
        """Let its model server answer all waiting and all later requests."""
        self.log.with_name("hold.txt").unlink()

    def command(self, *words: str) -> list[str]:
        """Return the words that run a command in this host's project, with only its own environment."""
        kept = {name: os.environ[name] for name in KEPT if name in os.environ}
        home = {"HOME": str(self.folder / "home"), "TMPDIR": str(self.folder / "tmp")}
        environ = [f"{name}={value}" for name, value in {**kept, **home, **self.environ}.items()]
        go = ["sh", "-c", 'cd "$0" && exec "$@"', str(self.project)]
        return [*self.enter, *go, "env", "-i", *environ, *words]

    def make_folders(self) -> None:
        for name in ("home", "tmp", "project"):
            (self.folder / name).mkdir(parents=True, exist_ok=True)


@dataclass
class Lab:
    """The machine that runs the controller, and the hosts that it reaches.

    Attributes:
        kind: `namespaces` or `loopback`.
    """

    kind: str
    leader: Host
    hosts: list[Host]
    _started: list[subprocess.Popen[bytes]] = field(default_factory=list)

    def start(self, host: Host, *words: str) -> subprocess.Popen[bytes]:
        """Start a server on a host, and wait for its first output."""
        out = host.folder / f"out-{len(self._started)}.txt"
        with out.open("wb") as file:
            process = subprocess.Popen(
                host.command(*words), stdin=subprocess.DEVNULL, stdout=file, stderr=subprocess.STDOUT
            )
        self._started.append(process)
        said = wait_until(lambda: out.stat().st_size > 0 or process.poll() is not None)
        assert said, f"{words} on {host.name} says nothing"
        assert process.poll() is None, out.read_text("utf-8", "replace")
        return process

    def write(self, host: Host, path: Path, text: str) -> None:
        """Write a file on a host."""
        subprocess.run(host.command("tee", str(path)), input=text.encode(), check=True, capture_output=True)

    def remove(self, host: Host, path: Path) -> None:
        """Remove a file on a host."""
        subprocess.run(host.command("rm", str(path)), check=True)

    def serve_models(self, host: Host, seconds: float, address: str = "") -> None:
        """Start a host's model server."""
        where = address or host.model_address
        self.start(host, sys.executable, "-u", str(MODEL_SERVER), where, str(host.log), str(seconds))

    def serve_workers(self, host: Host, n: int = 1) -> list[str]:
        """Start execnet's socket servers on a host, one per worker; return their values for `--tx`."""
        specs = []
        for number in range(n):
            where = f"{host.address}:{host.first_port + number}"
            self.start(host, sys.executable, "-u", "-m", "execnet.script.socketserver", where)
            specs += ["--tx", f"socket={where}//chdir={host.project}"]
        return specs

    def serve_ssh(self, host: Host) -> list[str]:
        """Start a host's sshd, for the user who runs the tests; return its value for `--tx`."""
        sshd = shutil.which("sshd", path=f"{os.environ.get('PATH', '')}:/usr/sbin:/usr/local/sbin")
        if sshd is None or shutil.which("ssh") is None or not Path("/run/sshd").is_dir():
            pytest.skip("sshd and ssh are not installed")
        for key in ("host_key", "key"):
            words = ["ssh-keygen", "-q", "-t", "ed25519", "-N", "", "-f", str(host.folder / key)]
            subprocess.run(words, check=True)
        options = {
            "ListenAddress": host.address, "HostKey": host.folder / "host_key", "PidFile": "none",
            "AuthorizedKeysFile": host.folder / "key.pub", "StrictModes": "no", "UsePAM": "no",
        }  # fmt: skip
        given = [word for name, value in options.items() for word in ("-o", f"{name}={value}")]
        self.start(host, sshd, "-D", "-e", "-p", str(host.first_port), "-f", "/dev/null", *given)
        config = host.folder / "ssh_config"
        config.write_text(
            f"Host {host.name}\n HostName {host.address}\n Port {host.first_port}\n"
            f" User {getpass.getuser()}\n IdentityFile {host.folder / 'key'}\n IdentitiesOnly yes\n"
            " StrictHostKeyChecking no\n UserKnownHostsFile /dev/null\n LogLevel ERROR\n"
        )
        set_there = "".join(f"//env:{name}={value}" for name, value in host.environ.items())
        where = f"ssh={host.name}//ssh_config={config}//python={sys.executable}//chdir={host.project}"
        return ["--tx", f"{where}{set_there}"]

    def files(self, host: Host) -> set[str]:
        """List the files in the host's folder, without those that servers and Python write."""
        find = [
            "find",
            str(host.folder),
            "-type",
            "f",
            "-not",
            "-name",
            "*.pyc",
            "-not",
            "-name",
            "out-*.txt",
        ]
        xdists = [str(host.project / name) for name in ("pytest", "_pytest")]
        done = subprocess.run(host.command(*find), check=True, capture_output=True, text=True)
        return {line for line in done.stdout.splitlines() if not line.startswith(tuple(xdists))}

    def begin(self, *words: str) -> subprocess.Popen[bytes]:
        """Start pytest on the controller's machine."""
        runs = self.leader.folder / "runs"
        command = self.leader.command(
            sys.executable, "-m", "pytest", "-p", "no:cacheprovider", f"--openclaw-runs-dir={runs}",
            "--openclaw-run-id=run", *words,
        )  # fmt: skip
        process = subprocess.Popen(
            command, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.STDOUT
        )
        self._started.append(process)
        return process

    def end(self, session: subprocess.Popen[bytes]) -> Outcome:
        """Wait for pytest's end."""
        for machine in (self.leader, *self.hosts):
            assert not machine.log.with_name("hold.txt").exists(), "it would not end"
        out, _ = session.communicate(timeout=SESSION_BOUND_S)
        run = RunFolder(self.leader.folder / "runs" / "run")
        return Outcome(session.returncode, out.decode("utf-8", "replace"), run)

    def run(self, *words: str) -> Outcome:
        """Run pytest on the controller's machine to its end."""
        return self.end(self.begin(*words))

    @property
    def servers(self) -> list[subprocess.Popen[bytes]]:
        """Return the programs started on hosts that still run; socket servers are the workers themselves."""
        return [process for process in self._started if process.poll() is None]

    def close(self) -> None:
        for process in reversed(self._started):
            process.kill()
            process.wait()


@dataclass(frozen=True)
class Outcome:
    """A session that has ended."""

    status: int
    text: str
    run: RunFolder


def lay_project(host: Host, files: Mapping[str, str]) -> None:
    """Give a host its own copy of the project, as a user would copy it."""
    for name, text in files.items():
        path = host.project / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text, "utf-8")


@contextlib.contextmanager
def loopback_lab(folder: Path, names: Sequence[str]) -> Iterator[Lab]:
    """Yield hosts that are other addresses of this machine; each environment names its own model server."""
    leader = Host("leader", folder / "leader", "127.0.0.1", f"127.0.0.1:{_free_port('127.0.0.1')}")
    hosts = []
    for number, name in enumerate(names, 1):
        address = f"127.0.0.{number}"
        model = f"{address}:{_free_port(address)}"
        host = Host(name, folder / name, address, model, environ={"OLLAMA_HOST": model})
        host.first_port = _free_port(address, n=4)
        hosts.append(host)
    leader.first_port = _free_port("127.0.0.1")
    lab = Lab("loopback", leader, hosts)
    for host in (leader, *hosts):
        host.make_folders()
    try:
        yield lab
    finally:
        lab.close()


@contextlib.contextmanager
def namespaces_lab(folder: Path, names: Sequence[str]) -> Iterator[Lab]:
    """Yield hosts with their own network: each has its own 127.0.0.1 and does not see the others' folders."""
    model = f"127.0.0.1:{OLLAMA_PORT}"
    leader = Host("leader", folder / "leader", "10.77.0.1", model)
    hosts = [Host(name, folder / name, f"10.77.{n}.2", model) for n, name in enumerate(names, 1)]
    machines = [leader, *hosts]
    for machine in machines:
        machine.make_folders()
    lab = Lab("namespaces", leader, hosts)
    with contextlib.ExitStack() as stack:
        try:
            hub = stack.enter_context(_held(["unshare", "-rUnm"]))
        except OSError as error:
            pytest.skip(f"this kernel gives no network namespaces: {error}")
        leader.enter = ["nsenter", "-t", str(hub), "-U", "-n", "-m", "--preserve-credentials"]
        subprocess.run([*leader.enter, "ip", "addr", "add", f"{leader.address}/32", "dev", "lo"], check=True)
        for number, host in enumerate(hosts, 1):
            inner = stack.enter_context(_held([*leader.enter, "unshare", "-nmu"]))
            host.enter = ["nsenter", "-t", str(inner), "-U", "-n", "-m", "-u", "--preserve-credentials"]
            veth = f"veth{number}"
            for words in (
                [
                    *leader.enter,
                    "ip",
                    "link",
                    "add",
                    veth,
                    "type",
                    "veth",
                    "peer",
                    "eth0",
                    "netns",
                    str(inner),
                ],
                [*leader.enter, "ip", "addr", "add", f"10.77.{number}.1/24", "dev", veth],
                [*leader.enter, "ip", "link", "set", veth, "up"],
                [*host.enter, "ip", "addr", "add", f"{host.address}/24", "dev", "eth0"],
                [*host.enter, "ip", "link", "set", "eth0", "up"],
                [*host.enter, "ip", "route", "add", "default", "via", f"10.77.{number}.1"],
                [*host.enter, sys.executable, "-c", f"import socket; socket.sethostname({host.name!r})"],
            ):
                subprocess.run(words, check=True, capture_output=True)
        for machine in machines:
            for other in machines:
                if other is not machine:
                    hide = ["mount", "-t", "tmpfs", "none", str(other.folder)]
                    subprocess.run([*machine.enter, *hide], check=True, capture_output=True)
        stack.callback(lab.close)
        yield lab


LABS = {"namespaces": namespaces_lab, "loopback": loopback_lab}


@contextlib.contextmanager
def _held(unshare: Sequence[str]) -> Iterator[int]:
    """Keep new namespaces open; yields the process that owns them.

    Raises:
        OSError: the system allows none.
    """
    hold = ["sh", "-c", "ip link set lo up && echo ready && exec sleep 3600"]
    try:
        process = subprocess.Popen([*unshare, *hold], stdout=subprocess.PIPE, stderr=subprocess.STDOUT)
    except FileNotFoundError as error:
        raise OSError(f"{error.filename} is not installed") from None
    assert process.stdout is not None
    with process:
        try:
            said = process.stdout.readline().decode().strip()
            if said != "ready":
                raise OSError(said)
            yield process.pid
        finally:
            process.kill()


def _free_port(address: str, n: int = 1) -> int:
    """Return a port such that it and the next `n - 1` ports are free."""
    while True:
        with contextlib.ExitStack() as stack:
            first = stack.enter_context(socket.socket())
            first.bind((address, 0))
            port: int = first.getsockname()[1]
            try:
                for number in range(1, n):
                    stack.enter_context(socket.socket()).bind((address, port + number))
            except (OSError, OverflowError):
                continue
            return port
