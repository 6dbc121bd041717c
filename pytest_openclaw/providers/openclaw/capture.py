"""Captures the first request of the installed OpenClaw on each surface, and makes a catalog of the requests.

The catalog has the form of the shipped catalog. Placeholders replace personal and temporary data: names,
paths, times, ids. The catalog of the installed release is captured once, and kept in the user's cache.
"""

from __future__ import annotations

import asyncio
import getpass
import hashlib
import json
import os
import re
import socket
import tempfile
from collections.abc import Mapping
from contextlib import suppress
from dataclasses import asdict
from datetime import UTC, datetime
from pathlib import Path
from typing import Any, NamedTuple, cast

from pytest_openclaw.openclaw.catalog import DIRECT, Catalogue, read_catalogue
from pytest_openclaw.providers.loopback import Outgoing, listening
from pytest_openclaw.providers.openclaw.call import (
    Scratch,
    environment,
    find_command,
    find_envelope,
    scratch_folder,
    write_config,
)
from pytest_openclaw.providers.openclaw_agent import messages_of, text_of
from pytest_openclaw.providers.processes import Program, Running, run
from pytest_openclaw.providers.server_errors import shortened
from pytest_openclaw.providers.wire import object_in, objects_in, text_in
from pytest_openclaw.util.errors import OpenClawError
from pytest_openclaw.util.files import (
    DEEPEST,
    FOLDER_MODE,
    JsonObject,
    cache_folder,
    is_deeper,
    write_private,
)
from pytest_openclaw.util.redact import Redactor
from pytest_openclaw.util.signals import how_it_ended
from pytest_openclaw.util.text import masking, valid_value
from pytest_openclaw.values.protocols import ProviderSetup
from pytest_openclaw.values.tool_calls import Tool

# A start takes 0.5 to 10 s, depending on the machine and its load.
PATIENCE_S = 180.0
API = "openai-completions"
#: The default, and two profiles with all tools sent, which describe the tools behind its bridge.
POLICIES: Mapping[str, JsonObject] = {
    DIRECT: {},
    "coding": {"profile": "coding", "toolSearch": False},
    "full": {"profile": "full", "toolSearch": False},
}
_NAME, _MODEL = "capture-tools", "model"
_RELEASE = re.compile(r"\b\d{4}\.\d{1,9}\.\d{1,9}(?:[-.][0-9A-Za-z]{1,20}){0,4}")
_QUESTION = "Say OK."


def capture() -> JsonObject:
    """Capture the requests of the installed OpenClaw; return the content of a catalog file.

    Raises:
        OpenClawError: OpenClaw is not installed, does not start, or sends nothing.
    """
    redactor = Redactor.of_run((), os.environ)
    try:
        with masking(redactor.text):
            return cast("JsonObject", redactor.value(asyncio.run(_capture())))
    except OpenClawError as error:
        raise OpenClawError(redactor.text(str(error))) from None


async def _capture() -> JsonObject:
    command = find_command(ProviderSetup(name=_NAME, environ=os.environ))
    with tempfile.TemporaryDirectory(prefix="openclaw-", ignore_cleanup_errors=True) as kept:
        with scratch_folder(within=Path(kept)) as scratch:
            printed = await _run(scratch, (*command, "--version"))
        release = _RELEASE.search(printed.stdout)
        if release is None:
            output = printed.stdout or printed.stderr
            raise OpenClawError(f"OpenClaw does not print its release{_quoted(output)}")
        sent = {}
        for surface, policy in POLICIES.items():
            with scratch_folder(within=Path(kept)) as scratch:
                try:
                    sent[surface] = await _first_request(scratch, policy, command)
                except (OpenClawError, ValueError) as error:
                    raise OpenClawError(f"the surface {surface} cannot be captured: {error}") from None
    return gather(sent, release=f"openclaw-{release[0]}", taken=f"{datetime.now(UTC):%Y-%m-%d}")


async def _first_request(scratch: Scratch, policy: JsonObject, command: tuple[str, ...]) -> Sent:
    """Run OpenClaw with this policy of tools until it has sent a request, which gets no answer."""
    body: JsonObject = {}
    received = asyncio.Event()

    async def answer(_path: str, sent: JsonObject | None) -> Outgoing:
        if sent and not body:
            body.update(sent)
            received.set()
        return Outgoing(503)

    async with listening(answer) as (url, token):
        model = {"id": _MODEL, "reasoning": False, "input": ["text"], "maxTokens": 8192}
        write_config(scratch, _NAME, model, url=f"{url}/v1", key=token, api=API, tools=policy)
        paths = ("--config", str(scratch.config), "--cwd", str(scratch.workspace))
        words = ("agent", "exec", *paths, _QUESTION, "--json", "--timeout", str(round(PATIENCE_S)))
        printed = await _run(scratch, (*command, *words), until=received)
    if not body:
        # OpenClaw's reason is in its JSON if there is one, else in its other output.
        envelope = find_envelope(printed.stdout) or {}
        reason = text_in(object_in(envelope.get("error")).get("message")) or printed.stderr
        raise OpenClawError(
            f"it sent no request; OpenClaw {how_it_ended(printed.exit_status)}{_quoted(reason)}"
        )
    if is_deeper(body, DEEPEST - 2):  # a catalog has it two levels deeper
        raise OpenClawError("its request is nested too deeply")
    return read_request(valid_value(body), _QUESTION, _placeholders(scratch))


