"""Run directories as a session leaves them, made from rows."""

import json
from collections import Counter
from dataclasses import asdict

from pytest_openclaw.parts.gates import GateSettings
from pytest_openclaw.util.json_text import line_of
from pytest_openclaw.values.requests import Target
from pytest_openclaw.values.rows import to_row
from pytest_openclaw.values.settings import Concurrency
from tests.unit.reports.summaries import record

A = Target(provider="lab", model="a")
B = Target(provider="lab", model="b", thinking_level="low")
SUITE = "benchmarks/prompts_x.json"


def row(target, prompt_id, **changes):
    return record(target, **{"prompt_id": prompt_id, "suite": SUITE, "run_id": "r", **changes})


def definition(prompt_id, **changes):
    base = {
        "suite": SUITE,
        "id": prompt_id,
        "name": prompt_id,
        "prompt": f"Do {prompt_id}.",
        "validator": {"type": "noop"},
        "expected_tool_calls": None,
        "category": None,
        "tags": [],
        "system": None,
        "max_output_tokens": 1024,
        "timeout_s": None,
        "extra": {},
    }
    return {**base, **changes}


LAB = {"kind": "ollama_openai", "base_url": "http://127.0.0.1:1/v1"}


def config_of(run_id, n_selected, prompts, **changes):
    return {
        "schema_version": 1,
        "run_id": run_id,
        "models": list(dict.fromkeys(target.model for target in n_selected)),
        "targets": [{**asdict(target), "n_cells": n} for target, n in n_selected.items()],
        "providers": {"lab": LAB},
        "temperature": 0,
        "thinking_room_tokens": {"low": 1024},
        "stream": True,
        "timeout_s": 300.0,
        "retries": 5,
        "concurrency": asdict(Concurrency()),
        "verdict": "cells",
        "gates": GateSettings().to_json(),
        "fail_unavailable": False,
        "prompts": [*prompts],
        **changes,
    }


def store(
    path,
    records,
    *,
    n_selected=None,
    prompts=None,
    host="box",
    serving=None,
    snapshots=None,
    tail=b"",
    inventory=None,
    **config,
):
    counted = n_selected or Counter(one.target for one in records)
    if prompts is None:
        prompts = [definition(prompt_id) for prompt_id in dict.fromkeys(one.prompt_id for one in records)]
    facts = {label: dict(one) for label, one in (serving or {}).items()}
    for (target, moment), values in (snapshots or {}).items():
        facts.setdefault(target.label, {})[f"resources_{moment}"] = values
    described = {"run_id": path.name, "host": {"name": host}, "memory_total_bytes": 8, "targets": facts}
    path.mkdir(parents=True)
    (path / "config.json").write_text(json.dumps(config_of(path.name, counted, prompts, **config)))
    (path / "inventory.json").write_text(json.dumps({**described, **(inventory or {})}))
    lines = b"".join(line_of(to_row(one)) + b"\n" for one in records)
    (path / "results.jsonl").write_bytes(lines + tail)
    return path


def files_of(path):
    return {file.name: file.read_bytes() for file in path.iterdir()}


def load(path, name):
    return json.loads((path / name).read_text("utf-8"))
