"""What the programs of a world's shell have in common: the shell itself, streams and options."""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING

from pytest_openclaw.tools.paths import HOME, absolute, is_inside, place_of
from pytest_openclaw.tools.world.workspace import ToolError

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence

    from pytest_openclaw.tools.world.workspace import Workspace

    Program = Callable[["Process"], str]
    Output = Callable[[str], None]
    """Takes what a program prints."""

_MISUSES = {"grep": 2, "ls": 2, "sort": 2, "test": 2, "[": 2, "env": 125, "diff": 2}
"""Exit codes for unknown options; others have 1."""

_MISSING = {
    "sed": "can't read {}", "head": "cannot open '{}' for reading", "tail": "cannot open '{}' for reading",
    "sort": "cannot read: {}", "tac": "failed to open '{}' for reading", "rev": "cannot open {}",
}  # fmt: skip


class Complaint(Exception):  # it ends one program, and is printed
    """A program ends with an error; without a text only with its exit code."""

    def __init__(self, text: str, code: int = 1) -> None:
        super().__init__(text)
        self.code = code


class Collected:
    """An output that is kept, up to a limit."""

    def __init__(self) -> None:
        self._texts: list[str] = []
        self._left = MOST_TEXT_CHARS

    def write(self, text: str) -> None:
        """Keep what fits."""
        if text and self._left:
            self._texts.append(text[: self._left])
            self._left -= len(self._texts[-1])

    @property
    def text(self) -> str:
        """All that was kept."""
        return "".join(self._texts)


@dataclass
class Input:
    """What a program may read, once."""

    text: str = ""

    def take(self) -> str:
        """Return all that is left."""
        text, self.text = self.text, ""
        return text


@dataclass(kw_only=True)
class Streams:
    """Where a program reads and prints."""

    stdin: Input
    out: Output
    err: Output

    def redirect(self, stream: int, to: Output) -> None:
        """Send the standard output (1) or the errors (2) elsewhere."""
        if stream == 2:
            self.err = to
        else:
            self.out = to


