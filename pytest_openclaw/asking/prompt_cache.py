"""The state of a model's prompt cache, as far as the requests of a run show it.

Servers keep what they have read, and read only the rest of a prompt that begins in the same way.
"""

from __future__ import annotations

import json
from itertools import takewhile
from typing import TYPE_CHECKING

from pytest_openclaw.providers.lengths import texts_read

if TYPE_CHECKING:
    from pytest_openclaw.types.requests import Request

_BLOCK_WORDS = 16
# All prompts share the start of the chat template; a cached share below this one is noise in a speed.
_CACHED_SHARE = 0.1


class PromptCache:
    """The prompts that were sent to one model.

    Attributes:
        most_tokens: the largest count of a prompt that the server has read completely.
    """

    def __init__(self) -> None:
        self.most_tokens = 0
        self._tools: set[str] = set()
        self._beginnings: set[int] = set()

    def add(self, request: Request) -> bool:
        """Note a request that is about to be sent; return whether a part of it may be in the cache.

        Tools and texts are compared separately, because templates differ in which of them comes first.
        """
        tools = json.dumps([[tool.name, tool.description, dict(tool.parameters)] for tool in request.tools])
        n_tools = len(tools.split()) if request.tools else 0
        words = " ".join(texts_read(request)).split()
        blocks = [0]
        for start in range(0, len(words), _BLOCK_WORDS):
            blocks.append(hash((blocks[-1], *words[start : start + _BLOCK_WORDS])))
        n_known = len([*takewhile(self._beginnings.__contains__, blocks[1:])])
        n_cached = n_known * _BLOCK_WORDS + (n_tools if tools in self._tools else 0)
        self._tools.add(tools)
        self._beginnings.update(blocks)
        return n_cached > _CACHED_SHARE * (len(words) + n_tools)
