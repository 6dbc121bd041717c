"""Prepares a call of the Claude CLI: command, arguments, environment and scratch folder."""

from __future__ import annotations

import json
import os
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from pytest_openclaw.core.private import write_private
from pytest_openclaw.core.text import valid_text
from pytest_openclaw.providers.address import Address, parse_address
from pytest_openclaw.providers.anthropic_messages import image_block
from pytest_openclaw.providers.claude.tools import tool_arguments, tool_environment
from pytest_openclaw.providers.processes import find_program, new_folders

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence
    from pathlib import Path

    from pytest_openclaw.types.images import Image
    from pytest_openclaw.types.protocols import ProviderSetup
    from pytest_openclaw.types.requests import Request

COMMAND_ENV = "OPENCLAW_CLAUDE_COMMAND"
KEY_ENV = "ANTHROPIC_API_KEY"
BASE_URL_ENV = "ANTHROPIC_BASE_URL"
# The CLI sends nothing without a key, but a server of the user's own may need none.
NO_KEY = "no-key"

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
# They would change the request (the first even overrides --effort), or make the CLI assume that it runs
# inside another one.
_DROPPED = ("CLAUDE_CODE_EFFORT_LEVEL", "MAX_THINKING_TOKENS", "CLAUDECODE", "CLAUDE_CODE_ENTRYPOINT")
# Needed even in an emptied environment to reach the API from this network and system.
_NETWORK = ("HTTPS_PROXY", "HTTP_PROXY", "NO_PROXY", "NODE_EXTRA_CA_CERTS", "SSL_CERT_FILE", "SYSTEMROOT")
_SECRET_ENVS = (KEY_ENV, "ANTHROPIC_AUTH_TOKEN", "CLAUDE_CODE_OAUTH_TOKEN")


@dataclass(frozen=True)
class ClaudeScratch:
    """A folder for one call: an empty working directory, and a HOME and temporary files beside it."""

    folder: Path

    @property
    def cwd(self) -> Path:
        """The working directory, empty so that the CLI finds no project."""
        return self.folder / "work"

    @property
    def home(self) -> Path:
        """The HOME of a bare call."""
        return self.folder / "home"

    @property
    def tmp(self) -> Path:
        """The folder for temporary files."""
        return self.folder / "tmp"

    @property
    def system(self) -> Path:
        """The file of the system prompt; as an argument it could be too long and is visible in `ps`."""
        return self.folder / "system.txt"


@contextmanager
def scratch_folder(system: str | None = None) -> Iterator[ClaudeScratch]:
    """Create a scratch folder, and remove it at the end."""
    with new_folders("work", "home", "tmp") as folder:
        scratch = ClaudeScratch(folder)
        if system:
            write_private(scratch.system, valid_text(system).encode())
        yield scratch