async def _run(scratch: Scratch, argv: tuple[str, ...], until: asyncio.Event | None = None) -> Running:
    program = Program(argv=argv, env=environment(scratch, os.environ), cwd=scratch.workspace)
    printed = await run(_NAME, program, within_s=PATIENCE_S, until=until)
    if printed.timed_out:
        raise OpenClawError(f"openclaw did not end within {PATIENCE_S:.0f} s{_quoted(printed.stderr)}")
    return printed


def _quoted(words: str) -> str:
    return f": {shortened(words)}" if words.strip() else "."


# --- a request ----------------------------------------------------------------------------------

_DEFERRED = re.compile(r"^### Deferred Tool Schemas\n(.*?)(?=\n\n|\n#|\Z)", re.DOTALL | re.MULTILINE)
_ENTRY = re.compile(r"^- ([A-Za-z0-9_.-]+)(?: \([^)\n]*\))?(?::|$)", re.MULTILINE)


class Sent(NamedTuple):
    """One request: its tools, their size as JSON, and its entry in a catalog.

    The entry has the system prompt, the names of the tools that the prompt lists as reached through
    `tool_call`, and the texts around the question: `before` and `after` in the same message, and `context`
    after this message.
    """

    tools: tuple[Tool, ...]
    n_bytes: int
    entry: JsonObject


def read_request(body: JsonObject, question: str, placeholders: Mapping[str, str]) -> Sent:
    """Parse a request of the chat completions API, and mask its texts; see `masked`.

    Raises:
        ValueError: the tools have another format.
    """
    tools = objects_in(body.get("tools"))
    said = [(text_in(turn.get("role")), text_of(turn.get("content"))) for turn in messages_of(body)]
    system = "\n\n".join(text for role, text in said if role in ("system", "developer"))
    of_user = [text for role, text in said if role == "user"]
    number = next((n for n, text in enumerate(of_user) if question in text), 0)
    before, _, after = of_user[number].partition(question) if of_user else ("", "", "")
    directory = _DEFERRED.search(system)
    deferred = [*dict.fromkeys(_ENTRY.findall(directory[1]))] if directory else []
    entry = {
        "fields": {key: value for key, value in body.items() if key not in ("messages", "tools")},
        "system": system,
        "question": {"before": before, "after": after, "context": "\n\n".join(of_user[number + 1 :])},
    }
    size = len(json.dumps(tools, ensure_ascii=False, separators=(",", ":")).encode())
    return Sent(
        tuple(map(_tool, tools)), size, {"api": API, "deferred": deferred, **masked(entry, placeholders)}
    )


def _tool(entry: JsonObject) -> Tool:
    # `~optional` is a key of OpenClaw's own, not of JSON Schema.
    plain = json.loads(
        json.dumps(entry),
        object_hook=lambda part: {key: value for key, value in part.items() if key != "~optional"},
    )
    function = object_in(plain.get("function"))
    if not (name := text_in(function.get("name"))):
        raise ValueError("a tool of its request has no name")
    parameters = object_in(function.get("parameters")) or {"type": "object", "properties": {}}
    return Tool(name=name, description=text_in(function.get("description")), parameters=parameters)


def gather(sent: Mapping[str, Sent], *, release: str, taken: str) -> JsonObject:
    """Return a catalog of the requests on each surface, in the order of `POLICIES`.

    If a tool differs between surfaces, the last surface has the definition, and the others have variants.
    """
    surfaces = {name: {tool.name: tool for tool in request.tools} for name, request in sent.items()}
    tools = {name: tool for there in surfaces.values() for name, tool in there.items()}
    deferred = [name for name in sent[DIRECT].entry["deferred"] if name in tools]
    # `coding` is the default profile, whose tools are those behind the bridge.
    behind = {name: tool for name, tool in surfaces.get("coding", {}).items() if name in deferred}
    sizes = {
        name: {"tools": len(one.tools), "bytes": one.n_bytes, "bytes_of_the_release": one.n_bytes}
        for name, one in sent.items()
    }
    source = f"{taken}, by capture-tools, from the requests of the installed program to loopback"
    return {
        "release": release,
        "about": {"taken": source, "sizes": sizes},
        "surfaces": {name: [*there] for name, there in surfaces.items()}
        | {"tool-search": [*surfaces[DIRECT]]},
        "deferred": deferred,
        "tools": [asdict(tools[name]) for name in sorted(tools)],
        "variants": [
            {"surfaces": [kind], **asdict(tool)}
            for kind, there in {**surfaces, "deferred": behind}.items()
            for name, tool in there.items()
            if tool != tools[name]
        ],
        "requests": {name: request.entry for name, request in sent.items()},
    }


