"""The Gemini API: what is sent, and how chunks and whole answers are read."""

from __future__ import annotations

import asyncio
from dataclasses import replace

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from pytest_openclaw.providers.exchange import Exchange
from pytest_openclaw.providers.gemini import Gemini, gemini_body, read_gemini
from pytest_openclaw.types.protocols import ProviderSetup
from pytest_openclaw.types.replies import Fault, Turn
from pytest_openclaw.types.requests import Request
from pytest_openclaw.types.tool_calls import Tool, ToolCall
from pytest_openclaw.types.worlds import World
from tests.providers.servers.apis import GEMINI, GEMINI_USAGE, ask, described, gemini_answer, play
from tests.providers.servers.misbehaving import Script, pieces, sse

PARAMETERS = {"type": "object", "properties": {"path": {"type": "string"}}, "required": ["path"]}
READ = Tool(name="read", description="Reads a file.", parameters=PARAMETERS)
SIGNATURE = "EjQKMgEMOdbHmocvG1k="
STREAM = "/v1beta/models/m:streamGenerateContent?alt=sse"
WHOLE = "/v1beta/models/m:generateContent"


def read(*payloads):
    """The reply that these chunks, or one whole answer, make."""
    exchange = Exchange(monotonic=lambda: 0.0, wall_ms=lambda moment: 0)
    for payload in payloads:
        assert read_gemini(payload, exchange) is None
    return exchange.reply()


def call_part(name, args, id_=None, signature=None):
    """A part that calls a function."""
    part = {
        "functionCall": {"name": name, "args": args}
        if id_ is None
        else {"id": id_, "name": name, "args": args}
    }
    return part if signature is None else {**part, "thoughtSignature": signature}


PARTS = (
    {"text": "I should ", "thought": True},
    {"text": "read it.", "thought": True},
    {"text": "Let me"},
    {"text": " look."},
    call_part("read", {"path": "a.md"}, "fc1", SIGNATURE),
    call_part("ls", {}, "fc2"),
)
THINKS_AND_CALLS = [
    gemini_answer(PARTS[0], usage={"promptTokenCount": 11, "thoughtsTokenCount": 3, "totalTokenCount": 14}),
    *(gemini_answer(part) for part in PARTS[1:4]),
    gemini_answer(*PARTS[4:]),
    gemini_answer({"text": ""}, reason="stop", usage=GEMINI_USAGE),
]
"""A stream of a model that thinks; only the first call of an answer is signed:
https://ai.google.dev/gemini-api/docs/thought-signatures"""
READS = ToolCall(name="read", arguments='{"path": "a.md"}', id="fc1")
LISTS = ToolCall(name="ls", arguments="{}", id="fc2")


# --- what is sent -------------------------------------------------------------------------------


def test_body():
    """The least that says what is asked; model and streaming are in the path."""
    assert gemini_body(Request(model="m", prompt="Hi")) == {
        "contents": [{"role": "user", "parts": [{"text": "Hi"}]}],
        "generationConfig": {"maxOutputTokens": 1024, "temperature": 0.0},
    }


@pytest.mark.parametrize(
    ("request_", "part"),
    [
        pytest.param({"max_output_tokens": 5}, {"maxOutputTokens": 5}, id="max-tokens"),
        pytest.param({"seed": 3}, {"seed": 3}, id="seed"),
        pytest.param(
            {"thinking_level": "low"},
            {"thinkingConfig": {"includeThoughts": True, "thinkingLevel": "LOW"}},
            id="thinking",
        ),
    ],
)
def test_config_of(request_, part):
    """Each wish of a request has its place in the configuration."""
    config = gemini_body(Request(model="m", prompt="Hi", **request_))["generationConfig"]

    assert config | part == config


@pytest.mark.parametrize(("level", "budget"), [("low", 1024), ("medium", 4096), ("xhigh", 16384)])
def test_a_budget_of_thinking_tokens(level, budget):
    """An older model gets the room of the level as its budget."""
    body = gemini_body(Request(model="m", prompt="Hi", thinking_level=level), with_budget=True)

    assert body["generationConfig"]["thinkingConfig"] == {"includeThoughts": True, "thinkingBudget": budget}


