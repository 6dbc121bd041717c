"""Data inside a page: JSON that no HTML parser can mistake for markup, and long texts kept once."""

from __future__ import annotations

import json
import re
from typing import TYPE_CHECKING, Any

from pytest_openclaw.core.text import valid_text

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

CHUNK_CHARS = 250_000
"""A browser parses so much in a few milliseconds, when it is first needed."""
# `<` alone opens tags, comments and `</script>`; the others hide or reverse text in the file.
_UNSAFE = re.compile(
    "[<>&\x7f-\x9f\xad\u061c\u180e\u200b-\u200f\u2028-\u202e\u2060-\u206f\ufeff\ufff9-\uffff]"
)
_JSON = json.JSONEncoder(ensure_ascii=False, allow_nan=False, separators=(",", ":"))


def island(value: Any) -> str:
    """Return a value as JSON for a `<script type="application/json">`; ends no script, whatever it holds."""
    return _UNSAFE.sub(lambda found: f"\\u{ord(found[0]):04x}", valid_text(_JSON.encode(value)))


def element(name: str, value: Any, **data: int) -> str:
    """Return the element that holds a value.

    Args:
        name: its class.
        value: plain JSON.
        data: numbers for its `data-` attributes.
    """
    attributes = "".join(f' data-{key}="{number:d}"' for key, number in data.items())
    return f'<script type="application/json" class="{name}"{attributes}>{island(value)}</script>'


class TextPool:
    """Texts by number, each kept once; the first is the empty one."""

    def __init__(self) -> None:
        self._numbers: dict[str, int] = {"": 0}

    def add(self, text: str) -> int:
        """Return the text's number."""
        return self._numbers.setdefault(text, len(self._numbers))

    def chunks(self) -> Iterator[tuple[int, list[str]]]:
        """Yield the texts in parts that are parsed one by one, each with its first number."""
        first, size, part = 0, 0, list[str]()
        for number, text in enumerate(self._numbers):
            if part and size + len(text) > CHUNK_CHARS:
                yield first, part
                first, size, part = number, 0, []
            part.append(text)
            size += len(text)
        yield first, part


def fill(values: Mapping[str, str], template: str) -> str:
    """Fill `{{name}}` in a template, once: what a value holds is never filled again.

    Raises:
        KeyError: the template names what is not there.
    """
    return re.sub(r"\{\{(\w+)\}\}", lambda found: values[found[1]], template)
