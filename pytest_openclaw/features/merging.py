"""Join runs into one: shards of CI jobs, several machines, parts of a matrix.

Rows are copied byte for byte; summary, tiers and gates are computed as in a
single run. The order of the runs does not matter. Runs that did not measure the
same thing are refused: another prompt or validator under one id, or another
setting that shapes a request. Warnings list unfinished runs, models that were
not served alike, and different addresses.

Reports of your own (pytest_openclaw_reports in conftest.py or an installed
plugin) are written too, if the project can be loaded.

Shards of --openclaw-shard must be complete, unless --allow-missing is given.

Example:
  pytest benchmarks/ --openclaw-shard=1/2 --openclaw-run-id=shard-1
  pytest benchmarks/ --openclaw-shard=2/2 --openclaw-run-id=shard-2
  pytest-openclaw merge "shard-*" --into whole
"""

from __future__ import annotations

import json
import re
from collections import Counter
from dataclasses import asdict
from itertools import pairwise
from typing import TYPE_CHECKING, Any, Literal, TypeVar

from pytest_openclaw.asking.resources import AFTER, BEFORE
from pytest_openclaw.cli.project import plugins_of
from pytest_openclaw.cli.result import (
    Command,
    CommandResult,
    add_rootdir,
    add_runs_dir,
    new_run_path,
    run_paths,
    terminal_width,
)
from pytest_openclaw.reports.terminal import render_terminal
from pytest_openclaw.runs.reading import load_run, repeats_of, target_of
from pytest_openclaw.runs.summaries import NewRun, write_run
from pytest_openclaw.stats.summary import to_json
from pytest_openclaw.util.errors import OpenClawError
from pytest_openclaw.util.signals import epoch_ms
from pytest_openclaw.util.text import counted, first_few
from pytest_openclaw.values.settings import (
    IDENTITY,
    PROMPTS,
    PROVIDERS,
    SETTINGS,
    Gates,
    Shard,
    keys_to,
    parse_shard,
)

if TYPE_CHECKING:
    import argparse
    from collections.abc import Callable, Hashable, Iterable, Iterator, Mapping, Sequence

    from pytest_openclaw.runs.reading import PromptKey, StoredRow, StoredRun
    from pytest_openclaw.util.files import JsonObject
    from pytest_openclaw.values.requests import CellKey, Target


MAX_SHOWN = 5
Prefer = Literal["newest", "oldest"]
Rows = dict["CellKey", "StoredRow"]


def _add_arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("runs", nargs="+", metavar="RUN", help="a run's directory, its id, last, or a glob")
    parser.add_argument("--into", required=True, metavar="RUN", help="the new run: its directory or its id")
    parser.add_argument(
        "--prefer",
        choices=("newest", "oldest"),
        help="which row to keep if a cell has different ones; without it they are refused",
    )
    parser.add_argument(
        "--allow-missing", action="store_true", help="merge shards even if some of 1/N to N/N are missing"
    )
    add_rootdir(parser, "the project's root folder, whose conftest.py may add reports (as pytest finds it)")
    add_runs_dir(parser)


def _run(arguments: argparse.Namespace) -> CommandResult:
    into = new_run_path(arguments.into, arguments.runs_dir)
    paths = [path for name in arguments.runs for path in run_paths(name, arguments.runs_dir)]
    shared: dict[Any, Any] = {}
    parts = [load_run(path, shared=shared) for path in paths]
    new, notes = merge_runs(parts, arguments.prefer, allow_missing=arguments.allow_missing)
    runs: list[JsonObject] = [
        {"path": part.name, "run_id": part.run_id, "n_cells": part.n_cells, "n_rows": part.n_rows}
        for part in parts
    ]
    del parts  # the keys of all their cells, which take a quarter of the memory
    plugins, warnings = plugins_of(arguments.rootdir)
    path, summary = write_run(new, into, exactly=True, now_ms=epoch_ms(), plugins=plugins)
    n_runs, n_targets = counted(len(runs), "run"), counted(len(summary.groups), "target")
    return CommandResult(
        lines=[
            f"merged {n_runs}: {summary.n_rows} of {counted(summary.n_cells, 'cell')}, {n_targets}",
            *(f"note: {note}" for note in notes),
            "",
            *render_terminal(summary, str(path / "summary.md"), width=terminal_width()),
        ],
        data={"into": str(path), "runs": runs, "notes": notes, "summary": to_json(summary)},
        warnings=[*warnings, *plugins.complaints],
    )


