"""Plays exec: a suite's commands by their patterns, and plain programs on the world's files.

No command is ever run. A program that is neither in the suite nor in `programs.py` is not found.
"""

from __future__ import annotations

import posixpath
from contextlib import suppress
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

from pytest_openclaw.core.bounded_regex import fullmatches
from pytest_openclaw.tools.paths import is_inside, place_of
from pytest_openclaw.tools.world.expansion import Expansion
from pytest_openclaw.tools.world.programs import PROGRAMS
from pytest_openclaw.tools.world.shell_parts import (
    Collected,
    Complaint,
    Input,
    Process,
    Shell,
    Streams,
)
from pytest_openclaw.tools.world.shell_syntax import (
    LONGEST_COMMAND,
    Block,
    Choice,
    Loop,
    ShellError,
    Simple,
    read_script,
)
from pytest_openclaw.tools.world.shortening import kept_output
from pytest_openclaw.tools.world.workspace import ToolError, text_of

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence

    from pytest_openclaw.tools.world.shell_parts import Output
    from pytest_openclaw.tools.world.shell_syntax import Command as ShellCommand
    from pytest_openclaw.tools.world.shell_syntax import Pipeline, Redirection, Script
    from pytest_openclaw.tools.world.workspace import Workspace
    from pytest_openclaw.types.worlds import Command

