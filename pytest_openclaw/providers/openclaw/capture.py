"""Captures the first request of the installed OpenClaw, for each surface in its own folders."""

from __future__ import annotations

import asyncio
import getpass
import json
import os
import re
import secrets
import socket
import tempfile
import threading
from contextlib import suppress
from dataclasses import dataclass, replace
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import TYPE_CHECKING, Any

from pytest_openclaw.openclaw.captured import CONFIGURED, Masks, Sent, api_of, read_request
from pytest_openclaw.providers.openclaw.call import scratch_folder, write_config
from pytest_openclaw.providers.openclaw.capture_configs import (
    KEY,
    SECTIONS,
    configured_surface,
    release_surfaces,
    whole_config,
)
from pytest_openclaw.providers.openclaw.envelope import find_envelope
from pytest_openclaw.providers.openclaw.installed import PATIENCE_S, OpenClaw, find_openclaw
from pytest_openclaw.providers.wire_errors import load_object, shortened
from pytest_openclaw.util.errors import OpenClawError
from pytest_openclaw.util.signals import how_it_ended

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from pytest_openclaw.providers.openclaw.call import AgentScratch
    from pytest_openclaw.providers.openclaw.capture_configs import Wanted
    from pytest_openclaw.providers.openclaw.installed import Printed

_NAME = "capture-tools"
_RELEASE = re.compile(r"\b\d{4}\.\d+\.\d+(?:[-.][0-9A-Za-z]+)*")
_QUESTION = "Say OK."
_MOST_BODY_BYTES = 64 << 20


@dataclass(frozen=True, kw_only=True)
class Capture:
    """The captured requests.

    Attributes:
        release: such as `2026.9.6`.
        sent: by surface.
        notes: differences from the user's config.

    """

    release: str
    sent: Mapping[str, Sent]
    notes: tuple[str, ...] = ()


def capture(
    environ: Mapping[str, str],
    config: Path | None = None,
    *,
    model: str | None = None,
    agent: str | None = None,
) -> Capture:
    """Capture what the installed OpenClaw sends.

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
        self._command = find_openclaw(environ, name=_NAME)
        # Each start uses a whole core.
        self._room = asyncio.Semaphore(max(1, min(4, os.cpu_count() or 1)))

    async def all(self, config: Path | None, model: str | None, agent: str | None) -> Capture:
        release = await self._release()
        wanted = [*release_surfaces()]
        if config is not None:
            sections = await self._sections(config)
            try:
                wanted.append(configured_surface(CONFIGURED, sections, model=model, agent=agent))
            except ValueError as error:
                raise OpenClawError(f"{config}: {error}") from None
        found = await _gathered([self._receive(one) for one in wanted])
        return Capture(
            release=release,
            sent={one.surface: sent for one, sent in zip(wanted, found, strict=True)},
            notes=tuple(note for one in wanted for note in one.notes),
        )

    async def _receive(self, wanted: Wanted) -> Sent:
        with CaptureServer() as endpoint, scratch_folder(compiled=self._compiled) as scratch:
            async with self._room:
                write_config(scratch, whole_config(wanted, scratch, endpoint.url(wanted.api)))
                why = await self._until_received(endpoint, self._arguments(wanted, scratch), scratch)
            recorded = endpoint.recorded
            if recorded is None:
                raise OpenClawError(f"nothing was sent to the model for the surface {wanted.surface}: {why}")
            try:
                sent = read_request(recorded.api, recorded.body, _QUESTION)
            except ValueError as error:
                what = f"the request of the surface {wanted.surface}"
                raise OpenClawError(f"{what} has a form that is not known: {error}") from None
            masks = replace(_masks(scratch, self._environ), model=f"{wanted.provider}/{wanted.model}")
            return replace(
                sent,
                system=masks.text(sent.system),
                fields=masks.value(sent.fields),
                question=masks.value(dict(sent.question)),
            )

    def _arguments(self, wanted: Wanted, scratch: AgentScratch) -> tuple[str, ...]:
        if wanted.as_a_turn:
            turn = ("agent", "--local", "--session-id", _NAME, "--message", _QUESTION, "--json")
            return (*turn, "--timeout", str(round(PATIENCE_S)))
        once = ("agent", "exec", "--json", "--config", str(scratch.config), "--cwd", str(scratch.workspace))
        return (*once, "--timeout", str(round(PATIENCE_S)), _QUESTION)

    async def _until_received(
        self, endpoint: CaptureServer, arguments: Sequence[str], scratch: AgentScratch
    ) -> str:
        """Run OpenClaw until the endpoint has its request; return the error if it ends before."""
        try:
            printed = await self._openclaw(scratch).printed(*arguments, until=endpoint.received.is_set)
        except OpenClawError as error:
            return str(error)
        return f"OpenClaw {how_it_ended(printed.exit_status)}{_quoted(_words(printed))}"

    def _openclaw(self, scratch: AgentScratch, **more: str) -> OpenClaw:
        return OpenClaw(
            command=self._command,
            scratch=scratch,
            environ=self._environ,
            more={"OPENCLAW_CONFIG_PATH": str(scratch.config), "OPENCLAW_CONFIG_READONLY": "1", **more},
            patience_s=PATIENCE_S,
        )

    async def _release(self) -> str:
        with scratch_folder(compiled=self._compiled) as scratch:
            printed = await self._openclaw(scratch).printed("--version")
        found = _RELEASE.search(printed.stdout)
        if found is None:
            output = printed.stdout or printed.stderr
            raise OpenClawError(f"OpenClaw does not print its release{_quoted(output)}")
        return found[0]

    async def _sections(self, config: Path) -> dict[str, Any]:
        """Return the sections of the user's config as OpenClaw reads them, without secrets."""
        file = config.expanduser().absolute()
        if not file.is_file():
            raise OpenClawError(f"there is no config {config}")
        checked = await self._ask_config(file, "validate")
        if checked.get("valid") is not True:
            raise OpenClawError(f"{config}: OpenClaw refuses it{_quoted(_refusal(checked))}")
        output = await _gathered([self._ask_config(file, "get", section) for section in SECTIONS])
        return {
            section: value
            for section, value in zip(SECTIONS, output, strict=True)
            if not (value.get("ok") is False and "error" in value)  # the config is valid without this section
        }

    async def _ask_config(self, file: Path, *words: str) -> dict[str, Any]:
        async with self._room:
            with scratch_folder(compiled=self._compiled) as scratch:
                # An include, so that files relative to it are found; OpenClaw could write only this file.
                write_config(scratch, {"$include": str(file)})
                openclaw = self._openclaw(scratch, OPENCLAW_INCLUDE_ROOTS=str(file.parent))
                printed = await openclaw.printed("config", *words, "--json")
        output = printed.stdout or printed.stderr
        with suppress(ValueError):
            value, _ = json.JSONDecoder().raw_decode(output, max(output.find("{"), 0))
            if isinstance(value, dict):
                return value
        raise OpenClawError(f"OpenClaw does not print what is in {file}{_quoted(output)}")