def merge_runs(
    parts: Sequence[StoredRun], prefer: Prefer | None = None, *, allow_missing: bool = False
) -> tuple[NewRun, list[str]]:
    """Return the merged run, as if one run had measured everything, and notes for the user.

    A row is unchanged byte for byte, with the `run_id` of the run that measured it.

    Raises:
        OpenClawError: they did not measure the same thing, shards are missing, or a cell has different rows
            and `prefer` is None.
    """
    parts = sorted({part.path.resolve(): part for part in parts}.values(), key=lambda part: part.name)
    _refuse(_differing_settings(parts, "equal"), "Merge runs that asked alike; ask the others again.")
    _refuse(
        _differing_prompts(parts),
        "Merge runs of one version of a suite; `rescore` gives older replies today's validators.",
    )
    missing_shards = _missing_shards(parts, allow_missing=allow_missing)
    rows, notes = _joined_rows(parts, prefer)
    targets, prompts = _order(parts)
    target_places = {target: place for place, target in enumerate(targets)}
    prompt_places = {prompt: place for place, prompt in enumerate(prompts)}
    ordered = sorted(
        rows,
        key=lambda key: (target_places[key.target], key.repeat, prompt_places[key.suite, key.prompt_id]),
    )
    n_rows = Counter(key.target for key in rows)
    n_selected = {target: max(n_rows[target], _n_selected(target, parts, n_rows)) for target in targets}
    gates = agreed(part.gates for part in parts)
    notes += missing_shards
    notes += [note for part in parts for note in part.shortcomings]
    notes += _differing_servers(parts)
    notes += _differing_settings(parts, "noted")
    if gates is None:
        notes.append("the gates differ, so that no gate applies to the whole")
    new = NewRun(
        n_selected=n_selected,
        rows=[rows[key] for key in ordered],
        config=_joined_config(parts, n_selected, prompts),
        inventory=_joined_inventory(parts),
        gates=gates or Gates(),
        surface=next((part.surface for part in parts if part.surface), None),
    )
    return new, notes


# --- what the runs must have in common ------------------------------------------------------------


def _missing_shards(parts: Sequence[StoredRun], *, allow_missing: bool) -> list[str]:
    """Return a note for each divided selection of which shards are missing.

    Raises:
        OpenClawError: shards are missing, and that is not allowed.
    """
    found: dict[tuple[int, str], set[int]] = {}
    for entry in (entry for part in parts for entry in _measured(part)):
        if text := entry.get("shard"):
            shard = parse_shard(text)
            found.setdefault((shard.of, entry["divided_sha256"]), set()).add(shard.number)
    notes = []
    for (of, _), numbers in sorted(found.items()):
        there = [str(Shard(number, of)) for number in sorted(numbers)]
        if missing := [str(Shard(number, of)) for number in range(1, of + 1) if number not in numbers]:
            shards = first_few(missing, MAX_SHOWN)
            notes.append(f"shards are missing: {shards}; there are {first_few(there, MAX_SHOWN)}")
    if notes and not allow_missing:
        several = " Shards belong together only if they divide the same selection." if len(found) > 1 else ""
        raise OpenClawError(f"{'; '.join(notes)}.{several} Add their runs, or give --allow-missing.")
    return notes


def _differing_servers(parts: Sequence[StoredRun]) -> Iterator[str]:
    """Yield the targets that were not served alike: another version, digest or quantization."""
    for label in sorted({label for part in parts for label in part.inventory["targets"]}):
        served = {
            part.name: server
            for part in parts
            if isinstance(server := part.inventory["targets"].get(label, {}).get("server"), dict)
        }
        for key, values in _differing(served):
            yield f"{label} was not served alike: {key} is {values}"


def _differing_settings(parts: Sequence[StoredRun], need: Literal["equal", "noted"]) -> Iterator[str]:
    """Yield the settings that differ, also of providers: those with this need in the table of rules."""
    configs = {part.name: part.config for part in parts}
    for key, values in _differing(configs):
        if key not in IDENTITY and keys_to(SETTINGS, "merge", need, [key]):
            yield f"{key} is {values}"
    for provider in sorted({name for config in configs.values() for name in config["providers"]}):
        described = {
            part: config["providers"][provider]
            for part, config in configs.items()
            if provider in config["providers"]
        }
        for key, values in _differing(described):
            if keys_to(PROVIDERS, "merge", need, [key]):
                yield f"{key} of the provider {provider} is {values}"


def _differing_prompts(parts: Sequence[StoredRun]) -> Iterator[str]:
    for key in sorted({key for part in parts for key in part.prompts}):
        having = {part.name: part.prompts[key] for part in parts if key in part.prompts}
        names = {name for one in having.values() for name in one}
        # A key that a definition leaves out is null.
        whole = {part: dict.fromkeys(names) | one for part, one in having.items()}
        if different := keys_to(PROMPTS, "merge", "equal", [name for name, _ in _differing(whole)]):
            what, where = ", ".join(different), ", ".join(sorted(having))
            yield f"{key[0]}: the prompt {key[1]} has another {what} in {where}"


