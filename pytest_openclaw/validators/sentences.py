"""Counting sentences, by punctuation."""

from __future__ import annotations

import re

_WIDE_MARKS = "。！？"
_CLOSERS = frozenset("\"'”’»›)]}」』】）〉》］｝〕*_~`")
_ANY_CASE = ("e.g.", "i.e.", "a.m.", "p.m.", "approx.", "etc.", "vs.", "cf.", "et al.", "fig.")
_CAPITALISED = ("Dr.", "Mr.", "Mrs.", "Ms.", "Prof.")
_NO_LETTER = r"(?<![^\W\d_])"


def _not_after(abbreviation: str, flag: str = "") -> str:
    return rf"(?<!{_NO_LETTER}(?{flag}:{re.escape(abbreviation)}))"


_MARK = re.compile(
    r"[!?؟](?!\S)"
    r"|\.(?!\S)(?<![A-Z]\.[A-Z]\.)"
    + "".join(_not_after(abbreviation, "i") for abbreviation in _ANY_CASE)
    + "".join(_not_after(abbreviation) for abbreviation in _CAPITALISED)
    + rf"(?:{_not_after('no.', 'i')}|(?!\s+[#\d]))"
    + rf"|[{_WIDE_MARKS}][.!?؟{_WIDE_MARKS}]*+"
)


def count_sentences(text: str) -> int:
    """Count the sentences of a text.

    A sentence ends at `.`, `!`, `?` or `؟` directly before white space or the end of the text, and at
    `。`, `！` or `？` anywhere, a run of marks being one end. No end is a mark that a closing quote,
    bracket or emphasis hides, and the period of a common abbreviation: those above, initials such as
    U.S., and `No.` before a numeral. What follows the last end is one more sentence.
    """
    ends = 0
    rest = 0
    for mark in _MARK.finditer(text):
        if mark.group()[0] in _WIDE_MARKS and text[mark.end() : mark.end() + 1] in _CLOSERS:
            continue
        ends += 1
        rest = mark.end()
    return ends + bool(text[rest:].strip())
