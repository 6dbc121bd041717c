"""`claude_code_cli`: the installed Claude CLI, one `claude -p` per request.

With an API key, the CLI runs bare, in an emptied environment with its own HOME. Without a key, it runs with
the user's login and HOME, but without the settings, servers, tools and instructions there, so that the model
is measured and not the machine. The CLI itself reports whether it is logged in.

The CLI always streams, has no temperature, and adds two short texts before the prompt: its identity and the
current date. With a login, CLI 2.1.332 also adds a system message about its environment after the prompt;
`CLAUDE_CODE_SIMPLE` would turn it off, but then the CLI does not read the login.

It receives tools from our MCP server, which also answers the calls of a scripted exchange, because the CLI
runs its own tool loop.
"""

from __future__ import annotations

import asyncio
import json
import os
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import replace
from functools import cached_property, partial
from pathlib import Path
from typing import TYPE_CHECKING

from pytest_openclaw import __version__
from pytest_openclaw.providers import processes
from pytest_openclaw.providers.address import parse_address
from pytest_openclaw.providers.answer import Answer
from pytest_openclaw.providers.anthropic_messages import image_block
from pytest_openclaw.providers.claude_stream import NAME, Stream, wire_names
from pytest_openclaw.providers.loopback import Outgoing, listening
from pytest_openclaw.providers.processes import Program, ProgramProvider, find_program, new_folders
from pytest_openclaw.providers.server_errors import shortened
from pytest_openclaw.providers.wire import call_in, function_of, object_in, text_in
from pytest_openclaw.util.bounded import in_thread
from pytest_openclaw.util.errors import OpenClawError
from pytest_openclaw.util.files import JsonObject, write_private
from pytest_openclaw.util.text import valid_text, valid_value
from pytest_openclaw.values import faults
from pytest_openclaw.values.faults import CallFailed
from pytest_openclaw.values.protocols import ProviderSetup
from pytest_openclaw.values.replies import Fault, Image, Reply
from pytest_openclaw.values.requests import Request, in_new_conversation
from pytest_openclaw.values.tool_calls import Tool

if TYPE_CHECKING:
    from pytest_openclaw.values.worlds import World
    from pytest_openclaw.worlds.playing import Playing

# Seconds that the CLI gets for its cleanup after the result line, before it is terminated.
TIDY_S = 2.0
NO_MESSAGES = "the Claude CLI takes no earlier messages: it sends each of the user's to its model."
CONTINUED = (
    "the CLI asked its model again by itself, after an answer that was empty or cut off, so the user's next"
    " message was not sent. Raise the prompt's max_output_tokens if it was cut off."
)
# Answers beyond `--max-turns`, such as those that the CLI continues by itself.
_SPARE_ANSWERS = 8
COMMAND_ENV = "OPENCLAW_CLAUDE_COMMAND"
KEY_ENV = "ANTHROPIC_API_KEY"
BASE_URL_ENV = "ANTHROPIC_BASE_URL"
# The CLI sends nothing without a key, but a server of the user's own may need none.
NO_KEY = "no-key"
#: the working directory, empty so that the CLI finds no project; the HOME of a bare call; temporary files
WORK, HOME, TMP = FOLDERS = ("work", "home", "tmp")
#: the file that names our server to the CLI, and the system prompt, which would be visible in `ps` as an
#: argument, and could be too long
SERVERS, SYSTEM = "mcp.json", "system.txt"

_ARGUMENTS = (
    *("-p", "--input-format", "stream-json", "--output-format", "stream-json"),
    *("--verbose", "--include-partial-messages"),
    *("--no-session-persistence", "--strict-mcp-config", "--disable-slash-commands"),
    *("--setting-sources", "", "--tools", ""),
)
_SWITCHES = {
    "CLAUDE_CODE_DISABLE_NONESSENTIAL_TRAFFIC": "1",
    "DISABLE_TELEMETRY": "1",
    "DISABLE_AUTOUPDATER": "1",
    "DISABLE_ERROR_REPORTING": "1",
    "CLAUDE_CODE_ATTRIBUTION_HEADER": "0",
    # The run makes and counts retries; the CLI must not retry, fall back from streaming, or change the model.
    "CLAUDE_CODE_MAX_RETRIES": "0",
    "CLAUDE_CODE_DISABLE_NONSTREAMING_FALLBACK": "1",
    "CLAUDE_CODE_DISABLE_REFUSAL_FALLBACK": "1",
    "CLAUDE_CODE_DISABLE_REFUSAL_RETRY": "1",
    "CLAUDE_CODE_NO_MODEL_FALLBACK": "1",
    # Otherwise a prompt with @some/path would include that local file, even without tools.
    "CLAUDE_CODE_DISABLE_ATTACHMENTS": "1",
    "CLAUDE_CODE_DISABLE_CLAUDE_MDS": "1",
}
# These would change the request (the first even overrides --effort), or make the CLI assume that it runs
# inside another one.
_DROPPED = ("CLAUDE_CODE_EFFORT_LEVEL", "MAX_THINKING_TOKENS", "CLAUDECODE", "CLAUDE_CODE_ENTRYPOINT")
# Needed even in an emptied environment to reach the API from this network and system.
_NETWORK = ("HTTPS_PROXY", "HTTP_PROXY", "NO_PROXY", "NODE_EXTRA_CA_CERTS", "SSL_CERT_FILE", "SYSTEMROOT")
_SECRET_ENVS = (KEY_ENV, "ANTHROPIC_AUTH_TOKEN", "CLAUDE_CODE_OAUTH_TOKEN")
# Larger results would be cut, or saved to a local file whose path the model receives.
_MOST_RESULT_TOKENS = 10_000_000


