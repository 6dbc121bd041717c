"""Ollama's own API: the lines of its streams, and a server that has its routes."""

import json

from pytest_openclaw.providers.ollama_native import OllamaNative
from pytest_openclaw.values.protocols import ProviderSetup
from tests.providers.servers.apis import CHAT, Api, as_object
from tests.providers.servers.misbehaving import MisbehavingServer, Script

NDJSON = "application/x-ndjson"
TIMES = {"total_duration": 900_000_000, "load_duration": 100_000_000, "prompt_eval_duration": 300_000_000}
COUNTS = {"prompt_eval_count": 11, "eval_count": 7, "eval_duration": 500_000_000}
SPEED = 14.0
"""7 tokens in half a second."""
TEMPLATE = "{{ .Messages }}"


def lines(*payloads, end="\n"):
    texts = (p if isinstance(p, str) else json.dumps(p, ensure_ascii=False) for p in payloads)
    return "".join(text + end for text in texts).encode()


def said(content="", **message):
    return {
        "model": "m-served",
        "created_at": "2026-11-22T10:00:00.123456789Z",
        "message": {"role": "assistant", "content": content, **message},
        "done": False,
    }


def done(reason="stop", content="", message=None, **more):
    last = {**said(**{"content": content, **(message or {})}), "done": True, **TIMES, **COUNTS, **more}
    return last if reason is None else {**last, "done_reason": reason}


def calling(*calls, **more):
    return [{"function": {"name": name, "arguments": arguments}, **more} for name, arguments in calls]


def native(url, *, options=None, **environ):
    setup = ProviderSetup(
        name="ollama_native", environ={"OLLAMA_HOST": url, **environ}, options=options or {}
    )
    return OllamaNative(setup)


def answer(*steps, content_type=NDJSON):
    return Script.stream(*steps, content_type=content_type)


def _whole(say):
    message = {"thinking": say.reasoning} if say.reasoning else {}
    if say.calls:
        message["tool_calls"] = calling(*((name, as_object(arguments)) for name, arguments in say.calls))
    return done(say.reason, content=say.text or "", message=message)


OLLAMA = Api(
    kind=OllamaNative,
    base_env="OLLAMA_HOST",
    key_env="OLLAMA_API_KEY",
    text=lambda text: lines(said(text)),
    reasoning=lambda text: lines(said(thinking=text)),
    refusal=None,
    end=lambda reason="stop", **_: lines(done(reason)),
    answer_of=_whole,
    version="",
    content_type=NDJSON,
)
"""Its streams are lines; a test may send them as any content type."""


class OllamaServer(MisbehavingServer):
    """Has Ollama's routes, its own and `/v1/chat/completions`, and one small model for each name."""

    def __init__(self, chat=None, models=None):
        super().__init__()
        self._chat = chat
        self.models = {"m:latest": ["completion", "tools"]} if models is None else models
        self.on("/api/chat", self._answer_chat)
        self.on("/api/show", self._show)
        self.on("/api/version", Script.answer({"version": "0.33.3"}))
        self.on("/api/tags", Script.answer({"models": [self._entry(name) for name in self.models]}))
        self.on("/api/ps", Script.answer({"models": [self._running(name) for name in self.models]}))
        self.on("/v1/chat/completions", self._answer_v1)

    @property
    def chats(self):
        return [request.json for request in self.requests if request.path == "/api/chat"]

    def _answer_chat(self, request):
        body = request.json
        if self._chat is not None:
            return self._chat(body)
        if not body["stream"]:
            return Script.answer(done(content="Hi."))
        return answer(lines(said("Hi")), lines(said("."), done()))

    def _answer_v1(self, request):
        if not request.json["stream"]:
            return Script.answer(CHAT.whole("Hi."))
        return Script.stream(CHAT.text("Hi."), CHAT.end())

    def _show(self, request):
        model = request.json["model"]
        capabilities = self.models.get(model, self.models.get(f"{model}:latest"))
        if capabilities is None:
            return Script.answer({"error": f"model '{model}' not found"}, status=404)
        return Script.answer(
            {
                "parameters": "num_ctx 4096",
                "template": TEMPLATE,
                "details": {"quantization_level": "Q4_K_M"},
                "capabilities": capabilities,
            }
        )

    def _entry(self, name):
        return {"name": name, "model": name, "size": 2_000_000_000, "digest": "a" * 64}

    def _running(self, name):
        return {**self._entry(name), "context_length": 4096}
