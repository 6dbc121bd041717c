"""`find`: files and folders by their names and kinds, in alphabetical order."""

from __future__ import annotations

import posixpath
import re
from dataclasses import replace
from typing import TYPE_CHECKING

from pytest_openclaw.tools.paths import absolute
from pytest_openclaw.tools.world.expansion import file_pattern
from pytest_openclaw.tools.world.shell_parts import Input

if TYPE_CHECKING:
    from collections.abc import Callable

    from pytest_openclaw.tools.world.shell_parts import Process

    Test = Callable[[str, str], bool]
    """Of a path as it is printed, and its place."""

MOST_FOUND = 10_000
MOST_TESTS = 50
_SIZES = {"c": 1, "b": 512, "": 512, "k": 1024, "M": 1 << 20, "G": 1 << 30}


def find(process: Process) -> str:
    """Visit all files and folders below some paths, and print those that fit."""
    words = list(process.words)
    paths: list[str] = []
    while words and not words[0].startswith("-") and words[0] not in ("(", "!"):
        paths.append(words.pop(0))
    visit = _Visit(process, words)
    for path in paths or ["."]:
        place = process.place(path)
        if not process.workspace.is_there(place):
            process.complain(f"'{path}': No such file or directory")
            continue
        visit.take(path, place)
    visit.finish()
    return "".join(visit.printed)


class _Visit:
    """Tests and actions of a call, read by recursive descent: `-o` binds least, then `-a`, then `!`.

    Raises:
        Complaint: a test is not known or incomplete.
    """

    def __init__(self, process: Process, words: list[str]) -> None:
        self.printed: list[str] = []
        self._process = process
        self._words = words
        self._depths = {"-mindepth": 0, "-maxdepth": 1_000_000}
        self._has_action = False
        self._is_upward = "-delete" in words or "-depth" in words
        self._together: list[tuple[list[str], list[str]]] = []
        if len(words) > MOST_TESTS:
            raise process.fail("too many tests")
        self._test = self._any() if words else _always
        if self._words:
            raise process.fail(f"paths must precede expression: '{self._words[0][:100]}'")

    def take(self, path: str, place: str) -> None:
        """Test a path and all that is below it."""
        workspace, base = self._process.workspace, absolute(place)
        below = workspace.below(place) if workspace.is_folder(place) else []
        workspace.work.spend(10 * (1 + len(below)))
        names = sorted((posixpath.relpath(absolute(one), base).split("/"), one) for one in below)
        found = [((), place), *names]
        for parts, one in (found[::-1] if self._is_upward else found)[:MOST_FOUND]:
            if self._depths["-mindepth"] <= len(parts) <= self._depths["-maxdepth"]:
                workspace.work.spend(5)
                name = posixpath.join(path, *parts)
                if self._test(name, one) and not self._has_action:
                    self.printed.append(f"{name}\n")

    def finish(self) -> None:
        """Run what `-exec … +` runs once for all."""
        for command, names in self._together:
            if names:
                self._run([*command, *names])

    # --- reading ---

    def _any(self) -> Test:
        tests = [self._all()]
        while self._take("-o", "-or"):
            tests.append(self._all())
        return tests[0] if len(tests) == 1 else lambda path, place: any(test(path, place) for test in tests)

    def _all(self) -> Test:
        tests = [self._one()]
        while self._words and self._words[0] not in ("-o", "-or", ")"):
            self._take("-a", "-and")
            tests.append(self._one())
        return tests[0] if len(tests) == 1 else lambda path, place: all(test(path, place) for test in tests)

    def _one(self) -> Test:
        if self._take("!", "-not"):
            inner = self._one()
            return lambda path, place: not inner(path, place)
        if self._take("("):
            inner = self._any()
            if not self._take(")"):
                raise self._process.fail("invalid expression; expected to find a ')'")
            return inner
        word = self._next("an expression")
        if word in self._depths:
            number = self._next(word)
            if not (number.isascii() and number.isdigit() and len(number) < 6):
                raise self._process.fail(f"Expected a positive decimal integer argument to {word}")
            self._depths[word] = int(number)
            return _always
        if word in ("-print", "-print0", "-delete", "-exec"):
            self._has_action = True
            return self._action(word)
        return self._plain(word)

    def _plain(self, word: str) -> Test:
        workspace = self._process.workspace
        if word == "-empty":
            return lambda _, place: (
                not workspace.below(place) if workspace.is_folder(place) else not workspace.text(place)
            )
        if word in ("-true", "-depth"):
            return _always
        if word not in ("-name", "-iname", "-path", "-ipath", "-wholename", "-type", "-size"):
            raise self._process.fail(f"unknown predicate '{word[:100]}'")
        value = self._next(word)
        if word == "-type":
            if value not in ("f", "d", "l"):
                raise self._process.fail(f"Unknown argument to -type: {value[:100]}")
            return lambda _, place: value != "l" and workspace.is_folder(place) == (value == "d")
        if word == "-size":
            return self._size(value)
        fits = file_pattern(value, ignore_case=word.startswith("-i"))
        workspace.work.spend(150)
        if word in ("-name", "-iname"):
            return lambda path, _: bool(fits(posixpath.basename(path.rstrip("/")) or path))
        return lambda path, _: bool(fits(path))

    def _size(self, value: str) -> Test:
        found = re.fullmatch(r"([-+]?)(\d{1,9})([cbkMG]?)", value)
        if found is None:
            raise self._process.fail(f"Invalid argument `{value[:100]}' to -size")
        unit, number, sign = _SIZES[found[3]], int(found[2]), found[1]
        workspace = self._process.workspace

        def fits(_: str, place: str) -> bool:
            text = workspace.text(place)
            size = -(-(4096 if text is None else len(text.encode())) // unit)
            return size > number if sign == "+" else size < number if sign == "-" else size == number

        return fits

    def _action(self, word: str) -> Test:
        if word == "-delete":
            return self._delete
        if word != "-exec":
            end = "\0" if word == "-print0" else "\n"

            def show(path: str, _: str) -> bool:
                self.printed.append(path + end)
                return True

            return show
        command: list[str] = []
        while (one := self._next("-exec")) not in (";", "+"):
            command.append(one)
        if one == "+" and command[-1:] == ["{}"]:
            names: list[str] = []
            self._together.append((command[:-1], names))

            def gather(path: str, _: str) -> bool:
                names.append(path)
                return True

            return gather
        return lambda path, _: self._run([part.replace("{}", path) for part in command]) == 0

    # --- acting ---

    def _delete(self, path: str, place: str) -> bool:
        workspace = self._process.workspace
        if path == "." or workspace.below(place):
            self._process.complain(f"cannot delete '{path}': Directory not empty")
            return False
        workspace.remove(place)
        return True

    def _run(self, words: list[str]) -> int:
        process = self._process
        process.streams.out("".join(self.printed))
        self.printed.clear()
        return process.run(words, replace(process.streams, stdin=Input()), process.shell)

    def _take(self, *words: str) -> bool:
        found = self._words[:1] != [] and self._words[0] in words
        if found:
            self._words.pop(0)
        return found

    def _next(self, what: str) -> str:
        if not self._words:
            raise self._process.fail(f"missing argument to '{what}'")
        return self._words.pop(0)


def _always(_: str, __: str) -> bool:
    return True
