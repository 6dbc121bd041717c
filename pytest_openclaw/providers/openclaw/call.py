"""Prepares a call of OpenClaw for one request: command, config, environment and folders.

The user's machine is protected. OpenClaw gets a folder for this call with its HOME, state, config and
workspace, an emptied environment, no gateway, and one model server: ours, on loopback. It may execute the
tools of `PLAYED`: files, which it restricts to the workspace itself; notes, which it searches only by words;
and commands, for which it calls the shell in its environment, which is ours and runs none.
"""

from __future__ import annotations

import json
import os
import sys
import tempfile
from contextlib import contextmanager
from dataclasses import dataclass
from typing import TYPE_CHECKING

from pytest_openclaw.openclaw.bridge import BRIDGE, LOOKUPS
from pytest_openclaw.openclaw.catalog import load_catalogue
from pytest_openclaw.openclaw.paths import place_of
from pytest_openclaw.providers.openclaw.disk import Stage
from pytest_openclaw.providers.processes import find_program, new_folders
from pytest_openclaw.util.files import write_private
from pytest_openclaw.util.text import valid_text
from pytest_openclaw.values.requests import DEFAULT_CONTEXT_TOKENS, LISTED
from pytest_openclaw.values.worlds import World
from pytest_openclaw.worlds.search import is_note

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Mapping, Sequence
    from pathlib import Path

    from pytest_openclaw.util.json_types import JsonObject
    from pytest_openclaw.values.protocols import ProviderSetup
    from pytest_openclaw.values.requests import Request
    from pytest_openclaw.values.tool_calls import Tool, ToolCall

COMMAND_ENV = "OPENCLAW_AGENT_COMMAND"
#: tools that OpenClaw executes within the workspace, under `tools.fs.workspaceOnly`
CONTAINED = frozenset({"read", "write", "edit", "apply_patch", "ls"})
#: tools that it executes on notes, which are files of the workspace
NOTES = frozenset({"memory_search", "memory_get"})
#: tools that it executes with the program of SHELL; on Windows it uses another shell
COMMANDS = frozenset({"exec", "process"})
PLAYED = CONTAINED | NOTES | (COMMANDS if sys.platform != "win32" else frozenset())
_ARGUMENTS = ("agent", "exec", "--json", "--code-mode", "direct", "--message-file", "-")
# `agent exec` begins a session of its own each time.
_SESSION = ("agent", "--local", "--json", "--session-id", "benchmark")
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
# Without a world OpenClaw never executes commands. If it did, this would be its shell.
_SHELL = "#!/bin/sh\necho 'no command is run here' >&2\nexit 126\n"


@dataclass(frozen=True, kw_only=True)
class ModelRoute:
    """The configuration by which OpenClaw reaches a model.

    Attributes:
        provider, model: OpenClaw's name of the model is `provider/model`.
        api: OpenClaw's name of the API.

    """

    provider: str
    model: str
    api: str


@dataclass(frozen=True)
class AgentScratch:
    """The folders and files of one call.

    Attributes:
        folder: of this call, without links.
        compiled: the folder of Node's compile cache, with which later starts take two thirds of the time;
            None is within `folder`.

    """

    folder: Path
    compiled: Path | None = None

    @property
    def workspace(self) -> Path:
        """The agent's workspace."""
        return self.folder / "workspace"

    @property
    def config(self) -> Path:
        """The config file, which contains no key."""
        return self.folder / "openclaw.json"

    @property
    def message(self) -> Path:
        """The file with the user's message of a session's turn."""
        return self.folder / "message.txt"

    @property
    def shell(self) -> Path:
        """The program that takes the place of a shell."""
        return self.folder / "shell"

    @property
    def stage(self) -> Stage:
        """The stage on which a world is played."""
        return Stage(self.folder)

    def lay_out(self, world: World | None) -> None:
        """Write the shell, and the files of a world."""
        text = _SHELL
        if world is not None:
            from pytest_openclaw.providers.openclaw.played_shell import script

            self.stage.lay_out(world)
            text = script(self.folder)
        self.shell.write_text(text, encoding="utf-8")
        self.shell.chmod(0o700)


@contextmanager
def scratch_folder(
    world: World | None = None, *, compiled: Path | None = None, within: Path | None = None
) -> Iterator[AgentScratch]:
    """Create the folders of a call, and remove them at the end, except `compiled`; see `new_folders`."""
    with new_folders("workspace", "home", "state", "tmp", within=within) as folder:
        scratch = AgentScratch(folder, compiled)
        scratch.lay_out(world)
        yield scratch


