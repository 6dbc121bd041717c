"""The few shell programs that can be played on a world's files alone: those that only read.

Each takes its words and what is piped into it, and returns what it prints. Options beyond the commonest are
complained about, as a small system's programs do.
"""

from __future__ import annotations

import posixpath
from typing import TYPE_CHECKING

from pytest_openclaw.tools.paths import absolute, place_of
from pytest_openclaw.tools.world.changers import CHANGERS
from pytest_openclaw.tools.world.shell_parts import Complaint, options_of
from pytest_openclaw.tools.world.work import find_steps

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from pytest_openclaw.tools.world.shell_parts import Program, Shell

_PATTERN_CHARS = frozenset("[](){}*+?|^$\\")
MOST_TEXT_CHARS = 2_000_000
"""A program takes no more at once: the same file may be named thousands of times."""
MOST_LISTED = 10_000


def _texts(shell: Shell, program: str, paths: Sequence[str], piped: str) -> str:
    return "".join(_each(shell, program, paths, piped)) if paths else piped


def _each(shell: Shell, program: str, paths: Sequence[str], piped: str) -> list[str]:
    texts: list[str] = []
    left = MOST_TEXT_CHARS
    for path in paths:
        text = piped if path == "-" else shell.read(program, path)
        left -= len(text)
        if left < 0:
            raise Complaint(f"{program}: memory exhausted", 2)
        texts.append(text)
    return texts