def test_a_system_prompt_and_tools():
    """Schemas of tools are sent whole, since the older `parameters` takes a part of JSON Schema only."""
    body = gemini_body(Request(model="m", prompt="Hi", system="Be brief.", tools=(READ,)))

    declared = {"name": "read", "description": "Reads a file.", "parametersJsonSchema": PARAMETERS}
    assert body["tools"] == [{"functionDeclarations": [declared]}]
    assert body["systemInstruction"] == {"parts": [{"text": "Be brief."}]}


@pytest.mark.parametrize(
    ("model", "stream", "path"),
    [
        pytest.param("m", True, STREAM, id="stream"),
        pytest.param("m", False, WHOLE, id="whole"),
        pytest.param("models/m", False, WHOLE, id="full-name"),
        pytest.param("tunedModels/mine", False, "/v1beta/tunedModels/mine:generateContent", id="tuned"),
        pytest.param("a b?c", False, "/v1beta/models/a%20b%3Fc:generateContent", id="odd-characters"),
    ],
)
def test_paths(server, model, stream, path):
    """The model is a part of the path, and cannot leave it."""
    server.on(path, Script.answer(GEMINI.whole()))

    reply = ask(GEMINI.provider(server.url), model=model, stream=stream)

    assert (reply.text, [request.path for request in server.requests]) == ("Hi.", [path])


def refusal_of(message):
    """An error of the API."""
    return Script.answer(
        {"error": {"code": 400, "message": message, "status": "INVALID_ARGUMENT"}}, status=400
    )


@pytest.mark.parametrize(
    ("level", "found", "message", "left"),
    [
        pytest.param(
            "low",
            lambda config: "thinkingLevel" in config.get("thinkingConfig", ()),
            "Thinking level is not supported for this model.",
            {"thinkingConfig": {"includeThoughts": True, "thinkingBudget": 1024}, "temperature": 0.0},
            id="level",
        ),
        pytest.param(
            "low",
            lambda config: "thinkingLevel" in config.get("thinkingConfig", ()),
            "Unable to submit request because thinking_level is not supported by this model.",
            {"thinkingConfig": {"includeThoughts": True, "thinkingBudget": 1024}, "temperature": 0.0},
            id="level-in-other-words",
        ),
        pytest.param(
            None,
            lambda config: "temperature" in config,
            "temperature is not supported for this model.",
            {},
            id="temperature",
        ),
    ],
)
def test_what_a_model_refuses_is_left_out_from_then_on(server, level, found, message, left):
    """The question is asked again at once, and the model's later ones without the detour."""
    server.on(
        WHOLE,
        lambda request: (
            refusal_of(message) if found(request.json["generationConfig"]) else Script.answer(GEMINI.whole())
        ),
    )
    provider = GEMINI.provider(server.url)

    replies = [ask(provider, stream=False, thinking_level=level) for _ in range(2)]

    assert [reply.text for reply in replies] == ["Hi.", "Hi."]
    assert server.total == 3
    assert [request.json["generationConfig"] for request in server.requests[1:]] == [
        {"maxOutputTokens": 1024, **left}
    ] * 2


def test_another_refusal_is_asked_once(server):
    """An error that has nothing to do with it is not asked again."""
    server.on("*", refusal_of("Unable to submit request because thinking is not supported by this model."))

    fault = ask(GEMINI.provider(server.url), thinking_level="low")

    assert (fault.failure_type, server.total) == ("http_400", 1)


# --- conversations ------------------------------------------------------------------------------


def contents(*history):
    """What is sent after the prompt."""
    return gemini_body(Request(model="m", prompt="Hi", history=history))["contents"][1:]


def response(name, result, id_=None):
    """A part that answers a call."""
    fields = {"name": name, "response": {"output": result}}
    return {"functionResponse": fields if id_ is None else {"id": id_, **fields}}


