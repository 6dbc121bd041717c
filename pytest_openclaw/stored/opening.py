"""Splits the texts of a row for display: thinking, answer, and calls with their problems."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

from pytest_openclaw.reports.cell_text import Opened
from pytest_openclaw.stored.showing import offered_tools
from pytest_openclaw.tools.dispatch import dispatch
from pytest_openclaw.tools.thinking import strip_thinking
from pytest_openclaw.types.rows import call_of
from pytest_openclaw.types.targets import OPENCLAW_CODE

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
    tools = None if record.surface == OPENCLAW_CODE else offered_tools(definition)
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
