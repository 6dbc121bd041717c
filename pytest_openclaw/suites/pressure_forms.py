"""Context pressure: expands an entry of a suite to the same prompt with more tools, and with more text.

Text that asks nothing and says nothing of use: the padding before a question under pressure.
"""

from __future__ import annotations

from functools import lru_cache
from typing import TYPE_CHECKING, Annotated, Any, Literal, NamedTuple

from msgspec import Meta, Struct

from pytest_openclaw.openclaw.catalog import load_catalogue
from pytest_openclaw.suites.wording import Key, read_key

if TYPE_CHECKING:
    from collections.abc import Iterator

    from pytest_openclaw.openclaw.catalog import Catalogue


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


#: number of tools → the surface with that number, or a few more or fewer; 1 is the entry's own tools
SURFACES = {1: None, 11: "direct", 54: "full"}
MOST_PADDING_TOKENS = 200_000


class PressureSpec(Struct, forbid_unknown_fields=True):
    """The value of `pressure` in an entry."""

    tools: list[Literal[1, 11, 54]] = []
    padding_tokens: list[Annotated[int, Meta(ge=1, le=MOST_PADDING_TOKENS)]] = []

    def __post_init__(self) -> None:
        if not (self.tools or self.padding_tokens):
            raise ValueError("is empty. Write for example { tools = [1, 11, 54], padding_tokens = [2000] }.")


PRESSURE = Key(PressureSpec, "{ tools = [1, 11, 54], padding_tokens = [2000] }")


class Form(NamedTuple):
    """The value of `pressure` in an entry that is a harder form of another."""

    of: str
    padding_tokens: int


def under_pressure(entries: list[Any], catalogue: Catalogue | None = None) -> list[Any]:
    """Return the entries, each one with a `pressure` replaced by its harder forms.

    `pressure = { tools = [1, 11, 54], padding_tokens = [2000, 16000] }` on X1 gives X1-1t, X1-11t, X1-54t,
    X1-2k and X1-16k; the last two offer the entry's own tools. A malformed entry is unchanged;
    `flaws_of` explains it.
    """
    found: list[Any] = []
    for entry in entries:
        if isinstance(entry, dict) and "pressure" in entry and not flaws_of(entry):
            found += _forms(entry, catalogue or load_catalogue())
        else:
            found.append(entry)
    return found


def flaws_of(entry: dict[str, Any]) -> list[str]:
    """Return the errors of an entry's `pressure`, with hints."""
    try:
        pressure: PressureSpec = read_key("pressure", entry["pressure"], PRESSURE)
    except ValueError as error:
        return [str(error)]
    tools = entry.get("tools")
    if not isinstance(tools, list) or not tools:
        return ['pressure needs "tools" of the prompt itself, a list. Write for example tools = ["read"].']
    if 1 in pressure.tools and len(tools) != 1:
        return [f"pressure has 1 tool, but {len(tools)} are offered. Offer only the one that the task needs."]
    return []


def _forms(entry: dict[str, Any], catalogue: Catalogue) -> Iterator[dict[str, Any]]:
    pressure, own = entry["pressure"], str(entry.get("id"))
    for n in dict.fromkeys(pressure.get("tools", [])):
        tools = _with(entry["tools"], n, catalogue)
        yield {**entry, "id": f"{own}-{n}t", "tools": tools, "pressure": Form(own, 0)}
    for n in dict.fromkeys(pressure.get("padding_tokens", [])):
        text = f"{neutral_text(n)}\n\n{entry.get('prompt')}"
        short = f"{n // 1000}k" if n % 1000 == 0 else str(n)
        yield {**entry, "id": f"{own}-{short}", "prompt": text, "pressure": Form(own, n)}


def _with(own: list[Any], n: int, catalogue: Catalogue) -> Any:
    """Return the surface of about n tools; own tools that it lacks replace its last ones."""
    surface = SURFACES[n]
    if surface is None:
        return own
    whole = catalogue.surfaces.get(surface, ())
    others = [name for name in whole if name not in own]
    if len(others) + len(own) == len(whole) or not whole:
        return surface
    return [*own, *others[: len(whole) - len(own)]]