def test_the_conversation_is_sent():
    """After the prompt: the model's text and calls, and all results in one content of the user's."""
    turn = Turn(
        text="<think>hm</think>\nLet me look.", reasoning="Hm.", calls=(READS, LISTS), results=("alpha", "")
    )

    assert contents(turn) == [
        {
            "role": "model",
            "parts": [
                {"text": "Let me look."},
                call_part("read", {"path": "a.md"}, "fc1"),
                call_part("ls", {}, "fc2"),
            ],
        },
        {"role": "user", "parts": [response("read", "alpha", "fc1"), response("ls", "", "fc2")]},
    ]


def test_a_call_without_an_id_gets_none():
    """Older models give no ids, and match results by their order."""
    turn = Turn(calls=(replace(READS, id=None),), results=("alpha",))

    assert contents(turn) == [
        {"role": "model", "parts": [call_part("read", {"path": "a.md"})]},
        {"role": "user", "parts": [response("read", "alpha")]},
    ]


def test_signed_parts_are_sent_back_as_they_were():
    """Each part keeps its place and its signature."""
    said, _ = contents(Turn(text="Let me look.", calls=(READS, LISTS), results=("a", "b"), carried=PARTS))

    assert said == {"role": "model", "parts": [*PARTS]}


SKIPPED = "skip_thought_signature_validator"


@pytest.mark.parametrize(
    ("calls", "parts"),
    [
        pytest.param((READS,), [PARTS[4]], id="the-signed-one"),
        pytest.param((LISTS,), [{**PARTS[5], "thoughtSignature": SKIPPED}], id="the-signed-one-is-forgotten"),
        pytest.param((), [], id="none-left"),
        pytest.param(
            (replace(READS, id=None),),
            [call_part("read", {"path": "a.md"}, signature=SKIPPED)],
            id="of-the-text",
        ),
        pytest.param((LISTS, READS), [*PARTS[4:]], id="in-their-own-order"),
    ],
)
def test_calls_that_are_sent_beside_signed_parts(calls, parts):
    """What the exchange keeps of a turn's calls decides; the first one has a signature, or the API's word for none."""
    said, *_ = contents(Turn(calls=calls, results=("a",) * len(calls), carried=PARTS))

    assert said["parts"] == [*PARTS[:4], *parts]


def test_parts_without_a_signature_are_sent_anew():
    """An older model's turn is sent as its text and its calls; thoughts stay here."""
    carried = tuple(
        {key: value for key, value in part.items() if key != "thoughtSignature"} for part in PARTS
    )

    said, _ = contents(Turn(text="Let me look.", calls=(READS,), results=("a",), carried=carried))

    assert said["parts"] == [{"text": "Let me look."}, call_part("read", {"path": "a.md"}, "fc1")]


def test_arguments_that_are_no_object():
    """The API has arguments as an object only."""
    ((part,),) = [contents(Turn(calls=(replace(READS, arguments='{"pa'),)))[0]["parts"]]

    assert part == call_part("read", {}, "fc1")


@pytest.mark.parametrize("turn", [Turn(), Turn(text=" \n")], ids=["nothing", "blanks"])
def test_an_empty_turn_is_no_content(turn):
    """The API refuses a content without parts."""
    assert contents(turn) == []


def test_a_nudge_is_the_users():
    """What a model without an answer is sent comes last."""
    assert contents(Turn(text="Hm."), Turn(user="Go on."))[-1] == {
        "role": "user",
        "parts": [{"text": "Go on."}],
    }


def test_signatures_reach_the_next_request(server):
    """In a scripted exchange the server gets its parts back; neither reply nor turns keep them."""
    server.enqueue(Script.stream(sse(*THINKS_AND_CALLS)), Script.answer(GEMINI.whole("Done.")))

    reply = play(GEMINI.provider(server.url), tools=(READ,), world=World(files={"a.md": "alpha"}))

    _, second = (request.json["contents"] for request in server.requests)
    assert second[1] == {"role": "model", "parts": [*PARTS, {"text": ""}]}
    assert "alpha" in second[2]["parts"][0]["functionResponse"]["response"]["output"]
    assert (reply.text, len(reply.turns), reply.input_tokens) == ("Done.", 2, 11 + 11)
    assert (reply.carried, [turn.carried for turn in reply.turns]) == ((), [(), ()])


