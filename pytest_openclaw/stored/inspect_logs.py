"""A stored run as logs of Inspect (inspect-ai), one for each target, in its JSON format of version 2.

A cell is a sample, a repeat an epoch, and the verdict a score: `C`, `I`, or none where nothing was judged.
Inspect documents the format: https://inspect.aisi.org.uk/eval-logs.html
"""

from __future__ import annotations

import json
import re
from collections import defaultdict
from contextlib import ExitStack
from datetime import UTC, datetime
from typing import TYPE_CHECKING, Any

from pytest_openclaw import __version__
from pytest_openclaw.core.files import replacing
from pytest_openclaw.recording.environment import file_names
from pytest_openclaw.stats.rates import is_judged
from pytest_openclaw.tools.thinking import split_thinking

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
    from pathlib import Path
    from typing import IO

    from pytest_openclaw.core.json_types import JsonObject
    from pytest_openclaw.stored.parts import PromptKey
    from pytest_openclaw.types.records import Record
    from pytest_openclaw.types.targets import Target

SCORE = "passed"
_STOPS = {
    "stop": "stop",
    "end_turn": "stop",
    "length": "max_tokens",
    "max_tokens": "max_tokens",
    "tool_calls": "tool_calls",
    "tool_use": "tool_calls",
    "content_filter": "content_filter",
}
"""The reasons of providers for the end of a reply, in Inspect's words; any other is `unknown`."""
_FIGURES = (
    "availability_status", "failure_type", "tool_outcome", "tool_calls", "tool_use_success", "category",
    "attempts", "e2e_ms", "ttft_ms", "tokens_per_s", "cost_usd", "effective_model", "host", "violation",
    "parsed_output",
)  # fmt: skip
"""Fields of a row in a sample's metadata, where Inspect has no place of its own for them."""


class _Counts:
    """What the head of a log says of its samples.

    Attributes:
        ids: of the samples, without repeats.
        n: cells, of which `n_judged` have a verdict and `n_passed` passed.
    """

    def __init__(self) -> None:
        self.ids: dict[str, None] = {}
        self.n = self.n_judged = self.n_passed = self.n_repeats = 0
        self.began_ms, self.ended_ms = 2**63, 0

    def add(self, record: Record) -> None:
        """Count a cell."""
        self.ids[_id(record)] = None
        self.n += 1
        self.n_judged += is_judged(record)
        self.n_passed += record.objective_pass is True
        self.n_repeats = max(self.n_repeats, record.repeat)
        self.began_ms = min(self.began_ms, record.started_at_ms)
        self.ended_ms = max(self.ended_ms, record.ended_at_ms)


def write_logs(
    folder: Path,
    run_id: str,
    records: Callable[[], Iterable[Record]],
    prompts: Mapping[PromptKey, JsonObject],
) -> list[Path]:
    """Write the logs, with one record in memory at a time, and return their files.

    The head of a log counts its samples, so the records are read twice.

    Args:
        folder: of the logs; it exists.
        run_id: the run's.
        records: reads whole ones, in any order.
        prompts: definitions by suite and id.

    Raises:
        OSError: they cannot be written; then none is.
    """
    files: dict[Target, Path] = {}
    counts: dict[Target, _Counts] = defaultdict(_Counts)
    for record in records():
        counts[record.target].add(record)
    with ExitStack() as opened:
        logs: dict[Target, IO[bytes]] = {}
        for target, name in file_names([*counts]).items():
            began = _time(counts[target].began_ms)
            files[target] = folder / f"{re.sub('[:+]', '-', began)}_{run_id}_{name}.json"
            logs[target] = opened.enter_context(replacing(files[target]))
            head = json.dumps(_head(run_id, target, counts[target]), ensure_ascii=False)
            logs[target].write(f'{head[:-1]}, "samples": ['.encode())
        written: set[Target] = set()
        for record in records():
            text = json.dumps(_sample(record, prompts.get((record.suite, record.prompt_id), {})))
            logs[record.target].write(f"{',' if record.target in written else ''}\n{text}".encode())
            written.add(record.target)
        for log in logs.values():
            log.write(b"\n]}\n")
    return [*files.values()]


