"""The server between OpenClaw and the model: which requests it reads, and whose fault an error is."""

import asyncio
import json
from contextlib import suppress
from typing import NamedTuple

import pytest

from pytest_openclaw.providers.chat_completions import OllamaOpenAI
from pytest_openclaw.providers.openclaw.call import scratch_folder
from pytest_openclaw.providers.openclaw_agent import Relay
from pytest_openclaw.values.protocols import ProviderSetup
from pytest_openclaw.values.replies import Fault, Image
from pytest_openclaw.values.requests import Request
from tests.providers.servers.apis import CHAT
from tests.providers.servers.misbehaving import Close, MisbehavingServer, Script, chunk, head, sse

DEEP = b"[" * 200_000
BODY = b'{"model": "tiny", "messages": []}'
ANSWER = Script.stream(CHAT.text("Hi."), CHAT.end())


class Seen(NamedTuple):
    answer: bytes
    n_passed_on: int
    fault: Fault | None
    is_over: bool


def request(body=BODY, *, path="/chat/completions", **fields):
    headers = {"host": "x", "authorization": "Bearer TOKEN", "content-length": str(len(body))}
    headers |= {name.replace("_", "-"): value for name, value in fields.items()}
    lines = "".join(f"{name}: {value}\r\n" for name, value in headers.items() if value)
    return f"POST {path} HTTP/1.1\r\n{lines}\r\n".encode() + body


def chunked(body):
    return request(body, content_length="", transfer_encoding="chunked")


async def send(server, data, n_images):
    """Send the relay a request, without closing, and read its answer to the end."""
    setup = ProviderSetup(name="local", base_url=server.url)
    images = (Image(path="a.png", media_type="image/png", data=b""),) * n_images
    asked = Request(model="tiny", prompt="Hi", timeout_s=60.0, images=images)
    with scratch_folder() as scratch:
        relay = Relay(OllamaOpenAI(setup), "tiny", name="local", request=asked, scratch=scratch)
    async with relay.running() as (url, token):
        host, port = url.removeprefix("http://").split(":")
        reader, writer = await asyncio.open_connection(host, int(port))
        answer = b""
        with suppress(ConnectionError):  # refused before all of it was sent
            writer.write(data.replace(b"TOKEN", token.encode()))
            answer = await asyncio.wait_for(reader.read(), 60)
        writer.close()
        return Seen(answer, server.total, relay.failure, relay.over.is_set())


def sent(script, data, n_images=0):
    with MisbehavingServer() as server:
        server.on("*", script)
        return asyncio.run(send(server, data, n_images))


@pytest.mark.parametrize(
    "body",
    [
        pytest.param(request(), id="a-length"),
        pytest.param(chunked(chunk(BODY[:5]) + chunk(BODY[5:]) + chunk(b"")), id="chunks"),
        pytest.param(chunked(b"21;name=value\r\n" + BODY + b"\r\n0\r\nx: y\r\n\r\n"), id="extensions"),
    ],
)
def test_a_request_is_passed_on(body):
    """However its body is framed, the answer comes back as the server sent it."""
    seen = sent(ANSWER, body)

    assert seen.answer.startswith(b"HTTP/1.1 200 OK\r\n")
    assert seen.answer.endswith(CHAT.end())
    assert (seen.n_passed_on, seen.fault, seen.is_over) == (1, None, False)


@pytest.mark.parametrize(
    "message",
    [
        pytest.param({"content": [{"type": "text"}, {"type": "image_url"}]}, id="chat-completions"),
        pytest.param({"content": [{"type": "input_text"}, {"type": "input_image"}]}, id="responses"),
        pytest.param({"content": "Hi", "images": ["aGk="]}, id="ollama"),
    ],
)
def test_a_request_without_the_images_of_its_prompt(message):
    """OpenClaw continues without an image that it cannot load; that is another question, which is not asked."""
    data = request(json.dumps({"model": "tiny", "messages": [{"role": "user", **message}]}).encode())

    with_one, with_two = (sent(ANSWER, data, n_images=n_images) for n_images in (1, 2))

    assert (with_one.n_passed_on, with_one.fault) == (1, None)
    assert (with_two.n_passed_on, with_two.is_over) == (0, True)
    assert with_two.fault.status == "skipped_unavailable"
    assert with_two.fault.message == "local: not asked: this OpenClaw sends 1 of the prompt's 2 images."


@pytest.mark.parametrize(
    ("status", "data"),
    [
        pytest.param(401, request(authorization=""), id="no-token"),
        pytest.param(401, request(authorization="Bearer wrong"), id="another-token"),
        pytest.param(404, request(path="/models"), id="another-path"),
        pytest.param(None, b"no HTTP\r\n\r\n", id="no-http"),
    ],
)
def test_requests_that_are_not_openclaws_are_refused(status, data):
    """Nothing of a foreign request is forwarded, and the run continues."""
    seen = sent(ANSWER, data)

    assert seen.answer.startswith(f"HTTP/1.1 {status} ".encode() if status else b"")
    assert (seen.n_passed_on, seen.fault, seen.is_over) == (0, None, False)


@pytest.mark.parametrize("body", [b"{}", b'{"folder": 1, "arguments": 2}', b'{"arguments": [1, {}]}'])
def test_a_command_in_another_form_is_refused(body):
    """It is answered like other calls of the shell, and the run continues."""
    seen = sent(ANSWER, request(body, path="/shell"))

    assert b"only sh -c COMMAND" in seen.answer
    assert (seen.n_passed_on, seen.fault, seen.is_over) == (0, None, False)


@pytest.mark.parametrize("body", [DEEP, b"hello"], ids=["deep-json", "no-json"])
def test_a_request_that_is_not_json_is_openclaws_fault(body):
    """The run ends there with a fault of the program, not of the model or its server."""
    seen = sent(ANSWER, request(body))

    assert seen.answer.startswith(b"HTTP/1.1 400 ")
    assert (seen.n_passed_on, seen.is_over) == (0, True)
    assert (seen.fault.failure_type, seen.fault.status) == ("cli_error", "error")
    assert seen.fault.message.startswith("local: OpenClaw sent a request that is not JSON.")


@pytest.mark.parametrize(
    ("script", "failure_type"),
    [
        pytest.param(Script.answer(DEEP, content_type="application/json"), "malformed_response", id="deep-json"),
        pytest.param(Script.stream(b"data: " + DEEP + b"\n\n"), "stream_error", id="deep-event"),
        pytest.param(Script.of(head(transfer_encoding="chunked"), b"zz\r\n", Close()), "malformed_response", id="no-chunk"),
        pytest.param(Script.stream(CHAT.text("Hel")), "stream_error", id="no-end-mark"),
        pytest.param(Script.stream(CHAT.text("Hel"), sse({"error": {"message": "no"}})), "stream_error", id="an-error-after-tokens"),
    ],
)  # fmt: skip
def test_an_answer_that_cannot_be_read_is_the_servers_fault(script, failure_type):
    """It is the fault that any other provider reports for this server, and the run ends there."""
    seen = sent(script, request())

    assert seen.answer.startswith(b"HTTP/1.1 502 ")
    assert seen.answer.count(b"HTTP/1.1") == 1
    assert (seen.n_passed_on, seen.is_over) == (1, True)
    assert seen.fault.failure_type == failure_type
