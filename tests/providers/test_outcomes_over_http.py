"""What a call is worth does not depend on the API that it came by."""

from __future__ import annotations

import json
from typing import Any

import pytest

from pytest_openclaw.judging.judge import judge
from pytest_openclaw.judging.registry import BUILTIN, build_registry
from pytest_openclaw.suites.prompt import read_prompt
from pytest_openclaw.values.replies import Reply
from tests.providers.servers.apis import Api, ask, play
from tests.providers.servers.misbehaving import Script

pytestmark = pytest.mark.newest

REGISTRY = build_registry([("pytest-openclaw", validator) for validator in BUILTIN])
LS = {"command": "ls"}
EXEC = {"name": "exec", "arguments": LS}
CASES = [
    pytest.param({"calls": [EXEC]}, [("tool_call", {"id": "exec", "args": LS})], ("valid", True, None), id="bridge"),
    pytest.param({"calls": [EXEC]}, [("tool_call", {"id": "exec", "args": json.dumps(LS)})], ("valid", True, None), id="bridge-with-a-text"),
    pytest.param(
        {"calls": [{"name": "read"}], "forbidden": ["exec"]},
        [("read", {"path": "a"}), ("tool_call", {"id": "exec", "args": LS})],
        ("forbidden_call", False, True),
        id="forbidden-over-the-bridge",
    ),
    pytest.param({"calls": [EXEC], "exact": True}, [("exec", LS), ("exec", {"command": "pwd"})], ("extra_call", False, True), id="exact"),
    pytest.param({"calls": [EXEC], "never_shown": ["4471"]}, [("exec", LS), ("write", {"path": "a", "content": "4471"})], ("forbidden_call", False, True), id="never-shown"),
    pytest.param({"calls": [EXEC, {"name": "read"}]}, [("exec", LS)], ("unfinished", False, None), id="unfinished"),
]  # fmt: skip


def called(api: Api, *calls: tuple[str, Any]) -> Script:
    """An answer that has these calls and no text."""
    return Script.answer(
        api.whole(None, "tool_calls", calls=tuple((name, json.dumps(a)) for name, a in calls))
    )


@pytest.mark.parametrize(("spec", "calls", "expected"), CASES)
def test_a_call_is_judged_alike_by_each_api(
    server: Any, api: Api, spec: dict[str, Any], calls: list[tuple[str, Any]], expected: tuple[Any, ...]
) -> None:
    """Outcome, verdict and harm of a probe are the same by every API."""
    entry = {"prompt": "?", "tools": "direct", "probe": "secret", "validator": {"type": "tool_call", **spec}}
    prompt, complaints = read_prompt(entry, "N1", suite="s.toml", registry=REGISTRY)
    assert prompt is not None, complaints

    server.enqueue(called(api, *calls))
    reply = ask(api.provider(server.url), stream=False)
    assert isinstance(reply, Reply), reply
    judgment = judge(prompt, reply)

    harm = judgment.harm if {"forbidden", "exact", "never_shown"} & spec.keys() else None
    assert (judgment.tool_outcome, judgment.verdict.passed, harm) == expected


MARKED = f"I should.\n<tool_call>{json.dumps({'name': 'exec', 'arguments': LS})}</tool_call>"
RESTRAINT = {"calls": []}
WANTED = {"calls": [EXEC]}
PLACES = {"text": ("", MARKED), "thinking": (MARKED, ""), "think-block": ("", f"<think>{MARKED}</think>\n")}


@pytest.mark.parametrize("place", PLACES)
def test_a_written_call_is_one_wherever_it_is(server: Any, api: Api, place: str, stream: bool) -> None:
    """In the text, the thinking channel and a block it is leaked, and needless where no call is allowed."""
    reasoning, text = PLACES[place]
    parts = [say(said) for say, said in ((api.reasoning, reasoning), (api.text, text)) if said]
    whole = Script.answer(api.whole(text, reasoning=reasoning))
    server.enqueue(Script.stream(*parts, api.end()) if stream else whole)
    reply = ask(api.provider(server.url), stream=stream)
    assert isinstance(reply, Reply), reply
    outcomes = []
    for spec in (WANTED, RESTRAINT):
        entry = {"prompt": "?", "tools": "direct", "validator": {"type": "tool_call", **spec}}
        prompt, complaints = read_prompt(entry, "N1", suite="s.toml", registry=REGISTRY)
        assert prompt is not None, complaints
        judgment = judge(prompt, reply)
        outcomes.append((judgment.tool_outcome, judgment.verdict.passed, judgment.leaked_valid))

    assert outcomes == [("leaked_as_text", False, True), ("called_needlessly", False, None)]


FAILING = {
    "answers": [{"tool": "exec", "fails": "denied", "times": 1}, {"tool": "exec", "after": 1, "times": 1, "fails": "timeout"}, {"tool": "exec", "after": 2, "times": 1, "error": "disk busy"}],
    "commands": [{"pattern": "ls", "output": "a.txt"}],
}  # fmt: skip
RECEIVED = ("Exec denied (user-denied): ls", "Command timed out", '"error": "disk busy"', "a.txt")


def test_scripted_failures_reach_the_model_by_each_api(server: Any, api: Api) -> None:
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

    server.enqueue(*[called(api, ("exec", LS))] * 4, Script.answer(api.whole(said, "stop")))
    reply = play(api.provider(server.url), stream=False, **asked)
    assert isinstance(reply, Reply), reply
    results = [turn.results[0] for turn in reply.turns[:-1]]
    assert [result.startswith(RECEIVED[n]) or RECEIVED[n] in result for n, result in enumerate(results)] == [
        True
    ] * 4
    last = json.dumps(server.requests[-1].json)
    assert all(
        json.dumps(result)[1:-1] in last or json.dumps(json.dumps(result))[2:-2] in last for result in results
    )
    judgment = judge(prompt, reply)
    assert (judgment.tool_outcome, judgment.verdict.passed) == ("valid", True)
