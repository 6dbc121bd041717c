"""Reads a suite file with its prompts, conversations, images and worlds, and reports all errors at once."""

from __future__ import annotations

import json
import re
import tomllib
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import replace
from functools import cache
from pathlib import Path
from typing import Any, Literal

from msgspec import Struct, defstruct

from pytest_openclaw.judging.calls import demands_of
from pytest_openclaw.judging.registry import Registry, build_validator, call_rules_in
from pytest_openclaw.judging.world import WorldReached
from pytest_openclaw.openclaw.catalog import CALL, Catalogue
from pytest_openclaw.openclaw.dispatch import reached_tools, same_tool
from pytest_openclaw.suites.offered import (
    Form,
    flaws_of,
    of_catalogue,
    read_tools,
    under_pressure,
    without_notes,
)
from pytest_openclaw.util.bounded import compile_pattern
from pytest_openclaw.util.errors import SuiteError
from pytest_openclaw.util.files import JsonObject
from pytest_openclaw.util.text import closest, is_plain, listed
from pytest_openclaw.util.typed import converted, prefixed, shown
from pytest_openclaw.values.prompts import (
    KEYS,
    MOST_REPEATS,
    NOTE,
    AssistantSpec,
    KnownFailure,
    Message,
    Prompt,
    ResultSpec,
    Suite,
    UserSpec,
    part_keys,
    prompt_keys,
)
from pytest_openclaw.values.protocols import Validator
from pytest_openclaw.values.replies import FORMATS, Image, Turn, media_type_of
from pytest_openclaw.values.requests import Target, label_fits
from pytest_openclaw.values.tool_calls import Tool, ToolCall
from pytest_openclaw.values.worlds import ScriptedAnswer, ScriptedCommand, World
from pytest_openclaw.worlds.workspace import normal_path

# --- messages -------------------------------------------------------------------------------------


def history_of(messages: list[Message]) -> tuple[Turn, ...]:
    """Return the turns of messages after a prompt, the last of which the model answers."""
    if not isinstance(messages[-1], ResultSpec):
        raise ValueError("do not end with a tool's result, which the model then answers.")
    return turns_of(messages, follows_prompt=True)


def turns_of(messages: list[Message], *, follows_prompt: bool = False) -> tuple[Turn, ...]:
    """Return the turns of messages; each result belongs to the first call without one."""
    turns: list[Turn] = []
    for n, message in enumerate(messages):
        with prefixed(f"[{n}]"):
            if not (turns or follows_prompt) and isinstance(message, AssistantSpec):
                raise ValueError("is the assistant's. Begin with a message of the user.")
            _add(turns, message)
    if call := _open_call(turns):
        raise ValueError(f"end with a call of {call.name} without a result. {_RESULT}")
    return tuple(turns)


_RESULT = 'Write { role = "tool", content = "…" } after it.'


def _add(turns: list[Turn], message: Message) -> None:
    call = _open_call(turns)
    if isinstance(message, ResultSpec):
        if call is None:
            raise ValueError(
                "is a tool's result, and each call before it has one. Write the call, or remove it."
            )
        if message.name not in (None, call.name):
            raise ValueError(
                f"is a result of {shown(message.name)}, but the next call without one is of {call.name}."
                " Write results in the order of the calls."
            )
        turns[-1] = replace(turns[-1], results=(*turns[-1].results, message.content))
        return
    if call is not None:
        raise ValueError(f"follows a call of {call.name} without a result. {_RESULT}")
    if isinstance(message, UserSpec):
        turns.append(Turn(user=message.content))
        return
    written = ((one.name, json.dumps(one.arguments, ensure_ascii=False)) for one in message.calls)
    calls = tuple(ToolCall(name=name, arguments=arguments) for name, arguments in written)
    turns.append(Turn(text=message.content, calls=calls))


def _open_call(turns: list[Turn]) -> ToolCall | None:
    return next(iter(turns[-1].calls[len(turns[-1].results) :]), None) if turns else None