def find_command(setup: ProviderSetup) -> tuple[str, ...]:
    """Return OpenClaw's command, with an absolute path.

    Raises:
        CallFailed: there is no such program.

    """
    command = setup.environ.get(COMMAND_ENV, "").strip() or "openclaw"
    return find_program(setup, command, f"it (npm install -g openclaw), or set {COMMAND_ENV}")


def why_no_shell(request: Request, scratch: AgentScratch) -> str:
    """Return as a sentence why a world with commands cannot use our shell; empty if it can."""
    if request.world is None or not COMMANDS.intersection(tool.name for tool in request.tools):
        return ""
    if os.access(scratch.shell, os.X_OK):
        return ""
    place = os.path.realpath(tempfile.gettempdir())
    return (
        f"its world offers commands, and no program can be started in {place}. "
        "Set TMPDIR to a folder that is not mounted noexec."
    )


def why_not_askable(request: Request) -> str:
    """Return as a sentence why the real agent cannot handle this request; empty if it can."""
    if request.history:
        return "OpenClaw cannot be given turns that have happened after the prompt."
    if request.messages:
        return "the prompt has earlier messages, and a session of OpenClaw has only what has happened in it."
    if request.system:
        return "the prompt has a system text, and OpenClaw writes its system prompt itself."
    if request.world is None:
        return ""
    if request.images and request.world != World():
        return "its world would have the prompt's pictures as files, which OpenClaw reads from the workspace."
    if own := own_tools(request):
        return (
            f"its world offers {_names(own)}, which OpenClaw does not have; "
            "they are added to it for single questions alone."
        )
    offered = request.listed_tools or request.tools
    if loose := [tool for tool in offered if tool.name not in PLAYED]:
        return (
            f"its world offers {_names(loose)}, "
            "which the real agent would carry out beyond a folder of files. "
            f"It plays worlds of {', '.join(sorted(PLAYED))}."
        )
    searched = NOTES.intersection(tool.name for tool in offered)
    if searched and (odd := [note for note in request.world.memory if not is_note(place_of(note))]):
        return (
            f"its world has the note {odd[0]}, and OpenClaw takes only MEMORY.md and memory/*.md for notes."
        )
    if request.world.answers:
        return "its world answers tools by a script, and the real agent carries them out."
    return ""


def _names(tools: Sequence[Tool]) -> str:
    return ", ".join(tool.name for tool in tools[:3]) + (", …" if len(tools) > 3 else "")


def own_tools(request: Request) -> tuple[Tool, ...]:
    """Return the tools of the prompt that OpenClaw does not have, which our plugin adds to it.

    Of those that it has, it offers its own.
    """
    listed = request.tools if request.surface == LISTED else request.listed_tools
    return tuple(tool for tool in listed if tool.name not in load_catalogue().tools)


def is_session(request: Request) -> bool:
    """Whether OpenClaw runs turns of a session, one for each message of the user; then it loads plugins."""
    return bool(own_tools(request) or request.turns)


def most_requests(request: Request) -> int:
    """Return how often a run of OpenClaw may ask the model; 0 is any number."""
    if request.world is not None:
        return request.world.steps
    return 1 + request.lookup_turns if request.lookup_turns else 0


def may_pass(request: Request) -> Callable[[ToolCall], bool] | None:
    """Return which calls OpenClaw receives: without a world those that have no effect; None is all."""
    if request.world is not None:
        return None
    return lambda call: call.name.strip().casefold() in LOOKUPS


def config_of(
    request: Request,
    scratch: AgentScratch,
    *,
    route: ModelRoute,
    url: str,
    token: str,
    plugins: JsonObject | None = None,
) -> JsonObject:
    """Return the config of one call.

    Args:
        request: to a model.
        scratch: the folders of the call.
        route: how OpenClaw reaches the model.
        url: of the relay.
        token: for the relay.
        plugins: the part of the config that loads them; none by default.

    """
    model = {
        "id": route.model,
        "name": route.model,
        "reasoning": request.thinking_level is not None,
        "input": ["text", "image"] if request.images else ["text"],
        "cost": {"input": 0, "output": 0, "cacheRead": 0, "cacheWrite": 0},
        "contextWindow": DEFAULT_CONTEXT_TOKENS,
        "maxTokens": request.max_output_tokens,
    }
    server = {"baseUrl": url, "apiKey": token, "api": route.api, "models": [model]}
    policy = _policy(request)
    defaults: JsonObject = {
        "workspace": str(scratch.workspace),
        "model": {"primary": f"{route.provider}/{route.model}"},
    }
    session: JsonObject = {}
    if is_session(request):  # what `agent exec` adds by itself
        defaults |= {"skipBootstrap": True, "sandbox": {"mode": "off"}}
        policy = {"profile": "coding", "codeMode": {"enabled": False}, **policy}
        session = {"env": {"shellEnv": {"enabled": False}}, "skills": {"load": {"watch": False}}}
    if plugins:
        session |= {"plugins": plugins}
    return {
        "agents": {"defaults": defaults},
        **session,
        "models": {"mode": "replace", "providers": {route.provider: server}},
        "tools": {
            **policy,
            "fs": {"workspaceOnly": True},
            # On this machine, not on another one that a gateway knows.
            "exec": {"host": "gateway", "security": "full", "ask": "off"},
            "elevated": {"enabled": False},
        },
        # By words; a search by meaning would need a server for embeddings.
        "memory": {"search": {"provider": "none"}},
        "logging": {"file": str(scratch.folder / "log.jsonl")},
        "update": {"checkOnStart": False},
    }


