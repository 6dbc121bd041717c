"""Prepares a call of the Claude CLI: command, arguments, environment, and the files in its folder.

The CLI receives tools through our own MCP server (`mcp_tools.py`), which it starts.
"""

from __future__ import annotations

import json
import os
import re
import sys
from pathlib import Path
from typing import TYPE_CHECKING

from pytest_openclaw.providers.address import parse_address
from pytest_openclaw.providers.anthropic_messages import image_block
from pytest_openclaw.providers.mcp_tools import NAME, dump_offer
from pytest_openclaw.providers.processes import find_program
from pytest_openclaw.util.files import write_private
from pytest_openclaw.util.text import valid_text

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping, Sequence

    from pytest_openclaw.values.protocols import ProviderSetup
    from pytest_openclaw.values.replies import Image
    from pytest_openclaw.values.requests import Request
    from pytest_openclaw.values.tool_calls import Tool

COMMAND_ENV = "OPENCLAW_CLAUDE_COMMAND"
KEY_ENV = "ANTHROPIC_API_KEY"
BASE_URL_ENV = "ANTHROPIC_BASE_URL"
# The CLI sends nothing without a key, but a server of the user's own may need none.
NO_KEY = "no-key"
#: the CLI's prefix of our tools' names
PREFIX = f"mcp__{NAME}__"
#: the working directory, empty so that the CLI finds no project; the HOME of a bare call; temporary files
WORK, HOME, TMP = FOLDERS = ("work", "home", "tmp")
#: the file that our server reads, the one that names the server to the CLI, and the system prompt, which
#: would be visible in `ps` as an argument, and could be too long
OFFER, SERVERS, SYSTEM = "offer.json", "mcp.json", "system.txt"