# --- how answers are read -----------------------------------------------------------------------


def test_the_request_on_the_wire(server):
    """The body goes to the model's route, with the key in its header and not in the address."""
    server.on(STREAM, Script.stream(GEMINI.text("Hi."), GEMINI.end()))

    reply = ask(GEMINI.provider(server.url, GEMINI_API_KEY="a-key"))

    [request] = server.requests
    assert (request.method, request.path) == ("POST", STREAM)
    assert request.json["contents"] == [{"role": "user", "parts": [{"text": "Say hi."}]}]
    assert (request.headers["x-goog-api-key"], request.headers.get("authorization")) == ("a-key", None)
    assert reply.text == "Hi."


def test_a_stream_of_gemini(server):
    """A stream as the API sends it: thoughts, text and two calls, cut anywhere."""
    data = sse(*THINKS_AND_CALLS)
    server.enqueue(Script.stream(*pieces(data, range(7, len(data), 13))))

    reply = ask(GEMINI.provider(server.url))

    assert (reply.text, reply.reasoning, reply.tool_calls) == (
        "Let me look.",
        "I should read it.",
        (READS, LISTS),
    )
    assert (reply.finish_reason, reply.effective_model) == ("tool_calls", "m-served")
    counts = (reply.input_tokens, reply.output_tokens, reply.reasoning_tokens, reply.cached_tokens)
    assert counts == (11, 7, 5, 3)
    assert 0 <= reply.timing.ttft_ms <= reply.timing.ttfo_ms <= reply.timing.e2e_ms


def test_what_is_carried():
    """Every part is kept as it was."""
    assert read(*THINKS_AND_CALLS).carried == (*PARTS, {"text": ""})


@pytest.mark.parametrize(
    ("usage", "counts"),
    [
        pytest.param({"promptTokenCount": 9, "candidatesTokenCount": 4}, (9, 4, None, None), id="least"),
        pytest.param(GEMINI_USAGE, (11, 7, 5, 3), id="thoughts-are-output-and-the-cache-is-input"),
        pytest.param(
            {"promptTokenCount": 9, "toolUsePromptTokenCount": 2, "thoughtsTokenCount": 4},
            (11, 4, 4, None),
            id="no-answer",
        ),
        pytest.param({"promptTokenCount": 9}, (9, None, None, None), id="nothing-generated"),
        pytest.param({}, (None, None, None, None), id="none"),
        pytest.param({"promptTokenCount": "9"}, (None, None, None, None), id="no-number"),
    ],
)
def test_counts(usage, counts):
    """What the API counts apart is put together; what it does not count is not known."""
    reply = read(gemini_answer({"text": "Hi."}, reason="stop", usage=usage))

    assert (reply.input_tokens, reply.output_tokens, reply.reasoning_tokens, reply.cached_tokens) == counts


def test_a_blocked_prompt(server, stream):
    """A prompt that is blocked has no candidates; it was filtered, and what was read is counted."""
    payload = {
        "promptFeedback": {"blockReason": "PROHIBITED_CONTENT"},
        "usageMetadata": {"promptTokenCount": 11, "totalTokenCount": 11},
        "modelVersion": "m-served",
    }
    server.enqueue(Script.stream(sse(payload)) if stream else Script.answer(payload))

    reply = ask(GEMINI.provider(server.url), stream=stream)

    assert (reply.raw, reply.finish_reason, reply.input_tokens) == (
        "PROHIBITED_CONTENT",
        "content_filter",
        11,
    )


