"""The shipped suites, and the replies to their prompts as the TOML files in this folder have them."""

import asyncio
import json
import tomllib
from dataclasses import dataclass
from functools import cache
from itertools import chain, repeat
from pathlib import Path
from typing import Any

from pytest_openclaw.asking.exchanges import hold_exchange
from pytest_openclaw.asking.sending import request_for
from pytest_openclaw.judging.judge import Judgment, judge
from pytest_openclaw.suites.load import load_suite
from pytest_openclaw.values.prompts import Cell, Prompt
from pytest_openclaw.values.replies import CallResult, Reply, Timing
from pytest_openclaw.values.requests import Target
from pytest_openclaw.values.settings import Settings
from pytest_openclaw.values.tool_calls import ToolCall
from tests.builtin import REGISTRY

HERE = Path(__file__).parent
BENCHMARKS = HERE.parents[1] / "benchmarks"
SUITES = {
    path.stem.removeprefix("prompts_"): load_suite(path, name=f"benchmarks/{path.name}", registry=REGISTRY)
    for path in sorted(BENCHMARKS.glob("prompts_*.toml"))
}
REWORDED = SUITES.pop("native_reworded")
REPLIES = {name: tomllib.loads((HERE / f"replies_{name}.toml").read_text("utf-8")) for name in SUITES}
ROLES = [name for name in SUITES if name.startswith("role_")]
"""The suites whose tables have lists of replies, all of them texts."""
NAMED = ("failures", "conventions")
"""The suites whose wrong exchanges say by which outcome they fail."""
TIMING = Timing(started_at_ms=0, ended_at_ms=1, e2e_ms=1.0)


@dataclass(frozen=True, kw_only=True)
class Judged:
    """A reply of the tables and its judgment; its id has the prompt's id and its number."""

    id: str
    prompt: Prompt
    written: Any
    reply: Reply
    judgment: Judgment


@cache
def judged(name, kind):
    return tuple(one for prompt in SUITES[name].prompts for one in judged_replies(name, prompt, kind))


def judged_replies(name, prompt, kind):
    """Judge every reply of this kind to a prompt; harder forms of one entry share its replies."""
    entry = REPLIES[name][prompt.pressure_of or prompt.id]
    first = entry.get(kind, [])
    several = first if name in ROLES or kind not in entry else [first, *entry.get(f"also_{kind}", [])]
    found = []
    for number, written in enumerate(several):
        reply = reply_of(prompt, written)
        judgment = judge(prompt, reply)
        found.append(
            Judged(id=f"{prompt.id}-{number}", prompt=prompt, written=written, reply=reply, judgment=judgment)
        )
    return found


def reply_of(prompt, written):
    """Return a reply as a provider returns it: a text, calls, both, or a whole exchange."""
    if isinstance(written, dict) and "turns" in written:
        return played(
            prompt, written["turns"] if written.get("loop") else [*written["turns"], written["text"]]
        )[0]
    if prompt.suite == SUITES["conversations"].path:
        script = written if isinstance(written, list) else [written]
        reply, asked = played(prompt, script)
        assert (len(asked), reply.ended_by) == (len(script), "answer"), "the script is played to its end"
        return reply
    return said(written)


def said(step):
    if isinstance(step, str):
        return Reply(text=step, finish_reason="stop")
    text, calls = ("", step) if isinstance(step, list) else (step["text"], step.get("calls", []))
    made = (ToolCall(name=call["name"], arguments=json.dumps(call["arguments"])) for call in calls)
    return Reply(text=text, tool_calls=tuple(made), finish_reason="tool_calls" if calls else "stop")


def request_of(prompt):
    return request_for(Cell(prompt=prompt, target=Target(provider="p", model="m")), Settings())


def played(prompt, script):
    """Return the exchange with a model that plays a script, its last step again and again, and its requests."""
    asked = []
    steps = chain(script, repeat(script[-1]))

    async def answer(request):
        asked.append(request)
        return CallResult(result=said(next(steps)), timing=TIMING)

    result = asyncio.run(hold_exchange(request_of(prompt), answer)).result
    assert isinstance(result, Reply)
    return result, asked


def prompts_of(*names):
    return [prompt for name in names for prompt in SUITES[name].prompts]


def ids_of(suite):
    return [*dict.fromkeys(prompt.pressure_of or prompt.id for prompt in suite.prompts)]
