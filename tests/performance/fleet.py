"""A large run as the shards of an array job leave it: so many parts, realistic rows, complete files."""

from __future__ import annotations

import hashlib
import json
import random
from collections import Counter
from collections.abc import Iterator, Sequence
from contextlib import ExitStack
from dataclasses import asdict, dataclass, replace
from pathlib import Path
from typing import Any

from pytest_openclaw.core.json_lines import line_of
from pytest_openclaw.types.records import Record
from pytest_openclaw.types.rows import to_row
from pytest_openclaw.types.run_config import CONFIG_VERSION
from pytest_openclaw.types.settings import Concurrency, Gates
from pytest_openclaw.types.targets import Target

SUITES = ("benchmarks/prompts_core.toml", "benchmarks/prompts_native.toml", "benchmarks/prompts_safety.toml")
TOOLS = ("read", "write", "edit", "exec", "process", "web_search", "web_fetch", "message")
MODELS = (
    "qwen3:8b", "llama3.2:3b", "gpt-oss:20b", "mistral-small:24b", "gemma3:12b",
    "phi4:14b", "granite3.3:8b", "smollm2:135m", "deepseek-r1:7b", "hermes3:8b",
)  # fmt: skip
REPEATS = 20
BEGAN_MS = 1_795_000_000_000
_SENTENCE = "the file was read and its third line says that every backup of May is kept for ninety days"
_WORDS = _SENTENCE.split()
# Numbers and texts of a row that differ from cell to cell; a template has them as markers.
_NUMBERS = {
    "started_at_ms": 9_000_000_000_001, "ended_at_ms": 9_000_000_000_002, "e2e_ms": 9_000_000_000_003,
    "ttft_ms": 9_000_000_000_004, "output_tokens": 9_000_000_000_005, "repeat": 9_000_000_000_006,
    "tokens_per_s": 9_000_000_000_007.5, "queue_ms": 9_000_000_000_008,
}  # fmt: skip
_ANSWER = "<<answer>>"


@dataclass(frozen=True, kw_only=True)
class Fleet:
    """Run directories that together are one run.

    Attributes:
        paths: of the parts.
        n_rows: in all.
        n_bytes: of all rows.
    """

    paths: Sequence[Path]
    n_rows: int
    n_bytes: int