@dataclass(frozen=True, kw_only=True)
class Access:
    """The server that the CLI uses, and the credentials.

    Attributes:
        is_endpoint: whether it is an endpoint of the user's own, not Anthropic or its replacement.
        address: the server's; None leaves it to the CLI.
        key_env: the variable that holds the key; an endpoint gets only the key that it names.
        environ: the user's environment.
    """

    is_endpoint: bool
    address: Address | None
    key_env: str | None
    environ: Mapping[str, str] = field(repr=False)

    @classmethod
    def of(cls, setup: ProviderSetup) -> Access:
        """Return the access for a provider's setup.

        Raises:
            TargetError: the address is invalid.
        """
        if setup.base_url is not None:
            address = parse_address(setup.base_url, source=setup.name)
            return cls(is_endpoint=True, address=address, key_env=setup.key_env, environ=setup.environ)
        own = setup.environ.get(BASE_URL_ENV, "").strip()
        return cls(
            is_endpoint=False,
            address=parse_address(own, source=BASE_URL_ENV) if own else None,
            key_env=setup.key_env or KEY_ENV,
            environ=setup.environ,
        )

    @property
    def key(self) -> str:
        """The key; empty if there is none."""
        return self.environ.get(self.key_env, "").strip() if self.key_env else ""

    @property
    def is_bare(self) -> bool:
        """Whether the CLI runs with a key and nothing of this machine, not with the user's login."""
        return self.is_endpoint or bool(self.key)

    @property
    def shown_url(self) -> str | None:
        """The server's address, without user and password."""
        return self.address.root_url if self.address else None

    @property
    def login(self) -> str:
        """The hint how to get credentials, as a sentence."""
        if not self.key_env:
            return "Name its key's variable in openclaw_endpoints."
        return f"Set {self.key_env}." if self.is_endpoint else f"Run `claude /login`, or set {self.key_env}."

    @property
    def secrets(self) -> tuple[str, ...]:
        """The keys and tokens in the environment, and a password in the address."""
        values = (self.key, *(self.environ.get(name, "") for name in _SECRET_ENVS))
        return tuple(filter(None, values)) + (self.address.secrets if self.address else ())

    def environment(self, scratch: ClaudeScratch) -> dict[str, str]:
        """Return the CLI's environment: an emptied one, or the user's own if the CLI uses their login."""
        switches = {"CLAUDE_CODE_TMPDIR": str(scratch.tmp), **_SWITCHES}
        if not self.is_bare:
            return {name: value for name, value in self.environ.items() if name not in _DROPPED} | switches
        kept = {name: value for name, value in self.environ.items() if name.upper() in _NETWORK}
        kept["PATH"] = self.environ.get("PATH", os.defpath)
        kept |= {"HOME": str(scratch.home), "USERPROFILE": str(scratch.home), "TMPDIR": str(scratch.tmp)}
        return kept | self._credentials() | switches

    def _credentials(self) -> dict[str, str]:
        if not (self.is_endpoint and self.address):
            own = {name: value for name, value in self.environ.items() if name.startswith("ANTHROPIC_")}
            return own | {KEY_ENV: self.key}
        # The CLI adds /v1 itself.
        scheme, _, rest = self.address.root_url.partition("://")
        at = "@" if self.address.userinfo else ""
        key = self.key if self.key_env else NO_KEY
        url = {BASE_URL_ENV: f"{scheme}://{self.address.userinfo}{at}{rest}"}
        return url | ({KEY_ENV: key} if key else {})


def find_command(setup: ProviderSetup) -> tuple[str, ...]:
    """Return the CLI's command, with an absolute path and the user's arguments.

    Raises:
        CallFailed: there is no such program.
    """
    command = setup.environ.get(COMMAND_ENV) or setup.options.get("claude_command") or "claude"
    install = f"the Claude CLI (npm install -g @anthropic-ai/claude-code), or set {COMMAND_ENV}"
    return find_program(setup, command, install)


def arguments(request: Request, scratch: ClaudeScratch, *, bare: bool) -> tuple[str, ...]:
    """Return the CLI's arguments; the only text of the request among them is the model's name."""
    return (
        *_ARGUMENTS,
        *(("--input-format", "stream-json") if takes_lines(request) else ()),
        *tool_arguments(request, scratch.folder),
        *(("--bare",) if bare else ()),
        *("--model", request.model),
        *(("--effort", request.thinking_level) if request.thinking_level else ()),
        *(("--system-prompt-file", str(scratch.system)) if request.system else ("--system-prompt", "")),
    )


def limits(request: Request) -> dict[str, str]:
    """Return the environment variables of one request; without a thinking level thinking is off."""
    limits = {
        "CLAUDE_CODE_MAX_OUTPUT_TOKENS": str(request.max_output_tokens),
        "API_TIMEOUT_MS": str(max(1, round(request.timeout_s * 1000))),
    }
    limits |= tool_environment(request)
    return limits if request.thinking_level else limits | {"MAX_THINKING_TOKENS": "0"}


def takes_lines(request: Request) -> bool:
    """Whether the CLI gets messages as lines of JSON: several of them, or one with pictures."""
    return bool(request.turns or request.images)


def stdin_of(text: str, images: Sequence[Image] = (), *, is_line: bool = False) -> bytes:
    """Return a message of the user for the CLI's input.

    Args:
        text: one that begins with `/` would be read as the CLI's own command.
        images: pictures of the message; only a line of JSON has them.
        is_line: whether it is a line of JSON; several messages are.
    """
    text = valid_text(f"\n{text}" if text.startswith("/") else text)
    if not is_line:
        return text.encode()
    content = [{"type": "text", "text": text}, *map(image_block, images)] if images else text
    line = {"type": "user", "message": {"role": "user", "content": content}}
    return json.dumps(line).encode() + b"\n"
