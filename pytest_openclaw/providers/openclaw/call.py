"""Prepares calls of OpenClaw, and reads their results.

A call has a command, config, environment, folders with the world's files, and a plugin with the suite's own
tools.

The user's machine is protected. OpenClaw gets a folder for this call with its HOME, state, config and
workspace, an emptied environment, no gateway, and one model server: ours, on loopback. It may execute the
tools of `PLAYED`: files, which it restricts to the workspace itself; notes, which it searches only by words;
and commands, for which it calls `$SHELL -c COMMAND`, in the workspace or in the model's folder. The program
there is ours and runs none. It sends the command to the relay, which answers it as in a scripted exchange
(`worlds/shell.py`): by the suite's answers, or in a sandboxed bash on the files on disk.

In a suite the workspace is `/workspace`; on disk it is another folder for each call. One path is replaced by
the other in files, commands, calls and results.
"""

from __future__ import annotations

import errno
import json
import os
import re
import shlex
import sys
import tempfile
import threading
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from importlib import resources
from pathlib import Path

from pytest_openclaw.openclaw.catalog import load_catalogue
from pytest_openclaw.openclaw.dispatch import BRIDGE, LOOKUPS
from pytest_openclaw.providers.processes import find_program, new_folders
from pytest_openclaw.providers.server_errors import shortened
from pytest_openclaw.providers.wire import function_of, object_in, objects_in, text_in
from pytest_openclaw.util.files import JsonObject, write_private
from pytest_openclaw.util.text import file_bytes, valid_text, valid_value
from pytest_openclaw.values import faults
from pytest_openclaw.values.faults import WireError
from pytest_openclaw.values.protocols import ProviderSetup
from pytest_openclaw.values.replies import Fault, Reply
from pytest_openclaw.values.requests import DEFAULT_CONTEXT_TOKENS, LISTED, Request
from pytest_openclaw.values.tool_calls import Tool, ToolCall
from pytest_openclaw.values.worlds import World, WorldState
from pytest_openclaw.worlds.shell import Exec, Ran, TimedOutError
from pytest_openclaw.worlds.tools import is_note
from pytest_openclaw.worlds.workspace import (
    ROOT,
    ToolError,
    Workspace,
    checked_path,
    is_inside,
    normal_path,
)

COMMAND_ENV = "OPENCLAW_AGENT_COMMAND"
#: tools that OpenClaw executes within the workspace, under `tools.fs.workspaceOnly`
CONTAINED = frozenset({"read", "write", "edit", "apply_patch", "ls"})
#: tools that it executes on notes, which are files of the workspace
NOTES = frozenset({"memory_search", "memory_get"})
#: tools that it executes with the program of SHELL; on Windows it uses another shell
COMMANDS = frozenset({"exec", "process"})
PLAYED = CONTAINED | NOTES | (COMMANDS if sys.platform != "win32" else frozenset())
_FREE = {"input": 0, "output": 0, "cacheRead": 0, "cacheWrite": 0}
# No telemetry, no downloads, no background processes, no gateway of this machine.
_SWITCHES = {
    "OPENCLAW_GATEWAY_PORT": "9",
    "OPENCLAW_NO_AUTO_UPDATE": "1",
    "OPENCLAW_TELEMETRY_ENDPOINT": "http://127.0.0.1:9/",
    "DO_NOT_TRACK": "1",
    "OPENCLAW_DISABLE_BONJOUR": "1",
    "OPENCLAW_NO_RESPAWN": "1",
    "OPENCLAW_EXEC_SHELL_SNAPSHOT": "0",
    "NO_COLOR": "1",
}
_PLUGIN = "benchmark"

# --- any start of OpenClaw ----------------------------------------------------------------------


def find_command(setup: ProviderSetup) -> tuple[str, ...]:
    """Return OpenClaw's command, with an absolute path.

    Raises:
        CallFailed: there is no such program.
    """
    command = setup.environ.get(COMMAND_ENV, "").strip() or "openclaw"
    return find_program(setup, command, f"it (npm install -g openclaw), or set {COMMAND_ENV}")


@contextmanager
def scratch_folder(world: World | None = None, *, within: Path | None = None) -> Iterator[Scratch]:
    """Create the folders of a call, and remove them at the end; see `new_folders`.

    Node's compile cache, with which later starts take two thirds of the time, is kept in `within`.
    """
    with new_folders("workspace", "home", "state", "tmp", within=within) as folder:
        scratch = Scratch(folder, world, compiled=(within or folder) / "compiled")
        scratch.lay_out()
        yield scratch


