r"""Masks secrets in everything that is written.

A known secret is masked in five forms: plain, JSON-escaped (`\"`, `\/`, `\u00f6`), URL-encoded (`%2F`, `+`),
base64 and hex. So are parts of it from 8 characters on, unless they look like words: a server, a library or a
plugin may cut a text. Keys of published formats are masked even if they are not known.
"""

from __future__ import annotations

import base64
import json
import logging
import re
import tomllib
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from functools import lru_cache
from importlib import resources
from typing import Any
from urllib.parse import quote, quote_plus, unquote

from pytest_openclaw.util.text import map_texts, masking

HIDDEN = "[secret]"
# Shorter texts are not keys: replacing "ollama" everywhere would spoil every row of a local server.
_SHORTEST_SECRET = 8
_LONG_WORDS = re.compile(r"\S{8,}")
# An escape of JSON or a URL for a character that needs none, which a page would show as the character.
_ESCAPE = re.compile(r"(?:\\u00|%)((?!22|5[Cc])[2-7][0-9A-Fa-f])")


@dataclass(frozen=True)
class Redactor:
    """Replaces secrets in texts.

    Attributes:
        forms: the texts to replace, each secret in every form, the longest first.
        parts: every 8 characters of them that do not look like words and numbers.
    """

    forms: tuple[str, ...] = field(default=(), repr=False)
    parts: frozenset[str] = field(default=frozenset(), repr=False)

    @classmethod
    def of(cls, secrets: Iterable[str]) -> Redactor:
        """Return a redactor for the secrets, except secrets that are too short."""
        forms = {form for secret in secrets if len(secret) >= _SHORTEST_SECRET for form in _forms(secret)}
        # The header of a JSON Web Token is the same in all of them.
        unlike = [re.sub(r"\AeyJ[\w-]*\.", "", form) for form in forms]
        parts = {form[n : n + _SHORTEST_SECRET] for form in unlike for n in range(len(form) - 7)}
        longest_first = sorted(forms, key=lambda form: (-len(form), form))
        return cls(tuple(longest_first), frozenset(filter(_is_random, parts)))

    @classmethod
    def of_run(cls, providers: Iterable[Any], environ: Mapping[str, str]) -> Redactor:
        """Return the redactor of a run, for the `secrets` of its providers, and those of the environment."""
        secrets = {secret for provider in providers for secret in provider.secrets}
        return cls.of(secrets.union(_secrets_in(environ)))

    def text(self, text: str) -> str:
        """Return the text without secrets."""
        if len(text) < _SHORTEST_SECRET:
            return text
        shown = self._without_forms(text)
        plain = _ESCAPE.sub(lambda found: chr(int(found[1], 16)), shown)
        hidden = shown if plain == shown else self._without_forms(plain)
        return shown if hidden == plain else hidden

    def _without_forms(self, text: str) -> str:
        for form in self.forms:
            text = text.replace(form, HIDDEN)
        # Examples are not keys, such as `ghp_xxxxxxxxxxxx…` and `sk-000000000000…`.
        return _PUBLISHED.sub(
            lambda key: HIDDEN if len({*key[0]}) >= 10 else key[0], self._without_parts(text)
        )

    def _without_parts(self, text: str) -> str:
        shown, end = "", 0
        for word in _LONG_WORDS.finditer(text):
            for start in range(word.start(), word.end() - _SHORTEST_SECRET + 1):
                if text[start : start + _SHORTEST_SECRET] in self.parts:
                    if start > end or not shown:
                        shown += text[end:start] + HIDDEN
                    end = start + _SHORTEST_SECRET
        return shown + text[end:]

    def shows_key(self, text: str) -> bool:
        """Whether a text contains a key or a part of one, not only a word that serves as a key."""
        return self._without_parts(text) != text

    def value(self, value: Any) -> Any:
        """Return a JSON value, which may contain tuples, with all texts in it redacted."""
        return map_texts(value, self.text)

    @contextmanager
    def applied(self) -> Iterator[None]:
        """Remove secrets in this context from every new log record, and from texts before they are cut.

        HTTP libraries log headers, and a server may echo the request. A live log is written before reports.
        """
        made_before = logging.getLogRecordFactory()

        def make(*args: Any, **kwargs: Any) -> logging.LogRecord:
            record = made_before(*args, **kwargs)
            self._hide_in(record)
            return record

        logging.setLogRecordFactory(make)
        try:
            with masking(self.text):
                yield
        finally:
            # A factory that was set later calls ours and must not be removed.
            if logging.getLogRecordFactory() is make:
                logging.setLogRecordFactory(made_before)

    def _hide_in(self, record: logging.LogRecord) -> None:
        try:
            message = record.getMessage()
        except (TypeError, ValueError, KeyError):
            return  # the handler reports that message and arguments do not match
        if (shown := self.text(message)) != message:
            record.msg, record.args = shown, ()
        if record.exc_info and record.exc_info[0] is not None:
            trace = logging.Formatter().formatException(record.exc_info)
            if (shown := self.text(trace)) != trace:
                record.exc_text = shown


# --- the forms of a secret --------------------------------------------------------------------


