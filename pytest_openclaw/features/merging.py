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

import heapq
import json
import re
from collections import Counter
from dataclasses import asdict
from graphlib import CycleError, TopologicalSorter
from itertools import pairwise
from typing import TYPE_CHECKING, Any, Literal, TypeVar

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
from pytest_openclaw.stats.groups import Snapshots
from pytest_openclaw.stats.summary import summary_to_json
from pytest_openclaw.util.errors import OpenClawError
from pytest_openclaw.util.signals import epoch_ms
from pytest_openclaw.util.text import counted, first_few
from pytest_openclaw.values.requests import CellKey
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
    from collections.abc import Callable, Hashable, Iterable, Mapping, Sequence

    from pytest_openclaw.runs.reading import PromptKey, StoredRow, StoredRun
    from pytest_openclaw.util.json_types import JsonObject
    from pytest_openclaw.values.requests import Target


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
        data={"into": str(path), "runs": runs, "notes": notes, "summary": summary_to_json(summary)},
        warnings=[*warnings, *plugins.complaints],
    )


def merge_runs(
    parts: Sequence[StoredRun], prefer: Prefer | None = None, *, allow_missing: bool = False
) -> tuple[NewRun, list[str]]:
    """Return the merged run, as if one run had measured everything, and notes for the user.

    A row is unchanged byte for byte, with the `run_id` of the run that measured it.

    Raises:
        OpenClawError: they did not measure the same thing, or a cell has different rows and `prefer` is
            None.
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
    n_selected = {target: n_rows[target] + _n_missing(target, parts, rows) for target in targets}
    gates = [part.gates for part in parts]
    same_gates = gates[0] if all(one == gates[0] for one in gates) else None
    notes += missing_shards
    notes += [note for part in parts for note in part.shortcomings]
    notes += _differing_servers(parts)
    notes += _differing_settings(parts, "noted")
    if same_gates is None:
        notes.append("the gates differ, so that none is held over the whole")
    new = NewRun(
        n_selected=n_selected,
        rows=[rows[key] for key in ordered],
        config=_joined_config(parts, n_selected, prompts),
        inventory=_joined_inventory(parts),
        snapshots={target: _snapshots(target, parts) for target in targets},
        gates=same_gates or Gates(),
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
        missing = [str(Shard(number, of)) for number in range(1, of + 1) if number not in numbers]
        if missing:
            there = ", ".join(str(Shard(number, of)) for number in sorted(numbers)[:MAX_SHOWN])
            what = f"the shards {first_few(missing, MAX_SHOWN)} are missing, which belong to {there}"
            notes.append(what + (" …" if len(numbers) > MAX_SHOWN else ""))
    if notes and not allow_missing:
        several = " Shards belong together only if they divide the same selection." if len(found) > 1 else ""
        raise OpenClawError(f"{'; '.join(notes)}.{several} Add their runs, or give --allow-missing.")
    return notes


def _differing_servers(parts: Sequence[StoredRun]) -> list[str]:
    """List the targets that were not served alike: another version, digest or quantization."""
    differences = []
    for label in sorted({label for part in parts for label in part.inventory["targets"]}):
        served = {
            part.name: server
            for part in parts
            if isinstance(server := part.inventory["targets"].get(label, {}).get("server"), dict)
        }
        for key in sorted({key for server in served.values() for key in server}):
            values = {part: server.get(key) for part, server in served.items()}
            differences += _difference(f"{label} was not served alike: {key}", values)
    return differences


def _differing_settings(parts: Sequence[StoredRun], need: Literal["equal", "noted"]) -> list[str]:
    """List the settings that differ, also of providers: those that must be equal, or those that are noted."""
    differences = []
    configs = {part.name: part.config for part in parts}
    names = {name for config in configs.values() for name in config} - set(IDENTITY)
    for name in keys_to(SETTINGS, "merge", need, sorted(names)):
        # Another version may not record it.
        values = {part: config[name] for part, config in configs.items() if name in config}
        differences += _difference(name, values)
    for provider in sorted({name for config in configs.values() for name in config["providers"]}):
        described = {
            part: config["providers"][provider]
            for part, config in configs.items()
            if provider in config["providers"]
        }
        keys = {key for one in described.values() for key in one}
        for key in keys_to(PROVIDERS, "merge", need, sorted(keys)):
            values = {part: one[key] for part, one in described.items() if key in one}
            differences += _difference(f"{key} of the provider {provider}", values)
    return differences


def _difference(what: str, by_part: Mapping[str, Any]) -> list[str]:
    """Return a sentence with the value of each part, unless they are equal."""
    values = [*by_part.values()]
    if all(value == values[0] for value in values):
        return []
    listed = ", ".join(
        f"{value if isinstance(value, str) else json.dumps(value)} in {part}"
        for part, value in sorted(by_part.items())
    )
    return [f"{what} is {listed}"]


def _differing_prompts(parts: Sequence[StoredRun]) -> list[str]:
    differences = []
    for key in sorted({key for part in parts for key in part.prompts}):
        having = {part.name: part.prompts[key] for part in parts if key in part.prompts}
        first, *others = having.values()
        names = sorted({name for one in having.values() for name in one})
        different = [
            name
            for name in keys_to(PROMPTS, "merge", "equal", names)
            if any(other.get(name) != first.get(name) for other in others)
        ]
        if different:
            suite, prompt_id = key
            where = ", ".join(sorted(having))
            differences.append(
                f"{suite}: the prompt {prompt_id} has another {', '.join(different)} in {where}"
            )
    return differences


def _refuse(problems: Sequence[str], hint: str) -> None:
    if problems:
        rest = len(problems) - MAX_SHOWN
        more = [f"and {rest} more"] if rest > 0 else []
        raise OpenClawError(f"{'; '.join([*problems[:MAX_SHOWN], *more])}. {hint}")


# --- rows -----------------------------------------------------------------------------------------


def _joined_rows(parts: Sequence[StoredRun], prefer: Prefer | None) -> tuple[Rows, list[str]]:
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


def _n_missing(target: Target, parts: Sequence[StoredRun], rows: Rows) -> int:
    """Count the cells of a target that some part selected and no part has a row of.

    A part's config names its prompts and counts its cells. If the cells without a row are as many as the
    prompts without one, they are known, and a cell that another part has run is no longer missing. In a part
    that selected fewer (`-k` with a target's name) they may be any of these prompts; they are counted once.
    """
    known: set[CellKey] = set()
    possible: set[CellKey] = set()
    n_possible = n_unnamed = 0
    for part in parts:
        n_missing = part.n_selected.get(target, 0) - part.n_rows_of[target]
        if n_missing <= 0:
            continue
        unanswered = _cells_of(part, target) - part.rows.keys()
        if len(unanswered) <= n_missing:
            known |= unanswered - rows.keys()
            n_unnamed += n_missing - len(unanswered)
        else:
            possible |= unanswered - rows.keys()
            n_possible += n_missing
    return len(known) + n_unnamed + min(n_possible, len(possible - known))


def _cells_of(part: StoredRun, target: Target) -> set[CellKey]:
    """Return the cells of all prompts of a part, each with the most repeats that it can have."""
    own = {prompt: n for prompt, entry in part.prompts.items() if (n := entry.get("repeat"))}
    repeats = [key.repeat for key in part.rows if (key.suite, key.prompt_id) not in own]
    others = max(repeats_of(part.config), *repeats, 1)
    return {
        CellKey(suite, prompt_id, target, repeat)
        for suite, prompt_id in part.prompts
        for repeat in range(1, own.get((suite, prompt_id), others) + 1)
    }


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

    Where they leave it open the smaller `key` is first; if they contradict each other, `key` decides
    everything. So the order of the sequences does not matter.
    """
    sorter: TopologicalSorter[K] = TopologicalSorter()
    for sequence in {tuple(dict.fromkeys(sequence)): None for sequence in sequences}:
        for item in sequence[:1]:
            sorter.add(item)
        for before, item in pairwise(sequence):
            sorter.add(item, before)
    everything = {item for sequence in sequences for item in sequence}
    try:
        sorter.prepare()
    except CycleError:
        return sorted(everything, key=key)
    numbers = {item: number for number, item in enumerate(sorted(everything, key=key))}
    ready: list[tuple[int, K]] = []
    ordered: list[K] = []
    while sorter.is_active():
        for item in sorter.get_ready():
            heapq.heappush(ready, (numbers[item], item))
        ordered.append(heapq.heappop(ready)[1])
        sorter.done(ordered[-1])
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
    apart = {*IDENTITY, "n_cells", "n_rows"}
    settings = {name: None for entry in entries for name in entry if name not in apart}
    definitions = {key: definition for part in parts for key, definition in part.prompts.items()}
    return {
        "models": list(dict.fromkeys(target.model for target in n_selected)),
        "targets": [{**asdict(target), "n_cells": n} for target, n in n_selected.items()],
        "providers": _agreed_each([entry["providers"] for entry in entries]),
        **_agreed_values(entries, settings),
        "prompts": [definitions[key] for key in prompts if key in definitions],
        "parts": entries,
    }


def _joined_inventory(parts: Sequence[StoredRun]) -> JsonObject:
    """Return `inventory.json`, by the same rules as `_joined_config`."""
    entries = _unique(entry for part in parts for entry in part.inventory.get("parts", (part.inventory,)))
    names = {name: None for entry in entries for name in entry if name not in ("run_id", "targets")}
    return {
        **_agreed_values(entries, names),
        "targets": _agreed_each([entry["targets"] for entry in entries]),
        "parts": entries,
    }


def _agreed_values(entries: Sequence[JsonObject], names: Iterable[str]) -> JsonObject:
    return {name: agreed(entry[name] for entry in entries if name in entry) for name in names}


def agreed(values: Iterable[Any]) -> Any:
    """Return the common value of all; None if they differ."""
    first, *others = values
    return first if all(value == first for value in others) else None


def _agreed_each(groups: Sequence[Mapping[str, JsonObject]]) -> JsonObject:
    """Join objects by name, keeping the values on which all of them agree."""
    joined: JsonObject = {}
    for name in sorted({name for group in groups for name in group}):
        objects = [group[name] for group in groups if name in group]
        joined[name] = _agreed_values(objects, dict.fromkeys(key for one in objects for key in one))
    return joined


def _unique(entries: Iterable[JsonObject]) -> list[JsonObject]:
    """Return each entry once, by run id."""
    by_text = {json.dumps(entry, sort_keys=True): entry for entry in entries}
    return [entry for _, entry in sorted(by_text.items(), key=lambda item: (item[1]["run_id"], item[0]))]


def _snapshots(target: Target, parts: Sequence[StoredRun]) -> Snapshots:
    """Return the earliest snapshot before a target and the latest after it, as in a single run."""
    taken = [part.snapshots[target] for part in parts if target in part.snapshots]
    before = [one.before for one in taken if one.before]
    after = [one.after for one in taken if one.after]
    return Snapshots(
        before=min(before, key=_moment, default=None), after=max(after, key=_moment, default=None)
    )


def _moment(snapshot: JsonObject) -> tuple[float, str]:
    return snapshot.get("taken_at_ms") or 0, json.dumps(snapshot, sort_keys=True)


COMMANDS = (Command(name="merge", help=__doc__, add_arguments=_add_arguments, run=_run),)
