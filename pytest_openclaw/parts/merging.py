"""Join runs into one: shards of CI jobs, several machines, parts of a matrix.

Rows are copied byte for byte; summary, tiers and gates are computed as in a
single run. The order of the runs does not matter. Runs are refused if their
release of pytest-openclaw, a prompt or validator with the same id, or a setting
that shapes requests differs. Notes list unfinished runs and models that were
served differently. Shards of --openclaw-shard must be complete.

Reports of your own (pytest_openclaw_reports in conftest.py or an installed
plugin) are written too, if the project can be loaded.

Example:
  pytest benchmarks/ --openclaw-shard=1/2 --openclaw-run-id=shard-1
  pytest benchmarks/ --openclaw-shard=2/2 --openclaw-run-id=shard-2
  pytest-openclaw merge runs/shard-* --into whole
"""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import TYPE_CHECKING, Any, Literal

from pytest_openclaw.cli.project import plugins_of
from pytest_openclaw.cli.result import (
    CliCommand,
    CommandResult,
    add_rootdir,
    add_runs_dir,
    new_run_path,
    run_path,
    terminal_width,
)
from pytest_openclaw.conclusions.summary import to_json
from pytest_openclaw.reports.terminal import render_terminal
from pytest_openclaw.runs.reading import StoredRow, StoredRun, load_run, repeats_of
from pytest_openclaw.runs.summaries import NewRun, write_run
from pytest_openclaw.util.errors import OpenClawError
from pytest_openclaw.util.files import JsonObject
from pytest_openclaw.util.signals import epoch_ms
from pytest_openclaw.util.text import counted, first_few, in_order
from pytest_openclaw.values.requests import CellKey, Target
from pytest_openclaw.values.run_files import AFTER, BEFORE, target_entries
from pytest_openclaw.values.settings import (
    IDENTITY,
    OTHER,
    PROVIDERS,
    Shard,
    parse_shard,
    setting_rules,
)

if TYPE_CHECKING:
    import argparse


MAX_SHOWN = 5
Prefer = Literal["newest", "oldest"]


def _add_arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("runs", nargs="+", metavar="RUN", help="a run's directory, its id, or last")
    parser.add_argument(
        "--into",
        metavar="RUN",
        help="the new run: its directory or its id (RUN-merged, next to the first RUN)",
    )
    parser.add_argument(
        "--prefer",
        choices=("newest", "oldest"),
        help="which row to keep if a cell has different rows, which are refused without this",
    )
    add_rootdir(parser, "the project's root folder, whose conftest.py may add reports (as pytest finds it)")
    add_runs_dir(parser)


def _run(arguments: argparse.Namespace) -> CommandResult:
    into = new_run_path(arguments.into, arguments.runs_dir) if arguments.into else None
    paths = [run_path(name, arguments.runs_dir) for name in arguments.runs]
    shared: dict[Any, Any] = {}
    parts = [load_run(path, shared=shared) for path in paths]
    new, notes = merge_runs(parts, arguments.prefer)
    runs: list[JsonObject] = [
        {"path": part.name, "run_id": part.run_id, "n_cells": part.n_cells, "n_rows": len(part.rows)}
        for part in parts
    ]
    del parts  # the keys of all cells take a quarter of the memory
    plugins, warnings = plugins_of(arguments.rootdir)
    target = into or paths[0].with_name(f"{paths[0].resolve().name}-merged")
    path, summary = write_run(new, target, exactly=into is not None, now_ms=epoch_ms(), plugins=plugins)
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


