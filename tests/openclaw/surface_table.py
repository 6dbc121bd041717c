"""`python -m tests.openclaw.surface_table FOLDER`: what the surface costs the embedded model, as a table.

Asks the native suite on each surface and through the real agent, each as a run in FOLDER, and writes the table of
docs/how-to/surface.md from `surface_table.json` beside this file. A run that was interrupted is resumed. OpenClaw
is taken from OPENCLAW_TEST_OPENCLAW_DIR.
"""

from __future__ import annotations

import argparse
import asyncio
import json
import os
import re
import shutil
import subprocess
import sys
import tomllib
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, replace
from pathlib import Path
from statistics import median
from typing import Any

from pytest_openclaw.providers.llama_cpp.provider import engine_spec
from pytest_openclaw.providers.llama_cpp.supervisor import EngineHandle, acquire
from pytest_openclaw.providers.llama_cpp.weights import EMBEDDED_MODEL
from pytest_openclaw.stats.compared_runs import compare_records
from pytest_openclaw.stats.pairing import Obstacles
from pytest_openclaw.stats.rates import is_judged
from pytest_openclaw.stats.run_comparison import Measured
from pytest_openclaw.stored.baseline import read_measured
from tests.openclaw.real import FOLDER_ENV, RealOpenClaw, find_real_openclaw

REPOSITORY = Path(__file__).parents[2]
SUITE = REPOSITORY / "benchmarks/prompts_native.toml"
PAGE = REPOSITORY / "docs/how-to/surface.md"
KEPT = Path(__file__).with_name("surface_table.json")
CONTEXT_TOKENS = 16_384
TIMEOUT_S = 1200
_BLOCK = re.compile(
    r"(?<=<!-- Written by `python -m tests.openclaw.surface_table`. -->\n\n).*?(?=\nRead it as follows)",
    re.DOTALL,
)


@dataclass(frozen=True, kw_only=True)
class Column:
    """One way of asking the model.

    Attributes:
        name: of its run; `title` is its name on the page.
        arguments: of pytest, beside the model.
        is_agent: whether the real agent asks.
    """

    name: str
    title: str
    arguments: tuple[str, ...] = ()
    is_agent: bool = False


ON_OPENCLAW = "--openclaw-surface=openclaw"
COLUMNS = (
    Column(name="listed", title="`listed`"),
    Column(
        name="substitute",
        title="`openclaw`, substitute",
        arguments=(ON_OPENCLAW, "--openclaw-surface-from=substitute"),
    ),
    Column(
        name="captured",
        title="`openclaw`, captured",
        arguments=(ON_OPENCLAW, "--openclaw-surface-from=installed"),
    ),
    Column(name="agent", title="`openclaw_agent`", arguments=(ON_OPENCLAW,), is_agent=True),
)
PAIRS = (
    *(("listed", column.name) for column in COLUMNS if column.name != "listed"),
    ("substitute", "captured"),
    ("captured", "agent"),
)


def main(arguments: Sequence[str] | None = None) -> int:
    """Ask, compare, and write the table."""
    parser = argparse.ArgumentParser(prog="python -m tests.openclaw.surface_table", description=__doc__)
    parser.add_argument("folder", type=Path, help="the folder of the runs; those in it are not asked again")
    names = [column.name for column in COLUMNS]
    parser.add_argument("--columns", nargs="+", choices=names, default=names, help="ask these alone")
    parser.add_argument("--every", type=int, default=1, metavar="N", help="ask every Nth prompt of the suite")
    options = parser.parse_args(arguments)
    openclaw = find_real_openclaw()
    if openclaw is None:
        sys.exit(f"{FOLDER_ENV} names no folder with OpenClaw; install_openclaw.py fills one.")
    for column in COLUMNS:
        if column.name in options.columns:
            ask(column, options.folder, openclaw, _prompt_ids()[:: options.every])
    kept = table_of(options.folder / "runs")
    KEPT.write_text(f"{json.dumps(kept, indent=1, ensure_ascii=False)}\n", encoding="utf-8")
    PAGE.write_text(with_table(PAGE.read_text("utf-8"), load_table()), encoding="utf-8")
    return 0


# --- asking ---------------------------------------------------------------------------------------


