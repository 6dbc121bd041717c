"""Calls of `claude_code_cli` in tests: with the fake CLI of this folder, or any other command."""

import shlex
import sys
import time
from pathlib import Path

import psutil

from pytest_openclaw.providers.claude_code_cli import ClaudeCodeCLI
from pytest_openclaw.values.protocols import ProviderSetup
from tests.providers.servers.apis import ask as ask_provider

CLI = Path(__file__).parent / "cli.py"
DUMMY_KEY = "dummy-key-0123456789"


def command(mode, *arguments):
    return shlex.join([sys.executable, "-S", "-E", str(CLI), mode, *arguments])


def environ_of(mode, *arguments, key=DUMMY_KEY):
    """Return an emptied environment whose CLI is the fake in `mode`."""
    environ = {"OPENCLAW_CLAUDE_COMMAND": command(mode, *arguments), "PATH": "/usr/bin:/bin"}
    return environ | ({"ANTHROPIC_API_KEY": key} if key else {})


def provider_of(environ, **setup):
    return ClaudeCodeCLI(ProviderSetup(**{"name": "claude_code_cli", "environ": environ} | setup))


def ask(environ, **request):
    return ask_provider(provider_of(environ), **{"model": "m1", "prompt": "Say hello."} | request)


def is_alive(pid):
    """Whether a process runs; a zombie does not."""
    try:
        return psutil.Process(pid).status() != psutil.STATUS_ZOMBIE
    except psutil.NoSuchProcess:
        return False


def dies(pid):
    """Wait until a process is dead, with time enough for a slow machine."""
    until = time.monotonic() + 60
    while is_alive(pid) and time.monotonic() < until:
        time.sleep(0.01)
    return not is_alive(pid)