def _differing(by_part: Mapping[str, JsonObject]) -> Iterator[tuple[str, str]]:
    """Yield the keys whose values differ, with the value of each part that has the key."""
    for key in sorted({key for one in by_part.values() for key in one}):
        values = {part: one[key] for part, one in sorted(by_part.items()) if key in one}
        if agreed(values.values()) is None and any(value is not None for value in values.values()):
            words = (value if isinstance(value, str) else json.dumps(value) for value in values.values())
            yield key, ", ".join(f"{word} in {part}" for word, part in zip(words, values, strict=True))


def _refuse(problems: Iterable[str], hint: str) -> None:
    found = [*problems]
    if found:
        more = [f"and {len(found) - MAX_SHOWN} more"] if len(found) > MAX_SHOWN else []
        raise OpenClawError(f"{'; '.join([*found[:MAX_SHOWN], *more])}. {hint}")


# --- rows -----------------------------------------------------------------------------------------


def _joined_rows(parts: Sequence[StoredRun], prefer: Prefer | None) -> tuple[Rows, list[str]]:
    """Return one row of each cell, and notes on cells with several."""
    rows: Rows = {}
    repeated: set[CellKey] = set()
    for part in parts:
        for key, row in part.rows.items():
            if rows.setdefault(key, row) is not row:
                repeated.add(key)
    versions = {
        key: {part.rows[key].line: part.rows[key] for part in parts if key in part.rows} for key in repeated
    }
    contested = sorted((key for key, found in versions.items() if len(found) > 1), key=_cell_name)
    if contested and prefer is None:
        shown = [
            f"{_cell_name(key)} ({', '.join(part.name for part in parts if key in part.rows)})"
            for key in contested
        ]
        raise OpenClawError(
            f"different rows of one cell: {first_few(shown, MAX_SHOWN)}. "
            "Give --prefer=newest or --prefer=oldest, or leave one of the runs out."
        )
    notes = []
    if contested:
        notes.append(f"{_cells_have(len(contested))} different rows; the {prefer} is kept")
    if n_twice := len(repeated) - len(contested):
        notes.append(f"{_cells_have(n_twice)} the same row in several runs; it is kept once")
    choose = min if prefer == "oldest" else max
    for key, found in versions.items():
        rows[key] = choose(found.values(), key=lambda row: (row.record.ended_at_ms, row.line))
    return rows, notes


def _cell_name(key: CellKey) -> str:
    return f"{key.suite}::{key.name}"


def _cells_have(n: int) -> str:
    return "1 cell has" if n == 1 else f"{n} cells have"


def _n_selected(target: Target, parts: Sequence[StoredRun], n_rows: Mapping[Target, int]) -> int:
    """Count the cells of a target that the parts selected: a cell of several parts counts once.

    A part counts its cells and does not name them, so this is the sum, without cells that have rows in
    several parts; but no more than all of its prompts have.
    """
    asked = [part for part in parts if target in part.n_selected]
    n_repeated = sum(part.n_rows_of[target] for part in asked) - n_rows[target]
    return min(
        sum(part.n_selected[target] for part in asked) - n_repeated,
        len({cell for part in asked for cell in _cells_of(part)}),
    )


def _cells_of(part: StoredRun) -> Iterator[tuple[PromptKey, int]]:
    """Yield prompt and repeat of a part's cells, with the most repeats that each prompt can have."""
    own = {prompt: n for prompt, entry in part.prompts.items() if (n := entry.get("repeat"))}
    repeats = [key.repeat for key in part.rows if (key.suite, key.prompt_id) not in own]
    others = max(repeats_of(part.config), *repeats, 1)
    for prompt in part.prompts:
        for repeat in range(1, own.get(prompt, others) + 1):
            yield prompt, repeat


# --- their order ----------------------------------------------------------------------------------


def _order(parts: Sequence[StoredRun]) -> tuple[list[Target], list[PromptKey]]:
    """Return targets and prompts of the merged run, in an order that agrees with each part's.

    It is computed from the measured runs, not from merged ones, so that merging in steps makes no
    difference. Targets and prompts that no config names are sorted in by name.
    """
    entries = [entry for part in parts for entry in _measured(part)]
    targets = [[target_of(target) for target in entry["targets"]] for entry in entries]
    prompts = [[(suite, prompt_id) for suite, prompt_id in entry["prompts"]] for entry in entries]
    found = {key: None for part in parts for key in part.rows}
    return (
        common_order([*targets, *([key.target] for key in found)], key=lambda target: natural(target.label)),
        common_order(
            [*prompts, *([(key.suite, key.prompt_id)] for key in found)],
            key=lambda prompt: (natural(prompt[0]), natural(prompt[1])),
        ),
    )


