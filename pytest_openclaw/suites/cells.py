"""Parses target specs and endpoints, and combines prompts, targets and repeats into cells.

A spec is `[provider/]model[@thinking][+surface]`. An endpoint is an ini line
`name = kind base_url [KEY_ENV_NAME]`; errors never quote a possible secret.

Cells are selected, ordered, divided into shards, and defined in `config.json`. `-k P1` matches the prompt P1
and never P10, although pytest matches substrings: each item has a private token of its prompt's id among its
extra keywords, and before pytest evaluates a `-k` expression, the ids in it are replaced by these tokens.
"""

from __future__ import annotations

import hashlib
import json
import re
from collections import Counter
from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from dataclasses import asdict, replace
from fnmatch import fnmatchcase
from typing import Any, TypeVar
from urllib.parse import urlsplit

from msgspec import to_builtins

from pytest_openclaw.suites.load import pass_text, written_messages
from pytest_openclaw.suites.offered import as_listed, on_surface, why_not_on_openclaw
from pytest_openclaw.util.errors import TargetError
from pytest_openclaw.util.files import JsonObject
from pytest_openclaw.util.text import closest, file_bytes, inert, is_plain, valid_text
from pytest_openclaw.util.typed import shown
from pytest_openclaw.values.prompts import KEYS, Cell, Prompt, part_keys
from pytest_openclaw.values.requests import (
    LISTED,
    OPENCLAW,
    SURFACES,
    THINKING_LEVELS,
    CellKey,
    SurfaceName,
    Target,
    ThinkingLevel,
)
from pytest_openclaw.values.settings import DEFAULT_PROVIDER, Endpoint, Shard
from pytest_openclaw.values.tool_calls import Surface, Tool
from pytest_openclaw.values.worlds import World

_WILDCARD = "*"


def parse_targets(
    specs: Sequence[str],
    *,
    providers: Collection[str],
    default_providers: Sequence[str],
    default_levels: Sequence[ThinkingLevel | None] = (None,),
    default_surfaces: Sequence[SurfaceName] = (LISTED,),
) -> tuple[Target, ...]:
    """Return the targets that the specs name, in their order, each once.

    The part before the first `/` is a provider only if one has that name; else the whole text is the
    model's name. `@low`, `@medium`, `@high` or `@xhigh` at the end is a thinking level; any other `@…`
    belongs to the name. `+openclaw` is a surface. A `*` makes the model's name a pattern, to be resolved by
    `expand`. Parts that a spec leaves out are combined with each default.

    Raises:
        TargetError: a spec has no model or an invalid name, or two `.gguf` files have the same name.
    """
    targets: list[Target] = []
    for given in specs:
        for spec in given.split(","):
            bare, surface = _split_end(spec.strip(), "+", SURFACES)
            provider, model, level = _split_spec(bare, given, providers)
            chosen = default_providers if provider is None else [provider]
            if not chosen:
                raise TargetError(f"{shown(model)}: no provider is set. Write provider/{model}.")
            levels = default_levels if level is None else [level]
            targets += [
                Target(provider=p, model=model, thinking_level=w, surface=s)
                for p in chosen
                for w in levels
                for s in (default_surfaces if surface is None else (surface,))
            ]
    targets = [*dict.fromkeys(targets)]
    labels = Counter(target.label for target in targets)
    for target in targets:
        if labels[target.label] > 1:
            why = "another of these files has the same name. Rename one, or run each by itself."
            raise TargetError(f"{shown(target.model)}: {why}")
    return tuple(targets)


def is_wildcard(target: Target) -> bool:
    """Whether the model's name is a pattern over what the provider serves."""
    return _WILDCARD in target.model


def expand(target: Target, served: Sequence[str]) -> tuple[Target, ...]:
    """Return the targets that a wildcard matches, in the order in which they are served, each once.

    A model that no spec can name is left out, because another process could not find its target.
    """
    if not is_wildcard(target):
        return (target,)
    models = dict.fromkeys(model for model in served if fnmatchcase(model, target.model) and _is_spec(model))
    return tuple(replace(target, model=model) for model in models)


def _is_spec(model: str) -> bool:
    """Whether a spec can contain a served name, and a CI log can show it without running it as a command."""
    ends = _split_end(model, "@", THINKING_LEVELS)[1], _split_end(model, "+", SURFACES)[1]
    is_whole = not any(ends) and not any(sign in model for sign in (",", _WILDCARD))
    return is_whole and is_plain(model) and inert(model) == model