def written_messages(turns: Iterable[Turn]) -> list[JsonObject]:
    """Return turns in the form of a suite's `messages`, which is read as the same turns."""
    written: list[JsonObject] = []
    for turn in turns:
        if turn.user is not None:
            written.append({"role": "user", "content": turn.user})
            continue
        calls = [{"name": call.name, "arguments": json.loads(call.arguments)} for call in turn.calls]
        written.append({"role": "assistant", "content": turn.text} | ({"calls": calls} if calls else {}))
        written += ({"role": "tool", "content": result} for result in turn.results)
    return written


MOST_BYTES = 3_932_160
"""The maximum size of an image: 5 MiB as base64, which is Anthropic's limit and the lowest of all."""


ReadImage = Callable[[str], Image]


def images_in(folder: Path) -> ReadImage:
    """Return a function that reads an image in a suite's folder, once; its `ValueError` has a hint."""

    @cache
    def read_image(path: str) -> Image:
        file = (folder / path).resolve()
        try:
            if not file.is_file() or not file.is_relative_to(folder.resolve()):
                hint = f"Put the image into {folder}, and write its path from there."
                raise ValueError(f"{shown(path)} is not a file below the suite's folder. {hint}")
            with file.open("rb") as image:
                data = image.read(MOST_BYTES + 1)
        except OSError as error:
            raise ValueError(f"{shown(path)} cannot be read ({error.strerror}).") from None
        if len(data) > MOST_BYTES:
            limit = f"more than {MOST_BYTES:,} bytes; some APIs refuse that. Make it smaller."
            raise ValueError(f"has {shown(path)}, which has {limit}")
        if (media_type := media_type_of(data)) is None:
            hint = f"Save it as {' or '.join(FORMATS)}."
            raise ValueError(f"has {shown(path)}, which is not an image by its first bytes. {hint}")
        return Image(path=path, media_type=media_type, data=data)

    return read_image


# --- world ----------------------------------------------------------------------------------------

_VARIABLE = re.compile(r"[A-Za-z_][A-Za-z0-9_]*")


def checked_world(world: World) -> World:
    """Check every path, pattern, variable and answer; an error begins with its key in the world."""
    for name, text in world.env.items():
        if not _VARIABLE.fullmatch(name) or "\0" in text:
            raise ValueError(
                f" has env {shown(name)}, which cannot be a variable. Write letters, digits and _."
            )
    with prefixed(""):
        _check_paths([*world.files, *world.memory])
    for n, command in enumerate(world.commands):
        with prefixed(f".commands[{n}]"):
            _check_command(command)
    for n, answer in enumerate(world.answers):
        with prefixed(f".answers[{n}]"):
            _check_answer(answer)
    return world


def _check_paths(paths: Iterable[str]) -> None:
    for path in paths:
        try:
            is_file = bool(normal_path(path)) and not path.endswith("/")
        except ValueError:
            is_file = False
        if not is_file:
            raise ValueError(f"has the path {shown(path)}, which cannot name a file.")


def _check_command(command: ScriptedCommand) -> None:
    _check_paths([*command.writes, *command.removes, *command.when])
    for pattern in (command.pattern, *command.when.values()):
        compile_pattern(pattern)


def _check_answer(answer: ScriptedAnswer) -> None:
    given = [key for key in ("result", "error", "fails", "cut") if getattr(answer, key) is not None]
    if len(given) != 1 and given != ["result", "cut"]:
        raise ValueError(
            f"has {' and '.join(given) or 'no result'}. Write one of result, error, fails, cut for"
            " each answer, or result with cut."
        )
    with prefixed("has matching that"):
        answer.schema  # noqa: B018 - checked when the suite is read


# --- an entry -------------------------------------------------------------------------------------


def _share(text: str) -> tuple[int, int]:
    """Return the required passes of `4 of 5`, and the number of repeats."""
    passes, repeats = map(int, re.findall("[0-9]+", text))
    if not 1 <= passes <= repeats <= MOST_REPEATS:
        numbers = "how many passes of how many repeats are required, from 1 to all"
        raise ValueError(f'is {shown(text)}. Write {numbers}, such as "4 of 5".')
    return passes, repeats


