"""Writes and reads the figures of a run without any text of it, to be shared: `result.json`.

The schema is `types/schemas/result.schema.json`. A prompt is known by a digest of what shapes its request and
decides its verdict, so that two files can be compared prompt by prompt although neither contains a prompt.
"""

from __future__ import annotations

import hashlib
import json
from collections import defaultdict
from dataclasses import asdict
from pathlib import PurePosixPath
from typing import TYPE_CHECKING

from pytest_openclaw import __version__
from pytest_openclaw.core.errors import OpenClawError
from pytest_openclaw.core.files import load_object
from pytest_openclaw.stats.groups import group_to_json
from pytest_openclaw.stats.rates import cluster_of, is_judged
from pytest_openclaw.stats.shared_results import PromptCounts, SharedResult
from pytest_openclaw.stats.tool_use import calls_of, did_right
from pytest_openclaw.stored.parts import is_python
from pytest_openclaw.stored.reading import target_of
from pytest_openclaw.types.documents import check_object
from pytest_openclaw.types.run_config import PROMPTS, SETTINGS, keys_to
from pytest_openclaw.types.targets import LISTED

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence
    from pathlib import Path

    from pytest_openclaw.core.json_types import JsonObject
    from pytest_openclaw.stats.groups import Group
    from pytest_openclaw.stats.summary import Summary
    from pytest_openclaw.stored.parts import Part, PromptKey
    from pytest_openclaw.types.records import Record

FORMAT = "pytest-openclaw-result"
FORMAT_VERSION = 1
FIGURES = (
    "n_total", "n_ok", "passed", "tool_use", "latency_ms", "latency_intervals_95", "ttft_ms",
    "ttft_intervals_95", "tokens_per_s", "tokens_per_s_interval_95", "cost_usd", "input_tokens",
    "output_tokens", "safety", "n_open_probes", "over_refusal",
)  # fmt: skip
"""Of a target in `summary.json`: figures, and nothing that quotes a prompt, a reply or an address."""
_MACHINE = ("cpu", "memory_total_bytes", "gpus")


def result_of(part: Part, summary: Summary, now_ms: int) -> JsonObject:
    """Return the content of a result file.

    Args:
        part: the run.
        summary: its figures.
        now_ms: the time, in ms since the epoch.

    Raises:
        OpenClawError: no target was answered.
    """
    if not any(group.n_ok for group in summary.groups):
        raise OpenClawError(f"{part.name} has no answered cell, so there is nothing to share")
    # The test of a benchmark in Python is not known.
    digests = {key: _digest(entry) for key, entry in part.prompts.items() if not is_python(entry)}
    by_prompt: dict[PromptKey, list[Record]] = defaultdict(list)
    for record in part.records:
        if (key := (record.suite, record.prompt_id)) in digests:
            by_prompt[key].append(record)
    keys = [key for key in digests if key in by_prompt]
    clusters = list(dict.fromkeys(cluster_of(by_prompt[key][0]) for key in keys))
    config, inventory = part.run.config, part.run.inventory
    shaping = keys_to(SETTINGS, "compare", "settings", SETTINGS)
    return {
        "format": FORMAT,
        "format_version": FORMAT_VERSION,
        "plugin_version": __version__,
        "published_at_ms": now_ms,
        "measured_at_ms": max(record.ended_at_ms for record in part.records),
        "n_missing": part.n_cells - part.n_rows,
        "settings": {name: config[name] for name in shaping if name in config},
        "surface": config.get("surface"),
        "machine": {name: inventory[name] for name in _MACHINE if name in inventory},
        "suites": _suites(digests),
        "prompts": [
            {"digest": digests[key], "cluster": clusters.index(cluster_of(by_prompt[key][0]))} for key in keys
        ],
        "targets": [
            _target(part, group, [by_prompt[key] for key in keys]) for group in summary.groups if group.n_ok
        ],
    }


def read_result(path: Path) -> list[SharedResult]:
    """Return the targets of a result file; raises as `parse_result` does, and if it cannot be read."""
    return parse_result(path, load_object(path))


def render_result(content: JsonObject) -> str:
    """Return the text of a result file: JSON, a line for each prompt and for each figure of a target."""
    return json.dumps(content, indent=1) + "\n"


