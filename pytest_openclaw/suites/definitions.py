"""A prompt as `config.json` keeps it, so that a resumed run can check that it is unchanged."""

from __future__ import annotations

import hashlib
import json
from dataclasses import asdict
from typing import TYPE_CHECKING, Any

from pytest_openclaw.suites.conversation import written_messages
from pytest_openclaw.suites.repeating import pass_text
from pytest_openclaw.suites.surfaced import as_listed

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

    from pytest_openclaw.core.json_types import JsonObject
    from pytest_openclaw.types.prompts import Prompt
    from pytest_openclaw.types.tool_calls import Tool
    from pytest_openclaw.types.worlds import World


def definition(prompt: Prompt) -> JsonObject:
    """Return the definition of one prompt; see `definitions`."""
    return definitions([prompt])[0]


def definitions(prompts: Iterable[Prompt]) -> list[JsonObject]:
    """Return every field of each prompt as its suite has it, defaults included, as JSON values of their own.

    `validator` is the rule as its author wrote it. A value read back from `config.json` is equal to these.

    Raises:
        TypeError: `validator_spec` or `extra` has values that JSON lacks; a parsed suite never has.
        ValueError: they contain NaN or an infinity.
    """
    # In one text, because a decoder makes each key once for a whole text.
    plain: list[JsonObject] = json.loads(json.dumps([*map(_fields, prompts)], allow_nan=False))
    return plain


def _fields(prompt: Prompt) -> dict[str, Any]:
    prompt = as_listed(prompt)
    fields: dict[str, Any] = {
        "suite": prompt.suite,
        "id": prompt.id,
        "name": prompt.name,
        "prompt": prompt.prompt,
        "validator": prompt.validator_spec,
        "expected_tool_calls": prompt.expected_tool_calls,
        "category": prompt.category,
        "tags": prompt.tags,
        "system": prompt.system,
        "max_output_tokens": prompt.max_output_tokens,
        "timeout_s": prompt.timeout_s,
        "repeat": prompt.repeat,
        "pass": _share(prompt),
        "xfail": [asdict(one) for one in prompt.known_failures] or None,
        "variant_of": prompt.variant_of,
        "extra": prompt.extra,
    }
    if prompt.images:
        fields |= {
            "images": [image.path for image in prompt.images],
            "images_sha256": [image.sha256 for image in prompt.images],
        }
    if prompt.role:
        fields["role"] = prompt.role
    if prompt.messages:
        fields["messages"] = written_messages(prompt.messages)
    if prompt.turns:
        fields["turns"] = prompt.turns
    for name in ("probe", "twin_of"):
        if value := getattr(prompt, name):
            fields[name] = value
    if prompt.tools is not None:
        fields |= {
            "tools": prompt.tools_spec,
            # A surface is a name only; this hash changes with its tools.
            "tools_sha256": tools_sha256(prompt.tools),
            "world": prompt.world and _world(prompt.world),
            "probe": prompt.probe,
            "twin_of": prompt.twin_of,
            "padding_tokens": prompt.padding_tokens,
            "pressure_of": prompt.pressure_of,
        }
    return fields


def _world(world: World) -> dict[str, Any]:
    """Return a world's keys; `env` and `python` only if they are set, as in runs before there were any."""
    return {key: value for key, value in asdict(world).items() if value or key not in ("env", "python")}


def _share(prompt: Prompt) -> str | None:
    if prompt.min_passes is None or prompt.repeat is None:
        return None
    return pass_text(prompt.min_passes, prompt.repeat)


def tools_sha256(tools: Sequence[Tool]) -> str:
    """Return the hash by which `config.json` distinguishes the tools that a prompt offered."""
    plain = [asdict(tool) for tool in tools]
    return hashlib.sha256(json.dumps(plain, sort_keys=True).encode()).hexdigest()
