"""Compares the arguments of a call with those that a suite wants: values, alternatives, optional ones."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass, field
from posixpath import normpath
from typing import Any

from pytest_openclaw.core.json_text import same
from pytest_openclaw.core.quoting import shortened, shown
from pytest_openclaw.validators.answer import BLANKS
from pytest_openclaw.validators.keys import flag_value, list_value, table_value
from pytest_openclaw.validators.text import plain

_ANY_OF, _OPTIONAL = "any_of", "optional"
_PATHS = ("path", "workdir")


@dataclass(frozen=True, kw_only=True)
class AnyValue:
    """`{ any_of = [...] }`: any of these values is right; if it is optional, none has to be there."""

    values: tuple[Any, ...]
    optional: bool = False


@dataclass(frozen=True, kw_only=True)
class WantedArguments:
    """The arguments that a call must have; others are free.

    Attributes:
        values: by name; each of them, and each in their lists and objects, may be an `AnyValue`. An object
            has the wanted keys and no others.
        ignore_case: upper and lower case are equal, in all texts.
        ignore_punctuation: only letters and digits count, in all texts that have any.
    """

    values: Mapping[str, Any] = field(default_factory=dict)
    ignore_case: bool = False
    ignore_punctuation: bool = False

    def complaint(self, given: Mapping[str, Any]) -> str | None:
        """Return what is wrong with the arguments of a call, such as `no city`; None if nothing is."""
        for name, value in self.values.items():
            if name in given:
                if not self._fits(given[name], value, name):
                    return f"{name} {_short(given[name])}, not {_wanted(value)}"
            elif not _is_optional(value):
                return f"no {name}, which should be {_wanted(value)}"
        return None

    def described(self) -> list[str]:
        """Return a description of each argument, for messages."""
        return [f"{name} {_wanted(value)}" for name, value in self.values.items()]

    def _fits(self, given: Any, wanted: Any, name: str | None = None) -> bool:
        """Whether a value fits; `name` is that of the argument if the value is all of it."""
        if isinstance(wanted, AnyValue):
            return any(self._fits(given, one, name) for one in wanted.values)
        if isinstance(wanted, Mapping):
            return isinstance(given, Mapping) and self._fits_object(given, wanted)
        if isinstance(wanted, list):
            is_as_long = isinstance(given, list) and len(given) == len(wanted)
            return is_as_long and all(map(self._fits, given, wanted))
        if not (isinstance(given, str) and isinstance(wanted, str)):
            return same(given, wanted)
        if name is not None:
            given, wanted = given.strip(BLANKS), wanted.strip(BLANKS)
        if name in _PATHS:  # ./notes/ is notes
            given, wanted = normpath(given), normpath(wanted)
        return self._alike(given, wanted)

    def _fits_object(self, given: Mapping[str, Any], wanted: Mapping[str, Any]) -> bool:
        return given.keys() <= wanted.keys() and all(
            self._fits(given[name], one) if name in given else _is_optional(one)
            for name, one in wanted.items()
        )

    def _alike(self, given: str, wanted: str) -> bool:
        if self.ignore_punctuation and (bare := _bare(wanted)):
            given, wanted = _bare(given), bare
        return given == wanted or (self.ignore_case and given.casefold() == wanted.casefold())


def read_arguments(owner: str, entry: Mapping[str, Any]) -> WantedArguments:
    """Return the arguments that an entry of a suite wants.

    Args:
        owner: the validator, for messages.
        entry: has `arguments`, `ignore_case` and `ignore_punctuation`, if they are set.

    Raises:
        ValueError: a key is malformed; the message names validator and key, with a hint.
    """
    values = table_value(owner, "arguments", entry.get("arguments", {}))
    return WantedArguments(
        values={name: _read(owner, f"arguments.{name}", one) for name, one in values.items()},
        ignore_case=flag_value(owner, "ignore_case", entry.get("ignore_case", False)),
        ignore_punctuation=flag_value(owner, "ignore_punctuation", entry.get("ignore_punctuation", False)),
    )


def _read(owner: str, place: str, value: Any) -> Any:
    if isinstance(value, Mapping) and _ANY_OF in value:
        return _read_any(owner, place, value)
    if isinstance(value, Mapping):
        return {name: _read(owner, f"{place}.{name}", one) for name, one in value.items()}
    if isinstance(value, list | tuple):
        return [_read_item(owner, f"{place}[{number}]", one) for number, one in enumerate(value)]
    return value


def _read_any(owner: str, place: str, value: Mapping[str, Any]) -> AnyValue:
    where = f'validator {owner}: "{place}"'
    if others := [key for key in value if key not in (_ANY_OF, _OPTIONAL)]:
        raise ValueError(
            f'{where} has {shown(str(others[0]))} beside "{_ANY_OF}", where only "{_OPTIONAL}" can be.'
            f' Write an object that itself has a key "{_ANY_OF}" into "matching".'
        )
    listed = list_value(owner, f"{place}.{_ANY_OF}", value[_ANY_OF])
    if not listed:
        raise ValueError(f'{where} has an empty "{_ANY_OF}". List the values of which any is right.')
    values = [_read_item(owner, f"{place}.{_ANY_OF}[{number}]", one) for number, one in enumerate(listed)]
    optional = flag_value(owner, f"{place}.{_OPTIONAL}", value.get(_OPTIONAL, False))
    return AnyValue(values=tuple(values), optional=optional)


def _read_item(owner: str, place: str, value: Any) -> Any:
    item = _read(owner, place, value)
    if _is_optional(item):
        raise ValueError(
            f'validator {owner}: "{place}" is optional, which only an argument or a key of an object can be.'
            " Write a second list without this item beside the first one."
        )
    return item


def _bare(text: str) -> str:
    """Return the letters and digits; unlike in an answer no blanks, as `Berkeley,CA` is `Berkeley, CA`."""
    return plain(text, case=False, punctuation=True).replace(" ", "")


def _is_optional(wanted: Any) -> bool:
    return isinstance(wanted, AnyValue) and wanted.optional


def _wanted(value: Any) -> str:
    """Return what is wanted, for a message."""
    if not isinstance(value, AnyValue):
        return _short(value)
    if len(value.values) == 1:
        return _wanted(value.values[0])
    return f"any of {', '.join(map(_wanted, value.values))}"


def _short(value: Any) -> str:
    return shortened(json.dumps(value, ensure_ascii=False, default=_as_written))


def _as_written(value: AnyValue) -> dict[str, Any]:
    return {_ANY_OF: value.values} | ({_OPTIONAL: True} if value.optional else {})