def ask(column: Column, folder: Path, openclaw: RealOpenClaw, prompts: Sequence[str]) -> None:
    """Ask these prompts, or those of them that an interrupted run has not asked."""
    folder.mkdir(parents=True, exist_ok=True)
    (folder / "pytest.ini").write_text(
        f"[pytest]\nopenclaw_suites = .\nopenclaw_llama_cpp_num_ctx = {CONTEXT_TOKENS}\n", "utf-8"
    )
    shutil.copy(SUITE, folder)
    is_started = (folder / "runs" / column.name).is_dir()
    run = [f"--openclaw-{'resume' if is_started else 'run-id'}={column.name}"]
    run += [f"--openclaw-prompts={','.join(prompts)}", *column.arguments]
    environ = {**os.environ, "OPENCLAW_AGENT_COMMAND": openclaw.command}
    if not column.is_agent:
        _run(folder, environ, [*run, f"--openclaw-models=llama_cpp/{EMBEDDED_MODEL}"])
        return
    with _engine(folder) as engine:
        environ |= {
            "PATH": openclaw.environ["PATH"],
            "OPENCLAW_AGENT_BASE_URL": f"{engine.url}/v1",
            "OPENCLAW_AGENT_API_KEY": engine.token,
        }
        _run(folder, environ, [*run, f"--openclaw-models=openclaw_agent/local/{EMBEDDED_MODEL}"])


@contextmanager
def _engine(folder: Path) -> Iterator[EngineHandle]:
    """Serve the model as `llama_cpp` does on `openclaw`, at an address that the agent can be given."""
    spec = engine_spec(EMBEDDED_MODEL, context_tokens=CONTEXT_TOKENS, cache_prompt=True)
    place = folder / "engine"
    place.mkdir(exist_ok=True)
    engine = asyncio.run(acquire(spec, place, environ=os.environ))
    try:
        yield engine
    finally:
        asyncio.run(engine.release())


def _prompt_ids() -> list[str]:
    return [prompt["id"] for prompt in tomllib.loads(SUITE.read_text("utf-8"))["prompts"]]


def _run(folder: Path, environ: Mapping[str, str], arguments: Sequence[str]) -> None:
    command = [sys.executable, "-m", "pytest", SUITE.name, "-q", "-p", "no:cacheprovider"]
    command += [f"--openclaw-timeout={TIMEOUT_S}", "--openclaw-verdict=gate", *arguments]
    print(" ".join(command), flush=True)
    ended = subprocess.run(command, cwd=folder, env=dict(environ), check=False)
    if ended.returncode not in (0, 1):
        sys.exit(f"pytest ended with {ended.returncode}")


# --- comparing ------------------------------------------------------------------------------------


def table_of(folder: Path) -> dict[str, Any]:
    """Return what is kept of the runs in a folder: each in figures, and the differences of pairs of them.

    The prompts are those that all of them ask; an interrupted run has not asked each of them.
    """
    paths = {column.name: folder / column.name for column in COLUMNS if (folder / column.name).is_dir()}
    runs = {name: read_measured(path) for name, path in paths.items()}
    common = set.intersection(*({prompt["id"] for prompt in run.config["prompts"]} for run in runs.values()))
    runs = {
        name: replace(run, records=tuple(one for one in run.records if one.prompt_id in common))
        for name, run in runs.items()
    }
    pairs = [(one, other) for one, other in PAIRS if one in runs and other in runs]
    return {
        "n_prompts": len(common),
        "n_in_suite": len(_prompt_ids()),
        "columns": {name: _figures(run, _group(paths[name])) for name, run in runs.items()},
        "differences": [
            {"from": one, "to": other, **_difference(runs[one], runs[other])} for one, other in pairs
        ],
    }


def load_table() -> dict[str, Any]:
    """Return what is kept."""
    found: dict[str, Any] = json.loads(KEPT.read_text("utf-8"))
    return found


def _group(run: Path) -> dict[str, Any]:
    (group,) = json.loads((run / "summary.json").read_text("utf-8"))["groups"]
    found: dict[str, Any] = group
    return found


def _figures(run: Measured, group: Mapping[str, Any]) -> dict[str, Any]:
    judged = [record for record in run.records if is_judged(record)]
    turn = group["openclaw_turn"] or {}
    release = (run.config.get("surface") or {}).get("release")
    outcomes = Counter(record.tool_outcome or "none" for record in judged)
    faults = Counter(record.failure_type or "" for record in run.records if not is_judged(record))
    return {
        "release": release,
        "n_cells": len(run.records),
        "n_judged": len(judged),
        "n_passed": sum(record.objective_pass is True for record in judged),
        "outcomes": dict(outcomes.most_common()),
        "not_answered": dict(faults.most_common()),
        "input_tokens": _median(record.input_tokens for record in judged),
        "output_tokens": _median(record.output_tokens for record in judged),
        "ttft_ms": _median(record.ttft_ms for record in judged),
        "tokens_per_s": group["prompt_tokens_per_s"],
        "turn": turn if turn.get("is_measured") else None,
    }


