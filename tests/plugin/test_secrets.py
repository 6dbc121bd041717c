"""A key or password is written nowhere, whatever a server, a model or our own code does with it."""

import base64
import json
import re
from functools import partial
from urllib.parse import quote

import pytest

from pytest_openclaw.providers.http import HttpClient
from tests.plugin.bad_servers import ModelServer, point_at
from tests.providers.servers.apis import GEMINI
from tests.providers.servers.misbehaving import (
    Close,
    Hang,
    MisbehavingServer,
    Pause,
    Reset,
    Script,
    chunk,
    head,
    sse,
)

pytestmark = pytest.mark.newest

KEYS = {
    "OPENAI_API_KEY": "sk-proj-Ab3dEf6hIj9kLm2nOp5qRs8tUv1wXy4zAb7cDe0fGh",
    "OLLAMA_API_KEY": "ollama.4f9c2d7e1b8a6f3c5d0e9b7a2c4f6e8d",
    "BOX_KEY": "box_Zq7Wx3Ec9Rv5Tb1Yn8Um4Ik2Ol6P",
    "ANTHROPIC_API_KEY": "sk-ant-api03-Lq8Rw2Ts5Yv1Xz7Bc4Nd9Fg3Hj6Kp",
    "GEMINI_API_KEY": "AIzaSyDb7Gk2Lm9Np4Qr8St1Uv5Wx3Yz6Ac0Ef7",
}
PASSWORD = "Hunter2/Größe&'quoted\"@home"
BASIC = base64.b64encode(f"me:{PASSWORD}".encode()).decode()
UNUSED = {"DEPLOY_TOKEN": "dt_h7Kp2Vx9Qs4Wm1Zr6Tb3Nc8"}
"""In the environment, for no provider of the run."""
SECRETS = (*KEYS.values(), *UNUSED.values(), PASSWORD, quote(PASSWORD, safe=""), BASIC)
SAID = " ".join(SECRETS)
# A model may write a key in another form than it has read it.
ENCODINGS = {
    "base64": [base64.b64encode(f"k={secret}".encode()).decode() for secret in SECRETS],
    "hex": [secret.encode().hex() for secret in SECRETS],
    "json": [json.dumps(secret)[1:-1] for secret in SECRETS],
    "url": [quote(secret, safe="") for secret in SECRETS],
}


def echoed():
    said = " ".join(secret for secret in SECRETS if secret.isascii())
    return {"x_echo": said, "www_authenticate": f"Basic {BASIC}", "set_cookie": KEYS["BOX_KEY"]}


