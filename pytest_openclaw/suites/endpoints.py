"""Parses ini lines `name = kind base_url [KEY_ENV_NAME]`; errors never quote a possible secret."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING
from urllib.parse import urlsplit

from pytest_openclaw.core.errors import TargetError
from pytest_openclaw.suites.wording import closest, is_plain, shown
from pytest_openclaw.types.settings import Endpoint

if TYPE_CHECKING:
    from collections.abc import Collection

_LONGEST_NAME = 40
_NAME = re.compile(rf"[A-Za-z][A-Za-z0-9_.-]{{0,{_LONGEST_NAME - 1}}}\Z")
_VARIABLE = re.compile(r"[A-Z_][A-Z0-9_]*\Z")
_FORM = "Write name = kind base_url KEY_ENV_NAME, the last only if it needs a key."


def parse_endpoint(line: str, *, kinds: Collection[str]) -> Endpoint:
    """Return the server that a line of `openclaw_endpoints` describes.

    Args:
        line: `name = kind base_url KEY_ENV_NAME`; the key's variable is optional.
        kinds: the providers whose API an endpoint can have.

    Raises:
        TargetError: the line is malformed. The message has the endpoint's name and a hint, but neither an
            address, which may contain a password, nor a possible key.
    """
    name, equals, rest = (part.strip() for part in line.partition("="))
    if not equals or not _NAME.match(name) or _looks_like_key(name):
        raise TargetError(_unnamed(name if equals else ""))
    words = rest.split()
    if not 2 <= len(words) <= 3:
        raise TargetError(f"{name}: has {len(words)} words after the =, not two or three. {_FORM}")
    kind, base_url, *key = words
    _check_kind(name, kind, kinds)
    _check_url(name, base_url)
    for variable in key:
        _check_variable(name, variable)
    return Endpoint(name=name, kind=kind, base_url=base_url, key_env=key[0] if key else None)


def _unnamed(name: str) -> str:
    is_safe = name and len(name) <= _LONGEST_NAME and not _looks_like_key(name)
    what = f"{shown(name)} is no name for an endpoint" if is_safe else "a line has no name before an ="
    rule = f"A name has up to {_LONGEST_NAME} letters, digits, _ . or -, and starts with a letter."
    return f"{what}. {_FORM} {rule}"


def _check_kind(name: str, kind: str, kinds: Collection[str]) -> None:
    if kind in kinds:
        return
    is_safe = _NAME.match(kind) and not _looks_like_key(kind)
    what = f"kind {shown(kind)}" if is_safe else "such kind"
    there_are = ", ".join(sorted(kinds))
    raise TargetError(f"{name}: there is no {what}; there are: {there_are}.{closest(kind, kinds)}")


def _check_url(name: str, base_url: str) -> None:
    hint = "Write for example http://127.0.0.1:8000/v1."
    try:
        parts = urlsplit(base_url)
        usable = parts.scheme in ("http", "https") and bool(parts.hostname) and parts.port != 0
    except ValueError:  # an invalid port or IPv6 address
        usable = False
    if not usable or not is_plain(base_url):
        raise TargetError(f"{name}: its address is no http:// or https:// URL. {hint}")
    if "?" in base_url or "#" in base_url:
        raise TargetError(f"{name}: its address goes on after the path, with ? or #. {hint}")


def _check_variable(name: str, variable: str) -> None:
    if not _VARIABLE.match(variable) or _looks_like_key(variable):
        raise TargetError(
            f"{name}: its last word is not the name of an environment variable in capitals; it may be a key. "
            f"Put the key into a variable and write the variable's name, for example {_suggested(name)}."
        )


def _suggested(name: str) -> str:
    return re.sub(r"[^A-Z0-9]", "_", name.upper()) + "_API_KEY"


def _looks_like_key(word: str) -> bool:
    """Whether a word is long and random, as keys are, or starts as the common ones do."""
    if re.match(r"(sk|pk|hf|gsk|xai|ghp|glpat)[-_]", word):
        return True
    return len(word) >= 16 and "_" not in word and any(character.isdigit() for character in word)
