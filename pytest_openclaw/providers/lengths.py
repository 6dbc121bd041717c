"""How many tokens a request has, as far as that can be told without the model's tokenizer."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING

from pytest_openclaw.tools.thinking import strip_thinking

if TYPE_CHECKING:
    from collections.abc import Iterator

    from pytest_openclaw.types.requests import Request

# What a chat template writes around messages and tools; the longest seen are of some 4 KB.
TEMPLATE_BYTES = 4096


def fewest_tokens(request: Request) -> int:
    """Return a count of tokens that no server comes below, if it reads all that it is sent: the words.

    No tokenizer joins two words that white space divides. What models are known not to be shown is left
    out: thinking of earlier turns, and the words beside a call, which the template of Llama 3.1 drops.
    Tools are left out too, since a server may write them shorter than they were sent.
    """
    said = (strip_thinking(turn.text) for turn in request.history if not turn.calls)
    answered = (result for turn in request.history for result in turn.results)
    nudges = (turn.nudge for turn in request.history)
    texts = (request.system or "", request.prompt, *said, *answered, *nudges)
    return sum(len(text.split()) for text in texts)


def most_tokens(request: Request) -> int:
    """Return a count of tokens that is hardly ever exceeded: a token has at least a byte."""
    return TEMPLATE_BYTES + sum(len(text.encode("utf-8", "replace")) for text in _all_texts(request))


def _all_texts(request: Request) -> Iterator[str]:
    yield request.system or ""
    yield request.prompt
    for tool in request.tools:
        # Some templates write the schemas out over many lines.
        yield json.dumps([tool.name, tool.description, dict(tool.parameters)], indent=4)
    for turn in request.history:
        yield turn.text
        yield turn.nudge
        yield from turn.results
        for call in turn.calls:
            yield json.dumps([call.name, call.arguments])