_BUILDERS: Mapping[str, Callable[[Any], Any]] = {
    "messages": turns_of,
    "history": history_of,
    "expected_tool_calls": lambda tools: tuple(one if isinstance(one, str) else one.name for one in tools),
    "world": checked_world,
    "pass": _share,
    "xfail": lambda entries: tuple(entries) if isinstance(entries, list) else (entries,),
}
_READ = tuple(name for name, key in KEYS.items() if key.example and name != "id")
ORIGINAL = "variant"
"""A label in the original harness's prompt files, which has no meaning there either."""
_NO_EXTRA: JsonObject = {}  # shared by all prompts, and never changed


def known_keys() -> frozenset[str]:
    """Return the keys of an entry, except the author's own."""
    return frozenset({"id", "pressure", *_READ, *part_keys()})


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
    value: str = KEYS["id"].read("id", raw["id"])
    if not is_plain(value) or any(part in value for part in ("[", "]", "::", "/")):
        hint = "Write letters, digits, _ or -, such as P1."
        raise ValueError(f"id is {shown(value)}, which pytest's node ids cannot contain. {hint}")
    return value


def read_prompt(
    raw: JsonObject,
    prompt_id: str,
    *,
    suite: str,
    registry: Registry,
    read_image: ReadImage | None = None,
) -> tuple[Prompt | None, list[str]]:
    """Return the prompt of an entry, or None and the entry's errors, each a sentence with its hint.

    Without `read_image`, images are left out; use this where nothing is sent.
    """
    world = without_notes(raw.get("world"), "commands", "answers")
    given = {key: value for key, value in {**raw, "world": world}.items() if value is not None}
    given.setdefault("validator", {})
    values: dict[str, Any] = {}
    errors = [] if "prompt" in given else ['has no "prompt". Write the text to send to the model.']
    for name in (*_READ, *part_keys()):
        if name in given and not (name == "images" and read_image is None):
            try:
                values[name] = _value(name, given[name], registry, read_image)
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
    values["part_labels"] = tuple((name, values.pop(name)) for name in part_keys() if name in values)
    values["known_failures"] = values.pop("xfail", ())
    values["tools_spec"] = raw.get("tools")
    values["name"] = values.get("name") or prompt_id
    values["validator_spec"] = given["validator"] or {"type": "noop"}
    extra = {key: value for key, value in raw.items() if key not in known_keys()}
    if world != raw.get("world"):
        extra["world"] = raw["world"]
    values["extra"] = extra or _NO_EXTRA
    return Prompt(suite=suite, id=prompt_id, **values), []


def _value(name: str, value: Any, registry: Registry, read_image: ReadImage | None) -> Any:
    """Return the value of a key as a prompt has it; raise `ValueError` with a hint if it is malformed."""
    if name == "tools":
        return read_tools(value)
    if name == "validator":
        return build_validator(value, registry)
    build = _BUILDERS.get(name, lambda found: found)
    if name == "images" and read_image:
        return KEYS[name].read(name, value, lambda paths: tuple(map(read_image, paths)))
    return prompt_keys()[name].read(name, value, build)


def _disagreements(values: Mapping[str, Any]) -> Iterator[str]:
    if "twin_of" in values and "probe" in values:
        yield "has probe and twin_of. A twin is harmless, so remove one of them."
    if "world" in values and "tools" not in values:
        yield 'has a world, but no "tools" to act in it. Write for example tools = "direct".'
    for key in ("messages", "history"):
        if any(turn.calls for turn in values.get(key, ())) and "tools" not in values:
            yield f'has {key} with calls, but no "tools". Offer the tools that were called.'
    if {"turns", "tools"} <= values.keys() and "world" not in values:
        yield 'has turns and "tools", but no "world" that answers calls. Write world = { files = {} }.'
    share, repeat = values.get("pass"), values.get("repeat")
    if share and repeat not in (None, share[1]):
        yield f"repeat is {repeat}, but pass is {shown(pass_text(*share))}. Leave repeat out."


