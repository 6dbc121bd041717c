"""Captures the first request of the installed OpenClaw, for each surface in its own folders.

The catalog of the installed release is captured once, and kept in the user's cache.
"""

from __future__ import annotations

import asyncio
import getpass
import hashlib
import json
import os
import re
import secrets
import socket
import sys
import tempfile
from datetime import UTC, datetime
from pathlib import Path
from typing import TYPE_CHECKING, Any

from pytest_openclaw.openclaw.captured import Masks, Sent, api_of, gather, read_request
from pytest_openclaw.openclaw.catalog import read_catalogue
from pytest_openclaw.providers.openclaw.call import environment, find_command, scratch_folder, write_config
from pytest_openclaw.providers.openclaw.capture_configs import (
    KEY,
    SECTIONS,
    configured_surface,
    release_surfaces,
    whole_config,
)
from pytest_openclaw.providers.openclaw.envelope import find_envelope
from pytest_openclaw.providers.openclaw.loopback import Incoming, Outgoing, listening
from pytest_openclaw.providers.processes import Program, Running, run
from pytest_openclaw.providers.wire import load_object, object_in, shortened, text_in
from pytest_openclaw.util.errors import OpenClawError
from pytest_openclaw.util.files import FOLDER_MODE, write_private
from pytest_openclaw.util.signals import how_it_ended
from pytest_openclaw.values.protocols import ProviderSetup

if TYPE_CHECKING:
    from collections.abc import Coroutine, Mapping, Sequence

    from pytest_openclaw.openclaw.catalog import Catalogue
    from pytest_openclaw.providers.openclaw.capture_configs import Wanted
    from pytest_openclaw.providers.openclaw.workspace import Scratch
    from pytest_openclaw.util.files import JsonObject

# A start takes 0.5 to 10 s, depending on the machine and its load.
PATIENCE_S = 180.0
_NAME = "capture-tools"
_RELEASE = re.compile(r"\b\d{4}\.\d+\.\d+(?:[-.][0-9A-Za-z]+)*")
_QUESTION = "Say OK."


def capture(
    environ: Mapping[str, str],
    config: Path | None = None,
    *,
    model: str | None = None,
    agent: str | None = None,
) -> JsonObject:
    """Capture what the installed OpenClaw sends; return the content of a catalog file.

    Args:
        environ: used only to find OpenClaw and its Node.
        config: the user's, which OpenClaw reads and never writes.
        model: a model of the config, as `provider/model`; None selects the agent's own.
        agent: an agent of the config; None selects OpenClaw's default.

    Raises:
        OpenClawError: OpenClaw is not installed, does not start, rejects the config, or sends nothing.
    """
    with tempfile.TemporaryDirectory(prefix="openclaw-", ignore_cleanup_errors=True) as compiled:
        return asyncio.run(_Capturing(environ, Path(compiled)).all(config, model, agent))


