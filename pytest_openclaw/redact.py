"""Keeps secrets out of everything that is written."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from collections.abc import Iterable

# Shorter texts are no keys: replacing "ollama" everywhere would spoil every row of a local server.
SHORTEST_SECRET = 8
HIDDEN = "[secret]"


@dataclass(frozen=True)
class Redactor:
    """Replaces known secrets in texts; the longest first, because one may hold another."""

    secrets: tuple[str, ...] = ()

    @classmethod
    def of(cls, secrets: Iterable[str]) -> Redactor:
        """Return a redactor for the secrets that are long enough to be some."""
        unique = {secret for secret in secrets if len(secret) >= SHORTEST_SECRET}
        return cls(tuple(sorted(unique, key=lambda secret: (-len(secret), secret))))

    def text(self, text: str) -> str:
        """Return the text without secrets."""
        for secret in self.secrets:
            text = text.replace(secret, HIDDEN)
        return text

    def value(self, value: Any) -> Any:
        """Return a JSON value, or tuples and mappings like one, with every text in it redacted."""
        if not self.secrets:
            return value
        if isinstance(value, str):
            return self.text(value)
        if isinstance(value, dict):
            return {self.text(key): self.value(item) for key, item in value.items()}
        if isinstance(value, (list, tuple)):
            return type(value)(self.value(item) for item in value)
        return value
