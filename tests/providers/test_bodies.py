"""The bodies of requests by every API: fields, tools, conversations, images, and bounds of their tokens."""

import base64
import json
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from pytest_openclaw.providers.anthropic_messages import messages_body
from pytest_openclaw.providers.chat_completions import chat_body
from pytest_openclaw.providers.gemini import gemini_body
from pytest_openclaw.providers.ollama_native import ollama_body
from pytest_openclaw.providers.openai_responses import responses_body
from pytest_openclaw.providers.wire import TEMPLATE_BYTES, fewest_tokens, most_tokens, with_fields, with_ids
from pytest_openclaw.values.replies import Image, Turn
from pytest_openclaw.values.requests import Request
from pytest_openclaw.values.tool_calls import Tool, ToolCall
from tests.images import JPEG, png
from tests.providers.servers.apis import READ

STATUS = Tool(name="session_status")
BODIES = {
    "chat": chat_body,
    "responses": responses_body,
    "messages": messages_body,
    "gemini": gemini_body,
    "ollama": ollama_body,
    "ollama-without-levels": lambda request: ollama_body(request, ("level",)),
}


def body_of(api, **request):
    return BODIES[api](Request(**{"model": "m", "prompt": "Hi", **request}))


SAID = [{"role": "user", "content": "Hi"}]
OPTIONS = {"temperature": 0.0, "num_predict": 1024}
# Nothing may be truncated.
OLLAMA_LEAST = {
    "model": "m",
    "messages": SAID,
    "stream": True,
    "think": False,
    "truncate": False,
    "shift": False,
}
LEAST = {
    "chat": {
        "model": "m",
        "messages": SAID,
        "temperature": 0.0,
        "max_tokens": 1024,
        "stream": True,
        "stream_options": {"include_usage": True},
    },
    "responses": {
        "model": "m",
        "input": "Hi",
        "max_output_tokens": 1024,
        "temperature": 0.0,
        "stream": True,
        "store": False,
    },
    "messages": {"model": "m", "messages": SAID, "max_tokens": 1024, "temperature": 0.0, "stream": True},
    "gemini": {
        "contents": [{"role": "user", "parts": [{"text": "Hi"}]}],
        "generationConfig": {"maxOutputTokens": 1024, "temperature": 0.0},
    },
    "ollama": {**OLLAMA_LEAST, "options": OPTIONS},
    "ollama-without-levels": {**OLLAMA_LEAST, "options": OPTIONS},
}


@pytest.mark.parametrize("api", BODIES)
def test_the_least_body(api):
    """Only the necessary fields are sent; Gemini has model and streaming in its path."""
    assert body_of(api) == LEAST[api]


SYSTEM = {"role": "system", "content": "Be brief."}
NO_DETAILS = {"name": "session_status", "description": "", "parameters": {"type": "object", "properties": {}}}


def declared(schema):
    return {"name": "read", "description": "Reads a file.", schema: READ.parameters}


FUNCTIONS = [{"type": "function", "function": tool} for tool in (declared("parameters"), NO_DETAILS)]
CHAT_TOOLS = {"tools": FUNCTIONS, "tool_choice": "auto"}
CHAT_HIGH = {"reasoning_effort": "high", "think": True}
RESPONSES_XHIGH = {"reasoning": {"effort": "xhigh"}, "temperature": None}
ADAPTIVE = {"type": "adaptive", "display": "summarized"}
MESSAGES_XHIGH = {"thinking": ADAPTIVE, "output_config": {"effort": "xhigh"}, "temperature": None}
GEMINI_SYSTEM = {"systemInstruction": {"parts": [{"text": "Be brief."}]}}
# The older `parameters` takes only a part of JSON Schema.
GEMINI_TOOLS = {"tools": [{"functionDeclarations": [declared("parametersJsonSchema")]}]}


