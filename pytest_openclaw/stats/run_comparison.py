"""Compares two runs cell by cell, where they have enough in common.

A cell is compared if prompt, validator and serving are equal in both runs. Others are set aside with the
reason, unless the user compares `across` that difference.
"""

from __future__ import annotations

import json
from collections import Counter
from dataclasses import dataclass
from functools import cached_property
from typing import TYPE_CHECKING

from pytest_openclaw.stats.comparison import ComparedRuns, Obstacle, Obstacles, compare_records, pair_cells
from pytest_openclaw.stats.weight import served_in
from pytest_openclaw.util.errors import OpenClawError
from pytest_openclaw.values.requests import LISTED
from pytest_openclaw.values.settings import ACROSS, IDENTITY, PROMPTS, PROVIDERS, SETTINGS, keys_to

if TYPE_CHECKING:
    from collections.abc import Collection, Iterator, Mapping, Sequence

    from pytest_openclaw.stats.comparison import PromptKey
    from pytest_openclaw.util.json_types import JsonObject
    from pytest_openclaw.values.requests import Target
    from pytest_openclaw.values.rows import Record
    from pytest_openclaw.values.settings import Rule

NOT_SERVING = frozenset({"size_bytes", "vram_bytes"})
"""How a model lay in memory at that moment, which is another thing than what was served."""
LONGEST_VALUE = 24


@dataclass(frozen=True, kw_only=True)
class Measured:
    """A run, stored or just ended.

    Attributes:
        records: of each cell the last row; texts are left out.
        config, inventory: as in its files.
        n_selected: cells by target; one that was not asked to the end has fewer rows.
        pool: earlier runs that are a baseline together with this one.
    """

    run_id: str
    records: tuple[Record, ...]
    config: JsonObject
    inventory: JsonObject
    n_selected: Mapping[Target, int]
    pool: tuple[Measured, ...] = ()

    @cached_property
    def targets(self) -> dict[Target, int]:
        """How many rows each target has, in order of the config, then of the rows."""
        counts = dict.fromkeys(self.n_selected, 0)
        for record in self.records:
            counts[record.target] = counts.get(record.target, 0) + 1
        return counts

    @cached_property
    def unfinished(self) -> frozenset[Target]:
        """Targets of which not every cell has a row."""
        rows = self.targets
        return frozenset(target for target, n in self.n_selected.items() if rows[target] < n)


def compare_runs(
    base: Measured,
    candidate: Measured,
    *,
    across: Collection[str] = (),
    targets: Sequence[tuple[Target, Target]] | None = None,
) -> ComparedRuns:
    """Compare two runs.

    Args:
        base: the baseline, perhaps with a pool.
        candidate: the other one.
        across: differences to look across, of `ACROSS`.
        targets: of both; None takes those that both have, and if there are none and each has one, these two.
    """
    paired = common_targets(base, candidate, across) if targets is None else list(targets)
    pool = []
    for run in base.pool:
        cells = pair_cells(
            run.records,
            candidate.records,
            paired,
            _obstacles(run, candidate, [pair for pair in paired if pair[0] in run.targets], across),
            candidate.unfinished,
        )
        if any(one.pairs for one in cells):
            pool.append((run, cells))
    return compare_records(
        base.records,
        candidate.records,
        paired,
        _obstacles(base, candidate, paired, across),
        baseline=base.run_id,
        unfinished=candidate.unfinished,
        notes=[*_notes(base, candidate), *_pooled(base, [run for run, _ in pool])],
        pool=[cells for _, cells in pool],
    )


def _obstacles(
    base: Measured, candidate: Measured, paired: Sequence[tuple[Target, Target]], across: Collection[str]
) -> Obstacles:
    return Obstacles(
        of_targets=dict(_target_obstacles(base, candidate, paired, across)),
        of_prompts=dict(_prompt_obstacles(base, candidate, across)),
        with_answering_model="serving" not in across and all(one == other for one, other in paired),
    )


def _pooled(base: Measured, pool: Sequence[Measured]) -> Iterator[str]:
    if pool:
        yield f"verdicts are compared with {len(pool) + 1} runs: {', '.join(r.run_id for r in (base, *pool))}"
    used = {run.run_id for run in pool}
    for run in base.pool:
        if run.run_id not in used:
            yield f"{run.run_id} is left out of the baseline: none of its cells can be compared"


def common_targets(
    base: Measured, candidate: Measured, across: Collection[str] = ()
) -> list[tuple[Target, Target]]:
    """Return the targets that are compared unless the user names some.

    Across surfaces, they are those of one model on two surfaces, in their order if both runs have both.
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
        OpenClawError: one of them is none.
    """
    named = [word.strip() for word in text.split(",") if word.strip()]
    for word in named:
        if word not in ACROSS:
            raise OpenClawError(f"{word!r} is nothing to look across; there are {', '.join(ACROSS)}")
    return frozenset(named)