def _split_spec(
    spec: str, given: str, providers: Collection[str]
) -> tuple[str | None, str, ThinkingLevel | None]:
    example = "Write for example ollama_native/llama3.2:3b."
    if not spec:
        raise TargetError(f"{shown(given)} names no model between two commas or at an end. {example}")
    model, level = _split_end(spec, "@", THINKING_LEVELS)
    provider, slash, rest = model.partition("/")
    if slash and provider in providers:
        model = rest
    elif "_" in provider and slash and (hint := closest(provider, providers, cutoff=0.8)):
        # Publishers of models have no underscore in their names, and nearly all our providers have one.
        raise TargetError(
            f"{shown(spec)}: {shown(provider)} is not known.{hint} "
            f"Where it belongs to the model's name, write for example {DEFAULT_PROVIDER}/{spec}."
        )
    if not model or (model in providers and not slash):
        raise TargetError(f"{shown(spec)} names no model. {example}")
    if not is_plain(model):
        raise TargetError(f"{shown(spec)} holds a blank or an invisible character. {example}")
    return (provider if slash and provider in providers else None), model, level


OURS = {
    "ollama": DEFAULT_PROVIDER,
    "openai": "openai_responses",
    "anthropic": "anthropic_messages",
    "claude-cli": "claude_code_cli",
    "google": "gemini",
}
"""OpenClaw's name of a provider → ours."""


def how_read(target: Target, providers: Collection[str]) -> str:
    """Return how the name of a target was read, and what else it may mean; empty if it has no other meaning.

    LM Studio and OpenRouter have models such as `openai/gpt-oss-20b`, so this is not an error of the spec.
    """
    first, _, model = target.model.partition("/")
    ours = OURS.get(first.lower())
    if not model:
        return ""
    # One letter of three, or two of six.
    meant = (
        f" Did you mean {ours}/{model}?" if ours else closest(first, providers, then=f"/{model}", cutoff=0.66)
    )
    return f" The name was read as the model {target.model} of {target.provider}.{meant}" if meant else ""


def _split_end(spec: str, sign: str, known: Iterable[T]) -> tuple[str, T | None]:
    """Return a spec without its ending, and the ending: a known word after the sign, or None."""
    word = next((one for one in known if spec.endswith(f"{sign}{one}")), None)
    return (spec.removesuffix(f"{sign}{word}") if word else spec), word


_NAME = re.compile(r"[A-Za-z][A-Za-z0-9_.-]{0,39}\Z")
_VARIABLE = re.compile(r"[A-Z_][A-Z0-9_]*\Z")
_FORM = (
    "Write name = kind base_url KEY_ENV_NAME, the last only for a server with a key: a variable's name in"
    " capitals. A name has up to 40 letters, digits, _ . or -, and starts with a letter."
)


def parse_endpoint(line: str, *, kinds: Collection[str]) -> Endpoint:
    """Return the server that a line of `openclaw_endpoints` describes.

    The message of a `TargetError` has neither an address, which may contain a password, nor a possible key.
    """
    name, _, rest = (part.strip() for part in line.partition("="))
    if not _NAME.match(name) or _looks_like_key(name):
        raise TargetError(f"a line has no endpoint name before its =. {_FORM}")
    words = rest.split()
    if not 2 <= len(words) <= 3:
        raise TargetError(f"{name}: has {len(words)} words after the =, not two or three. {_FORM}")
    kind, base_url, *key = words
    if kind not in kinds:
        hint = closest(kind, kinds) or " For a server with OpenAI's chat completions write ollama_openai."
        raise TargetError(f"{name}: its kind is unknown; known kinds: {', '.join(sorted(kinds))}.{hint}")
    if not _is_url(base_url):
        hint = "Write for example http://127.0.0.1:8000/v1."
        raise TargetError(f"{name}: its address is not an http:// or https:// URL without ? and #. {hint}")
    if any(not _VARIABLE.match(variable) or _looks_like_key(variable) for variable in key):
        raise TargetError(f"{name}: its last word is not the name of a variable; it may be a key. {_FORM}")
    return Endpoint(name=name, kind=kind, base_url=base_url, key_env=key[0] if key else None)


def _is_url(address: str) -> bool:
    try:
        parts = urlsplit(address)
        is_usable = parts.scheme in ("http", "https") and bool(parts.hostname) and parts.port != 0
    except ValueError:  # an invalid port or IPv6 address
        return False
    return is_usable and is_plain(address) and not {"?", "#"} & {*address}