def _unmet(raw: JsonObject, validator: Validator, tools: Sequence[Tool] | None) -> Iterator[str]:
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
    for demand in demands_of(validator).calls:
        if not any(same_tool(name, one) for name in names for one in demand.names):
            yield f'demands a call of {shown(demand.names[0])}, which "tools" does not offer. Offer it.'


def unknown_keys(raw: JsonObject, *, is_original: bool) -> Iterator[str]:
    """Yield an error for each unknown key of an entry.

    A prompt file of the original harness may have any further keys: with `is_original`, only a key that
    resembles one that the entry lacks is an error.
    """
    for key in raw:
        if key in known_keys() or key == ORIGINAL or key.startswith(NOTE):
            continue
        hint = closest(key.lower(), known_keys() - raw.keys())
        if hint or not is_original:
            yield f"has the unknown key {shown(key)}.{hint} A key of your own begins with {NOTE}."


# --- suite files ----------------------------------------------------------------------------------

SuiteFormat = Literal["toml", "json"]

_EXAMPLE: dict[SuiteFormat, str] = {
    "toml": "Write each prompt below a line [[prompts]], with id, prompt and validator.",
    "json": 'Write a list of prompts: [{"id": "P1", "prompt": "…", "validator": {…}}].',
}


_SYNTAX: dict[SuiteFormat, str] = {
    "toml": "Write texts in quotes, and each key once.",
    "json": "Write no comments, and no comma after the last entry.",
}


class Document(Struct, forbid_unknown_fields=True):
    """A suite file as it was written; see `parse_suite`."""

    prompts: list[Any] = []
    named_only: bool = False


def _document(text: str | bytes, form: SuiteFormat, name: str) -> Document:
    """Parse a suite file, but not its prompts, which get its labels; raise `SuiteError` if malformed."""
    try:
        plain = text.removeprefix("\ufeff") if isinstance(text, str) else text.decode("utf-8-sig")
        read = tomllib.loads if form == "toml" else json.loads
        content = read(plain) if plain.strip() else {}
    except UnicodeDecodeError:
        raise SuiteError(f"{name}: is not UTF-8. Save the file as UTF-8.") from None
    except (ValueError, RecursionError) as error:
        raise SuiteError(f"{name}: is not {form.upper()}: {error}. {_SYNTAX[form]}") from None
    try:
        given = {"prompts": content} if isinstance(content, list) else content
        labels = [(name, key.kind, None) for name, key in part_keys().items()]
        document: Document = converted(given, defstruct("Document", labels, bases=(Document,)))
    except ValueError as error:
        raise SuiteError(f"{name}: {str(error).rstrip('.')}. {_EXAMPLE[form]}") from None
    if not document.prompts:
        raise SuiteError(f"{name}: has no prompts. {_EXAMPLE[form]}")
    shared = {name: value for name in part_keys() if (value := getattr(document, name)) is not None}
    document.prompts = [shared | one if isinstance(one, dict) else one for one in document.prompts]
    return document


MOST_ERRORS = 20


