"""Converts the token counts of all servers to one convention.

Cached tokens are part of the input, and reasoning tokens are part of the output. Most servers count like
this. xAI and some gateways count reasoning in addition to the output, and others cached tokens in addition to
the input.
"""

from __future__ import annotations

from itertools import product
from typing import TYPE_CHECKING, NamedTuple

from pytest_openclaw.providers.json_values import count_in, object_in

if TYPE_CHECKING:
    from pytest_openclaw.util.json_types import JsonObject


class Counts(NamedTuple):
    """Tokens of one request, None where the server reports no count."""

    input: int | None
    output: int | None
    reasoning: int | None


def settled(
    n_input: int | None,
    n_output: int | None,
    *,
    total: int | None,
    reasoning: int | None = None,
    cached: int | None = None,
    cache_write: int | None = None,
) -> Counts:
    """Return the counts with all cached tokens in the input and all reasoning tokens in the output.

    The total shows which convention a server has. Tokens of the total that no other count has are reasoning,
    as in Gemini's API for chat completions. A part that is larger than the whole is never in it.
    """
    if not n_input or n_output is None:
        return Counts(n_input or None, n_output, reasoning)
    beyond = max(0, (total or 0) - n_input - n_output)
    read, hidden = cached or 0, reasoning or 0
    outside_input, outside_output = read if read > n_input else 0, hidden if hidden > n_output else 0
    if beyond:
        ways = product((0, read, read + (cache_write or 0)), (0, hidden))
        found = next((way for way in ways if sum(way) == beyond), None)
        if found is None and not hidden:
            found = (outside_input, beyond - outside_input)
            reasoning = found[1]
        outside_input, outside_output = found or (outside_input, outside_output)
    return Counts(n_input + outside_input, n_output + outside_output, reasoning)


def most_in(usage: JsonObject, *paths: str) -> int | None:
    """Return the largest of several counts, which servers report under different names; None without any.

    Args:
        usage: the server's.
        paths: of members, such as `prompt_tokens_details.cached_tokens`.

    """
    counts = []
    for path in paths:
        holder, _, name = path.rpartition(".")
        count = count_in((object_in(usage.get(holder)) if holder else usage).get(name))
        if count is not None:
            counts.append(count)
    return max(counts, default=None)
