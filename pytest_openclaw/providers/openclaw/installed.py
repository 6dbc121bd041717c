"""Starts the installed OpenClaw for our commands: returns its output, or raises an error with the reason.

It gets its own folders and an emptied environment, as for a request of `openclaw_agent`.
"""

from __future__ import annotations

import asyncio
from dataclasses import dataclass
from typing import TYPE_CHECKING

from pytest_openclaw.providers import processes
from pytest_openclaw.providers.openclaw.call import environment, find_command
from pytest_openclaw.providers.processes import Program
from pytest_openclaw.providers.wire_errors import shortened
from pytest_openclaw.util.errors import OpenClawError
from pytest_openclaw.util.text import valid_text
from pytest_openclaw.values.protocols import ProviderSetup

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

    from pytest_openclaw.providers.openclaw.call import AgentScratch

# A start takes 0.5 to 10 s, depending on the machine and its load.
PATIENCE_S = 180.0
_POLL_S = 0.05


@dataclass(frozen=True, kw_only=True)
class Printed:
    """The output of one start of OpenClaw.

    Attributes:
        exit_status: None if it was ended, or is still running after closing its output.
        stderr: the end of its stderr.

    """

    exit_status: int | None
    stdout: str
    stderr: str


@dataclass(frozen=True, kw_only=True)
class OpenClaw:
    """The installed OpenClaw, with the settings of its starts.

    Attributes:
        command: the program and its first arguments.
        scratch: the folders that it gets instead of the user's.
        environ: the user's environment, of which it gets only PATH.
        more: further variables for it.
        patience_s: the timeout of a start.

    """

    command: tuple[str, ...]
    scratch: AgentScratch
    environ: Mapping[str, str]
    more: Mapping[str, str]
    patience_s: float = PATIENCE_S

    async def printed(self, *arguments: str, until: Callable[[], bool] = lambda: False) -> Printed:
        """Start it with these arguments, and wait for its exit, or end it when `until` is true.

        Args:
            *arguments: of the command line.
            until: polled; returns whether the start can be ended.

        Raises:
            OpenClawError: it cannot be started, prints too much or does not exit.

        """
        name = " ".join(["openclaw", *arguments[:2]])
        program = Program(
            argv=(*self.command, *arguments),
            env={**environment(self.scratch, self.environ), **self.more},
            cwd=self.scratch.workspace,
        )
        running = await processes.start("openclaw", program)
        lines: list[bytes] = []
        reading = asyncio.ensure_future(running.read_lines(lines))
        try:
            async with asyncio.timeout(self.patience_s):
                while not reading.done() and not until():
                    await asyncio.wait([reading], timeout=_POLL_S)
                if not until():
                    await running.wait_exit(processes.DRAIN_S)
        except TimeoutError:
            words = f": {shortened(running.stderr)}" if running.stderr else ""
            raise OpenClawError(f"{name} did not end within {self.patience_s:.0f} s{words}") from None
        finally:
            reading.cancel()
            await running.stop()
        if running.flooded:
            raise OpenClawError(f"{name} printed {running.flooded}")
        return Printed(
            exit_status=running.exit_status,
            stdout=valid_text(b"\n".join(lines).decode("utf-8", "replace")),
            stderr=valid_text(running.stderr),
        )


def find_openclaw(environ: Mapping[str, str], *, name: str) -> tuple[str, ...]:
    """Return the command that starts OpenClaw: OPENCLAW_AGENT_COMMAND, else `openclaw` on PATH.

    Args:
        environ: the environment.
        name: of the caller, for messages.

    Raises:
        OpenClawError: it is not installed.

    """
    return find_command(ProviderSetup(name=name, environ=environ))
