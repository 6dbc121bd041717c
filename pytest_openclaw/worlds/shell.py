"""Plays `exec`: commands that match a suite's patterns get its answers, others run in a sandboxed bash.

The bash (`sandbox.py`) runs in a child process, which may use 10 s of CPU time and 1 GiB for a
command. If a command exceeds these limits, the child is killed, and the next command starts a new one.
"""

from __future__ import annotations

import atexit
import json
import re
import shutil
import subprocess
import sys
import tempfile
import threading
import time
from collections.abc import Callable, Iterable, Mapping
from contextlib import suppress
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any

from msgspec import to_builtins

from pytest_openclaw.util.bounded import fullmatches
from pytest_openclaw.util.errors import OpenClawError
from pytest_openclaw.worlds.commands import named_programs
from pytest_openclaw.worlds.python import watching
from pytest_openclaw.worlds.workspace import ToolError, Workspace, checked_path, normal_path, text_of

if TYPE_CHECKING:
    from pytest_openclaw.values.worlds import ScriptedCommand, Words, World

#: seconds of CPU time for a command, which a busy machine does not change
RUN_S = 10.0
#: in addition, for the second run of a command, in which it is recorded
_RECORD_S = 20.0
#: for all commands of an exchange; further ones are not run
_EXCHANGE_S = 30.0
#: how many times its CPU time a command may wait for a busy machine
PATIENCE = 6
MOST_BYTES = 1 << 30
MOST_FILE_BYTES = 20_000_000
MOST_OUTPUT_CHARS = 200_000  # `DEFAULT_MAX_OUTPUT` in its `bash-tools.exec-runtime`
_DISCARDED = "[earlier output was discarded at the retention cap and cannot be recovered]"
#: a command that may run programs whose names are not in its text; to watch all programs takes longer
_DECODES = re.compile(
    r"""\b(?:base64|eval|od|printf|rev|tr|xxd)\b|\|\s*(?:ba)?sh\b|\$'
    |(?:^|[;&|({\n]|\b(?:do|then|else|command|env|exec|nohup|sudo|xargs)\s)\s*"?\$[\w{(]  # $a$b push
    |>(?s:.*)(?:\b(?:ba|da)?sh\s|\bsource\s|(?:^|[;&|\n])\s*(?:\.\s|\./))  # it runs what it wrote""",
    re.VERBOSE,
)
SANDBOX_MODULE = "pytest_openclaw.worlds.sandbox"
#: seconds for the start of the child, and for compiling Python once
_START_S = 120.0
_CHECK_INTERVAL_S = 0.02
_KILLED = '{"timed_out": true, "parts": [], "is_recorded": false, "cpu_s": 10}'
_ENDED = {127: "Command not found", 126: "Command not executable (permission denied)"}


class TimedOutError(Exception):
    """A call exceeded its limit of time or memory."""


@dataclass(frozen=True)
class Ran:
    """What a command or a script left.

    Attributes:
        result: of a grader, the content of its file `python.RESULT`.
        files: in a new world, the files that a command changed, normal path → text.
    """

    output: str = ""
    code: int = 0
    timed_out: bool = False
    result: str = ""
    files: Mapping[str, str] = field(default_factory=dict)


def find_answer(
    commands: Iterable[ScriptedCommand], source: str, text_at: Callable[[str], str | None]
) -> ScriptedCommand | None:
    """Return the suite's first answer that fits a command and the current files, or None.

    `text_at` returns the text of the file at a path, or None. A pattern that cannot be decided raises
    `OpenClawError`.
    """

    def applies(command: ScriptedCommand) -> bool:
        texts = ((text_at(normal_path(path)), pattern) for path, pattern in command.when.items())
        return all(text is not None and fullmatches(pattern, text) for text, pattern in texts)

    return next((one for one in commands if fullmatches(one.pattern, source) and applies(one)), None)