def straddling(width, secret):
    """A long text with a secret where a text of that width would be cut in its middle."""
    return "x" * (width // 2 - len(secret) // 2) + secret + "y" * width


def in_a_stream(text):
    return lambda api: Script.stream(api.text(text[:9]), api.text(text[9:]), api.end(), **echoed())


BEHAVIORS = {
    "answer": in_a_stream(SAID),
    "answer-in-pieces": lambda api: Script.stream(*(api.text(SAID[at : at + 5]) for at in range(0, len(SAID), 5)), api.end()),
    **{f"answer-in-{name}": in_a_stream(" ".join(written)) for name, written in ENCODINGS.items()},
    "answer-cut": in_a_stream(straddling(1200, KEYS["OPENAI_API_KEY"])),
    "answer-cut-at-64k": in_a_stream("z" * (65536 - 20) + KEYS["OLLAMA_API_KEY"] + " and more"),
    "answer-whole": lambda api: Script.answer(api.whole(SAID, reasoning=SAID), **echoed()),
    "thinks": lambda api: Script.stream(api.reasoning(SAID), api.end()),
    "refuses": lambda api: Script.stream((api.refusal or api.text)(SAID), api.end()),
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


@dataclass(frozen=True)
class Crashing:
    type: ClassVar[str] = "crashing"

    def check(self, reply):
        said = {"text": reply.text, "reasoning": reply.reasoning}
        print("the reply was", reply)
        logging.getLogger("plugin").warning("the reply was %s", reply)
        warnings.warn(f"the reply was {reply.text}", stacklevel=1)
        raise ZeroDivisionError(f"cannot judge {said}")


def pytest_openclaw_validators():
    return [Crashing]
"""

BENCHMARK = """
import logging

import pytest


@pytest.mark.openclaw(id="R1", prompt="Hi")
def test_fails(reply, record_property):
    print(reply)
    record_property("said", reply.text)
    record_property("all", reply)
    assert reply.text == "something else"


@pytest.mark.openclaw(id="R2", prompt="Hi")
def test_crashes(reply):
    words = reply.text.split()
    logging.getLogger("plugin").error("got %s", words)
    raise RuntimeError(reply.text)
"""

LOUD = [
    "-vv",
    "--showlocals",
    "-rA",
    "--junitxml=junit.xml",
    "-o",
    "junit_logging=all",
    "-o",
    "log_cli=true",
    "-o",
    "log_cli_level=DEBUG",
    "-o",
    "log_file=all.log",
    "-o",
    "log_file_level=DEBUG",
]


def shown_of(row):
    """The parts of a row that come from the reply, without what base64 mixes of `k=` and a secret."""
    return re.sub(r"(?<!\S)az\S?(?=\[secret\])", "", row["raw_output"])


def leaks(folder, *texts):
    """Return where a secret is found: the file or text, and the text around it."""
    found = {f"text {number}": text for number, text in enumerate(texts)}
    for path in folder.rglob("*"):
        if path.is_file() and path.name != "tox.ini":
            found[path.relative_to(folder).as_posix()] = path.read_bytes().decode("utf-8", "replace")
    for place, text in found.items():
        for form, written in (("as it is", text), ("as JSON", _unescaped(text))):
            for secret in SECRETS:
                if (at := written.find(secret)) >= 0:
                    yield f"{place}, {form}: {written[max(0, at - 60) : at + 60]!r}"


def _unescaped(text):
    def character(found):
        code = found[1] or found[2]
        return chr(int(code, 16)) if code else found[3]

    return re.sub(r"\\(?:u([0-9a-f]{4})|x([0-9a-f]{2})|(.))", character, text)


@pytest.fixture
def server():
    """A server that echoes every secret; at the end each secret must have reached it."""
    with ModelServer(BEHAVIORS) as running:
        yield running
    sent = {shown_key(asked.headers) for asked in running.asked}
    assert sent == {*PROVIDERS.values()}, "the secrets were in use"


PROVIDERS = {
    "openai_responses": ("authorization", f"Bearer {KEYS['OPENAI_API_KEY']}"),
    "ollama_openai": ("authorization", f"Bearer {KEYS['OLLAMA_API_KEY']}"),
    "anthropic_messages": ("x-api-key", KEYS["ANTHROPIC_API_KEY"]),
    "gemini": ("x-goog-api-key", KEYS["GEMINI_API_KEY"]),
    "box": ("authorization", f"Bearer {KEYS['BOX_KEY']}"),
    "gate": ("authorization", f"Basic {BASIC}"),
}
"""Six ways to the server, each with its own secret, in its header."""


def shown_key(headers):
    names = {name for name, _ in PROVIDERS.values()}
    (shown,) = ((name, value) for name, value in headers.items() if name in names)
    return shown


def every(*models):
    return ",".join(f"{provider}/{model}" for provider in PROVIDERS for model in models)


def prepare(project, monkeypatch, server):
    """Give the project the six providers, broken plugins, and a suite."""
    point_at(monkeypatch, server, **KEYS, **UNUSED)
    with_password = server.url.replace("//", f"//me:{quote(PASSWORD, safe='')}@")
    project.ini(
        "openclaw_endpoints =",
        f"    box = ollama_openai {server.url} BOX_KEY",
        f"    gate = openai_responses {with_password}",
    )
    project.write("conftest.py", CONFTEST)
    send = HttpClient.send

    async def broken(self, call, body, **options):
        if "library-breaks" in str(call.body) or "/library-breaks:" in call.url:
            raise RuntimeError(f"broken with {call.headers}")
        await send(self, call, body, **options)

    monkeypatch.setattr(HttpClient, "send", broken)
    project.suite({"P1": ("Hi", {"type": "exact", "value": "no"})})


def test_no_secret_is_written_when_things_go_wrong(project, monkeypatch, server):
    """However verbose pytest is, no failure writes a key into a file, a log, a report or a traceback."""
    prepare(project, monkeypatch, server)

    words = ("--openclaw-timeout=2", "--openclaw-retries=1", "--openclaw-concurrency=16")
    session = project.run(*LOUD, *words, models=every(*BEHAVIORS))

    assert list(leaks(project.folder, session.text)) == []
    rows = session.rows
    assert len(rows) == len(PROVIDERS) * len(BEHAVIORS)
    hidden = " ".join(["[secret]"] * len(SECRETS))
    whole = {"answer", "answer-in-pieces", *(f"answer-in-{name}" for name in ENCODINGS)}
    assert {(row["model"], shown_of(row)) for row in rows if row["model"] in whole} == {
        (m, hidden) for m in whole
    }
    assert {row["failure_type"] for row in rows if row["model"] == "library-breaks"} == {"harness_error"}


CUT_KEY = "Ue4Kd9Rw2Xh7Bn5Tq8Jm3Zc6Vp1Ls0Gy4Fa8Wo"
"""It has no published format."""
LIMITS = (80, 240, 300, 1000, 1024, 65_536, 131_072, 262_144)
"""Lengths at which some text is cut, here or in pytest."""
OFFSETS = (-30, -8)
"""The beginning of the key, from each of them."""


def in_place(place, api, text):
    """An answer with a text in one of the places where a server or a model can put one."""
    called = {"tool-name": (text, "{}"), "tool-arguments": ("read", json.dumps({"path": text}))}
    if place in called:
        return Script.answer(api.whole(None, calls=(called[place],)))
    if place in ("finish_reason", "model", "id"):
        answer = api.whole("Hi.", calls=(("read", "{}"),)) if place == "id" else api.whole("Hi.")
        return Script.answer(_with(answer, place, text))
    if place == "redirect":
        return Script.answer(status=307, location=f"http://127.0.0.1:1/{text}")
    answers = {
        "text": Script.answer(api.whole(text)),
        "streamed": Script.stream(api.text(text), api.end()),
        "thinking": Script.answer(api.whole("Hi.", reasoning=text)),
        "message": Script.answer({"error": {"message": text}}, status=400),
        "message-end": Script.answer({"error": {"message": "a" * 400 + text[::-1]}}, status=400),
        "code": Script.answer({"error": {"code": text}}, status=400),
        "title": Script.answer(f"<html><title>{text}</title>", status=400),
        "plain": Script.answer(text),
        "other": Script.answer({"said": text}),
        "in-a-stream": Script.stream(sse({"error": {"message": text}})),
        "after-tokens": Script.stream(api.text("Hi"), sse({"error": {"message": text}})),
        "heartbeat": Script.stream(sse(text)),
        "unread-call": Script.answer({"error": f"error parsing tool call: raw='{text}', err=x"}, status=500),
    }
    return answers[place]


PLACES = [
    "tool-name",
    "tool-arguments",
    "finish_reason",
    "model",
    "id",
    "redirect",
    "text",
    "streamed",
    "thinking",
    "message",
    "message-end",
    "code",
    "title",
    "plain",
    "other",
    "in-a-stream",
    "after-tokens",
    "heartbeat",
    "unread-call",
]


def _with(value, name, text):
    if isinstance(value, list):
        return [_with(one, name, text) for one in value]
    if not isinstance(value, dict):
        return value
    return {key: text if key == name else _with(one, name, text) for key, one in value.items()}


def parts_of_key(text):
    return {part for n in range(len(CUT_KEY) - 7) if (part := CUT_KEY[n : n + 8]) in text}


@pytest.mark.nightly
def test_no_cut_leaves_a_part_of_a_key(plain_project, monkeypatch):
    """Wherever a text is cut, no file, report or line of the terminal has 8 characters of a key in it."""
    behaviors = {}
    for place in PLACES:
        for limit in LIMITS if place in ("text", "thinking", "tool-arguments") else LIMITS[:5]:
            for offset in OFFSETS:
                text = (
                    "z" * (limit + offset)
                    + (CUT_KEY[::-1] if place == "message-end" else CUT_KEY)
                    + "y" * 400
                )
                behaviors[f"{place}-{limit}{offset:+}"] = partial(in_place, place, text=text)
    plain_project.suite({"P1": ("Hi", {"type": "exact", "value": "no"})})
    plain_project.write("benchmarks/test_bench.py", BENCHMARK)
    with ModelServer(behaviors) as server:
        point_at(monkeypatch, server, BOX_KEY=CUT_KEY)
        plain_project.ini("openclaw_endpoints =", f"    box = ollama_openai {server.url} BOX_KEY")
        words = ("--openclaw-retries=0", "--openclaw-concurrency=8", "--junitxml=j.xml", "-rA")
        session = plain_project.run(*words, models=",".join(f"box/{model}" for model in behaviors))

    assert len(session.rows) == 3 * len(behaviors)
    found = {
        path: path.read_text("utf-8", "replace") for path in plain_project.folder.rglob("*") if path.is_file()
    }
    leaking = {path.name for path, text in found.items() if path.suffix != ".pyc" and parts_of_key(text)}
    assert (leaking, parts_of_key(session.text)) == (set(), set())
    assert "[secret]" in session.text


def test_a_served_name_with_a_key_is_left_out(plain_project, monkeypatch):
    """It would be part of node ids and of the names of files; the message does not show it."""
    with MisbehavingServer() as server:
        listed = {"data": [{"id": f"m-{CUT_KEY}"}, {"id": f"m-{CUT_KEY[:12]}"}]}
        server.on("*", Script.answer(listed))
        prepare(plain_project, monkeypatch, server)
        monkeypatch.setenv("BOX_KEY", CUT_KEY)
        session = plain_project.run(models="box/*")

    assert session.status == pytest.ExitCode.USAGE_ERROR
    assert "2 served models left out: a key is part of the name" in session.text
    assert parts_of_key(session.text) == set()


@pytest.mark.parametrize("value", [CUT_KEY, f"Bearer {CUT_KEY}", CUT_KEY[:20]], ids=["key", "header", "part"])
def test_a_key_in_stored_fields_is_refused(plain_project, monkeypatch, value):
    """`config.json` would have it."""
    fields = json.dumps({"metadata": {"auth": value}})
    plain_project.ini(
        "openclaw_endpoints = box = ollama_openai http://127.0.0.1:9/v1 BOX_KEY",
        f"openclaw_request_fields = box = {fields}",
    )
    plain_project.suite({"P1": ("Hi", {"type": "noop"})})
    monkeypatch.setenv("BOX_KEY", CUT_KEY)

    session = plain_project.run(models="box/m")

    assert session.status == pytest.ExitCode.USAGE_ERROR
    assert "openclaw_request_fields: box: a value contains a key" in session.text
    assert parts_of_key(session.text) == set()


def test_a_subtest_shows_no_secret(plain_project, monkeypatch, server):
    """Its message and its values are part of its name in the terminal."""
    pytest.importorskip("_pytest.subtests", reason="since pytest 9")
    prepare(plain_project, monkeypatch, server)
    code = BENCHMARK.partition('@pytest.mark.openclaw(id="R2"')[0].replace("(reply, ", "(reply, subtests, ")
    code += "    with subtests.test(reply.text, said=reply.text):\n        assert not reply.text\n"
    plain_project.write(
        "benchmarks/test_bench.py", code.replace('    assert reply.text == "something else"', "")
    )

    session = plain_project.run("-v", models=every("answer-whole"))

    assert "SUBFAILED[[secret]" in session.text
    assert list(leaks(plain_project.folder, session.text)) == []


OWN_WORDS = {
    "expected": "pytest.xfail(reply.text)",
    "shown-by-a-plugin": "request.config.pluginmanager.get_plugin('terminalreporter').write_line(reply.text)",
    "session-property": "record_testsuite_property('said', reply.text)",
    "compared": "assert reply.text == 'no'",
}


@pytest.mark.parametrize("line", OWN_WORDS.values(), ids=OWN_WORDS)
def test_no_word_of_a_test_shows_a_secret(plain_project, monkeypatch, server, line):
    """A test may give a reply's text to pytest or another plugin, which show or write it."""
    prepare(plain_project, monkeypatch, server)
    code = BENCHMARK.partition("    print")[0].replace(
        "record_property", "record_testsuite_property, request"
    )
    plain_project.write("benchmarks/test_bench.py", f"{code}    {line}\n")

    session = plain_project.run("-rA", "--debug", "--junitxml=junit.xml", models=every("answer-whole"))

    assert session.rows
    assert list(leaks(plain_project.folder, session.text)) == []


def prepare_broken(project, monkeypatch, server):
    """Add a validator and benchmarks in Python that raise on a reply, print it and log it."""
    prepare(project, monkeypatch, server)
    project.suite({"P1": ("Hi", {"type": "crashing"})})
    project.write("benchmarks/test_bench.py", BENCHMARK)


def test_no_secret_is_written_when_judging_breaks(project, monkeypatch, server):
    """A validator or a Python benchmark that raises on a reply, prints it and logs it reveals no key."""
    prepare_broken(project, monkeypatch, server)

    session = project.run(*LOUD, "-Walways", models=every("answer-cut", "answer-whole"))

    session.outcomes(errors=2 * len(PROVIDERS), failed=4 * len(PROVIDERS))
    assert list(leaks(project.folder, session.text)) == []
    said = ("cannot judge", "something else", "conftest.py", "test_bench.py", "UserWarning: the reply was")
    assert [part for part in said if part not in session.text] == []


@pytest.mark.parametrize(
    "options",
    [
        "--tb=long -l",
        "--tb=line",
        "--tb=no -rA",
        pytest.param("--full-trace", marks=pytest.mark.nightly),
        pytest.param("--openclaw-stream=off", marks=pytest.mark.nightly),
    ],
)
def test_no_style_of_traceback_shows_a_secret(plain_project, monkeypatch, server, options):
    """In every style of traceback that pytest offers, keys are hidden."""
    prepare_broken(plain_project, monkeypatch, server)

    words = (*options.split(), "--junitxml=junit.xml")
    session = plain_project.run(*words, models=every("answer-whole", "library-breaks"))

    assert list(leaks(plain_project.folder, session.text)) == []
    assert session.status == 1


def test_the_config_has_no_secret(project, monkeypatch, server):
    """It has a key's variable and an address without its user; a key goes to its provider only."""
    prepare(project, monkeypatch, server)

    session = project.run(models=every("answer"))

    providers = session.load("config.json")["providers"]
    assert {name: (about["base_url"], about["key_env"]) for name, about in providers.items()} == {
        "openai_responses": (server.url, "OPENAI_API_KEY"),
        "ollama_openai": (server.url, "OLLAMA_API_KEY"),
        "anthropic_messages": (server.url, "ANTHROPIC_API_KEY"),
        "gemini": (GEMINI.base(server.url), "GEMINI_API_KEY"),
        "box": (server.url, "BOX_KEY"),
        "gate": (server.url, None),
    }
    assert list(leaks(project.folder, session.text)) == []
    assert sorted(shown_key(asked.headers) for asked in server.asked) == sorted(PROVIDERS.values())


@pytest.mark.parametrize("provider", ["openai_responses", "gate"])
def test_a_list_of_models_that_is_refused(plain_project, monkeypatch, provider):
    """The usage error of a `*` that cannot be resolved repeats no key that the server echoes."""
    with MisbehavingServer() as server:
        secret = PROVIDERS[provider][1].rpartition(" ")[2]
        server.on("*", Script.answer({"error": {"message": secret}}, status=401, x_echo=secret))
        prepare(plain_project, monkeypatch, server)
        session = plain_project.run(*LOUD, models=f"{provider}/*")
        assert shown_key(server.requests[0].headers) == PROVIDERS[provider]

    assert session.status == pytest.ExitCode.USAGE_ERROR
    assert "[secret]" in session.text
    assert list(leaks(plain_project.folder, session.text)) == []


@pytest.mark.parametrize(
    "line",
    [
        pytest.param(f"box = ollama_openai http://me:{quote(PASSWORD, safe='')}@[::1/v1", id="address"),
        pytest.param(f"box = ollama_openai http://127.0.0.1:9/v1 {KEYS['OPENAI_API_KEY']}", id="key-for-its-variable"),
        pytest.param(f"{KEYS['OPENAI_API_KEY']} = ollama_openai http://127.0.0.1:9/v1", id="key-for-a-name"),
    ],
)  # fmt: skip
def test_an_endpoint_that_cannot_be_used(plain_project, monkeypatch, line):
    """The usage error of a wrong line repeats no part of it that could be secret."""
    plain_project.ini(f"openclaw_endpoints = {line}")
    plain_project.suite({"P1": ("Hi", {"type": "noop"})})

    session = plain_project.run(models="box/m")

    assert session.status == pytest.ExitCode.USAGE_ERROR
    assert list(leaks(plain_project.folder, session.text)) == []
