"""Written calls with tags instead of JSON: each family's special tokens and XML, and what is left of both.

Many servers leave special tokens out of a text: of
`<|tool_call_begin|>functions.read:0<|tool_call_argument_begin|>{…}` remains `functions.read:0{…}`.
"""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

from pytest_openclaw.tools.leaks.written_calls import NAME, Leak, parameters_of
from pytest_openclaw.tools.wordings import load_wordings

if TYPE_CHECKING:
    from collections.abc import Iterator

    from pytest_openclaw.tools.leaks.written_calls import KnownTools

_FORMS = [
    (form, pattern, closing)
    for form, by_closing in load_wordings("written_calls", name=NAME)["forms"].items()
    for closing, patterns in by_closing.items()
    for pattern in patterns
]
_ELEMENT = re.compile(
    rf"<({NAME})((?:\s+\w{{1,40}}=\"[^\"<>]{{0,500}}\"){{0,10}})\s{{0,9}}+/?>\s{{0,99}}+(?:<({NAME})>)?"
)
_ATTRIBUTE = re.compile(r"(\w{1,40})=")
_MOST_ARGUMENTS = 20_000


def find_markup_calls(text: str, known: KnownTools) -> Iterator[Leak]:
    """Yield the calls that are marked by tags or special tokens."""
    for form, pattern, closing in _FORMS:
        end = 0
        for match in pattern.finditer(text):
            if match.start() >= end and (tool := known.find(match[1])):
                end = _end(text, match.end(), closing)
                yield Leak(
                    name=tool.name, arguments=text[match.end() : end], form=form, start=match.start(), end=end
                )
    yield from _elements(text, known)


def _elements(text: str, known: KnownTools) -> Iterator[Leak]:
    """Yield calls like `<read><path>notes.md</path></read>` and `<read path="notes.md"/>`."""
    end = 0
    for match in _ELEMENT.finditer(text):
        tool = known.find(match[1])
        if tool is None or match.start() < end:
            continue
        given = set(_ATTRIBUTE.findall(match[2])) | ({match[3]} if match[3] else set())
        if given and given <= parameters_of(tool) | {"parameters", "arguments", "args", "input"}:
            end = _end(text, match.end(), f"</{match[1]}>" if match[3] else "")
            yield Leak(
                name=tool.name,
                arguments=text[match.end(2) : end],
                form="element",
                start=match.start(),
                end=end,
            )


def _end(text: str, start: int, closing: str) -> int:
    if not closing:
        return start
    end = text.find(closing, start, start + _MOST_ARGUMENTS)
    return end + len(closing) if end >= 0 else min(len(text), start + _MOST_ARGUMENTS)
