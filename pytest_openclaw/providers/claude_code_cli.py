"""`claude_code_cli`: the installed Claude CLI, one `claude -p` per request.

With an API key, the CLI runs bare, in an emptied environment with its own HOME. Without a key, it runs with
the user's login and HOME, but without the settings, servers, tools and instructions there, so that the model
is measured and not the machine. The CLI itself reports whether it is logged in.

The CLI always streams, has no temperature, and adds two short texts before the prompt: its identity and the
current date. It receives tools from our server, `mcp_tools.py`, which also answers the calls of a scripted
exchange, because the CLI runs its own tool loop.
"""

from __future__ import annotations

import asyncio
from contextlib import contextmanager
from dataclasses import replace
from functools import partial
from typing import TYPE_CHECKING

from pytest_openclaw.providers import processes
from pytest_openclaw.providers.answer import Answer
from pytest_openclaw.providers.claude import command_line
from pytest_openclaw.providers.claude.command_line import Access, stdin_of, takes_lines, wire_names
from pytest_openclaw.providers.claude.stream import Stream
from pytest_openclaw.providers.mcp_tools import what_broke
from pytest_openclaw.providers.processes import Program, ProgramProvider, new_folders
from pytest_openclaw.providers.server_errors import shortened
from pytest_openclaw.util.redact import Redactor
from pytest_openclaw.values import faults
from pytest_openclaw.values.faults import CallFailed
from pytest_openclaw.values.replies import Fault

if TYPE_CHECKING:
    from collections.abc import Iterator

    from pytest_openclaw.util.files import JsonObject
    from pytest_openclaw.values.protocols import ProviderSetup
    from pytest_openclaw.values.replies import Reply
    from pytest_openclaw.values.requests import Request

# Seconds that the CLI gets for its cleanup after the result line, before it is terminated.
TIDY_S = 2.0
NO_MESSAGES = "the Claude CLI takes no earlier messages: it sends each of the user's to its model."
CONTINUED = (
    "the CLI asked its model again by itself, after an answer that was empty or cut off, so the user's next"
    " message was not sent. Raise the prompt's max_output_tokens if it was cut off."
)


class ClaudeCodeCLI(ProgramProvider):
    """Claude models through the user's own `claude` command.

    As the kind of an ini endpoint, it uses the endpoint's server and key instead, without a login.
    """

    name = "claude_code_cli"

    def __init__(self, setup: ProviderSetup) -> None:
        """Find the address and the credentials; raise TargetError if the address is invalid."""
        super().__init__(setup)
        self._access = Access(setup)

    @property
    def endpoint(self) -> str:
        """The CLI, or the endpoint's base URL."""
        return (self._access.is_endpoint and self._access.shown_url) or self.name

    @property
    def is_local(self) -> bool:
        """Whether the CLI uses a server on this machine."""
        address = self._access.address
        return address is not None and address.is_loopback

    @property
    def is_free(self) -> bool:
        """Whether the CLI uses a server on this machine, which costs nothing."""
        return self.is_local

    @property
    def billed_at(self) -> str | None:
        """Anthropic, at list prices even under a subscription, or the server that the CLI uses."""
        address = self._access.address
        if address is None:
            return "https://api.anthropic.com"
        return address.base_url if address.is_public else None

    @property
    def secrets(self) -> tuple[str, ...]:
        """The keys and tokens in the environment, and a password in the base URL."""
        return self._access.secrets

    def describe(self) -> JsonObject:
        """The access, by key or by login, and the server."""
        return {
            "auth": "api_key" if self._access.is_bare else "login",
            "key_env": self._access.key_env,
            "base_url": self._access.shown_url,
        }

    @contextmanager
    def prepared(self, *arguments: str) -> Iterator[Program]:
        """Return the CLI with these arguments, in an empty folder."""
        with new_folders(*command_line.FOLDERS) as folder:
            yield Program(
                argv=(*command_line.find_command(self.setup), *arguments),
                env=self._access.environment(folder),
                cwd=folder / command_line.WORK,
            )

    async def ask(self, request: Request) -> Reply:
        """Run the CLI once, in an empty folder, and read its stream.

        Raises:
            CallFailed: there is no reply.
        """
        command, name = command_line.find_command(self.setup), self.setup.name
        if request.messages or request.history:
            raise CallFailed(faults.cannot_play(name, NO_MESSAGES))
        with new_folders(*command_line.FOLDERS) as folder:
            env = self._access.environment(folder) | command_line.variables(request)
            command_line.write_files(folder, request, environ=self.setup.environ, inherited=env)
            program = Program(
                argv=(*command, *command_line.arguments(request, folder, bare=self._access.is_bare)),
                env=env,
                cwd=folder / command_line.WORK,
                stdin=stdin_of(request.prompt, request.images, is_line=takes_lines(request)),
                keeps_stdin=bool(request.turns),
            )
            begin = partial(Answer, streaming=request.stream)
            stream = Stream(begin, offered=wire_names(request.tools), is_exchange=request.is_exchange)
            outcome = await self._converse(program, stream, request)
            if broken := what_broke(folder / command_line.OFFER):
                outcome = faults.broke(name, f"the server of the tools: {broken}")
        if isinstance(outcome, Fault):
            message = Redactor.of(self.secrets).text(outcome.message)
            raw, usage = outcome.raw or stream.raw(), stream.reply().usage
            raise CallFailed(replace(outcome, message=message, raw=raw, timing=stream.timing(), usage=usage))
        return outcome

    async def _converse(self, program: Program, stream: Stream, request: Request) -> Reply | Fault:
        running = await processes.start(self.setup.name, program)
        messages = [*request.turns]
        try:
            async with asyncio.timeout(request.timeout_s) as scope:
                while not stream.over and (line := await running.next_line()) is not None:
                    before = stream.answer
                    stream.receive_line(line)
                    if messages and stream.awaits_message:
                        text = messages.pop(0)
                        running.send(stdin_of(text, is_line=True))
                        stream.send_message(text)
                        if not messages:  # after the answer to the last one the CLI ends by itself
                            running.end_input()
                    if stream.answer is not before:  # each turn has its own timeout
                        scope.reschedule(asyncio.get_running_loop().time() + request.timeout_s)
                if messages and stream.continued:
                    return faults.cli_failed(self.setup.name, CONTINUED, stream.raw())
                if not stream.over:
                    await running.wait_exit(processes.DRAIN_S)
            if stream.result is not None:
                await running.wait_exit(TIDY_S)
        except TimeoutError:
            return faults.timed_out(self.setup.name, request.timeout_s, stream.raw())
        finally:
            await running.stop()
        if stream.over:
            return stream.outcome(self.setup.name, request, self._access)
        said = running.stderr or stream.printed
        words = f": {shortened(said)}" if said else ""
        return faults.program_ended(self.setup.name, "the CLI", running.exit_status, words, stream.raw())
