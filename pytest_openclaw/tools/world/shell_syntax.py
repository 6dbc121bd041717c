"""Reads a shell command: words, pipes, chains, redirections, here-documents, substitutions, `if` and `for`.

What no world plays (jobs, arithmetic, functions) is refused, never guessed.
"""

from __future__ import annotations

import re
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Collection

LONGEST_COMMAND = 32_768
_DEEPEST = 12
_REDIRECTION = re.compile(r"([012]?)(<<<|<<-|<<|>>|>&|>\||>|<)(?!\()|(&>>|&>)")
_NAME = re.compile(r"[A-Za-z_]\w*")
_ASSIGNMENT = re.compile(r"([A-Za-z_]\w*)=")
_PARAMETER = re.compile(r"(#?)([A-Za-z_]\w*|[0-9?@*#$!])(?:(:?[-+=?])|(##?|%%?))?")
_CHOICES = re.compile(r"\{(?:([^\s{}'\"$`\\;&|<>()]*,[^\s{}'\"$`\\;&|<>()]*)|(-?\d{1,6})\.\.(-?\d{1,6}))\}")
_RESERVED = re.compile(
    r"(?:if|then|elif|else|fi|for|do|done|while|until|case|function|select|\{|\}|!)(?=[\s;&|()]|$)"
)
_ENDS_WORD = frozenset(" \t\r\n;&|<>()")


class ShellError(Exception):
    """The command cannot be read; its text is what a shell would say."""


def _refused(what: str) -> ShellError:
    return ShellError(f"sh: this shell has no {what}")


def _unexpected(what: str) -> ShellError:
    return ShellError(f"sh: syntax error: unexpected {what}")


@dataclass(frozen=True, kw_only=True)
class Piece:
    """A piece of a word.

    Attributes:
        kind: `text`; `variable`, named by the text; `command`, for its output; `choices`, from braces.
        is_quoted: it is neither split nor a pattern of files.
        script: of a `command`.
        choices: of `choices`.
        operator: of a `variable`: `#` for its length, `:-` and the like, `%` and the like; with `operand`.
    """

    kind: str = "text"
    text: str = ""
    is_quoted: bool = False
    script: tuple[Pipeline, ...] = ()
    choices: tuple[str, ...] = ()
    operator: str = ""
    operand: tuple[Piece, ...] = ()


Word = tuple[Piece, ...]


@dataclass(kw_only=True)
class Redirection:
    """Where a stream comes from or goes to: `<`, `>`, `>>`, `>&`, and `<<`, whose target is the text."""

    stream: int
    kind: str
    target: Word = ()


@dataclass(frozen=True, kw_only=True)
class Simple:
    """A program with its words; `source` is as it was written, without redirections and assignments."""

    words: tuple[Word, ...] = ()
    assignments: tuple[tuple[str, Word], ...] = ()
    redirections: tuple[Redirection, ...] = ()
    source: str = ""


@dataclass(frozen=True, kw_only=True)
class Block:
    """`{ … }`, or `( … )`, whose folder and variables are its own."""

    script: Script
    is_subshell: bool
    redirections: tuple[Redirection, ...] = ()


@dataclass(frozen=True, kw_only=True)
class Choice:
    """`if`: conditions with their commands, and those of `else`."""

    branches: tuple[tuple[Script, Script], ...]
    otherwise: Script = ()
    redirections: tuple[Redirection, ...] = ()


@dataclass(frozen=True, kw_only=True)
class Loop:
    """`for`: the commands are run for each word."""

    name: str
    words: tuple[Word, ...]
    script: Script
    redirections: tuple[Redirection, ...] = ()


Command = Simple | Block | Choice | Loop


@dataclass(frozen=True, kw_only=True)
class Pipeline:
    """Commands whose output goes from one to the next; `link` says when it runs: `&&`, `||` or always."""

    commands: tuple[Command, ...]
    source: str
    link: str = ";"
    is_negated: bool = False


Script = tuple[Pipeline, ...]


def read_script(text: str) -> Script:
    """Return the pipelines of a command, in order.

    Raises:
        ShellError: it is no command, or has what no world plays.
    """
    if len(text) > LONGEST_COMMAND:
        raise ShellError("sh: Argument list too long")
    reader = _CommandReader(text)
    script = reader.script()
    if reader.at < len(text):
        raise _unexpected(f"'{text[reader.at : reader.at + 20].split()[0]}'")
    return script


