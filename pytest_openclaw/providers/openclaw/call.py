"""How OpenClaw is called for one request: its command, its config, its environment, its folders.

Nothing of the user's machine is at stake. OpenClaw gets a folder of this call alone for its HOME, its state,
its config and its workspace, an emptied environment, no gateway, and one model server: ours, on loopback.
It may carry out the tools of `PLAYED`: those of files, which it keeps inside the workspace itself, those of
notes, which it searches by words alone, and commands, for which it calls the shell of its environment: ours,
in which none is run.
"""

from __future__ import annotations

import json
import os
import sys
from contextlib import contextmanager
from dataclasses import dataclass
from typing import TYPE_CHECKING

from pytest_openclaw.core.private import write_private
from pytest_openclaw.providers.openclaw.disk import Stage
from pytest_openclaw.providers.processes import find_program, new_folders
from pytest_openclaw.tools.paths import place_of
from pytest_openclaw.tools.world.search import is_note

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping
    from pathlib import Path

    from pytest_openclaw.core.json_types import JsonObject
    from pytest_openclaw.types.protocols import ProviderSetup
    from pytest_openclaw.types.requests import Request
    from pytest_openclaw.types.worlds import World

COMMAND_ENV = "OPENCLAW_AGENT_COMMAND"
#: tools that OpenClaw carries out within the workspace, under `tools.fs.workspaceOnly`
CONTAINED = frozenset({"read", "write", "edit", "apply_patch", "ls"})
#: tools that it carries out on notes, which are files of the workspace
NOTES = frozenset({"memory_search", "memory_get"})
#: tools that it carries out with the program of SHELL; on Windows it has another shell
COMMANDS = frozenset({"exec", "process"})
PLAYED = CONTAINED | NOTES | (COMMANDS if sys.platform != "win32" else frozenset())
#: so much is said to fit; OpenClaw would compact a longer exchange
CONTEXT_TOKENS = 131_072

_ARGUMENTS = ("agent", "exec", "--json", "--code-mode", "direct", "--message-file", "-")
# Nobody is told of a run, nothing is fetched, no helper outlives it, no gateway of this machine is found.
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
# Where there is no world, OpenClaw's exec is never carried out. If it were, this would be its shell.
_SHELL = "#!/bin/sh\necho 'no command is run here' >&2\nexit 126\n"


@dataclass(frozen=True, kw_only=True)
class Route:
    """How OpenClaw is told to reach a model.

    Attributes:
        provider, model: OpenClaw's name of the model is `provider/model`.
        api: OpenClaw's word for the API.
    """

    provider: str
    model: str
    api: str


@dataclass(frozen=True)
class Scratch:
    """The folders and files of one call.

    Attributes:
        folder: of this call alone, in its real form.
        compiled: where Node keeps what it has compiled, so that later starts take two thirds of the time;
            None is within `folder`.
    """

    folder: Path
    compiled: Path | None = None

    @property
    def workspace(self) -> Path:
        """Where the agent works."""
        return self.folder / "workspace"

    @property
    def config(self) -> Path:
        """The config, which holds no key."""
        return self.folder / "openclaw.json"

    @property
    def shell(self) -> Path:
        """What stands in the place of a shell."""
        return self.folder / "shell"

    @property
    def stage(self) -> Stage:
        """Where a world is played."""
        return Stage(self.folder)

    def lay_out(self, world: World | None) -> None:
        """Write the shell, and the files of a world."""
        text = _SHELL
        if world is not None:
            from pytest_openclaw.providers.openclaw.shell import script

            self.stage.lay_out(world)
            text = script(self.folder)
        self.shell.write_text(text, encoding="utf-8")
        self.shell.chmod(0o700)


@contextmanager
def scratch_folder(world: World | None = None, *, compiled: Path | None = None) -> Iterator[Scratch]:
    """Lay out the folders of a call, and remove them at the end; `compiled` stays."""
    with new_folders("workspace", "home", "state", "tmp") as folder:
        scratch = Scratch(folder, compiled)
        scratch.lay_out(world)
        yield scratch


def find_command(setup: ProviderSetup) -> tuple[str, ...]:
    """Return OpenClaw's command, its program as an absolute path.

    Raises:
        CallFailed: there is no such program.
    """
    command = setup.environ.get(COMMAND_ENV, "").strip() or "openclaw"
    return find_program(setup, command, f"it (npm install -g openclaw), or set {COMMAND_ENV}")


