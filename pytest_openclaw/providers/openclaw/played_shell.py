"""The program that the real agent runs as a shell: it plays commands on the world, and executes none.

OpenClaw's exec calls `$SHELL -c COMMAND`, in the workspace or in the model's folder. The command is answered
as in a scripted exchange (`worlds/shell.py`): by the suite's answers, or in a sandboxed bash on the files on
disk. Nothing else is read or written.
"""

from __future__ import annotations

import os
import re
import shlex
import sys
from pathlib import Path
from typing import TYPE_CHECKING

from pytest_openclaw.providers.mcp_tools import load_offer, write_error
from pytest_openclaw.providers.openclaw.disk import Played, Stage
from pytest_openclaw.util.files import LockFile
from pytest_openclaw.util.text import valid_text
from pytest_openclaw.worlds.shell import Exec, Ran, TimedOutError
from pytest_openclaw.worlds.workspace import ToolError, named_place

if TYPE_CHECKING:
    from collections.abc import Sequence

MISUSE, NOT_PLAYED, OUTPUT_CLOSED, TIMED_OUT = 2, 126, 141, 124
# Shell options with an argument.
_WITH_WORD = ("-o", "+o", "-O", "+O", "--rcfile", "--init-file")
_OPTIONS = re.compile(r"[-+][a-zA-Z]+|--[a-z-]+")


def command_of(arguments: Sequence[str]) -> str | None:
    """Return the command of a shell's arguments, such as `-c COMMAND` or `-lc COMMAND`; None without one."""
    words = list(arguments)
    is_command = False
    while words and _OPTIONS.fullmatch(words[0]):
        option = words.pop(0)
        is_command = is_command or (option.startswith("-") and not option.startswith("--") and "c" in option)
        if option in _WITH_WORD and words:
            words.pop(0)
    if words[:1] in (["--"], ["-"]):
        words.pop(0)
    return words[0] if is_command and words else None


def play(stage: Stage, command: str, folder: str) -> Ran:
    """Play a command, one at a time, and save its effects.

    Args:
        stage: with the files of the world.
        command: as the model wrote it.
        folder: its working directory on disk.

    """
    _, world = load_offer(stage.world_file.read_text("utf-8"))
    assert world is not None, "it is laid out with its world"
    disk = stage.disk
    with LockFile(stage.lock_file):
        played = Played.load(stage.played_file, world)
        workspace = disk.load(played)
        shell = Exec(workspace, world)
        try:
            place = named_place(disk.with_world_paths(folder))
            ran = shell.run(disk.with_world_paths(command).strip(), place)
        except ToolError as error:
            ran = Ran(f"sh: {error}", 1)
        except TimedOutError:
            ran = Ran("sh: the command timed out", TIMED_OUT)
        try:
            disk.store(workspace)
        except ToolError as error:
            ran = Ran(f"{ran.output}\nsh: {error}".lstrip(), 1)
        played.after(workspace, shell).save(stage.played_file)
    return Ran(disk.with_real_paths(valid_text(ran.output)), ran.code)


def main(arguments: Sequence[str]) -> int:
    """Play the command in a shell's arguments, print its output, and return its exit status.

    Args:
        arguments: the stage's folder, then the shell's.

    """
    stage = Stage(Path(arguments[0]))
    command = command_of(arguments[1:])
    if command is None:
        return _print(Ran("sh: only sh -c COMMAND is played here", MISUSE))
    try:
        folder = str(Path.cwd())
    except FileNotFoundError:
        return _print(Ran("sh: the current folder is not there any more", 1))
    try:
        ran = play(stage, valid_text(command), folder)
    except Exception as error:
        write_error(stage.world_file, error)
        ran = Ran("sh: the command cannot be played", NOT_PLAYED)
    return _print(ran)


def script(folder: Path) -> str:
    """Return the text of the program that takes the place of a shell, for the stage in a folder.

    It starts this interpreter isolated: OpenClaw passes on variables that a model may set.
    """
    import_path = [path or str(Path.cwd()) for path in sys.path]
    code = (
        f"import sys; sys.path[:] = {import_path!r}\n"
        f"from {__name__} import main\n"
        "sys.exit(main(sys.argv[1:]))"
    )
    start = shlex.join([sys.executable, "-I", "-S", "-c", code, str(folder)])
    return f'#!/bin/sh\nexec {start} "$@"\n'


def _print(ran: Ran) -> int:
    try:
        sys.stdout.buffer.write(ran.output.encode())
        sys.stdout.buffer.flush()
    except BrokenPipeError:
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        return OUTPUT_CLOSED
    return ran.code