@dataclass
class Shell:
    """The state of a shell.

    Attributes:
        folder: the current one, a place.
        variables: by name; those in `exported` are the environment of programs.
        code: the exit code of the last command.
        options: that were set, such as `errexit`.
    """

    workspace: Workspace
    folder: str = ""
    variables: dict[str, str] = field(default_factory=dict)
    exported: set[str] = field(default_factory=set)
    code: int = 0
    options: set[str] = field(default_factory=set)

    @classmethod
    def start(cls, workspace: Workspace, folder: str, env: Mapping[str, str]) -> Shell:
        """Return a shell as it starts, with the variables of any system and further ones."""
        variables = {"HOME": HOME, "LANG": "C.UTF-8", "PATH": "/usr/local/bin:/usr/bin:/bin"}
        variables |= {"PWD": absolute(folder), "SHELL": "/bin/sh", "USER": "openclaw", **env}
        return cls(workspace, folder, variables, set(variables))

    def copy(self) -> Shell:
        """Return a shell that starts as this one is, on the same files."""
        return replace(
            self,
            variables=dict(self.variables),
            exported=set(self.exported),
            options=set(self.options),
        )

    def place(self, program: str, path: str) -> str:
        """Return the place of a path."""
        self.workspace.work.spend(10 + len(path) // 20)
        if not path:
            raise Complaint(f"{program}: '': No such file or directory")
        try:
            place = place_of(path.replace("~", "./~", 1) if path.startswith("~") else path, self.folder)
        except ValueError as error:
            raise Complaint(f"{program}: {error}") from None
        if path.endswith("/") and self.workspace.text(place) is not None:
            raise Complaint(f"{program}: {path}: Not a directory")
        return place


@dataclass(kw_only=True)
class Process:
    """A program in execution.

    Attributes:
        name: by which it was called.
        words: its arguments.
        code: with which it will exit.
        run: runs another program in the same shell with other words and streams, and returns its exit code.
    """

    shell: Shell
    name: str
    words: Sequence[str]
    streams: Streams
    run: Callable[[Sequence[str], Streams, Shell], int]
    code: int = 0

    @property
    def workspace(self) -> Workspace:
        """The files."""
        return self.shell.workspace

    def complain(self, text: str, code: int = 1) -> None:
        """Print an error, and continue."""
        self.streams.err(f"{self.name}: {text}\n")
        self.code = max(code, self.code)

    def fail(self, text: str, code: int | None = None) -> Complaint:
        """Return an error that ends the program."""
        return Complaint(f"{self.name}: {text}", _MISUSES.get(self.name, 1) if code is None else code)

    def place(self, path: str) -> str:
        """Return the place of a path."""
        return self.shell.place(self.name, path)

    def read(self, path: str) -> str:
        """Return the text of a file; of `-` that of the standard input."""
        if path == "-":
            return self.streams.stdin.take()
        place = self.place(path)
        text = self.workspace.text(place)
        if text is None:
            if self.workspace.is_folder(place):
                raise self.fail(f"{path}: Is a directory")
            raise self.fail(f"{_MISSING.get(self.name, '{}').format(path)}: No such file or directory")
        self.workspace.work.spend(len(text) // 100)
        return text

    def texts(self, paths: Sequence[str], *, with_folders: bool = False) -> list[tuple[str, str]]:
        """Return path and text of each file that can be read, of the standard input without any.

        The errors of the others are printed; folders are empty texts if they are wanted.
        """
        found: list[tuple[str, str]] = []
        left = MOST_TEXT_CHARS
        for path in paths or ["-"]:
            try:
                text = self.read(path)
            except Complaint as complaint:
                self.streams.err(f"{complaint}\n")
                self.code = max(self.code, complaint.code)
                if not (with_folders and self.workspace.is_folder(self.place(path))):
                    continue
                text = ""
            left -= len(text)
            if left < 0:
                raise self.fail("memory exhausted", 2)
            found.append((path, text))
        return found

    def lines(self, text: str) -> list[str]:
        """Return the lines of a text, without their ends."""
        self.workspace.work.spend(1 + len(text) // 100)
        lines = text.split("\n")
        self.workspace.work.spend(len(lines) // 8)
        return lines[:-1] if lines[-1] == "" else lines

    def write(self, place: str, text: str) -> None:
        """Write a file."""
        try:
            self.workspace.put(place, text)
        except ToolError as error:
            raise self.fail(str(error), 1) from None

    def target(self, path: str) -> str:
        """Return the place of a path that is to be changed, which must be in the workspace."""
        place = self.place(path)
        if not is_inside(place) or not place:
            raise self.fail(f"{path}: Permission denied", 1)
        return place

    def options(
        self, flags: str = "", valued: str = "", long: Mapping[str, str] | None = None
    ) -> tuple[dict[str, list[str]], list[str]]:
        """Return the options, each with its values, and the other words; as GNU's programs read them.

        Args:
            flags: letters without a value.
            valued: letters with one.
            long: long options → their letters.

        Raises:
            Complaint: there is another option.
        """
        found: dict[str, list[str]] = {}
        rest: list[str] = []
        words = list(self.words)
        while words:
            word = words.pop(0)
            if word == "--":
                return found, rest + words
            if word == "-" or not word.startswith("-"):
                rest.append(word)
            elif word.startswith("--"):
                name, has_value, value = word[2:].partition("=")
                letter = (long or {}).get(name)
                if letter is None:
                    raise self.fail(f"unrecognized option '{word[:100]}'")
                if letter in valued and not has_value:
                    if not words:
                        raise self.fail(f"option '{word}' requires an argument")
                    value = words.pop(0)
                found.setdefault(letter, []).append(value)
            else:
                self._letters(word[1:], words, flags, valued, found)
        return found, rest

    def _letters(
        self, letters: str, words: list[str], flags: str, valued: str, found: dict[str, list[str]]
    ) -> None:
        for n, letter in enumerate(letters, 1):
            if letter in valued:
                if not letters[n:] and not words:
                    raise self.fail(f"option requires an argument -- '{letter}'")
                found.setdefault(letter, []).append(letters[n:] or words.pop(0))
                return
            if letter not in flags:
                raise self.fail(f"invalid option -- '{letter}'")
            found.setdefault(letter, []).append("")


MOST_TEXT_CHARS = 2_000_000
"""A program takes no more at once: the same file may be named thousands of times."""