NOT_FOUND, MISUSE = 127, 2
MOST_COMMANDS = 400
DEEPEST = 8
_SHELLS = ("sh", "bash", "dash", "zsh")
_NOWHERE = "/dev/null"
_ENDED = {127: "Command not found", 126: "Command not executable (permission denied)"}
_OPTIONS = {"e": "errexit", "u": "nounset", "x": "xtrace"}


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
        env: environment variables.
    """

    def __init__(self, workspace: Workspace, commands: Sequence[Command], env: Mapping[str, str]) -> None:
        self.ran: list[str] = []
        self._workspace = workspace
        self._commands = commands
        self._env = env

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
        env = arguments.get("env")
        ran = self.run(command, folder, env if isinstance(env, dict) else {})
        discarded, kept = kept_output(ran.output)
        output = discarded + (kept.strip() or "(no output)")
        if not ran.code:
            return output
        return f"{output}\n\n{_ENDED.get(ran.code, f'(Command exited with code {ran.code})')}"

    def run(self, command: str, folder: str = "", env: Mapping[str, Any] | None = None) -> Ran:
        """Play a command, and return what it prints, errors included.

        Args:
            command: without blanks around it.
            folder: the place in which it runs.
            env: further environment variables.

        Raises:
            ToolError: its results exceed the space of the world.
            OpenClawError: a suite's pattern cannot be decided.
        """
        self._workspace.take_room(len(command))
        self.ran.append(command)
        if len(command) > LONGEST_COMMAND:
            return Ran("sh: Argument list too long", 126)
        self._workspace.work.spend(100 + len(command))
        playing = Interpreter(self._workspace, self._known)
        if (known := self._known(command)) is not None:
            return known
        more = {name: value for name, value in (env or {}).items() if isinstance(value, str)}
        shell = Shell.start(self._workspace, folder, {**self._env, **more})
        both = Collected()
        code = playing.run_text(command, shell, Streams(stdin=Input(), out=both.write, err=both.write))
        return Ran(both.text, code)

    def _folder(self, workdir: str) -> str | None:
        try:
            place = place_of(workdir)
        except ValueError:
            return None
        return place if self._workspace.is_folder(place) else None

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


class _Exit(Exception):
    """The shell ends; its state has the exit code."""


class Interpreter:
    """Plays scripts.

    Args:
        workspace: the files.
        known: returns the suite's answer to a command, or None.
    """

    def __init__(self, workspace: Workspace, known: Callable[[str], Ran | None]) -> None:
        self._workspace = workspace
        self._known = known
        self._left = MOST_COMMANDS
        self._depth = 0

    def run_text(self, text: str, shell: Shell, streams: Streams) -> int:
        """Play a script in a shell of its own, and return its exit code."""
        try:
            script = read_script(text)
        except ShellError as error:
            streams.err(f"{error}\n")
            return MISUSE
        return self._in_subshell(script, shell, streams)

    def _in_subshell(self, script: Script, shell: Shell, streams: Streams) -> int:
        self._depth += 1
        try:
            if self._depth > DEEPEST:
                raise Complaint("sh: too many shells in each other", MISUSE)
            own = shell.copy()
            self._run_script(script, own, streams)
        except _Exit:
            pass
        finally:
            self._depth -= 1
        return own.code

    def _run_script(
        self, script: Script, shell: Shell, streams: Streams, *, is_condition: bool = False
    ) -> None:
        for n, pipeline in enumerate(script):
            if (pipeline.link == "&&" and shell.code) or (pipeline.link == "||" and not shell.code):
                continue
            self._run_pipeline(pipeline, shell, streams)
            is_tested = (
                is_condition or pipeline.is_negated or (script[n + 1 : n + 2] and script[n + 1].link != ";")
            )
            if shell.code and not is_tested and "errexit" in shell.options:
                raise _Exit

    def _run_pipeline(self, pipeline: Pipeline, shell: Shell, streams: Streams) -> None:
        known = self._known(pipeline.source)
        if known is not None:
            _print(known, streams)
            shell.code = known.code
        elif len(pipeline.commands) == 1:
            self._run_command(pipeline.commands[0], shell, streams)
        else:
            self._run_piped(pipeline.commands, shell, streams)
        if pipeline.is_negated:
            shell.code = int(not shell.code)

    def _run_piped(self, commands: Sequence[ShellCommand], shell: Shell, streams: Streams) -> None:
        stdin, codes = streams.stdin, []
        for n, command in enumerate(commands):
            piped = Collected()
            out = streams.out if n == len(commands) - 1 else piped.write
            own = shell.copy()
            with suppress(_Exit):
                self._run_command(command, own, Streams(stdin=stdin, out=out, err=streams.err))
            codes.append(own.code)
            stdin = Input(piped.text)
        failed = [code for code in codes if code]
        shell.code = failed[-1] if failed and "pipefail" in shell.options else codes[-1]

    def _run_command(self, command: ShellCommand, shell: Shell, streams: Streams) -> None:
        self._left -= 1
        self._workspace.work.spend(10)
        try:
            if self._left < 0:
                raise Complaint("sh: too many commands in one call", MISUSE)
            inner = self._redirected(command.redirections, shell, streams)
            match command:
                case Simple():
                    shell.code = self._run_simple(command, shell, inner)
                case Block():
                    if command.is_subshell:
                        shell.code = self._in_subshell(command.script, shell, inner)
                    else:
                        self._run_script(command.script, shell, inner)
                case Choice():
                    self._choose(command, shell, inner)
                case Loop():
                    words, shell.code = self._expansion(shell, inner).fields(command.words), 0
                    for word in words:
                        shell.variables[command.name] = word
                        self._run_script(command.script, shell, inner)
        except (Complaint, ToolError) as error:
            text = str(error)
            if text:
                streams.err(f"{text if isinstance(error, Complaint) else f'sh: {text}'}\n")
            shell.code = error.code if isinstance(error, Complaint) else 1
            if self._left < 0:
                raise _Exit from None

    def _choose(self, choice: Choice, shell: Shell, streams: Streams) -> None:
        for condition, script in choice.branches:
            self._run_script(condition, shell, streams, is_condition=True)
            if not shell.code:
                return self._run_script(script, shell, streams)
        shell.code = 0
        return self._run_script(choice.otherwise, shell, streams)

    def _expansion(self, shell: Shell, streams: Streams) -> Expansion:
        def substitute(script: Script) -> str:
            printed = Collected()
            shell.code = self._in_subshell(script, shell, replace(streams, out=printed.write))
            return printed.text

        return Expansion(shell, substitute)

    def _redirected(self, redirections: Sequence[Redirection], shell: Shell, streams: Streams) -> Streams:
        inner = replace(streams)
        expansion = self._expansion(shell, streams)
        for one in redirections:
            target = expansion.text(one.target)
            match one.kind:
                case "<<" | "<<<":
                    inner.stdin = Input(target if one.kind == "<<" else f"{target}\n")
                case "<":
                    reading = Process(shell=shell, name="sh", words=(), streams=streams, run=self._run_words)
                    inner.stdin = Input("" if target == _NOWHERE else reading.read(target))
                case ">&" if target in ("1", "2"):
                    chosen = inner.out if target == "1" else inner.err
                    inner.redirect(one.stream, chosen)
                case "&>" | "&>>" | ">&":
                    inner.out = inner.err = self._opened(target, shell, appends=one.kind == "&>>")
                case _:
                    opened = self._opened(target, shell, appends=one.kind == ">>")
                    inner.redirect(one.stream, opened)
        return inner

    def _opened(self, path: str, shell: Shell, *, appends: bool) -> Output:
        """Return the output to a file, which is emptied at once unless it is continued."""
        if path == _NOWHERE:
            return lambda _: None
        place = shell.place("sh", path)
        if not is_inside(place):
            raise Complaint(f"sh: {path}: Permission denied")
        if self._workspace.is_folder(place):
            raise Complaint(f"sh: {path}: Is a directory")
        folder = posixpath.dirname(place)
        if not self._workspace.is_folder(folder):
            raise Complaint(f"sh: {path}: No such file or directory")
        if not appends or self._workspace.text(place) is None:
            self._workspace.put(place, "")

        def write(text: str) -> None:
            if text:
                self._workspace.put(place, (self._workspace.text(place) or "") + text)

        return write

    def _run_simple(self, simple: Simple, shell: Shell, streams: Streams) -> int:
        expansion = self._expansion(shell, streams)
        shell.code = 0 if not simple.words else shell.code
        words = expansion.fields(simple.words)
        own = {name: expansion.text(value) for name, value in simple.assignments}
        if not words:
            shell.variables |= own
            return shell.code
        if own:
            inner = shell.copy()
            inner.variables |= own
            inner.exported |= own.keys()
            shell = inner
        expanded = " ".join(words)
        for source in dict.fromkeys([simple.source, expanded]):
            if (known := self._known(source)) is not None:
                _print(known, streams)
                return known.code
        return self._run_words(words, streams, shell)

    def _run_words(self, words: Sequence[str], streams: Streams, shell: Shell) -> int:
        self._left -= 1
        if self._left < 0:
            raise Complaint("sh: too many commands in one call", MISUSE)
        name = posixpath.basename(words[0]) if words[0].startswith(("/bin/", "/usr/bin/")) else words[0]
        self._workspace.work.spend(10 + len(words) // 2 + len(streams.stdin.text) // 100)
        process = Process(shell=shell, name=name, words=words[1:], streams=streams, run=self._run_words)
        if name in _SHELLS or name in (".", "source") or "/" in name:
            return self._run_file(process)
        if name == "exit":
            shell.code = _exit_code(process)
            raise _Exit
        if name == "set":
            return _set_options(process)
        program = PROGRAMS.get(name)
        if program is None:
            streams.err(f"sh: {words[0][:200]}: command not found\n")
            return NOT_FOUND
        try:
            streams.out(program(process))
        except Complaint as complaint:
            streams.err(f"{complaint}\n" if str(complaint) else "")
            return complaint.code
        return process.code

    def _run_file(self, process: Process) -> int:
        """Play `sh -c TEXT`, a file of commands, or the standard input."""
        words = list(process.words)
        if "/" in process.name:
            path = process.name
            if self._workspace.text(process.place(path)) is None:
                why = "Is a directory" if self._workspace.is_folder(process.place(path)) else ""
                text, code = (why, 126) if why else ("No such file or directory", 127)
                raise Complaint(f"sh: {path[:200]}: {text}", code)
            return self.run_text(process.read(path), process.shell, process.streams)
        while words and words[0].startswith("-") and "c" not in words[0]:
            words.pop(0)
        if words and words[0].startswith("-"):
            text = words[1] if len(words) > 1 else ""
        else:
            text = process.read(words[0] if words else "-")
        if process.name in (".", "source"):
            try:
                script = read_script(text)
            except ShellError as error:
                raise Complaint(str(error), MISUSE) from None
            self._run_script(script, process.shell, process.streams)
            return process.shell.code
        return self.run_text(text, process.shell, process.streams)


def _print(ran: Ran, streams: Streams) -> None:
    streams.out(f"{ran.output.rstrip(chr(10))}\n" if ran.output else "")


def _exit_code(process: Process) -> int:
    word = process.words[0] if process.words else str(process.shell.code)
    return int(word) % 256 if word.isascii() and word.isdigit() and len(word) < 10 else MISUSE


def _set_options(process: Process) -> int:
    """Play `set -e`, `set -o pipefail` and the like."""
    words = list(process.words)
    while words:
        word = words.pop(0)
        names = [_OPTIONS.get(letter, letter) for letter in word[1:] if letter != "o"]
        names += [words.pop(0)] if word.endswith("o") and words else []
        if word.startswith("-"):
            process.shell.options.update(names)
        else:
            process.shell.options.difference_update(names)
    return 0
