"""Blocks of an answer that its API wants back unchanged in later requests, such as signed thoughts."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from pytest_openclaw.core.text import valid_text

if TYPE_CHECKING:
    from pytest_openclaw.core.json_types import JsonObject


class CarriedBlocks:
    """The blocks of one answer, joined from their pieces."""

    def __init__(self) -> None:
        self._blocks: list[dict[str, list[Any]]] = []
        self._by_key: dict[int, dict[str, list[Any]]] = {}

    def receive(self, piece: JsonObject, key: int | None) -> None:
        """Add a piece of a block; see `Exchange.receive_block`."""
        block = None if key is None else self._by_key.get(key)
        if block is None:
            block = {}
            self._blocks.append(block)
            if key is not None:
                self._by_key[key] = block
        for name, value in piece.items():
            block.setdefault(name, []).append(value)

    def blocks(self) -> tuple[JsonObject, ...]:
        """Return the blocks in the order in which they began."""
        return tuple(
            {name: _joined(values) for name, values in block.items()} for block in self._blocks if block
        )


def _joined(values: list[Any]) -> Any:
    """Return texts as one text, and of other values the last."""
    if all(isinstance(value, str) for value in values):
        return valid_text("".join(values))
    return values[-1]
