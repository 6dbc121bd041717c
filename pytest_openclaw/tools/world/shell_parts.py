"""What the programs of a world's shell have in common: where they run, and how they complain."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from pytest_openclaw.tools.paths import is_inside, place_of
from pytest_openclaw.tools.world.workspace import ToolError

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from pytest_openclaw.tools.world.workspace import Workspace

    Program = Callable[["Shell", Sequence[str], str], str]


class Complaint(Exception):  # it ends one program, and is printed
    """A program ends with an error.

    Attributes:
        printed: what it had printed by then.
    """

    def __init__(self, text: str, code: int = 1, printed: str = "") -> None:
        super().__init__(text)
        self.code = code
        self.printed = printed


@dataclass
class Shell:
    """Where a program runs.

    Attributes:
        folder: the current one, a place.
    """

    workspace: Workspace
    folder: str = ""

    def place(self, program: str, path: str) -> str:
        """Return the place of a path."""
        self.workspace.work.spend(10 + len(path) // 20)
        try:
            return place_of(path, self.folder)
        except ValueError as error:
            raise Complaint(f"{program}: {error}") from None

    def read(self, program: str, path: str) -> str:
        """Return the text of a file."""
        place = self.place(program, path)
        text = self.workspace.text(place)
        if text is None:
            why = "Is a directory" if self.workspace.is_folder(place) else "No such file or directory"
            raise Complaint(f"{program}: {path}: {why}")
        self.workspace.work.spend(len(text) // 100)
        return text

    def lines(self, text: str, *, keepends: bool = False) -> list[str]:
        """Return the lines of a text."""
        self.workspace.work.spend(1 + len(text) // 100)
        lines = text.splitlines(keepends)
        self.workspace.work.spend(len(lines) // 8)
        return lines

    def write(self, program: str, place: str, text: str) -> None:
        """Write a file."""
        try:
            self.workspace.put(place, text)
        except ToolError as error:
            raise Complaint(f"{program}: {error}") from None

    def target(self, program: str, path: str) -> str:
        """Return the place of a path that is to be changed, which must be in the workspace."""
        place = self.place(program, path)
        if not is_inside(place) or not place:
            raise Complaint(f"{program}: {path}: Permission denied")
        return place


def options_of(program: str, words: Sequence[str], known: str) -> tuple[set[str], list[str]]:
    """Split single-letter options from the rest.

    Raises:
        Complaint: there is another option.
    """
    options: set[str] = set()
    rest: list[str] = []
    for n, word in enumerate(words):
        if word == "--":
            rest += words[n + 1 :]
            break
        if word.startswith("-") and len(word) > 1:
            for letter in word[1:]:
                if letter not in known:
                    raise Complaint(f"{program}: unrecognized option: {word[:100]}", 2)
                options.add(letter)
        else:
            rest.append(word)
    return options, rest