@dataclass
class _CommandReader:
    """Reads a text by recursive descent, from `at` on."""

    text: str
    at: int = 0
    depth: int = 0
    waiting: list[tuple[Redirection, str, bool]] = field(default_factory=list)
    """Here-documents that follow the line: their end marks, and whether they are quoted."""

    # --- commands ---

    def script(self) -> Script:
        """Read up to a `)`, a reserved word that ends a part, or the end."""
        self.depth += 1
        if self.depth > _DEEPEST:
            raise _refused("deeper nesting")
        pipelines: list[Pipeline] = []
        link = ";"
        while True:
            self._skip(lines=True)
            if self._is_end():
                if link != ";":
                    raise _unexpected("end of the command")
                break
            pipelines.append(self._pipeline(link))
            link = self._link()
        self.depth -= 1
        return tuple(pipelines)

    def _is_end(self) -> bool:
        word = self._reserved()
        return self.at >= len(self.text) or self.text[self.at] == ")" or word in _ENDS

    def _link(self) -> str:
        self._skip()
        for mark in ("&&", "||"):
            if self._take(mark):
                return mark
        if self.text.startswith(";;", self.at):
            raise _unexpected("';;'")
        if self.text.startswith("&", self.at):
            raise _refused("'&'")
        if not self._take(";") and self.at < len(self.text) and self.text[self.at] not in "\n)":
            raise _unexpected(f"'{self.text[self.at]}'")
        return ";"

    def _pipeline(self, link: str) -> Pipeline:
        is_negated = self._reserved() == "!"
        self.at += is_negated
        self._skip()
        start, commands = self.at, [self._command()]
        while self._take_pipe():
            if self._take("&"):
                raise _refused("'|&'")
            self._skip(lines=True)
            commands.append(self._command())
        source = self.text[start : self.at].strip()
        return Pipeline(commands=tuple(commands), source=source, link=link, is_negated=is_negated)

    def _command(self) -> Command:
        reserved = self._reserved()
        if reserved == "if":
            return self._choice()
        if reserved == "for":
            return self._loop()
        if self._take("(") or reserved == "{":
            is_subshell = reserved != "{"
            self.at += not is_subshell
            script = self.script()
            if not script or not self._take(")" if is_subshell else "}"):
                raise _unexpected("end of the command")
            return Block(script=script, is_subshell=is_subshell, redirections=self._redirections())
        if reserved:
            raise _unexpected(f"'{reserved}'") if reserved in (*_ENDS, "!") else _refused(f"'{reserved}'")
        return self._simple()

    def _choice(self) -> Choice:
        branches: list[tuple[Script, Script]] = []
        word = self._expect("if")
        while word in ("if", "elif"):
            condition = self.script()
            self._expect("then")
            branches.append((condition, self.script()))
            word = self._expect("elif", "else", "fi")
        otherwise: Script = ()
        if word == "else":
            otherwise = self.script()
            self._expect("fi")
        return Choice(branches=tuple(branches), otherwise=otherwise, redirections=self._redirections())

    def _loop(self) -> Loop:
        self._expect("for")
        self._skip()
        name = _NAME.match(self.text, self.at)
        if name is None:
            raise _refused("such a 'for'")
        self.at = name.end()
        self._skip()
        if not self._take("in"):
            raise _refused("'for' without 'in'")
        words: list[Word] = []
        while not self._at_operator():
            words.append(self._word())
        self._take(";")
        self._skip(lines=True)
        self._expect("do")
        script = self.script()
        self._expect("done")
        return Loop(name=name[0], words=tuple(words), script=script, redirections=self._redirections())

    def _simple(self) -> Simple:
        words: list[Word] = []
        assignments: list[tuple[str, Word]] = []
        redirections: list[Redirection] = []
        source, end = "", self.at
        while not self._at_operator() or _REDIRECTION.match(self.text, self.at):
            if redirection := self._redirection():
                redirections.append(redirection)
                end = self.at
                continue
            start = self.at
            if not words and (found := _ASSIGNMENT.match(self.text, start)):
                self.at = found.end()
                assignments.append((found[1], self._word()))
            else:
                words.append(self._word())
                # With the blanks between, as a pattern of a suite is written.
                between = self.text[end:start] if len(words) > 1 else ""
                source += between + self.text[start : self.at]
            end = self.at
        if not (words or assignments or redirections):
            ahead = self.text[self.at : self.at + 2]
            if ahead[:1] == "&" and ahead != "&&":
                raise _refused("'&'")
            raise _unexpected(f"'{ahead.strip()}'" if ahead.strip() else "end of the command")
        if self.text.startswith("(", self.at):
            raise _refused("'('")
        return Simple(
            words=tuple(words),
            assignments=tuple(assignments),
            redirections=tuple(redirections),
            source=source,
        )

    # --- redirections ---

    def _redirections(self) -> tuple[Redirection, ...]:
        found: list[Redirection] = []
        while one := self._redirection():
            found.append(one)
        return tuple(found)

    def _redirection(self) -> Redirection | None:
        self._skip()
        found = _REDIRECTION.match(self.text, self.at)
        if found is None:
            return None
        self.at = found.end()
        kind = found[2] or found[3]
        if self._at_operator():
            raise ShellError("sh: syntax error: a redirection has no target")
        stream = int(found[1]) if found[1] else 0 if kind.startswith("<") else 1
        if kind in ("<<", "<<-"):
            start = self.at
            mark = "".join(piece.text for piece in self._word())
            is_quoted = any(char in "'\"\\" for char in self.text[start : self.at])
            redirection = Redirection(stream=0, kind=kind)
            self.waiting.append((redirection, mark, is_quoted))
            return redirection
        return Redirection(stream=stream, kind=kind, target=self._word())

    def _documents(self) -> None:
        """Read the here-documents whose line has ended; the last may lack its end mark, as in a shell."""
        for redirection, mark, is_quoted in self.waiting:
            lines: list[str] = []
            while self.at < len(self.text):
                end = self.text.find("\n", self.at)
                line = self.text[self.at : end if end >= 0 else len(self.text)]
                self.at += len(line) + 1
                line = line.lstrip("\t") if redirection.kind == "<<-" else line
                if line == mark:
                    break
                lines.append(f"{line}\n")
            body = "".join(lines)
            quoted = (Piece(text=body, is_quoted=True),)
            redirection.target = quoted if is_quoted else _CommandReader(body, depth=self.depth).document()
            redirection.kind = "<<"
        self.waiting.clear()

    def document(self) -> Word:
        """Read the whole text as one that is expanded as between double quotes, except for the quotes."""
        pieces: list[Piece] = []
        while self.at < len(self.text):
            pieces.append(self._in_quotes(escapes="$`\\"))
        return tuple(pieces)

    # --- words ---

    def _word(self) -> Word:
        pieces: list[Piece] = []
        if re.match(r"~(?=/|[\s;&|<>()]|$)", self.text[self.at : self.at + 2]):
            self.at += 1
            pieces.append(Piece(kind="variable", text="HOME", is_quoted=True))
        while self.at < len(self.text) and self.text[self.at] not in _ENDS_WORD:
            pieces += self._pieces()
        return tuple(pieces)

    def _pieces(self) -> list[Piece]:
        char = self.text[self.at]
        if char == "'":
            end = self.text.find("'", self.at + 1)
            if end < 0:
                raise ShellError("sh: syntax error: unterminated quoted string")
            text, self.at = self.text[self.at + 1 : end], end + 1
            return [Piece(text=text, is_quoted=True)]
        if char == '"':
            return self._quoted()
        if char == "\\":
            text, self.at = self.text[self.at + 1 : self.at + 2], self.at + 2
            return [] if text == "\n" else [Piece(text=text or "\\", is_quoted=True)]
        if char in "$`" and (piece := self._expansion(is_quoted=False)):
            return [piece]
        if char == "{" and (found := _CHOICES.match(self.text, self.at)):
            self.at = found.end()
            return [Piece(kind="choices", choices=_choices(found))]
        return [Piece(text=self._until(_PLAIN_ENDS))]

    def _quoted(self) -> list[Piece]:
        self.at += 1
        pieces = [Piece(is_quoted=True)]
        while not self._take('"'):
            if self.at >= len(self.text):
                raise ShellError("sh: syntax error: unterminated quoted string")
            pieces.append(self._in_quotes(escapes='"$`\\'))
        return pieces

    def _in_quotes(self, *, escapes: str) -> Piece:
        """Read one piece in double quotes, or in a here-document, which ends at no quote."""
        char = self.text[self.at]
        if char == "\\":
            text, self.at = self.text[self.at : self.at + 2], self.at + 2
            plain = "" if text == "\\\n" else text[1:] if text[1:] in escapes and text[1:] else text
            return Piece(text=plain, is_quoted=True)
        if char in "$`" and (piece := self._expansion(is_quoted=True)):
            return piece
        return Piece(text=self._until(escapes), is_quoted=True)

    def _expansion(self, *, is_quoted: bool) -> Piece | None:
        """Read what a `$` or a backtick begins; None if it is plain."""
        if self._take("`"):
            end = self.at
            while end < len(self.text) and self.text[end] != "`":
                end += 2 if self.text[end] == "\\" else 1
            inner = re.sub(r"\\([$`\\])", r"\1", self.text[self.at : end])
            if end >= len(self.text):
                raise ShellError("sh: syntax error: unterminated quoted string")
            self.at = end + 1
            reader = _CommandReader(inner, depth=self.depth)
            return Piece(kind="command", script=reader.script(), is_quoted=is_quoted)
        if self.text.startswith("$((", self.at):
            raise _refused("arithmetic")
        if self._take("$("):
            script = self.script()
            if not self._take(")"):
                raise _unexpected("end of the command")
            return Piece(kind="command", script=script, is_quoted=is_quoted)
        if self._take("${"):
            return self._parameter(is_quoted=is_quoted)
        found = re.compile(r"\$([A-Za-z_]\w*|[0-9?@*#$!])").match(self.text, self.at)
        if found is None:
            return None
        self.at = found.end()
        return Piece(kind="variable", text=found[1], is_quoted=is_quoted)

    def _parameter(self, *, is_quoted: bool) -> Piece:
        found = _PARAMETER.match(self.text, self.at)
        if found is None:
            raise ShellError("sh: Bad substitution")
        self.at = found.end()
        operator = found[1] or found[3] or found[4] or ""
        operand: list[Piece] = []
        while not self._take("}"):
            if self.at >= len(self.text) or operator in ("", "#" * bool(found[1])):
                raise ShellError("sh: Bad substitution")
            operand += self._operand_pieces()
        # The operator of a length comes before the name, that of a prefix behind it.
        operator = "length" if found[1] else operator
        return Piece(
            kind="variable", text=found[2], is_quoted=is_quoted, operator=operator, operand=tuple(operand)
        )

    def _operand_pieces(self) -> list[Piece]:
        char = self.text[self.at]
        if char in "'\"\\$`":
            return self._pieces()
        return [Piece(text=self._until("'\"\\$`}"))]

    # --- small parts ---

    def _until(self, ends: Collection[str]) -> str:
        """Take a character, and those behind it that are none of `ends`."""
        start = self.at
        self.at += 1
        while self.at < len(self.text) and self.text[self.at] not in ends:
            self.at += 1
        return self.text[start : self.at]

    def _skip(self, *, lines: bool = False) -> None:
        """Skip blanks and comments; with `lines` also line ends, and the here-documents behind them."""
        while self.at < len(self.text):
            char = self.text[self.at]
            if char in " \t\r":
                self.at += 1
            elif self.text.startswith("\\\n", self.at):  # a line that goes on
                self.at += 2
            elif char == "#" and (self.at == 0 or self.text[self.at - 1] in _ENDS_WORD):
                end = self.text.find("\n", self.at)
                self.at = len(self.text) if end < 0 else end
            elif char == "\n" and lines:
                self.at += 1
                self._documents()
            else:
                return
        if lines:
            self._documents()

    def _take_pipe(self) -> bool:
        self._skip()
        return not self.text.startswith("||", self.at) and self._take("|")

    def _take(self, mark: str) -> bool:
        found = self.text.startswith(mark, self.at)
        self.at += len(mark) if found else 0
        return found

    def _reserved(self) -> str:
        found = _RESERVED.match(self.text, self.at)
        return found[0] if found else ""

    def _expect(self, *words: str) -> str:
        found = self._reserved()
        if found not in words:
            raise _unexpected(f"'{found}'" if found else "end of the command")
        self.at += len(found)
        return found

    def _at_operator(self) -> bool:
        self._skip()
        return self.at >= len(self.text) or self.text[self.at] in _ENDS_WORD or self._is_descriptor()

    def _is_descriptor(self) -> bool:
        found = _REDIRECTION.match(self.text, self.at)
        return found is not None and bool(found[1])


_ENDS = ("then", "elif", "else", "fi", "do", "done", "}")
_PLAIN_ENDS = _ENDS_WORD | frozenset("'\"\\$`{")


def _choices(found: re.Match[str]) -> tuple[str, ...]:
    if found[1] is not None:
        return tuple(found[1].split(","))
    first, last = int(found[2]), int(found[3])
    step = 1 if first <= last else -1
    return tuple(str(number) for number in range(first, last + step, step)[:LONGEST_COMMAND])
