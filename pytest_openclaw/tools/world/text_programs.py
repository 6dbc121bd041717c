"""The shell programs of a world that print texts, whole or in part."""

from __future__ import annotations

import re
import string
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Mapping, Sequence

    from pytest_openclaw.tools.world.shell_parts import Process, Program

_CLASSES = {
    "upper": string.ascii_uppercase, "lower": string.ascii_lowercase, "digit": string.digits,
    "space": "\t\n\v\f\r ", "blank": "\t ", "punct": string.punctuation,
}  # fmt: skip
_CLASSES |= {
    "alpha": _CLASSES["upper"] + _CLASSES["lower"],
    "alnum": _CLASSES["digit"] + _CLASSES["upper"] + _CLASSES["lower"],
}
_KEY = re.compile(r"(\d{1,6})(?:\.\d+)?([bfnr]*)(?:,(\d{1,6})(?:\.\d+)?([bfnr]*))?")
_NUMBER = re.compile(r"\s*(-?\d{0,300}(?:\.\d{0,300})?)")


def _cat(process: Process) -> str:
    options, paths = process.options("nuvb", "", {"number": "n"})
    text = "".join(text for _, text in process.texts(paths))
    if options.keys() & {"n", "b"}:
        lines = process.lines(text)
        process.workspace.work.spend(len(lines) // 4)
        numbers = iter(range(1, len(lines) + 1))
        numbered = [line if "b" in options and not line else f"{next(numbers):6d}\t{line}" for line in lines]
        return "\n".join(numbered) + ("\n" if text.endswith("\n") else "")
    return text


def _tac(process: Process) -> str:
    return "".join("".join(reversed(_ended(process, text))) for _, text in process.texts(process.words))


def _ended(process: Process, text: str) -> list[str]:
    """Return the lines with their ends; the last may have none."""
    process.workspace.work.spend(1 + len(text) // 100 + text.count("\n") // 8)
    return re.findall(r"[^\n]*\n|[^\n]+", text)


def _rev(process: Process) -> str:
    texts = [text for _, text in process.texts(process.words)]
    lines = (line for text in texts for line in _ended(process, text))
    return "".join(line.rstrip("\n")[::-1] + "\n" * line.endswith("\n") for line in lines)


def _part(process: Process) -> str:
    """Return the first or last lines (`-n`) or bytes (`-c`) of each text, with names if there are several."""
    is_head = process.name == "head"
    first, *others = process.words or [""]
    if re.fullmatch(r"-\d+", first):
        if len(others) > 1 and not is_head:
            raise process.fail(f"option used in invalid context -- {first[1:]}")
        process.words = [f"-n{first[1:]}", *others]
    options, paths = process.options("qvf", "nc", {"lines": "n", "bytes": "c", "quiet": "q"})
    value = options.get("c", options.get("n", ["10"]))[-1]
    found = re.fullmatch(r"([-+]?)(\d{1,9})", value)
    if found is None:
        raise process.fail(f"invalid number of {'bytes' if 'c' in options else 'lines'}: '{value[:100]}'")
    sign, number = found[1], int(found[2])
    parts = []
    for path, text in process.texts(paths, with_folders=True):
        units: Sequence[str] | bytes = text.encode() if "c" in options else _ended(process, text)
        if is_head:
            shown = units[: max(0, len(units) - number)] if sign == "-" else units[:number]
        else:
            shown = units[max(0, number - 1) :] if sign == "+" else units[max(0, len(units) - number) :]
        plain = shown.decode(errors="replace") if isinstance(shown, bytes) else "".join(shown)
        parts.append((path, plain))
    if (len(paths) < 2 or "q" in options) and "v" not in options:
        return "".join(part for _, part in parts)
    titled = (f"==> {'standard input' if path == '-' else path} <==\n{part}" for path, part in parts)
    return "\n".join(titled)


def _wc(process: Process) -> str:
    long = {"lines": "l", "words": "w", "bytes": "c", "chars": "m"}
    options, paths = process.options("clwm", "", long)
    shown = [key for key in "lwmc" if key in (options or "lwc")]
    found = process.texts(paths, with_folders=True)
    process.workspace.work.spend(sum(len(text) for _, text in found) // 20)
    rows = [(path, _counts(text, shown)) for path, text in found]
    if len(paths) > 1:
        rows.append(("total", [sum(counts[n] for _, counts in rows) for n in range(len(shown))]))
    # GNU's width: that of the size of all files; of a pipe, whose size is not known, seven.
    width = len(str(sum(len(text.encode()) for _, text in found)))
    if len(shown) == 1 and len(paths) < 2:
        width = 1
    elif not paths or any(path == "-" or process.workspace.is_folder(process.place(path)) for path in paths):
        width = max(7, width)
    lines = (
        " ".join([*(f"{count:{width}d}" for count in counts), *([path] if paths else [])])
        for path, counts in rows
    )
    return "".join(f"{line}\n" for line in lines)


def _counts(text: str, shown: Sequence[str]) -> list[int]:
    counts = {"l": text.count("\n"), "w": len(text.split()), "c": len(text.encode()), "m": len(text)}
    return [counts[key] for key in shown]


def _sort(process: Process) -> str:
    long = {"reverse": "r", "unique": "u", "numeric-sort": "n", "ignore-case": "f", "key": "k", "output": "o"}
    options, paths = process.options("bfnrsu", "kto", {**long, "field-separator": "t"})
    lines = [line for _, text in process.texts(paths) for line in process.lines(text)]
    if process.code:  # it needs all files
        process.code = 2
        return ""
    keys = [_key(process, options, value) for value in options.get("k", ())]
    whole = _value_of("n" in options, "f" in options)
    process.workspace.work.spend(len(lines) * (1 + len(keys)) if keys or "n" in options else len(lines) // 2)
    if "u" in options:
        firsts: dict[object, str] = {}
        for line in lines:
            firsts.setdefault(tuple(key(line) for key, _ in keys) if keys else whole(line), line)
        lines = list(firsts.values())
    elif "s" not in options:
        lines.sort(reverse="r" in options)
    if not keys:
        lines.sort(key=whole, reverse="r" in options)
    for key, is_reversed in reversed(keys):
        lines.sort(key=key, reverse=is_reversed)
    text = "".join(f"{line}\n" for line in lines)
    if "o" in options:
        process.write(process.target(options["o"][-1]), text)
        return ""
    return text


def _key(
    process: Process, options: Mapping[str, Sequence[str]], value: str
) -> tuple[Callable[[str], float | str], bool]:
    """Return a sort key of fields, and whether it is reversed."""
    found = _KEY.fullmatch(value)
    if found is None or not int(found[1]):
        raise process.fail(f"invalid number at field start: invalid count at start of '{value[:100]}'")
    own = found[2] + (found[4] or "")
    kinds = own or "".join(options.keys() & set("bfnr"))
    first, last = int(found[1]) - 1, int(found[3]) if found[3] else None
    separator = options.get("t", [""])[-1]
    of_value = _value_of("n" in kinds, "f" in kinds)

    def key(line: str) -> float | str:
        fields = line.split(separator) if separator else re.findall(r"[ \t]*[^ \t]+|[ \t]+", line)
        text = separator.join(fields[first:last])
        return of_value(text.lstrip() if "b" in kinds else text)

    return key, "r" in kinds


def _value_of(is_numeric: bool, folds: bool) -> Callable[[str], float | str]:
    if is_numeric:
        return _number
    return str.upper if folds else str


def _number(line: str) -> float:
    found = _NUMBER.match(line)
    try:
        return float(found[1]) if found else 0.0
    except ValueError:
        return 0.0


def _uniq(process: Process) -> str:
    options, paths = process.options("cdui", "", {"count": "c", "repeated": "d", "unique": "u"})
    lines = [line for _, text in process.texts(paths[:1]) for line in process.lines(text)]
    process.workspace.work.spend(len(lines))
    runs: list[tuple[str, int]] = []
    for line in lines:
        last = runs[-1] if runs else None
        is_same = last is not None and (
            line.lower() == last[0].lower() if "i" in options else line == last[0]
        )
        if last is not None and is_same:
            runs[-1] = (last[0], last[1] + 1)
        else:
            runs.append((line, 1))
    kept = [(line, n) for line, n in runs if not (("d" in options and n < 2) or ("u" in options and n > 1))]
    return "".join(f"{n:7d} {line}\n" if "c" in options else f"{line}\n" for line, n in kept)


def _cut(process: Process) -> str:
    options, paths = process.options("s", "dfcb", {"delimiter": "d", "fields": "f", "characters": "c"})
    wanted = next((options[key][-1] for key in "fcb" if key in options), None)
    if wanted is None:
        raise process.fail("you must specify a list of bytes, characters, or fields")
    chosen = [*_ranges(process, wanted)]
    mark = options.get("d", ["\t"])[-1]
    if len(mark) != 1:
        raise process.fail("the delimiter must be a single character")
    lines = [line for _, text in process.texts(paths) for line in process.lines(text)]
    process.workspace.work.spend(len(lines) * len(chosen) + sum(map(len, lines)) // 20)
    printed = []
    for line in lines:
        units: Sequence[str] = line.split(mark) if "f" in options else line
        if "f" in options and len(units) == 1:
            printed += [] if "s" in options else [line]
            continue
        indices = sorted({n for first, last in chosen for n in range(first - 1, min(last, len(units)))})
        printed.append((mark if "f" in options else "").join(units[n] for n in indices))
    return "".join(f"{line}\n" for line in printed)


def _ranges(process: Process, value: str) -> Iterator[tuple[int, int]]:
    for part in value.split(",")[:100]:
        found = re.fullmatch(r"(\d{0,6})(-?)(\d{0,6})", part)
        if found is None or not (found[1] or found[3]) or "0" in (found[1], found[3]):
            raise process.fail(f"invalid field value '{part[:100]}'")
        yield int(found[1] or 1), int(found[3]) if found[3] else 1_000_000 if found[2] else int(found[1])


def _tr(process: Process) -> str:
    options, sets = process.options("cCds", "", {"delete": "d", "squeeze-repeats": "s", "complement": "c"})
    if not sets or (len(sets) < 2 and not options.keys() & {"d", "s"}):
        raise process.fail("missing operand")
    text = process.streams.stdin.take()
    process.workspace.work.spend(len(text) // 5)
    first, second = _members(sets[0]), _members(sets[1]) if len(sets) > 1 else ""
    inverted = bool(options.keys() & {"c", "C"})
    known = set(first)
    is_in: Callable[[str], bool] = (lambda char: char not in known) if inverted else known.__contains__
    if "d" in options:
        text = "".join(char for char in text if not is_in(char))
        squeezed = set(second)
    elif second:
        pairs = dict(
            zip(reversed(first), reversed(second[: len(first)].ljust(len(first), second[-1])), strict=True)
        )
        text = "".join((second[-1] if inverted else pairs[char]) if is_in(char) else char for char in text)
        squeezed = set(second)
    else:
        return _squeezed(text, is_in)
    return _squeezed(text, squeezed.__contains__) if "s" in options else text


def _squeezed(text: str, is_in: Callable[[str], bool]) -> str:
    return "".join(char for n, char in enumerate(text) if not (n and char == text[n - 1] and is_in(char)))


def _members(written: str) -> str:
    """Return the characters of a set of `tr`, with its classes, ranges and escapes."""

    def members(found: re.Match[str]) -> str:
        if found[1]:
            return _CLASSES.get(found[1], "")
        if found[2]:
            return {"n": "\n", "t": "\t", "r": "\r"}.get(found[2], found[2])
        return "".join(map(chr, range(ord(found[3]), ord(found[4]) + 1)))[:1000] if found[3] else found[0]

    return re.sub(r"\[:(\w+):\]|\\(.)|(.)-(.)|.", members, written[:1000], flags=re.DOTALL)


TEXT_PROGRAMS: Mapping[str, Program] = {
    "cat": _cat,
    "cut": _cut,
    "head": _part,
    "rev": _rev,
    "sort": _sort,
    "tac": _tac,
    "tail": _part,
    "tr": _tr,
    "uniq": _uniq,
    "wc": _wc,
}
