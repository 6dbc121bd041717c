"""Calls of `claude_code_cli` in tests: with the fake CLI of this folder, or any other command."""

import shlex
import sys
from pathlib import Path

from pytest_openclaw.providers.claude_code_cli import ClaudeCodeCLI
from pytest_openclaw.values.protocols import ProviderSetup
from tests.e2e.processes import is_gone, wait_until
from tests.providers.servers.apis import ask as ask_provider

CLI = Path(__file__).parent / "cli.py"
DUMMY_KEY = "dummy-key-0123456789"


def command(mode, *arguments):
    return shlex.join([sys.executable, "-S", "-E", str(CLI), mode, *arguments])


def environ_of(mode, *arguments, key=DUMMY_KEY):
    environ = {"OPENCLAW_CLAUDE_COMMAND": command(mode, *arguments), "PATH": "/usr/bin:/bin"}
    return environ | ({"ANTHROPIC_API_KEY": key} if key else {})


def provider_of(environ, **setup):
    return ClaudeCodeCLI(ProviderSetup(**{"name": "claude_code_cli", "environ": environ} | setup))


def ask(environ, **request):
    return ask_provider(provider_of(environ), **{"model": "m1", "prompt": "Say hello."} | request)


def dies(pid):
    return wait_until(lambda: is_gone(pid))
