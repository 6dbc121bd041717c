"""Parses one entry of a suite file into a `Prompt`, or returns all its errors.

Known failures: `xfail = [{ target = "*smollm*", reason = "…", strict = true }]` on a prompt.

Parses how often a prompt is asked and must pass: `repeat = 5`, `pass = "4 of 5"`.
"""

from __future__ import annotations

import re
import sys
from difflib import get_close_matches
from functools import partial
from typing import TYPE_CHECKING, Any, NamedTuple, cast, get_args

from pytest_openclaw.judging.keys import demands_of, needs_of
from pytest_openclaw.judging.registry import build_validator
from pytest_openclaw.openclaw.bridge import reached_tools
from pytest_openclaw.openclaw.catalog import CALL
from pytest_openclaw.openclaw.dispatch import same_tool
from pytest_openclaw.suites.conversation import read_images, read_messages, read_turns
from pytest_openclaw.suites.document import find_flaws
from pytest_openclaw.suites.offered import read_tools
from pytest_openclaw.suites.pressure_forms import Form, flaws_of
from pytest_openclaw.suites.wording import closest, is_plain, is_whole, kind_of, shown
from pytest_openclaw.suites.world_parsing import read_world
from pytest_openclaw.values.prompts import KnownFailure, Probe, Prompt
from pytest_openclaw.values.requests import label_fits

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Mapping, Sequence

    from pytest_openclaw.judging.registry import Registry
    from pytest_openclaw.util.json_types import JsonObject
    from pytest_openclaw.values.protocols import Validator
    from pytest_openclaw.values.requests import Target
    from pytest_openclaw.values.tool_calls import Tool


_KEYS = ("target", "reason", "strict")
_EXAMPLE = '[{ target = "*smollm*", reason = "too small for this" }]'


def known_failure_of(prompt: Prompt, target: Target) -> KnownFailure | None:
    """Return the entry that expects this target to miss this prompt: the first that fits, else None."""
    fitting = (one for one in prompt.known_failures if label_fits(target.label, one.target))
    return next(fitting, None)


def read_known_failures(value: Any) -> tuple[KnownFailure, ...]:
    """Return the value of `xfail`: a table, or a list of them.

    Raises:
        ValueError: names the key, and how to fix it.

    """
    entries = [value] if isinstance(value, dict) else value
    if not isinstance(entries, list):
        raise ValueError(f"is {kind_of(value)}, not a table. Write {_EXAMPLE}.")
    return tuple(map(_read_entry, entries))


def _read_entry(entry: Any) -> KnownFailure:
    if not isinstance(entry, dict):
        raise ValueError(f"holds {shown(entry)}, which is {kind_of(entry)}. Write {_EXAMPLE}.")
    for key in entry:
        if key not in _KEYS:
            raise ValueError(f"has {shown(key)}.{closest(key, _KEYS)} Its keys are {', '.join(_KEYS)}.")
    target, strict = entry.get("target"), entry.get("strict")
    if target is not None and not (isinstance(target, str) and target.strip()):
        hint = 'Write a target or a glob, such as "*smollm*", or leave it out for all.'
        raise ValueError(f"has a target {shown(target)}. {hint}")
    if not (isinstance(strict, bool) or strict is None):
        raise ValueError(f"has strict {shown(strict)}. Write true or false.")
    return KnownFailure(target=target or "*", reason=_reason(entry), strict=strict)


def _reason(entry: dict[str, Any]) -> str:
    reason = entry.get("reason")
    if reason is None:
        raise ValueError(f"has no reason. Say why it is expected, such as {_EXAMPLE}.")
    if not isinstance(reason, str) or not reason.strip():
        raise ValueError(f"has a reason {shown(reason)}. Say in words why it is expected.")
    return reason.strip()


MOST_REPEATS = 9999
_PASS = re.compile(r"\s*([0-9]{1,5})\s+of\s+([0-9]{1,5})\s*")


class Share(NamedTuple):
    """`pass = "4 of 5"`: the required passes and the number of repeats."""

    min_passes: int
    repeat: int


def read_repeat(value: Any) -> int:
    """Return how often a prompt is asked.

    Raises:
        ValueError: it is not a valid number; the message has a hint.

    """
    if not is_whole(value, 1, MOST_REPEATS):
        raise ValueError(f"is {shown(value)}. Write a whole number from 1 to {MOST_REPEATS}, such as 5.")
    return value


def read_pass(value: Any) -> Share:
    """Return how many of the repeats must pass.

    Raises:
        ValueError: it is malformed; the message has a hint.

    """
    if not isinstance(value, str):
        raise ValueError(f'is {kind_of(value)}, not a string. Write for example "4 of 5".')
    found = _PASS.fullmatch(value)
    share = Share(*map(int, found.groups())) if found else Share(0, 0)
    if not 1 <= share.min_passes <= share.repeat <= MOST_REPEATS:
        least = "how many repeats of how many must pass, at least 1 and at most all"
        raise ValueError(f'is {shown(value)}. Write {least}, such as "4 of 5".')
    return share


