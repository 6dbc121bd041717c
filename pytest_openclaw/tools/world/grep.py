"""`grep`, with POSIX patterns and folders."""

from __future__ import annotations

import posixpath
from dataclasses import dataclass
from typing import TYPE_CHECKING

from pytest_openclaw.tools.paths import absolute
from pytest_openclaw.tools.world.expansion import file_pattern
from pytest_openclaw.tools.world.posix_patterns import Pattern, PatternError
from pytest_openclaw.tools.world.shell_parts import Complaint

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence

    from pytest_openclaw.tools.world.shell_parts import Process

    Options = Mapping[str, Sequence[str]]

_LONG = {
    "after-context": "A", "before-context": "B", "color": "K", "context": "C", "count": "c", "exclude": "X",
    "exclude-dir": "D", "extended-regexp": "E", "files-with-matches": "l", "files-without-match": "L",
    "fixed-strings": "F", "ignore-case": "i", "include": "I", "invert-match": "v", "line-number": "n",
    "line-regexp": "x", "max-count": "m", "no-filename": "h", "no-messages": "s", "only-matching": "o",
    "quiet": "q", "recursive": "r", "regexp": "e", "with-filename": "H", "word-regexp": "w",
}  # fmt: skip
_FLAGS = "EFGchHilLnoqrRsvwx"


def grep(process: Process) -> str:
    """Print the lines that match; exit with 1 if none does."""
    options, rest = process.options(_FLAGS, "ABCemIXD", _LONG)
    if "e" not in options and not rest:
        raise process.fail("usage: grep [OPTION]... PATTERNS [FILE]...", 2)
    texts = options["e"] if "e" in options else [rest.pop(0)]
    pattern = _pattern(process, options, [one for text in texts for one in text.split("\n")])
    printed: list[str] = []
    has_found = False
    # With -q, no path is looked at behind the first with a line that matches.
    for paths in [[path] for path in rest] if rest and "q" in options else [rest]:
        files, is_named = _searched(process, options, paths)
        search = _Search(process, options, pattern, (is_named and "h" not in options) or "H" in options)
        for path, text in files:
            printed += search.lines(path, text)
            has_found = has_found or search.n_hits > 0
            if has_found and "q" in options:
                process.code = 0
                return ""
    process.code = max(process.code, int(not has_found))
    if search.has_context:
        printed = printed[:-1] if printed[-1:] == ["--"] else printed
    return "" if "q" in options else "".join(f"{line}\n" for line in printed)


def _pattern(process: Process, options: Options, texts: Sequence[str]) -> Pattern:
    try:
        return Pattern(
            texts,
            process.workspace.work,
            syntax="fixed" if "F" in options else "extended" if "E" in options else "basic",
            ignore_case="i" in options,
            whole="line" if "x" in options else "word" if "w" in options else "",
        )
    except PatternError as error:
        raise process.fail(str(error), 2) from None


def _searched(process: Process, options: Options, paths: Sequence[str]) -> tuple[list[tuple[str, str]], bool]:
    """Return the files to search, and whether their names are printed."""
    recursive = bool(options.keys() & {"r", "R"})
    found: list[tuple[str, str]] = []
    has_folder = False
    seen: set[str] = set()
    for path in paths or (["."] if recursive else ["-"]):
        if path == "-":
            found.append(("(standard input)", process.read(path)))
            continue
        place = process.place(path)
        if process.workspace.is_folder(place):
            if not recursive:
                _complain(process, options, f"{path}: Is a directory")
                found.append((path, ""))
            elif place not in seen:
                found += [
                    (name.removeprefix("./") if not paths else name, process.workspace.files[one])
                    for name, one in _below(process, options, path, place)
                ]
            seen.add(place)
            has_folder = True
            continue
        try:
            text = process.read(path)
        except Complaint as complaint:
            _complain(process, options, str(complaint).removeprefix("grep: "))
        else:
            if _is_included(options, posixpath.basename(path)):
                found.append((path, text))
    return found, len(paths) > 1 or (recursive and has_folder)


