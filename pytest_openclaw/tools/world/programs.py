"""The shell programs that can be played on a world alone, by name.

Each takes its process and returns what it prints. Options beyond the common ones are refused.
"""

from __future__ import annotations

import posixpath
import re
from dataclasses import replace
from typing import TYPE_CHECKING

from pytest_openclaw.tools.paths import HOME, absolute
from pytest_openclaw.tools.world.changers import CHANGERS
from pytest_openclaw.tools.world.find import find
from pytest_openclaw.tools.world.grep import grep
from pytest_openclaw.tools.world.sed import sed
from pytest_openclaw.tools.world.shell_parts import Complaint, Input
from pytest_openclaw.tools.world.shell_test import test
from pytest_openclaw.tools.world.text_programs import TEXT_PROGRAMS

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from pytest_openclaw.tools.world.shell_parts import Process, Program

MOST_LISTED = 10_000
MOST_NUMBERS = 10_000
_ASSIGNED = re.compile(r"([A-Za-z_]\w*)=(.*)", re.DOTALL)
_ESCAPE = re.compile(r"\\(?:0([0-7]{0,3})|x([0-9A-Fa-f]{1,2})|(.))", re.DOTALL)
_ESCAPES = {
    "n": "\n", "t": "\t", "r": "\r", "a": "\a", "b": "\b", "f": "\f", "v": "\v", "\\": "\\", "e": "\x1b",
}  # fmt: skip
_FORM = re.compile(r"%%|%(-?)(0?)(\d{0,3})([sdi])")


# --- files ---


def _ls(process: Process) -> str:
    options, paths = process.options("1AaFdhlpRrtS", "", {"all": "a", "recursive": "R"})
    files, folders = [], []
    for path in paths or ["."]:
        place = process.place(path)
        if process.workspace.is_folder(place) and "d" not in options:
            folders.append((path, place))
        elif process.workspace.is_there(place):
            files.append((path, place))
        else:
            process.complain(f"cannot access '{path}': No such file or directory", 2)
    is_reversed = "r" in options
    blocks = [_listed(process, options, sorted(files, reverse=is_reversed), is_folder=False)] if files else []
    is_titled = len(folders) + len(files) > 1 or "R" in options or bool(process.code)
    waiting = sorted(folders, reverse=not is_reversed)
    while waiting:
        path, place = waiting.pop()
        entries = _entries(process, options, place)
        if is_reversed:
            entries.reverse()
        title = f"{path}:\n" if is_titled else ""
        blocks.append(title + _listed(process, options, entries, is_folder=True))
        if len(blocks) > MOST_LISTED:
            raise process.fail("memory exhausted", 2)
        if "R" in options:
            inner = [
                one for one in entries if one[0] not in (".", "..") and process.workspace.is_folder(one[1])
            ]
            waiting += [(posixpath.join(path, name), one) for name, one in reversed(inner)]
    return "\n".join(blocks)


def _entries(process: Process, options: Mapping[str, object], place: str) -> list[tuple[str, str]]:
    names = sorted(name.rstrip("/") for name in process.workspace.entries(place))
    if not options.keys() & {"a", "A"}:
        names = [name for name in names if not name.startswith(".")]
    process.workspace.work.spend(len(names))
    own = [(".", place), ("..", process.shell.place("ls", f"{absolute(place)}/.."))] if "a" in options else []
    return [*own, *((name, process.shell.place("ls", f"{absolute(place)}/{name}")) for name in names)]


def _listed(
    process: Process, options: Mapping[str, object], entries: Sequence[tuple[str, str]], *, is_folder: bool
) -> str:
    marked = bool(options.keys() & {"F", "p"})
    names = [f"{name}/" if marked and process.workspace.is_folder(place) else name for name, place in entries]
    if "l" not in options:
        return "".join(f"{name}\n" for name in names)
    process.workspace.work.spend(10 * len(names))
    texts = [process.workspace.text(place) for _, place in entries]
    sizes = [4096 if text is None else len(text.encode()) for text in texts]
    width = max((len(str(size)) for size in sizes), default=0)
    total = f"total {sum(-(-size // 4096) * 4 for size in sizes)}\n" if is_folder else ""
    kinds = ["drwxr-xr-x 2" if text is None else "-rw-r--r-- 1" for text in texts]
    lines = [
        f"{kind} openclaw openclaw {size:{width}d} Nov 21 12:00 {name}\n"
        for name, kind, size in zip(names, kinds, sizes, strict=True)
    ]
    return total + "".join(lines)


def _pwd(process: Process) -> str:
    return f"{absolute(process.shell.folder)}\n"


