"""Bounds of the number of tokens of a request, computed without the model's tokenizer."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING

from pytest_openclaw.openclaw.thinking import strip_thinking

if TYPE_CHECKING:
    from collections.abc import Iterator

    from pytest_openclaw.values.requests import Request

# The text of a chat template around messages and tools; the longest known ones have about 4 KB.
TEMPLATE_BYTES = 4096
# Of a picture: gpt-4o-mini counts 2,833 and 5,667 for each of at most 8 tiles, the most of all known models.
IMAGE_TOKENS = 50_000


def fewest_tokens(request: Request) -> int:
    """Return a lower bound of the tokens of a request that the server reads completely: its words.

    No tokenizer joins two words that white space divides. Text that some templates drop is not counted:
    thinking of earlier turns, and the words beside a call (Llama 3.1). Tools are not counted either, since
    a server may shorten them.
    """
    return sum(len(text.split()) for text in texts_read(request))


def texts_read(request: Request) -> Iterator[str]:
    """Yield the texts of a request, in order, that every template shows to the model."""
    yield request.system or ""
    for turn in request.conversation:
        yield turn.user or ""
        if not turn.calls:
            yield strip_thinking(turn.text)
        yield from turn.results


def most_tokens(request: Request) -> int:
    """Return an upper bound of the tokens of a request: a token of a text has at least one byte."""
    in_texts = sum(len(text.encode("utf-8", "replace")) for text in _all_texts(request))
    n_images = sum(len(turn.images) for turn in request.conversation)
    return TEMPLATE_BYTES + in_texts + n_images * IMAGE_TOKENS


def _all_texts(request: Request) -> Iterator[str]:
    yield request.system or ""
    for tool in request.tools:
        # Some templates write the schemas over many lines.
        yield json.dumps([tool.name, tool.description, dict(tool.parameters)], indent=4)
    for turn in request.conversation:
        yield turn.user or ""
        yield turn.text
        yield from turn.results
        for call in turn.calls:
            yield json.dumps([call.name, call.arguments])