def _complain(process: Process, options: Options, text: str) -> None:
    if "s" in options:
        process.code = 2
    else:
        process.complain(text, 2)


def _below(process: Process, options: Options, path: str, place: str) -> Iterator[tuple[str, str]]:
    below = sorted(one for one in process.workspace.below(place) if one in process.workspace.files)
    process.workspace.work.spend(10 * len(below))
    for one in below:
        name = posixpath.relpath(absolute(one), absolute(place))
        folders = name.split("/")[:-1]
        is_excluded = any(
            file_pattern(pattern)(folder) for pattern in options.get("D", ()) for folder in folders
        )
        if not is_excluded and _is_included(options, posixpath.basename(name)):
            process.workspace.work.spend(len(process.workspace.files[one]) // 100)
            yield posixpath.join(path, name), one


def _is_included(options: Options, name: str) -> bool:
    included, excluded = options.get("I", ()), options.get("X", ())
    fits = not included or any(file_pattern(pattern)(name) for pattern in included)
    return fits and not any(file_pattern(pattern)(name) for pattern in excluded)


@dataclass
class _Search:
    """Searches texts; `n_hits` is the number of matching lines of the last one."""

    process: Process
    options: Options
    pattern: Pattern
    is_named: bool
    n_hits: int = 0

    def lines(self, path: str, text: str) -> list[str]:
        """Return what is printed for a text."""
        lines = self.process.lines(text)
        is_inverted = "v" in self.options
        self.process.workspace.work.spend(len(text) // 50 + len(lines))
        hits = [n for n, line in enumerate(lines) if (self.pattern.find(line) is None) == is_inverted]
        hits = hits[: self._number("m", len(hits))]
        self.n_hits = len(hits)
        name = path if self.is_named else ""
        if "l" in self.options or "L" in self.options:
            return [path] if bool(hits) == ("l" in self.options) else []
        if "c" in self.options:
            return [f"{name}:{len(hits)}" if name else str(len(hits))]
        if "o" in self.options:
            return [self._line(name, n, part, ":") for n in hits for part in self._parts(lines[n])]
        if self.has_context:
            return self._with_context(name, lines, hits)
        return [self._line(name, n, lines[n], ":") for n in hits]

    def _parts(self, line: str) -> Iterator[str]:
        if "v" in self.options:
            return
        at = 0
        while at <= len(line) and (found := self.pattern.find(line, at)):
            start, end = found[0]
            if end > start:
                yield line[start:end]
            at = max(end, start + 1)

    def _line(self, name: str, n: int, line: str, mark: str) -> str:
        numbered = f"{n + 1}{mark}{line}" if "n" in self.options else line
        return f"{name}{mark}{numbered}" if name else numbered

    @property
    def has_context(self) -> bool:
        """Whether lines around the matching ones are printed."""
        return bool(self.options.keys() & set("ABC")) and self.options.keys().isdisjoint("clLoq")

    def _with_context(self, name: str, lines: list[str], hits: list[int]) -> list[str]:
        before, after = self._number("B", self._number("C", 0)), self._number("A", self._number("C", 0))
        printed: list[str] = []
        last = -1
        for n in hits:
            first = max(n - before, last + 1)
            if printed and first > last + 1:
                printed.append("--")
            end = min(len(lines), n + after + 1)
            nearest = next((hit for hit in hits if hit > n), len(lines))
            printed += [
                self._line(name, m, lines[m], ":" if m == n else "-")
                for m in range(first, min(end, max(nearest, n + 1)))
            ]
            last = max(last, min(end, max(nearest, n + 1)) - 1)
        return [*printed, "--"] if printed else []

    def _number(self, letter: str, default: int) -> int:
        value = self.options.get(letter, [""])[-1]
        if letter in self.options and not (value.isascii() and value.isdigit() and len(value) < 10):
            raise self.process.fail(f"{value[:100]}: invalid context length argument", 2)
        return int(value) if value else default
