"""Text that asks nothing and says nothing of use: the padding before a question under pressure."""

from __future__ import annotations

from functools import lru_cache

TOKENS_A_WORD = 1.3
"""Of plain English, for the tokenizers in use; the row says what the server counted."""

_PLACES = [
    "harbour", "library", "market", "station", "garden", "museum", "bakery", "school", "theatre", "mill",
]  # fmt: skip
_THINGS = [
    "clock", "bench", "lantern", "fountain", "signpost", "gate", "window", "staircase", "bell", "mural",
]  # fmt: skip
_QUALITIES = (
    "painted green",
    "older than it looks",
    "made of oak",
    "seldom noticed",
    "cleaned in spring",
    "drawn on every map",
    "lit at dusk",
)
_HABITS = (
    "visitors pass it on their way",
    "the guide mentions it in a footnote",
    "nobody remembers who put it there",
    "it appears on an old postcard",
    "children count its corners",
    "the rain has left a mark on it",
    "a painter once drew it",
    "it is warm in the evening",
)
_BEGINS = "Here is a passage from a travel book. It has nothing to do with the question after it."
_ENDS = "Here the passage ends."


@lru_cache(maxsize=16)
def neutral_text(tokens: int) -> str:
    """Return about so many tokens of a description of a town; always the same text."""
    sentences = [_BEGINS]
    n_words = len(f"{_BEGINS} {_ENDS}".split())
    while n_words * TOKENS_A_WORD < tokens:
        sentences.append(_sentence(len(sentences)))
        n_words += len(sentences[-1].split())
    return " ".join([*sentences, _ENDS])


def _sentence(number: int) -> str:
    # Lists of 10, 10, 7 and 8 with different steps come round after some hundred sentences.
    place = _PLACES[number % len(_PLACES)]
    thing = _THINGS[number // 3 % len(_THINGS)]
    quality = _QUALITIES[number // 2 % len(_QUALITIES)]
    habit = _HABITS[number % len(_HABITS)]
    return f"On page {number}, the {thing} near the {place} is {quality}, and {habit}."