class _Capturing:
    def __init__(self, environ: Mapping[str, str], compiled: Path) -> None:
        self._environ = environ
        self._compiled = compiled
        self._command = find_command(ProviderSetup(name=_NAME, environ=environ))
        # Each start uses a whole core.
        self._room = asyncio.Semaphore(max(1, min(4, os.cpu_count() or 1)))

    async def all(self, config: Path | None, model: str | None, agent: str | None) -> JsonObject:
        with scratch_folder(compiled=self._compiled) as scratch:
            printed = await self._run(scratch, "--version")
        release = _RELEASE.search(printed.stdout)
        if release is None:
            output = printed.stdout or printed.stderr
            raise OpenClawError(f"OpenClaw does not print its release{_quoted(output)}")
        wanted = release_surfaces()
        if config is not None:
            sections = await self._sections(config)
            try:
                wanted.append(configured_surface(sections, model=model, agent=agent))
            except ValueError as error:
                raise OpenClawError(f"{config}: {error}") from None
        found = await _gathered([self._receive(one) for one in wanted])
        sent = {one.surface: request for one, request in zip(wanted, found, strict=True)}
        return gather(sent, release=f"openclaw-{release[0]}", taken=f"{datetime.now(UTC):%Y-%m-%d}")

    async def _receive(self, wanted: Wanted) -> Sent:
        endpoint = ModelEndpoint()
        async with self._room, listening(endpoint.answer) as root:
            with scratch_folder(compiled=self._compiled) as scratch:
                write_config(scratch, whole_config(wanted, scratch, endpoint.url(root, wanted.api)))
                why = await self._until_received(endpoint, wanted, scratch)
        what = f"the surface {wanted.surface}"
        if not endpoint.body:
            raise OpenClawError(f"nothing was sent to the model for {what}: {why}")
        masks = _masks(scratch, self._environ, f"{wanted.provider}/{wanted.model}")
        try:
            return read_request(endpoint.api, endpoint.body, _QUESTION).masked(masks)
        except ValueError as error:
            raise OpenClawError(f"the request of {what} has a form that is not known: {error}") from None

    async def _until_received(self, endpoint: ModelEndpoint, wanted: Wanted, scratch: Scratch) -> str:
        """Run OpenClaw until the endpoint has its request; return the error if it ends before."""
        once = ("exec", "--config", str(scratch.config), "--cwd", str(scratch.workspace), _QUESTION)
        turn = ("--local", "--session-id", _NAME, "--message", _QUESTION)
        more = ("--json", "--timeout", str(round(PATIENCE_S)))
        words = ("agent", *(turn if wanted.as_a_turn else once), *more)
        try:
            printed = await self._run(scratch, *words, until=endpoint.received)
        except OpenClawError as error:
            return str(error)
        # OpenClaw's reason is in its JSON if there is one, else in its other output.
        envelope = find_envelope(printed.stdout, printed.stderr) or {}
        reason = text_in(object_in(envelope.get("error")).get("message")) or printed.stderr
        return f"OpenClaw {how_it_ended(printed.exit_status)}{_quoted(reason)}"

    async def _run(
        self, scratch: Scratch, *arguments: str, until: asyncio.Event | None = None, **more: str
    ) -> Running:
        """Start OpenClaw with these arguments, and wait for its exit, or end it when `until` is set.

        Raises:
            OpenClawError: it cannot be started or does not exit.
        """
        own = {**environment(scratch, self._environ), "OPENCLAW_CONFIG_READONLY": "1", **more}
        program = Program(argv=(*self._command, *arguments), env=own, cwd=scratch.workspace)
        printed = await run(_NAME, program, within_s=PATIENCE_S, until=until)
        name = " ".join(["openclaw", *arguments[:2]])
        if printed.timed_out:
            words = f": {shortened(printed.stderr)}" if printed.stderr else ""
            raise OpenClawError(f"{name} did not end within {PATIENCE_S:.0f} s{words}")
        return printed

    async def _sections(self, config: Path) -> dict[str, Any]:
        """Return the sections of the user's config as OpenClaw reads them, without secrets."""
        file = config.expanduser().absolute()
        if not file.is_file():
            raise OpenClawError(f"there is no config {config}")
        checked = await self._ask_config(file, "validate")
        if checked.get("valid") is not True:
            raise OpenClawError(f"{config}: OpenClaw refuses it{_quoted(_refusal(checked))}")
        output = await _gathered([self._ask_config(file, "get", section) for section in SECTIONS])
        return dict(
            zip(SECTIONS, output, strict=True)
        )  # an error, of a section that is missing, has no key of it

    async def _ask_config(self, file: Path, *words: str) -> JsonObject:
        async with self._room:
            with scratch_folder(compiled=self._compiled) as scratch:
                # An include, so that files relative to it are found; OpenClaw could write only this file.
                write_config(scratch, {"$include": str(file)})
                printed = await self._run(
                    scratch, "config", *words, "--json", OPENCLAW_INCLUDE_ROOTS=str(file.parent)
                )
        output = printed.stdout or printed.stderr
        found = load_object(output[max(output.find("{"), 0) :])
        if found is None:
            raise OpenClawError(f"OpenClaw does not print what is in {file}{_quoted(output)}")
        return found