def _policy(request: Request) -> JsonObject:
    """Return which tools OpenClaw offers: those of the request, or on `openclaw` those of its default.

    There it offers all of them for a single question, of which it carries out only searches for tools; with a
    world only those that it may carry out.
    """
    own = [tool.name for tool in own_tools(request)]
    if request.surface != LISTED:
        if request.world:
            return {"allow": sorted((*PLAYED, *BRIDGE))}
        return {"alsoAllow": own} if own else {}
    names = sorted({tool.name for tool in request.tools})
    # An agent with write gets apply_patch too, unless it is denied.
    denied = sorted((CONTAINED | NOTES | COMMANDS).difference(names))
    # Any other profile has none of a plugin's tools, also of those that are allowed.
    whole = {"profile": "full"} if own else {}
    return {**whole, **({"allow": names, "deny": denied} if names else {"deny": ["*"]}), "toolSearch": False}


def arguments(request: Request, scratch: AgentScratch, *, route: ModelRoute) -> tuple[str, ...]:
    """Return OpenClaw's arguments; the only text of the request among them is the model's name.

    In a session each message of the user is a turn, whose message is in a file.
    """
    own = (
        *_ARGUMENTS,
        *("--config", str(scratch.config)),
        *("--cwd", str(scratch.workspace)),
        *("--model", f"{route.provider}/{route.model}"),
    )
    return (
        *((*_SESSION, "--message-file", str(scratch.message)) if is_session(request) else own),
        *(("--thinking", request.thinking_level) if request.thinking_level else ()),
        # Our own timeout is the effective one; this one ends a process that was abandoned.
        *("--timeout", str(round(request.timeout_s) + 60)),
    )


def environment(
    scratch: AgentScratch, environ: Mapping[str, str], *, of_session: bool = False
) -> dict[str, str]:
    """Return OpenClaw's complete environment; of the user's only PATH, to find Node."""
    home, tmp = str(scratch.folder / "home"), str(scratch.folder / "tmp")
    kept = {"PATH": environ.get("PATH", os.defpath)}
    kept |= {name: value for name, value in environ.items() if name.upper() == "SYSTEMROOT"}
    own = {
        "HOME": home,
        "USERPROFILE": home,
        "TMPDIR": tmp,
        "TEMP": tmp,
        "TMP": tmp,
        "SHELL": str(scratch.shell),
        "LANG": "C.UTF-8",
        "OPENCLAW_STATE_DIR": str(scratch.folder / "state"),
        "NODE_COMPILE_CACHE": str(scratch.compiled or scratch.folder / "compiled"),
    }
    # `agent exec` has an argument for it.
    config = {"OPENCLAW_CONFIG_PATH": str(scratch.config)} if of_session else {}
    return kept | own | config | _SWITCHES


def write_message(scratch: AgentScratch, text: str) -> bytes:
    """Write the user's message for a turn of a session; return it for the input of a single run."""
    data = valid_text(text).encode()
    write_private(scratch.message, data)
    return data


def with_pictures(request: Request, scratch: AgentScratch) -> str:
    """Write the prompt's pictures into the workspace; return the prompt with their paths behind it.

    OpenClaw has no argument for them. Where its model takes pictures, it loads those whose paths are in the
    message, and leaves the paths there.
    """
    paths = []
    for number, image in enumerate(request.images, 1):
        name = f"image-{number}.{image.media_type.partition('/')[2]}"
        (scratch.workspace / name).write_bytes(image.data)
        paths.append(f"./{name}")
    return "\n\n".join([request.prompt, *(["\n".join(paths)] if paths else [])])


def write_config(scratch: AgentScratch, config: JsonObject) -> None:
    """Write the config, which contains the token of the call."""
    write_private(scratch.config, json.dumps(config).encode())