# --- personal data ------------------------------------------------------------------------------

_DAY = r"(?:Mon|Tue|Wed|Thu|Fri|Sat|Sun)[a-z]*,? "
_CLOCK = r"[T ]\d{1,2}:\d{2}(?::\d{2}(?:\.\d+)?)?(?: ?(?:Z|UTC|GMT|[A-Z]{3,4}\b|[+-]\d{2}:?\d{2}))?"
_PATTERNS = (
    (re.compile(r"\b[0-9a-f]{8}-(?:[0-9a-f]{4}-){3}[0-9a-f]{12}\b", re.IGNORECASE), "<id>"),
    (re.compile(rf"(?:{_DAY})?\b\d{{4}}-\d{{2}}-\d{{2}}(?:{_CLOCK})?"), "<time>"),
    (re.compile(r"(?<=Time zone: )[^\n]+"), "<zone>"),
    (re.compile(r"(?<=\bhost=)[^\s|]+"), "<host>"),
    (re.compile(r"(?<=\bos=)[^|\n]{1,200}?(?= \||\n|$)"), "<os>"),
    (re.compile(r"\b127\.0\.0\.1:\d+"), "127.0.0.1:<port>"),
    (re.compile(r"(?:/home|/Users|[A-Za-z]:\\Users)[/\\][^/\\\s\"'`<>:]+"), "<home>"),
    (re.compile(r"(?<![\w.+-])[\w.+-]++@[\w-]+\.[\w.-]+\w"), "<address>"),
)
_DOCS = re.compile(r"^Docs: (.+?)[/\\]docs$", re.MULTILINE)
# Ordinary words of any prompt, which identify no user.
_COMMON = frozenset({"root", "user", "admin", "agent", "host", "system", "localhost", "openclaw", "runner"})


def masked(value: Any, placeholders: Mapping[str, str]) -> Any:
    """Return a JSON value with placeholders for personal and temporary data in its texts, except keys.

    `placeholders` has known names and paths → their placeholders.
    """
    if isinstance(value, dict):
        return {key: masked(part, placeholders) for key, part in value.items()}
    if isinstance(value, list):
        return [masked(part, placeholders) for part in value]
    if not isinstance(value, str):
        return value
    if package := _DOCS.search(value):
        value = value.replace(package[1], "<openclaw>")
    # A folder is replaced before its parent, and a host with its domain before the host.
    for name in sorted(placeholders, key=len, reverse=True):
        if len(name) > 1 and name.casefold() not in _COMMON:
            value = re.sub(rf"(?<![\w<]){re.escape(name)}(?![\w>])", placeholders[name], value)
    for pattern, placeholder in _PATTERNS:
        value = pattern.sub(placeholder, value)
    return value


def _placeholders(scratch: Scratch) -> dict[str, str]:
    host = socket.gethostname()
    found = {
        f"{_NAME}/{_MODEL}": "<model>",
        os.environ.get("HOME", "").rstrip("/"): "<home>",
        str(scratch.workspace): "<workspace>",
        str(scratch.folder / "home"): "<home>",
        str(scratch.folder / "state"): "<state>",
        str(scratch.folder): "<scratch>",
        host: "<host>",
        host.partition(".")[0]: "<host>",
    }
    with suppress(OSError):  # the user has no name
        found.setdefault(getpass.getuser(), "<user>")
    return found


# --- the user's cache ---------------------------------------------------------------------------


def installed_catalogue(*, may_capture: bool, required: bool = False) -> Catalogue | None:
    """Return the catalog of the installed OpenClaw; None if it is not installed, or not captured yet.

    Raises:
        OpenClawError: OpenClaw cannot be captured, is required and not installed, or the cached catalog
            cannot be read.
        OSError: the cache cannot be written.
    """
    try:
        command = find_command(ProviderSetup(name="--openclaw-surface", environ=os.environ))
    except OpenClawError:
        if required:
            raise
        return None
    file = cache_folder() / f"openclaw-{_installation(command)}.json"
    if not file.is_file():
        if not may_capture:
            return None
        data = capture()
        file.parent.mkdir(mode=FOLDER_MODE, parents=True, exist_ok=True)
        unfinished = file.with_suffix(f".{os.getpid()}")
        write_private(unfinished, json.dumps(data, indent=1, ensure_ascii=False).encode())
        unfinished.replace(file)  # another session may be reading it
    try:
        return read_catalogue(file)
    except ValueError as error:
        raise OpenClawError(f"{file} {error}; remove it") from None


def _installation(command: tuple[str, ...]) -> str:
    """Return a hash of the package's description and the program, one of which every update changes."""
    facts = []
    for file in (path.resolve() for path in map(Path, command) if path.is_absolute() and path.is_file()):
        status = file.stat()
        packages = (folder / "package.json" for folder in file.parents)
        texts = (one.read_text("utf-8", "replace") for one in packages if one.is_file())
        facts.append([str(file), status.st_size, status.st_mtime_ns, next(texts, "")])
    return hashlib.sha256(json.dumps(facts).encode()).hexdigest()[:16]
