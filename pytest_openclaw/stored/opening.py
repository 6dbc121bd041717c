"""Splits the texts of a row for display: thinking, answer, and calls with their problems."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

from pytest_openclaw.reports.cell_text import Opened
from pytest_openclaw.suites import definition as definition_of
from pytest_openclaw.suites.prompt import read_prompt
from pytest_openclaw.tools.dispatch import dispatch
from pytest_openclaw.tools.thinking import strip_thinking
from pytest_openclaw.types.rows import call_of
from pytest_openclaw.types.targets import OPENCLAW_CODE
from pytest_openclaw.validators import BUILTIN
from pytest_openclaw.validators.registry import build_registry

if TYPE_CHECKING:
    from collections.abc import Mapping
    from typing import Any

    from pytest_openclaw.core.json_types import JsonObject
    from pytest_openclaw.types.records import Record
    from pytest_openclaw.types.tool_calls import Tool

_ONE_BLOCK = re.compile(r"\s*<(\w+)>\n?(.*?)\n?</\1>\s*", re.DOTALL)


def open_record(record: Record, definition: JsonObject) -> Opened:
    """Return the parts of a row's texts.

    Args:
        record: the row.
        definition: of its prompt in `config.json`; empty if there is none.
    """
    answer = strip_thinking(record.raw_output)
    thinking = record.raw_output[: len(record.raw_output) - len(answer)]
    alone = _ONE_BLOCK.fullmatch(thinking)
    tools = None if record.surface == OPENCLAW_CODE else _tools_of(definition)
    return Opened(
        thinking=alone[2] if alone else thinking,
        answer=answer,
        calls=[_opened(call, tools) for call in record.tool_call_details],
    )


def _opened(call: Mapping[str, Any], tools: tuple[Tool, ...] | None) -> JsonObject:
    opened = {"name": call["name"], "arguments": call["arguments"], "problem": None, "told": None}
    if tools is None:
        return opened
    made = dispatch(call_of(call), tools)
    text = "\n".join([*([made.message] if made.message else []), *made.notes])
    return {**opened, "problem": made.problem, "told": text or None}


def _tools_of(definition: JsonObject) -> tuple[Tool, ...] | None:
    """Return the tools that a prompt offered; None if there were none, or they have changed."""
    if "tools" not in definition:
        return None
    # Its rule may belong to a plugin that is not installed here; only the tools are needed.
    raw = {key: value for key, value in definition.items() if key not in ("suite", "extra", "validator")}
    registry = build_registry(("built-in", validator) for validator in BUILTIN)
    prompt, _ = read_prompt(raw, definition["id"], suite=definition["suite"], registry=registry)
    if prompt is None or definition_of(prompt).get("tools_sha256") != definition.get("tools_sha256"):
        return None
    return prompt.tools
