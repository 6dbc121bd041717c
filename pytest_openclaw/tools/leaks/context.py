"""Separates a call that a reply makes from one that it only shows: an example, a format, a quotation."""

from __future__ import annotations

import re
from bisect import bisect_left
from typing import TYPE_CHECKING

from pytest_openclaw.tools.leaks.written_calls import TEMPLATES
from pytest_openclaw.tools.wordings import load_wordings

if TYPE_CHECKING:
    from collections.abc import Sequence

    from pytest_openclaw.tools.leaks.written_calls import Leak

_NEAR = 400


_WORDINGS = load_wordings("examples")
_PLACEHOLDER = re.compile(
    r"[>=:]\s*[\"']?(?:\.\.\.|\u2026|<[\w ./-]{2,40}>|\{\{?[\w ]{1,40}\}?\}|/?path/to/[\w./-]*"
    r"|your[_ -][\w ./-]{1,40}|[A-Z]+_(?:HERE|NAME))[\"'<,}\s]|\.\.\.\s*[})\]]"
)
_FENCE_MARK = re.compile(r"^[ \t]*(?:```|~~~)[^\n]*$", re.MULTILINE)
_TAG = re.compile(r"<[^<>\n]{1,80}>|\[/?[A-Z_]{2,40}\]")
_SENTENCE = re.compile(r"(?<=[.!?])\s+|\n+|(?<=[。！？])")


def own_acts(text: str, leaks: Sequence[Leak], *, shown_on_request: bool) -> tuple[Leak, ...]:
    """Return the calls that the reply makes itself."""
    if not leaks:
        return ()
    fences = [match.start() for match in _FENCE_MARK.finditer(text)]
    alone = _nothing_else(text, leaks)
    acts = []
    for leak in leaks:
        is_fenced = bisect_left(fences, leak.start) % 2 == 1
        if shown_on_request and (is_fenced or _is_inline(text, leak)) and not _is_announced(text, leak):
            continue
        if alone or not _is_shown(text, leak):
            acts.append(leak)
    return tuple(acts)


def _nothing_else(text: str, leaks: Sequence[Leak]) -> bool:
    """Whether the reply has no prose beside its calls."""
    kept, position = [], 0
    for leak in leaks:
        kept.append(text[position : leak.start])
        position = max(position, leak.end)
    kept.append(text[position:])
    rest = _TAG.sub(" ", _FENCE_MARK.sub(" ", " ".join(kept)))
    return not any(char.isalpha() for char in rest)


def _is_shown(text: str, leak: Leak) -> bool:
    if _is_inline(text, leak) or _is_cited(text, leak):
        return True
    if _is_announced(text, leak):
        return False
    if _WORDINGS["example"].search(_paragraph_before(text, leak)):
        return True
    if leak.form in TEMPLATES:  # whatever its arguments look like, and whatever follows
        return False
    if _PLACEHOLDER.search(leak.arguments):
        return True
    after = _TAG.sub(" ", _FENCE_MARK.sub("", text[leak.end : leak.end + _NEAR]))
    return bool(_WORDINGS["explained"].search(after))


def _is_announced(text: str, leak: Leak) -> bool:
    """Whether the sentence before the call says that the reply makes it."""
    return bool(_WORDINGS["act"].search(_SENTENCE.split(_paragraph_before(text, leak))[-1]))


def _paragraph_before(text: str, leak: Leak) -> str:
    before = _FENCE_MARK.sub("", text[max(0, leak.start - _NEAR) : leak.start]).rstrip()
    return _TAG.sub(" ", before.rpartition("\n\n")[2] if before.endswith(":") else before[-250:]).strip()


def _is_inline(text: str, leak: Leak) -> bool:
    """Whether the call is in backticks within a line of prose."""
    before = text[max(0, leak.start - _NEAR) : leak.start].rpartition("\n")[2]
    return before.count("`") % 2 == 1 and "```" not in before and any(char.isalpha() for char in before)


def _is_cited(text: str, leak: Leak) -> bool:
    before = text[max(0, leak.start - _NEAR) : leak.start].rpartition("\n")[2]
    return before.lstrip().startswith("> ")
