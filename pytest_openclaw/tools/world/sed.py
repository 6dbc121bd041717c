"""`sed`: prints, deletes, changes and substitutes lines, without branches and hold space."""

from __future__ import annotations

import re
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from pytest_openclaw.tools.world.posix_patterns import Pattern, PatternError

if TYPE_CHECKING:
    from collections.abc import Sequence

    from pytest_openclaw.tools.world.shell_parts import Process

MOST_COMMANDS = 100
_LONG = {"quiet": "n", "silent": "n", "expression": "e", "regexp-extended": "E", "in-place": "i"}
_ADDRESS = re.compile(r"(\d{1,9})(?:~(\d{1,9}))?|(\$)|(/)|\\(.)")
_FLAGS = re.compile(r"(?:[gpIi]|\d{1,6})*")


@dataclass(kw_only=True)
class _Address:
    """A line by its number, `$`, a pattern, or every n-th line from one on."""

    number: int | None = None
    step: int = 0
    is_last: bool = False
    pattern: Pattern | None = None

    def fits(self, n: int, line: str, *, is_last: bool) -> bool:
        if self.pattern is not None:
            return self.pattern.find(line) is not None
        if self.is_last:
            return is_last
        number = self.number or 0
        if self.step:
            return n >= number and (n - number) % self.step == 0
        return n == number


@dataclass(kw_only=True)
class _Command:
    """A letter with its addresses.

    Attributes:
        more: lines after the first address, of `2,+3`.
        text: of `a`, `i`, `c`; the new characters of `y`, the replacement of `s`.
        until: the last line of the range that the lines are in; None outside.
    """

    letter: str
    first: _Address | None = None
    last: _Address | None = None
    more: int | None = None
    is_negated: bool = False
    pattern: Pattern | None = None
    text: str = ""
    flags: str = ""
    changes: dict[int, str] = field(default_factory=dict)
    is_open: bool = False
    until: int | None = None

    def selects(self, n: int, line: str, *, is_last: bool) -> bool:
        """Whether it applies to a line; the state of its range is kept."""
        return self._is_inside(n, line, is_last=is_last) != self.is_negated

    def _is_inside(self, n: int, line: str, *, is_last: bool) -> bool:
        if self.first is None:
            return True
        if self.last is None and self.more is None:
            return self.first.fits(n, line, is_last=is_last)
        if self.is_open:
            self.is_open = not self._ends(n, line, is_last=is_last)
            # A range whose end is a line before this one is over already.
            return not (self.until is not None and n > self.until)
        if not self.first.fits(n, line, is_last=is_last):
            return False
        self.until = n + self.more if self.more is not None else self.last.number if self.last else None
        if self.last is not None and self.last.pattern is not None:
            self.until = None
        self.is_open = not is_last if self.until is None else self.until > n
        if self.last is not None and self.last.is_last:
            self.is_open = not is_last
        return True

    def _ends(self, n: int, line: str, *, is_last: bool) -> bool:
        if self.until is not None:
            return n >= self.until
        return self.last is not None and self.last.fits(n, line, is_last=is_last)


def sed(process: Process) -> str:
    """Apply a script to each line."""
    words = [("-i" if word.startswith("-i.") else word) for word in process.words]
    process.words = words
    options, rest = process.options("nErisz", "e", _LONG)
    if "e" not in options and not rest:
        raise process.fail("usage: sed [OPTION]... {script-only-if-no-other-script} [input-file]...")
    texts = options["e"] if "e" in options else [rest.pop(0)]
    syntax = "extended" if options.keys() & {"E", "r"} else "basic"

    def edited(text: str) -> str:
        commands = _SedReader(process, "\n".join(texts), syntax).commands()
        return _Editing(process, commands, is_quiet="n" in options).apply(text)

    if "i" not in options:
        return edited("".join(_joined(process, rest)))
    for path, text in _texts(process, rest):
        process.write(process.target(path), edited(text))
    return ""


def _texts(process: Process, paths: Sequence[str]) -> list[tuple[str, str]]:
    """Return the texts; sed exits with 2 if a file is not there, and with 4 at a folder."""
    found = process.texts(paths)
    if process.code:
        process.code = 4 if any(process.workspace.is_folder(process.place(path)) for path in paths) else 2
    return found


def _joined(process: Process, paths: Sequence[str]) -> list[str]:
    """Return the texts; one without a line end at its end is continued on a new line."""
    found = [text for _, text in _texts(process, paths)]
    return [
        f"{text}\n" if text and text[-1] != "\n" and n < len(found) - 1 else text
        for n, text in enumerate(found)
    ]