def environment(scratch: Scratch, environ: Mapping[str, str]) -> dict[str, str]:
    """Return OpenClaw's complete environment; only PATH is the user's, to find Node."""
    home, tmp = str(scratch.folder / "home"), str(scratch.folder / "tmp")
    own = {
        "PATH": environ.get("PATH", os.defpath),
        **dict.fromkeys(("HOME", "USERPROFILE"), home),
        **dict.fromkeys(("TMPDIR", "TEMP", "TMP"), tmp),
        "SHELL": str(scratch.shell),
        "LANG": "C.UTF-8",
        "OPENCLAW_STATE_DIR": str(scratch.folder / "state"),
        "OPENCLAW_CONFIG_PATH": str(scratch.config),
        "NODE_COMPILE_CACHE": str(scratch.compiled),
    }
    system = {name: value for name, value in environ.items() if name.upper() == "SYSTEMROOT"}
    return system | own | _SWITCHES


def write_config(
    scratch: Scratch,
    provider: str,
    model: JsonObject,
    *,
    url: str,
    key: str,
    api: str,
    **sections: JsonObject,
) -> None:
    """Write OpenClaw's config with one model of one server, named `provider`, and further sections.

    `model` has its id and abilities. The file contains the token of the call.
    """
    usual = {"name": model["id"], "contextWindow": DEFAULT_CONTEXT_TOKENS, "cost": _FREE}
    server = {"baseUrl": url, "apiKey": key, "api": api, "models": [{**usual, **model}]}
    defaults = {
        "workspace": str(scratch.workspace),
        "model": {"primary": f"{provider}/{model['id']}"},
        "skipBootstrap": True,
        "sandbox": {"mode": "off"},
    }
    config = {
        "agents": {"defaults": defaults},
        "models": {"mode": "replace", "providers": {provider: server}},
        "logging": {"file": str(scratch.folder / "log.jsonl")},
        "update": {"checkOnStart": False},
        **sections,
    }
    write_private(scratch.config, json.dumps(config).encode())


# --- its result ---------------------------------------------------------------------------------

_NO_ANSWER = re.compile(r"couldn't generate a response|incomplete or malformed tool call", re.IGNORECASE)
# The first keys of its answers and errors.
_BEGINNING, _MOST_TRIED = re.compile(r'^\{\s*"(?:ok|payloads)"\s*:', re.MULTILINE), 16


def find_envelope(stdout: str) -> JsonObject | None:
    """Return the object among the other lines that were printed; None if there is none."""
    for _, match in zip(range(_MOST_TRIED), _BEGINNING.finditer(stdout), strict=False):
        try:
            return object_in(json.JSONDecoder().raw_decode(stdout, match.start())[0])
        except (ValueError, RecursionError):
            continue
    return None


def read_envelope(envelope: JsonObject, request: Request, *, name: str) -> Reply | Fault:
    """Return OpenClaw's text and model in an object, without tokens and calls; or its fault.

    A run in which the model gave no answer, even after OpenClaw repeated the request, has an empty text.
    Errors of the model's server are not among OpenClaw's: the relay receives them first, and ends the run.
    """
    meta = object_in(envelope.get("meta"))
    error = object_in(meta.get("error") or envelope.get("error"))
    kind, said = text_in(error.get("kind")), text_in(error.get("message"))
    if meta.get("stopReason") == "timeout" or "timeoutPhase" in meta:
        return faults.timed_out(name, request.timeout_s)
    wrong = [text_in(one.get("text")) for one in objects_in(envelope.get("payloads")) if one.get("isError")]
    is_ok = bool(meta) and not (error or wrong or meta.get("aborted") or meta.get("stopReason") == "error")
    no_answer = kind == "incomplete_turn" or _NO_ANSWER.search(said)
    if no_answer or is_ok:
        text = "" if no_answer else valid_text(text_in(meta.get("finalAssistantVisibleText")))
        model = text_in(object_in(meta.get("agentMeta")).get("model")) or None
        return Reply(text=text, raw=text, effective_model=model)
    said = shortened(valid_text(said or next(iter(wrong), "no reason given")))
    if kind == "context_overflow":
        too_long = WireError(code="context_length_exceeded", message=said)
        return faults.refused_by_server(name, request.model, too_long)
    return faults.cli_failed(name, f"OpenClaw ended with {kind or 'an error'}: {said}")


# --- a request of `openclaw_agent` --------------------------------------------------------------


