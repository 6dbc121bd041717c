r"""POSIX regular expressions, as grep and sed read them, matched in counted steps.

All states that a text may lead to are followed at once, with the groups of each (Thompson, "Regular
expression search algorithm", 1968; Pike's variant, in the editor sam). So the work is at most the length of
the text times that of the pattern; nothing is tried twice.
"""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Any

from pytest_openclaw.tools.world.work import find_steps

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Sequence

    from pytest_openclaw.tools.world.work import Work

LONGEST_PATTERN = 1000
MOST_STATES = 2000
MOST_REPEATS = 255
_DEEPEST = 30
_SET_STEPS = 150
_INTERVAL = re.compile(r"(\d{0,5})(?:(,)(\d{0,5}))?")
_SET = re.compile(r"\[\^?\]?(?:\[:\w+:\]|[^\]\n])*\]")
_CLASSES = {
    "alpha": "a-zA-Z", "digit": "0-9", "alnum": "a-zA-Z0-9", "upper": "A-Z", "lower": "a-z", "blank": " \\t",
    "space": "\\s", "punct": "!-/:-@\\[-`{-~", "xdigit": "0-9A-Fa-f", "cntrl": "\\x00-\\x1f\\x7f",
    "print": "\\x20-\\x7e", "graph": "\\x21-\\x7e",
}  # fmt: skip
_ESCAPED_SETS = {"w": r"\w", "W": r"\W", "s": r"\s", "S": r"\S"}
_PLACES = {"b": "edge", "B": "no edge", "<": "word start", ">": "word end"}

Span = tuple[int, int]
_Token = tuple[str, Any]
_Code = list[tuple[Any, ...]]
"""Instructions: `char` with a test, `split` and `jump` with distances, `save`, `at` with a place, `found`."""


class PatternError(Exception):
    """A pattern cannot be read; its text continues `grep: `."""


class Pattern:
    """Some regular expressions, one of which has to match.

    Args:
        texts: as they are written.
        work: of the call; matching spends it.
        syntax: `basic`, `extended`, or `fixed` for plain text.
        ignore_case: whether upper and lower case are the same.
        whole: `word` or `line` if the match must be one.

    Raises:
        PatternError: one of them is malformed, or too large.
    """

    def __init__(
        self,
        texts: Sequence[str],
        work: Work,
        *,
        syntax: str = "basic",
        ignore_case: bool = False,
        whole: str = "",
    ) -> None:
        self._work = work
        parsers = [_Parser(text, work, syntax=syntax, ignore_case=ignore_case) for text in texts]
        code = _any_of([parser.code() for parser in parsers])
        before, after = {"word": ("no word before", "no word after"), "line": ("start", "end")}.get(
            whole, ("", "")
        )
        if whole:
            code = [("at", before), *code, ("at", after)]
        self._code: _Code = [*code, ("found",)]
        if len(self._code) > MOST_STATES:
            raise PatternError("Regular expression too big")
        self.n_groups = max(parser.n_groups for parser in parsers)
        is_plain = len(texts) == 1 and not whole and not ignore_case and parsers[0].is_plain
        self._plain = parsers[0].plain_text if is_plain else None
        work.spend(len(self._code))

    def find(self, text: str, start: int = 0) -> tuple[Span, ...] | None:
        """Return the first match, of several at one place the longest, and its groups; None without any.

        A group that did not take part is (-1, -1).
        """
        if self._plain is not None:
            self._work.spend(find_steps(len(text) - start, len(self._plain)))
            place = text.find(self._plain, start)
            return None if place < 0 else ((place, place + len(self._plain)),)
        return self._follow(text, start)

    def _follow(self, text: str, start: int) -> tuple[Span, ...] | None:
        best: tuple[int, ...] | None = None
        fresh = (-1,) * (2 * self.n_groups + 2)
        arrived: list[tuple[int, tuple[int, ...]]] = []
        for at in range(start, len(text) + 1):
            threads: dict[int, tuple[int, ...]] = {}
            for state, saved in arrived:
                self._enter(threads, state, saved, text, at)
            if best is None:
                self._enter(threads, 0, (at, *fresh[1:]), text, at)
            elif not threads:
                break
            self._work.spend(1 + len(threads))
            arrived = []
            for state, saved in threads.items():
                if best is not None and saved[0] > best[0]:
                    continue
                instruction = self._code[state]
                if instruction[0] == "found" and (best is None or (-saved[0], at) > (-best[0], best[1])):
                    best = (saved[0], at, *saved[2:])
                elif instruction[0] == "char" and at < len(text) and instruction[1](text[at]):
                    arrived.append((state + 1, saved))
        return None if best is None else tuple(zip(best[::2], best[1::2], strict=True))

    def _enter(
        self, threads: dict[int, tuple[int, ...]], state: int, saved: tuple[int, ...], text: str, at: int
    ) -> None:
        """Add a state and those that it leads to without a character, the preferred ones first."""
        waiting = [(state, saved)]
        while waiting:
            state, saved = waiting.pop()
            if state in threads:
                continue
            threads[state] = saved
            match self._code[state]:
                case ("split", first, second):
                    waiting += [(state + second, saved), (state + first, saved)]
                case ("jump", distance):
                    waiting.append((state + distance, saved))
                case ("save", slot):
                    waiting.append((state + 1, (*saved[:slot], at, *saved[slot + 1 :])))
                case ("at", place) if _is_at(place, text, at):
                    waiting.append((state + 1, saved))