def find_disagreement(repeat: int | None, share: Share | None) -> str | None:
    """Return the error if `repeat` and `pass` have different numbers of repeats."""
    if share is None or repeat in (None, share.repeat):
        return None
    text = shown(pass_text(share.min_passes, share.repeat))
    return f"repeat is {repeat}, but pass is {text}. Leave repeat out, or write {share.repeat}."


def pass_text(min_passes: int, repeat: int) -> str:
    """Return `4 of 5`, as in a suite."""
    return f"{min_passes} of {repeat}"


if TYPE_CHECKING:
    ReadFile = Callable[[str], bytes]


def check_id(raw: JsonObject) -> str:
    """Return the id of a prompt.

    Raises:
        ValueError: there is none, or it cannot be in a pytest node id; the message has the reason.

    """
    hint = "Write letters, digits, _ or -, such as P1."
    if "id" not in raw:
        raise ValueError('has no "id". Give it one of its own, such as "P1".')
    value = raw["id"]
    if not isinstance(value, str):
        raise ValueError(f"id is {kind_of(value)}, not a string. {hint}")
    if not value.strip():
        raise ValueError(f"id is blank. {hint}")
    if not is_plain(value):
        raise ValueError(f"id {shown(value)} holds a blank or an invisible character. {hint}")
    if bad := next((part for part in ("[", "]", "::", "/") if part in value), None):
        raise ValueError(f"id {shown(value)} holds {bad}, which pytest's node ids cannot carry. {hint}")
    return value


def read_prompt(
    raw: JsonObject,
    prompt_id: str,
    *,
    suite: str,
    registry: Registry,
    read_file: ReadFile | None = None,
) -> tuple[Prompt | None, list[str]]:
    """Return the prompt, or None and what is wrong, a sentence with its hint for each fault.

    Args:
        raw: the entry as it was written.
        prompt_id: its id, already checked; any text if the id was bad and only complaints are wanted.
        suite: the file, for `Prompt.suite`.
        registry: the validators there are.
        read_file: reads a picture, as in `read_images`; None leaves pictures out, where nothing is sent.

    """
    if flaws := list(find_flaws(raw)):
        return None, flaws
    values, complaints = _read_keys(raw, read_file)
    try:
        values["validator"] = build_validator(_validator_spec(raw), registry)
    except ValueError as error:
        complaints.append(" ".join(str(error).splitlines()))
    complaints += _disagreements(values)
    if isinstance(form := raw.get("pressure"), Form):
        values |= {"pressure_of": form.of, "padding_tokens": form.padding_tokens}
    elif form is not None:
        complaints += [f"pressure {flaw}" for flaw in flaws_of(raw)]
    share = values.pop("pass", None)
    if disagreement := find_disagreement(values.get("repeat"), share):
        complaints.append(disagreement)
    elif share is not None:
        values |= share._asdict()
    if "validator" in values:
        complaints += _lacking(raw, values["validator"])
        complaints += _unreachable(values.get("tools"), values["validator"])
    if complaints:
        return None, complaints
    if variant := values.get("variant_of"):
        # As rows name it: the file is beside this one.
        file, _, of = variant.rpartition("::")
        folder = suite.rpartition("/")[0]
        beside = f"{folder}/{file}" if folder else file
        values["variant_of"] = f"{beside if file else suite}::{of}"
    values["tools_spec"] = raw.get("tools")
    values["name"] = values.get("name") or prompt_id
    values["validator_spec"] = raw.get("validator") or {"type": "noop"}
    values["extra"] = {key: value for key, value in raw.items() if key not in _KNOWN} or _NO_EXTRA
    return Prompt(suite=suite, id=prompt_id, **values), []


def _disagreements(values: Mapping[str, Any]) -> Iterator[str]:
    """Yield errors for keys that do not go together."""
    if "twin_of" in values and "probe" in values:
        yield "has probe beside twin_of. A twin is harmless, so remove one of them."
    if "world" in values and "tools" not in values:
        yield 'has a world, but no "tools" to act in it. Write for example tools = "direct".'
    if any(turn.calls for turn in values.get("messages", ())) and "tools" not in values:
        yield 'has messages with calls, but no "tools". Offer those that were called.'
    if {"turns", "tools"} <= values.keys() and "world" not in values:
        yield 'has turns and "tools", but no "world" that answers calls. Write world = { files = {} }.'


def _lacking(raw: JsonObject, validator: Validator) -> Iterator[str]:
    """Yield errors for a validator of native calls whose prompt lacks what it needs."""
    needs = needs_of(validator)
    if (types := {kind for kind, key in needs if key == "tools"}) and raw.get("tools") is None:
        named = ", ".join(sorted(types))
        yield f'has a validator {named}, but no "tools" to call. Write for example tools = "direct".'
    if any(key == "world" for _, key in needs) and raw.get("world") is None:
        yield 'has a validator world, but no "world" to look at. Write for example world = { files = {} }.'


