"""Written calls with tags instead of JSON: each family's special tokens and XML, and what is left of both.

Many servers leave special tokens out of a text: of
`<|tool_call_begin|>functions.read:0<|tool_call_argument_begin|>{…}` remains `functions.read:0{…}`.
"""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

from pytest_openclaw.tools.leaks.written_calls import NAME, Leak, parameters_of

if TYPE_CHECKING:
    from collections.abc import Iterator

    from pytest_openclaw.tools.leaks.written_calls import KnownTools

_BAR = r"[|\uff5c]"
_SPACE = r"[\u2581_ ]"
_SHORTEST_NAME = r"[A-Za-z_][\w.-]{0,99}?"
_FORMS: tuple[tuple[str, re.Pattern[str], str | None], ...] = tuple(
    (form, re.compile(pattern, re.IGNORECASE), closing)
    for form, pattern, closing in (
        ("function-tag", rf"<function\s?(?:=|\sname=)\s?[\"']?({NAME})[\"']?\s?(?:>|(?=\{{))", "</function>"),
        ("invoke", rf"<(?:\w+:|{_BAR}DSML{_BAR} ?)?invoke\s+name=[\"']({NAME})[\"']", "invoke>"),
        ("tool-tag", rf"<(?:tool|tool_call|tool_use|function_call|call)\s+name=[\"']({NAME})[\"']", None),
        ("mistral", rf"\[TOOL_CALLS\]\s{{0,9}}+({NAME})\s{{0,9}}+(?=\[|\{{)", "}"),
        (
            "deepseek",
            rf"<{_BAR}tool{_SPACE}call{_SPACE}begin{_BAR}>\s{{0,9}}+(?:function\s{{0,9}}+"
            rf"<{_BAR}tool{_SPACE}sep{_BAR}>\s{{0,9}}+)?({NAME})",
            "end",
        ),
        ("deepseek", rf"function<{_BAR}tool{_SPACE}sep{_BAR}>\s{{0,9}}+({NAME})", "end"),
        ("kimi", rf"<\|tool_call_begin\|>\s{{0,9}}+({NAME})", "<|tool_call_end|>"),
        ("kimi", rf"<\|open\|>call tool=\"({NAME})\"", "<|close|>call<|sep|>"),
        ("kimi", rf"functions\.({_SHORTEST_NAME}):\d{{1,3}}\s?(?=\{{)", "}"),
        ("kimi", rf"({NAME})(?:(?<=:\d)|(?<=:\d\d))\s?(?=\{{)", "}"),
        ("kimi", rf"call tool=\"({NAME})\" index=\"\d", "calltools"),
        ("functionary", rf"<\|recipient\|>\s{{0,9}}+({NAME})\s{{0,9}}+<\|content\|>", "<|"),
        (
            "glm",
            rf"<tool_call>\s{{0,9}}+({NAME})(?=\s{{0,9}}+(?:<arg_key>|\{{|\n|</tool_call>)|\s*$)",
            "</tool_call>",
        ),
        ("glm", rf"(?:^|\n)[ \t]*({NAME})\s{{0,9}}+<arg_key>", "</tool_call>"),
        (
            "harmony",
            rf"(?:<\|(?:channel|start)\|>|\b(?:commentary|analysis"
            rf"|assistant)\b)[^\n{{]{{0,60}}?\bto=({NAME})",
            "<|call|>",
        ),
        ("harmony", rf"\bto=functions\.({NAME})", "<|call|>"),
        (
            "harmony",
            rf"\bto=functions\.({_SHORTEST_NAME})(?:commentary|analysis)?\s?(?:json)?\s?(?=\{{)",
            "}",
        ),
        ("deepseek", rf"function({NAME})\n```json\n", "```"),
        ("gemma", rf"(?<![\w\"'`])call:({NAME})(?=\{{)", "}"),
        ("gemma", rf"<(?:start_function_call|\|?tool_call\|?)>\s{{0,9}}+call:({NAME})(?=\s{{0,9}}\{{)", "<"),
        (
            "react",
            rf"(?:^|\n)\W{{0,4}}action\W{{0,4}}:\W{{0,4}}({NAME})\W{{0,4}}\n\s{{0,9}}"
            r"\W{0,4}action[ _]?input\W{0,4}:",
            "\n",
        ),
        (
            "labelled",
            rf"(?:^|\n)\W{{0,4}}(?:tool|function|tool[ _]call|tool[ _]name"
            rf"|function[ _]call)\W{{0,4}}[:=]\W{{0,4}}({NAME})"
            r"\W{0,4}\s{0,9}\W{0,4}(?:args|arguments|input|params|parameters|tool[ _]input)\W{0,6}[:=]",
            "\n",
        ),
        (
            "tags",
            rf"<(?:tool_name|name|tool|function|action"
            rf"|function_name)>\s{{0,9}}+({NAME})\s{{0,9}}+</[\w]{{1,20}}>"
            r"\s{0,9}+<(?:args|arguments|parameters?|params|input|action_input|tool_input|tool_args)\b",
            None,
        ),
        ("bracket", rf"(?:^|\n)[ \t]*\[({NAME})\]\s{{0,9}}+(?=\{{)", "]"),
    )
)
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
            end = _end(text, match.end(), f"</{match[1]}>" if match[3] else None)
            yield Leak(
                name=tool.name,
                arguments=text[match.end(2) : end],
                form="element",
                start=match.start(),
                end=end,
            )


def _end(text: str, start: int, closing: str | None) -> int:
    if closing is None:
        return start
    end = text.find(closing, start, start + _MOST_ARGUMENTS)
    return end + len(closing) if end >= 0 else min(len(text), start + _MOST_ARGUMENTS)
