"""What a call is worth does not depend on the API that it came by."""

from __future__ import annotations

import json
from typing import Any

import pytest

from pytest_openclaw.judging.judge import judge
from pytest_openclaw.suites.prompt import read_prompt
from pytest_openclaw.types.replies import Reply
from pytest_openclaw.validators import BUILTIN, build_registry
from tests.providers.servers.apis import APIS, ask
from tests.providers.servers.misbehaving import Script
from tests.providers.servers.ollama import OllamaServer, calling, done, native

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
