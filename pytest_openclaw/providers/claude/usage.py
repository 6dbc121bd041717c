"""What the Claude CLI's requests are charged for: what was heard of each, and what it did beside.

The CLI tells a price of its own, which is not taken: it makes one up for a model that it does not know, and
an older CLI knows no newer models. Its counts are the API's, and are priced like everybody's.
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
    """Return the usage of all requests: those that were heard, and of each model what the last line adds.

    Requests that the CLI made again, and those to a smaller model for its own needs, stand there alone.

    Args:
        received: of the messages that were heard, each with its model.
        result: the CLI's last line, if it came.
    """
    models = object_in((result or {}).get("modelUsage"))
    rest = (_beyond(received, _plain(name), object_in(counts)) for name, counts in models.items())
    return (*received, *(usage for usage in rest if usage.input_tokens or usage.output_tokens))


def _beyond(received: Sequence[Usage], model: str, counts: Mapping[str, Any]) -> Usage:
    # The last line may have the name that was asked for, and a message a dated one, or the other way round.
    same = [usage for usage in received if model in (usage.model or "") or (usage.model or model) in model]
    told = {name: count_in(counts.get(name)) or 0 for name in (*_READ, "outputTokens")}
    return Usage(
        model=model,
        input_tokens=max(
            0, sum(told[name] for name in _READ) - sum(usage.input_tokens or 0 for usage in same)
        ),
        output_tokens=max(0, told["outputTokens"] - sum(usage.output_tokens or 0 for usage in same)),
        cached_tokens=max(0, told["cacheReadInputTokens"] - sum(usage.cached_tokens or 0 for usage in same)),
        cache_write_tokens=max(
            0, told["cacheCreationInputTokens"] - sum(usage.cache_write_tokens or 0 for usage in same)
        ),
    )


def _plain(model: str) -> str:
    """A model's name without the CLI's own `[1m]` for a longer context."""
    return model.partition("[")[0]
