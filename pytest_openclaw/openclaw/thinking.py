"""Separates an answer from thinking in the same text.

A provider with a separate reasoning channel does not need this. The tags are those that OpenClaw
itself hides from its users: `<think>`, `<thinking>`, `<thought>`, these with the prefix `antml:` or MiniMax's
`mm:`, and `<antthinking>`, in any case.
`<reasoning>` is not such a tag: prompts ask for it as a part of the answer.
"""

from __future__ import annotations

import re

from pytest_openclaw.values.replies import ANSWER, THINKING

_NAMES = [f"{prefix}{word}" for prefix in ("", "antml:", "mm:") for word in ("think", "thinking", "thought")]
_NAMES += ["antthinking"]
# Without ASCII, a foreign i with or without a dot would match the one in "think".
_FLAGS = re.IGNORECASE | re.ASCII
_BLANKS = re.compile(r"[ \t\r\n]*")
_OPEN = re.compile(rf"<({'|'.join(_NAMES)})>", _FLAGS)
_CLOSE = {name: re.compile(rf"</{name}>", _FLAGS) for name in _NAMES}
_ANY_TAG = re.compile(rf"<(/?)(?:{'|'.join(_NAMES)})>", _FLAGS)


def split_thinking(raw: str) -> tuple[str, str]:
    """Return thinking and answer of a reply as a row has it."""
    if raw.startswith(THINKING) and (end := raw.find(ANSWER)) >= 0:
        return raw[len(THINKING) : end], raw[end + len(ANSWER) :]
    answer = strip_thinking(raw)
    return raw[: len(raw) - len(answer)], answer


def strip_thinking(text: str) -> str:
    """Return `text` without the thinking at its start.

    - Closed blocks at the start are removed, with the blanks around them.
    - A closing tag without an opening one ends thinking too: chat templates that write `<think>` into
      the prompt leave only the closing tag in the reply. After a closed block this holds only for a
      tag that follows at once; any later tag is a part of the answer.
    - An unclosed block is kept: its end is not known.
    - A tag in backticks is not a tag, but a mention of one.
    """
    start = _end_of_blocks(text)
    if start is None and (orphan := _tag(_ANY_TAG, text, 0)) and orphan[1]:
        start = orphan.end()
    if start is None:
        return text
    return text[_past_blanks(text, start) :]


def without_thinking(text: str) -> str:
    """Return `text` without anything that is in a thinking block, wherever the block is.

    Stricter than `strip_thinking`, because a tool named in a thought is not invoked: blocks inside
    the answer are removed too, and a reply that never ends its thinking becomes empty.
    """
    return without_blocks(strip_thinking(text))


def without_blocks(answer: str) -> str:
    """Return an answer, as `strip_thinking` leaves it, without the thinking blocks inside it.

    A closing tag without an opening one is a part of the answer here, because `strip_thinking` has removed
    the tag that ended the thinking.
    """
    if _OPEN.match(answer, _past_blanks(answer, 0)):
        return ""
    kept: list[str] = []
    position = 0
    never_closed: set[str] = set()
    while opening := _tag(_OPEN, answer, position):
        name = opening[1].lower()
        closing = None if name in never_closed else _tag(_CLOSE[name], answer, opening.end())
        if closing is None:
            never_closed.add(name)
            kept.append(answer[position : opening.end()])
            position = opening.end()
        else:
            kept += [answer[position : opening.start()], "\n"]
            position = closing.end()
    return "".join([*kept, answer[position:]])


def _end_of_blocks(text: str) -> int | None:
    """Return the end of the closed blocks at the start; None if there are none."""
    end = None
    while opening := _OPEN.match(text, _past_blanks(text, end or 0)):
        closing = _tag(_CLOSE[opening[1].lower()], text, opening.end())
        if closing is None:
            break
        end = closing.end()
        while (again := _ANY_TAG.match(text, _past_blanks(text, end))) and again[1]:
            end = again.end()
    return end


def _tag(pattern: re.Pattern[str], text: str, start: int) -> re.Match[str] | None:
    """Return the first match that is not quoted in backticks."""
    return next((match for match in pattern.finditer(text, start) if not _is_quoted(text, match)), None)


def _is_quoted(text: str, match: re.Match[str]) -> bool:
    before = text[max(0, match.start() - 2) : match.start()]
    if not before.endswith("`") or text[match.end() : match.end() + 1] != "`":
        return False
    # After a word the backtick closes: "try `free`</think>`free -h`" ends a thought.
    return before == "`" or before[0].isspace() or before[0] in "([\"'"


def _past_blanks(text: str, start: int) -> int:
    blanks = _BLANKS.match(text, start)
    return blanks.end() if blanks else start
