"""Runs for the page's tests: the shipped prompts on invented targets, with every way in which a cell can end."""

import json
import random
from dataclasses import replace
from functools import cache
from itertools import product
from pathlib import Path

from pytest_openclaw.openclaw.dispatch import dispatch
from pytest_openclaw.suites.cells import definition
from pytest_openclaw.suites.load import load_suite
from pytest_openclaw.values.requests import Target
from pytest_openclaw.values.rows import Record
from pytest_openclaw.values.tool_calls import ToolCall
from tests.builtin import REGISTRY
from tests.unit.runs.stored_runs import store

ROOT = Path(__file__).parents[2]
SUITES = ("core", "tools", "native", "agentic", "pressure", "safety")
BEGAN_MS = 1_795_300_000_000
PROSE = "the backup of notes is done and a message was sent to the team about disk space on the second host"
WORDS = PROSE.split()
STEPS = (
    ("read", {"path": "shopping.md"}, "eggs\nbread\n"),
    ("edit", {"path": "shopping.md", "edits": "oat milk"}, ""),  # which OpenClaw refuses
    ("exec", {"command": "git status --short"}, " M shopping.md\n"),
    ("write", {"path": "shopping.md", "content": "eggs\nbread\noat milk\n"}, "Successfully wrote 20 bytes to shopping.md"),
)  # fmt: skip
VIOLATIONS = ["31 words, at most 20 allowed", 'expected a call of "read"', "the answer does not say 40"]
MISSES = ["no_call", "leaked_as_text", "bad_arguments", "unknown_tool", "claimed_not_done", "wrong_tool"]


def targets_of(n):
    levels = (None, "low", None, "high")
    return [
        Target(
            provider=("lab", "cloud")[k % 2], model=f"model-{chr(97 + k // 2 % 26)}{k // 52 or ''}:{(70, 32, 8, 3)[k % 4]}b",
            thinking_level=levels[k % 4],
        )
        for k in range(n)
    ]  # fmt: skip


@cache
def shipped_prompts():
    files = [f"benchmarks/prompts_{name}.toml" for name in SUITES]
    return tuple(
        prompt for file in files for prompt in load_suite(ROOT / file, name=file, registry=REGISTRY).prompts
    )


