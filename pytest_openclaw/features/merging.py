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
from dataclasses import asdict, dataclass
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
from pytest_openclaw.runs.reading import RowIndex, read_part, target_of
from pytest_openclaw.runs.summaries import NewRun, write_run
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

    from pytest_openclaw.runs.reading import IndexedRow, Part, PromptKey
    from pytest_openclaw.util.json_types import JsonObject
    from pytest_openclaw.values.requests import Target


MAX_SHOWN = 5


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
    index = RowIndex()
    parts = [read_part(path, index=index) for path in paths]
    merged = merge_parts(parts, arguments.prefer, allow_missing=arguments.allow_missing)
    runs: list[JsonObject] = [
        {"path": part.name, "run_id": part.run.run_id, "n_cells": part.n_cells, "n_rows": part.n_rows}
        for part in parts
    ]
    del parts  # the keys of all their cells, which take a quarter of the memory
    now_ms = epoch_ms()
    plugins, warnings = plugins_of(arguments.rootdir)
    written = write_run(merged.new, into.parent, into.name, exactly=True, now_ms=now_ms, plugins=plugins)
    summary = written.summary
    n_runs, n_targets = counted(len(runs), "run"), counted(len(summary.groups), "target")
    head = f"merged {n_runs}: {summary.n_rows} of {counted(summary.n_cells, 'cell')}, {n_targets}"
    return CommandResult(
        lines=[
            head,
            *(f"note: {note}" for note in merged.notes),
            "",
            *render_terminal(summary, str(written.path / "summary.md"), width=terminal_width()),
        ],
        data={
            "into": str(written.path),
            "runs": runs,
            "notes": list(merged.notes),
            "summary": summary_to_json(summary),
        },
        warnings=[*warnings, *plugins.complaints],
    )


def check_agreement(parts: Sequence[Part]) -> None:
    """Reject parts that did not measure the same thing.

    Raises:
        OpenClawError: the parts differ; the message names what and where.

    """
    _refuse(differing_settings(parts, "equal"), "Merge runs that asked alike; ask the others again.")
    _refuse(
        _different_prompts(parts),
        "Merge runs of one version of a suite; `rescore` gives older replies today's validators.",
    )


def check_shards(parts: Sequence[Part], *, allow_missing: bool) -> list[str]:
    """Check that all shards of each divided selection are there.

    Args:
        parts: the runs, of which each may be merged from others.
        allow_missing: accept missing shards.

    Returns:
        A note for each number of shards of which some are missing.

    Raises:
        OpenClawError: shards are missing.

    """
    found: dict[tuple[int, str], set[int]] = {}
    for entry in (entry for part in parts for entry in part.measured):
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


def agreed(values: Iterable[Any]) -> Any:
    """Return the common value of all; None if they differ, which is reported elsewhere."""
    first, *others = values
    return first if all(value == first for value in others) else None


def differing_servers(parts: Sequence[Part]) -> list[str]:
    """List the targets that were not served alike: another version, digest or quantization."""
    differences = []
    for label in sorted({label for part in parts for label in part.run.inventory["targets"]}):
        served = {
            part.name: server
            for part in parts
            if isinstance(server := part.run.inventory["targets"].get(label, {}).get("server"), dict)
        }
        for key in sorted({key for server in served.values() for key in server}):
            values = {part: server.get(key) for part, server in served.items()}
            if not _are_equal(values.values()):
                differences.append(f"{label} was not served alike: {key} is {_listed(values)}")
    return differences


def differing_settings(parts: Sequence[Part], need: Literal["equal", "noted"]) -> list[str]:
    """List the settings that differ, also of providers: those that must be equal, or those that are noted."""
    differences = []
    names = {name for part in parts for name in part.run.config} - set(IDENTITY)
    for name in keys_to(SETTINGS, "merge", need, sorted(names)):
        differences += _difference(name, {part.name: part.run.config for part in parts}, name)
    for provider in sorted({name for part in parts for name in part.run.config["providers"]}):
        described = {
            part.name: part.run.config["providers"][provider]
            for part in parts
            if provider in part.run.config["providers"]
        }
        keys = {key for one in described.values() for key in one}
        for key in keys_to(PROVIDERS, "merge", need, sorted(keys)):
            differences += _difference(f"{key} of the provider {provider}", described, key)
    return differences


def _difference(what: str, by_part: Mapping[str, JsonObject], key: str) -> list[str]:
    # Another version may not record it.
    values = {part: values[key] for part, values in by_part.items() if key in values}
    if _are_equal(values.values()):
        return []
    return [f"{what} is {_listed(values)}"]


def _different_prompts(parts: Sequence[Part]) -> list[str]:
    differences = []
    for suite, prompt_id in sorted({key for part in parts for key in part.prompts}):
        definitions = {
            part.name: part.prompts[suite, prompt_id] for part in parts if (suite, prompt_id) in part.prompts
        }
        if len({id(definition) for definition in definitions.values()}) == 1:
            continue  # read together, and found to be equal
        keys = {key for definition in definitions.values() for key in definition}
        different = [
            key
            for key in keys_to(PROMPTS, "merge", "equal", sorted(keys))
            if not _are_equal([definition.get(key) for definition in definitions.values()])
        ]
        if different:
            where = ", ".join(sorted(definitions))
            differences.append(
                f"{suite}: the prompt {prompt_id} has another {', '.join(different)} in {where}"
            )
    return differences