def why_not_askable(request: Request) -> str:
    """Return as a sentence why the real agent cannot handle this request; empty if it can."""
    world = request.world
    if request.messages or request.history:
        return "the prompt has earlier messages, and a session of OpenClaw begins without any."
    if request.system:
        return "the prompt has a system text, and OpenClaw writes its system prompt itself."
    if world is None:
        return ""
    if request.images and world != World():
        return "its world would have the prompt's images as files, which OpenClaw reads from the workspace."
    if loose := sorted(offered_tools(request) - PLAYED):
        played = ", ".join(sorted(PLAYED))
        return f"its world offers {', '.join(loose[:3])}; the real agent plays worlds of {played}."
    searched = offered_tools(request) & NOTES
    if searched and (odd := [note for note in world.memory if not is_note(normal_path(note))]):
        return (
            f"its world has the note {odd[0]}, and OpenClaw takes only MEMORY.md and memory/*.md for notes."
        )
    if world.answers:
        return "its world scripts the answers of tools, but the real agent executes the tools."
    return ""


def offered_tools(request: Request) -> frozenset[str]:
    """Return the names of the offered tools, without the optional ones that OpenClaw may not execute here."""
    offered = frozenset(tool.name for tool in request.listed_tools or request.tools)
    optional = request.world.optional_tools if request.world else ()
    return offered.difference(frozenset(optional) - PLAYED)


def own_tools(request: Request) -> tuple[Tool, ...]:
    """Return the tools of the prompt that OpenClaw does not have, which our plugin adds to it.

    It offers its own tools of the same names.
    """
    listed = request.tools if request.surface == LISTED else request.listed_tools
    return tuple(tool for tool in listed if tool.name not in load_catalogue().tools)


def is_lookup(call: ToolCall) -> bool:
    """Whether OpenClaw may carry out a call without a world: it only searches for tools."""
    return call.name.strip().casefold() in LOOKUPS


def why_no_shell(request: Request, scratch: Scratch) -> str:
    """Return as a sentence why a world with commands cannot use our shell; empty if it can."""
    needs_it = request.world and COMMANDS.intersection(tool.name for tool in request.tools)
    if not needs_it or os.access(scratch.shell, os.X_OK):
        return ""
    folder = os.path.realpath(tempfile.gettempdir())
    why = f"its world offers commands, and no program can be started in {folder}"
    return f"{why}. Set TMPDIR to a folder that is not mounted noexec."


def arguments_of(request: Request, scratch: Scratch, session: int) -> tuple[str, ...]:
    """Return OpenClaw's arguments for a message of the user in the session with this number.

    The only text of the request among them is the model's thinking level.
    """
    return (
        *("agent", "--local", "--json", "--session-id", f"benchmark{session or ''}"),
        *("--message-file", str(scratch.message)),
        *(("--thinking", request.thinking_level) if request.thinking_level else ()),
        # Our own timeout is the effective one; this one ends a process that was abandoned.
        *("--timeout", str(round(request.timeout_s) + 60)),
    )


def sections_of(request: Request, scratch: Scratch) -> JsonObject:
    """Return the sections of OpenClaw's config for a request, and write the plugin with its own tools."""
    own = own_tools(request)
    return {
        "tools": {
            "profile": "coding",
            "codeMode": {"enabled": False},
            **_policy(request, [tool.name for tool in own]),
            "fs": {"workspaceOnly": True},
            # On this machine, not on another one that a gateway knows.
            "exec": {"host": "gateway", "security": "full", "ask": "off"},
            "elevated": {"enabled": False},
        },
        # By words; a search by meaning would need a server for embeddings.
        "memory": {"search": {"provider": "none"}},
        "env": {"shellEnv": {"enabled": False}},
        "skills": {"load": {"watch": False}},
        **({"plugins": _write_plugin(own, scratch.folder / "plugin")} if own else {}),
    }


def write_images(request: Request, scratch: Scratch) -> str:
    """Write the prompt's images into the workspace; return the prompt with their paths behind it.

    OpenClaw has no argument for them. Where its model takes images, it loads those whose paths are in
    the message, and leaves the paths there.
    """
    paths = []
    for number, image in enumerate(request.images, 1):
        name = f"image-{number}.{image.media_type.partition('/')[2]}"
        (scratch.workspace / name).write_bytes(image.data)
        paths.append(f"./{name}")
    return "\n\n".join([request.prompt, *(["\n".join(paths)] if paths else [])])


