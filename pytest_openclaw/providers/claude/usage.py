"""Computes the charged usage of the Claude CLI: of each received message, and of further requests.

The CLI's own price is not used: it guesses the price of unknown models, and an older CLI does not know newer
ones. Its counts are those of the API, and are priced as for any other provider.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from pytest_openclaw.providers.json_values import count_in, object_in
from pytest_openclaw.types.replies import Usage

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence
    from typing import Any

# Fields of `Usage` → the CLI's counts whose sum they are.
_COUNTS = {
    "input_tokens": ("inputTokens", "cacheReadInputTokens", "cacheCreationInputTokens"),
    "output_tokens": ("outputTokens",),
    "cached_tokens": ("cacheReadInputTokens",),
    "cache_write_tokens": ("cacheCreationInputTokens",),
}


def charged(received: Sequence[Usage], result: Mapping[str, Any] | None) -> tuple[Usage, ...]:
    """Return the usage of all requests: of received messages, and of each model what the last line adds.

    Only the last line counts retries of the CLI and requests to a smaller model for its own purposes.

    Args:
        received: of the received messages, each with its model.
        result: the CLI's last line, if it came.
    """
    models = object_in((result or {}).get("modelUsage"))
    rest = (_beyond(received, _plain(name), object_in(counts)) for name, counts in models.items())
    return (*received, *(usage for usage in rest if usage.input_tokens or usage.output_tokens))


def _beyond(received: Sequence[Usage], model: str, counts: Mapping[str, Any]) -> Usage:
    # The last line may have the requested name and a message a dated one, or the reverse.
    same = [usage for usage in received if model in (usage.model or "") or (usage.model or model) in model]

    def beyond(field: str, names: Sequence[str]) -> int:
        counted = sum(count_in(counts.get(name)) or 0 for name in names)
        return max(0, counted - sum(getattr(usage, field) or 0 for usage in same))

    return Usage(model=model, **{field: beyond(field, names) for field, names in _COUNTS.items()})


def _plain(model: str) -> str:
    """A model's name without the CLI's own `[1m]` for a longer context."""
    return model.partition("[")[0]
