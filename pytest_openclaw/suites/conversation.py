"""Parses a prompt's `messages`, the conversation before it, and `turns`, the user's messages after it.

Parses a prompt's `images`, the pictures that are sent with it.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import replace
from pathlib import PurePosixPath, PureWindowsPath
from typing import TYPE_CHECKING, Any

from pytest_openclaw.suites.wording import kind_of, shown
from pytest_openclaw.values.replies import FORMATS, Image, Turn, media_type_of
from pytest_openclaw.values.tool_calls import ToolCall

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Sequence

    from pytest_openclaw.util.json_types import JsonObject


MOST_TURNS = 50
_KEYS = {
    "user": ("role", "content"),
    "assistant": ("role", "content", "calls"),
    "tool": ("role", "content", "name"),
}
_CALL_KEYS = ("name", "arguments")
_RESULT = 'Write { role = "tool", content = "…" } after it.'


def read_messages(value: Any) -> tuple[Turn, ...]:
    """Return the turns of a suite's `messages`; a result belongs to the first call that has none.

    Raises:
        ValueError: an entry is malformed, or at a place where its role cannot be; the message says which.

    """
    if not isinstance(value, list):
        raise ValueError(f"are {kind_of(value)}, not a list. Write tables with role and content.")
    if not value:
        raise ValueError("are an empty list. Leave the key out, or write tables with role and content.")
    turns: list[Turn] = []
    for place, entry in enumerate(value):
        try:
            _ADDERS[_role(entry)](turns, entry)
        except ValueError as error:
            raise ValueError(f"no. {place + 1} {error}") from None
    if call := _open_call(turns[-1]):
        raise ValueError(f"end with a call of {call.name} that has no result. {_RESULT}")
    return tuple(turns)


def read_turns(value: Any) -> tuple[str, ...]:
    """Return the user's messages after the first answer.

    Raises:
        ValueError: it is no list of texts.

    """
    hint = 'Write texts in brackets, such as ["And now?"].'
    if not isinstance(value, list):
        raise ValueError(f"are {kind_of(value)}, not a list. {hint}")
    if not value:
        raise ValueError(f"are an empty list. Leave the key out. {hint}")
    if len(value) > MOST_TURNS:
        raise ValueError(f"are {len(value)} messages. Write at most {MOST_TURNS}.")
    for place, text in enumerate(value, 1):
        if not isinstance(text, str):
            raise ValueError(f"no. {place} is {kind_of(text)}, not a text. {hint}")
        if not text.strip():
            raise ValueError(f"no. {place} is blank. Write what the user says.")
    return tuple(value)


def written_messages(turns: Iterable[Turn]) -> list[JsonObject]:
    """Return `messages` as a suite has them; `read_messages` of it returns the same turns."""
    return [entry for turn in turns for entry in _written(turn)]


def _written(turn: Turn) -> list[JsonObject]:
    if turn.user is not None:
        return [{"role": "user", "content": turn.user}]
    calls = [{"name": call.name, "arguments": json.loads(call.arguments)} for call in turn.calls]
    said = {"role": "assistant", "content": turn.text} | ({"calls": calls} if calls else {})
    return [said, *({"role": "tool", "content": result} for result in turn.results)]


def _role(entry: Any) -> str:
    """Return the role of an entry that has no unknown keys."""
    if not isinstance(entry, Mapping):
        raise ValueError(f"is {kind_of(entry)}, not a table. Write role and content.")
    role = entry.get("role")
    if role == "system":
        raise ValueError("has the role system. Write its text under the prompt's key system.")
    if not isinstance(role, str) or role not in _KEYS:
        found = f"has the role {shown(role)}" if "role" in entry else "has no role"
        raise ValueError(f"{found}. Roles are {', '.join(_KEYS)}.")
    if "images" in entry:
        raise ValueError("has images. Only the prompt itself has pictures: write images beside its text.")
    if unknown := [key for key in entry if key not in _KEYS[role]]:
        raise ValueError(f"has {shown(unknown[0])}. The keys of {role} are {', '.join(_KEYS[role])}.")
    return role


def _add_user(turns: list[Turn], entry: Mapping[str, Any]) -> None:
    _check_answered(turns, "user")
    turns.append(Turn(user=_words(entry)))


def _add_assistant(turns: list[Turn], entry: Mapping[str, Any]) -> None:
    if not turns:
        raise ValueError("is the assistant's. Begin with a message of the user.")
    _check_answered(turns, "assistant")
    last = turns[-1]
    if last.user is None and not last.calls:
        raise ValueError("is the assistant's, as the one before. Join them, or write the user's between.")
    calls = _calls(entry.get("calls", []))
    text = _text(entry, "") if calls else _words(entry)
    turns.append(Turn(text=text, calls=calls))


def _add_result(turns: list[Turn], entry: Mapping[str, Any]) -> None:
    last = turns[-1] if turns else Turn()
    call = _open_call(last)
    if call is None:
        raise ValueError("is a tool's result, and no call before it lacks one. Write the call, or remove it.")
    name = entry.get("name", call.name)
    if name != call.name:
        raise ValueError(
            f"is a result of {shown(name)}, and the call that lacks one is of {call.name}."
            " Write results in the order of the calls."
        )
    turns[-1] = replace(last, results=(*last.results, _text(entry)))


_ADDERS: Mapping[str, Callable[[list[Turn], Mapping[str, Any]], None]] = {
    "user": _add_user,
    "assistant": _add_assistant,
    "tool": _add_result,
}


def _open_call(turn: Turn) -> ToolCall | None:
    """Return the first call of a turn that has no result."""
    return next(iter(turn.calls[len(turn.results) :]), None)


def _check_answered(turns: Sequence[Turn], role: str) -> None:
    if turns and (call := _open_call(turns[-1])):
        raise ValueError(
            f"has the role {role}, and the call of {call.name} before it has no result. {_RESULT}"
        )


def _calls(value: Any) -> tuple[ToolCall, ...]:
    if not isinstance(value, list):
        raise ValueError(
            f"has calls that are {kind_of(value)}, not a list. Write tables with name, arguments."
        )
    return tuple(map(_call, value))


def _call(entry: Any) -> ToolCall:
    name = entry.get("name") if isinstance(entry, Mapping) else None
    if not isinstance(name, str) or not name.strip():
        raise ValueError(f"has the call {shown(entry)}, which names no tool. Write a table with name.")
    if unknown := [key for key in entry if key not in _CALL_KEYS]:
        raise ValueError(f"has a call with {shown(unknown[0])}. Its keys are {', '.join(_CALL_KEYS)}.")
    arguments = entry.get("arguments", {})
    if not isinstance(arguments, Mapping):
        raise ValueError(f"has a call whose arguments are {kind_of(arguments)}. Write a table.")
    return ToolCall(name=name, arguments=json.dumps(arguments, ensure_ascii=False))


def _words(entry: Mapping[str, Any]) -> str:
    text = _text(entry)
    if not text.strip():
        raise ValueError("has a blank content. Write what was said.")
    return text


def _text(entry: Mapping[str, Any], default: str | None = None) -> str:
    text = entry.get("content", default)
    if not isinstance(text, str):
        found = f"has content that is {kind_of(text)}" if "content" in entry else "has no content"
        raise ValueError(f"{found}. Write a text in quotes.")
    return text


MOST_IMAGES = 20
"""In one request, as many as Anthropic takes in full size: https://platform.claude.com/docs/en/build-with-claude/vision"""
MOST_BYTES = 3_932_160
"""Of a picture; it has 5 MiB as base64, which is Anthropic's limit and the smallest of all."""
MOST_BYTES_TOGETHER = 4 * MOST_BYTES
"""Of all pictures; they have 20 MiB as base64, Gemini's limit for a request with data in it."""
_HINT = 'Write paths in brackets, such as ["chart.png"].'
_LFS = b"version https://git-lfs.github.com/"