def merge_runs(parts: Sequence[StoredRun], prefer: Prefer | None = None) -> tuple[NewRun, list[str]]:
    """Return the merged run, as if one run had measured everything, and notes for the user.

    Rows are unchanged byte for byte, so each has the `run_id` of the run that measured it.

    Raises:
        OpenClawError: a run is itself merged, the runs did not measure the same thing, shards are missing, or
            a cell has different rows and `prefer` is None.
    """
    parts = sorted({part.path.resolve(): part for part in parts}.values(), key=lambda part: part.name)
    merged = (f"{part.name} is itself merged" for part in parts if "parts" in part.config)
    _refuse(merged, "Merge the runs that it consists of.")
    _refuse(_differing_settings(parts), "Merge runs that asked alike; ask the others again.")
    _refuse(
        _differing_prompts(parts),
        "Merge runs of one version of a suite; `rescore` gives older replies today's validators.",
    )
    _refuse(_missing_shards(parts), "Shards belong together only if they divide the same selection.")
    rows, notes = _joined_rows(parts, prefer)
    targets = {target: n for n, target in enumerate(_unique(part.n_selected for part in parts))}
    keys = sorted(_unique(part.prompts for part in parts), key=lambda key: [*map(in_order, key)])
    prompts = {key: n for n, key in enumerate(keys)}
    n_rows = Counter(key.target for key in rows)
    n_selected = {target: _n_selected(target, parts, n_rows[target]) for target in targets}
    notes += [note for part in parts for note in part.shortcomings]
    notes += _differing_servers(parts)
    if (
        all("gates" in part.config for part in parts)
        and agreed(part.config["gates"] for part in parts) is None
    ):
        notes.append("the gates differ, so that no gate applies to the whole")

    def place(key: CellKey) -> tuple[int, int, int]:
        return targets[key.target], key.repeat, prompts.get((key.suite, key.prompt_id), len(prompts))

    definitions = {key: definition for part in parts for key, definition in part.prompts.items()}
    left_out = ("schema_version", "models", "prompts")
    configs = [{name: part.config[name] for name in part.config if name not in left_out} for part in parts]
    new = NewRun(
        n_selected=n_selected,
        rows=[rows[key] for key in sorted(rows, key=place)],
        config={
            **_agreed_values(configs, without=IDENTITY),
            "models": list(dict.fromkeys(target.model for target in targets)),
            "targets": target_entries(n_selected),
            "providers": _agreed_each([config["providers"] for config in configs]),
            "prompts": [definitions[key] for key in prompts],
            "parts": configs,
        },
        inventory=_joined_inventory([part.inventory for part in parts]),
        surface=next((part.surface for part in parts if part.surface), None),
    )
    return new, notes


# --- agreement of the runs ------------------------------------------------------------------------


def _missing_shards(parts: Sequence[StoredRun]) -> Iterator[str]:
    found: dict[tuple[int, str], set[int]] = {}
    for part in parts:
        if text := part.config.get("shard"):
            shard = parse_shard(text)
            found.setdefault((shard.of, part.config["divided_sha256"]), set()).add(shard.number)
    for (of, _), numbers in sorted(found.items()):
        if missing := [str(Shard(number, of)) for number in range(1, of + 1) if number not in numbers]:
            there = [str(Shard(number, of)) for number in sorted(numbers)]
            shards = first_few(missing, MAX_SHOWN)
            yield f"shards are missing: {shards}; there are {first_few(there, MAX_SHOWN)}"


def _differing_servers(parts: Sequence[StoredRun]) -> Iterator[str]:
    targets = {part.name: part.inventory["targets"] for part in parts}
    for label in sorted(_unique(targets.values())):
        served = {part: one.get("server") for part, one in _having(label, targets).items()}
        for key, values in _differing({part: one for part, one in served.items() if isinstance(one, dict)}):
            yield f"{label} was not served alike: {key} is {values}"


def _differing_settings(parts: Sequence[StoredRun]) -> Iterator[str]:
    configs = {part.name: part.config for part in parts}
    providers = {part: config["providers"] for part, config in configs.items()}
    names = sorted(_unique(providers.values()))
    of_providers = [(f" of the provider {name}", _having(name, providers), PROVIDERS) for name in names]
    for whose, by_part, rules in [("", configs, setting_rules()), *of_providers]:
        for key, values in _differing(by_part):
            rule = rules.get(key, rules[OTHER])
            if key == "surface" or (key not in IDENTITY and rule.compare in ("settings", "noted")):
                yield f"{key}{whose} is {values}"
    # A killed run may have no inventory.
    packages = {part.name: found for part in parts if (found := part.inventory.get("packages"))}
    yield from (f"{key} is {values}" for key, values in _differing(packages) if key == "pytest-openclaw")


def _differing_prompts(parts: Sequence[StoredRun]) -> Iterator[str]:
    prompts = {part.name: part.prompts for part in parts}
    for key in sorted(_unique(prompts.values())):
        having = _having(key, prompts)
        if different := [name for name, _ in _differing(having)]:
            what, where = ", ".join(different), ", ".join(having)
            yield f"{key[0]}: the prompt {key[1]} has another {what} in {where}"


