"""A key or password is written nowhere, whatever a server, a model or our own code does with it."""

from __future__ import annotations

import base64
import json
import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any
from urllib.parse import quote

import pytest

from tests.plugin.bad_servers import Behaviour, ModelServer, point_at
from tests.providers.servers.apis import Api
from tests.providers.servers.misbehaving import Close, Hang, MisbehavingServer, Pause, Reset, Script, chunk, head, sse

KEYS = {
    "OPENAI_API_KEY": "sk-proj-Ab3dEf6hIj9kLm2nOp5qRs8tUv1wXy4zAb7cDe0fGh",
    "OLLAMA_API_KEY": "ollama.4f9c2d7e1b8a6f3c5d0e9b7a2c4f6e8d",
    "BOX_KEY": "box_Zq7Wx3Ec9Rv5Tb1Yn8Um4Ik2Ol6P",
}
PASSWORD = "Hunter2/Größe&'quoted\"@home"
BASIC = base64.b64encode(f"me:{PASSWORD}".encode()).decode()
SECRETS = (*KEYS.values(), PASSWORD, quote(PASSWORD, safe=""), BASIC)
SAID = " ".join(SECRETS)
# No piece of a secret that is longer than this may be found anywhere.
LONGEST_PIECE = 11


def echoed() -> dict[str, str]:
    """The secrets as an answer's headers, those that a header can hold."""
    said = " ".join(secret for secret in SECRETS if secret.isascii())
    return {"x_echo": said, "www_authenticate": f"Basic {BASIC}", "set_cookie": KEYS["BOX_KEY"]}


