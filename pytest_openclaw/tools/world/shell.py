"""Plays exec: a suite's commands by their patterns, and a few plain programs on the world's files.

No command is ever run. A program that is neither in the suite nor in `programs.py` is not found.
"""

from __future__ import annotations

import posixpath
from dataclasses import dataclass
from fnmatch import fnmatchcase
from typing import TYPE_CHECKING, Any

from pytest_openclaw.core.bounded_regex import fullmatches
from pytest_openclaw.tools.paths import is_inside, place_of
from pytest_openclaw.tools.world.programs import PROGRAMS
from pytest_openclaw.tools.world.shell_parts import Complaint, Shell
from pytest_openclaw.tools.world.shell_words import LONGEST_COMMAND, ShellError, read_command
from pytest_openclaw.tools.world.workspace import ToolError, text_of

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from pytest_openclaw.tools.world.shell_words import Pipeline, Simple, Word
    from pytest_openclaw.tools.world.workspace import Workspace
    from pytest_openclaw.types.worlds import Command

NOT_FOUND, MISUSE = 127, 2
MOST_OUTPUT_CHARS = 200_000
MOST_COMMANDS = 50
MOST_WORDS = 5000
LONGEST_PATTERN = 200
_NOWHERE = "/dev/null"
_ENDED = {127: "Command not found", 126: "Command not executable (permission denied)"}


@dataclass(frozen=True)
class Ran:
    """The output and exit status of a command."""

    output: str = ""
    code: int = 0


