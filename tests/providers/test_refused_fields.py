"""What a model refuses is left out of its requests, at once and from then on."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

from tests.providers.servers.apis import GEMINI, MESSAGES, RESPONSES, Api, ask
from tests.providers.servers.misbehaving import Script
from tests.providers.servers.ollama import OLLAMA

Shown = Callable[[dict[str, Any]], Any]


def refusal(message: str, status: int = 400) -> Script:
    """An error of a server."""
    return Script.answer({"error": {"message": message, "type": "invalid_request_error"}}, status=status)


def temperature(body: dict[str, Any]) -> Any:
    """The temperature of a request, by any API."""
    return body.get("generationConfig", body).get("temperature")


def thinking(body: dict[str, Any]) -> Any:
    """What a request says of thinking, by any API."""
    config = body.get("generationConfig", {}).get("thinkingConfig", {})
    config = config or body.get("thinking", {}) | body.get("output_config", {})
    return {
        name: value for name, value in config.items() if name not in ("includeThoughts", "display")
    } or body.get("think")


LEVEL, BUDGET = {"type": "adaptive", "effort": "low"}, {"type": "enabled", "budget_tokens": 1024}
LOW, ROOM = {"thinkingLevel": "LOW"}, {"thinkingBudget": 1024}
CASES = [
    # api, level, what is looked at, the words of the refusal, what is sent first, and then
    pytest.param(MESSAGES, None, temperature, "`temperature` is deprecated for this model.", 0.0, None, id="messages-temperature"),
    pytest.param(MESSAGES, "low", thinking, "adaptive thinking is not supported on this model", LEVEL, BUDGET, id="messages-level"),
    pytest.param(MESSAGES, "low", thinking, "This model does not support the effort parameter.", LEVEL, BUDGET, id="messages-effort"),
    pytest.param(RESPONSES, None, temperature, "Unsupported parameter: 'temperature' is not supported with this model.", 0.0, None, id="responses"),
    pytest.param(GEMINI, None, temperature, "temperature is not supported for this model.", 0.0, None, id="gemini-temperature"),
    pytest.param(GEMINI, "low", thinking, "Thinking level is not supported for this model.", LOW, ROOM, id="gemini-level"),
    pytest.param(GEMINI, "low", thinking, "Unable to submit request because thinking_level is not supported by this model.", LOW, ROOM, id="gemini-level-in-other-words"),
    pytest.param(OLLAMA, "low", thinking, 'think value "low" is not supported for this model', "low", True, id="ollama-level"),
]  # fmt: skip


@pytest.mark.parametrize(("api", "level", "shown", "message", "first", "then"), CASES)
def test_what_a_model_refuses_is_left_out_from_then_on(
    server: Any, api: Api, level: Any, shown: Shown, message: str, first: Any, then: Any
) -> None:
    """The request is repeated at once, and the model's later ones are without it; another model's are not."""
    server.on(
        "*", lambda request: refusal(message) if shown(request.json) == first else Script.answer(api.whole())
    )
    provider = api.provider(server.url)

    replies = [ask(provider, stream=False, model=model, thinking_level=level) for model in "mmn"]

    assert [reply.text for reply in replies] == ["Hi."] * 3
    assert [shown(request.json) for request in server.requests] == [first, then, then, first, then]


def test_a_refusal_that_does_not_end(server: Any) -> None:
    """A server that keeps refusing what is no longer sent is asked twice, and not endlessly."""
    server.on("*", refusal("temperature is not supported for this model."))

    fault = ask(GEMINI.provider(server.url))

    assert (fault.failure_type, server.total) == ("http_400", 2)