K = TypeVar("K", bound="Hashable")


def common_order(sequences: Iterable[Sequence[K]], key: Callable[[K], Any]) -> list[K]:
    """Return everything in the sequences once, in an order that fits all of them.

    Where they leave it open or contradict each other, the smaller `key` is first, so the order of the
    sequences does not matter.
    """
    before: dict[K, set[K]] = {}
    for sequence in {tuple(dict.fromkeys(sequence)) for sequence in sequences}:
        for item in sequence[:1]:
            before.setdefault(item, set())
        for earlier, item in pairwise(sequence):
            before.setdefault(item, set()).add(earlier)
    left = dict.fromkeys(sorted(before, key=key))
    ordered = []
    while left:
        item = next((one for one in left if left.keys().isdisjoint(before[one])), next(iter(left)))
        del left[item]
        ordered.append(item)
    return ordered


def natural(text: str) -> tuple[list[str], str]:
    """Return a key that sorts P2 before P10."""
    return [part.zfill(20) if part.isdecimal() else part for part in re.split(r"(\d+)", text)], text


# --- their files ----------------------------------------------------------------------------------


def _measured(part: StoredRun) -> list[JsonObject]:
    """Return the settings of each run that a part consists of: its own, unless it is merged."""
    config = part.config
    if "parts" in config:
        rescored = {"rescored": config["rescored"]} if "rescored" in config else {}
        return [{**entry, **rescored} for entry in config["parts"]]
    own = {name: value for name, value in config.items() if name not in ("models", "prompts")}
    counts = {"n_cells": part.n_cells, "n_rows": part.n_rows}
    return [{"run_id": config["run_id"], **counts, **own, "prompts": [list(key) for key in part.prompts]}]


def _joined_config(
    parts: Sequence[StoredRun], n_selected: Mapping[Target, int], prompts: Sequence[PromptKey]
) -> JsonObject:
    """Return `config.json`: the values on which all parts agree, null where they differ, and all parts."""
    entries = _unique(entry for part in parts for entry in _measured(part))
    definitions = {key: definition for part in parts for key, definition in part.prompts.items()}
    return {
        "models": list(dict.fromkeys(target.model for target in n_selected)),
        "targets": [{**asdict(target), "n_cells": n} for target, n in n_selected.items()],
        "providers": _agreed_each([entry["providers"] for entry in entries]),
        **_agreed_values(entries, without={*IDENTITY, "n_cells", "n_rows"}),
        "prompts": [definitions[key] for key in prompts if key in definitions],
        "parts": entries,
    }


def _joined_inventory(parts: Sequence[StoredRun]) -> JsonObject:
    """Return `inventory.json`, by the same rules as `_joined_config`, with snapshots as in a single run."""
    entries = _unique(entry for part in parts for entry in part.inventory.get("parts", (part.inventory,)))
    joined = _agreed_each([entry["targets"] for entry in entries])
    for label, facts in joined.items():
        for name, choose in ((BEFORE, min), (AFTER, max)):
            if taken := [shot for entry in entries if (shot := entry["targets"].get(label, {}).get(name))]:
                facts[name] = choose(taken, key=_moment)
    return {
        **_agreed_values(entries, without={"run_id", "targets"}),
        "targets": joined,
        "parts": entries,
    }


def _moment(snapshot: JsonObject) -> tuple[float, str]:
    return snapshot.get("taken_at_ms") or 0, json.dumps(snapshot, sort_keys=True)


def agreed(values: Iterable[Any]) -> Any:
    """Return the common value of all; None if they differ."""
    first, *others = values
    return first if all(value == first for value in others) else None


def _agreed_values(objects: Sequence[JsonObject], without: Iterable[str] = ()) -> JsonObject:
    names = dict.fromkeys(name for one in objects for name in one if name not in without)
    return {name: agreed(one[name] for one in objects if name in one) for name in names}


def _agreed_each(groups: Sequence[Mapping[str, JsonObject]]) -> JsonObject:
    """Join objects by name, keeping the values on which all of them agree."""
    names = sorted({name for group in groups for name in group})
    return {name: _agreed_values([group[name] for group in groups if name in group]) for name in names}


def _unique(entries: Iterable[JsonObject]) -> list[JsonObject]:
    """Return each entry once, by run id."""
    by_text = {json.dumps(entry, sort_keys=True): entry for entry in entries}
    return [entry for _, entry in sorted(by_text.items(), key=lambda item: (item[1]["run_id"], item[0]))]


COMMANDS = (Command(name="merge", help=__doc__, add_arguments=_add_arguments, run=_run),)