@pytest.mark.parametrize(
    ("api", "request_", "part"),
    [
        ("chat", {"stream": False}, {"stream": False, "stream_options": None}),
        ("chat", {"max_output_tokens": 5}, {"max_tokens": 5}),
        ("chat", {"system": "Be brief."}, {"messages": [SYSTEM, *SAID]}),
        ("chat", {"seed": 2}, {"seed": 2}),
        ("chat", {"thinking_level": "high"}, CHAT_HIGH),
        ("chat", {"tools": (READ, STATUS)}, CHAT_TOOLS),
        ("responses", {"stream": False}, {"stream": False}),
        ("responses", {"max_output_tokens": 5}, {"max_output_tokens": 5}),
        ("responses", {"system": "Be brief."}, {"instructions": "Be brief."}),
        ("responses", {"thinking_level": "xhigh"}, RESPONSES_XHIGH),
        ("messages", {"stream": False}, {"stream": False}),
        ("messages", {"max_output_tokens": 5}, {"max_tokens": 5}),
        ("messages", {"system": "Be brief."}, {"system": "Be brief."}),
        ("messages", {"temperature": 1.5}, {"temperature": 1.0}),
        ("messages", {"thinking_level": "xhigh"}, MESSAGES_XHIGH),
        ("messages", {"tools": (READ,)}, {"tools": [declared("input_schema")]}),
        ("gemini", {"system": "Be brief."}, GEMINI_SYSTEM),
        ("gemini", {"tools": (READ,)}, GEMINI_TOOLS),
        ("ollama", {"stream": False}, {"stream": False}),
        ("ollama", {"max_output_tokens": 5}, {"options": {**OPTIONS, "num_predict": 5}}),
        ("ollama", {"system": "Be brief."}, {"messages": [SYSTEM, *SAID]}),
        ("ollama", {"seed": 2}, {"options": {**OPTIONS, "seed": 2}}),
        ("ollama", {"thinking_level": "low"}, {"think": "low"}),
        ("ollama", {"thinking_level": "medium"}, {"think": "medium"}),
        ("ollama", {"thinking_level": "high"}, {"think": "high"}),
        ("ollama", {"thinking_level": "xhigh"}, {"think": "high"}),
        ("ollama-without-levels", {"thinking_level": "low"}, {"think": True}),
        ("ollama", {"tools": (READ,)}, {"tools": CHAT_TOOLS["tools"][:1]}),
    ],
    ids=lambda value: value if isinstance(value, str) else "-".join(value),
)
def test_the_body_of(api, request_, part):
    """Each field of a request has its place in the body and changes nothing else; None removes a field."""
    expected = {name: value for name, value in (LEAST[api] | part).items() if value is not None}

    assert body_of(api, **request_) == expected


@pytest.mark.parametrize("api", BODIES)
def test_the_temperature(api):
    """It is sent where it was chosen; otherwise the server decides."""
    chosen, free = (body_of(api, temperature=value) for value in (0.5, None))

    assert chosen.get("generationConfig", chosen.get("options", chosen))["temperature"] == 0.5
    assert not {"temperature", "seed"} & free.get("generationConfig", free.get("options", free)).keys()


@pytest.mark.parametrize(
    ("fields", "expected"),
    [
        ({}, {"a": 1, "options": {"n": 1}}),
        ({"b": 2}, {"a": 1, "b": 2, "options": {"n": 1}}),
        ({"options": {"k": 2}}, {"a": 1, "options": {"n": 1, "k": 2}}),
        ({"a": None, "options": {"n": None}}, {"options": {}}),
    ],
)
def test_further_fields_are_merged(fields, expected):
    """Objects key by key; null removes a field; the body itself is not changed."""
    body = {"a": 1, "options": {"n": 1}}

    assert with_fields(body, fields) == expected
    assert body == {"a": 1, "options": {"n": 1}}


