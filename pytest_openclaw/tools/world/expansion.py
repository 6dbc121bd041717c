"""Expands the words of a command as a shell does: braces, variables, substitutions, patterns."""

from __future__ import annotations

import posixpath
import re
from fnmatch import translate
from functools import lru_cache
from itertools import product
from typing import TYPE_CHECKING

from pytest_openclaw.tools.world.shell_parts import Complaint
from pytest_openclaw.tools.world.shell_syntax import Piece

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Sequence

    from pytest_openclaw.tools.world.shell_parts import Shell
    from pytest_openclaw.tools.world.shell_syntax import Script, Word

    Substitute = Callable[[Script], str]

MOST_WORDS = 5000
LONGEST_WORD = 131_072
LONGEST_PATTERN = 200
_TOO_LONG = "sh: Argument list too long"
_SPECIAL = frozenset("*?[")


class Expansion:
    """Expands words in a shell.

    Args:
        shell: with the variables and files.
        substitute: returns the output of a script.
    """

    def __init__(self, shell: Shell, substitute: Substitute) -> None:
        self._shell = shell
        self._substitute = substitute

    def fields(self, words: Iterable[Word]) -> list[str]:
        """Return the fields of some words.

        Raises:
            Complaint: they are too many or too long, or a variable has to be set and is not.
        """
        fields: list[str] = []
        for word in words:
            for pieces in _without_choices(word):
                for field in self._split(pieces):
                    fields += self._files(field)
            if len(fields) > MOST_WORDS:
                raise Complaint(_TOO_LONG, 126)
        return fields

    def text(self, word: Word) -> str:
        """Return a word as one text, as in an assignment: neither split nor a pattern."""
        text = "".join(self._value(piece) for piece in word)
        if len(text) > LONGEST_WORD:
            raise Complaint(_TOO_LONG, 126)
        self._shell.workspace.work.spend(len(text) // 100)
        return text

    def _split(self, pieces: Sequence[Piece]) -> list[list[tuple[str, bool]]]:
        """Return the fields of a word, each as texts that are quoted or not."""
        fields: list[list[tuple[str, bool]]] = [[]]
        size = 0
        for piece in pieces:
            value = self._value(piece)
            size += len(value)
            self._shell.workspace.work.spend(1 + len(value) // 50)
            if size > LONGEST_WORD:
                raise Complaint(_TOO_LONG, 126)
            if piece.is_quoted or piece.kind == "text":
                fields[-1].append((value, piece.is_quoted))
                continue
            parts = re.split(r"[ \t\n]+", value)
            fields[-1] += [(parts[0], False)] * bool(parts[0])
            fields += [[(part, False)] * bool(part) for part in parts[1:]]
        return [field for field in fields if field]

    def _value(self, piece: Piece) -> str:
        if piece.kind == "command":
            return self._substitute(piece.script).rstrip("\n")
        if piece.kind != "variable":
            return piece.text
        value = self._variable(piece.text)
        operator = piece.operator
        if operator == "length":
            return str(len(value or ""))
        if operator[-1:] in ("#", "%"):
            return _trimmed(value or "", operator, self.text(piece.operand), self._shell)
        if operator[-1:] not in ("-", "=", "+", "?"):
            return self._known(piece.text, value)
        is_there = value is not None and bool(value or ":" not in operator)
        if operator.endswith("+"):
            return self.text(piece.operand) if is_there else ""
        if is_there:
            return value or ""
        value = self.text(piece.operand)
        if operator.endswith("?"):
            raise Complaint(f"sh: {piece.text}: {value or 'parameter null or not set'}", 127)
        if operator.endswith("="):
            self._shell.variables[piece.text] = value
        return value

    def _variable(self, name: str) -> str | None:
        special = {"?": str(self._shell.code), "#": "0", "0": "sh", "@": "", "*": ""}
        return special[name] if name in special else self._shell.variables.get(name)

    def _known(self, name: str, value: str | None) -> str:
        if value is None and "nounset" in self._shell.options:
            raise Complaint(f"sh: {name}: unbound variable")
        return value or ""

    # --- patterns of files ---

    def _files(self, field: Sequence[tuple[str, bool]]) -> list[str]:
        """Return the files that fit a field with a pattern; without any, the field itself."""
        plain = "".join(text for text, _ in field)
        if not any(not is_quoted and _SPECIAL.intersection(text) for text, is_quoted in field):
            return [plain]
        pattern = "".join(_quoted(text) if is_quoted else text for text, is_quoted in field)
        if len(pattern) > LONGEST_PATTERN:
            return [plain]
        found = ["/"] if pattern.startswith("/") else [""]
        for part in pattern.strip("/").split("/"):
            found = [path for folder in found for path in self._fitting(folder, part)]
            if len(found) > MOST_WORDS:
                raise Complaint(_TOO_LONG, 126)
        if pattern.endswith("/"):
            found = [f"{path}/" for path in found if self._is_folder(path)]
        return sorted(found) or [plain]

    def _fitting(self, folder: str, part: str) -> list[str]:
        workspace = self._shell.workspace
        if not _SPECIAL.intersection(part):
            path = posixpath.join(folder, part)
            place = self._shell.place("sh", path)
            return [path] if workspace.is_there(place) else []
        if folder and not self._is_folder(folder):
            return []
        names = [name.rstrip("/") for name in workspace.entries(self._shell.place("sh", folder or "."))]
        fits = file_pattern(part)
        # fnmatch compiles a pattern, whose stars are then tried at each character of a name at most once
        workspace.work.spend(150 + sum(1 + len(name) * len(part) // 1500 for name in names))
        return [
            posixpath.join(folder, name)
            for name in names
            if fits(name) and (part.startswith(".") or not name.startswith("."))
        ]

    def _is_folder(self, path: str) -> bool:
        return self._shell.workspace.is_folder(self._shell.place("sh", path))


@lru_cache(maxsize=256)
def file_pattern(pattern: str, *, ignore_case: bool = False) -> Callable[[str], object]:
    """Return a test whether a name fits a shell's pattern."""
    flags = re.IGNORECASE if ignore_case else re.NOFLAG
    return re.compile(translate(pattern.replace("[^", "[!")), flags).match


def _quoted(text: str) -> str:
    return re.sub(r"[*?[]", r"[\g<0>]", text)


def _trimmed(value: str, operator: str, pattern: str, shell: Shell) -> str:
    """Return a value without the shortest or longest start (`#`, `##`) or end (`%`, `%%`) that fits."""
    if len(pattern) > LONGEST_PATTERN:
        return value
    fits = file_pattern(pattern)
    is_start = operator[0] == "#"
    sizes = range(len(value) + 1) if len(operator) == 1 else range(len(value), -1, -1)
    for size in sizes:
        shell.workspace.work.spend(2 + size // 500)
        if fits(value[:size] if is_start else value[len(value) - size :]):
            return value[size:] if is_start else value[: len(value) - size]
    return value


def _without_choices(word: Word) -> Iterable[Sequence[Piece]]:
    """Yield a word once for each choice in its braces."""
    if all(piece.kind != "choices" for piece in word):
        return [word]
    n_words = 1
    for piece in word:
        n_words *= max(1, len(piece.choices))
        if n_words > MOST_WORDS:
            raise Complaint(_TOO_LONG, 126)
    options = [
        [piece] if piece.kind != "choices" else [Piece(text=one) for one in piece.choices] for piece in word
    ]
    return product(*options)
