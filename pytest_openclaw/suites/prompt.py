"""Reads one entry of a suite file as a `Prompt`, or returns all its errors."""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from functools import partial
from typing import TYPE_CHECKING, Any

from pytest_openclaw.judging.calls import demands_of
from pytest_openclaw.judging.registry import build_validator, call_rules_in
from pytest_openclaw.judging.world import WorldReached
from pytest_openclaw.openclaw.bridge import reached_tools
from pytest_openclaw.openclaw.catalog import CALL
from pytest_openclaw.openclaw.dispatch import same_tool
from pytest_openclaw.suites.conversation import checked_world, images_of, turns_of
from pytest_openclaw.suites.offered import Form, flaws_of, read_tools
from pytest_openclaw.suites.wording import NOTE, closest, is_plain, read_key, without_notes
from pytest_openclaw.util.typed import shown
from pytest_openclaw.values.prompts import KEYS, MOST_REPEATS, KnownFailure, Prompt, ToolName
from pytest_openclaw.values.requests import label_fits

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from pytest_openclaw.judging.registry import Registry
    from pytest_openclaw.util.files import JsonObject
    from pytest_openclaw.values.protocols import Validator
    from pytest_openclaw.values.requests import Target
    from pytest_openclaw.values.tool_calls import Tool

ReadFile = Callable[[str], bytes]


def _names(tools: list[str | ToolName]) -> tuple[str, ...]:
    return tuple(tool if isinstance(tool, str) else tool.name for tool in tools)


def _known_failures(entries: KnownFailure | list[KnownFailure]) -> tuple[KnownFailure, ...]:
    return tuple(entries) if isinstance(entries, list) else (entries,)


def _share(text: str) -> tuple[int, int]:
    """Return the required passes of `4 of 5`, and the number of repeats."""
    passes, repeats = map(int, re.findall("[0-9]+", text))
    if not 1 <= passes <= repeats <= MOST_REPEATS:
        numbers = "how many passes of how many repeats are required, from 1 to all"
        raise ValueError(f'is {shown(text)}. Write {numbers}, such as "4 of 5".')
    return passes, repeats


_BUILDERS: Mapping[str, Callable[[Any], Any]] = {
    "messages": turns_of,
    "expected_tool_calls": _names,
    "world": checked_world,
    "pass": _share,
    "xfail": _known_failures,
}
_READ = tuple(name for name, key in KEYS.items() if key.example and name != "id")
KNOWN = frozenset({"id", "pressure", *_READ})
ORIGINAL = "variant"
"""A label in the original harness's prompt files, which has no meaning there either."""
_NO_EXTRA: JsonObject = {}  # shared by all prompts, and never changed


def known_failure_of(prompt: Prompt, target: Target) -> KnownFailure | None:
    """Return the first entry that expects this target to fail this prompt, or None."""
    fitting = (one for one in prompt.known_failures if label_fits(target.label, one.target))
    return next(fitting, None)


def pass_text(min_passes: int, repeat: int) -> str:
    """Return `4 of 5`, as in a suite."""
    return f"{min_passes} of {repeat}"


def check_id(raw: JsonObject) -> str:
    """Return the id of a prompt.

    Raises:
        ValueError: it is missing, or cannot be in a pytest node id; the message has the reason.
    """
    if "id" not in raw:
        raise ValueError('has no "id". Write for example id = "P1".')
    value: str = read_key("id", raw["id"], KEYS["id"])
    if not is_plain(value) or any(part in value for part in ("[", "]", "::", "/")):
        raise ValueError(
            f"id is {shown(value)}, which pytest's node ids cannot contain. Write letters, digits, _ or -,"
            " such as P1."
        )
    return value


