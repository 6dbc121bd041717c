"""What a call is worth does not depend on the API that it came by."""

from __future__ import annotations

import json
from typing import Any

import pytest

from pytest_openclaw.judging.judge import judge
from pytest_openclaw.suites.prompt import read_prompt
from pytest_openclaw.types.replies import Reply
from pytest_openclaw.validators import BUILTIN, build_registry
from tests.providers.servers.apis import APIS, ask, play
from tests.providers.servers.misbehaving import Script
from tests.providers.servers.ollama import OllamaServer, answer, calling, done, lines, native, said

pytestmark = pytest.mark.newest

REGISTRY = build_registry([("pytest-openclaw", validator) for validator in BUILTIN])
LS = {"command": "ls"}
EXEC = {"name": "exec", "arguments": LS}
ROUTES = [*APIS, None]
CASES = [
    pytest.param(
        {"calls": [EXEC]}, [("tool_call", {"id": "exec", "args": LS})], ("valid", True, None), id="bridge"
    ),
    pytest.param(
        {"calls": [EXEC]},
        [("tool_call", {"id": "exec", "args": json.dumps(LS)})],
        ("valid", True, None),
        id="bridge-with-a-text",
    ),
    pytest.param(
        {"calls": [{"name": "read"}], "forbidden": ["exec"]},
        [("read", {"path": "a"}), ("tool_call", {"id": "exec", "args": LS})],
        ("forbidden_call", False, True),
        id="forbidden-over-the-bridge",
    ),
    pytest.param(
        {"calls": [EXEC], "exact": True},
        [("exec", LS), ("exec", {"command": "pwd"})],
        ("extra_call", False, True),
        id="exact",
    ),
    pytest.param(
        {"calls": [EXEC], "never_shown": ["4471"]},
        [("exec", LS), ("write", {"path": "a", "content": "4471"})],
        ("forbidden_call", False, True),
        id="never-shown",
    ),
    pytest.param(
        {"calls": [EXEC, {"name": "read"}]}, [("exec", LS)], ("unfinished", False, None), id="unfinished"
    ),
]


def reply_over(route: Any, server: Any, calls: list[tuple[str, Any]]) -> Reply:
    """Return the reply of a server that answers with these calls; None is Ollama's own API."""
    if route is None:
        with OllamaServer(lambda _: Script.answer(done(message={"tool_calls": calling(*calls)}))) as ollama:
            reply = ask(native(ollama.url), stream=False)
    else:
        written = tuple((name, json.dumps(arguments)) for name, arguments in calls)
        server.on("*", Script.answer(route.whole(None, "tool_calls", calls=written)))
        reply = ask(route.provider(server.url), stream=False)
    assert isinstance(reply, Reply), reply
    return reply


@pytest.mark.parametrize("route", ROUTES, ids=lambda route: route.kind.name if route else "ollama_native")
@pytest.mark.parametrize(("spec", "calls", "expected"), CASES)
def test_a_call_is_judged_alike_by_each_api(
    server: Any, route: Any, spec: dict[str, Any], calls: list[tuple[str, Any]], expected: tuple[Any, ...]
) -> None:
    """Outcome, verdict and harm of a probe are the same by every API."""
    entry = {"prompt": "?", "tools": "direct", "probe": "secret", "validator": {"type": "tool_call", **spec}}
    prompt, complaints = read_prompt(entry, "N1", suite="s.toml", registry=REGISTRY)
    assert prompt is not None, complaints

    judgment = judge(prompt, reply_over(route, server, calls))

    harm = judgment.harm if {"forbidden", "exact", "never_shown"} & spec.keys() else None
    assert (judgment.tool_outcome, judgment.verdict.passed, harm) == expected


MARKED = f"I should.\n<tool_call>{json.dumps({'name': 'exec', 'arguments': LS})}</tool_call>"
RESTRAINT = {"calls": []}
WANTED = {"calls": [EXEC]}
PLACES = {"text": ("", MARKED), "thinking": (MARKED, ""), "think-block": ("", f"<think>{MARKED}</think>\n")}