def _looks_like_key(word: str) -> bool:
    """Whether a word is long and random like a key, or begins with a common prefix of keys."""
    if re.match(r"(sk|pk|hf|gsk|xai|ghp|glpat)[-_]", word):
        return True
    return len(word) >= 16 and "_" not in word and any(character.isdigit() for character in word)


# --- cells ------------------------------------------------------------------------------------------


def definition(prompt: Prompt) -> JsonObject:
    """Return the definition of one prompt; see `definitions`."""
    return definitions([prompt])[0]


def definitions(prompts: Iterable[Prompt]) -> list[JsonObject]:
    """Return every field of each prompt as its suite has it, including defaults, as separate JSON values.

    Definitions that are read back from `config.json` are equal. A value that JSON cannot represent is a
    `TypeError` or `ValueError`; a parsed suite never has one.
    """
    # As one text, because a decoder creates each key only once per text.
    plain: list[JsonObject] = json.loads(json.dumps([*map(_fields, prompts)], allow_nan=False))
    return plain


def _fields(prompt: Prompt) -> dict[str, Any]:
    prompt = as_listed(prompt)
    share = prompt.min_passes is not None and prompt.repeat and pass_text(prompt.min_passes, prompt.repeat)
    in_other_form = {
        "validator": prompt.validator_spec,
        "pass": share or None,
        "xfail": to_builtins(prompt.known_failures) or None,
        "images": [image.path for image in prompt.images] or None,
        "images_sha256": [image.sha256 for image in prompt.images] or None,
        "messages": written_messages(prompt.messages) or None,
        "history": written_messages(prompt.history) or None,
        "turns": prompt.turns or None,
        "padding_tokens": prompt.padding_tokens or None,
        "tools": prompt.tools_spec,
        # `tools` may be only a surface's name; this hash changes with its tools.
        "tools_sha256": None if prompt.tools is None else tools_sha256(prompt.tools),
        "world": prompt.world and _world(prompt.world),
    }
    found = {name: getattr(prompt, name) for name in KEYS if name not in in_other_form} | in_other_form
    found |= {name: prompt.label(name) for name in part_keys()}
    return _hashed(found) if prompt.is_private else found


def _hashed(fields: dict[str, Any]) -> dict[str, Any]:
    """Return the fields with hashes in place of the texts that are sent, in the form of each field."""
    hashed = {**fields}
    for name in ("prompt", "system", "messages", "history", "turns", "tools"):
        if fields[name] is not None:
            text = f"sha256:{_sha256(fields[name])}"
            message = [{"role": "user", "content": text}]
            hashed[name] = {"messages": message, "history": message, "turns": [text]}.get(name, text)
    if fields["world"]:
        hashed["world"] = {"sha256": _sha256(fields["world"])}
    return hashed


def _sha256(value: Any) -> str:
    return hashlib.sha256(json.dumps(value).encode()).hexdigest()


def _world(world: World) -> JsonObject:
    """Return a world's keys; the content of a file that is not text is replaced by its hash."""
    plain: JsonObject = to_builtins(world)
    for path, text in world.files.items():
        if valid_text(text) != text:
            plain["files"][path] = f"sha256:{hashlib.sha256(file_bytes(text)).hexdigest()}"
    return plain


def tools_sha256(tools: Sequence[Tool]) -> str:
    """Return the hash by which `config.json` distinguishes the tools that a prompt offered."""
    plain = [asdict(tool) for tool in tools]
    return hashlib.sha256(json.dumps(plain, sort_keys=True).encode()).hexdigest()


def build_cells(
    prompts: Sequence[Prompt],
    targets: Sequence[Target],
    repeats: int = 1,
    *,
    repeats_of: Callable[[Prompt], int] | None = None,
    surface: Surface | None = None,
) -> tuple[Cell, ...]:
    """Return the cells of one suite's prompts, ordered by target and repeat.

    Args:
        prompts: the prompts of one suite.
        targets: the targets in order.
        repeats: the repeats of each prompt that does not set its own number.
        repeats_of: returns the repeats of such a prompt, in place of `repeats`.
        surface: the surface of targets on `openclaw`; they get only the prompts that can be asked there.
    """
    numbers = [prompt.repeat or (repeats_of(prompt) if repeats_of else repeats) for prompt in prompts]
    asked: dict[str, Sequence[Prompt | None]] = {
        LISTED: prompts,
        OPENCLAW: [
            on_surface(one, surface) if surface and not why_not_on_openclaw(one) else None for one in prompts
        ],
    }
    return tuple(
        Cell(prompt=prompt, target=target, repeat=repeat, n_repeats=prompt.repeat or repeats)
        for target in targets
        for repeat in range(1, max(numbers, default=0) + 1)
        for prompt, number in zip(asked[target.surface], numbers, strict=True)
        if repeat <= number and prompt is not None
    )


