"""The order of cells, target by target within an endpoint, endpoints interleaved; and their shards."""

from __future__ import annotations

import hashlib
from collections import Counter
from typing import TYPE_CHECKING, TypeVar

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Sequence

    from pytest_openclaw.types.settings import Shard
    from pytest_openclaw.types.targets import CellKey, Target

T = TypeVar("T")


def shard_of(keys: Iterable[CellKey], shard: Shard) -> frozenset[CellKey]:
    """Return the cells of one shard: the same on each machine, in whatever order they are collected.

    Shards of one selection have no cell in common and are equally large, within one cell. They are assigned
    in turn, in the order of a digest of their ids, so that each shard has some of every target and suite.

    Args:
        keys: the selected cells.
        shard: which part of them.
    """
    ranked = sorted(keys, key=lambda key: hashlib.sha256(_cell_id(key)).digest())
    return frozenset(ranked[shard.number - 1 :: shard.of])


def digest_of_cells(keys: Iterable[CellKey]) -> str:
    """Return the SHA-256 of the ids of these cells, in whatever order they are; hexadecimal."""
    return hashlib.sha256(b"\n".join(sorted(map(_cell_id, keys)))).hexdigest()


def _cell_id(key: CellKey) -> bytes:
    return f"{key.suite}::{key.name}".encode()


def spread(
    cells: Sequence[T],
    *,
    target_of: Callable[[T], Target],
    endpoints: dict[Target, str],
    repeat_of: Callable[[T], int] = lambda _: 1,
) -> list[T]:
    """Return the cells in the order in which they are sent and tested.

    Within an endpoint the targets come one after the other, so that a local model is loaded once, and within
    a target its repeats, so that an early end affects all prompts equally. The cells of different endpoints
    are mixed evenly, each endpoint's over the whole length: tests take their replies in order, so an endpoint
    whose cells all follow another's would wait for its end.

    Args:
        cells: in the order of their suites.
        target_of: returns the target of a cell.
        endpoints: the endpoint of each target, in order of the targets.
        repeat_of: returns the repeat of a cell.
    """
    order = {target: position for position, target in enumerate(endpoints)}
    by_target = sorted(cells, key=lambda cell: (order[target_of(cell)], repeat_of(cell)))
    sizes = Counter(endpoints[target_of(cell)] for cell in cells)
    seen: Counter[str] = Counter()
    places = []
    for cell in by_target:
        endpoint = endpoints[target_of(cell)]
        places.append((seen[endpoint] + 0.5) / sizes[endpoint])
        seen[endpoint] += 1
    # A stable sort: of two endpoints at the same place, the one named first is first.
    return [cell for _, cell in sorted(zip(places, by_target, strict=True), key=lambda pair: pair[0])]
