"""Checks what merged runs must have in common, and notes what they may differ in."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any, Literal

from pytest_openclaw.core.errors import OpenClawError
from pytest_openclaw.core.text import first_few
from pytest_openclaw.types.run_config import IDENTITY, PROMPTS, PROVIDERS, SETTINGS, keys_to
from pytest_openclaw.types.settings import Shard, parse_shard

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping, Sequence

    from pytest_openclaw.core.json_types import JsonObject
    from pytest_openclaw.stored.parts import Part


MAX_SHOWN = 5


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
