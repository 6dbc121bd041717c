"""The built-in validators, and the construction of validators from the objects in a suite."""

from __future__ import annotations

import dataclasses
import re
from collections.abc import Callable, Iterator, Mapping
from typing import Any, cast, get_args, get_origin, get_type_hints

from pytest_openclaw.judging.calls import CallRule, ToolCalling, demands_of
from pytest_openclaw.judging.combine import AllOf, AnyOf, Not, ReportsFailure, ToolInvocation
from pytest_openclaw.judging.text import (
    Contains,
    Exact,
    ExactBullets,
    JsonEquals,
    JsonKeys,
    JsonSchema,
    MaxSentences,
    MaxWords,
    Noop,
    OneOf,
    OpenclawAck,
    OpenclawDecision,
    OpenclawText,
    RegexFullmatch,
)
from pytest_openclaw.judging.world import WorldReached
from pytest_openclaw.util.text import closest
from pytest_openclaw.util.typed import Count, converted, prefixed, shown
from pytest_openclaw.values.protocols import Validator

Registry = Mapping[str, "type[Validator]"]
"""The validators that a suite can use, by `type`."""


def build_validator(spec: object, registry: Registry) -> Validator:
    """Make the validator that a suite describes; nothing at all, or an empty object, is `noop`.

    The annotation of a field says which values it takes. A class may name fields in `nested:
    ClassVar[tuple[str, ...]]`; these hold a validator, or a list of validators, and are built here too.
    Unknown keys are ignored, unless they look like a typo.

    Raises:
        ValueError: the description is malformed; the message says where and what to write.
    """
    if spec is None or spec in ("", [], {}):
        return Noop()
    if not isinstance(spec, Mapping):
        raise ValueError(f'the validator is {shown(spec)}. Write an object, for example {{"type": "noop"}}.')
    cls = _class_of(spec, registry)
    fields = [field for field in dataclasses.fields(cast("Any", cls)) if field.init]
    _check_keys(cls, spec, fields)
    try:
        kinds = get_type_hints(cls, include_extras=True)
    except NameError:  # a plugin's annotations that only type checkers know
        kinds = {}
    values = {}
    for field in fields:
        name, kind = field.name, kinds.get(field.name, Any)
        if name not in spec:
            continue
        is_nested = name in getattr(cls, "nested", ())
        if is_nested and kind is Any:
            kind = dict[str, Any] | list[Any]
        elif is_nested:
            kind = dict[str, Any] if kind in (Validator, Validator | None) else list[Any]
        value = _read_key(cls.type, name, spec[name], kind, field.metadata.get("hint", ""))
        values[name] = _build_nested(f"{cls.type}.{name}", value, registry) if is_nested else value
    with prefixed(f"validator {cls.type}:"):
        return cast("Callable[..., Validator]", cls)(**values)


def _read_key(owner: str, key: str, value: object, kind: Any, example: str = "") -> Any:
    """Return the value of a key, converted to a type.

    Raises:
        ValueError: the value does not fit; the message names validator, key and value, and has a hint.
    """
    if get_origin(kind) is Mapping and isinstance(value, Mapping):
        inner = get_args(kind)[1]
        return {name: _read_key(owner, f"{key}.{name}", one, inner, example) for name, one in value.items()}
    try:
        # The original harness calls `int(value)` on its limits.
        if kind == Count and isinstance(value, str) and re.fullmatch("[0-9]{1,16}", value):
            value = int(value)
        return converted(value, kind, key)
    except ValueError as error:
        text = str(error)
        text = text if text.endswith(".") else f"{text}. {example}".rstrip()
        raise ValueError(f"validator {owner}: {text}") from None


def _class_of(spec: Mapping[str, Any], registry: Registry) -> type[Validator]:
    known = f"Known types: {', '.join(sorted(registry))}."
    if "type" not in spec:
        raise ValueError(f'the validator has no "type". {known}')
    name = spec["type"]
    if not isinstance(name, str):
        raise ValueError(f'the validator\'s "type" is {shown(name)}. {known}')
    if name not in registry:
        hint = closest(name.lower(), registry)
        raise ValueError(f"there is no validator type {shown(name)}.{hint} {known}")
    return registry[name]


def _check_keys(cls: type[Validator], spec: Mapping[str, Any], fields: list[dataclasses.Field[Any]]) -> None:
    known = ["type", *(field.name for field in fields)]
    for key in spec:
        if key not in known and (hint := closest(key.lower(), known, cutoff=0.8)):
            raise ValueError(f"validator {cls.type} has {shown(key)}.{hint}")
    for field in fields:
        is_required = field.default is field.default_factory is dataclasses.MISSING
        if is_required and field.name not in spec:
            hint = field.metadata.get("hint", "Add it.")
            raise ValueError(f'validator {cls.type} has no "{field.name}". {hint}')


def _build_nested(where: str, value: object, registry: Registry) -> object:
    parts = value if isinstance(value, list) else [value]
    built = []
    for n, part in enumerate(parts):
        with prefixed(f"{where}[{n}]:" if isinstance(value, list) else f"{where}:"):
            built.append(build_validator(part, registry))
    return tuple(built) if isinstance(value, list) else built[0]


def call_rules_in(validator: Validator) -> Iterator[Validator]:
    """Yield the validators of native calls among a validator and the parts of a built-in one."""
    is_own = type(validator) in BUILTIN
    if isinstance(validator, CallRule) or (demands_of(validator).is_native and not is_own):
        yield validator
    for name in getattr(validator, "nested", ()) if is_own else ():
        nested = getattr(validator, name)
        for part in nested if isinstance(nested, tuple) else [nested] if nested else []:
            yield from call_rules_in(part)


BUILTIN: tuple[type[Validator], ...] = (
    Noop,
    Exact,
    OneOf,
    RegexFullmatch,
    MaxWords,
    MaxSentences,
    ExactBullets,
    JsonKeys,
    ToolInvocation,
    Contains,
    JsonEquals,
    JsonSchema,
    AllOf,
    AnyOf,
    Not,
    OpenclawAck,
    OpenclawText,
    OpenclawDecision,
    ReportsFailure,
    ToolCalling,
    WorldReached,
)
