"""Finds the environment's secrets, which a CLI or a server may repeat, by name and form.

The words of names are those that Django (`SafeExceptionReporterFilter.hidden_settings`) and Sentry's SDK
(`sentry_sdk.scrubber.DEFAULT_DENYLIST`) hide, without those that mean other things in an environment (`API`,
`SESSION`), and with names in CI systems and databases (`PAT`, `PWD`).
A name alone is not enough: `KEY=true`, `TOKEN_LIMIT=4096`, `CACHE_KEY=node-modules-v3` are ordinary texts,
and replacing these everywhere would spoil every row.
"""

from __future__ import annotations

import re
from typing import TYPE_CHECKING
from urllib.parse import unquote

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

# Shorter texts are not keys: replacing "ollama" everywhere would spoil every row of a local server.
SHORTEST_SECRET = 8
# Words from here on are long enough to be a passphrase rather than `postgres` or `changeme`.
_SHORTEST_PASSPHRASE = 16
_FEWEST_CHARACTERS = 5

_PASSWORD = re.compile(r".*(?:PASSWORD|PASSWD|PASSPHRASE|PASSCODE)S?|PASS|PWD")
_SECRET = re.compile(
    rf"{_PASSWORD.pattern}|.*(?:KEY|TOKEN|SECRET|CREDENTIAL|COOKIE)S?|AUTH|AUTHORIZATION|BEARER|CREDS|JWT|PAT|SALT"
)
# `TOKEN_LIMIT` is a limit, `KEY_FILE` a file; a public key is not secret.
_ABOUT = re.compile(
    "ALG(?:ORITHM)?|AUDIENCE|BACKEND|BITS|COUNT|DIR|ENABLED|EXPIRY|FILE|FORMAT|HEADER|HELPER|HOST|ID|ISSUER|LENGTH|"
    "LIMIT|MAX|METHOD|MIN|MODE|NAME|PATH|PORT|PREFIX|PROVIDER|REGION|SCOPE|SERVICE|SIZE|SOCK|SOCKET|STORE|TIMEOUT|"
    "TTL|TYPE|URI|URL|USER|USERNAME|VERSION"
)
_PUBLIC = frozenset({"PUBLIC", "PUBLISHABLE"})

_IN_ADDRESS = re.compile(r"://(?:[^/@:\s]*:)?([^/@:\s]+)@")
_TEXT_IN_JSON = re.compile(r'"((?:\\.|[^"\\])*)"')
# A key in PEM has public first and last lines; a line break may be written as `\n`.
_BETWEEN = re.compile(r"-----(?:BEGIN|END)[^-]*-----|\s*(?:[\r\n]|\\n)\s*")

_WORD = r"[0-9]{0,5}(?:[A-Z]?[a-z]{0,14}(?:[A-Z][a-z]{2,14}){0,2}|[A-Z]{1,15})[0-9]{0,5}"
_WORDS = re.compile(rf"(?:{_WORD}(?:[\s./\\_@:;#,=+~-]+|$))+")
_NO_SECRET = re.compile(
    r"[-+0-9.,:_/ ]+"  # numbers, dates, addresses
    # Paths, unless one could be a key with that beginning.
    r"|(?:[A-Za-z]:|~|\.{1,2})?[/\\](?!.*(?=[A-Za-z+=]{0,19}[0-9])[A-Za-z0-9+=]{20}).*"
    r"|.*://.*"  # secrets in addresses are found separately
    r"|\$\{?\w+\}?|\{\{.*\}\}|<.*>",  # places to fill in
    re.DOTALL,
)


def secrets_in_environment(environ: Mapping[str, str]) -> Iterator[str]:
    """Yield the values, and parts of values, that are secret."""
    for name, value in environ.items():
        for password in _IN_ADDRESS.findall(value):
            if _is_secret(unquote(password), is_password=True):
                yield unquote(password)
        words = name.upper().split("_")
        if _names_secret(words):
            is_password = any(map(_PASSWORD.fullmatch, words))
            yield from (part for part in _parts(value.strip()) if _is_secret(part, is_password=is_password))


def is_words(text: str) -> bool:
    """Whether a text consists of words and small numbers, as names, paths and passphrases do."""
    return _WORDS.fullmatch(text) is not None


def _names_secret(words: list[str]) -> bool:
    if _ABOUT.fullmatch(words[-1]) or not _PUBLIC.isdisjoint(words):
        return False
    return any(map(_SECRET.fullmatch, words))


def _parts(value: str) -> Iterator[str]:
    texts = _TEXT_IN_JSON.findall(value) if value.startswith(("{", "[")) else (value,)
    for text in texts:
        yield from _BETWEEN.split(text)


def _is_secret(text: str, *, is_password: bool) -> bool:
    if len(text) < SHORTEST_SECRET or len(set(text)) < _FEWEST_CHARACTERS or _NO_SECRET.fullmatch(text):
        return False
    if is_words(text):
        has_digit = any(map(str.isdigit, text))
        return is_password and (has_digit or len(text) >= _SHORTEST_PASSPHRASE)
    return True