def write_fleet(folder: Path, n_rows: int, n_parts: int) -> Fleet:
    """Write the parts of a run; each cell is in one of them, and the same arguments write the same bytes.

    Args:
        folder: the folder of runs.
        n_rows: a multiple of the number of targets and repeats, rounded up to one.
        n_parts: so many directories.
    """
    targets = [Target(provider="ollama_openai", model=model) for model in MODELS]
    n_prompts = -(-n_rows // (len(targets) * REPEATS))
    prompts = [_definition(number) for number in range(n_prompts)]
    paths = [folder / f"part-{number:02d}" for number in range(1, n_parts + 1)]
    counts: list[Counter[Target]] = [Counter() for _ in paths]
    n_bytes = 0
    with ExitStack() as opened:
        for path in paths:
            path.mkdir(parents=True)
        files = [opened.enter_context((path / "results.jsonl").open("wb", 1 << 16)) for path in paths]
        for number, (target, line) in enumerate(_lines(targets, prompts)):
            # A step that shares no factor with the repeats, so that each part has cells of all prompts.
            part = (number * 37 + number // REPEATS) % n_parts
            files[part].write(line)
            counts[part][target] += 1
            n_bytes += len(line)
    for number, (path, counted) in enumerate(zip(paths, counts, strict=True), 1):
        _write_about(path, f"{number}/{n_parts}", counted, prompts)
    return Fleet(paths=paths, n_rows=sum(map(Counter.total, counts)), n_bytes=n_bytes)


def _definition(number: int) -> dict[str, Any]:
    suite = SUITES[number % 3]
    tool = TOOLS[number % len(TOOLS)]
    return {
        "suite": suite,
        "id": f"P{number}",
        "name": f"{tool}_{number}",
        "prompt": f"Case {number}. " + " ".join([_SENTENCE] * 4),
        "validator": {"type": "tool_invocation", "expected_tools": [tool]}
        if number % 3
        else {"type": "exact", "value": f"HEARTBEAT_OK {number}"},
        "expected_tool_calls": [tool] if number % 3 else None,
        "category": f"category {number % 11}",
        "tags": [],
        "system": None,
        "max_output_tokens": 1024,
        "timeout_s": None,
        "extra": {},
    }


def _lines(targets: Sequence[Target], prompts: Sequence[dict[str, Any]]) -> Iterator[tuple[Target, bytes]]:
    """Yield the row of each cell, target by target, as a plan has them."""
    chance = random.Random(21)
    clock_ms = BEGAN_MS
    for place, target in enumerate(targets):
        templates = [[_template(record) for record in _outcomes(target, prompt)] for prompt in prompts]
        weights = [70 - 5 * place, 20 + 4 * place, 9, 1]
        for repeat in range(1, REPEATS + 1):
            for forms in templates:
                (template,) = chance.choices(forms, weights)
                e2e_ms = int(chance.lognormvariate(7.5, 0.6))
                clock_ms += e2e_ms
                values = {
                    "started_at_ms": clock_ms,
                    "ended_at_ms": clock_ms + e2e_ms,
                    "e2e_ms": e2e_ms,
                    "ttft_ms": e2e_ms // 7,
                    "output_tokens": e2e_ms // 40 + 1,
                    "repeat": repeat,
                    "tokens_per_s": round(chance.uniform(20, 90), 2),
                    "queue_ms": e2e_ms % 11,
                    "answer": " ".join(chance.choices(_WORDS, k=40)),
                }
                yield target, (template % values).encode()


def _outcomes(target: Target, prompt: dict[str, Any]) -> list[Record]:
    """Return how a cell may end: right, missed, without a call or an answer, not at all."""
    tools = prompt["expected_tool_calls"]
    call = {"id": "call_1", "name": tools[0], "arguments": json.dumps({"path": _ANSWER})} if tools else None
    base = Record(
        run_id="part",
        provider=target.provider,
        model=target.model,
        thinking_level=None,
        prompt_id=prompt["id"],
        prompt_name=prompt["name"],
        suite=prompt["suite"],
        category=prompt["category"],
        availability_status="ok",
        success=True,
        objective_pass=True,
        raw_output=f"I did it: {_ANSWER}",
        parsed_output={"expected": tools, "found": tools},
        input_tokens=900 + int(prompt["id"][1:]) % 300,
        cached_tokens=0,
        cost_usd=0.0,
        attempts=1,
        in_flight=1,
        finish_reason="stop",
        host="node",
        effective_model=target.model,
        tools_offered=24 if tools else None,
        tool_calls=(tools[0],) if tools else (),
        tool_call_count=1 if tools else 0,
        tool_use_success=bool(tools),
        tool_call_details=(call,) if call else (),
        tool_outcome="valid" if tools else None,
        tool_demand="call" if tools else None,
        tools_tested=(tools[0],) if tools else (),
        **_NUMBERS,  # type: ignore[arg-type]
    )
    missed = replace(
        base,
        objective_pass=False,
        violation=f'"{_ANSWER}" is not "HEARTBEAT_OK"',
        tool_use_success=False,
        tool_outcome="bad_arguments" if tools else None,
    )
    silent = replace(
        missed,
        raw_output=f"I have read {_ANSWER}.",
        violation="no expected tool was called",
        tool_calls=(),
        tool_call_count=0,
        tool_call_details=(),
        tool_outcome="no_call" if tools else None,
    )
    fault = replace(
        silent,
        availability_status="error",
        success=False,
        objective_pass=None,
        violation=None,
        failure_type="timeout",
        fault_message="no end within 300 s",
        raw_output="",
        parsed_output=None,
        tool_outcome=None,
        finish_reason=None,
    )
    return [base, missed, silent, fault]


def _template(record: Record) -> str:
    """Return a row's line in which the markers are named fields, for `%`."""
    line = line_of(to_row(record)).decode() + "\n"
    line = line.replace("%", "%%")
    for name, marker in _NUMBERS.items():
        line = line.replace(str(marker), f"%({name})s")
    return line.replace(_ANSWER, "%(answer)s")


def _write_about(path: Path, shard: str, counted: Counter[Target], prompts: Sequence[dict[str, Any]]) -> None:
    """Write `config.json` and `inventory.json` of a part."""
    config = {
        "schema_version": CONFIG_VERSION,
        "run_id": path.name,
        "models": [target.model for target in counted],
        "targets": [{**asdict(target), "n_cells": n} for target, n in counted.items()],
        "providers": {"ollama_openai": {"kind": "ollama_openai", "base_url": "http://127.0.0.1:11434/v1"}},
        "temperature": 0,
        "thinking_room_tokens": {"low": 1024},
        "repeat": REPEATS,
        "shard": shard,
        "divided_sha256": hashlib.sha256(b"all cells").hexdigest(),
        "stream": True,
        "timeout_s": 300.0,
        "retries": 5,
        "concurrency": asdict(Concurrency()),
        "verdict": "gate",
        "gates": asdict(Gates()),
        "fail_unavailable": False,
        "prompts": prompts,
    }
    inventory = {
        "run_id": path.name,
        "host": {"name": f"node-{shard.partition('/')[0]}"},
        "memory_total_bytes": 64 * 2**30,
        "targets": {target.label: {"server": {"version": "0.9.1"}} for target in counted},
    }
    (path / "config.json").write_text(json.dumps(config), "utf-8")
    (path / "inventory.json").write_text(json.dumps(inventory), "utf-8")
