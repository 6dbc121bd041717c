"""Makes text safe to write anywhere: valid UTF-8, bounded, without commands for a terminal or CI system.

It also quotes and lists values for messages.
"""

from __future__ import annotations

import re
import shlex
from collections.abc import Callable, Collection, Iterable, Iterator, Sequence
from contextlib import contextmanager
from difflib import get_close_matches
from itertools import count
from typing import Any, TypeVar

UNSEEN = (
    r"\0-\x08\x0b-\x1f\x7f-\x9f\xad\u034f\u0600-\u0605\u061c\u06dd\u070f\u0890\u0891\u08e2"
    r"\u115f\u1160\u17b4\u17b5\u180b-\u180f\u200b-\u200f\u2028-\u202e\u2060-\u206f\u2800\u3164\ud800-\udfff"
    r"\ufe00-\ufe0f\ufeff\uffa0\ufff0-\ufffb\U000110bd\U000110cd\U00013430-\U0001343f\U0001bca0-\U0001bca3"
    r"\U0001d173-\U0001d17a\U000e0000-\U000e0fff"
)
"""Invisible and control characters, as a character class of a regular expression.

Unicode's categories Cc (without tab and line feed), Cf, Cs, Zl and Zp, its property
Default_Ignorable_Code_Point, and the blank Braille pattern.
"""
_UNSEEN = re.compile(f"[{UNSEEN}]")
_BLANK = re.compile(rf"[\s{UNSEEN}]")

# The commands in output that control CI systems. GitHub's runner trims a line before it looks for `::`, and
# like Azure's agent it finds `##[` and `##vso[` anywhere:
# https://github.com/actions/runner/blob/main/src/Runner.Common/ActionCommand.cs
# https://github.com/microsoft/azure-pipelines-agent (Microsoft.VisualStudio.Services.Agent/Command.cs)
# https://docs.gitlab.com/ci/jobs/job_logs/#custom-collapsible-sections
# https://www.jetbrains.com/help/teamcity/service-messages.html
_ANYWHERE = r"#(?=#[A-Za-z]*\[)|s(?=ection_(?:start|end):)"
_COMMAND = re.compile(rf"(?m)(?P<blanks>^[^\S\n]*):(?=:)|{_ANYWHERE}")
_COMMAND_IF_WRAPPED = re.compile(rf"(?P<blanks>):(?=:)|{_ANYWHERE}")

MAX_NAME_BYTES = 1024
"""The limit of a name or word: a tool, an id, a model, a finish reason."""
MAX_TEXT_BYTES = 64 * 1024
"""The limit of a text in a row."""
MAX_ANSWER_BYTES = 256 * 1024
"""The limit of an answer that is judged, without its thinking; about 64,000 tokens."""
MAX_CALLS_BYTES = 128 * 1024
"""The limit of the calls of a turn that are judged."""

_numbers = count(1)


def printable(text: str, *, wraps: bool = False) -> str:
    """Return a text with control characters, invisible characters and CI commands as escapes.

    A reply is hostile input: its escape sequences must not reach a terminal, nor its workflow commands a
    log. Line feeds and tabs are kept. A printable text is unchanged.

    Args:
        text: one line or more.
        wraps: whether pytest may break the text anywhere, so that any `::` may begin a line.
    """
    return inert(_UNSEEN.sub(lambda found: _escaped(found[0]), text), wraps=wraps)


def inert(text: str, *, wraps: bool = False) -> str:
    r"""Return a text of visible characters in which no line is a workflow command.

    The first character of a command becomes its escape, `\u003a` for a colon, which JSON reads as a colon.
    Invisible characters do not prevent a command: .NET ignores them in comparisons.
    """
    return (_COMMAND_IF_WRAPPED if wraps else _COMMAND).sub(
        lambda found: f"{found['blanks'] or ''}\\u{ord(found[0][-1]):04x}", text
    )


def _escaped(char: str) -> str:
    return char.encode("unicode_escape").decode("ascii")


_masks: list[Callable[[str], str]] = []
_LONGEST_SECRET = 16 * 1024
"""The characters after a cut that are searched for secrets that begin before it."""


@contextmanager
def masking(mask: Callable[[str], str]) -> Iterator[None]:
    """Mask secrets before every cut of a text, in all threads, in this context."""
    _masks.append(mask)
    try:
        yield
    finally:
        _masks.remove(mask)


def masked(text: str) -> str:
    """Return a text without the secrets of this session; only such a text may be cut."""
    for mask in _masks:
        text = mask(text)
    return text


def cut(text: str, most: int) -> str:
    """Return the first characters of a text; a longer text is masked before it is cut."""
    if len(text) <= most:
        return text
    ahead = masked(text[: most + _LONGEST_SECRET])
    # The end of a part of a text may be the beginning of a secret.
    is_whole = len(text) <= most + _LONGEST_SECRET
    return (ahead if is_whole else ahead[: len(ahead) - _LONGEST_SECRET])[:most]