class ClaudeCodeCLI(ProgramProvider):
    """Claude models through the user's own `claude` command.

    As the kind of an ini endpoint, it uses only the endpoint's server and key, without a login.
    """

    name = "claude_code_cli"

    def __init__(self, setup: ProviderSetup) -> None:
        """Find the address and the credentials; raise TargetError if the address is invalid."""
        super().__init__(setup)
        self.is_endpoint = setup.base_url is not None
        self.key_env = setup.key_env if self.is_endpoint else setup.key_env or KEY_ENV
        own = setup.environ.get(BASE_URL_ENV, "").strip() or None
        url, source = (setup.base_url, setup.name) if self.is_endpoint else (own, BASE_URL_ENV)
        self.address = None if url is None else parse_address(url, source=source)
        self.shown_url = self.address.root_url if self.address else None

    @property
    def endpoint(self) -> str:
        """The CLI, or the endpoint's base URL."""
        return (self.is_endpoint and self.shown_url) or self.name

    @property
    def is_local(self) -> bool:
        """Whether the CLI uses a server on this machine."""
        return self.address is not None and self.address.is_loopback

    @property
    def is_free(self) -> bool:
        """Whether the CLI uses a server on this machine, which costs nothing."""
        return self.is_local

    @property
    def billed_at(self) -> str | None:
        """Anthropic, at list prices even under a subscription, or the server that the CLI uses."""
        if self.address is None:
            return "https://api.anthropic.com"
        return self.address.base_url if self.address.is_public else None

    @property
    def key(self) -> str:
        """The key, or an empty text."""
        return self.setup.environ.get(self.key_env, "").strip() if self.key_env else ""

    @property
    def is_bare(self) -> bool:
        """Whether the CLI runs with a key, isolated from this machine, and not with the user's login."""
        return self.is_endpoint or bool(self.key)

    @property
    def secrets(self) -> tuple[str, ...]:
        """The keys and tokens in the environment, and a password in the base URL."""
        values = (self.key, *(self.setup.environ.get(name, "") for name in _SECRET_ENVS))
        return tuple(filter(None, values)) + (self.address.secrets if self.address else ())

    def describe(self) -> JsonObject:
        """The access, by key or by login, and the server."""
        auth = "api_key" if self.is_bare else "login"
        return {"auth": auth, "key_env": self.key_env, "base_url": self.shown_url}

    @contextmanager
    def prepared(self, *arguments: str) -> Iterator[Program]:
        """Return the CLI with these arguments, in an empty folder."""
        with new_folders(*FOLDERS) as folder:
            argv = (*self._command(), *arguments)
            yield Program(argv=argv, env=self._environment(folder), cwd=folder / WORK)

    async def ask(self, request: Request) -> Reply:
        """Run the CLI once, in an empty folder, and read its stream.

        Raises:
            CallFailed: there is no reply.
        """
        command, name = self._command(), self.setup.name
        if request.messages or request.history:
            raise CallFailed(faults.cannot_play(name, NO_MESSAGES))
        if any(in_new_conversation(text) for text in request.turns):
            raise CallFailed(
                faults.cannot_play(name, "a message begins a new conversation, which needs another run.")
            )
        with new_folders(*FOLDERS) as folder:
            program = Program(
                argv=(*command, *_arguments(request, folder, bare=self.is_bare)),
                env=_with_variables(request, self._environment(folder)),
                cwd=folder / WORK,
                stdin=_line_of(request.prompt, request.images),
                keeps_stdin=bool(request.turns),
            )
            begin = partial(Answer, streaming=request.stream)
            stream = Stream(begin, offered=wire_names(request.tools), is_exchange=request.is_exchange)
            server = ToolServer(request.tools, request.world)
            async with listening(server.answer) as (url, token):
                write_files(folder, request, url, token)
                outcome = await self._converse(program, stream, request)
            if server.broken:
                outcome = faults.broke(name, f"the server of the tools: {server.broken}")
        if isinstance(outcome, Fault):
            raw, usage = outcome.raw or stream.raw(), stream.reply().usage
            raise CallFailed(replace(outcome, raw=raw, timing=stream.timing(), usage=usage))
        return outcome

    async def _converse(self, program: Program, stream: Stream, request: Request) -> Reply | Fault:
        name = self.setup.name
        running = await processes.start(name, program)
        messages = [*request.turns]
        n_left = _SPARE_ANSWERS + (request.world.steps if request.world else 1) * (1 + len(messages))
        try:
            async with asyncio.timeout(request.timeout_s) as scope:
                while not stream.over and (line := await running.next_line()) is not None:
                    before = stream.answer
                    stream.receive_line(line)
                    if messages and stream.awaits_message:
                        text = messages.pop(0)
                        running.send(_line_of(text))
                        stream.send_message(text)
                        if not messages:  # after the answer to the last one the CLI ends by itself
                            running.end_input()
                    if stream.answer is not before:  # each turn has its own timeout
                        if (n_left := n_left - 1) < 0:
                            return faults.cli_failed(name, "the CLI sends more answers than were asked for.")
                        scope.reschedule(asyncio.get_running_loop().time() + request.timeout_s)
                if messages and stream.continued:
                    return faults.cli_failed(name, CONTINUED)
                if not stream.over:
                    await running.wait_exit(processes.DRAIN_S)
            if stream.result is not None:
                await running.wait_exit(TIDY_S)
        except TimeoutError:
            return faults.timed_out(name, request.timeout_s)
        finally:
            await running.stop()
        if stream.over:
            where = self.shown_url or "the Anthropic API"
            return stream.outcome(name, request.model, where=where, login=self._login)
        said = running.stderr or stream.printed
        words = f": {shortened(said)}" if said else ""
        return faults.program_ended(name, "the CLI", running.exit_status, words)

    def _command(self) -> tuple[str, ...]:
        install = f"the Claude CLI (npm install -g @anthropic-ai/claude-code), or set {COMMAND_ENV}"
        return find_program(self.setup, self.setup.environ.get(COMMAND_ENV) or "claude", install)

    @property
    def _login(self) -> str:
        if not self.key_env:
            return "Name its key's variable in openclaw_endpoints."
        return f"Set {self.key_env}." if self.is_endpoint else f"Run `claude /login`, or set {self.key_env}."

    def _environment(self, folder: Path) -> dict[str, str]:
        """Return the CLI's environment: an emptied one, or the user's own if the CLI uses their login."""
        environ, home, tmp = self.setup.environ, str(folder / HOME), str(folder / TMP)
        switches = {"CLAUDE_CODE_TMPDIR": tmp, **_SWITCHES}
        if not self.is_bare:
            return {name: value for name, value in environ.items() if name not in _DROPPED} | switches
        kept = {name: value for name, value in environ.items() if name.upper() in _NETWORK}
        kept |= {"PATH": environ.get("PATH", os.defpath), "HOME": home, "USERPROFILE": home, "TMPDIR": tmp}
        if self.is_endpoint and self.address:  # the CLI adds /v1 itself
            key = self.key if self.key_env else NO_KEY
            kept |= {BASE_URL_ENV: self.address.root_url} | ({KEY_ENV: key} if key else {})
        else:
            kept |= {name: value for name, value in environ.items() if name.startswith("ANTHROPIC_")}
            kept[KEY_ENV] = self.key
        return kept | switches