def _is_at(place: str, text: str, at: int) -> bool:
    before = at > 0 and (text[at - 1].isalnum() or text[at - 1] == "_")
    after = at < len(text) and (text[at].isalnum() or text[at] == "_")
    return {
        "start": at == 0,
        "end": at == len(text),
        "edge": before != after,
        "no edge": before == after,
        "word start": after and not before,
        "word end": before and not after,
        "no word before": not before,
        "no word after": not after,
    }[place]


def _any_of(codes: Sequence[_Code]) -> _Code:
    code = codes[-1]
    for other in reversed(codes[:-1]):
        code = [("split", 1, len(other) + 2), *other, ("jump", len(code) + 1), *code]
    return code


class _Parser:
    """Reads one pattern by recursive descent."""

    def __init__(self, text: str, work: Work, *, syntax: str, ignore_case: bool) -> None:
        if len(text) > LONGEST_PATTERN:
            raise PatternError("Regular expression too big")
        self._work = work
        self._flags = re.IGNORECASE if ignore_case else re.NOFLAG
        self._extended = syntax == "extended"
        self._tokens = [("char", char) for char in text] if syntax == "fixed" else [*self._read(text)]
        self._at = 0
        self._depth = 0
        self.n_groups = 0
        self.is_plain = all(kind == "char" for kind, _ in self._tokens)
        self.plain_text = "".join(value for _, value in self._tokens) if self.is_plain else ""

    # --- tokens ---

    def _read(self, text: str) -> Iterator[_Token]:
        at, before = 0, ""  # the kind of the token before, empty where an expression begins
        while at < len(text):
            kind, value, at = self._token(text, at, before)
            yield kind, value
            before = "" if kind in ("(", "|") or (kind == "at" and value == "start") else kind

    def _token(self, text: str, at: int, before: str) -> tuple[str, Any, int]:
        char = text[at]
        if char == "\\":
            return self._escape(text, at + 1)
        if char == "[":
            found = _SET.match(text, at)
            if found is None:
                raise PatternError("Unmatched [, [^, [:, [., or [=")
            return "test", self._set(found[0]), found.end()
        if char == ".":
            return "test", bool, at + 1
        if char == "*" and before:
            return "repeat", (0, None), at + 1
        if char == "^" and (self._extended or not before):
            return "at", "start", at + 1
        if char == "$" and (
            self._extended or text[at + 1 :] == "" or text[at + 1 :].startswith((r"\)", r"\|"))
        ):
            return "at", "end", at + 1
        if self._extended and char in "(){|+?":
            return self._operator(text, at, before)
        return "char", char, at + 1

    def _escape(self, text: str, at: int) -> tuple[str, Any, int]:
        if at == len(text):
            raise PatternError("Trailing backslash")
        char = text[at]
        if char in _ESCAPED_SETS:
            return "test", self._set(_ESCAPED_SETS[char]), at + 1
        if char in _PLACES:
            return "at", _PLACES[char], at + 1
        if char in "123456789":
            raise PatternError("back-references are not played here")
        if not self._extended and char in "(){|+?":
            return self._operator(text, at, "x")
        return "char", "\n" if char == "n" else char, at + 1

    def _operator(self, text: str, at: int, before: str) -> tuple[str, Any, int]:
        char = text[at]
        if char in "()|":
            return char, None, at + 1
        if not before:
            return "char", char, at + 1
        if char in "+?":
            return "repeat", (1, None) if char == "+" else (0, 1), at + 1
        found = _INTERVAL.match(text, at + 1)
        assert found is not None, "every part of it is optional"
        closing = "}" if self._extended else r"\}"
        if not found[0] or not text.startswith(closing, found.end()):
            if self._extended:
                return "char", "{", at + 1
            raise PatternError(r"Unmatched \{")
        least = int(found[1] or 0)
        most = least if not found[2] else int(found[3]) if found[3] else None
        if max(least, most or 0) > MOST_REPEATS or (most is not None and most < least):
            raise PatternError("Invalid content of \\{\\}")
        return "repeat", (least, most), found.end() + len(closing)

    def _set(self, text: str) -> Callable[[str], object]:
        """Return the test of a bracket expression, which `re` reads nearly as POSIX does."""
        self._work.spend(_SET_STEPS)
        if text.startswith("["):
            body = re.sub(r"\[:(\w+):\]", lambda found: f"\0{found[1]}\0", text[1:-1])
            negated = body.startswith("^")
            body = body[negated:].replace("\\", "\\\\").replace("[", "\\[").replace("]", "\\]")
            body = re.sub(r"([&~|])(?=\1)", r"\\\1", body)
            body = re.sub(r"\0(\w+)\0", lambda found: _CLASSES.get(found[1], ""), body)
            text = f"[{'^' * negated}{re.sub(r'^-|-$|--', lambda _: chr(92) + '-', body)}]"
        try:
            return re.compile(text, self._flags).match
        except re.error:
            raise PatternError("Invalid range end") from None

    # --- expressions ---

    def code(self) -> _Code:
        """Return the instructions of the whole pattern."""
        code = self._choices()
        if self._at < len(self._tokens):
            raise PatternError("Unmatched ) or \\)")
        return code

    def _choices(self) -> _Code:
        codes = [self._sequence()]
        while self._next() == "|":
            self._at += 1
            codes.append(self._sequence())
        return _any_of(codes)

    def _sequence(self) -> _Code:
        code: _Code = []
        while self._next() not in ("", "|", ")"):
            piece = self._piece()
            while self._next() == "repeat":
                piece = _repeated(piece, *self._tokens[self._at][1])
                self._at += 1
            code += piece
            if len(code) > MOST_STATES:
                raise PatternError("Regular expression too big")
        return code

    def _piece(self) -> _Code:
        kind, value = self._tokens[self._at]
        self._at += 1
        if kind == "(":
            return self._group()
        if kind == "char":
            same = {value, value.swapcase()} if self._flags else {value}
            return [("char", same.__contains__)]
        return [("char", value)] if kind == "test" else [("at", value)] if kind == "at" else []

    def _group(self) -> _Code:
        self.n_groups += 1
        self._depth += 1
        slot = 2 * self.n_groups
        if self._depth > _DEEPEST:
            raise PatternError("Regular expression too big")
        code = self._choices()
        if self._next() != ")":
            raise PatternError("Unmatched ( or \\(")
        self._at += 1
        self._depth -= 1
        return [("save", slot), *code, ("save", slot + 1)]

    def _next(self) -> str:
        return self._tokens[self._at][0] if self._at < len(self._tokens) else ""


def _repeated(code: _Code, least: int, most: int | None) -> _Code:
    """Return instructions for a piece from `least` to `most` times; None is any number."""
    n_copies = least + (1 if most is None else most - least)
    if len(code) * n_copies > MOST_STATES:
        raise PatternError("Regular expression too big")
    if most is None:
        return [*code * least, ("split", 1, len(code) + 2), *code, ("jump", -(len(code) + 1))]
    optional: _Code = []
    for _ in range(most - least):
        optional = [("split", 1, len(code) + len(optional) + 1), *code, *optional]
    return [*code * least, *optional]
