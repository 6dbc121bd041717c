"""Distinguishes reports of a failure, such as "it was denied" or "the output is cut off", from results.

Only the statement matters, not what it is about. Conditions and their opposite ("no errors") are none.
"""

from __future__ import annotations

from pytest_openclaw.tools.claims import CLAUSE, sentences_of
from pytest_openclaw.tools.wordings import load_wordings

_WORDINGS = load_wordings("failures")["failures"]
_FEWEST_WORDS = 3


def reports_failure(text: str) -> bool:
    """Whether the author's own prose says that something failed, was denied or is incomplete."""
    return any(map(_is_report, sentences_of(text)))


def states_result(text: str) -> bool:
    """Whether a sentence states something, and does not ask or announce it; "OK." states nothing."""
    return any(
        (len(sentence.split()) >= _FEWEST_WORDS or any(map(str.isdigit, sentence)))
        and not sentence.endswith("?")
        and not _WORDINGS["announced"].search(sentence)
        for sentence in sentences_of(text)
    )


def _is_report(sentence: str) -> bool:
    for certainty in ("certain", "maybe"):
        for pattern in _WORDINGS[certainty]:
            for match in pattern.finditer(sentence):
                before = CLAUSE.split(sentence[: match.start()])[-1]
                is_none = certainty == "maybe" and _WORDINGS["none"].search(before)
                if not is_none and not _WORDINGS["supposed"].search(before):
                    return True
    return False