@pytest.mark.parametrize(
    ("part", "calls"),
    [
        pytest.param(
            call_part("read", {"path": "ü"}, "fc1"), [("read", '{"path": "ü"}', "fc1")], id="with-an-id"
        ),
        pytest.param(call_part("read", {"path": "a"}), [("read", '{"path": "a"}', None)], id="without-an-id"),
        pytest.param({"functionCall": {"name": "ls"}}, [("ls", "{}", None)], id="without-arguments"),
        pytest.param({"functionCall": {"args": {"path": "a"}}}, [], id="without-a-name"),
        pytest.param({"functionCall": "read"}, [], id="no-object"),
    ],
)
def test_tool_calls(part, calls):
    """A call always comes whole."""
    reply = read(gemini_answer(part, reason="stop"))

    assert [(call.name, call.arguments, call.id) for call in reply.tool_calls] == calls


def test_equal_calls_are_two():
    """Without ids each part is a call of its own."""
    part = call_part("read", {"path": "a.md"})

    assert len(read(gemini_answer(part), gemini_answer(part, reason="stop")).tool_calls) == 2


def test_other_parts_say_nothing():
    """Parts of kinds to come, and answers without any, are no tokens."""
    reply = read(
        gemini_answer(
            {"executableCode": {"language": "PYTHON", "code": "1"}}, {"inlineData": {"data": "UklGRg=="}}
        ),
        gemini_answer({"text": None}, {"text": 5}),
        {"candidates": [{"content": {"role": "model"}}]},
        {"candidates": [{"content": None}]},
        {"candidates": None, "usageMetadata": None, "promptFeedback": {}},
        {},
    )

    assert (reply.raw, reply.tool_calls) == ("", ())


def google_error(code, status, message, *details):
    """An error as Google's services word it: https://cloud.google.com/apis/design/errors."""
    return {"error": {"code": code, "message": message, "status": status, "details": [*details]}}


TYPE = "type.googleapis.com/google.rpc."
BUSY = google_error(
    429,
    "RESOURCE_EXHAUSTED",
    "You exceeded your current quota, please check your plan and billing details.",
    {
        "@type": f"{TYPE}QuotaFailure",
        "violations": [
            {"quotaId": "GenerateRequestsPerMinutePerProjectPerModel-FreeTier", "quotaValue": "10"}
        ],
    },
    {"@type": f"{TYPE}RetryInfo", "retryDelay": "15.5s"},
)
SPENT = google_error(
    429,
    "RESOURCE_EXHAUSTED",
    "You exceeded your current quota, please check your plan and billing details.",
    {
        "@type": f"{TYPE}QuotaFailure",
        "violations": [{"quotaId": "GenerateRequestsPerDayPerProjectPerModel-FreeTier", "quotaValue": "250"}],
    },
    {"@type": f"{TYPE}RetryInfo", "retryDelay": "47s"},
)


@pytest.mark.parametrize(
    ("status", "body", "expected", "wait_s"),
    [
        pytest.param(429, BUSY, ("http_429", "rate_limited", True, "cell"), 15.5, id="busy"),
        pytest.param(
            429, SPENT, ("quota_exhausted", "rate_limited", False, "target"), None, id="daily-quota"
        ),
        pytest.param(
            400,
            google_error(
                400,
                "INVALID_ARGUMENT",
                "API key not valid. Please pass a valid API key.",
                {"@type": f"{TYPE}ErrorInfo", "reason": "API_KEY_INVALID", "domain": "googleapis.com"},
            ),
            ("http_400", "auth_error", False, "target"),
            None,
            id="wrong-key",
        ),
        pytest.param(
            403,
            google_error(403, "PERMISSION_DENIED", "Method doesn't allow unregistered callers."),
            ("http_403", "auth_error", False, "cell"),
            None,
            id="no-key",
        ),
        pytest.param(
            404,
            google_error(404, "NOT_FOUND", "models/m is not found for API version v1beta. Call ListModels."),
            ("model_not_found", "skipped_unavailable", False, "target"),
            None,
            id="no-model",
        ),
        pytest.param(
            400,
            google_error(
                400,
                "INVALID_ARGUMENT",
                "The input token count (1200000) exceeds the maximum number of tokens allowed (1048576).",
            ),
            ("context_overflow", "error", False, "cell"),
            None,
            id="too-long",
        ),
        pytest.param(
            503,
            google_error(503, "UNAVAILABLE", "The model is overloaded. Please try again later."),
            ("http_503", "error", True, "cell"),
            None,
            id="overloaded",
        ),
        pytest.param(
            503,
            [google_error(503, "UNAVAILABLE", "The model is overloaded.")],
            ("http_503", "error", True, "cell"),
            None,
            id="in-a-list",
        ),
    ],
)
def test_errors(server, stream, status, body, expected, wait_s):
    """An error is classified by the API's own words, and waited for as it says."""
    server.enqueue(Script.answer(body, status=status))

    fault = ask(GEMINI.provider(server.url), stream=stream)

    assert (fault.failure_type, fault.status, fault.retryable, fault.scope) == expected
    assert fault.retry_after_s == wait_s


