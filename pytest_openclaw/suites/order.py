"""The order of cells: target by target within an endpoint, repeat by repeat, endpoints interleaved."""

from __future__ import annotations

from collections import Counter
from typing import TYPE_CHECKING, TypeVar

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from pytest_openclaw.types.targets import Target

T = TypeVar("T")


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