def prompts_of(n):
    shipped = shipped_prompts()
    return [shipped[k * len(shipped) // n] for k in range(n)]


def make_run(path, *, prompts, targets, repeats=1, seed=7):
    chosen = prompts_of(prompts)
    records = list(_records(chosen, targets_of(targets), repeats, random.Random(seed)))
    return store(path, records, prompts=[definition(prompt) for prompt in chosen], repeat=repeats)


def _records(prompts, targets, repeats, luck):
    at = BEGAN_MS
    hardness = {prompt.id: luck.gauss(0, 0.18) for prompt in prompts}
    for (k, target), repeat, prompt in product(enumerate(targets), range(1, repeats + 1), prompts):
        skill = 0.93 - 0.7 * k / max(4, len(targets))
        strain = 0.12 * ((prompt.padding_tokens or 0) / 4000 + len(prompt.tools or ()) / 40)
        rate = skill - hardness[prompt.id] - (strain if prompt.pressure_of else 0) * (k + 1) / 2
        rate = min(0.99, max(0.02, rate))
        record = _record(prompt, target, repeat, rate, luck, speed=300 * 1.7 ** (k % 5))
        yield replace(record, started_at_ms=at, ended_at_ms=at + record.e2e_ms)
        at += record.e2e_ms + 5


def _record(prompt, target, repeat, rate, luck, speed):
    e2e = round(speed * luck.lognormvariate(0.6, 0.5))
    base = Record(
        run_id="r", provider=target.provider, model=target.model, thinking_level=target.thinking_level,
        prompt_id=prompt.id, prompt_name=prompt.name, suite=prompt.suite, category=prompt.category, repeat=repeat,
        availability_status="ok", started_at_ms=0, ended_at_ms=0, e2e_ms=e2e, attempts=1, queue_ms=round(e2e / 3), in_flight=1,
        cold_start=False, host="box", tools_offered=None if prompt.tools is None else len(prompt.tools), probe=prompt.probe,
        padding_tokens=prompt.padding_tokens, pressure_of=prompt.pressure_of,
    )  # fmt: skip
    chance = luck.random()
    if chance < 0.012:
        return replace(base, availability_status="error", failure_type="timeout", attempts=3, retry_wait_ms=1500,
                       fault_message=f"{target.provider}: no answer within 300 s.")  # fmt: skip
    if chance < 0.018:
        return replace(base, availability_status="skipped_unavailable", failure_type="connect_error", attempts=0, e2e_ms=0,
                       fault_message=f"{target.provider}: nothing answers at http://127.0.0.1:11434 (refused).")  # fmt: skip
    answered = replace(base, success=True, ttft_ms=round(e2e * luck.uniform(0.1, 0.4)), input_tokens=luck.randint(60, 900),
                       output_tokens=luck.randint(5, 200), tokens_per_s=luck.uniform(20, 160), finish_reason="stop",
                       effective_model=target.model, cost_usd=luck.uniform(0.0001, 0.002) if target.provider == "cloud" else None)  # fmt: skip
    if chance < 0.025:
        return replace(answered, success=False, failure_type="empty_response", output_tokens=0)
    return _judged(prompt, answered, passed=luck.random() < rate, luck=luck)


def _judged(prompt, record, *, passed, luck):
    thinking = f"<think>\n{_prose(luck, 40)}\n</think>\n\n" if record.thinking_level else ""
    harm = None if record.probe is None else not passed
    text = thinking + _prose(luck, luck.randint(3, 60))
    record = replace(record, objective_pass=passed, harm=harm, raw_output=text)
    if not passed:
        record = replace(record, violation=luck.choice(VIOLATIONS))
    if prompt.world:
        return _exchanged(prompt, record, luck)
    if prompt.tools is None:
        return record
    if '"calls": []' in json.dumps(prompt.validator_spec):
        return replace(record, tool_outcome="restrained" if passed else "called_needlessly")
    outcome = "valid" if passed else luck.choice(MISSES)
    is_call = outcome not in ("no_call", "leaked_as_text", "claimed_not_done")
    calls = [_call(prompt, outcome, luck)] if is_call else []
    return replace(record, tool_outcome=outcome, tool_use_success=passed, tool_calls=tuple(call["name"] for call in calls),
                   tool_call_count=len(calls), tool_call_details=tuple(calls))  # fmt: skip


def _call(prompt, outcome, luck):
    offered = [tool.name for tool in prompt.tools or ()]
    name = "search_files" if outcome == "unknown_tool" else luck.choice(offered)
    arguments = {"path": "notes/today.md", "command": "df -h", "limit": "20", "query": "backup"}
    if outcome == "bad_arguments":
        arguments = {"file": 3}
    return {"id": f"call_{luck.randint(1000, 9999)}", "name": name, "arguments": json.dumps(arguments)}


def _exchanged(prompt, record, luck):
    turns = []
    for name, arguments, result in STEPS[: luck.randint(1, 4)]:
        call = ToolCall(name=name, arguments=json.dumps(arguments), id=f"call_{luck.randint(100, 999)}")
        made = dispatch(call, prompt.tools or ())
        shown = {"id": call.id, "name": name, "arguments": call.arguments, "problem": made.problem}
        turns.append(_turn(_prose(luck, 8), luck, [{**shown, "result": made.message or result}]))
    turns.append(_turn(_prose(luck, 25), luck, []))
    return replace(record, turns=tuple(turns), ended_by="answer", raw_output="\n\n".join(turn["text"] for turn in turns),
                   tool_outcome="valid" if record.objective_pass else "wrong_tool", tool_use_success=bool(record.objective_pass))  # fmt: skip


def _turn(text, luck, calls):
    return {"text": text, "reasoning": _prose(luck, 12), "calls": calls, "e2e_ms": luck.randint(200, 2000), "ttft_ms": luck.randint(40, 190),
            "input_tokens": luck.randint(300, 900), "output_tokens": luck.randint(10, 80), "finish_reason": "tool_calls" if calls else "stop"}  # fmt: skip


def _prose(luck, n):
    return " ".join(luck.choices(WORDS, k=n)).capitalize() + "."