def test_a_wait_in_a_header_goes_first(server):
    """The header is of the server that answers, the body of the one behind it."""
    server.enqueue(Script.answer(BUSY, status=429, retry_after="3"))

    assert ask(GEMINI.provider(server.url)).retry_after_s == 3.0


def test_an_error_in_a_stream(server):
    """Before any token it is the error that it names, with its wait."""
    server.enqueue(Script.stream(sse(BUSY)))

    fault = ask(GEMINI.provider(server.url))

    assert (fault.failure_type, fault.retryable, fault.retry_after_s) == ("http_429", True, 15.5)


# Of few characters: a model's own repetition, which is kept.
_TEXT = st.text("a🦞\n", min_size=1, max_size=12)
_PART = st.one_of(
    st.tuples(st.just("text"), _TEXT),
    st.tuples(st.just("thought"), _TEXT),
    st.tuples(st.sampled_from(["read", "exec"]), st.dictionaries(_TEXT, st.integers(), max_size=2)),
)


@settings(deadline=None)
@given(parts=st.lists(_PART, max_size=6), data=st.data())
def test_a_stream_reads_like_a_whole_answer(parts, data):
    """However parts are divided into chunks, the reply is that of one answer with all of them."""
    made = [
        {"text": value, **({"thought": True} if kind == "thought" else {})}
        if kind in ("text", "thought")
        else call_part(kind, value, f"fc{number}")
        for number, (kind, value) in enumerate(parts)
    ]
    cut = data.draw(st.integers(0, len(made)))
    chunks = [gemini_answer(*made[:cut]), *(gemini_answer(part) for part in made[cut:])]

    streamed = read(*chunks, gemini_answer(reason="stop", usage=GEMINI_USAGE))

    assert streamed == read(gemini_answer(*made, reason="stop", usage=GEMINI_USAGE))


# --- where it is, and its keys ------------------------------------------------------------------

GOOGLE = "https://generativelanguage.googleapis.com/v1beta"


@pytest.mark.parametrize(
    ("environ", "base_url", "expected"),
    [
        pytest.param({}, None, GOOGLE, id="default"),
        pytest.param({}, "http://ini:1", "http://ini:1/v1beta", id="ini"),
        pytest.param(
            {"GOOGLE_GEMINI_BASE_URL": "http://gw"}, "http://ini:1", "http://gw/v1beta", id="environment"
        ),
        pytest.param(
            {"GOOGLE_GEMINI_BASE_URL": "http://gw/gemini/"}, None, "http://gw/gemini/v1beta", id="path"
        ),
        pytest.param({"GOOGLE_GEMINI_BASE_URL": f"{GOOGLE}/"}, None, GOOGLE, id="with-the-version"),
        pytest.param({}, "http://gw/v1alpha", "http://gw/v1alpha", id="another-version"),
    ],
)
def test_address(environ, base_url, expected):
    """The environment comes before the ini, and the ini before Google; the version may be left out."""
    provider = Gemini(ProviderSetup(name="gemini", base_url=base_url, environ=environ))

    assert (provider.address.base_url, provider.is_local) == (expected, False)