def _cat(shell: Shell, words: Sequence[str], piped: str) -> str:
    options, paths = options_of("cat", words, "nuv")
    text = _texts(shell, "cat", paths, piped)
    if "n" in options:
        lines = shell.lines(text)
        shell.workspace.work.spend(len(lines) // 4)
        return "".join(f"{n:6d}\t{line}\n" for n, line in enumerate(lines, 1))
    return text


def _ls(shell: Shell, words: Sequence[str], _: str) -> str:
    options, paths = options_of("ls", words, "1AaFhlprt")
    listed: list[str] = []
    for path in paths or ["."]:
        place = shell.place("ls", path)
        if shell.workspace.text(place) is not None:
            names = [path]
        elif shell.workspace.is_folder(place):
            names = shell.workspace.entries(place)
            names = names if options & {"a", "A"} else [one for one in names if not one.startswith(".")]
        else:
            raise Complaint(f"ls: {path}: No such file or directory", 1, "\n".join(listed))
        shell.workspace.work.spend(len(names) * (10 if "l" in options else 1))
        listed += [f"{path}:"] if len(paths) > 1 else []
        listed += [_long(shell, place, name) if "l" in options else name.rstrip("/") for name in names]
        if len(listed) > MOST_LISTED:
            raise Complaint("ls: memory exhausted", 2)
    return "\n".join(listed)


def _long(shell: Shell, folder: str, name: str) -> str:
    if name.endswith("/"):
        return f"drwxr-xr-x 2 openclaw openclaw 4096 Nov 21 12:00 {name.rstrip('/')}"
    text = shell.workspace.text(folder) or shell.workspace.text(place_of(name, absolute(folder))) or ""
    shell.workspace.work.spend(len(text) // 1000)
    return f"-rw-r--r-- 1 openclaw openclaw {len(text.encode()):4d} Nov 21 12:00 {name}"


def _echo(_: Shell, words: Sequence[str], __: str) -> str:
    options = 0
    while options < len(words) and words[options] in ("-n", "-e", "-E", "-ne", "-en"):
        options += 1
    text = " ".join(words[options:])
    if any("e" in word for word in words[:options]):
        text = text.replace("\\n", "\n").replace("\\t", "\t")
    return text if any("n" in word for word in words[:options]) else f"{text}\n"


def _printf(_: Shell, words: Sequence[str], __: str) -> str:
    form, *values = words or [""]
    text = form.replace("\\n", "\n").replace("\\t", "\t")
    for value in values[:100]:
        text = text.replace("%s", value, 1)
    return text


def _pwd(shell: Shell, _: Sequence[str], __: str) -> str:
    return f"{absolute(shell.folder)}\n"


def _cd(shell: Shell, words: Sequence[str], _: str) -> str:
    path = words[0] if words else absolute("")
    place = shell.place("cd", path)
    if not shell.workspace.is_folder(place):
        raise Complaint(f"sh: cd: {path}: No such file or directory")
    shell.folder = place
    return ""


def _head(shell: Shell, words: Sequence[str], piped: str) -> str:
    number, paths = _count_of("head", words)
    texts = _each(shell, "head", paths or ["-"], piped)
    return _titled(paths, ["".join(shell.lines(text, keepends=True)[:number]) for text in texts])


def _tail(shell: Shell, words: Sequence[str], piped: str) -> str:
    number, paths = _count_of("tail", words)
    found = [shell.lines(text, keepends=True) for text in _each(shell, "tail", paths or ["-"], piped)]
    return _titled(paths, ["".join(lines[max(0, len(lines) - number) :]) for lines in found])


def _titled(paths: Sequence[str], parts: Sequence[str]) -> str:
    """Put the name of each file above its part, where there are several."""
    if len(parts) < 2:
        return "".join(parts)
    return "\n".join(f"==> {path} <==\n{part}" for path, part in zip(paths, parts, strict=True))


def _count_of(program: str, words: Sequence[str]) -> tuple[int, list[str]]:
    """Read `-n 5`, `-n5` and `-5`."""
    number, rest, left = 10, [], list(words)
    while left:
        word = left.pop(0)
        if not word.startswith("-") or word == "-":
            rest.append(word)
            continue
        digits = word[2:] if word.startswith("-n") else word[1:]
        digits = digits or (left.pop(0) if left else "")
        if not (digits.isascii() and digits.isdigit() and len(digits) < 10):
            raise Complaint(f"{program}: unrecognized option: {word[:100]}", 2)
        number = int(digits)
    return number, rest


def _wc(shell: Shell, words: Sequence[str], piped: str) -> str:
    options, paths = options_of("wc", words, "clwm")
    text = _texts(shell, "wc", paths, piped)
    shell.workspace.work.spend(len(text) // 20)
    counts = {"l": text.count("\n"), "w": len(text.split()), "c": len(text.encode()), "m": len(text)}
    shown = [str(n) for key, n in counts.items() if key in (options or {"l", "w", "c"})]
    return " ".join([*shown, *paths]) + "\n"


def _grep(shell: Shell, words: Sequence[str], piped: str) -> str:
    options, rest = options_of("grep", words, "EFchilnqrRvw")
    if not rest:
        raise Complaint("usage: grep PATTERN [FILE]...", 2)
    pattern, *paths = rest
    if "F" not in options and _PATTERN_CHARS & set(pattern):
        raise Complaint("grep: only plain words are understood here, no patterns", 2)
    files = _searched(shell, paths, recursive=bool(options & {"r", "R"})) if paths else {"": piped}
    fold = str.casefold if "i" in options else str
    wanted = fold(pattern)
    found: list[str] = []
    for path, text in files.items():
        lines = shell.lines(text)
        shell.workspace.work.spend(
            sum(find_steps(len(line), len(pattern)) for line in lines) + len(text) // 20
        )
        hits = [(n, line) for n, line in enumerate(lines, 1) if (wanted in fold(line)) != ("v" in options)]
        name = f"{path}:" if len(files) > 1 and "h" not in options else ""
        if "l" in options:
            found += [path] if hits else []
        elif "c" in options:
            found.append(f"{name}{len(hits)}")
        else:
            found += [f"{name}{n}:{line}" if "n" in options else f"{name}{line}" for n, line in hits]
    if not found:
        raise Complaint("", 1)
    return "" if "q" in options else "".join(f"{line}\n" for line in found)


def _searched(shell: Shell, paths: Sequence[str], *, recursive: bool) -> Mapping[str, str]:
    files: dict[str, str] = {}
    for path in dict.fromkeys(paths):
        place = shell.place("grep", path)
        if recursive and shell.workspace.is_folder(place):
            below = [one for one in shell.workspace.below(place) if shell.workspace.text(one) is not None]
            start = absolute(place)
            shell.workspace.work.spend(10 * len(below))
            files |= {
                posixpath.join(path, posixpath.relpath(absolute(one), start)): shell.workspace.files[one]
                for one in below
            }
        else:
            files[path] = shell.read("grep", path)
    return files


def _sort(shell: Shell, words: Sequence[str], piped: str) -> str:
    options, paths = options_of("sort", words, "nru")
    lines = shell.lines(_texts(shell, "sort", paths, piped))
    shell.workspace.work.spend(len(lines) if "n" in options else len(lines) // 2)
    lines = sorted(set(lines) if "u" in options else lines, reverse="r" in options)
    if "n" in options:
        lines.sort(key=_number, reverse="r" in options)
    return "".join(f"{line}\n" for line in lines)


def _number(line: str) -> float:
    word = (line.split() or [""])[0][:30]
    return float(word) if word.lstrip("-").replace(".", "", 1).isdecimal() and word.isascii() else 0.0


def _nothing(_: Shell, __: Sequence[str], ___: str) -> str:
    return ""


def _false(_: Shell, __: Sequence[str], ___: str) -> str:
    raise Complaint("", 1)


PROGRAMS: Mapping[str, Program] = {
    **CHANGERS,
    "cat": _cat,
    "cd": _cd,
    "echo": _echo,
    "false": _false,
    "grep": _grep,
    "head": _head,
    "ls": _ls,
    "printf": _printf,
    "pwd": _pwd,
    "sort": _sort,
    "tail": _tail,
    "true": _nothing,
    "wc": _wc,
}
