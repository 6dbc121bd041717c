"""A server that counts the tokens of a request, and silently reads only its end if it is too long."""

from collections.abc import Callable
from typing import Any

from tests.providers.servers.apis import APIS, CHAT, GEMINI, Api, texts_in
from tests.providers.servers.misbehaving import Request, Script

TOKENS_FOR_3_WORDS = 4


def cuts_at(context_tokens: int) -> Callable[[Request], Script]:
    """Answer all APIs with the last word left after the cut, and with the count of the remaining words."""

    def answer(request: Request) -> Script:
        api = next((api for api in APIS if api.answers(request.path)), None)
        if api is None:
            return Script.answer({"error": {"message": "no such route"}}, status=404)
        words = [word for text in texts_in(request.json) for word in text.split()]
        counted = min(context_tokens, len(words) * TOKENS_FOR_3_WORDS // 3)
        said, usage = f"The last word is {words[-1]}", _usage(api, counted)
        if request.json.get("stream", "stream" in request.path):
            return Script.stream(api.text(said), api.end(usage=usage))
        return Script.answer(api.whole(said, usage=usage))

    return answer


def _usage(api: Api, counted: int) -> dict[str, Any]:
    if api is GEMINI:
        return {"promptTokenCount": counted, "candidatesTokenCount": 5}
    names = ("prompt_tokens", "completion_tokens") if api is CHAT else ("input_tokens", "output_tokens")
    return dict(zip(names, (counted, 5), strict=True))