_ARGUMENTS = (
    *("-p", "--output-format", "stream-json", "--verbose", "--include-partial-messages"),
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
_SERVER = ("-P", "-m", "pytest_openclaw.providers.mcp_tools")
# Variables that Python needs to start.
_NEEDED = ("PATH", "SYSTEMROOT", "LD_LIBRARY_PATH", "DYLD_LIBRARY_PATH", "PYTHONHOME")
# Larger results would be cut, or saved to a local file whose path the model receives.
_MOST_RESULT_TOKENS = 10_000_000


class Access:
    """The server that the CLI uses, and the credentials; an endpoint receives only the key that it names."""

    def __init__(self, setup: ProviderSetup) -> None:
        self._environ = setup.environ
        self.is_endpoint = setup.base_url is not None
        self.key_env = setup.key_env if self.is_endpoint else setup.key_env or KEY_ENV
        own = setup.environ.get(BASE_URL_ENV, "").strip() or None
        url, source = (setup.base_url, setup.name) if self.is_endpoint else (own, BASE_URL_ENV)
        self.address = None if url is None else parse_address(url, source=source)

    @property
    def key(self) -> str:
        """The key, or an empty text."""
        return self._environ.get(self.key_env, "").strip() if self.key_env else ""

    @property
    def is_bare(self) -> bool:
        """Whether the CLI runs with a key, isolated from this machine, and not with the user's login."""
        return self.is_endpoint or bool(self.key)

    @property
    def shown_url(self) -> str | None:
        """The server's address, without user and password."""
        return self.address.root_url if self.address else None

    @property
    def login(self) -> str:
        """A sentence with a hint how to get credentials."""
        if not self.key_env:
            return "Name its key's variable in openclaw_endpoints."
        return f"Set {self.key_env}." if self.is_endpoint else f"Run `claude /login`, or set {self.key_env}."

    @property
    def secrets(self) -> tuple[str, ...]:
        """The keys and tokens in the environment, and a password in the address."""
        values = (self.key, *(self._environ.get(name, "") for name in _SECRET_ENVS))
        return tuple(filter(None, values)) + (self.address.secrets if self.address else ())

    def environment(self, folder: Path) -> dict[str, str]:
        """Return the CLI's environment: an emptied one, or the user's own if the CLI uses their login."""
        tmp = str(folder / TMP)
        switches = {"CLAUDE_CODE_TMPDIR": tmp, **_SWITCHES}
        if not self.is_bare:
            return {name: value for name, value in self._environ.items() if name not in _DROPPED} | switches
        home = str(folder / HOME)
        kept = {name: value for name, value in self._environ.items() if name.upper() in _NETWORK}
        kept |= {
            "PATH": self._environ.get("PATH", os.defpath),
            "HOME": home,
            "USERPROFILE": home,
            "TMPDIR": tmp,
        }
        return kept | self._credentials() | switches

    def _credentials(self) -> dict[str, str]:
        if not (self.is_endpoint and self.address):
            own = {name: value for name, value in self._environ.items() if name.startswith("ANTHROPIC_")}
            return own | {KEY_ENV: self.key}
        key = self.key if self.key_env else NO_KEY
        # The CLI adds /v1 itself.
        return {BASE_URL_ENV: self.address.root_url} | ({KEY_ENV: key} if key else {})


def find_command(setup: ProviderSetup) -> tuple[str, ...]:
    """Return the CLI's command, with an absolute path and the user's arguments."""
    command = setup.environ.get(COMMAND_ENV) or "claude"
    install = f"the Claude CLI (npm install -g @anthropic-ai/claude-code), or set {COMMAND_ENV}"
    return find_program(setup, command, install)


def wire_names(tools: Iterable[Tool]) -> dict[str, str]:
    """Return the names under which the CLI offers the tools → the tools' own names."""
    return {PREFIX + re.sub(r"[^a-zA-Z0-9_-]", "_", tool.name): tool.name for tool in tools}


def arguments(request: Request, folder: Path, *, bare: bool) -> tuple[str, ...]:
    """Return the CLI's arguments; the only text of the request among them is the model's name."""
    return (
        *_ARGUMENTS,
        *(("--input-format", "stream-json") if takes_lines(request) else ()),
        *(("--mcp-config", str(folder / SERVERS)) if request.tools else ()),
        *(("--allowedTools", f"mcp__{NAME}") if request.world else ()),
        *("--max-turns", str(request.world.steps if request.world else 1)),
        *(("--bare",) if bare else ()),
        *("--model", request.model),
        *(("--effort", request.thinking_level) if request.thinking_level else ()),
        *(("--system-prompt-file", str(folder / SYSTEM)) if request.system else ("--system-prompt", "")),
    )


def variables(request: Request) -> dict[str, str]:
    """Return the environment variables of one request; without a thinking level, thinking is off.

    With tools, the CLI waits for our server, and forwards complete results.
    """
    milliseconds = str(max(1, round(request.timeout_s * 1000)))
    found = {
        "CLAUDE_CODE_MAX_OUTPUT_TOKENS": str(request.max_output_tokens),
        "API_TIMEOUT_MS": milliseconds,
    }
    if request.tools:
        found |= {
            "MCP_CONNECTION_NONBLOCKING": "0",
            "MCP_TIMEOUT": milliseconds,
            "MCP_CONNECT_TIMEOUT_MS": milliseconds,
            "MCP_TOOL_TIMEOUT": milliseconds,
            "MAX_MCP_OUTPUT_TOKENS": str(_MOST_RESULT_TOKENS),
            "ENABLE_TOOL_SEARCH": "false",
        }
    return found if request.thinking_level else found | {"MAX_THINKING_TOKENS": "0"}


def write_files(
    folder: Path, request: Request, *, environ: Mapping[str, str], inherited: Iterable[str]
) -> None:
    """Write the files of a request: its system prompt, and the input of the CLI and our server for its tools.

    Our server receives only the variables of `environ` that Python needs to start. The CLI would pass on its
    own variables, including keys, so the `inherited` variables are emptied.
    """
    if request.system:
        write_private(folder / SYSTEM, valid_text(request.system).encode())
    if not request.tools:
        return
    write_private(folder / OFFER, dump_offer(request.tools, request.world).encode())
    needed = {name: environ[name] for name in _NEEDED if name in environ}
    import_path = os.pathsep.join(path or str(Path.cwd()) for path in sys.path)
    server = {
        "type": "stdio",
        "command": sys.executable,
        "args": [*_SERVER, str(folder / OFFER)],
        "env": {**dict.fromkeys(inherited, ""), **needed, "PYTHONPATH": import_path},
        # All tools in the first request, as in OpenClaw.
        "alwaysLoad": True,
    }
    write_private(folder / SERVERS, json.dumps({"mcpServers": {NAME: server}}).encode())


def takes_lines(request: Request) -> bool:
    """Whether the CLI receives messages as lines of JSON: several messages, or a message with images."""
    return bool(request.turns or request.images)


def stdin_of(text: str, images: Sequence[Image] = (), *, is_line: bool = False) -> bytes:
    """Return a message of the user for the CLI's input."""
    text = valid_text(f"\n{text}" if text.startswith("/") else text)
    if not is_line:
        return text.encode()
    content = [{"type": "text", "text": text}, *map(image_block, images)] if images else text
    line = {"type": "user", "message": {"role": "user", "content": content}}
    return json.dumps(line).encode() + b"\n"
