"""The plan of a run: the cells that a session has selected."""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from pytest_openclaw.core.json_types import JsonObject
    from pytest_openclaw.types.prompts import Cell
    from pytest_openclaw.types.targets import CellKey, Target


@dataclass(frozen=True, kw_only=True)
class Plan:
    """The cells of a run.

    Attributes:
        n_selected: cells by target, targets in their order.
        prompts: the definition of every selected prompt.
        providers: what shapes a request, by provider.
        cells: the selected ones.
        by_repeat: cells by target and repeat; empty if each is its prompt's only one.
        divided: the digest of the cells of all shards; None if this run is not a shard.
        fixed: those among `by_repeat` whose prompt sets its own number of repeats.
    """

    n_selected: Mapping[Target, int]
    prompts: tuple[JsonObject, ...]
    providers: Mapping[str, JsonObject]
    cells: frozenset[CellKey] = frozenset()
    by_repeat: Mapping[tuple[Target, int], int] = field(default_factory=dict)
    divided: str | None = None
    fixed: Mapping[tuple[Target, int], int] = field(default_factory=dict)

    @classmethod
    def of(
        cls,
        cells: Sequence[Cell],
        targets: Sequence[Target],
        providers: Mapping[str, JsonObject],
        divided: str | None = None,
    ) -> Plan:
        """Return the plan of a run with these cells.

        Args:
            cells: the selected ones.
            targets: the session's, in their order.
            providers: see above.
            divided: see above.
        """
        from pytest_openclaw.suites import definitions

        prompts = {(cell.prompt.suite, cell.prompt.id): cell.prompt for cell in cells}
        n_selected = Counter(cell.target for cell in cells)
        return cls(
            n_selected={target: n_selected[target] for target in targets if target in n_selected},
            prompts=tuple(definitions(prompts.values())),
            providers=providers,
            cells=frozenset(cell.key for cell in cells),
            by_repeat=Counter((cell.target, cell.repeat) for cell in cells),
            divided=divided,
            fixed=Counter((cell.target, cell.repeat) for cell in cells if cell.prompt.repeat),
        )

    @property
    def n_cells(self) -> int:
        """Cells selected in all."""
        return sum(self.n_selected.values())

    def n_up_to(self, target: Target, repeat: int) -> int:
        """Count a target's cells up to a repeat, and all of its fixed repeats.

        Args:
            target: a target of the run.
            repeat: the last repeat that counts.
        """
        if not self.by_repeat:
            return self.n_selected.get(target, 0)
        return sum(
            n if of <= repeat else self.fixed.get((one, of), 0)
            for (one, of), n in self.by_repeat.items()
            if one == target
        )

    def n_fixed(self, target: Target) -> int:
        """Count the fixed repeats of a target, which are run whatever its tier is."""
        return sum(n for (one, _), n in self.fixed.items() if one == target)