def _cd(process: Process) -> str:
    shell = process.shell
    path = process.words[0] if process.words else shell.variables.get("HOME", HOME)
    path = shell.variables.get("OLDPWD", "") if path == "-" else path
    place = process.place(path)
    if not process.workspace.is_folder(place):
        why = "No such file or directory" if process.workspace.text(place) is None else "Not a directory"
        raise Complaint(f"sh: cd: {path}: {why}")
    shell.variables["OLDPWD"] = absolute(shell.folder)
    shell.folder = place
    shell.variables["PWD"] = absolute(place)
    return f"{absolute(place)}\n" if process.words[:1] == ["-"] else ""


def _basename(process: Process) -> str:
    if not process.words:
        raise process.fail("missing operand")
    path, suffix = process.words[0], "".join(process.words[1:2])
    name = posixpath.basename(path.rstrip("/")) or path[:1]
    return f"{name.removesuffix(suffix) if name != suffix else name}\n"


def _dirname(process: Process) -> str:
    return "".join(f"{_parent(path)}\n" for path in process.words)


def _parent(path: str) -> str:
    bare = path.rstrip("/")
    return posixpath.dirname(bare).rstrip("/") or ("/" if path.startswith("/") else ".")


def _realpath(process: Process) -> str:
    _, paths = process.options("emsf")
    return "".join(f"{absolute(process.place(path))}\n" for path in paths)


# --- text ---


def _echo(process: Process) -> str:
    words = list(process.words)
    options = ""
    while words and re.fullmatch("-[neE]+", words[0]):
        options += words.pop(0)[1:]
    text = " ".join(words)
    if options.rfind("e") > options.rfind("E"):
        text, stop, _ = text.partition("\\c")
        return _unescaped(text) + ("" if "n" in options or stop else "\n")
    return text if "n" in options else f"{text}\n"


def _unescaped(text: str) -> str:
    def plain(found: re.Match[str]) -> str:
        if found[1] is not None or found[2] is not None:
            return chr(int(found[1] or "0", 8) if found[1] is not None else int(found[2], 16))
        return _ESCAPES.get(found[3], found[0])

    return _ESCAPE.sub(plain, text)