def parse_result(path: Path, content: JsonObject) -> list[SharedResult]:
    """Return the targets in the content of a result file.

    Raises:
        OpenClawError: it is no result file, or has a newer format; the message says what is wrong.
    """
    if content.get("format") != FORMAT:
        raise OpenClawError(f"{path} is no result file; `pytest-openclaw publish RUN` writes one")
    version = content.get("format_version")
    if isinstance(version, int) and version > FORMAT_VERSION:
        raise OpenClawError(
            f"{path}: its format is {version}, the newest known here is {FORMAT_VERSION}; "
            "upgrade pytest-openclaw"
        )
    check_object(path, "result", content)
    digests = [prompt["digest"] for prompt in content["prompts"]]
    first: dict[int, str] = {}
    for prompt in content["prompts"]:
        first.setdefault(prompt["cluster"], prompt["digest"])
    clusters = {prompt["digest"]: first[prompt["cluster"]] for prompt in content["prompts"]}
    settings = content["settings"]
    for target in content["targets"]:
        if len(target["cells"]) != len(digests):
            n = len(target["cells"])
            raise OpenClawError(f"{path}: {target['model']} has {n} `cells` for {len(digests)} prompts")
        if any(cells is not None and len(cells) != len(PromptCounts._fields) for cells in target["cells"]):
            raise OpenClawError(f"{path}: {target['model']}: an entry of `cells` has not four counts")
        if problem := _contradiction(target):
            raise OpenClawError(f"{path}: {target['model']}: {problem}")
    return [
        SharedResult(
            name=target_of(target).label,
            source=str(path),
            figures={**target, "measured_at_ms": content["measured_at_ms"]},
            conditions={**settings, **_conditions(target, content["surface"] or {})},
            prompts=_counted(digests, target["cells"]),
            clusters=clusters,
        )
        for target in content["targets"]
    ]


def _contradiction(target: JsonObject) -> str | None:
    """Return what in a target's figures cannot be; None if they fit together."""
    counts = [PromptCounts(*cells) for cells in target["cells"] if cells]
    if any(one.n_passed > one.n or one.n_right > one.n_calls for one in counts):
        return "an entry of `cells` has more passed or right cells than cells"
    for name, n, n_success in (
        ("passed", sum(one.n for one in counts), sum(one.n_passed for one in counts)),
        ("tool_use", sum(one.n_calls for one in counts), sum(one.n_right for one in counts)),
    ):
        figures = target[name]
        # Benchmarks in Python are in the figures, and have no entry in `cells`.
        if n > figures["n"] or n_success > figures["n_success"] or figures["n_success"] > figures["n"]:
            return f"`cells` and `{name}` contradict each other"
        rate = figures["n_success"] / figures["n"] if figures["n"] else None
        if (rate is None) != (figures["rate"] is None) or abs((rate or 0) - (figures["rate"] or 0)) > 1e-6:
            return f"`{name}`: its rate is not that of its counts"
    return None


def _conditions(target: JsonObject, surface: JsonObject) -> JsonObject:
    """Return what is no setting, and has to be equal for a comparison: surface, and release that judged."""
    name = target.get("surface", LISTED)
    sent = "" if name == LISTED else f" {surface.get('release')} {str(surface.get('sha256'))[:8]}"
    return {"surface": f"{name}{sent}", "release": target["recommendation"].get("release")}


def _counted(digests: Sequence[str], cells: Sequence[Sequence[int] | None]) -> dict[str, PromptCounts]:
    """Return the counts by digest; two prompts may be equal."""
    found: dict[str, PromptCounts] = {}
    for digest, counts in zip(digests, cells, strict=True):
        if counts:
            before = found.get(digest, PromptCounts(0, 0, 0, 0))
            found[digest] = PromptCounts(*map(sum, zip(before, counts, strict=True)))
    return found


def _target(part: Part, group: Group, by_prompt: Sequence[Sequence[Record]]) -> JsonObject:
    figures, target = group_to_json(group), group.target
    kind = part.run.config["providers"].get(target.provider, {}).get("kind", target.provider)
    served = part.run.inventory.get("targets", {}).get(target.label, {}).get("server")
    return {
        **asdict(target),
        "kind": kind,
        "server": served if isinstance(served, dict) else {},
        **{name: figures[name] for name in FIGURES},
        "recommendation": {
            name: figures["recommendation"][name]
            for name in ("kind", "sentence", "tools", "harm_tools", "release")
        },
        "cells": [_counts([one for one in records if one.target == target], group) for records in by_prompt],
    }


def _counts(records: Sequence[Record], group: Group) -> list[int] | None:
    judged = [one for one in records if is_judged(one)]
    calls = calls_of(records, group.tool_use)
    if not (judged or calls):
        return None
    n_passed = sum(one.objective_pass is True for one in judged)
    return [*PromptCounts(len(judged), n_passed, len(calls), sum(map(did_right, calls)))]


def _digest(definition: JsonObject) -> str:
    """Return 16 hexadecimal digits of SHA-256 of what shapes a request and decides a verdict."""
    names = [
        *keys_to(PROMPTS, "compare", "prompt", definition),
        *keys_to(PROMPTS, "compare", "validator", definition),
    ]
    # A key that is not set and one that an earlier version did not have are the same.
    shaping = {name: definition[name] for name in sorted(names) if definition[name] is not None}
    return hashlib.sha256(json.dumps(shaping, sort_keys=True).encode()).hexdigest()[:16]


def _suites(digests: Mapping[PromptKey, str]) -> list[JsonObject]:
    """Return each suite's file name, and a digest of its prompts in whatever order."""
    by_suite: dict[str, list[str]] = defaultdict(list)
    for (suite, _), digest in digests.items():
        by_suite[suite].append(digest)
    return [
        {
            "name": PurePosixPath(suite).name,
            "digest": hashlib.sha256("".join(sorted(found)).encode()).hexdigest()[:16],
            "n_prompts": len(found),
        }
        for suite, found in by_suite.items()
    ]
