"""Values as lines of `results.jsonl`."""

from __future__ import annotations

import json
from typing import Any

_JSON = json.JSONEncoder(ensure_ascii=False, allow_nan=False)
# JSON may hold them as they are, but readers such as `str.splitlines` end a line there.
_OTHER_LINE_ENDS = {ord(character): f"\\u{ord(character):04x}" for character in "\x85\u2028\u2029"}


def line_of(row: Any) -> bytes:
    """Return a row, or a value in it, as a line of `results.jsonl`, without its line feed."""
    text = _JSON.encode(row)
    return (text if text.isascii() else text.translate(_OTHER_LINE_ENDS)).encode()