def _printf(process: Process) -> str:
    if not process.words:
        raise process.fail("usage: printf format [arguments]", 2)
    form, *values = process.words[1:] if process.words[0] == "--" else process.words
    n_values = sum(found[0] != "%%" for found in _FORM.finditer(form))
    rounds = max(1, -(-len(values) // n_values)) if n_values else 1
    process.workspace.work.spend(rounds * (1 + len(form) // 50))
    pending = iter(values)

    def filled(found: re.Match[str]) -> str:
        if found[0] == "%%":
            return "%"
        value = next(pending, "")
        if found[4] != "s":
            value = value if re.fullmatch(r"-?\d{1,18}", value) else _not_a_number(process, value)
            value = value.zfill(int(found[3] or 0)) if found[2] else str(int(value))
        width = int(found[3] or 0)
        return value.ljust(width) if found[1] else value.rjust(width)

    text = "".join(_FORM.sub(filled, _form(form)) for _ in range(rounds))
    return text.replace("\0", "\\")


def _form(form: str) -> str:
    r"""Return a format with its escapes read; `\\` waits as a null, which no word has."""
    return _unescaped(form.replace("\\\\", "\0"))


def _not_a_number(process: Process, value: str) -> str:
    if value:
        process.complain(f"{value[:100]}: invalid number")
    return "0"


def _seq(process: Process) -> str:
    if not process.words or not all(re.fullmatch(r"-?\d{1,9}", word) for word in process.words[:3]):
        raise process.fail("needs whole numbers")
    numbers = [int(word) for word in process.words[:3]]
    first, step, last = {1: (1, 1, numbers[-1]), 2: (numbers[0], 1, numbers[-1])}.get(
        len(numbers), (*numbers, 0, 0)[:3]
    )
    if not step:
        raise process.fail("invalid Zero increment value: '0'")
    found = range(first, last + (1 if step > 0 else -1), step)[:MOST_NUMBERS]
    process.workspace.work.spend(len(found))
    return "".join(f"{number}\n" for number in found)


# --- variables and other programs ---


def _env(process: Process) -> str:
    shell, words = process.shell.copy(), list(process.words)
    while words and (words[0] in ("-i", "-") or words[0] == "-u" or _ASSIGNED.fullmatch(words[0])):
        word = words.pop(0)
        if found := _ASSIGNED.fullmatch(word):
            shell.variables[found[1]] = found[2]
            shell.exported.add(found[1])
        elif word == "-u":
            shell.exported.discard(words.pop(0) if words else "")
        else:
            shell.exported.clear()
    if words:
        process.code = process.run(words, process.streams, shell)
        return ""
    return _environment(shell.variables, shell.exported)


def _environment(variables: Mapping[str, str], exported: set[str]) -> str:
    return "".join(f"{name}={value}\n" for name, value in variables.items() if name in exported)


def _printenv(process: Process) -> str:
    shell = process.shell
    if not process.words:
        return _environment(shell.variables, shell.exported)
    found = [
        shell.variables[name] for name in process.words if name in shell.exported & shell.variables.keys()
    ]
    process.code = int(len(found) < len(process.words))
    return "".join(f"{value}\n" for value in found)


def _export(process: Process) -> str:
    shell = process.shell
    words = [word for word in process.words if word != "-p"]
    for word in words:
        name, is_set, value = word.partition("=")
        if not re.fullmatch(r"[A-Za-z_]\w*", name):
            process.complain(f"`{word[:100]}': not a valid identifier")
            continue
        shell.exported.add(name)
        if is_set:
            shell.variables[name] = value
    names = sorted(shell.exported & shell.variables.keys()) if not words else []
    return "".join(f'export {name}="{shell.variables[name]}"\n' for name in names)


def _unset(process: Process) -> str:
    for name in process.words:
        process.shell.variables.pop(name, None)
        process.shell.exported.discard(name)
    return ""


def _which(process: Process) -> str:
    names = [word for word in process.words if not word.startswith("-")]
    found = [name for name in names if name in PROGRAMS]
    process.code = int(len(found) < len(names) or not names)
    return "".join(f"/usr/bin/{name}\n" for name in found)


def _command(process: Process) -> str:
    if process.words[:1] in (["-v"], ["-V"]):
        return _which(process)
    return _run(process, process.words)


def _timeout(process: Process) -> str:
    words = list(process.words)
    while words and words[0].startswith("-"):
        words.pop(0)
    return _run(process, words[1:])


def _run(process: Process, words: Sequence[str]) -> str:
    if words:
        process.code = process.run(words, process.streams, process.shell)
    return ""


def _xargs(process: Process) -> str:
    words = list(process.words)
    options: dict[str, str] = {}
    while words and (found := re.fullmatch(r"-([0rt]|[nIL])(.*)", words[0])):
        word = words.pop(0)
        options[found[1]] = found[2] or (words.pop(0) if found[1] in "nIL" and words else "") or word
    text = process.streams.stdin.take()
    if "I" in options or "L" in options:
        items = [" ".join(_unquoted(process, line, r"\n")) for line in process.lines(text) if line.strip()]
    else:
        items = [item for item in text.split("\0") if item] if "0" in options else _unquoted(process, text)
    size = (
        int(options["n"]) if options.get("n", "").isdecimal() else 1 if "I" in options else max(1, len(items))
    )
    batches = [items[at : at + size] for at in range(0, len(items), max(1, size))]
    for batch in batches or ([] if "r" in options or "I" in options else [[]]):
        command = words or ["echo"]
        if "I" in options:
            command = [word.replace(options["I"], batch[0]) for word in command]
        else:
            command = [*command, *batch]
        process.workspace.work.spend(sum(map(len, command)) // 50)
        code = process.run(command, replace(process.streams, stdin=Input()), process.shell)
        if code in (126, 127):
            process.code = code
            break
        process.code = 123 if code else process.code
    return ""


def _unquoted(process: Process, text: str, separators: str = r"\s") -> list[str]:
    """Return the words of xargs' input: blanks separate them, quotes and backslashes join them."""
    process.workspace.work.spend(len(text) // 20)
    items = []
    word = rf"(?:[^{separators}'\"\\]|\\.|'[^'\n]*'|\"[^\"\n]*\")+|['\"]"
    for found in re.finditer(word, text.lstrip(), re.DOTALL):
        if found[0] in "'\"":
            raise process.fail(
                "unmatched quote; by default quotes are special to xargs unless you use the -0 option"
            )
        items.append(
            re.sub(
                r"\\(.)|'([^'\n]*)'|\"([^\"\n]*)\"",
                lambda one: one[1] or one[2] or one[3] or "",
                found[0],
                flags=re.DOTALL,
            )
        )
    return items


def _nothing(_: Process) -> str:
    return ""


def _false(process: Process) -> str:
    process.code = 1
    return ""


def _whoami(_: Process) -> str:
    return "openclaw\n"


PROGRAMS: Mapping[str, Program] = {
    **CHANGERS,
    **TEXT_PROGRAMS,
    ":": _nothing,
    "[": test,
    "basename": _basename,
    "cd": _cd,
    "command": _command,
    "dirname": _dirname,
    "echo": _echo,
    "env": _env,
    "export": _export,
    "false": _false,
    "find": find,
    "grep": grep,
    "ls": _ls,
    "printenv": _printenv,
    "printf": _printf,
    "pwd": _pwd,
    "realpath": _realpath,
    "sed": sed,
    "seq": _seq,
    "sleep": _nothing,
    "test": test,
    "timeout": _timeout,
    "true": _nothing,
    "unset": _unset,
    "which": _which,
    "whoami": _whoami,
    "xargs": _xargs,
}
