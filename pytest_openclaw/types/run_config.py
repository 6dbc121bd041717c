"""A run's `config.json`: its version, its settings, and which of its keys two runs must have in common.

The rules are for the three commands that put runs together. A key of no rule has the last rule of its table.
"""

from __future__ import annotations

from dataclasses import asdict
from typing import TYPE_CHECKING, Literal, NamedTuple

from pytest_openclaw.types.settings import THINKING_ROOM_TOKENS
from pytest_openclaw.types.surface import surface_facts

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping

    from pytest_openclaw.core.json_types import JsonObject
    from pytest_openclaw.types.settings import Settings

CONFIG_VERSION = 1
IDENTITY = ("schema_version", "run_id", "models", "targets", "prompts", "providers", "parts", "rescored")
"""Keys that are no setting: what the run is, and what has rules of its own."""
OTHER = "any other key"


class Rule(NamedTuple):
    """Whether a key may differ.

    Attributes:
        resume: `equal` refuses another value, `kept` takes the run's unless the command line has another one,
            `grows` refuses a smaller one, `once` another one if the run has one.
        merge: `equal` refuses different values, `noted` says that they differ.
        compare: the difference that `--across` has to name; without it such cells are set aside.
        why: what the key decides.
    """

    resume: Literal["equal", "kept", "grows", "once", "free"]
    merge: Literal["equal", "noted", "free"]
    compare: Literal["settings", "prompt", "validator", "noted", "free"]
    why: str


SETTINGS: Mapping[str, Rule] = {
    "temperature": Rule("equal", "equal", "settings", "shapes the request"),
    "top_p": Rule("equal", "equal", "settings", "shapes the request"),
    "seed": Rule("equal", "equal", "settings", "shapes the request"),
    "tool_choice": Rule("equal", "equal", "settings", "shapes the request"),
    "request_fields": Rule("equal", "equal", "settings", "shapes the request"),
    "thinking_room_tokens": Rule("equal", "equal", "settings", "shapes the request"),
    "surface": Rule("once", "equal", "free", "shapes requests on `openclaw`; compared by target"),
    "stream": Rule("equal", "equal", "settings", "shapes the request"),
    "timeout_s": Rule("free", "noted", "noted", "how many slow cells end as timeouts; no verdict"),
    "repeat": Rule("grows", "free", "free", "how often a prompt is asked"),
    "until_conclusive": Rule("kept", "free", "free", "how often a prompt is asked"),
    "looks": Rule("once", "free", "free", "how sure a tier must be; chosen before the first answer"),
    "verdict": Rule("kept", "free", "free", "the exit status"),
    "gates": Rule("kept", "free", "free", "the exit status; a merged run has those that all parts have"),
    "fail_unavailable": Rule("kept", "free", "free", "the exit status"),
    "shard": Rule("equal", "free", "free", "which part of the cells is asked; a merged run needs all parts"),
    "divided_sha256": Rule("free", "free", "free", "which cells the shards divide"),
    "retries": Rule("free", "free", "free", "how often a fault is tried again"),
    "concurrency": Rule("free", "free", "free", "the pace; a row has its `in_flight`"),
    "budget_usd": Rule("free", "free", "free", "when the asking ends"),
    "baseline": Rule("free", "free", "free", "the run to compare with"),
    "across": Rule("free", "free", "free", "how to compare"),
    OTHER: Rule("free", "equal", "settings", "unknown: written by another version"),
}
PROVIDERS: Mapping[str, Rule] = {
    "base_url": Rule("equal", "noted", "free", "each machine has its own server"),
    "auth": Rule("equal", "free", "free", "each machine has its own way in"),
    "key_env": Rule("free", "free", "free", "under which name the key is found"),
    OTHER: Rule("equal", "equal", "settings", "shapes the request"),
}
"""Resume checks only providers that have an answered row: another one may have moved."""
PROMPTS: Mapping[str, Rule] = {
    "name": Rule("equal", "equal", "free", "part of each row"),
    "prompt": Rule("equal", "equal", "prompt", "shapes the request"),
    "validator": Rule("equal", "equal", "validator", "decides the verdict"),
    "expected_tool_calls": Rule("equal", "equal", "validator", "decides the verdict"),
    "category": Rule("equal", "equal", "free", "part of each row"),
    "system": Rule("equal", "equal", "prompt", "shapes the request"),
    "images_sha256": Rule("equal", "equal", "prompt", "shapes the request"),
    "messages": Rule("equal", "equal", "prompt", "shapes the request"),
    "turns": Rule("equal", "equal", "prompt", "shapes the exchange"),
    "max_output_tokens": Rule("equal", "equal", "prompt", "shapes the request"),
    "tools_sha256": Rule("equal", "equal", "prompt", "shapes the request"),
    "world": Rule("equal", "equal", "prompt", "shapes the exchange"),
    "probe": Rule("equal", "equal", "free", "part of each row"),
    "twin_of": Rule("equal", "equal", "free", "part of each row"),
    "role": Rule("equal", "equal", "free", "part of each row"),
    "variant_of": Rule("equal", "equal", "free", "part of each row"),
    "padding_tokens": Rule("equal", "equal", "prompt", "shapes the request"),
    "pressure_of": Rule("equal", "equal", "free", "part of each row"),
    "repeat": Rule("equal", "equal", "free", "how often it is asked"),
    "pass": Rule("equal", "equal", "free", "what pytest makes of its verdicts"),
    "xfail": Rule("equal", "equal", "free", "what pytest makes of its verdicts"),
    "timeout_s": Rule("free", "equal", "noted", "as the setting; a merged run defines a prompt once"),
    OTHER: Rule("free", "equal", "free", "selects or describes: tags, and keys of your own"),
}


def keys_to(
    rules: Mapping[str, Rule], command: Literal["resume", "merge", "compare"], need: str, keys: Iterable[str]
) -> list[str]:
    """Return those keys that a command has this need of, in their order."""
    return [key for key in keys if getattr(rules.get(key, rules[OTHER]), command) == need]


def looks_of(config: JsonObject) -> tuple[int, ...]:
    """Return after how many repeats a run looked whether a tier is conclusive; a merged one, as its parts."""
    looks = {look for run in config.get("parts") or (config,) for look in run.get("looks") or ()}
    return tuple(sorted(looks))


def settings_to_json(settings: Settings) -> JsonObject:
    """Return the settings as in `config.json`; those of the comparison follow with it."""
    return {
        "temperature": settings.temperature,
        "top_p": settings.top_p,
        "seed": settings.seed,
        "tool_choice": settings.tool_choice,
        "request_fields": {name: dict(fields) for name, fields in settings.request_fields.items()},
        "thinking_room_tokens": dict(THINKING_ROOM_TOKENS),
        "surface": surface_facts(settings.surface),
        "repeat": settings.repeat,
        "until_conclusive": settings.until_conclusive,
        "looks": list(settings.looks) or None,
        "shard": settings.shard or None,
        "stream": settings.stream,
        "timeout_s": settings.timeout_s,
        "retries": settings.retries,
        "concurrency": asdict(settings.concurrency),
        "verdict": settings.verdict,
        "gates": asdict(settings.gates),
        "fail_unavailable": settings.fail_unavailable,
        "budget_usd": settings.budget_usd,
    }