BEFORE = (
    Turn(user="The conversation so far was summed up: the port is in a.md."),
    Turn(user="Which port?"),
    Turn(text="It is 8080."),
)
AFTER = (
    Turn(
        text="<think>hm</think>\nLet me look.",
        reasoning="Hm.",
        calls=(
            ToolCall(name="read", arguments='{"path": "ü.md"}', id="c1"),
            ToolCall(name="ls", arguments=" "),
        ),
        results=("alpha", ""),
    ),
    Turn(user="Go on."),
)
# Calls and results in each API's form: Ollama's has thinking, and Gemini's needs no signature for earlier calls.
CONVERSATIONS = json.loads(Path(__file__).with_name("conversations.json").read_text("utf-8"))


def sent(body):
    return body.get("messages") or body.get("contents") or body["input"]


@pytest.mark.parametrize("api", CONVERSATIONS)
def test_a_conversation(api):
    """The turns before and after the prompt, with calls and results, in the form of each API."""
    body = body_of(api, prompt="And the host?", messages=BEFORE, history=AFTER)

    assert sent(body) == CONVERSATIONS[api]


@pytest.mark.parametrize("turn", [Turn(), Turn(text=" \n")], ids=["nothing", "blanks"])
@pytest.mark.parametrize("api", ["messages", "gemini"])
def test_an_empty_turn_is_not_sent(api, turn):
    """These APIs refuse a message without content."""
    assert len(sent(body_of(api, history=(turn,)))) == 1


@pytest.mark.parametrize("arguments", ["[1]", '{"pa'])
@pytest.mark.parametrize(
    ("api", "name"), [("messages", "input"), ("gemini", "args"), ("ollama", "arguments")]
)
def test_arguments_without_an_object(api, name, arguments):
    """These APIs have arguments as an object only."""
    turn = Turn(calls=(ToolCall(name="read", arguments=arguments, id="c1"),))

    assert f"'name': 'read', '{name}': {{}}" in str(body_of(api, history=(turn,)))


ANSWERED = Turn(calls=(ToolCall(name="read", arguments="{}", id="c1"),), results=("alpha",))


@pytest.mark.parametrize(
    ("turn", "content"),
    [
        pytest.param(ANSWERED, None, id="only-calls"),
        pytest.param(Turn(text="Which file?"), "Which file?", id="only-text"),
        pytest.param(Turn(), "", id="nothing"),
        pytest.param(Turn(text="<think>hm</think>\nYes."), "Yes.", id="thinking-in-the-text"),
    ],
)
def test_a_message_without_text(turn, content):
    """With calls, empty text is null; without calls, some servers would reject null."""
    (_, message, *_) = sent(body_of("chat", history=(turn,)))

    assert (message["role"], message["content"]) == ("assistant", content)
    assert ("tool_calls" in message) == bool(turn.calls)


def calls(*ids):
    made = tuple(ToolCall(name="read", arguments="{}", id=id_) for id_ in ids)
    return Turn(calls=made, results=("ok",) * len(made))


@pytest.mark.parametrize(
    ("history", "ids"),
    [
        pytest.param([calls("a", "b")], ["a", "b"], id="own"),
        pytest.param([calls(None, "")], ["call00001", "call00002"], id="made-up"),
        pytest.param([calls("call00001", None)], ["call00001", "call00002"], id="made-up-after-another"),
        pytest.param([calls(None), calls("call00001")], ["call00002", "call00001"], id="made-up-before-it"),
        pytest.param([calls("a", "a"), calls("a")], ["a", "call00001", "call00002"], id="one-id-for-all"),
    ],
)
def test_ids(history, ids):
    """A call keeps its id; a missing or repeated id is replaced by a unique one."""
    assert [call.id for turn in with_ids(history) for call in turn.calls] == ids


@given(
    st.lists(
        st.lists(st.sampled_from([None, "", "a", "b", "call00001", "call00002"]), max_size=4), max_size=4
    )
)
def test_no_id_occurs_twice(ids):
    """Whatever ids a server gave, the conversation has a unique one for each call."""
    found = [call.id for turn in with_ids([calls(*of_turn) for of_turn in ids]) for call in turn.calls]

    assert len(set(found)) == len(found)
    assert all(found)


