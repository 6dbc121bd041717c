"""What the runs that are merged must have in common, and what they may differ in."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any, Literal

from pytest_openclaw.core.errors import OpenClawError
from pytest_openclaw.types.run_config import IDENTITY, PROMPTS, PROVIDERS, SETTINGS, keys_to

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping, Sequence

    from pytest_openclaw.core.json_types import JsonObject
    from pytest_openclaw.stored.parts import Part


MOST_TOLD = 5


def check_agreement(parts: Sequence[Part]) -> None:
    """Refuse parts that did not measure the same thing.

    Raises:
        OpenClawError: names what differs, and in which parts.
    """
    _refuse(differing_settings(parts, "equal"), "Merge runs that asked alike; ask the others again.")
    _refuse(
        _different_prompts(parts),
        "Merge runs of one version of a suite; `rescore` gives older replies today's validators.",
    )


def agreed(values: Iterable[Any]) -> Any:
    """Return the value that all have; None, which is told as a difference elsewhere, if they differ."""
    first, *others = values
    return first if all(value == first for value in others) else None


def differing_servers(parts: Sequence[Part]) -> list[str]:
    """Say which targets were not served alike: another version, digest or quantisation."""
    told = []
    for label in sorted({label for part in parts for label in part.run.inventory["targets"]}):
        served = {
            part.name: server
            for part in parts
            if isinstance(server := part.run.inventory["targets"].get(label, {}).get("server"), dict)
        }
        for key in sorted({key for server in served.values() for key in server}):
            values = {part: server.get(key) for part, server in served.items()}
            if not _are_equal(values.values()):
                told.append(f"{label} was not served alike: {key} is {_listed(values)}")
    return told


def differing_settings(parts: Sequence[Part], need: Literal["equal", "noted"]) -> list[str]:
    """Say which settings differ, those of providers included: that must be equal, or that are noted."""
    told = []
    names = {name for part in parts for name in part.run.config} - set(IDENTITY)
    for name in keys_to(SETTINGS, "merge", need, sorted(names)):
        told += _difference(name, {part.name: part.run.config for part in parts}, name)
    for provider in sorted({name for part in parts for name in part.run.config["providers"]}):
        described = {
            part.name: part.run.config["providers"][provider]
            for part in parts
            if provider in part.run.config["providers"]
        }
        keys = {key for one in described.values() for key in one}
        for key in keys_to(PROVIDERS, "merge", need, sorted(keys)):
            told += _difference(f"{key} of the provider {provider}", described, key)
    return told


def _difference(what: str, by_part: Mapping[str, JsonObject], key: str) -> list[str]:
    # An older version may not have told it yet.
    values = {part: values[key] for part, values in by_part.items() if key in values}
    if _are_equal(values.values()):
        return []
    return [f"{what} is {_listed(values)}"]


def _different_prompts(parts: Sequence[Part]) -> list[str]:
    told = []
    for suite, prompt_id in sorted({key for part in parts for key in part.prompts}):
        definitions = {
            part.name: part.prompts[suite, prompt_id] for part in parts if (suite, prompt_id) in part.prompts
        }
        keys = {key for definition in definitions.values() for key in definition}
        different = [
            key
            for key in keys_to(PROMPTS, "merge", "equal", sorted(keys))
            if not _are_equal([definition.get(key) for definition in definitions.values()])
        ]
        if different:
            where = ", ".join(sorted(definitions))
            told.append(f"{suite}: the prompt {prompt_id} has another {', '.join(different)} in {where}")
    return told


def _listed(values: Mapping[str, Any]) -> str:
    """Say what stands in which part."""
    return ", ".join(
        f"{value if isinstance(value, str) else json.dumps(value)} in {part}"
        for part, value in sorted(values.items())
    )


def _are_equal(values: Iterable[Any]) -> bool:
    listed = list(values)
    return all(value == listed[0] for value in listed)


def _refuse(problems: Sequence[str], mend: str) -> None:
    if problems:
        rest = len(problems) - MOST_TOLD
        more = [f"and {rest} more"] if rest > 0 else []
        raise OpenClawError(f"{'; '.join([*problems[:MOST_TOLD], *more])}. {mend}")