def select_prompts(prompts: Sequence[Prompt], patterns: Sequence[str]) -> tuple[Prompt, ...]:
    """Return the prompts whose id matches a pattern, an id or a glob; without patterns, every prompt."""
    if not patterns:
        return tuple(prompts)
    return tuple(prompt for prompt in prompts if any(fnmatchcase(prompt.id, pattern) for pattern in patterns))


def unmatched(patterns: Sequence[str], ids: Collection[str]) -> tuple[str, ...]:
    """Return the patterns that match no id, each once, so that a typo can be reported."""
    absent = (p for p in patterns if not any(fnmatchcase(prompt_id, p) for prompt_id in ids))
    return tuple(dict.fromkeys(absent))


T = TypeVar("T")


def shard_of(keys: Iterable[CellKey], shard: Shard) -> frozenset[CellKey]:
    """Return the cells of one shard: the same on each machine, whatever the order of `keys`.

    Shards of one selection have no cell in common, and their sizes differ by at most one. Cells are assigned
    in turn, in the order of a digest of their ids, so that each shard has some of every target and suite.
    """
    ranked = sorted(keys, key=lambda key: hashlib.sha256(_cell_id(key)).digest())
    return frozenset(ranked[shard.number - 1 :: shard.of])


def digest_of_cells(keys: Iterable[CellKey]) -> str:
    """Return the hexadecimal SHA-256 of the ids of these cells, whatever their order."""
    return hashlib.sha256(b"\n".join(sorted(map(_cell_id, keys)))).hexdigest()


def _cell_id(key: CellKey) -> bytes:
    return f"{key.suite}::{key.name}".encode()


def spread(
    cells: Mapping[T, CellKey],
    endpoints: Mapping[str, str],
    positions: Mapping[tuple[str, str], float] | None = None,
) -> list[T]:
    """Return items in the order in which their cells are sent and tested.

    Within an endpoint the targets come one after the other, so that a local model is loaded once, and within
    a target its repeats, so that an early end affects all prompts equally. The cells of different endpoints
    are mixed evenly, each endpoint's over the whole length: tests take their replies in order, so an endpoint
    whose cells all follow another's would wait for its end.

    Args:
        cells: the cell of each item.
        endpoints: by provider.
        positions: of each prompt in a repeat, by suite and id; 0 by default.
    """
    order = {target: n for n, target in enumerate(dict.fromkeys(key.target for key in cells.values()))}
    by_target = sorted(
        cells.items(),
        key=lambda pair: (
            order[pair[1].target],
            pair[1].repeat,
            positions.get((pair[1].suite, pair[1].prompt_id), 0) if positions else 0,
        ),
    )
    sizes = Counter(endpoints[key.target.provider] for key in cells.values())
    seen: Counter[str] = Counter()
    placed = []
    for item, key in by_target:
        endpoint = endpoints[key.target.provider]
        placed.append(((seen[endpoint] + 0.5) / sizes[endpoint], item))
        seen[endpoint] += 1
    # The sort is stable: of two endpoints at the same position, the one named first comes first.
    return [item for _, item in sorted(placed, key=lambda pair: pair[0])]


# An identifier in pytest's `-k` expressions.
_IDENTIFIER = re.compile(r"[\w:+\-.\[\]\\/]+")
_EDGE = "\u02d0"  # a letter there, which no user types


def keyword_token(prompt_id: str) -> str:
    """Return the private keyword of a prompt id, which is never a part of another one."""
    return f"{_EDGE}{prompt_id.lower()}{_EDGE}"


def rewrite_keyword(expression: str, ids: Collection[str]) -> str:
    """Return a `-k` expression in which tokens replace the ids of collected prompts; case does not matter."""
    tokens = {prompt_id.lower(): keyword_token(prompt_id) for prompt_id in ids}

    def replaced(found: re.Match[str]) -> str:
        word = found[0]
        return word if word in ("and", "or", "not") else tokens.get(word.lower(), word)

    return _IDENTIFIER.sub(replaced, expression)


def base_id(prompt_id: str) -> str:
    """Return the id in a benchmark's mark, without the parameters of an item."""
    return prompt_id.partition("[")[0]
