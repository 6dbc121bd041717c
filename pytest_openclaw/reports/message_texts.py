"""The conversation before a prompt as labeled texts, for every report that shows it."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Mapping


def message_texts(messages: Iterable[Mapping[str, Any]] | None) -> Iterator[tuple[str, str]]:
    """Yield `user`, `assistant`, `call read` or `result` with the text, message by message.

    Args:
        messages: as `config.json` has them; None is none.
    """
    for message in messages or ():
        label = "result" if message["role"] == "tool" else str(message["role"])
        calls = message.get("calls") or ()
        if message["content"] or not calls:
            yield label, message["content"]
        for call in calls:
            yield f"call {call['name']}", json.dumps(call["arguments"], ensure_ascii=False)