def test_the_endpoint_is_the_server():
    """Both its APIs share one limit."""
    provider = Gemini(ProviderSetup(name="mine", base_url="http://localhost:9/v1beta", environ={}))

    assert (provider.endpoint, provider.is_local) == ("http://127.0.0.1:9", True)


GEMINI_KEY, GOOGLE_KEY, OWN = "gemini-key-0123456789", "google-key-0123456789", "own-key-0123456789"


@pytest.mark.parametrize(
    ("name", "key_env", "environ", "sent"),
    [
        pytest.param(
            "gemini", None, {"GEMINI_API_KEY": GEMINI_KEY}, {"x-goog-api-key": GEMINI_KEY}, id="gemini"
        ),
        pytest.param(
            "gemini", None, {"GOOGLE_API_KEY": GOOGLE_KEY}, {"x-goog-api-key": GOOGLE_KEY}, id="google"
        ),
        pytest.param(
            "gemini",
            None,
            {"GOOGLE_API_KEY": GOOGLE_KEY, "GEMINI_API_KEY": GEMINI_KEY},
            {"x-goog-api-key": GEMINI_KEY},
            id="both",
        ),
        pytest.param(
            "gateway",
            "GATEWAY_KEY",
            {"GATEWAY_KEY": OWN, "GEMINI_API_KEY": GEMINI_KEY},
            {"x-goog-api-key": OWN, "authorization": f"Bearer {OWN}"},
            id="gateway",
        ),
        pytest.param("gateway", None, {"GEMINI_API_KEY": GEMINI_KEY}, {}, id="gateway-without-a-key"),
    ],
)
def test_keys(server, name, key_env, environ, sent):
    """A key goes to its own server in its own header; a gateway gets it as a bearer token, too."""
    server.on("*", Script.answer(status=500))
    setup = ProviderSetup(name=name, base_url=server.url, key_env=key_env, environ=environ)

    ask(Gemini(setup))

    (request,) = server.requests
    shown = {
        key: value for key, value in request.headers.items() if key in ("x-goog-api-key", "authorization")
    }
    assert shown == sent


def test_without_its_key_google_is_not_asked(monkeypatch):
    """Nothing is sent, and the hint names the variable."""
    monkeypatch.setattr("socket.getaddrinfo", lambda *args, **kwargs: pytest.fail("the network was asked"))

    fault = ask(Gemini(ProviderSetup(name="gemini", environ={})))

    assert described(fault)[2] == "gemini: there is no key. Set GEMINI_API_KEY."


def models(server):
    """What the provider lists."""

    async def asking():
        provider = GEMINI.provider(server.url)
        try:
            return await provider.models()
        finally:
            await provider.aclose()

    return asyncio.run(asking())


def test_models(server):
    """The models that generate text, by the names that a target has."""
    entries = [
        {"name": "models/gemini-a", "supportedGenerationMethods": ["generateContent", "countTokens"]},
        {"name": "models/embedding-b", "supportedGenerationMethods": ["embedContent"]},
        {"name": "models/c"},
        {"displayName": "nameless"},
    ]
    server.on("/v1beta/models?pageSize=1000", Script.answer({"models": entries}))

    assert models(server) == ("gemini-a", "c")


def test_models_that_are_not_listed(server):
    """An answer without a list is a fault."""
    server.on("*", Script.answer({"data": []}))

    with pytest.raises(Exception, match="its list of models has no list"):
        models(server)


def test_the_fault_of_a_broken_stream(server):
    """What came is kept, with the counts so far."""
    server.enqueue(Script.stream(sse(gemini_answer({"text": "Hel"}, usage={"promptTokenCount": 9}))))

    fault = ask(GEMINI.provider(server.url))

    assert isinstance(fault, Fault)
    assert (fault.failure_type, fault.raw, fault.usage[0].input_tokens) == ("stream_error", "Hel", 9)
