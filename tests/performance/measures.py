"""The measures: each yields the figures of one pass."""

import json
import random
import sys
from dataclasses import replace
from statistics import median, quantiles
from typing import NamedTuple

from pytest_openclaw.util.json_text import line_of
from pytest_openclaw.values.rows import from_row, to_row
from tests.performance.programs import LOOP, OURS, execute


class Sample(NamedTuple):
    """A figure of one pass, with its unit; a target is the most or the least that it may be."""

    program: str
    figure: str
    value: float
    most: float | None = None
    least: float | None = None


def per_cell_ms(one_s, all_s, n):
    return (all_s - one_s) / (n - 1) * 1000


def cost(bench):
    """What a cell costs beyond the start if the server answers at once, and a small run from cold."""
    n, cold, took = bench.n(1000), bench.n(300), {}
    for program in bench.programs:
        one, few, all_ = (bench.run(program, number, 8).cost for number in (1, cold, n))
        cpu_ms, wall_ms = per_cell_ms(one.cpu_s, all_.cpu_s, n), per_cell_ms(one.wall_s, all_.wall_s, n)
        yield Sample(program.name, "CPU ms a cell", cpu_ms, most=1.5 if program is OURS else None)
        yield Sample(program.name, "wall ms a cell", wall_ms)
        yield Sample(program.name, f"{cold} cells from cold, s", few.wall_s)
        took[program] = few.wall_s
    for peer in (one for one in took if one not in (OURS, LOOP)):
        figure = f"{cold} cells from cold, share of the time of {peer.name}"
        yield Sample(OURS.name, figure, took[OURS] / took[peer], most=0.2)


def window(bench):
    for level in (1, 8):
        for program in bench.programs:
            done = bench.run(program, bench.n(16) * level, level, ",ttft=100,itl=5,n=20")
            share, least = ideal_share(done.log, bench.n(16)), 0.98 if program is OURS else None
            yield Sample(program.name, f"share of the ideal at {level}", share, least=least)


def ideal_share(log, rounds):
    """Return the ideal time of all rounds, divided by first request to last byte by the server's clock."""
    began, ended = min(one.received for one in log.values()), max(one.last for one in log.values())
    return rounds * 0.195 / (ended - began)


def errors(bench):
    """The difference between the reported times and the server's own; an answer takes 280 to 480 ms."""
    for level in (1, 8):
        busy = replace(OURS, busy_ms=190 / level)  # half of the time
        for program in (*(one for one in bench.programs if one in (OURS, LOOP)), busy):
            done = bench.run(program, bench.n(24) * level, level, ",ttft=100,jitter=200,itl=20,n=10")
            for name, found in errors_of(done).items():
                figure = f"error of {name} at {level}{', tests busy' if program is busy else ''}"
                p95, most = quantiles(found, n=20, method="inclusive")[-1], {OURS: 5, busy: 8}.get(program)
                yield Sample(program.name, f"{figure}, median ms", median(found), most=most and 1)
                yield Sample(program.name, f"{figure}, p95 ms", p95, most=most)


def errors_of(done):
    pairs = [(times, done.log[item]) for item, times in done.times.items()]
    names = enumerate(("ttft_ms", "e2e_ms"))
    return {name: [abs(t[i] - (log[i + 1] - log.received) * 1000) for t, log in pairs] for i, name in names}


def start(bench):
    """One cell from cold, and what the plugin adds to a session without benchmarks; sessions by turns."""
    cells, with_, without = [], [], []
    for _ in range(bench.n(9)):
        without.append(bench.plain_session("-p", "no:openclaw").wall_s)
        with_.append(bench.plain_session().wall_s)
        cells.append(bench.run(OURS, 1, 8).cost.wall_s)
    added_ms = median(1000 * (a - b) for a, b in zip(with_, without, strict=True))
    yield Sample(OURS.name, "one cell, × plain pytest", median(cells) / median(without), most=2)
    yield Sample(OURS.name, "added to a plain session, ms", added_ms, most=20)


def growth(bench):
    """Ten times the cells: the CPU time of each, and memory above a session of one plain test."""
    few, many = bench.n(1000), bench.n(10_000)
    one, less, more = (bench.run(OURS, n, 8).cost for n in (1, few, many))
    ratio = per_cell_ms(one.cpu_s, more.cpu_s, many) / per_cell_ms(one.cpu_s, less.cpu_s, few)
    above_mb = more.peak_mb - bench.plain_session("-p", "no:openclaw").peak_mb
    yield Sample(OURS.name, f"CPU of a cell, {many} cells ÷ {few} cells", ratio, most=1.1)
    yield Sample(OURS.name, f"MB of {many} cells above an empty session", above_mb, most=150)


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