def clip(text: str, max_bytes: int = MAX_TEXT_BYTES) -> str:
    """Cut `text` to at most `max_bytes` of UTF-8, on a boundary between characters; mask it before."""
    if 4 * len(text) <= max_bytes:  # a character has 4 bytes at most
        return text
    if len(text) <= max_bytes and len(text.encode("utf-8", "replace")) <= max_bytes:
        return text
    shown = cut(text, max_bytes) if len(text) > max_bytes else masked(text)
    return shown.encode("utf-8", "replace")[:max_bytes].decode("utf-8", "ignore")


def atomic(pattern: str) -> str:
    """Return a regular expression that matches `pattern` without backtracking into it.

    Possessive groups, `(?:…)*+`, are broken in Python before 3.11.5, such as Debian 12's
    (https://github.com/python/cpython/issues/106052). A lookahead is atomic in all versions.
    """
    name = f"atomic_{next(_numbers)}"
    return f"(?=(?P<{name}>{pattern}))(?P={name})"


def valid_text(text: str) -> str:
    r"""Return `text` without surrogates: pairs become their character, lone ones U+FFFD.

    JSON may write a character beyond U+FFFF as two escapes, and a stream may be cut between them. A
    surrogate cannot be encoded, so it would crash the xdist worker that reports it. All other characters
    are kept, even control characters and `\0`.
    """
    try:
        text.encode()
    except UnicodeEncodeError:
        return text.encode("utf-16-le", "surrogatepass").decode("utf-16-le", "replace")
    return text


def file_bytes(text: str) -> bytes:
    """Return the bytes of a world's file; surrogate escapes become the bytes that were read from disk."""
    try:
        return text.encode("utf-8", "surrogateescape")
    except UnicodeEncodeError:  # other surrogates, from a model
        return valid_text(text).encode()


def valid_value(value: Any) -> Any:
    """Return a JSON value, which may contain tuples, with all texts in it made valid."""
    return map_texts(value, valid_text)


_T = TypeVar("_T", str, str | None)


def cut_text(cut: set[str], field: str, text: _T, max_bytes: int = MAX_NAME_BYTES) -> _T:
    """Return a text (or None) without surrogates, cut to a limit; add `field` to `cut` if it was longer."""
    if not isinstance(text, str):
        return text
    text = valid_text(text)
    kept = clip(text, max_bytes)
    if kept != text:
        cut.add(field)
    return kept


def map_texts(value: Any, change: Callable[[str], str]) -> Any:
    """Return a JSON value, which may contain tuples, with all texts in it changed, keys included."""
    if isinstance(value, str):
        return change(value)
    if isinstance(value, dict):
        return {change(key): map_texts(item, change) for key, item in value.items()}
    if isinstance(value, (list, tuple)):
        return type(value)(map_texts(item, change) for item in value)
    return value


def counted(n: int, what: str) -> str:
    """Return `1 run`, `2 runs`."""
    return f"{n} {what}" if n == 1 else f"{n} {what}s"


def closest(word: str, known: Collection[str], *, then: str = "", cutoff: float = 0.6) -> str:
    """Return ` Did you mean x?`, with `then` after the x, if a known word is similar; else empty."""
    near = get_close_matches(word, sorted(known), n=1, cutoff=cutoff)
    return f" Did you mean {near[0]}{then}?" if near else ""


def in_order(name: str) -> list[tuple[str, int]]:
    """Return a key that sorts `P2` before `P10`."""
    return [(text, int(digits or 0)) for text, digits in re.findall(r"(\D*)(\d*)", name)]


def is_plain(text: str) -> bool:
    """Whether every character is visible: no blank, control character or lone surrogate."""
    return text.isprintable() and not _BLANK.search(text)


def first_few(texts: Sequence[str], most: int) -> str:
    """Return `a, b and 3 more`."""
    rest = len(texts) - most
    return f"{', '.join(texts[:most])}{f' and {rest} more' if rest > 0 else ''}"


MAX_SHOWN_CHARS = 80
LONGEST_PATTERN = 60
"""Characters of a pattern that a message shows; a longer one is only in the rule."""
MAX_LISTED = 50


def shown(text: str) -> str:
    """Quote a text for a message: one line, printable, shortened in the middle to 80 characters."""
    return f'"{shortened(text)}"'


def as_argument(path: str) -> str:
    """Return a path as a word of a shell's command, which programs do not take for an option."""
    return shlex.quote(f"./{path}" if path.startswith(("-", "@")) else path)


def shown_pattern(pattern: str) -> str:
    """Quote a pattern, which is never cut, for a message."""
    return shown(pattern) if len(pattern) <= LONGEST_PATTERN else "the pattern in the rule"


def shortened(text: str) -> str:
    """Return a text for a message like `shown`, but without quotes."""
    if len(text) > MAX_SHOWN_CHARS and len(text := masked(text)) > MAX_SHOWN_CHARS:
        half = (MAX_SHOWN_CHARS - 3) // 2
        text = f"{text[:half]}...{text[-half:]}"
    return "".join(char if char.isprintable() else _escaped(char) for char in text)


def listed(texts: Iterable[object], none: str = "nothing") -> str:
    """Join values for a message, 50 at most; strings are quoted, an empty list is `none`."""
    words = [shown(text) if isinstance(text, str) else str(text) for text in texts]
    if len(words) > MAX_LISTED:
        words[MAX_LISTED:] = [f"and {len(words) - MAX_LISTED} more"]
    return ", ".join(words) or none
