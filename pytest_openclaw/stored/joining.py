"""Joins the `config.json` and `inventory.json` of several runs into those of the merged run.

The top level has the values on which all parts agree, null where they differ; `parts` has the values of each
measured run, also if it is part of a run that was merged before.
"""

from __future__ import annotations

import json
from dataclasses import asdict, dataclass
from typing import TYPE_CHECKING

from pytest_openclaw.stored.agreement import agreed
from pytest_openclaw.stored.common_order import common_order, natural
from pytest_openclaw.stored.reading import target_of
from pytest_openclaw.types.run_config import IDENTITY

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping, Sequence

    from pytest_openclaw.core.json_types import JsonObject
    from pytest_openclaw.stored.parts import Part, PromptKey
    from pytest_openclaw.types.targets import Target

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
