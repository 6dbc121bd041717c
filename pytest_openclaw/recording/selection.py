"""The cells that a session has selected, item by item, and the plan of their run."""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from pytest_openclaw.types.targets import CellKey

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from pytest_openclaw.core.json_types import JsonObject
    from pytest_openclaw.types.prompts import Cell
    from pytest_openclaw.types.targets import Target


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


@dataclass(frozen=True, kw_only=True)
class Selection:
    """The cells that were collected.

    Attributes:
        prompts: the definitions of the cells' prompts, each once.
        keys: the cell of each item, in order; None for an item that is not a cell.
        divided: the digest of the cells of all shards; None if the session runs all that it selects.
    """

    prompts: Sequence[JsonObject]
    keys: Sequence[CellKey | None]
    divided: str | None = None

    @classmethod
    def of(cls, cells: Sequence[Cell | None], divided: str | None = None) -> Selection:
        """Return the selection of these items' cells."""
        from pytest_openclaw.suites import definitions

        prompts = {(cell.prompt.suite, cell.prompt.id): cell.prompt for cell in cells if cell}
        return cls(
            prompts=definitions(prompts.values()),
            keys=[cell.key if cell else None for cell in cells],
            divided=divided,
        )

    def to_json(self, targets: Sequence[Target]) -> JsonObject:
        """Return the selection as plain values: ten thousand cells take 150 KB.

        Args:
            targets: the session's.
        """
        places = {(prompt["suite"], prompt["id"]): n for n, prompt in enumerate(self.prompts)}
        numbers = {target: n for n, target in enumerate(targets)}
        cells = [
            key and [places[key.suite, key.prompt_id], numbers[key.target], key.repeat] for key in self.keys
        ]
        return {"prompts": [*self.prompts], "cells": cells, "divided": self.divided}

    @classmethod
    def from_json(cls, plain: JsonObject, targets: Sequence[Target]) -> Selection:
        """Return the selection from the values of `to_json`."""
        names = [(prompt["suite"], prompt["id"]) for prompt in plain["prompts"]]

        def key_of(prompt: int, target: int, repeat: int) -> CellKey:
            suite, prompt_id = names[prompt]
            return CellKey(suite, prompt_id, targets[target], repeat)

        return cls(
            prompts=plain["prompts"],
            keys=[key_of(*cell) if cell else None for cell in plain["cells"]],
            divided=plain["divided"],
        )

    def plan(self, targets: Sequence[Target], providers: Mapping[str, JsonObject]) -> Plan:
        """Return the plan of a run with these cells.

        Args:
            targets: the session's, in their order.
            providers: what shapes a request, by provider.
        """
        keys = [key for key in self.keys if key]
        fixed = {(prompt["suite"], prompt["id"]) for prompt in self.prompts if prompt["repeat"]}
        n_selected = Counter(key.target for key in keys)
        return Plan(
            n_selected={target: n_selected[target] for target in targets if target in n_selected},
            prompts=tuple(self.prompts),
            providers=providers,
            cells=frozenset(keys),
            by_repeat=Counter((key.target, key.repeat) for key in keys),
            divided=self.divided,
            fixed=Counter((key.target, key.repeat) for key in keys if (key.suite, key.prompt_id) in fixed),
        )