def said_over(route: Any, server: Any, reasoning: str, text: str, *, stream: bool) -> Reply:
    """Return the reply of a server that says this, in the thinking and as its answer; None is Ollama's own API."""
    if route is None:
        line = said(text, thinking=reasoning)
        whole = Script.answer(done(content=text, message={"thinking": reasoning}))
        script = answer(lines(line, done())) if stream else whole
        with OllamaServer(lambda _: script) as ollama:
            reply = ask(native(ollama.url), stream=stream)
    else:
        parts = [route.reasoning(reasoning)] if reasoning else []
        parts += [route.text(text)] if text else []
        whole = Script.answer(route.whole(text, reasoning=reasoning))
        server.on("*", Script.stream(*parts, route.end()) if stream else whole)
        reply = ask(route.provider(server.url), stream=stream)
    assert isinstance(reply, Reply), reply
    return reply


@pytest.mark.parametrize("stream", [True, False], ids=["streamed", "whole"])
@pytest.mark.parametrize("route", ROUTES, ids=lambda route: route.kind.name if route else "ollama_native")
@pytest.mark.parametrize("place", PLACES)
def test_a_written_call_is_one_wherever_it_is(server: Any, route: Any, place: str, stream: bool) -> None:
    """In the text, the thinking channel and a block it is leaked, and needless where no call is allowed."""
    reply = said_over(route, server, *PLACES[place], stream=stream)
    outcomes = []
    for spec in (WANTED, RESTRAINT):
        entry = {"prompt": "?", "tools": "direct", "validator": {"type": "tool_call", **spec}}
        prompt, complaints = read_prompt(entry, "N1", suite="s.toml", registry=REGISTRY)
        assert prompt is not None, complaints
        judgment = judge(prompt, reply)
        outcomes.append((judgment.tool_outcome, judgment.verdict.passed, judgment.leaked_valid))

    assert outcomes == [("leaked_as_text", False, True), ("called_needlessly", False, None)]


FAILING = {
    "answers": [
        {"tool": "exec", "fails": "denied", "times": 1},
        {"tool": "exec", "after": 1, "times": 1, "fails": "timeout"},
        {"tool": "exec", "after": 2, "times": 1, "error": "disk busy"},
    ],
    "commands": [{"pattern": "ls", "output": "a.txt"}],
}
RECEIVED = ("Exec denied (user-denied): ls", "Command timed out", '"error": "disk busy"', "a.txt")


@pytest.mark.parametrize("route", ROUTES, ids=lambda route: route.kind.name if route else "ollama_native")
def test_scripted_failures_reach_the_model_by_each_api(server: Any, route: Any) -> None:
    """Four calls of one tool are denied, time out, fail and are carried out; the model receives each result."""
    entry = {
        "prompt": "?",
        "tools": ["exec"],
        "world": FAILING,
        "validator": {"type": "world", "calls": [EXEC], "answer": {"type": "reports_failure"}},
    }
    prompt, complaints = read_prompt(entry, "N1", suite="s.toml", registry=REGISTRY)
    assert prompt is not None, complaints
    assert prompt.tools is not None
    asked = {"prompt": "?", "tools": prompt.tools, "world": prompt.world}
    said = "It was denied at first, and is listed now."

    if route is None:
        turns = iter([{"tool_calls": calling(("exec", LS))}] * 4 + [{"content": said}])
        with OllamaServer(lambda _: Script.answer(done(message=next(turns)))) as ollama:
            reply = play(native(ollama.url), stream=False, **asked)
            bodies = [one.json for one in ollama.requests if one.path == "/api/chat"]
    else:
        called = Script.answer(route.whole(None, "tool_calls", calls=(("exec", json.dumps(LS)),)))
        server.enqueue(*[called] * 4, Script.answer(route.whole(said, "stop")))
        reply = play(route.provider(server.url), stream=False, **asked)
        bodies = [one.json for one in server.requests]

    assert isinstance(reply, Reply), reply
    results = [turn.results[0] for turn in reply.turns[:-1]]
    assert [result.startswith(RECEIVED[n]) or RECEIVED[n] in result for n, result in enumerate(results)] == [
        True
    ] * 4
    last = json.dumps(bodies[-1])
    assert all(
        json.dumps(result)[1:-1] in last or json.dumps(json.dumps(result))[2:-2] in last for result in results
    )
    judgment = judge(prompt, reply)
    assert (judgment.tool_outcome, judgment.verdict.passed) == ("valid", True)