def straddling(width: int, secret: str) -> str:
    """A long text with a secret where a text of that width would be cut in its middle."""
    return "x" * (width // 2 - len(secret) // 2) + secret + "y" * width


def in_a_stream(text: str) -> Behaviour:
    """A model that answers with this."""
    return lambda api: Script.stream(api.text(text[:9]), api.text(text[9:]), api.end(), **echoed())


BEHAVIOURS: dict[str, Behaviour] = {
    "answer": in_a_stream(SAID),
    "answer-cut": in_a_stream(straddling(1200, KEYS["OPENAI_API_KEY"])),
    "answer-cut-at-64k": in_a_stream("z" * (65536 - 20) + KEYS["OLLAMA_API_KEY"] + " and more"),
    "answer-whole": lambda api: Script.answer(api.whole(SAID, reasoning=SAID), **echoed()),
    "thinks": lambda api: Script.stream(api.reasoning(SAID), api.end()),
    "refuses": lambda api: Script.stream(api.refusal(SAID), api.end()),
    "calls": lambda api: Script.answer(api.whole(None, calls=((KEYS["BOX_KEY"], json.dumps({"a": SAID})),))),
    "model-name": lambda api: Script.answer(json.dumps(api.whole("Hi.")).replace("m-served", KEYS["BOX_KEY"]).encode(), content_type="application/json"),
    "filtered": lambda api: Script.answer({"error": {"message": SAID, "code": "content_filter"}}, status=400, **echoed()),
    "wrong-key": lambda api: Script.answer({"error": {"message": f"Incorrect API key: {SAID}", "type": SAID, "code": SAID}}, status=401, **echoed()),
    "forbidden-page": lambda api: Script.answer(f"<title>{SAID}</title>", status=403, content_type="text/html", **echoed()),
    "no-model": lambda api: Script.answer({"error": f"model 'no-model' not found {SAID}"}, status=404, **echoed()),
    "busy": lambda api: Script.answer({"error": {"message": SAID}}, status=429, retry_after="0", **echoed()),
    "quota": lambda api: Script.answer({"error": {"message": SAID, "code": "insufficient_quota"}}, status=429),
    "broken": lambda api: Script.answer(SAID, status=500, retry_after="0", **echoed()),
    "broken-cut": lambda api: Script.answer(straddling(300, KEYS["OPENAI_API_KEY"]), status=400),
    "broken-cut-page": lambda api: Script.answer(f"<title>{straddling(300, KEYS['OLLAMA_API_KEY'])}</title>", status=400),
    "unreadable": lambda api: Script.answer({"said": SAID}, **echoed()),
    "unreadable-cut": lambda api: Script.answer({"said": straddling(300, KEYS["OPENAI_API_KEY"])}),
    "unreadable-text": lambda api: Script.answer(SAID, **echoed()),
    "no-http": lambda api: Script.of(f"{KEYS['OPENAI_API_KEY']} {BASIC}\r\n\r\n".encode(), Close()),
    "reset": lambda api: Script.of(Reset()),
    "lost": lambda api: Script.stream(api.text(SAID), Pause(0.05), Reset(), **echoed()),
    "no-end": lambda api: Script.stream(api.text(SAID), **echoed()),
    "error-in-a-200": lambda api: Script.stream(sse({"error": {"message": SAID, "type": SAID}})),
    "error-after-tokens": lambda api: Script.stream(api.text(SAID), sse({"error": {"message": SAID}})),
    "event-unreadable": lambda api: Script.stream(api.text("Hi"), sse(f"{{{SAID}")),
    "no-gzip": lambda api: Script.of(head(content_encoding="gzip", transfer_encoding="chunked", **echoed()), chunk(SAID.encode()), chunk(b"")),
    "too-slow": lambda api: Script.stream(api.text(SAID), Hang(), **echoed()),
    "redirected": lambda api: Script.answer(status=307, location=f"http://me:{KEYS['BOX_KEY']}@localhost:9/{KEYS['BOX_KEY']}?{KEYS['BOX_KEY']}"),
    "library-breaks": lambda api: Script.answer(api.whole()),
}  # fmt: skip

CONFTEST = """
import logging
import warnings
from dataclasses import dataclass
from typing import ClassVar

import httpx2


@dataclass(frozen=True)
class Crashing:
    type: ClassVar[str] = "crashing"

    def check(self, reply):
        said = {"text": reply.text, "reasoning": reply.reasoning}
        print("the reply was", reply)
        logging.getLogger("guest").warning("the reply was %s", reply)
        raise ZeroDivisionError(f"cannot judge {said}")


def pytest_openclaw_validators():
    return [Crashing]


handle = httpx2.AsyncHTTPTransport.handle_async_request


async def broken(self, request):
    if b'"library-breaks"' in request.content:
        headers = request.headers.raw
        raise RuntimeError(f"broken with {headers}")
    return await handle(self, request)


def pytest_configure():
    httpx2.AsyncHTTPTransport.handle_async_request = broken


def pytest_unconfigure():
    httpx2.AsyncHTTPTransport.handle_async_request = handle
"""

BENCHMARK = """
import logging

import pytest


@pytest.mark.openclaw(id="R1", prompt="Hi")
def test_fails(reply):
    print(reply)
    assert reply.text == "something else"


@pytest.mark.openclaw(id="R2", prompt="Hi")
def test_crashes(reply):
    words = reply.text.split()
    logging.getLogger("guest").error("got %s", words)
    raise RuntimeError(reply.text)
"""

LOUD = (
    "-vv",
    "--showlocals",
    "-rA",
    "--junitxml=junit.xml",
    *("-o", "junit_logging=all"),
    *("-o", "log_cli=true"),
    *("-o", "log_cli_level=DEBUG"),
    *("-o", "log_file=all.log"),
    *("-o", "log_file_level=DEBUG"),
)


def leaks(folder: Path, *texts: str, but: tuple[str, ...] = ("pytest.ini",)) -> Iterator[str]:
    """Where a secret, or a long piece of one, is found: in which file or text, and which piece."""
    found = {f"text {number}": text for number, text in enumerate(texts)}
    for path in folder.rglob("*"):
        if path.is_file() and path.name not in but:
            found[path.relative_to(folder).as_posix()] = path.read_bytes().decode("utf-8", "replace")
    for place, text in found.items():
        for form, written in (("as it is", text), ("as JSON", _unescaped(text))):
            for secret in SECRETS:
                for start in range(len(secret) - LONGEST_PIECE):
                    piece = secret[start : start + LONGEST_PIECE + 1]
                    if piece in written:
                        at = written.index(piece)
                        yield f"{place}, {form}: {written[max(0, at - 60) : at + 60]!r}"
                        break


def _unescaped(text: str) -> str:
    def character(found: re.Match[str]) -> str:
        code = found[1] or found[2]
        return chr(int(code, 16)) if code else found[3]

    return re.sub(r"\\(?:u([0-9a-f]{4})|x([0-9a-f]{2})|(.))", character, text)


@pytest.fixture
def secretive(project: Any, monkeypatch: pytest.MonkeyPatch) -> Iterator[Any]:
    """A project with four ways to a server, each with a secret of its own, and benchmarks that break."""
    with ModelServer(BEHAVIOURS) as server:
        point_at(monkeypatch, server, **KEYS)
        with_password = server.url.replace("//", f"//me:{quote(PASSWORD, safe='')}@")
        project.pytester.makeini(
            "[pytest]\nopenclaw_endpoints =\n"
            f"    box = ollama_openai {server.url} BOX_KEY\n"
            f"    gate = openai_responses {with_password}\n"
        )
        project.pytester.makeconftest(CONFTEST)
        project.suite({"P1": ("Hi", {"type": "exact", "value": "no"})})
        yield project
    sent = {asked.headers.get("authorization") for asked in server.asked}
    assert sent >= {*(f"Bearer {key}" for key in KEYS.values()), f"Basic {BASIC}"}, "the secrets were in use"


PROVIDERS = ("openai_responses", "ollama_openai", "box", "gate")


def every(*models: str) -> str:
    """Each model through each provider."""
    return ",".join(f"{provider}/{model}" for provider in PROVIDERS for model in models)


def test_no_secret_is_written_when_things_go_wrong(secretive: Any) -> None:
    """Loud as pytest can be, no failure writes a key into a file, a log, a report or a traceback."""
    session = secretive.run(
        *LOUD, "--openclaw-timeout=1", "--openclaw-retries=1", models=every(*BEHAVIOURS)
    )

    assert list(leaks(secretive.folder, session.text)) == []
    assert len(session.rows) == len(PROVIDERS) * len(BEHAVIOURS)
    assert "[secret]" in session.text
