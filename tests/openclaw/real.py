"""The real OpenClaw, installed into a folder for the tests."""

import asyncio
import json
import os
import shlex
import shutil
import socket
import subprocess
from contextlib import asynccontextmanager, contextmanager
from dataclasses import dataclass
from pathlib import Path

from pytest_openclaw.providers.openclaw.call import Scratch, environment, scratch_folder
from pytest_openclaw.providers.processes import Program, run
from tests.real_parts import find_openclaw

FOLDER_ENV = "OPENCLAW_TEST_OPENCLAW_DIR"
GATEWAY_S = 600.0
GATEWAY_TOKEN = "a-token-of-the-test"


@dataclass(frozen=True)
class RealOpenClaw:
    """An installed OpenClaw: the folder of the installation, its Node and its script."""

    folder: Path
    parts: tuple[str, str]

    @property
    def node(self):
        return self.parts[0]

    @property
    def command(self):
        """A command line that starts it; Node's compile cache is kept for all tests, which halves their time."""
        env = shutil.which("env")
        kept = (env, f"NODE_COMPILE_CACHE={self.folder / 'compiled'}") if env else ()
        return shlex.join([*kept, *self.parts])

    @property
    def environ(self):
        return {"PATH": os.pathsep.join([str(Path(self.node).parent), os.defpath])}


def find_real_openclaw():
    """Return the OpenClaw of OPENCLAW_TEST_OPENCLAW_DIR, the folder given to `tests/real_parts.py`, or None."""
    folder = os.environ.get(FOLDER_ENV)
    parts = find_openclaw(Path(folder)) if folder else None
    return RealOpenClaw(Path(folder).resolve(), parts) if folder and parts else None


@dataclass(frozen=True)
class OpenClaw:
    command: tuple[str, ...]
    scratch: Scratch
    environ: dict[str, str]
    patience_s: float

    async def printed(self, *arguments, until=None):
        """Start it with these arguments, and wait for its exit, or end it when `until` is set."""
        program = Program(argv=(*self.command, *arguments), env=self.environ, cwd=self.scratch.workspace)
        printed = await run("openclaw", program, within_s=self.patience_s, until=until)
        assert not printed.timed_out, printed
        return printed


@contextmanager
def openclaw_apart(real, *, patience_s, **more):
    """The real OpenClaw in folders of its own, with more variables in its environment."""
    with scratch_folder() as scratch:
        environ = {**environment(scratch, real.environ), "OPENCLAW_LOG_LEVEL": "silent", **more}
        yield OpenClaw(tuple(shlex.split(real.command)), scratch, environ, patience_s)


def run_openclaw(openclaw, *arguments):
    return asyncio.run(openclaw.printed(*arguments))


@asynccontextmanager
async def gateway(openclaw, port):
    """The gateway of an OpenClaw, listening on a port of loopback while it is entered."""
    done = asyncio.Event()
    start = ("gateway", "run", "--port", str(port))
    running = asyncio.create_task(openclaw.printed(*start, until=done))
    try:
        while not _listens(port):
            if running.done():  # a busy machine is too slow for its first lease
                running = asyncio.create_task(openclaw.printed(*start, until=done))
            await asyncio.sleep(1)
        yield
    finally:
        done.set()
        await asyncio.gather(running, return_exceptions=True)


def models_of(url, name, context_tokens):
    """Return OpenClaw's config of the only model, which is reached by chat completions."""
    limits = {"reasoning": False, "input": ["text"], "contextWindow": context_tokens, "maxTokens": 500}
    cost = {"input": 0, "output": 0, "cacheRead": 0, "cacheWrite": 0}
    server = {"baseUrl": url, "apiKey": "k", "api": "openai-completions"}
    models = [{"id": name, "name": name, "cost": cost, **limits}]
    return {"mode": "replace", "providers": {"local": {**server, "models": models}}}


def run_agent(openclaw, folder, url, *, name="tiny", prompt="Go on.", context_tokens=64_000, **config):
    """Run `openclaw agent exec` once in a workspace; `config` has further parts of OpenClaw's config."""
    usual = {
        "agents": {"defaults": {"workspace": str(folder), "model": {"primary": f"local/{name}"}}},
        "models": models_of(url, name, context_tokens),
        "memory": {"search": {"provider": "none"}},
        "update": {"checkOnStart": False},
    }
    file = folder / "openclaw.json"
    file.write_text(json.dumps(usual | config))
    own = {"HOME": str(folder), "OPENCLAW_STATE_DIR": str(folder / "state"), "OPENCLAW_NO_AUTO_UPDATE": "1"}
    own |= {"OPENCLAW_DISABLE_BONJOUR": "1", "OPENCLAW_NO_RESPAWN": "1"}
    own |= {"OPENCLAW_TELEMETRY_ENDPOINT": "http://127.0.0.1:9"}
    folders = ("--config", str(file), "--cwd", str(folder))
    done = subprocess.run(
        [*openclaw.parts, "agent", "exec", prompt, "--json", *folders, "--model", f"local/{name}"],
        env=openclaw.environ | own,
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        timeout=GATEWAY_S,
    )
    assert done.returncode == 0, done.stdout.decode()[-3000:]


def run_over_gateway(openclaw, url, prompt, **config):
    """Run one turn of an agent in a gateway; `config` has further parts of OpenClaw's config."""
    port = free_port()
    agents = {"model": "local/scripted", "skipBootstrap": True, "heartbeat": {"every": "0m"}}
    auth = {"mode": "token", "token": GATEWAY_TOKEN}
    usual = {
        "agents": {"defaults": agents},
        "models": models_of(url, "scripted", 131_072),
        "gateway": {"mode": "local", "bind": "loopback", "port": port, "auth": auth},
    }

    async def run(agent):
        turn = ("agent", "--json", "--session-id", "benchmark", "--message", prompt)
        async with gateway(agent, port):
            done = await agent.printed(*turn)
            assert done.exit_status == 0, done.stdout + done.stderr

    own = {"OPENCLAW_GATEWAY_PORT": str(port), "OPENCLAW_GATEWAY_TOKEN": GATEWAY_TOKEN}
    with openclaw_apart(openclaw, patience_s=GATEWAY_S, **own) as agent:
        agent.scratch.config.write_text(json.dumps(usual | config), encoding="utf-8")
        asyncio.run(asyncio.wait_for(run(agent), GATEWAY_S))


def free_port():
    with socket.socket() as one:
        one.bind(("127.0.0.1", 0))
        return int(one.getsockname()[1])


def _listens(port):
    with socket.socket() as one:
        return one.connect_ex(("127.0.0.1", port)) == 0
