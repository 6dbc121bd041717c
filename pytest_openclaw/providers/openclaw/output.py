"""Finds JSON in the output of OpenClaw, which may contain other lines."""

from __future__ import annotations

import json
import re
from itertools import islice
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Callable

    from pytest_openclaw.core.json_types import JsonObject

# The first key of every answer in all known releases; inside a JSON string the quotes would be escaped.
_BEGINNING = re.compile(r'\{\s*"(?:ok|valid|payloads)"\s*:')
# Each start without an object costs a scan of the text; releases print only a few.
_MOST_BEGINNINGS = 200


def find_object(stdout: str, stderr: str, fits: Callable[[JsonObject], bool]) -> JsonObject | None:
    """Return the last complete object of a command's form on stdout, else on stderr; None if there is none.

    Other text may precede and follow it, also on its own first and last line. Only the first 200 places
    where an object could begin are tried.

    Args:
        stdout: the standard output.
        stderr: the standard error, where some releases print it.
        fits: whether an object has the form.
    """
    return _last_object(stdout, fits) or _last_object(stderr, fits)


def _last_object(text: str, fits: Callable[[JsonObject], bool]) -> JsonObject | None:
    decoder, found, end = json.JSONDecoder(), None, 0
    for match in islice(_BEGINNING.finditer(text), _MOST_BEGINNINGS):
        if match.start() < end:
            continue  # it is part of the previous one
        try:
            value, stop = decoder.raw_decode(text, match.start())
        except (ValueError, RecursionError):
            continue
        if isinstance(value, dict) and fits(value):
            found, end = value, stop
    return found