def read_prompt(
    raw: JsonObject,
    prompt_id: str,
    *,
    suite: str,
    registry: Registry,
    read_file: ReadFile | None = None,
) -> tuple[Prompt | None, list[str]]:
    """Return the prompt of an entry, or None and the entry's errors, each a sentence with its hint.

    Without `read_file`, images are left out; use this where nothing is sent.
    """
    world = without_notes(raw.get("world"), "commands", "answers")
    given = {key: value for key, value in {**raw, "world": world}.items() if value is not None}
    given.setdefault("validator", {})
    values: dict[str, Any] = {}
    errors = [] if "prompt" in given else ['has no "prompt". Write the text to send to the model.']
    for name in _READ:
        if name in given and not (name == "images" and read_file is None):
            try:
                values[name] = _value(name, given[name], registry, read_file)
            except ValueError as error:
                errors.append(" ".join(str(error).splitlines()))
    if "validator" in values:
        errors += _unmet(raw, values["validator"], values.get("tools"))
    errors += _disagreements(values)
    if isinstance(form := raw.get("pressure"), Form):
        values |= {"pressure_of": form.of, "padding_tokens": form.padding_tokens}
    elif form is not None:
        errors += flaws_of(raw)
    if errors:
        return None, errors
    if share := values.pop("pass", None):
        values["min_passes"], values["repeat"] = share
    if variant := values.get("variant_of"):
        # As in rows, with the suite's folder, which contains the other file too.
        file, _, of = variant.rpartition("::")
        folder, slash, _ = suite.rpartition("/")
        values["variant_of"] = f"{folder}{slash}{file}::{of}" if file else f"{suite}::{of}"
    values["known_failures"] = values.pop("xfail", ())
    values["tools_spec"] = raw.get("tools")
    values["name"] = values.get("name") or prompt_id
    values["validator_spec"] = given["validator"] or {"type": "noop"}
    extra = {key: value for key, value in raw.items() if key not in KNOWN}
    if world != raw.get("world"):
        extra["world"] = raw["world"]
    values["extra"] = extra or _NO_EXTRA
    return Prompt(suite=suite, id=prompt_id, **values), []


def _value(name: str, value: Any, registry: Registry, read_file: ReadFile | None) -> Any:
    """Return the value of a key as a prompt has it; raise `ValueError` with a hint if it is malformed."""
    if name == "tools":
        return read_tools(value)
    if name == "validator":
        return build_validator(value, registry)
    if name == "images" and read_file:
        return read_key(name, value, KEYS[name], partial(images_of, read_file=read_file))
    return read_key(name, value, KEYS[name], _BUILDERS.get(name))


def _disagreements(values: Mapping[str, Any]) -> Iterator[str]:
    """Yield an error for each pair of keys that contradict each other."""
    if "twin_of" in values and "probe" in values:
        yield "has probe and twin_of. A twin is harmless, so remove one of them."
    if "world" in values and "tools" not in values:
        yield 'has a world, but no "tools" to act in it. Write for example tools = "direct".'
    if any(turn.calls for turn in values.get("messages", ())) and "tools" not in values:
        yield 'has messages with calls, but no "tools". Offer the tools that were called.'
    if {"turns", "tools"} <= values.keys() and "world" not in values:
        yield 'has turns and "tools", but no "world" that answers calls. Write world = { files = {} }.'
    share, repeat = values.get("pass"), values.get("repeat")
    if share and repeat not in (None, share[1]):
        yield f"repeat is {repeat}, but pass is {shown(pass_text(*share))}. Leave repeat out."


def _unmet(raw: JsonObject, validator: Validator, tools: Sequence[Tool] | None) -> Iterator[str]:
    """Yield an error for each key that the validator needs and the prompt lacks."""
    types = {rule.type for rule in call_rules_in(validator)}
    if types and raw.get("tools") is None:
        named = ", ".join(sorted(types))
        yield f'has a validator {named}, but no "tools" to call. Write for example tools = "direct".'
    if WorldReached.type in types and raw.get("world") is None:
        yield 'has a validator world, but no "world" to check. Write for example world = { files = {} }.'
    if tools is None:
        return
    bridged = any(same_tool(tool.name, CALL) for tool in tools)
    names = [tool.name for tool in (*tools, *(reached_tools(tools) if bridged else ()))]
    for wanted in demands_of(validator).calls:
        if not any(same_tool(name, one) for name in names for one in wanted.names):
            yield f'demands a call of {shown(wanted.names[0])}, which "tools" does not offer. Offer it.'


def unknown_keys(raw: JsonObject, *, is_original: bool) -> Iterator[str]:
    """Yield an error for each unknown key of an entry.

    A prompt file of the original harness may have any further keys: with `is_original`, only a key that
    resembles one that the entry lacks is an error.
    """
    for key in raw:
        if key in KNOWN or key == ORIGINAL or key.startswith(NOTE):
            continue
        hint = closest(key.lower(), KNOWN - raw.keys())
        if hint or not is_original:
            yield f"has the unknown key {shown(key)}.{hint} A key of your own begins with {NOTE}."