class Exec:
    """Answers exec.

    Args:
        workspace: the files.
        commands: of the suite.
    """

    def __init__(self, workspace: Workspace, commands: Sequence[Command]) -> None:
        self.ran: list[str] = []
        self._workspace = workspace
        self._commands = commands

    def answer(self, arguments: Mapping[str, Any]) -> str:
        """Return OpenClaw's answer to a command.

        Raises:
            OpenClawError: a suite's pattern cannot be decided.
        """
        command = text_of(arguments, "command", "").strip()
        if not command:
            raise ToolError("Provide a command to start.")
        workdir = arguments.get("workdir")
        folder = self._folder(workdir if isinstance(workdir, str) else "")
        if folder is None:
            return f'workdir "{workdir}" is unavailable or not a directory: command was not executed.'
        ran = self.run(command, folder)
        output = ran.output.rstrip("\n") or "(no output)"
        if not ran.code:
            return output
        return f"{output}\n\n{_ENDED.get(ran.code, f'(Command exited with code {ran.code})')}"

    def run(self, command: str, folder: str = "") -> Ran:
        """Play a command, and return its output.

        Args:
            command: without blanks around it.
            folder: the place in which it runs.

        Raises:
            ToolError: its results exceed the space of the world.
            OpenClawError: a suite's pattern cannot be decided.
        """
        self._workspace.take_room(len(command))
        self.ran.append(command)
        return self._run(command, folder)

    def _folder(self, workdir: str) -> str | None:
        try:
            place = place_of(workdir)
        except ValueError:
            return None
        return place if self._workspace.is_folder(place) else None

    def _run(self, command: str, folder: str) -> Ran:
        if len(command) > LONGEST_COMMAND:
            return Ran("sh: Argument list too long", 126)
        self._workspace.work.spend(100 + len(command))
        shell = Shell(workspace=self._workspace, folder=folder)
        if (known := self._known(command)) is not None:
            return known
        try:
            pipelines = read_command(command)
        except ShellError as error:
            return Ran(str(error), MISUSE)
        if sum(len(pipeline.commands) for pipeline in pipelines) > MOST_COMMANDS:
            return Ran("sh: too many commands in one line", MISUSE)
        return self._run_all(shell, pipelines)

    def _run_all(self, shell: Shell, pipelines: Sequence[Pipeline]) -> Ran:
        printed: list[str] = []
        code = 0
        for pipeline in pipelines:
            if (pipeline.link == "&&" and code) or (pipeline.link == "||" and not code):
                continue
            ran = self._known(pipeline.source) or self._pipeline(shell, pipeline)
            self._workspace.work.spend(len(ran.output) // 100)
            printed.append(ran.output)
            code = ran.code
        return Ran("".join(f"{text.rstrip(chr(10))}\n" for text in printed if text)[:MOST_OUTPUT_CHARS], code)

    def _pipeline(self, shell: Shell, pipeline: Pipeline) -> Ran:
        ran = Ran()
        complaints: list[str] = []
        for simple in pipeline.commands:
            try:
                ran = self._simple(shell, simple, ran.output)
            except Complaint as complaint:
                complaints += [] if simple.is_quiet else [str(complaint)]
                ran = Ran(complaint.printed, complaint.code)
        return Ran("\n".join([*complaints, *([ran.output] if ran.output else [])]), ran.code)

    def _simple(self, shell: Shell, simple: Simple, piped: str) -> Ran:
        given = piped
        if simple.input_file is not None:
            given = shell.read("sh", simple.input_file)
        elif simple.input is not None:
            given = simple.input
        words = _words(shell, simple)
        ran = self._known(simple.source) if simple.words else Ran()
        if ran is None:
            name, *rest = words
            self._workspace.work.spend(10 + len(words) // 2 + len(given) // 100)
            program = PROGRAMS.get(posixpath.basename(name))
            if program is None:
                raise Complaint(f"sh: {name[:200]}: command not found", NOT_FOUND)
            ran = Ran(program(shell, rest, given)[:MOST_OUTPUT_CHARS])
        if simple.output is None:
            return ran
        self._redirect(shell, simple, ran.output)
        return Ran("", ran.code)

    def _redirect(self, shell: Shell, simple: Simple, output: str) -> None:
        assert simple.output is not None, "only what goes to a file"
        if simple.output == _NOWHERE:
            return
        place = shell.place("sh", simple.output)
        if not is_inside(place):
            raise Complaint(f"sh: {simple.output}: Permission denied", 1)
        text = output if not output or output.endswith("\n") else f"{output}\n"
        before = shell.workspace.text(place) or "" if simple.appends else ""
        shell.write("sh", place, before + text)

    def _known(self, command: str) -> Ran | None:
        """Return the suite's answer to a command, and apply its changes to the files."""
        for one in self._commands:
            if self._fits(one.pattern, command.strip()) and self._is_time_for(one):
                for path, text in one.writes.items():
                    if text is None:
                        self._workspace.remove(place_of(path))
                    else:
                        self._workspace.put(place_of(path), text)
                return Ran(one.output, one.exit_code)
        return None

    def _is_time_for(self, command: Command) -> bool:
        texts = ((self._workspace.text(place_of(path)), pattern) for path, pattern in command.when.items())
        return all(text is not None and self._fits(pattern, text) for text, pattern in texts)

    def _fits(self, pattern: str, text: str) -> bool:
        """Whether a pattern of the suite matches the whole text."""
        self._workspace.work.spend(3 + len(text) // 100)
        with self._workspace.work.patterns():
            return fullmatches(pattern, text)


def _words(shell: Shell, simple: Simple) -> list[str]:
    words: list[str] = []
    for word in simple.words:
        words += _expanded(shell, word)
        if len(words) > MOST_WORDS:
            raise Complaint("sh: Argument list too long", 126)
    return words


def _expanded(shell: Shell, word: Word) -> list[str]:
    """Return a pattern's files, as a shell expands it; only in the last part of a path."""
    folder, _, name = word.text.rpartition("/")
    if not word.is_pattern or len(word.text) > LONGEST_PATTERN or any(char in folder for char in "*?["):
        return [word.text]
    place = shell.place("sh", folder or ("/" if word.text.startswith("/") else "."))
    names = [entry.rstrip("/") for entry in shell.workspace.entries(place)]
    # fnmatch compiles a pattern, whose stars are then tried at each character of a name at most once
    shell.workspace.work.spend(150 + sum(1 + len(one) * len(name) // 1500 for one in names))
    found = [one for one in names if fnmatchcase(one, name) and one.startswith(".") == name.startswith(".")]
    return [f"{folder}/{one}" if "/" in word.text else one for one in found] or [word.text]