class Exec:
    """Answers the calls of `exec` on a workspace, which may be replaced between two calls."""

    def __init__(self, workspace: Workspace, world: World) -> None:
        self.ran: list[str] = []
        self.parts: list[tuple[Words, ...]] = []
        self.unrecorded: list[int] = []
        self.workspace = workspace
        self._world = world
        self._left_s = _EXCHANGE_S

    def answer(self, arguments: Mapping[str, Any]) -> str:
        """Return OpenClaw's answer to a command; raises as `run` does."""
        command = text_of(arguments, "command", "").strip()
        if not command:
            raise ToolError("Provide a command to start.")
        workdir = str(arguments.get("workdir") or "")
        folder = checked_path(workdir)
        if not self.workspace.is_folder(folder):
            return f'workdir "{workdir}" is unavailable or not a directory: command was not executed.'
        env = arguments.get("env")
        ran = self.run(command, folder, env if isinstance(env, dict) else {})
        output = ran.output[-MOST_OUTPUT_CHARS:].strip() or "(no output)"
        if len(ran.output) > MOST_OUTPUT_CHARS:
            output = f"{_DISCARDED}\n\n{output}"
        if not ran.code:
            return output
        return f"{output}\n\n{_ENDED.get(ran.code, f'(Command exited with code {ran.code})')}"

    def run(self, command: str, folder: str = "", env: Mapping[str, Any] | None = None) -> Ran:
        """Play a command, and return its output, errors included.

        Raises:
            TimedOutError: the command, or all of them, need too much time or memory; it then has no effect.
            OpenClawError: a suite's pattern cannot be decided.
        """
        world, workspace = self._world, self.workspace
        self.ran.append(command)
        self.parts.append(())
        known = find_answer(world.commands, command, workspace.files.get)
        done = self._played(command, folder, env or {})
        if known is not None:
            for path, text in known.writes.items():
                workspace.put(normal_path(path), text)
            for path in known.removes:
                workspace.remove(normal_path(path))
            return Ran(known.output, known.exit_code)
        if done is None:
            return Ran(f"sh: cannot run: the files have more than {MOST_FILE_BYTES // 1_000_000} MB", 1)
        if done["timed_out"]:
            raise TimedOutError
        try:
            self._apply(done)
        except ToolError as error:
            return Ran(f"{done['output']}sh: {error}", 1)
        return Ran(done["output"], done["code"])

    def _played(self, command: str, folder: str, env: Mapping[str, Any]) -> dict[str, Any] | None:
        """Run a command in the sandbox, and record its simple commands; None if there are too many files."""
        world, workspace = self._world, self.workspace
        if sum(map(len, workspace.files.values())) > MOST_FILE_BYTES:
            self.unrecorded.append(len(self.ran) - 1)
            return None
        variables = {**world.env, **env}
        asked = {
            "command": command,
            "folder": folder,
            "env": {name: value for name, value in variables.items() if _is_variable(name, value)},
            "files": workspace.files,
            "folders": sorted(workspace.folders),
            "commands": to_builtins(world.commands),
            "names": named_programs() if _DECODES.search(command) else [],
            "python": world.python,
            "seconds": RUN_S,
            "records": True,
        }
        done = SANDBOX.play(asked) if self._left_s > 0 else json.loads(_KILLED)
        self._left_s -= min(done["cpu_s"], RUN_S)  # compiling Python takes longer
        self.parts[-1] = tuple(tuple(words) for words in done["parts"])
        if not done["is_recorded"]:
            self.unrecorded.append(len(self.ran) - 1)
        return done

    def _apply(self, done: Mapping[str, Any]) -> None:
        """Apply the changes of a command, which had a copy of the workspace, to the workspace."""
        workspace = self.workspace
        kept = {*done["folders"]}
        for path in (*done["gone"], *sorted(workspace.folders - kept, reverse=True)):
            workspace.remove(path)
        for path in sorted(kept - workspace.folders):
            workspace.make_folder(path)
        for path, text in done["files"].items():
            workspace.put(path, text)


