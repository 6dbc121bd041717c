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

_READ = ("inputTokens", "cacheReadInputTokens", "cacheCreationInputTokens")


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
    counted = {name: count_in(counts.get(name)) or 0 for name in (*_READ, "outputTokens")}
    return Usage(
        model=model,
        input_tokens=max(
            0, sum(counted[name] for name in _READ) - sum(usage.input_tokens or 0 for usage in same)
        ),
        output_tokens=max(0, counted["outputTokens"] - sum(usage.output_tokens or 0 for usage in same)),
        cached_tokens=max(
            0, counted["cacheReadInputTokens"] - sum(usage.cached_tokens or 0 for usage in same)
        ),
        cache_write_tokens=max(
            0, counted["cacheCreationInputTokens"] - sum(usage.cache_write_tokens or 0 for usage in same)
        ),
    )


def _plain(model: str) -> str:
    """A model's name without the CLI's own `[1m]` for a longer context."""
    return model.partition("[")[0]