class ModelEndpoint:
    """Takes the place of the model: records the first request, and answers none.

    Attributes:
        api: OpenClaw's name of the request's API.
        body: its JSON; empty before it has arrived.
    """

    def __init__(self) -> None:
        self.api = ""
        self.body: JsonObject = {}
        self.received = asyncio.Event()
        # In the address, so that no other user of this machine can send a request.
        self._token = secrets.token_hex(16)

    def url(self, root: str, api: str) -> str:
        """Return the base URL for an API; OpenClaw adds the rest of the path."""
        return f"{root}/{self._token}" if api == "ollama" else f"{root}/{self._token}/v1"

    async def answer(self, incoming: Incoming) -> Outgoing:
        """Receive a request; see `listening`."""
        api = api_of(incoming.path)
        if api is None or not incoming.path.startswith(f"/{self._token}/"):
            return Outgoing(404)
        if not incoming.body:
            return Outgoing(400)
        if not self.body:
            self.api, self.body = api, incoming.body
        self.received.set()
        return Outgoing(503)


async def _gathered(asking: Sequence[Coroutine[Any, Any, Any]]) -> list[Any]:
    """Wait for all; if one fails, cancel and await the others before raising."""
    tasks = [asyncio.ensure_future(one) for one in asking]
    try:
        return await asyncio.gather(*tasks)
    finally:
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)


def _masks(scratch: Scratch, environ: Mapping[str, str], model: str) -> Masks:
    paths = {
        str(scratch.workspace): "<workspace>",
        str(scratch.folder / "home"): "<home>",
        str(scratch.folder / "state"): "<state>",
        str(scratch.folder): "<scratch>",
    }
    if len(home := environ.get("HOME", "").rstrip("/")) > 1:
        paths.setdefault(home, "<home>")
    try:
        user = getpass.getuser()
    except OSError:  # the user has no name
        user = ""
    return Masks(paths=paths, host=socket.gethostname(), user=user, model=model, key=KEY)


def _refusal(checked: Mapping[str, Any]) -> str:
    issues = [issue for issue in checked.get("issues") or [] if isinstance(issue, dict)]
    said = "; ".join(f"{issue.get('path') or '(root)'}: {issue.get('message')}" for issue in issues[:3])
    return said or str(checked.get("error", ""))


def _quoted(words: str) -> str:
    return f": {shortened(words)}" if words.strip() else "."


# --- the user's cache ---------------------------------------------------------------------------


def installed_catalogue(
    environ: Mapping[str, str], *, may_capture: bool, required: bool = False
) -> Catalogue | None:
    """Return the catalog of the installed OpenClaw; None if there is none, or it is not captured yet.

    Raises:
        OpenClawError: it cannot be captured, it is required and not installed, or the cached catalog cannot
            be read.
        OSError: the cache cannot be written.
    """
    try:
        command = find_command(ProviderSetup(name="--openclaw-surface", environ=environ))
    except OpenClawError:
        if required:
            raise
        return None
    file = cache_folder(environ) / f"openclaw-{_installation(command)}.json"
    if not file.is_file():
        if not may_capture:
            return None
        data = capture(environ)
        file.parent.mkdir(mode=FOLDER_MODE, parents=True, exist_ok=True)
        unfinished = file.with_suffix(f".{os.getpid()}")
        write_private(unfinished, json.dumps(data, indent=1, ensure_ascii=False).encode())
        unfinished.replace(file)  # another session may be reading it
    try:
        return read_catalogue(file)
    except ValueError as error:
        raise OpenClawError(f"{file} {error}; remove it") from None


def cache_folder(environ: Mapping[str, str]) -> Path:
    """Return our folder among the user's caches, as each system has it."""
    home = Path(environ.get("HOME") or environ.get("USERPROFILE") or "~").expanduser()
    usual = {"darwin": home / "Library" / "Caches", "win32": home / "AppData" / "Local"}
    named = environ.get("LOCALAPPDATA" if sys.platform == "win32" else "XDG_CACHE_HOME")
    return Path(named or usual.get(sys.platform, home / ".cache")) / "pytest-openclaw"


def _installation(command: tuple[str, ...]) -> str:
    """Return a hash of what is installed: an update changes the package's description, or the program."""
    facts = []
    for file in (path.resolve() for path in map(Path, command) if path.is_absolute() and path.is_file()):
        status = file.stat()
        packages = (folder / "package.json" for folder in file.parents)
        texts = (one.read_text("utf-8", "replace") for one in packages if one.is_file())
        facts.append([str(file), status.st_size, status.st_mtime_ns, next(texts, "")])
    return hashlib.sha256(json.dumps(facts).encode()).hexdigest()[:16]
