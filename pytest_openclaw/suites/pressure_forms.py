"""Context pressure: expands an entry of a suite to the same prompt with more tools, and with more text."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, NamedTuple

from pytest_openclaw.suites.neutral import neutral_text
from pytest_openclaw.suites.wording import is_whole, kind_of, shown
from pytest_openclaw.tools.catalogue import load_catalogue

if TYPE_CHECKING:
    from collections.abc import Iterator

    from pytest_openclaw.tools.catalogue import Catalogue

#: number of tools → the surface with that number; 1 is the entry's own tools
SURFACES = {1: None, 11: "direct", 54: "full"}
MOST_PADDING_TOKENS = 200_000
_KEYS = ("tools", "padding_tokens")


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
        if isinstance(entry, dict) and "pressure" in entry and not any(flaws_of(entry)):
            found += _forms(entry, catalogue or load_catalogue())
        else:
            found.append(entry)
    return found


def flaws_of(entry: dict[str, Any]) -> Iterator[str]:
    """Yield what is wrong with an entry's `pressure`, with the hint."""
    pressure = entry["pressure"]
    if not isinstance(pressure, dict) or not pressure:
        yield f"is {kind_of(pressure)}. Write {{ tools = [1, 11, 54], padding_tokens = [2000] }}."
        return
    if not isinstance(entry.get("tools"), list) or not entry["tools"]:
        yield 'needs "tools" of its own, a list. Write for example tools = ["read"].'
    elif 1 in _listed(pressure.get("tools")) and len(entry["tools"]) != 1:
        yield f"asks for 1 tool, but {len(entry['tools'])} are offered. Offer the one that is wanted."
    for key, values in pressure.items():
        if key not in _KEYS:
            yield f"has {shown(key)}. Its keys are {', '.join(_KEYS)}."
        elif not isinstance(values, list) or not all(map(is_whole, values)):
            yield f"has {key} {shown(values)}. Write whole numbers in brackets."
        elif key == "tools" and (odd := [value for value in values if value not in SURFACES]):
            yield f"asks for {odd[0]} tools. There are surfaces of {', '.join(map(str, SURFACES))}."
        elif key == "padding_tokens" and any(not 0 < value <= MOST_PADDING_TOKENS for value in values):
            yield f"has {key} {shown(values)}. Write numbers from 1 to {MOST_PADDING_TOKENS}."


def _listed(value: Any) -> list[Any]:
    return value if isinstance(value, list) else []


def _forms(entry: dict[str, Any], catalogue: Catalogue) -> Iterator[dict[str, Any]]:
    pressure, own = entry["pressure"], str(entry.get("id"))
    levels: dict[int, Any] = {}
    for n in dict.fromkeys(pressure.get("tools", [])):
        tools, many = _with(entry["tools"], n, catalogue)
        levels.setdefault(many, tools)
    for many, tools in levels.items():
        yield {**entry, "id": f"{own}-{many}t", "tools": tools, "pressure": Form(own, 0)}
    for n in dict.fromkeys(pressure.get("padding_tokens", [])):
        text = f"{neutral_text(n)}\n\n{entry.get('prompt')}"
        yield {**entry, "id": f"{own}-{_short(n)}", "prompt": text, "pressure": Form(own, n)}


def _with(own: list[Any], n: int, catalogue: Catalogue) -> tuple[Any, int]:
    """Return the surface of n tools, and their number; own tools that it lacks replace its last ones.

    In a captured catalogue the surface of that name may have a few more or fewer.
    """
    surface = SURFACES[n]
    if surface is None:
        return own, n
    whole = catalogue.surfaces.get(surface, ())
    others = [name for name in whole if name not in own]
    if len(others) + len(own) == len(whole) or not whole:
        return surface, len(whole) or n
    return [*own, *others[: len(whole) - len(own)]], len(whole)


def _short(n: int) -> str:
    return f"{n // 1000}k" if n % 1000 == 0 else str(n)