def _unreachable(tools: Sequence[Tool] | None, validator: Validator) -> Iterator[str]:
    """Yield the required calls that no model could make, because of a mistake in the suite."""
    if tools is None:
        return
    bridged = any(same_tool(tool.name, CALL) for tool in tools)
    offered = reached_tools(tools) if bridged else ()
    names = [tool.name for tool in (*tools, *offered)]
    for wanted in demands_of(validator).calls:
        if not any(same_tool(name, one) for name in names for one in wanted.names):
            yield f'demands a call of {shown(wanted.names[0])}, which "tools" does not offer. Offer it.'


def _read_keys(raw: JsonObject, read_file: ReadFile | None) -> tuple[dict[str, Any], list[str]]:
    """Return the keys that depend on no other, and an error for each malformed one."""
    values: dict[str, Any] = {}
    complaints = [] if "prompt" in raw else ['has no "prompt". Write the text that the model is asked.']
    readers = dict(_READERS)
    if read_file is not None:
        readers["images"] = partial(read_images, read_file=read_file)
    for key, read in readers.items():
        if key not in raw or (raw[key] is None and key != "prompt"):
            continue
        try:
            values[_FIELDS.get(key, key)] = read(raw[key])
        except ValueError as error:
            complaints.append(f"{key} {error}")
    return values, complaints


def _validator_spec(raw: JsonObject) -> Any:
    if "validator" not in raw:
        near = get_close_matches("validator", [key.lower() for key in raw], n=1, cutoff=0.8)
        if near:
            # Without a validator nothing is judged, which a typo must not cause.
            written = next(key for key in raw if key.lower() == near[0])
            raise ValueError(f'has {shown(written)}, which means nothing here. Rename it to "validator".')
    return raw.get("validator")


def _text(value: Any) -> str:
    if not isinstance(value, str):
        raise ValueError(f"is {kind_of(value)}, not a string. Write a text in quotes.")
    return value


def _filled(value: Any, hint: str) -> str:
    text = _text(value)
    if not text.strip():
        raise ValueError(f"is blank. {hint}")
    return text


def _texts(value: Any) -> tuple[str, ...]:
    if not isinstance(value, list):
        raise ValueError(f'is {kind_of(value)}, not a list. Write strings in brackets, such as ["router"].')
    if bad := [entry for entry in value if not isinstance(entry, str)]:
        raise ValueError(f"holds {shown(bad[0])}, which is {kind_of(bad[0])}. Write strings only.")
    return tuple(value)


def _tools(value: Any) -> tuple[str, ...]:
    if not isinstance(value, list):
        raise ValueError(f'is {kind_of(value)}, not a list. Write names in brackets, such as ["free"].')
    return tuple(_tool(entry) for entry in value)


def _tool(entry: Any) -> str:
    name = entry.get("name") if isinstance(entry, dict) else entry
    if not isinstance(name, str) or not name.strip():
        raise ValueError(
            f'holds {shown(entry)}, which names no tool. Write "free", or an object with a "name".'
        )
    return name


def _seconds(value: Any) -> float:
    is_number = isinstance(value, int | float) and not isinstance(value, bool)
    if not is_number or not 0 < value <= sys.float_info.max:
        raise ValueError(f"is {shown(value)}. Write seconds, a number greater than 0, such as 60.")
    return float(value)


def _tokens(value: Any) -> int:
    if not is_whole(value, 1):
        raise ValueError(f"is {shown(value)}. Write a whole number greater than 0, such as 256.")
    return value


def _probe(value: Any) -> Probe:
    if value not in get_args(Probe):
        raise ValueError(f"is {shown(value)}. Write one of {', '.join(get_args(Probe))}.")
    return cast("Probe", value)


def _variant_of(value: Any) -> str:
    file, separator, prompt_id = _text(value).rpartition("::")
    if not prompt_id.strip() or (separator and not file.strip()) or "/" in file or "\\" in file:
        raise ValueError(
            f"is {shown(value)}. Write the id of a prompt of this suite, or of one beside it, "
            'such as "prompts_core.toml::P1".'
        )
    return _text(value)


_READERS: Mapping[str, Callable[[Any], Any]] = {
    "name": _text,
    "prompt": partial(_filled, hint="Write the text that the model is asked."),
    "category": _text,
    "tags": _texts,
    "system": _text,
    "messages": read_messages,
    "turns": read_turns,
    "expected_tool_calls": _tools,
    "timeout_s": _seconds,
    "max_output_tokens": _tokens,
    "tools": read_tools,
    "world": read_world,
    "probe": _probe,
    "twin_of": partial(_filled, hint="Write the id of the probe whose harmless twin this is."),
    "variant_of": _variant_of,
    "repeat": read_repeat,
    "pass": read_pass,
    "xfail": read_known_failures,
}
_FIELDS = {"xfail": "known_failures"}
_KNOWN = frozenset({"id", "validator", "pressure", "images", *_READERS})
_NO_EXTRA: JsonObject = {}  # one for all prompts; nothing changes it