PNG = png()
PICTURES = (
    Image(path="chart.png", media_type="image/png", data=PNG),
    Image(path="photo.jpg", media_type="image/jpeg", data=JPEG),
)
DATA = (("image/png", base64.b64encode(PNG).decode()), ("image/jpeg", base64.b64encode(JPEG).decode()))
URLS = [f"data:{kind};base64,{data}" for kind, data in DATA]
WITH_PICTURES = {
    "chat": [
        {"type": "text", "text": "Hi"},
        *({"type": "image_url", "image_url": {"url": url}} for url in URLS),
    ],
    "responses": [
        {"type": "input_text", "text": "Hi"},
        *({"type": "input_image", "detail": "auto", "image_url": url} for url in URLS),
    ],
    "messages": [
        {"type": "text", "text": "Hi"},
        *(
            {"type": "image", "source": {"type": "base64", "media_type": kind, "data": data}}
            for kind, data in DATA
        ),
    ],
    "gemini": [{"text": "Hi"}, *({"inlineData": {"mimeType": kind, "data": data}} for kind, data in DATA)],
    "ollama": "Hi",
}


@pytest.mark.parametrize("before", [(), BEFORE], ids=["first", "later"])
@pytest.mark.parametrize("api", WITH_PICTURES)
def test_images_follow_the_text(api, before):
    """Each API gets text and images in its own form, in the order of the suite, only in the prompt."""
    *earlier, asked = sent(body_of(api, images=PICTURES, messages=before))

    assert asked.get("parts", asked.get("content")) == WITH_PICTURES[api]
    # Ollama's own API has them next to the text, as plain base64.
    assert asked.get("images") == ([data for _, data in DATA] if api == "ollama" else None)
    assert len(earlier) == len(before)
    assert "image" not in str(earlier)


CALL = ToolCall(name="read", arguments='{"path": "a b c"}')


@pytest.mark.parametrize(
    ("more", "words"),
    [
        pytest.param({"prompt": ""}, 0, id="nothing"),
        pytest.param({"prompt": "is\tit\nup  now"}, 4, id="prompt"),
        pytest.param({"prompt": "a b", "system": "c d e"}, 5, id="system"),
        pytest.param({"history": (Turn(calls=(CALL,), results=("c d e",)),)}, 3, id="results"),
        pytest.param({"history": (Turn(text="a b"),)}, 2, id="said"),
        pytest.param({"messages": (Turn(user="a b"), Turn(text="c"))}, 3, id="messages"),
        pytest.param({"history": (Turn(text="a b", calls=(CALL,), results=("c",)),)}, 1, id="said-next-to-a-call"),
        pytest.param({"history": (Turn(text="<think>a b</think>c", reasoning="d e"),)}, 1, id="thinking"),
        pytest.param({"tools": (Tool(name="read", description="a b c"),)}, 0, id="tools"),
    ],
)  # fmt: skip
def test_the_fewest_tokens(more, words):
    """They are the words that every template shows; text that one may omit does not count."""
    assert fewest_tokens(Request(**{"model": "m", "prompt": "", **more})) == words


@pytest.mark.parametrize(
    "more",
    [
        pytest.param({"prompt": "x" * 100}, id="prompt"),
        pytest.param({"system": "ü" * 50}, id="system"),
        pytest.param({"tools": (Tool(name="read", description="x" * 100),)}, id="tools"),
        pytest.param({"history": (Turn(text="x" * 100),)}, id="said"),
        pytest.param({"messages": (Turn(user="x" * 100),)}, id="messages"),
        pytest.param({"history": (Turn(calls=(CALL,), results=("x" * 100,)),)}, id="results"),
        pytest.param({"history": (Turn(calls=(ToolCall(name="ls", arguments="x" * 100),)),)}, id="calls"),
        pytest.param({"prompt": "\ud800" * 100}, id="half-characters"),
    ],
)
def test_most_tokens_count_every_byte(more):
    """Every byte may be a token, and the template's own words are added."""
    assert most_tokens(Request(**{"model": "m", "prompt": "", **more})) >= TEMPLATE_BYTES + 100