def _having(key: Any, by_part: Mapping[str, Mapping[Any, Any]]) -> dict[str, Any]:
    return {part: one[key] for part, one in by_part.items() if key in one}


def _differing(by_part: Mapping[str, JsonObject]) -> Iterator[tuple[str, str]]:
    for key in sorted(_unique(by_part.values())):
        values = {part: one.get(key) for part, one in by_part.items()}
        if agreed(values.values()) is None and any(value is not None for value in values.values()):
            words = (value if isinstance(value, str) else json.dumps(value) for value in values.values())
            yield key, ", ".join(f"{word} in {part}" for word, part in zip(words, values, strict=True))


def _refuse(problems: Iterable[str], hint: str) -> None:
    if found := [*problems]:
        more = [f"and {len(found) - MAX_SHOWN} more"] if len(found) > MAX_SHOWN else []
        raise OpenClawError(f"{'; '.join([*found[:MAX_SHOWN], *more])}. {hint}")


# --- rows -----------------------------------------------------------------------------------------


def _joined_rows(
    parts: Sequence[StoredRun], prefer: Prefer | None
) -> tuple[dict[CellKey, StoredRow], list[str]]:
    rows: dict[CellKey, StoredRow] = {}
    contested: dict[CellKey, list[StoredRow]] = {}
    for part in parts:
        for key, row in part.rows.items():
            first = rows.setdefault(key, row)
            if first is not row and first.line != row.line:
                contested.setdefault(key, [first]).append(row)
    if not contested:
        return rows, []
    if prefer is None:
        shown = sorted(f"{key.suite}::{key.name}" for key in contested)
        raise OpenClawError(
            f"different rows of one cell: {first_few(shown, MAX_SHOWN)}. "
            "Give --prefer=newest or --prefer=oldest, or leave one of the runs out."
        )
    choose = min if prefer == "oldest" else max
    for key, found in contested.items():
        rows[key] = choose(found, key=lambda row: (row.record.ended_at_ms, row.line))
    cells = "1 cell has" if len(contested) == 1 else f"{len(contested)} cells have"
    return rows, [f"{cells} different rows; the {prefer} is kept"]


def _n_selected(target: Target, parts: Sequence[StoredRun], n_rows: int) -> int:
    """Count the cells of a target that the parts selected; a cell in several parts counts once.

    A part has the number of its cells and not their names. So the result is the sum without cells that have
    rows in several parts, limited by the number of cells that the prompts have.
    """
    asked = [part for part in parts if target in part.n_selected]
    n_repeated = sum(part.targets[target] for part in asked) - n_rows
    cells = {
        (prompt, repeat)
        for part in asked
        for prompt, entry in part.prompts.items()
        for repeat in range(1, (entry.get("repeat") or repeats_of(part.config)) + 1)
    }
    n_cells = sum(part.n_selected[target] for part in asked) - n_repeated
    return max(n_rows, min(n_cells, len(cells)))


# --- their files ----------------------------------------------------------------------------------


def _joined_inventory(inventories: Sequence[JsonObject]) -> JsonObject:
    targets = _agreed_each([one["targets"] for one in inventories])
    for label, facts in targets.items():
        for name, choose in ((BEFORE, min), (AFTER, max)):
            taken = [shot for one in inventories if (shot := one["targets"].get(label, {}).get(name))]
            if taken:
                facts[name] = choose(taken, key=lambda shot: shot.get("taken_at_ms") or 0)
    return {
        **_agreed_values(inventories, without=("run_id", "targets")),
        "targets": targets,
        "parts": inventories,
    }


def agreed(values: Iterable[Any]) -> Any:
    """Return the value that all have in common; None if they differ."""
    first, *others = values
    return first if all(value == first for value in others) else None


def _agreed_values(objects: Sequence[JsonObject], without: Iterable[str] = ()) -> JsonObject:
    names = (name for name in _unique(objects) if name not in without)
    return {name: agreed(one[name] for one in objects if name in one) for name in names}


def _agreed_each(groups: Sequence[Mapping[str, JsonObject]]) -> JsonObject:
    return {
        name: _agreed_values([group[name] for group in groups if name in group])
        for name in sorted(_unique(groups))
    }


def _unique(groups: Iterable[Iterable[Any]]) -> list[Any]:
    return [*dict.fromkeys(one for group in groups for one in group)]


COMMANDS = (CliCommand(name="merge", help=__doc__, add_arguments=_add_arguments, run=_run),)