class _Editing:
    """Applies commands to a text.

    Attributes:
        printed: lines without their ends.
        is_open: the last of them is the text's last line, whose end is missing if it is missing there.
    """

    def __init__(self, process: Process, commands: Sequence[_Command], *, is_quiet: bool) -> None:
        self.printed: list[str] = []
        self.is_open = False
        self._process = process
        self._commands = commands
        self._is_quiet = is_quiet

    def apply(self, text: str) -> str:
        """Return what is printed for a text."""
        lines = self._process.lines(text)
        self._process.workspace.work.spend(len(lines) * (2 + len(self._commands)))
        for n, line in enumerate(lines, 1):
            if self._edit(n, line, is_last=n == len(lines)):
                break
        whole = "".join(f"{line}\n" for line in self.printed)
        return whole[:-1] if self.is_open and not text.endswith("\n") else whole

    def _print(self, line: str, *, is_open: bool = False) -> None:
        self.printed.append(line)
        self.is_open = is_open

    def _substitute(self, command: _Command, line: str, *, is_last: bool) -> str:
        changed = _substituted(self._process, command, line)
        if changed is not None and "p" in command.flags:
            self._print(changed, is_open=is_last)
        return line if changed is None else changed

    def _edit(self, n: int, line: str, *, is_last: bool) -> bool:
        """Apply the commands to a line; returns whether it is the last one."""
        is_kept, is_over, after = True, False, []
        for command in self._commands:
            if not command.selects(n, line, is_last=is_last):
                continue
            match command.letter:
                case "p":
                    self._print(line, is_open=is_last)
                case "i" | "=":
                    self._print(command.text or str(n))
                case "a":
                    after.append(command.text)
                case "y":
                    line = line.translate(command.changes)
                case "s":
                    line = self._substitute(command, line, is_last=is_last)
                case "c" if command.is_negated or not command.is_open:
                    self._print(command.text)
            is_kept, is_over = command.letter not in "dc", command.letter == "q"
            if is_over or not is_kept:
                break
        if is_kept and not self._is_quiet:
            self._print(line, is_open=is_last)
        for text in after:
            self._print(text)
        return is_over


