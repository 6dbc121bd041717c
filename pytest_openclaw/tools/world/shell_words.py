"""Reads a shell command as far as a world plays it: words, pipes, chains, redirections, here-documents.

What it does not know (substitutions, subshells, jobs) is refused, never guessed.
"""

from __future__ import annotations

from dataclasses import dataclass, field

LONGEST_COMMAND = 32_768
_OPERATORS = ("&&", "||", "<<-", "<<", ">>", ";", "|", ">", "<", "\n", "&", "(", ")")
_OPERATOR_STARTS = frozenset("2&|<>;\n()")
_CHAINS = ("&&", "||", ";", "\n")
_REFUSED = {"&": "&", "(": "(", ")": ")"}


class ShellError(Exception):
    """The command cannot be read; its text is what a shell would say."""


@dataclass
class Word:
    """A word without its quotes; `is_pattern` if a shell would look for files that fit it."""

    text: str
    is_pattern: bool = False


@dataclass
class Simple:
    """One command of a pipeline.

    Attributes:
        source: as it was written, up to the first redirection.
        output: where its output goes; None leaves it.
        input: what it reads instead of the pipe; `input_file` names a file.
        is_quiet: its complaints are thrown away.
    """

    words: list[Word] = field(default_factory=list)
    source: str = ""
    output: str | None = None
    appends: bool = False
    input: str | None = None
    input_file: str | None = None
    is_quiet: bool = False


@dataclass
class Pipeline:
    """Commands whose output goes from one to the next; `link` says when it runs: `&&`, `||` or always."""

    commands: list[Simple]
    source: str
    link: str = ";"


@dataclass(frozen=True)
class _Token:
    kind: str  # an operator, or "word"
    start: int
    end: int
    word: Word | None = None


def read_command(command: str) -> list[Pipeline]:
    """Return the pipelines of a command, in order.

    Raises:
        ShellError: it is no command, or has what no world plays.
    """
    tokens, documents = _tokens(command)
    pipelines: list[Pipeline] = []
    link, current, start = ";", [Simple()], 0
    position = 0
    while position < len(tokens):
        token = tokens[position]
        position += 1
        if token.kind in _CHAINS:
            _close(pipelines, current, command[start : token.start], link)
            link, current, start = token.kind, [Simple()], token.end
        elif token.kind == "|":
            if not current[-1].words:
                raise ShellError("sh: syntax error: unexpected '|'")
            current.append(Simple())
        elif token.kind == "word":
            assert token.word is not None, "a word has its text"
            _add_word(current[-1], token, tokens[position - 2 : position - 1], command)
        else:
            position = _redirect(current[-1], tokens, position, documents)
    _close(pipelines, current, command[start:], link)
    return pipelines


def _close(pipelines: list[Pipeline], commands: list[Simple], source: str, link: str) -> None:
    if len(commands) == 1 and not commands[0].words:
        if link in ("&&", "||") and not commands[0].output:
            raise ShellError("sh: syntax error: unexpected end of the command")
        if commands[0].output is None:
            return
    if not commands[-1].words and len(commands) > 1:
        raise ShellError("sh: syntax error: unexpected end of the command")
    pipelines.append(Pipeline(commands=commands, source=source.strip(), link=link))


def _add_word(simple: Simple, token: _Token, before: list[_Token], command: str) -> None:
    assert token.word is not None, "a word has its text"
    if not simple.words:
        simple.source = command[token.start : token.end]
    elif simple.output is None and simple.input is None and simple.input_file is None and before:
        # With the blanks between, as a pattern of a suite is written.
        simple.source += command[before[0].end : token.start] + command[token.start : token.end]
    simple.words.append(token.word)


def _redirect(simple: Simple, tokens: list[_Token], position: int, documents: list[str]) -> int:
    """Take the target of a redirection; returns the position behind it."""
    kind = tokens[position - 1].kind
    if kind in _REFUSED:
        raise ShellError(f"sh: this shell has no '{kind}'")
    if kind.startswith("2>"):
        simple.is_quiet = simple.is_quiet or kind == "2>"
        return position if kind == "2>&1" else position + 1
    target = tokens[position].word if position < len(tokens) else None
    if target is None:
        raise ShellError("sh: syntax error: a redirection has no target")
    if kind in ("<<", "<<-"):
        simple.input = documents.pop(0)
    elif kind == "<":
        simple.input_file = target.text
    else:
        simple.output, simple.appends = target.text, kind == ">>"
    return position + 1


def _tokens(command: str) -> tuple[list[_Token], list[str]]:
    """Return words and operators, and the texts of here-documents in their order."""
    if len(command) > LONGEST_COMMAND:
        raise ShellError("sh: Argument list too long")
    tokens: list[_Token] = []
    documents: list[str] = []
    waiting: list[str] = []
    position = 0
    while position < len(command):
        char = command[position]
        if char in " \t\r":
            position += 1
        elif command.startswith("\\\n", position):  # a line that goes on
            position += 2
        elif char == "#":
            end = command.find("\n", position)
            position = len(command) if end < 0 else end
        elif operator := _operator(command, position):
            end = position + len(operator)
            tokens.append(_Token(operator, position, end))
            position = end
            if operator == "\n" and waiting:
                position = _take_documents(command, position, waiting, documents)
        else:
            word, end = _word(command, position)
            if tokens and tokens[-1].kind in ("<<", "<<-"):
                waiting.append(word.text)
            tokens.append(_Token("word", position, end, word))
            position = end
    if waiting:
        raise ShellError("sh: syntax error: a here-document does not end")
    return tokens, documents


def _operator(command: str, position: int) -> str | None:
    if command[position] not in _OPERATOR_STARTS:
        return None
    for stream in ("2>&1", "2>>", "2>"):
        if command.startswith(stream, position) and command[position - 1 : position] in ("", " ", "\t"):
            return stream
    return next((one for one in _OPERATORS if command.startswith(one, position)), None)


def _take_documents(command: str, position: int, waiting: list[str], documents: list[str]) -> int:
    while waiting:
        end_mark = waiting.pop(0)
        lines: list[str] = []
        while True:
            if position >= len(command):
                raise ShellError("sh: syntax error: a here-document does not end")
            end = command.find("\n", position)
            end = len(command) if end < 0 else end
            line = command[position:end]
            position = end + 1
            if line.strip() == end_mark:
                break
            lines.append(line)
        documents.append("".join(f"{line}\n" for line in lines))
    return min(position, len(command))


def _word(command: str, position: int) -> tuple[Word, int]:
    pieces: list[str] = []
    is_pattern = False
    quote = ""
    while position < len(command):
        char = command[position]
        if quote == "'":
            if char == "'":
                quote = ""
            else:
                pieces.append(char)
        elif char == "`" or command.startswith("$(", position):
            raise ShellError("sh: this shell has no command substitution")
        elif char == "\\" and position + 1 < len(command):
            position += 1
            escaped = command[position]
            if escaped != "\n":  # a line that goes on
                pieces.append(escaped if not quote or escaped in '"\\$`' else f"\\{escaped}")
        elif quote:
            if char == '"':
                quote = ""
            else:
                pieces.append(char)
        elif char in "'\"":
            quote = char
        elif char in " \t\r" or _operator(command, position):
            break
        else:
            is_pattern = is_pattern or char in "*?["
            pieces.append(char)
        position += 1
    if quote:
        raise ShellError("sh: syntax error: unterminated quoted string")
    return Word("".join(pieces), is_pattern), position
