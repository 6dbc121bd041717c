"""A prompt as `config.json` keeps it, so that a resumed run can tell whether it is still the same."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from pytest_openclaw.records import JsonObject, Prompt


def definition(prompt: Prompt) -> JsonObject:
    """Return every field of a prompt, defaults included, as plain JSON values of their own.

    `validator` is the rule as its author wrote it. What `config.json` reads back is equal to this.

    Raises:
        TypeError: `validator_spec` or `extra` holds what JSON cannot; a parsed suite never does.
        ValueError: they hold NaN or an infinity.
    """
    fields = {
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
        "extra": prompt.extra,
    }
    plain: JsonObject = json.loads(json.dumps(fields, allow_nan=False))
    return plain
