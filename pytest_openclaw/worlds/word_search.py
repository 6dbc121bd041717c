"""Finds texts by words, as the search tools of a world do: plainly, and the same way every time."""

from __future__ import annotations

import re
from bisect import bisect_left
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping

MOST_WORDS = 32
_WORD = re.compile(r"[^\W_]+")
_COMMON = frozenset({
    "a", "about", "an", "and", "any", "are", "at", "be", "by", "did", "do", "does", "for", "from",
    "had", "has", "have", "how", "i", "in", "is", "it", "me", "my", "of", "on", "or", "our", "that",
    "the", "their", "there", "this", "to", "was", "we", "were", "what", "when", "where", "which",
    "who", "why", "with", "you", "your",
})  # fmt: skip
_STEM_CHARS = 4


def words_of(text: str) -> frozenset[str]:
    """Return the words of a text, in lower case."""
    return frozenset(_WORD.findall(text.casefold()))


def rank(query: str, texts: Mapping[str, str]) -> list[tuple[str, float]]:
    """Return the keys of the texts that share a word with the query, the best first, with a score to 1.

    Words such as "the" do not count, unless the query has no others. A word is also found by its beginning
    of four letters or more: "deploy" in "deployment".
    """
    asked = words_of(query)
    wanted = sorted(asked - _COMMON or asked)[:MOST_WORDS]
    found = ((key, _score(wanted, words_of(text))) for key, text in texts.items())
    return sorted((pair for pair in found if pair[1] > 0), key=lambda pair: -pair[1])


def _score(wanted: list[str], words: Iterable[str]) -> float:
    known = frozenset(words)
    stems = tuple(sorted(word for word in known if len(word) >= _STEM_CHARS))
    hits = sum(word in known or _begins(word, stems) for word in wanted)
    return round(hits / len(wanted), 2) if wanted else 0.0


def _begins(word: str, stems: tuple[str, ...]) -> bool:
    """Whether the word is the beginning of one of the stems, which are sorted, or one of them is its own."""
    if len(word) < _STEM_CHARS:
        return False
    place = bisect_left(stems, word)
    follows = place < len(stems) and stems[place].startswith(word)
    return follows or word.startswith(stems)
