"""A large run as the shards of an array job leave it, merged by the command."""

import json
import random
import sys
from dataclasses import replace

from pytest_openclaw.util.json_text import line_of
from pytest_openclaw.values.rows import from_row, to_row
from tests.performance.measures import Sample
from tests.performance.programs import OURS, execute

MODELS, REPEATS, SHARDS = [f"model-{number}" for number in range(10)], 20, 64
TEXT = "The file was read and its third line says that every backup of May is kept for ninety days. " * 4


def write_shards(run, into):
    """Write a run of `MODELS` and `REPEATS` as shards, from the run of one model; later models fail more."""
    chance, config = random.Random(21), json.loads((run / "config.json").read_bytes())
    cells = [from_row(json.loads(line)) for line in (run / "results.jsonl").read_bytes().splitlines()]
    prompts = {prompt["id"]: prompt for prompt in config["prompts"]}
    for number in range(1, SHARDS + 1):
        ours, path = cells[number - 1 :: SHARDS], into / f"part-{number}"
        target = config["targets"][0] | {"n_cells": len(ours) * REPEATS}
        about = {
            "run_id": path.name, "shard": f"{number}/{SHARDS}", "divided_sha256": "0" * 64, "models": MODELS,
            "repeat": REPEATS, "prompts": [prompts[cell.prompt_id] for cell in ours],
            "targets": [target | {"model": model} for model in MODELS],
        }  # fmt: skip
        path.mkdir(parents=True)
        (path / "config.json").write_text(json.dumps(config | about), "utf-8")
        each = [(i, r, cell) for i in range(len(MODELS)) for r in range(1, REPEATS + 1) for cell in ours]
        with (path / "results.jsonl").open("wb") as file:
            for place, repeat, cell in each:
                passed, ms = chance.random() > place / 15, int(chance.lognormvariate(7.5, 0.6))
                call = {"id": "call_1", "name": "read", "arguments": json.dumps({"path": f"{TEXT} {ms}"})}
                record = replace(
                    cell, run_id=path.name, model=MODELS[place], repeat=repeat, e2e_ms=ms, ttft_ms=ms // 7,
                    raw_output=f"{TEXT} {ms}", violation=None if passed else f"{TEXT} {ms} is wrong",
                    objective_pass=passed, tool_use_success=passed, tools_offered=24, tool_demand="call",
                    tool_calls=("read",), tool_call_count=1, tool_call_details=(call,), tools_tested=("read",),
                    tool_outcome="valid" if passed else "bad_arguments",
                )  # fmt: skip
                file.write(line_of(to_row(record)) + b"\n")


def fleet(bench):
    parts, n_rows = bench.home / "parts", bench.n(1_000_000)
    write_shards(bench.run(OURS, n_rows // (len(MODELS) * REPEATS), 8).folder / "runs/run", parts)
    words = ("pytest_openclaw", "merge", *sorted(map(str, parts.glob("part-*"))), "--into", "./whole")
    cost, figure = execute([sys.executable, "-m", *words], parts), f"merge of {n_rows} rows"
    yield Sample(OURS.name, f"{figure}, minutes", cost.wall_s / 60, most=5)
    yield Sample(OURS.name, f"{figure}, GB of memory", cost.peak_mb / 1000, most=1.5)