def play(command: str, files: Mapping[str, str], seconds: float, **more: Any) -> Ran:
    """Run a command in a new world with these files and Python, without a record of what ran.

    Raises:
        OpenClawError: the sandbox failed.
    """
    asked = {"command": command, "files": dict(files), "python": True, "seconds": seconds, **more}
    done = GRADERS.play(asked)
    return Ran(**{name: done[name] for name in Ran.__dataclass_fields__ if name in done})


def grade(own: Mapping[str, str], script: str, files: Mapping[str, str], seconds: float) -> Ran:
    """Run a grader's script in a new world; the commands that it starts run there, too.

    Args:
        own: the grader's files, which only its script sees, in `python.GRADER`.
        script: the name of the script among them.
        files: the files of the world.
        seconds: the CPU time after which it is ended.

    Raises:
        OpenClawError: the sandbox failed.
    """
    return play("", files, seconds, grader={"files": dict(own), "script": script})


def _is_variable(name: str, value: object) -> bool:
    return isinstance(value, str) and bool(name) and not {"=", "\0"} & {*name} and "\0" not in value


# --- the child ------------------------------------------------------------------------------------


class Sandbox:
    """The child process in which commands run, one at a time; any thread may use it."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._child: subprocess.Popen[bytes] | None = None
        self._has_python = False

    def play(self, asked: Mapping[str, Any]) -> dict[str, Any]:
        """Run a command; see `sandbox.ASKED`. Raises `OpenClawError` as `Exec.run` does."""
        with self._lock:
            if self._child is None or self._child.poll() is not None:
                self._child, self._has_python = _start_child(), False
            loading_s = _START_S if asked["python"] and not self._has_python else 0.0
            answer = _ask(self._child, json.dumps(asked), asked["seconds"] + _RECORD_S + loading_s)
            self._has_python |= asked["python"]
        done: dict[str, Any] = json.loads(answer or _KILLED)
        if "broken" in done:
            raise OpenClawError(done["broken"])
        return done

    def close(self) -> None:
        """End the child."""
        if self._child is not None:
            _end(self._child)


def _start_child() -> subprocess.Popen[bytes]:
    import_path = [path or str(Path.cwd()) for path in sys.path]
    code = f"import sys; sys.path[:] = {import_path!r}\nfrom {SANDBOX_MODULE} import main\nmain()"
    child = subprocess.Popen(  # noqa: S603
        [sys.executable, "-I", "-S", "-c", code],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        stderr=subprocess.DEVNULL,
    )
    if not _ask(child, "", _START_S):
        raise OpenClawError("the sandbox of the worlds' shell does not start; is bashkit installed?")
    return child


def _ask(child: subprocess.Popen[bytes], line: str, seconds: float) -> bytes:
    """Send a line and return the answer; empty if the child exited or was killed for exceeding a limit."""
    import psutil

    assert child.stdin is not None
    assert child.stdout is not None
    process, deadline = psutil.Process(child.pid), time.monotonic() + PATIENCE * seconds

    def cpu_s() -> float:
        times = process.cpu_times()
        return times.user + times.system

    def is_over() -> bool:
        with suppress(psutil.Error):  # the child has exited
            is_late = time.monotonic() > deadline or cpu_s() > most_s
            return is_late or process.memory_info().rss > MOST_BYTES
        return False

    answer = b""
    with suppress(OSError, psutil.Error):
        most_s = cpu_s() + seconds
        with watching(is_over, child.kill, every_s=_CHECK_INTERVAL_S):
            child.stdin.write(line.encode() + b"\n")
            child.stdin.flush()
            answer = child.stdout.readline()
    if not answer:
        _end(child)
    return answer


def _end(child: subprocess.Popen[bytes]) -> None:
    child.kill()
    with suppress(OSError):  # from an unfinished line
        child.communicate()
    for left in Path(tempfile.gettempdir()).glob(f"openclaw-{child.pid}-*"):
        shutil.rmtree(left, ignore_errors=True)


SANDBOX, GRADERS = Sandbox(), Sandbox()  # a model does not wait for the grader of another cell
atexit.register(SANDBOX.close)
atexit.register(GRADERS.close)