def _arguments(request: Request, folder: Path, *, bare: bool) -> tuple[str, ...]:
    """Return the CLI's arguments; the only text of the request among them is the model's name."""
    return (
        *_ARGUMENTS,
        *(("--mcp-config", str(folder / SERVERS)) if request.tools else ()),
        *(("--allowedTools", f"mcp__{NAME}") if request.world else ()),
        *("--max-turns", str(request.world.steps if request.world else 1)),
        *(("--bare",) if bare else ()),
        *("--model", request.model),
        *(("--effort", request.thinking_level) if request.thinking_level else ()),
        *(("--system-prompt-file", str(folder / SYSTEM)) if request.system else ("--system-prompt", "")),
    )


def _with_variables(request: Request, environ: Mapping[str, str]) -> dict[str, str]:
    """Return the environment with the variables of one request; without a thinking level, thinking is off.

    CLI 2.1.332 leaves it on for models that cannot turn it off, such as Claude Opus 5.5, with its own effort.
    With tools, the CLI waits for our server, which no proxy reaches, and forwards complete results.
    """
    milliseconds = str(max(1, round(request.timeout_s * 1000)))
    found = {
        **environ,
        "CLAUDE_CODE_MAX_OUTPUT_TOKENS": str(request.max_output_tokens),
        "API_TIMEOUT_MS": milliseconds,
    }
    if request.tools:
        waits = ("MCP_TIMEOUT", "MCP_CONNECT_TIMEOUT_MS", "MCP_TOOL_TIMEOUT")
        no_proxy = environ.get("no_proxy") or environ.get("NO_PROXY")
        found |= {
            **dict.fromkeys(waits, milliseconds),
            **dict.fromkeys(("NO_PROXY", "no_proxy"), f"{no_proxy},127.0.0.1" if no_proxy else "127.0.0.1"),
            "MCP_CONNECTION_NONBLOCKING": "0",
            "MAX_MCP_OUTPUT_TOKENS": str(_MOST_RESULT_TOKENS),
            "ENABLE_TOOL_SEARCH": "false",
        }
    return found if request.thinking_level else found | {"MAX_THINKING_TOKENS": "0"}