def _policy(request: Request, own: list[str]) -> JsonObject:
    """Return which tools OpenClaw offers: the tools of the request, or on `openclaw` its default tools.

    There it offers all of them for a single question, and carries out only searches for tools;
    with a world only those that it may carry out. `own` has the names of the plugin's tools.
    """
    if request.surface != LISTED:
        if request.world:
            return {"allow": sorted((*PLAYED, *BRIDGE))}
        return {"alsoAllow": own} if own else {}
    names = sorted(offered_tools(request))
    if not names:
        return {"deny": ["*"], "toolSearch": False}
    return {
        # Any other profile has none of a plugin's tools, also of those that are allowed.
        **({"profile": "full"} if own else {}),
        "allow": names,
        # An agent with write gets apply_patch too, unless it is denied.
        "deny": sorted((CONTAINED | NOTES | COMMANDS).difference(names)),
        "toolSearch": False,
    }


def _write_plugin(tools: Sequence[Tool], folder: Path) -> JsonObject:
    """Write the plugin that adds the suite's own tools; return the part of the config that loads it.

    OpenClaw describes them to the model like the tools of any plugin. They are never carried out.
    """
    folder.mkdir()
    manifest = {
        "id": _PLUGIN,
        "name": "Benchmark",
        "description": "Adds the tools of a prompt.",
        # OpenClaw offers only tools that the manifest names.
        "contracts": {"tools": [tool.name for tool in tools]},
        "configSchema": {"type": "object", "properties": {"tools": {"type": "array"}}},
    }
    package = {"name": _PLUGIN, "version": "1.0.0", "type": "module"}
    script = resources.files("pytest_openclaw.providers.openclaw").joinpath("agent_plugin.js")
    files = {
        "index.js": script.read_text("utf-8"),
        "openclaw.plugin.json": json.dumps(valid_value(manifest)),
        "package.json": json.dumps({**package, "openclaw": {"extensions": ["./index.js"]}}),
    }
    for name, text in files.items():
        (folder / name).write_text(text, "utf-8")
    entry = {"enabled": True, "config": {"tools": valid_value([*map(function_of, tools)])}}
    return {"load": {"paths": [str(folder)]}, "entries": {_PLUGIN: entry}}


# --- the folders, and the world on disk ---------------------------------------------------------

MISUSE, TIMED_OUT = 2, 124
SHELL_PATH = "/shell"
"""The relay's path for commands."""
# Errors of a name, or of an existing file with that name, not of the disk.
_REFUSALS = (
    *(errno.ENAMETOOLONG, errno.EINVAL, errno.EILSEQ),
    *(errno.EEXIST, errno.EISDIR, errno.ENOENT, errno.ENOTDIR, errno.ENOTEMPTY),
)
# OpenClaw's own folder in a workspace.
_OWN = ".openclaw"
# Without a world OpenClaw never executes commands. If it did, this would be its shell.
_NO_SHELL = "#!/bin/sh\necho 'no command is run here' >&2\nexit 126\n"
# The shell of a world. Its Python is isolated, because OpenClaw passes on variables that a model may set.
_SHELL = """\
import http.client, json, os, sys
relay = http.client.HTTPConnection({host!r})
body = json.dumps({{"folder": os.getcwd(), "arguments": sys.argv[1:]}})
relay.request("POST", {path!r}, body, {{"Authorization": "Bearer {token}"}})
ran = json.load(relay.getresponse())
sys.stdout.buffer.write(ran["output"].encode())
sys.exit(ran["code"])
"""