def _median(values: Iterable[int | None]) -> int | None:
    known = [value for value in values if value is not None]
    return round(median(known)) if known else None


def _difference(base: Measured, candidate: Measured) -> dict[str, Any]:
    """Compare pair by pair; see `VerdictChange`, from which these are."""
    pairs = [(one, other) for one in base.targets for other in candidate.targets]
    compared = compare_records(
        base.records, candidate.records, pairs, Obstacles(with_answering_model=False), baseline=base.run_id
    )
    (found,) = compared.targets
    return {
        "n_cells": found.verdicts.n_cells,
        "n_base": found.verdicts.n_base,
        "n_candidate": found.verdicts.n_candidate,
        "n_better": found.verdicts.n_better,
        "n_worse": found.verdicts.n_worse,
        "difference": found.verdicts.difference,
        "range_95": found.verdicts.range_95 and [found.verdicts.range_95.low, found.verdicts.range_95.high],
        "outcomes": [[one.outcome, one.n_base, one.n_candidate] for one in found.outcomes],
        "same_outcome": _same_outcome(base, candidate),
    }


def _same_outcome(base: Measured, candidate: Measured) -> int:
    """Count the prompts whose cells ended alike: same verdict and same outcome of tool use."""

    def ends(run: Measured) -> dict[str, object]:
        return {r.prompt_id: (r.objective_pass, r.tool_outcome) for r in run.records if is_judged(r)}

    one, other = ends(base), ends(candidate)
    return sum(one[prompt] == other[prompt] for prompt in one.keys() & other.keys())


# --- the page -------------------------------------------------------------------------------------


def with_table(page: str, table: Mapping[str, Any]) -> str:
    """Return the page with the table in its place."""
    return _BLOCK.sub(lambda _: render(table), page, count=1)


def render(table: Mapping[str, Any]) -> str:
    """Return both tables: each way of asking in figures, and what lies between two of them."""
    shown = [column for column in COLUMNS if column.name in table["columns"]]
    columns = [table["columns"][column.name] for column in shown]
    lines = [
        ("", *(column.title for column in shown)),
        ("---", *("---:" for _ in shown)),
        (
            "request of",
            *((column["release"] or "the suite").replace("openclaw-", "OpenClaw ") for column in columns),
        ),
        ("prompts asked", *(f"{column['n_cells']} of {table['n_prompts']}" for column in columns)),
        ("judged", *(f"{column['n_judged']}" for column in columns)),
        ("passed", *(f"**{column['n_passed']}**" for column in columns)),
        *(
            (f"`{outcome}`", *(f"{column['outcomes'].get(outcome, 0)}" for column in columns))
            for outcome in dict.fromkeys(name for column in columns for name in column["outcomes"])
        ),
        ("tokens of a cell's prompts, median", *(_number(column["input_tokens"]) for column in columns)),
        ("first token, median", *(_seconds(column["ttft_ms"]) for column in columns)),
        ("first token, cold", *(_seconds((column["turn"] or {}).get("cold_ms")) for column in columns)),
        (
            "first token, from the cache",
            *(_seconds((column["turn"] or {}).get("cached_ms")) for column in columns),
        ),
    ]
    titles = {column.name: column.title for column in COLUMNS}
    compared = [
        ("from", "to", "pairs", "passed", "points", "95 %", "ended alike", "outcomes that differ"),
        ("---", "---", "---:", "---:", "---:", "---:", "---:", "---"),
        *(
            (
                titles[one["from"]],
                titles[one["to"]],
                f"{one['n_cells']}",
                f"{one['n_base']} → {one['n_candidate']}",
                _points(one["difference"]),
                " to ".join(map(_points, one["range_95"] or ())) or "–",
                f"{one['same_outcome']}",
                ", ".join(f"`{name}` {n} → {m}" for name, n, m in one["outcomes"] if n != m) or "none",
            )
            for one in table["differences"]
        ),
    ]
    return (
        f"{table['n_prompts']} of the {table['n_in_suite']} prompts of the native suite, each asked once:\n\n"
        + "".join(f"| {' | '.join(row)} |\n" for row in lines)
        + "\n"
        + "".join(f"| {' | '.join(row)} |\n" for row in compared)
    )


def _number(value: float | None) -> str:
    return "–" if value is None else f"{value:,}"


def _seconds(ms: float | None) -> str:
    return "–" if ms is None else f"{ms / 1000:.1f} s"


def _points(share: float | None) -> str:
    return "–" if share is None else f"{round(share * 100):+d}"


if __name__ == "__main__":
    sys.exit(main())
