"""Parses target specs and endpoints.

A spec is `[provider/]model[@thinking][+surface]`. An endpoint is an ini line
`name = kind base_url [KEY_ENV_NAME]`; errors never quote a possible secret.
"""

from __future__ import annotations

import re
from collections import Counter
from dataclasses import replace
from fnmatch import fnmatchcase
from typing import TYPE_CHECKING, TypeVar
from urllib.parse import urlsplit

from pytest_openclaw.suites.wording import closest, is_plain
from pytest_openclaw.util.errors import TargetError
from pytest_openclaw.util.text import inert
from pytest_openclaw.util.typed import shown
from pytest_openclaw.values.requests import (
    LISTED,
    SURFACES,
    THINKING_LEVELS,
    SurfaceName,
    Target,
    ThinkingLevel,
)
from pytest_openclaw.values.settings import DEFAULT_PROVIDER, Endpoint

if TYPE_CHECKING:
    from collections.abc import Collection, Iterable, Sequence


T = TypeVar("T")
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
            wanted = default_levels if level is None else [level]
            targets += [
                Target(provider=p, model=model, thinking_level=w, surface=s)
                for p in chosen
                for w in wanted
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
        raise TargetError(
            f"{name}: its kind is unknown; known kinds: {', '.join(sorted(kinds))}.{closest(kind, kinds)}"
        )
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