def read_images(value: Any, read_file: Callable[[str], bytes]) -> tuple[Image, ...]:
    """Return the pictures of a suite's `images`.

    Args:
        value: as the author wrote it.
        read_file: returns a file of the suite's folder, or at most `MOST_BYTES` and one more of it; raises
            `ValueError` if there is no such file.

    Raises:
        ValueError: an entry is no path of a picture beside the suite; the message says which, and why.

    """
    if not isinstance(value, list):
        raise ValueError(f"are {kind_of(value)}, not a list. {_HINT}")
    if not value:
        raise ValueError(f"are an empty list. Leave the key out. {_HINT}")
    if len(value) > MOST_IMAGES:
        raise ValueError(f"are {len(value)} pictures. Name at most {MOST_IMAGES}.")
    images = []
    for place, path in enumerate(value, 1):
        try:
            images.append(_image(path, read_file))
        except ValueError as error:
            raise ValueError(f"no. {place} {error}") from None
    if (n_bytes := sum(len(image.data) for image in images)) > MOST_BYTES_TOGETHER:
        raise ValueError(
            f"have {n_bytes:,} bytes together. Some APIs take no request with more than"
            f" {MOST_BYTES_TOGETHER:,}, so make them smaller, or leave some out."
        )
    return tuple(images)


def _image(path: Any, read_file: Callable[[str], bytes]) -> Image:
    if not isinstance(path, str):
        raise ValueError(f"is {kind_of(path)}, not a path. {_HINT}")
    if not path.strip():
        raise ValueError(f"is blank. {_HINT}")
    if why := _why_not_beside(path):
        raise ValueError(f"{shown(path)} {why}")
    data = read_file(path)
    if len(data) > MOST_BYTES:
        raise ValueError(
            f"{shown(path)} has more than {MOST_BYTES:,} bytes, which some APIs refuse. Make it smaller."
        )
    if media_type := media_type_of(data):
        return Image(path=path, media_type=media_type, data=data)
    if data.startswith(_LFS):
        raise ValueError(f"{shown(path)} is only Git LFS's pointer to a picture. Run: git lfs pull")
    formats = f"{', '.join(FORMATS[:-1])} or {FORMATS[-1]}"
    raise ValueError(f"{shown(path)} is no picture by its first bytes. Save it as {formats}.")


def _why_not_beside(path: str) -> str:
    """Return why a path cannot be one of a file in the suite's folder; empty if it can."""
    if "\\" in path:
        return "has a backslash. Write / between folders."
    if "://" in path or path.startswith("data:"):
        return "is an address. Only files beside the suite are sent, so save the picture there."
    if PurePosixPath(path).is_absolute() or PureWindowsPath(path).drive:
        return "is an absolute path. Copy the picture beside the suite, and write its path from there."
    if ".." in PurePosixPath(path).parts:
        return "leads out of the suite's folder. Copy the picture beside the suite, or into a folder there."
    return ""