def write_files(folder: Path, request: Request, url: str, token: str) -> None:
    """Write the files of a request: its system prompt, and where the server of its tools is."""
    if request.system:
        write_private(folder / SYSTEM, valid_text(request.system).encode())
    if request.tools:
        headers = {"Authorization": f"Bearer {token}"}
        # All tools in the first request, as in OpenClaw.
        server = {"type": "http", "url": f"{url}/mcp", "headers": headers, "alwaysLoad": True}
        write_private(folder / SERVERS, json.dumps({"mcpServers": {NAME: server}}).encode())


def _line_of(text: str, images: Sequence[Image] = ()) -> bytes:
    """Return a message of the user for the CLI's input."""
    text = valid_text(f"\n{text}" if text.startswith("/") else text)
    content = [{"type": "text", "text": text}, *map(image_block, images)] if images else text
    line = {"type": "user", "message": {"role": "user", "content": content}}
    return json.dumps(line).encode() + b"\n"


# --- the server of the tools ----------------------------------------------------------------------

NOT_PLAYED = "Nothing is executed here: one question was asked, and the call is its answer."
_NO_METHOD = -32601


class ToolServer:
    """An MCP server of tools: JSON-RPC 2.0, one message per request.

    See https://modelcontextprotocol.io/specification/2025-06-18/basic/transports. No call is ever executed:
    calls are answered from the scripted world, one at a time, or refused without a world.

    Attributes:
        broken: an error of our own, as one line; empty without an error.
    """

    def __init__(self, tools: Sequence[Tool], world: World | None) -> None:
        self.broken = ""
        self._tools, self._world = tools, world
        self._lock = asyncio.Lock()

    async def answer(self, _path: str, message: JsonObject | None) -> Outgoing:
        """Return the answer to a message; a notification needs none."""
        if message is None:  # it asks for a stream of the server's own messages
            return Outgoing(405)
        if "id" not in message:
            return Outgoing(202, body=b"")
        try:
            result = await self._result(text_in(message, "method"), object_in(message, "params"))
        except Exception as error:
            text = str(error) if isinstance(error, OpenClawError) else f"{type(error).__name__}: {error}"
            self.broken = " ".join(text.split())
            return Outgoing(500)
        return Outgoing(200, body=json.dumps({"jsonrpc": "2.0", "id": message["id"], **result}).encode())

    async def _result(self, method: str, params: JsonObject) -> JsonObject:
        result: JsonObject = {}
        match method:
            case "initialize":
                result = {
                    "protocolVersion": params.get("protocolVersion"),
                    "capabilities": {"tools": {}},
                    "serverInfo": {"name": NAME, "version": __version__},
                }
            case "ping":
                pass
            case "tools/list":
                result = {"tools": valid_value([function_of(tool, "inputSchema") for tool in self._tools])}
            case "tools/call":
                call = call_in(params, params.get("arguments") or {})
                text = NOT_PLAYED
                if self._world is not None:
                    async with self._lock:
                        text = await in_thread(lambda: self._playing.answer(call))
                # OpenClaw returns its errors as ordinary text, so they are not marked as errors.
                result = {"content": [{"type": "text", "text": text}], "isError": self._world is None}
            case _:
                return {"error": {"code": _NO_METHOD, "message": f"unknown method {method}"}}
        return {"result": result}

    @cached_property
    def _playing(self) -> Playing:
        # Imported here: a run without worlds does not need this module.
        from pytest_openclaw.worlds.playing import Playing

        assert self._world is not None, "a call is answered"
        return Playing(self._world, self._tools)