def why_no_shell(request: Request, scratch: Scratch) -> str:
    """Return why ours cannot be the shell in a world with commands, as a sentence; empty if it can."""
    if request.world is None or not COMMANDS.intersection(tool.name for tool in request.tools):
        return ""
    if os.access(scratch.shell, os.X_OK):
        return ""
    return (
        f"its world offers commands, and no program can be started in {scratch.folder.parent}. "
        "Set TMPDIR to a folder that is not mounted noexec."
    )


def why_not_askable(request: Request) -> str:
    """Return why the real agent is not asked this, as a sentence; empty if it is."""
    if request.history:
        return "OpenClaw cannot be given turns that have happened; it has its own loop."
    if request.system:
        return "the prompt has a system text, and OpenClaw writes its system prompt itself."
    if request.world is None:
        return ""
    if loose := [tool.name for tool in request.tools if tool.name not in PLAYED]:
        names = ", ".join(loose[:3]) + (", …" if len(loose) > 3 else "")
        return (
            f"its world offers {names}, which the real agent would carry out beyond a folder of files. "
            f"It plays worlds of {', '.join(sorted(PLAYED))}."
        )
    searched = NOTES.intersection(tool.name for tool in request.tools)
    if searched and (loose := [note for note in request.world.memory if not is_note(place_of(note))]):
        return (
            f"its world has the note {loose[0]}, and OpenClaw takes only MEMORY.md and memory/*.md for notes."
        )
    if request.world.answers:
        return "its world answers tools by a script, and the real agent carries them out."
    return ""


def config_of(request: Request, scratch: Scratch, *, route: Route, url: str, token: str) -> JsonObject:
    """Return the config of one call."""
    model = {
        "id": route.model,
        "name": route.model,
        "reasoning": request.thinking_level is not None,
        "input": ["text"],
        "cost": {"input": 0, "output": 0, "cacheRead": 0, "cacheWrite": 0},
        "contextWindow": CONTEXT_TOKENS,
        "maxTokens": request.max_output_tokens,
    }
    server = {"baseUrl": url, "apiKey": token, "api": route.api, "models": [model]}
    names = sorted({tool.name for tool in request.tools})
    # Who is allowed to write gets apply_patch too, unless it is denied.
    denied = sorted((CONTAINED | NOTES | COMMANDS).difference(names))
    policy: JsonObject = {"allow": names, "deny": denied} if names else {"deny": ["*"]}
    return {
        "agents": {
            "defaults": {
                "workspace": str(scratch.workspace),
                "model": {"primary": f"{route.provider}/{route.model}"},
            }
        },
        "models": {"mode": "replace", "providers": {route.provider: server}},
        "tools": {
            **policy,
            "toolSearch": False,
            "fs": {"workspaceOnly": True},
            # Here, and on no other machine that a gateway may know.
            "exec": {"host": "gateway", "security": "full", "ask": "off"},
            "elevated": {"enabled": False},
        },
        # By words; by meaning it would ask a server for embeddings.
        "memory": {"search": {"provider": "none"}},
        "logging": {"file": str(scratch.folder / "log.jsonl")},
        "update": {"checkOnStart": False},
    }


def arguments(request: Request, scratch: Scratch, *, route: Route) -> tuple[str, ...]:
    """Return OpenClaw's arguments; no text of the request but the model's name is among them."""
    return (
        *_ARGUMENTS,
        *("--config", str(scratch.config)),
        *("--cwd", str(scratch.workspace)),
        *("--model", f"{route.provider}/{route.model}"),
        *(("--thinking", request.thinking_level) if request.thinking_level else ()),
        # Ours is the clock that counts; this one is for a process that nobody waits for any more.
        *("--timeout", str(round(request.timeout_s) + 60)),
    )


def environment(scratch: Scratch, environ: Mapping[str, str]) -> dict[str, str]:
    """Return OpenClaw's whole environment: of the user's only PATH, on which its Node is found."""
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
    return kept | own | _SWITCHES


def write_config(scratch: Scratch, config: JsonObject) -> None:
    """Write the config, which holds the token of the call."""
    write_private(scratch.config, json.dumps(config).encode())