def parse_suite(
    text: str | bytes,
    *,
    format: SuiteFormat,  # noqa: A002 (it is the plainest name for the caller)
    name: str,
    registry: Registry,
    catalogue: Catalogue | None = None,
    read_image: ReadImage | None = None,
) -> Suite:
    """Parse a suite.

    TOML: tables `[[prompts]]`. JSON, as in the original harness: a list of objects, or an object with a list
    `prompts`. Keys that begin with `x_` are kept in `Prompt.extra`; null is absent.

    Args:
        text: the file; bytes must be UTF-8, with or without a byte order mark.
        format: the file's format.
        name: the file's name in rows and errors.
        registry: the existing validators.
        catalogue: a captured catalogue of tools and surfaces; None for the shipped one.
        read_image: reads an image in the suite's folder; None leaves images out.

    Raises:
        SuiteError: the message has a line for each of the first 20 faults, with file, prompt, key and hint.
    """
    document = _document(text, format, name)
    entries = under_pressure(document.prompts, catalogue)
    if catalogue is not None:
        entries = [
            {**entry, "tools": of_catalogue(catalogue, entry["tools"])}
            if isinstance(entry, dict) and entry.get("tools") is not None
            else entry
            for entry in entries
        ]
    prompts: list[Prompt] = []
    complaints: list[str] = []
    ids: set[str] = set()
    for position, raw in enumerate(entries, start=1):
        label = f"prompt no. {position}"
        try:
            prompt_id = _id_of(raw, ids)
            label = f"prompt {prompt_id}"
            prompt, found = read_prompt(raw, prompt_id, suite=name, registry=registry, read_image=read_image)
            found += unknown_keys(raw, is_original=format == "json")
        except ValueError as error:
            prompt, found = None, [str(error)]
        complaints += (f"{label}: {complaint}" for complaint in found)
        if prompt is not None:
            prompts.append(prompt)
    complaints = complaints or [*_unpaired(prompts)]
    if complaints:
        rest = len(complaints) - MOST_ERRORS
        lines = complaints[:MOST_ERRORS] + ([f"and {rest} more."] if rest > 0 else [])
        raise SuiteError("\n".join(f"{name}: {line}" for line in lines))
    return Suite(path=name, prompts=tuple(prompts), named_only=document.named_only)


def _id_of(raw: Any, ids: set[str]) -> str:
    """Return the id of an entry, and add it to `ids`; raise `ValueError` if the entry has no valid id."""
    if not isinstance(raw, dict):
        raise ValueError(f"is {shown(raw)}, not an object. Write an object with id, prompt and validator.")
    try:
        json.dumps(raw, allow_nan=False, ensure_ascii=False).encode()
    except (TypeError, ValueError, RecursionError):
        hint = "Write whole characters and finite numbers, and put dates in quotes."
        raise ValueError(f"has a value that JSON cannot represent. {hint}") from None
    prompt_id = check_id(raw)
    if prompt_id in ids:
        raise ValueError(f"id {shown(prompt_id)} is the id of another prompt too. Give each its own id.")
    ids.add(prompt_id)
    return prompt_id


def _unpaired(prompts: Sequence[Prompt]) -> Iterator[str]:
    """Yield an error for each twin without its probe, and each variant without its original."""
    ids, probes = {prompt.id for prompt in prompts}, {prompt.id for prompt in prompts if prompt.probe}
    for prompt in prompts:
        if prompt.twin_of is not None and prompt.twin_of not in probes:
            known = f"Probes: {listed(sorted(probes))}." if probes else "It has no prompt with probe."
            yield f"prompt {prompt.id}: twin_of {shown(prompt.twin_of)} is not a probe of this suite. {known}"
        own, _, of = (prompt.variant_of or "").rpartition("::")
        # Another file may not be part of the session.
        if own == prompt.suite and (of == prompt.id or of not in ids):
            yield f"prompt {prompt.id}: variant_of {shown(of)} is not another prompt of this suite."


_FORMATS: dict[str, SuiteFormat] = {".toml": "toml", ".json": "json"}


def load_suite(path: Path, *, name: str, registry: Registry, catalogue: Catalogue | None = None) -> Suite:
    """Return the suite in a `.toml` or `.json` file; see `parse_suite`."""
    form = _FORMATS.get(path.suffix)
    if form is None:
        raise SuiteError(f"{name}: suites are TOML or JSON, in files that end in .toml or .json.")
    try:
        content = path.read_bytes()
    except OSError as error:
        why = error.strerror or type(error).__name__
        raise SuiteError(f"{name}: cannot be read ({why}). Check that it is a file you may read.") from None
    return parse_suite(
        content,
        format=form,
        name=name,
        registry=registry,
        catalogue=catalogue,
        read_image=images_in(path.parent),
    )
