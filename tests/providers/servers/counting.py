"""A server that counts the tokens of a request, and silently reads only its end if it is too long."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

from tests.providers.servers.apis import APIS, CHAT
from tests.providers.servers.misbehaving import Request, Script, sse

TOKENS_FOR_3_WORDS = 4


def cuts_at(context_tokens: int) -> Callable[[Request], Script]:
    """Answer both APIs with the last word left after the cut, and with the count of the remaining words."""

    def answer(request: Request) -> Script:
        api = next(api for api in APIS if api.answers(request.path))
        words = [word for text in texts_in(request.json) for word in text.split()]
        counted = min(context_tokens, len(words) * TOKENS_FOR_3_WORDS // 3)
        whole = api.whole(f"The last word is {words[-1]}")
        names = ("prompt_tokens", "completion_tokens") if api is CHAT else ("input_tokens", "output_tokens")
        whole["usage"] = dict(zip(names, (counted, 5), strict=True))
        if not request.json["stream"]:
            return Script.answer(whole)
        if api is CHAT:
            message = whole["choices"][0].pop("message")
            return Script.stream(sse({**whole, "choices": [{**whole["choices"][0], "delta": message}]}))
        return Script.stream(sse({"type": "response.completed", "response": whole}))

    return answer


def texts_in(body: dict[str, Any]) -> Iterator[str]:
    """Return every text of a request."""
    if isinstance(body.get("input"), str):
        yield from (body.get("instructions") or "", body["input"])
        return
    yield body.get("instructions") or ""
    for message in body.get("messages") or body["input"]:
        for name in ("content", "output", "arguments"):
            content = message.get(name)
            if isinstance(content, list):
                yield from (part["text"] for part in content)
            else:
                yield content or ""
