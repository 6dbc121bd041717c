"""Compares two runs cell by cell, where they have enough in common.

A cell is compared if its prompt, validator, settings and serving are equal in both runs. Other cells are set
aside with the reason, unless the user compares `across` this difference.
"""

from __future__ import annotations

import json
from dataclasses import dataclass
from functools import cached_property
from typing import TYPE_CHECKING

from pytest_openclaw.conclusions.serving import served_in
from pytest_openclaw.stats.comparison import ComparedRuns, Obstacle, Obstacles, compare_records
from pytest_openclaw.util.errors import OpenClawError
from pytest_openclaw.values.prompts import PROMPTS
from pytest_openclaw.values.requests import LISTED
from pytest_openclaw.values.settings import ACROSS, IDENTITY, PROVIDERS, SETTINGS, keys_to

if TYPE_CHECKING:
    from collections.abc import Collection, Iterator, Mapping, Sequence

    from pytest_openclaw.stats.comparison import Reason
    from pytest_openclaw.util.files import JsonObject
    from pytest_openclaw.values.requests import PromptKey, Target
    from pytest_openclaw.values.rows import Record
    from pytest_openclaw.values.settings import Rule

LONGEST_VALUE = 24


@dataclass(frozen=True, kw_only=True)
class Measured:
    """A run, stored or just ended.

    Attributes:
        records: the last row of each cell, without texts.
        config, inventory: the contents of its files.
        n_selected: the number of cells of each target; an unfinished target has fewer rows.
    """

    run_id: str
    records: tuple[Record, ...]
    config: JsonObject
    inventory: JsonObject
    n_selected: Mapping[Target, int]

    @cached_property
    def targets(self) -> dict[Target, int]:
        """The number of rows of each target, in the order of the config, then of the rows."""
        counts = dict.fromkeys(self.n_selected, 0)
        for record in self.records:
            counts[record.target] = counts.get(record.target, 0) + 1
        return counts

    @property
    def unfinished(self) -> frozenset[Target]:
        """Targets with cells that have no row."""
        return frozenset(target for target, n in self.n_selected.items() if self.targets[target] < n)


def compare_runs(
    base: Measured,
    candidate: Measured,
    *,
    across: Collection[str] = (),
    targets: Sequence[tuple[Target, Target]] | None = None,
) -> ComparedRuns:
    """Compare two runs; a difference in `across` (see `ACROSS`) does not set cells aside.

    Without `targets`, the targets that both runs have are compared. If there are no such targets and each
    run has only one, the two are compared with each other.
    """
    paired = _default_pairs(base, candidate, across) if targets is None else list(targets)
    obstacles = Obstacles(
        of_targets={
            other: obstacle
            for one, other in paired
            if (obstacle := _target_obstacle(base, candidate, one, other, across))
        },
        of_prompts=dict(_prompt_obstacles(base, candidate, across)),
        with_answering_model="serving" not in across and all(one == other for one, other in paired),
    )
    return compare_records(
        base.records,
        candidate.records,
        paired,
        obstacles,
        baseline=base.run_id,
        unfinished=candidate.unfinished,
        notes=[*_notes(base, candidate)],
    )


def _default_pairs(
    base: Measured, candidate: Measured, across: Collection[str]
) -> list[tuple[Target, Target]]:
    """Return the targets that are compared if the user names none.

    Across surfaces, a pair is one model on two surfaces, from `listed` to the other one if possible.
    """
    theirs, ours = base.targets, candidate.targets
    if "surface" in across:
        pairs = [(one, two) for two in ours for one in theirs if one != two and one.on(two.surface) == two]
        return [(one, two) for one, two in pairs if one.surface == LISTED] or pairs
    if common := [(target, target) for target in ours if target in theirs]:
        return common
    return [(*theirs, *ours)] if len(theirs) == len(ours) == 1 else []  # type: ignore[list-item]


def parse_across(text: str) -> frozenset[str]:
    """Return the differences that a list such as `serving,validator` names.

    Raises:
        OpenClawError: a difference is unknown.
    """
    named = frozenset(word.strip() for word in text.split(",")) - {""}
    if unknown := sorted(named.difference(ACROSS)):
        raise OpenClawError(f"unknown difference {unknown[0]!r}; choose from {', '.join(ACROSS)}")
    return named


def named_targets(base: Measured, candidate: Measured, named: Sequence[str]) -> list[tuple[Target, Target]]:
    """Return the pairs of targets that the user names: `BASE=CANDIDATE`, or one label for both runs.

    Raises:
        OpenClawError: a run has no such target.
    """
    pairs = []
    for text in named:
        one, separator, other = text.partition("=")
        pairs.append((_target(base, one), _target(candidate, other if separator else one)))
    return pairs