def _listed(values: Mapping[str, Any]) -> str:
    """Render each value with its part."""
    return ", ".join(
        f"{value if isinstance(value, str) else json.dumps(value)} in {part}"
        for part, value in sorted(values.items())
    )


def _are_equal(values: Iterable[Any]) -> bool:
    listed = list(values)
    return all(value == listed[0] for value in listed)


def _refuse(problems: Sequence[str], hint: str) -> None:
    if problems:
        rest = len(problems) - MAX_SHOWN
        more = [f"and {rest} more"] if rest > 0 else []
        raise OpenClawError(f"{'; '.join([*problems[:MAX_SHOWN], *more])}. {hint}")


K = TypeVar("K", bound="Hashable")


def common_order(sequences: Iterable[Iterable[K]], key: Callable[[K], Any]) -> list[K]:
    """Return everything in the sequences once, in an order that fits all of them.

    Where they leave it open or contradict each other, the smaller `key` is first, so the order of the
    sequences does not matter.
    """
    followers: dict[K, set[K]] = {}
    for sequence in sequences:
        unique = list(dict.fromkeys(sequence))
        for item in unique:
            followers.setdefault(item, set())
        for item, following in pairwise(unique):
            followers[item].add(following)
    n_before = Counter(following for all_after in followers.values() for following in all_after)
    waiting = dict.fromkeys(sorted(followers, key=key))
    numbers = {item: number for number, item in enumerate(waiting)}
    ready = [(numbers[item], item) for item in waiting if not n_before[item]]
    ordered: list[K] = []
    while waiting:
        item = heapq.heappop(ready)[1] if ready else next(iter(waiting))
        if item not in waiting:  # placed earlier because of a contradiction
            continue
        del waiting[item]
        ordered.append(item)
        for following in followers[item]:
            n_before[following] -= 1
            if not n_before[following]:
                heapq.heappush(ready, (numbers[following], following))
    return ordered


def natural(text: str) -> tuple[list[str | tuple[int, str]], str]:
    """Return a key that sorts P2 before P10."""
    parts = re.split(r"([0-9]+)", text)
    # Numbers by length, then by digits: int() rejects more than 4,300 digits.
    digits = [part.lstrip("0") for part in parts]
    return [(len(digits[n]), digits[n]) if n % 2 else part for n, part in enumerate(parts)], text


_COUNTS = ("n_cells", "n_rows")


@dataclass(frozen=True, kw_only=True)
class Order:
    """Targets and prompts of the merged run, in an order that agrees with each part's."""

    targets: Sequence[Target]
    prompts: Sequence[PromptKey]


def order_of(parts: Sequence[Part]) -> Order:
    """Return the order of targets and prompts in the merged run.

    It is computed from the measured runs, not from merged ones, so that merging in steps makes no
    difference. Targets and prompts that no config names are sorted in by name.
    """
    entries = [entry for part in parts for entry in part.measured]
    found_targets = {key.target for part in parts for key in part.rows}
    found_prompts = {(key.suite, key.prompt_id) for part in parts for key in part.rows}
    targets = [[target_of(target) for target in entry["targets"]] for entry in entries]
    prompts = [[(suite, prompt_id) for suite, prompt_id in entry["prompts"]] for entry in entries]
    return Order(
        targets=common_order(
            [*targets, *([target] for target in found_targets)], key=lambda target: natural(target.label)
        ),
        prompts=common_order(
            [*prompts, *([prompt] for prompt in found_prompts)],
            key=lambda prompt: (natural(prompt[0]), natural(prompt[1])),
        ),
    )


def join_configs(
    parts: Sequence[Part], n_selected: Mapping[Target, int], prompts: Sequence[PromptKey]
) -> JsonObject:
    """Return the `config.json` of the merged run, without version and run id.

    Args:
        parts: the runs.
        n_selected: cells of the merged run by target.
        prompts: suites and ids in order.

    """
    entries = _unique(entry for part in parts for entry in part.measured)
    settings = {name: None for entry in entries for name in entry if name not in (*IDENTITY, *_COUNTS)}
    definitions = {key: definition for part in parts for key, definition in part.prompts.items()}
    return {
        "models": list(dict.fromkeys(target.model for target in n_selected)),
        "targets": [{**asdict(target), "n_cells": n} for target, n in n_selected.items()],
        "providers": _agreed_each([entry["providers"] for entry in entries]),
        **{name: agreed(entry[name] for entry in entries if name in entry) for name in settings},
        "prompts": [definitions[key] for key in prompts if key in definitions],
        "parts": entries,
    }