# Words, numbers and the common beginnings of keys, such as `sk-ant-api03-`, have at most one such neighbor.
_NEIGHBORS = "(?:[a-z](?=[A-Z0-9])|[A-Z](?=[0-9])|[0-9](?=[A-Za-z]))"
_is_random = re.compile(f"{_NEIGHBORS}.*{_NEIGHBORS}", re.DOTALL).search


@lru_cache(maxsize=256)
def _forms(secret: str) -> frozenset[str]:
    data = secret.encode("utf-8", "replace")
    forms = {secret, data.hex(), data.hex().upper()}
    for escaped in (json.dumps(secret), json.dumps(secret, ensure_ascii=False), repr(secret)):
        forms |= {escaped[1:-1], escaped[1:-1].replace("/", r"\/")}
    for in_url in (quote(data), quote(data, safe=""), quote_plus(data)):
        forms |= {in_url, re.sub("%..", lambda found: found[0].lower(), in_url)}
    for n_before in range(3):
        # The last character may also contain bits of the text after the secret.
        first, stop = -(-n_before * 8 // 6), (n_before + len(data)) * 8 // 6
        for encode in (base64.b64encode, base64.urlsafe_b64encode):
            encoded = encode(bytes(n_before) + data).decode()[first:]
            forms |= {encoded, encoded.rstrip("="), encoded[: stop - first]}
    return frozenset(forms)


# --- keys of published formats ----------------------------------------------------------------

_KEYS: Sequence[str] = tomllib.loads(
    resources.files("pytest_openclaw.util").joinpath("secrets.toml").read_text("utf-8")
)["keys"]
# A key does not follow a letter, digit or hyphen, unless the character ends an escape.
_BEFORE = r"(?:(?<![A-Za-z0-9-])|(?<=\\[ntrbf])|(?<=%[0-9A-F]{2}))"
_PUBLISHED = re.compile(f"{_BEFORE}(?:{'|'.join(_KEYS)})", re.ASCII)


# --- secrets of the environment ---------------------------------------------------------------

# The words that Django (`hidden_settings`) and Sentry's SDK (`DEFAULT_DENYLIST`) hide, without ambiguous
# ones (`API`, `SESSION`), and with names in CI systems and databases (`PAT`, `PWD`).
_PASSWORD = re.compile(r".*(?:PASSWORD|PASSWD|PASSPHRASE|PASSCODE)S?|PASS|PWD")
_OTHERS = r".*(?:KEY|TOKEN|SECRET|CREDENTIAL|COOKIE)S?|AUTH|AUTHORIZATION|BEARER|CREDS|JWT|PAT|SALT"
_SECRET = re.compile(f"{_PASSWORD.pattern}|{_OTHERS}")
# `TOKEN_LIMIT` is a limit, `KEY_FILE` a file; a public key is not secret.
_ABOUT = re.compile(
    "COUNT|DIR|FILE|HEADER|HOST|ID|LIMIT|MAX|MIN|MODE|NAME|PATH|PORT|SIZE|TYPE|URI|URL|USER|VERSION"
)
_IN_ADDRESS = re.compile(r"://(?:[^/@:\s]*:)?([^/@:\s]+)@")
# Between the texts of a JSON object, the lines of a key in PEM.
_BETWEEN = re.compile(r'-----(?:BEGIN|END)[^-]*-----|\s*(?:["\r\n]|\\n)\s*')
_WORD = r"[0-9]{0,5}(?:[A-Z]?[a-z]{0,14}(?:[A-Z][a-z]{2,14}){0,2}|[A-Z]{1,15})[0-9]{0,5}"
_WORDS = re.compile(rf"(?:{_WORD}(?:[\s./\\_@:;#,=+~-]+|$))+")
_ORDINARY = re.compile(
    r"[-+0-9.,:_/ ]+"  # numbers, dates, addresses
    r"|(?:[A-Za-z]:|~|\.{1,2})?[/\\](?!.*(?=[A-Za-z+=]{0,19}[0-9])[A-Za-z0-9+=]{20}).*"  # paths
    r"|.*://.*|\$\{?\w+\}?|\{\{.*\}\}|<.*>",  # addresses, places to fill in
    re.DOTALL,
)


def _secrets_in(environ: Mapping[str, str]) -> Iterator[str]:
    """Yield the values, and parts of values, that are secret by name and form, unlike `KEY=true`."""
    for name, value in environ.items():
        passwords = map(unquote, _IN_ADDRESS.findall(value))
        yield from (password for password in passwords if _is_secret(password, is_password=True))
        words = name.upper().split("_")
        is_public = _ABOUT.fullmatch(words[-1]) or not {"PUBLIC", "PUBLISHABLE"}.isdisjoint(words)
        if any(map(_SECRET.fullmatch, words)) and not is_public:
            is_password = any(map(_PASSWORD.fullmatch, words))
            is_split = value.lstrip().startswith(("{", "[", "-----"))
            parts = _BETWEEN.split(value) if is_split else [value.strip()]
            yield from (part for part in parts if _is_secret(part, is_password=is_password))


def _is_secret(text: str, *, is_password: bool) -> bool:
    if len(text) < _SHORTEST_SECRET or len(set(text)) < 5 or _ORDINARY.fullmatch(text):
        return False
    if not _WORDS.fullmatch(text):
        return True
    # Plain words are secret only as a passphrase, not if they are `postgres` or `changeme`.
    return is_password and (len(text) >= 16 or any(map(str.isdigit, text)))