def _substituted(process: Process, command: _Command, line: str) -> str | None:
    """Return the line with its matches replaced; None if there is none."""
    assert command.pattern is not None, "of `s`"
    wanted = int("".join(char for char in command.flags if char.isdigit()) or 1)
    pieces: list[str] = []
    at = n_found = copied = 0
    previous_end = -1
    while at <= len(line) and (found := command.pattern.find(line, at)):
        start, end = found[0]
        if start == end == previous_end:  # an empty match right behind one is none
            at += 1
            continue
        n_found += 1
        if n_found >= wanted:
            pieces += [line[copied:start], _replacement(command.text, line, found)]
            copied = end
            if "g" not in command.flags:
                break
        previous_end = end
        at = end if end > start else end + 1
    if n_found < wanted:
        return None
    process.workspace.work.spend(sum(map(len, pieces)) // 50)
    return "".join(pieces) + line[copied:]


def _replacement(text: str, line: str, found: Sequence[tuple[int, int]]) -> str:
    def part(one: re.Match[str]) -> str:
        if one[0] == "&" or one[0][1].isdigit():
            start, end = found[0 if one[0] == "&" else int(one[0][1])]
            return line[start:end] if start >= 0 else ""
        return {"n": "\n", "t": "\t"}.get(one[0][1], one[0][1])

    return re.sub(r"&|\\.", part, text, flags=re.DOTALL)


@dataclass
class _SedReader:
    """Reads a script.

    Raises:
        Complaint: it has a command that is not played.
    """

    process: Process
    text: str
    syntax: str
    at: int = 0

    def commands(self) -> list[_Command]:
        """Return the commands in order."""
        found: list[_Command] = []
        while self._skip("; \t\n"):
            found.append(self._command())
            if len(found) > MOST_COMMANDS:
                raise self._error("too many commands")
        return found

    def _command(self) -> _Command:
        command = _Command(letter="", first=self._address())
        if command.first is not None and self._skip(" ") and self._take(","):
            self._skip(" ")
            if self._take("+"):
                command.more = self._number()
            else:
                command.last = self._address()
                if command.last is None:
                    raise self._error("unexpected `,'")
        while self._skip(" \t") and self._take("!"):
            command.is_negated = True
        command.letter = self.text[self.at : self.at + 1]
        self.at += 1
        match command.letter:
            case "":
                raise self._error("missing command")
            case "q" if command.last is not None or command.more is not None:
                raise self._error("command only uses one address")
            case "p" | "d" | "q" | "=":
                self._close()
            case "a" | "i" | "c":
                command.text = self._line()
            case "s":
                self._substitution(command)
            case "y":
                old, new = self._parts("y")
                if len(old) != len(new):
                    raise self._error("strings for `y' command are different lengths")
                command.changes = {ord(one): other for one, other in zip(old, new, strict=True)}
                self._close()
            case _:
                raise self._error(f"unknown command: `{command.letter}'")
        return command

    def _address(self) -> _Address | None:
        found = _ADDRESS.match(self.text, self.at)
        if found is None:
            return None
        self.at = found.end()
        if found[1] is not None:
            return _Address(number=int(found[1]), step=int(found[2] or 0))
        if found[3]:
            return _Address(is_last=True)
        text = self._until(found[4] or found[5])
        ignore_case = self._take("I")
        return _Address(pattern=self._pattern(text, ignore_case=ignore_case))

    def _substitution(self, command: _Command) -> None:
        old, command.text = self._parts("s")
        flags = _FLAGS.match(self.text, self.at)
        command.flags = flags[0] if flags else ""
        self.at += len(command.flags)
        command.pattern = self._pattern(old, ignore_case=bool(set(command.flags) & {"i", "I"}))
        n_groups = max((int(one) for one in re.findall(r"\\(\d)", command.text)), default=0)
        if n_groups > command.pattern.n_groups:
            raise self._error(f"invalid reference \\{n_groups} on `s' command's RHS")
        self._close()

    def _parts(self, letter: str) -> tuple[str, str]:
        mark = self.text[self.at : self.at + 1]
        if not mark or mark in "\\\n":
            raise self._error(f"unterminated `{letter}' command")
        self.at += 1
        return self._until(mark), self._until(mark, keeps=True)

    def _until(self, mark: str, *, keeps: bool = False) -> str:
        """Return the text up to a mark, which may be escaped, and move behind it."""
        start = self.at
        is_set = False
        while self.at < len(self.text):
            char = self.text[self.at]
            if char == "\\":
                self.at += 1
            elif char == mark and not is_set:
                text = self.text[start : self.at]
                self.at += 1
                return text.replace(f"\\{mark}", mark)
            elif not keeps and char in "[]":
                is_set = (char == "[" and not is_set) or (is_set and char != "]")
            self.at += 1
        raise self._error("unterminated address regex or `s' command")

    def _line(self) -> str:
        """Return the text of `a`, `i` and `c`: the rest of the line, or the lines that go on."""
        self._skip(" \t")
        if found := re.compile(r"\\([ \t]*\n)?").match(self.text, self.at):
            self.at = found.end()
        end = re.compile(r"(?:\\.|[^\n\\])*", re.DOTALL).match(self.text, self.at)
        assert end is not None, "it may be empty"
        self.at = end.end()
        if not end[0]:
            raise self._error("expected \\ after `a', `c' or `i'")
        return re.sub(r"\\(.)", lambda one: {"t": "\t"}.get(one[1], one[1]), end[0], flags=re.DOTALL)

    def _pattern(self, text: str, *, ignore_case: bool) -> Pattern:
        if not text:
            raise self._error("no previous regular expression")
        try:
            work = self.process.workspace.work
            return Pattern([text], work, syntax=self.syntax, ignore_case=ignore_case)
        except PatternError as error:
            raise self._error(str(error)) from None

    def _close(self) -> None:
        self._skip(" \t")
        if self.at < len(self.text) and self.text[self.at] not in ";\n}#":
            raise self._error("extra characters after command")

    def _number(self) -> int:
        found = re.compile(r"\d{1,9}").match(self.text, self.at)
        if found is None:
            raise self._error("expected a number")
        self.at = found.end()
        return int(found[0])

    def _skip(self, chars: str) -> bool:
        """Skip characters; returns whether there are others."""
        while self.at < len(self.text) and self.text[self.at] in chars:
            self.at += 1
        return self.at < len(self.text)

    def _take(self, mark: str) -> bool:
        found = self.text.startswith(mark, self.at)
        self.at += len(mark) if found else 0
        return found

    def _error(self, why: str) -> Exception:
        return self.process.fail(f"-e expression #1, char {self.at}: {why}")