def join_inventories(parts: Sequence[Part]) -> JsonObject:
    """Return the `inventory.json` of the merged run, without its run id."""
    inventories = (part.run.inventory for part in parts)
    entries = _unique(entry for one in inventories for entry in one.get("parts", (one,)))
    names = {name: None for entry in entries for name in entry if name not in ("run_id", "targets")}
    return {
        **{name: agreed(entry[name] for entry in entries if name in entry) for name in names},
        "targets": _agreed_each([entry["targets"] for entry in entries]),
        "parts": entries,
    }


def _agreed_each(groups: Sequence[Mapping[str, JsonObject]]) -> JsonObject:
    """Join objects by name, keeping the values on which all of them agree."""
    joined: JsonObject = {}
    for name in sorted({name for group in groups for name in group}):
        objects = [group[name] for group in groups if name in group]
        keys = {key: None for one in objects for key in one}
        joined[name] = {key: agreed(one[key] for one in objects if key in one) for key in keys}
    return joined


def _unique(entries: Iterable[JsonObject]) -> list[JsonObject]:
    """Return each entry once, by run id."""
    by_text = {json.dumps(entry, sort_keys=True): entry for entry in entries}
    return [entry for _, entry in sorted(by_text.items(), key=lambda item: (item[1]["run_id"], item[0]))]


Prefer = Literal["newest", "oldest"]
Rows = dict[CellKey, "IndexedRow"]


@dataclass(frozen=True, kw_only=True)
class Merged:
    """The new run, and notes for the user."""

    new: NewRun
    notes: tuple[str, ...]


def merge_parts(
    parts: Sequence[Part], prefer: Prefer | None = None, *, allow_missing: bool = False
) -> Merged:
    """Return the merged run.

    Args:
        parts: one or more, in any order; a directory that is given twice is used once.
        prefer: which row to keep if a cell has different ones, by end time.
        allow_missing: merge shards even if others of their division are missing.

    Raises:
        OpenClawError: they did not measure the same thing, or a cell has different rows and `prefer` is
            None.

    """
    parts = sorted({part.run.path.resolve(): part for part in parts}.values(), key=lambda part: part.name)
    check_agreement(parts)
    missing_shards = check_shards(parts, allow_missing=allow_missing)
    order = order_of(parts)
    rows, notes = _joined_rows(parts, prefer)
    target_places = {target: place for place, target in enumerate(order.targets)}
    prompt_places = {prompt: place for place, prompt in enumerate(order.prompts)}
    ordered = sorted(
        rows,
        key=lambda key: (target_places[key.target], key.repeat, prompt_places[key.suite, key.prompt_id]),
    )
    n_rows = Counter(key.target for key in rows)
    n_selected = {target: _n_selected(target, parts, rows, n_rows[target]) for target in order.targets}
    gates = [part.gates for part in parts]
    same_gates = gates[0] if all(one == gates[0] for one in gates) else None
    new = NewRun(
        n_selected=n_selected,
        rows=[rows[key] for key in ordered],
        config=join_configs(parts, n_selected, order.prompts),
        inventory=join_inventories(parts),
        snapshots=[snapshot for part in parts for snapshot in part.snapshots],
        gates=same_gates or Gates(),
        surface=next((part.surface for part in parts if part.surface), None),
    )
    notes += missing_shards
    notes += [note for part in parts for note in part.shortcomings]
    notes += differing_servers(parts)
    notes += differing_settings(parts, "noted")
    if same_gates is None:
        notes.append("the gates differ, so that none is held over the whole")
    return Merged(new=new, notes=tuple(notes))


def _joined_rows(parts: Sequence[Part], prefer: Prefer | None) -> tuple[Rows, list[str]]:
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
        notes.append(f"{_counted(len(contested))} different rows; the {prefer} is kept")
    if n_twice := len(repeated) - len(contested):
        notes.append(f"{_counted(n_twice)} the same row in several runs; it is kept once")
    choose = min if prefer == "oldest" else max
    for key, found in versions.items():
        rows[key] = choose(found.values(), key=_age)
    return rows, notes


def _age(row: IndexedRow) -> tuple[int, bytes]:
    return row.record.ended_at_ms, row.line


def _cell_name(key: CellKey) -> str:
    return f"{key.suite}::{key.name}"


def _counted(n: int) -> str:
    return "1 cell has" if n == 1 else f"{n} cells have"


def _n_selected(target: Target, parts: Sequence[Part], rows: Rows, n_rows: int) -> int:
    """Count the cells of a target that any part selected: those with rows, and those still to run.

    A part's config names its prompts and counts its cells. If the cells without a row are as many as the
    prompts without one, they are known, and a cell that another part has run is no longer missing. In a part
    that selected fewer (`-k` with a target's name) they may be any of these prompts; they are counted once.

    Args:
        target: whose cells are counted.
        parts: the runs.
        rows: of the merged run.
        n_rows: of the target.

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
    return n_rows + len(known) + n_unnamed + min(n_possible, len(possible - known))


def _cells_of(part: Part, target: Target) -> set[CellKey]:
    return {
        CellKey(suite, prompt_id, target, repeat)
        for (suite, prompt_id), n_repeats in part.n_repeats_by_prompt.items()
        for repeat in range(1, n_repeats + 1)
    }


COMMANDS = (Command(name="merge", help=__doc__, add_arguments=_add_arguments, run=_run),)