def named_targets(base: Measured, candidate: Measured, named: Sequence[str]) -> list[tuple[Target, Target]]:
    """Return the targets that the user names: `BASE=CANDIDATE`, or one label for both.

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


def _target_obstacles(
    base: Measured, candidate: Measured, paired: Sequence[tuple[Target, Target]], across: Collection[str]
) -> Iterator[tuple[Target, Obstacle]]:
    for one, other in paired:
        differences = [] if "settings" in across else [*_settings(base, candidate, one, other)]
        if one.surface != other.surface and "surface" not in across:
            yield other, Obstacle("on_another_surface", _change("surface", one.surface, other.surface))
        elif differences:
            yield other, Obstacle("asked_differently", "; ".join(differences))
        elif one == other and "serving" not in across:
            served = [*_serving(base.inventory, candidate.inventory, one.label)]
            if served:
                yield other, Obstacle("served_differently", "; ".join(served))


def _settings(base: Measured, candidate: Measured, one: Target, other: Target) -> Iterator[str]:
    """Say which settings differ that shape a request."""
    yield from _differing(SETTINGS, "settings", base.config, candidate.config)
    if one.surface == other.surface != LISTED:
        yield from _surface(base.config.get("surface") or {}, candidate.config.get("surface") or {})
    if one.provider == other.provider:
        before, after = (run.config["providers"].get(one.provider, {}) for run in (base, candidate))
        yield from _differing(PROVIDERS, "settings", before, after)


def _surface(before: JsonObject, after: JsonObject) -> Iterator[str]:
    """Say that OpenClaw sends other texts, tools or fields: of another release, or a substitute's."""
    if before.get("sha256") != after.get("sha256"):
        names = (f"{one.get('release')} {one.get('source')}" for one in (before, after))
        yield _change("surface", *names)


def _differing(rules: Mapping[str, Rule], need: str, before: JsonObject, after: JsonObject) -> Iterator[str]:
    # A key that one run lacks is unknown to its version.
    common = sorted((before.keys() & after.keys()) - set(IDENTITY))
    for name in keys_to(rules, "compare", need, common):
        if before[name] != after[name]:
            yield _change(name, _shown(before[name]), _shown(after[name]))


def _serving(before: JsonObject, after: JsonObject, label: str) -> Iterator[str]:
    """Say which of the values differ that both servers report: version, digest, quantisation and others."""
    then, now = _served(before, label), _served(after, label)
    for key in sorted((then.keys() & now.keys()) - NOT_SERVING):
        if then[key] != now[key]:
            yield _change(key.replace("_", " "), _all_shown(then[key]), _all_shown(now[key]))


def _served(inventory: JsonObject, label: str) -> dict[str, dict[str, object]]:
    """Return every value that a server reported, on any machine and in any part of a merged run."""
    found: dict[str, dict[str, object]] = {}
    for serving in served_in(inventory, label):
        for server in (serving.get("server"), serving.get("server_when_resumed")):
            for key, value in server.items() if isinstance(server, dict) else ():
                if value is not None:  # a merged run's parts differ in it, and follow
                    found.setdefault(key, {})[json.dumps(value, sort_keys=True)] = value
    return {key: dict(sorted(values.items())) for key, values in found.items()}


def _prompt_obstacles(
    base: Measured, candidate: Measured, across: Collection[str]
) -> Iterator[tuple[PromptKey, Obstacle]]:
    for key, changed in _changed_prompts(base, candidate):
        asked = keys_to(PROMPTS, "compare", "prompt", changed)
        judged = keys_to(PROMPTS, "compare", "validator", changed)
        if asked and "prompt" not in across:
            yield key, Obstacle("prompt_changed", ", ".join(asked))
        elif judged and "validator" not in across:
            yield key, Obstacle("validator_changed", ", ".join(judged))


def _changed_prompts(base: Measured, candidate: Measured) -> Iterator[tuple[PromptKey, list[str]]]:
    """Yield the keys that differ of each prompt of both runs."""
    then, now = _prompts(base.config), _prompts(candidate.config)
    for key in then.keys() & now.keys():
        yield key, [name for name in PROMPTS if then[key].get(name) != now[key].get(name)]


def _prompts(config: JsonObject) -> Mapping[PromptKey, JsonObject]:
    return {(prompt["suite"], prompt["id"]): prompt for prompt in config["prompts"]}


def _notes(base: Measured, candidate: Measured) -> Iterator[str]:
    for run in (base, candidate):
        if missing := sum(run.n_selected[target] - run.targets[target] for target in run.unfinished):
            yield f"{run.run_id} is not finished: {missing} of its cells have no row"
    yield from _differing(SETTINGS, "noted", base.config, candidate.config)
    noted = Counter(
        name
        for _, changed in _changed_prompts(base, candidate)
        for name in keys_to(PROMPTS, "compare", "noted", changed)
    )
    yield from (f"{name} of {n} prompt{'s' * (n > 1)} differs" for name, n in sorted(noted.items()))
    before, after = (
        (run.inventory.get("packages") or {}).get("pytest-openclaw") for run in (base, candidate)
    )
    if before and after and before != after:
        yield f"judged by pytest-openclaw {before} -> {after}; `rescore` judges both by one version"


def _change(what: str, before: str, after: str) -> str:
    # What is long may differ where it is not shown.
    return f"{what} differs" if before == after else f"{what} {before} -> {after}"


def _all_shown(values: Mapping[str, object]) -> str:
    return " or ".join(_shown(value) for value in values.values())


def _shown(value: object) -> str:
    text = value if isinstance(value, str) else json.dumps(value)
    return text if len(text) <= LONGEST_VALUE else f"{text[: LONGEST_VALUE - 1]}…"