def _head(run_id: str, target: Target, counted: _Counts) -> JsonObject:
    began, ended = _time(counted.began_ms), _time(counted.ended_ms)
    accuracy = counted.n_passed / counted.n_judged if counted.n_judged else None
    metrics = {} if accuracy is None else {"accuracy": {"name": "accuracy", "value": accuracy}}
    scores = [
        {
            "name": SCORE,
            "scorer": SCORE,
            "scored_samples": counted.n_judged,
            "unscored_samples": counted.n - counted.n_judged,
            "metrics": metrics,
        }
    ]
    return {
        "version": 2,
        "status": "success",
        "eval": {
            "eval_id": f"{run_id}:{target.label}",
            "run_id": run_id,
            "created": began,
            "task": run_id,
            "task_id": f"{run_id}:{target.label}",
            "dataset": {"name": run_id, "samples": len(counted.ids), "sample_ids": [*counted.ids]},
            "model": target.label,
            "config": {"epochs": counted.n_repeats},
            "packages": {"pytest-openclaw": __version__},
            "scorers": [{"name": SCORE}],
        },
        "plan": {"name": "plan", "steps": []},
        "results": {"total_samples": counted.n, "completed_samples": counted.n, "scores": scores},
        "stats": {"started_at": began, "completed_at": ended},
    }


def _sample(record: Record, definition: JsonObject) -> JsonObject:
    asked = [*_asked(definition)]
    said = [*_exchange(record)] if record.turns else [_reply(record.raw_output, record.tool_call_details)]
    last = next((one for one in reversed(said) if one["role"] == "assistant"), _reply("", ()))
    tokens = {name: getattr(record, name) or 0 for name in ("input_tokens", "output_tokens")}
    error = None
    if record.availability_status != "ok":
        message = f"{record.failure_type or record.availability_status}: {record.fault_message or ''}"
        error = {"message": message, "traceback": "", "traceback_ansi": ""}
    return {
        "id": _id(record),
        "epoch": record.repeat,
        "input": asked or "",
        "target": json.dumps(definition.get("validator"), ensure_ascii=False),
        "messages": [*asked, *said],
        "output": {
            "model": record.effective_model or record.model,
            "choices": [{"message": last, "stop_reason": _STOPS.get(record.finish_reason or "", "unknown")}],
            "usage": {**tokens, "total_tokens": sum(tokens.values())},
            "time": record.e2e_ms / 1000,
        },
        "scores": {SCORE: _score(record, last)} if is_judged(record) else None,
        "metadata": {name: getattr(record, name) for name in _FIGURES},
        "started_at": _time(record.started_at_ms),
        "completed_at": _time(record.ended_at_ms),
        "total_time": record.e2e_ms / 1000,
        "error": error,
    }


def _score(record: Record, last: JsonObject) -> JsonObject:
    content = last["content"]
    return {
        "value": "C" if record.objective_pass else "I",
        "answer": content if isinstance(content, str) else content[-1]["text"],
        "explanation": record.violation or record.failure_type,
    }


def _asked(definition: JsonObject) -> Iterator[JsonObject]:
    if isinstance(system := definition.get("system"), str):
        yield {"role": "system", "content": system}
    if isinstance(prompt := definition.get("prompt"), str):
        yield {"role": "user", "content": prompt}


def _exchange(record: Record) -> Iterator[JsonObject]:
    for turn in record.turns or ():
        if isinstance(turn.get("user"), str):
            yield {"role": "user", "content": turn["user"]}
        yield _reply(turn["text"], turn["calls"], turn.get("reasoning") or "")
        for call in turn["calls"]:
            if isinstance(call.get("result"), str):
                result = {"content": call["result"], "tool_call_id": call.get("id"), "function": call["name"]}
                yield {"role": "tool", **result}


def _reply(raw: str, calls: Sequence[Mapping[str, Any]], reasoning: str = "") -> JsonObject:
    thinking, answer = (reasoning, raw) if reasoning else split_thinking(raw)
    parts = [{"type": "reasoning", "reasoning": thinking}, {"type": "text", "text": answer}]
    reply: JsonObject = {"role": "assistant", "content": parts if thinking else answer}
    if calls:
        reply["tool_calls"] = [_call(call) for call in calls]
    return reply


def _call(call: Mapping[str, Any]) -> JsonObject:
    """Return a call; arguments that are no JSON object are kept in words, with what is wrong."""
    made = {"id": call.get("id") or "", "function": call["name"], "type": "function"}
    try:
        arguments = json.loads(call["arguments"])
    except (ValueError, RecursionError):
        arguments = None
    if isinstance(arguments, dict):
        return {**made, "arguments": arguments}
    return {**made, "arguments": {}, "parse_error": f"no JSON object: {call['arguments']}"}


def _id(record: Record) -> str:
    return f"{record.suite}::{record.prompt_id}"


def _time(ms: int) -> str:
    return datetime.fromtimestamp(ms / 1000, UTC).isoformat(timespec="seconds")