class Scratch:
    """The folders and files of one call.

    Args:
        folder: of this call, without links; `workspace` in it exists and is empty.
        world: None for a call that may execute nothing.
        compiled: the folder of Node's compile cache.
    """

    def __init__(self, folder: Path, world: World | None = None, compiled: Path | None = None) -> None:
        self.folder = folder
        self.compiled = compiled or folder / "compiled"
        self.workspace = folder / "workspace"
        self.config = folder / "openclaw.json"
        self.message = folder / "message.txt"
        self.shell = folder / "shell"
        self._program = folder / "shell.py"
        # Whole names: neither `a/workspace` nor `/workspace-2` nor `/workspace.txt`. Anything may precede the
        # real path: in JSON for example the `n` of a line end.
        real, end = str(self.workspace), r"(?!\.?[\w-])"
        forms = "|".join(map(re.escape, sorted({self.workspace.as_posix(), real, json.dumps(real)[1:-1]})))
        self._root = re.compile(rf"(?<![\w.~/-]){re.escape(ROOT)}{end}")
        self._real = re.compile(rf"(?:{forms}){end}")
        self._lock = threading.Lock()
        self._start = Workspace({**world.memory, **world.files} if world else {})
        self._exec = Exec(self._start, world) if world else None

    def with_real_paths(self, text: str) -> str:
        """Replace the world's path of the workspace by the real one."""
        return self._root.sub(lambda _: self.workspace.as_posix(), text)

    def with_world_paths(self, text: str) -> str:
        """Replace the real path of the workspace by the world's."""
        return self._real.sub(lambda _: ROOT, text)

    def lay_out(self) -> None:
        """Write the shell, and the files of the world."""
        start = shlex.join([sys.executable, "-I", "-S", str(self._program)])
        self.shell.write_text(f'#!/bin/sh\nexec {start} "$@"\n' if self._exec else _NO_SHELL, "utf-8")
        self.shell.chmod(0o700)
        for path, text in self._start.files.items():
            if is_inside(path):
                self._write(path, text)

    def connect_shell(self, url: str, token: str) -> None:
        """Write the program of the shell, with the relay's address and token."""
        host = url.removeprefix("http://")
        write_private(self._program, _SHELL.format(host=host, path=SHELL_PATH, token=token).encode())

    def play(self, folder: str, arguments: Sequence[str]) -> Ran:
        """Play a command of the model in a folder on disk; `arguments` are `-c COMMAND`, as for a shell.

        Commands are played one at a time.

        Raises:
            OpenClawError: a suite's pattern cannot be decided.
        """
        if self._exec is None or len(arguments) != 2 or arguments[0] != "-c":
            return Ran("sh: only sh -c COMMAND is played here", MISUSE)
        with self._lock:
            workspace = self._exec.workspace = self._load()
            try:
                inside = checked_path(self.with_world_paths(folder))
                ran = self._exec.run(self.with_world_paths(valid_text(arguments[1])).strip(), inside)
            except ToolError as error:
                ran = Ran(f"sh: {error}", 1)
            except TimedOutError:
                ran = Ran("sh: the command timed out", TIMED_OUT)
            try:
                self._store(workspace)
            except ToolError as error:
                ran = Ran(f"{ran.output}\nsh: {error}".lstrip(), 1)
        return Ran(self.with_real_paths(valid_text(ran.output)), ran.code)

    def state(self) -> WorldState | None:
        """Return the current state of the world; None without one."""
        if self._exec is None:
            return None
        with self._lock:
            start, files = self._start.start, self._load().files
        return WorldState(
            files=files,
            ran=tuple(self._exec.ran),
            parts=tuple(self._exec.parts),
            unrecorded=tuple(self._exec.unrecorded),
            changed=tuple(sorted(path for path in {*start, *files} if start.get(path) != files.get(path))),
            start=start,
        )

    def _load(self) -> Workspace:
        """Return the files and folders on disk, and those outside the workspace, which are only in memory."""
        assert self._exec is not None, "there is a world"
        last = self._exec.workspace
        files = {path: text for path, text in last.files.items() if not is_inside(path)}
        folders = {path for path in last.folders if not is_inside(path)}
        for path in sorted(self.workspace.rglob("*")):
            name = path.relative_to(self.workspace).as_posix()
            if name.partition("/")[0] == _OWN:
                continue
            if path.is_dir():
                folders.add(name)
            elif path.is_file():  # a pipe has no end
                with suppress(FileNotFoundError):  # OpenClaw is just removing it
                    files[name] = self.with_world_paths(path.read_bytes().decode("utf-8", "surrogateescape"))
        return Workspace(files, folders)

    def _store(self, workspace: Workspace) -> None:
        """Write the changes to the workspace since `_load`; unchanged files are not touched.

        Raises:
            ToolError: the disk cannot have such a file, for example one with too long a name.
        """
        before, after = workspace.start, workspace.files
        try:
            for path in filter(is_inside, before.keys() - after.keys()):
                (self.workspace / path).unlink(missing_ok=True)
            for path in sorted(filter(is_inside, workspace.start_folders - workspace.folders), reverse=True):
                with suppress(OSError):  # it has files of OpenClaw's own, or is gone
                    (self.workspace / path).rmdir()
            for path in filter(is_inside, workspace.folders - workspace.start_folders):
                (self.workspace / path).mkdir(parents=True, exist_ok=True)
            for path in filter(is_inside, after):
                if before.get(path) != after[path]:
                    self._write(path, after[path])
        except OSError as error:
            if error.errno not in _REFUSALS:
                raise
            path = str(error.filename2 or error.filename)
            raise ToolError(f"{self.with_world_paths(path)}: {error.strerror}") from None

    def _write(self, path: str, text: str) -> None:
        """Write a file that OpenClaw may read at the same time."""
        file, new = self.workspace / path, self.folder / "new"
        file.parent.mkdir(parents=True, exist_ok=True)
        new.write_bytes(file_bytes(self.with_real_paths(text)))
        new.replace(file)