def _target(run: Measured, label: str) -> Target:
    found = next((target for target in run.targets if target.label == label), None)
    if found is None:
        known = ", ".join(target.label for target in run.targets)
        raise OpenClawError(f"--target: {run.run_id} has no target {label}; it has {known}")
    return found


def _target_obstacle(
    base: Measured, candidate: Measured, one: Target, other: Target, across: Collection[str]
) -> Obstacle | None:
    if one.surface != other.surface and "surface" not in across:
        return Obstacle("on_another_surface", _change("surface", one.surface, other.surface))
    if "settings" not in across and (differing := [*_settings(base, candidate, one, other)]):
        return Obstacle("asked_differently", "; ".join(differing))
    if one == other and "serving" not in across:
        then, now = _served(base.inventory, one.label), _served(candidate.inventory, one.label)
        changes = [
            _change(key.replace("_", " "), " or ".join(then[key]), " or ".join(now[key]))
            for key in sorted(then.keys() & now.keys())
            if then[key] != now[key]
        ]
        if changes:
            return Obstacle("served_differently", "; ".join(changes))
    return None


def _settings(base: Measured, candidate: Measured, one: Target, other: Target) -> Iterator[str]:
    """Yield the settings that shape a request and differ."""
    yield from _differing(SETTINGS, "settings", base.config, candidate.config)
    if one.surface == other.surface != LISTED:
        before, after = (run.config.get("surface") or {} for run in (base, candidate))
        if before.get("sha256") != after.get("sha256"):  # other texts, tools or fields
            names = (f"{sent.get('release')} {sent.get('source')}" for sent in (before, after))
            yield _change("surface", *names)
    if one.provider == other.provider:
        before, after = (run.config["providers"].get(one.provider, {}) for run in (base, candidate))
        yield from _differing(PROVIDERS, "settings", before, after)


def _differing(rules: Mapping[str, Rule], need: str, before: JsonObject, after: JsonObject) -> Iterator[str]:
    # The version that wrote a run without a key did not know this key.
    common = sorted((before.keys() & after.keys()) - set(IDENTITY))
    for name in keys_to(rules, "compare", need, common):
        if before[name] != after[name]:
            yield _change(name, _as_text(before[name]), _as_text(after[name]))


def _served(inventory: JsonObject, label: str) -> dict[str, list[str]]:
    """Return, by key, the values that a server reported in any part of a merged run, as text."""
    found: dict[str, set[str]] = {}
    for serving in served_in(inventory, label):
        for server in (serving.get("server"), serving.get("server_when_resumed")):
            for key, value in server.items() if isinstance(server, dict) else ():
                if value is not None:  # null in a merged run whose parts differ, which follow
                    found.setdefault(key, set()).add(_as_text(value))
    return {key: sorted(values) for key, values in found.items()}


def _prompt_obstacles(
    base: Measured, candidate: Measured, across: Collection[str]
) -> Iterator[tuple[PromptKey, Obstacle]]:
    obstacles: dict[str, Reason] = {"prompt": "prompt_changed", "validator": "validator_changed"}
    then, now = (
        {(prompt["suite"], prompt["id"]): prompt for prompt in run.config["prompts"]}
        for run in (base, candidate)
    )
    for key in then.keys() & now.keys():
        changed = [name for name in PROMPTS if then[key].get(name) != now[key].get(name)]
        for need, reason in obstacles.items():
            names = keys_to(PROMPTS, "compare", need, changed)
            if names and need not in across:
                yield key, Obstacle(reason, ", ".join(names))
                break


def _notes(base: Measured, candidate: Measured) -> Iterator[str]:
    for run in (base, candidate):
        if missing := sum(run.n_selected[target] - run.targets[target] for target in run.unfinished):
            yield f"{run.run_id} is not finished: {missing} of its cells have no row"
    yield from _differing(SETTINGS, "noted", base.config, candidate.config)
    before, after = (
        (run.inventory.get("packages") or {}).get("pytest-openclaw") for run in (base, candidate)
    )
    if before and after and before != after:
        yield f"judged by pytest-openclaw {before} -> {after}; `rescore` judges both by one version"


def _change(what: str, before: str, after: str) -> str:
    return f"{what} {_shortened(before)} -> {_shortened(after)}"


def _as_text(value: object) -> str:
    return value if isinstance(value, str) else json.dumps(value, sort_keys=True)


def _shortened(text: str) -> str:
    return text if len(text) <= LONGEST_VALUE else f"{text[: LONGEST_VALUE - 1]}…"
