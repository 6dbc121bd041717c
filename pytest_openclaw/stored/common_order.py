"""Computes a common order of items that several runs list in part."""

from __future__ import annotations

import heapq
import re
from collections import Counter
from itertools import pairwise
from typing import TYPE_CHECKING, Any, TypeVar

if TYPE_CHECKING:
    from collections.abc import Callable, Hashable, Iterable

K = TypeVar("K", bound="Hashable")


def common_order(sequences: Iterable[Iterable[K]], key: Callable[[K], Any]) -> list[K]:
    """Return everything in the sequences once, in an order that fits all of them.

    Where they leave it open or contradict each other, the smaller `key` is first, so the order of the
    sequences does not matter.
    """
    followers: dict[K, set[K]] = {}
    for sequence in sequences:
        unique = list(dict.fromkeys(sequence))
        for item in unique:
            followers.setdefault(item, set())
        for item, following in pairwise(unique):
            followers[item].add(following)
    n_before = Counter(following for all_after in followers.values() for following in all_after)
    waiting = dict.fromkeys(sorted(followers, key=key))
    numbers = {item: number for number, item in enumerate(waiting)}
    ready = [(numbers[item], item) for item in waiting if not n_before[item]]
    ordered: list[K] = []
    while waiting:
        item = heapq.heappop(ready)[1] if ready else next(iter(waiting))
        if item not in waiting:  # placed earlier because of a contradiction
            continue
        del waiting[item]
        ordered.append(item)
        for following in followers[item]:
            n_before[following] -= 1
            if not n_before[following]:
                heapq.heappush(ready, (numbers[following], following))
    return ordered


def natural(text: str) -> tuple[list[str | tuple[int, str]], str]:
    """Return a key that sorts P2 before P10."""
    parts = re.split(r"([0-9]+)", text)
    # Numbers by length, then by digits: int() rejects more than 4,300 digits.
    digits = [part.lstrip("0") for part in parts]
    return [(len(digits[n]), digits[n]) if n % 2 else part for n, part in enumerate(parts)], text