async def _gathered(asking: Sequence[Any]) -> list[Any]:
    """Wait for all; if one fails, cancel and await the others before raising."""
    tasks = [asyncio.ensure_future(one) for one in asking]
    try:
        return await asyncio.gather(*tasks)
    finally:
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)


def _masks(scratch: AgentScratch, environ: Mapping[str, str]) -> Masks:
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
    return Masks(paths=paths, host=socket.gethostname(), user=user, secrets=(KEY,))


def _refusal(checked: Mapping[str, Any]) -> str:
    issues = [issue for issue in checked.get("issues") or [] if isinstance(issue, dict)]
    said = "; ".join(f"{issue.get('path') or '(root)'}: {issue.get('message')}" for issue in issues[:3])
    return said or str(checked.get("error", ""))


def _words(printed: Printed) -> str:
    """Return OpenClaw's reason from its JSON if there is one, else from its other output."""
    error = (find_envelope(printed.stdout, printed.stderr) or {}).get("error")
    message = error.get("message") if isinstance(error, dict) else None
    return message if isinstance(message, str) else printed.stderr


def _quoted(words: str) -> str:
    return f": {shortened(words)}" if words.strip() else "."


# --- the model's place ----------------------------------------------------------------------------


@dataclass(frozen=True, kw_only=True)
class Recorded:
    """A request: OpenClaw's name of its API, and its JSON."""

    api: str
    body: dict[str, Any]


class CaptureServer:
    """A model server on loopback that records the first request, and answers none; it runs while entered."""

    def __init__(self) -> None:
        self.recorded: Recorded | None = None
        self.received = threading.Event()
        # In the address, so that no other user of this machine can send a request.
        self._token = secrets.token_hex(16)

    def url(self, api: str) -> str:
        """Return the base URL for an API; OpenClaw adds the rest of the path."""
        root = f"http://127.0.0.1:{self._server.server_address[1]}/{self._token}"
        return root if api == "ollama" else f"{root}/v1"

    def __enter__(self) -> CaptureServer:
        """Start listening."""
        endpoint = self

        class Handler(BaseHTTPRequestHandler):
            def do_POST(self) -> None:
                endpoint._answer(self)

            def log_message(self, *_: object) -> None:
                return

        self._server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
        self._server.daemon_threads = True
        self._thread = threading.Thread(target=self._server.serve_forever, name="openclaw-endpoint")
        self._thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        """Close everything."""
        self._server.shutdown()
        self._server.server_close()
        self._thread.join()

    def _answer(self, handler: BaseHTTPRequestHandler) -> None:
        path = handler.path.partition("?")[0]
        length = handler.headers.get("content-length", "")
        api = api_of(path)
        if not path.startswith(f"/{self._token}/") or api is None or not length.isdigit():
            handler.send_error(404)
            return
        raw = handler.rfile.read(min(int(length), _MOST_BODY_BYTES))
        body = load_object(raw.decode("utf-8", "replace"))
        if body is None:
            handler.send_error(400)
            return
        if self.recorded is None:
            self.recorded = Recorded(api=api, body=body)
        self.received.set()
        handler.send_error(503)
