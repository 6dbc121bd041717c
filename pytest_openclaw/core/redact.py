"""Removes secrets from everything that is written.

A text is searched for keys of published formats and for pieces of known secrets: every `LONGEST_PIECE + 1` of
their characters, plain, in base64 and in hex, in the text itself and under its escapes, layer by layer.
"""

from __future__ import annotations

import base64
import logging
from contextlib import contextmanager
from dataclasses import dataclass, field
from functools import cached_property, lru_cache
from typing import TYPE_CHECKING, Any, Protocol

from pytest_openclaw.core.escapes import Span, stretches
from pytest_openclaw.core.key_formats import PUBLIC_PREFIX, keys_in
from pytest_openclaw.core.secret_env import SHORTEST_SECRET, is_words, secrets_in_environment
from pytest_openclaw.core.text import map_texts

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Mapping

HIDDEN = "[secret]"
# Consecutive characters of a secret that may be shown; one more is replaced.
LONGEST_PIECE = 11
# JSON in JSON in the `repr` of a traceback.
_LAYERS = 3
_FEWEST_CHARACTERS = 5
_SEED = 4
_LONGEST_ESCAPE = 33


class HasSecrets(Protocol):
    """Has texts that must never be written, such as a provider."""

    @property
    def secrets(self) -> tuple[str, ...]:
        """The texts."""
        ...


@dataclass(frozen=True)
class Redactor:
    """Replaces secrets in texts.

    Attributes:
        pieces: texts to replace: a secret's pieces in every encoding.
    """

    pieces: frozenset[str] = field(default=frozenset(), repr=False)

    @classmethod
    def of(cls, secrets: Iterable[str]) -> Redactor:
        """Return a redactor for the secrets, without those that are too short."""
        return _redactor(frozenset(secret for secret in secrets if len(secret) >= SHORTEST_SECRET))

    @classmethod
    def of_run(cls, providers: Iterable[HasSecrets], environ: Mapping[str, str]) -> Redactor:
        """Return the redactor of a run: for its providers' secrets, and those of the environment."""
        secrets = {secret for provider in providers for secret in provider.secrets}
        return cls.of(secrets.union(secrets_in_environment(environ)))

    def text(self, text: str) -> str:
        """Return the text without secrets."""
        if len(text) < SHORTEST_SECRET:
            return text
        found = [*keys_in(text), *(self._pieces_in(text, _LAYERS) if self.pieces else ())]
        if not found:
            return text
        shown, end = [], 0
        for start, stop in _joined(found):
            shown += [text[end:start], HIDDEN]
            end = stop
        return "".join([*shown, text[end:]])

    def value(self, value: Any) -> Any:
        """Return a JSON value, or tuples and mappings like one, with every text in it redacted."""
        return map_texts(value, self.text)

    @contextmanager
    def over_logs(self) -> Iterator[None]:
        """Remove secrets from every log record that is created meanwhile.

        HTTP libraries log the headers of an answer, and a server may echo the request. This is done when the
        record is created, because a live log and a log file write it before any report exists.
        """
        made_before = logging.getLogRecordFactory()

        def make(*args: Any, **kwargs: Any) -> logging.LogRecord:
            record = made_before(*args, **kwargs)
            self._hide_in(record)
            return record

        logging.setLogRecordFactory(make)
        try:
            yield
        finally:
            # A factory that was set after ours calls ours and must not be removed.
            if logging.getLogRecordFactory() is make:
                logging.setLogRecordFactory(made_before)

    def _hide_in(self, record: logging.LogRecord) -> None:
        try:
            message = record.getMessage()
        except (TypeError, ValueError, KeyError):
            return  # the handler reports that message and arguments do not match
        shown = self.text(message)
        if shown != message:
            record.msg, record.args = shown, ()
        if record.exc_info and record.exc_info[0] is not None:
            trace = logging.Formatter().formatException(record.exc_info)
            if (shown := self.text(trace)) != trace:
                record.exc_text = shown

    # --- how ----------------------------------------------------------------------------------

    def _pieces_in(self, text: str, layers: int) -> Iterator[Span]:
        """Yield the spans of pieces, also under this many layers of escapes."""
        yield from self._plain_pieces_in(text)
        for stretch in stretches(text, self._reach) if layers else ():
            if inner := list(self._pieces_in(stretch.undone(), layers - 1)):
                yield from stretch.traced(inner)

    def _plain_pieces_in(self, text: str) -> Iterator[Span]:
        """Check only one of every few positions: each piece contains one of them."""
        seeds, stride = self._seeds
        for place in [at for at in range(0, len(text), stride) if text[at : at + _SEED] in seeds]:
            for offset, length in seeds[text[place : place + _SEED]]:
                start = place - offset
                if start >= 0 and (piece := text[start : start + length]) in self.pieces:
                    yield start, start + len(piece)

    @cached_property
    def _reach(self) -> int:
        return max(map(len, self.pieces)) + _LONGEST_ESCAPE

    @cached_property
    def _seeds(self) -> tuple[dict[str, set[tuple[int, int]]], int]:
        """Return the texts at offsets of pieces, with the pieces' lengths, and the step between positions."""
        stride = min(map(len, self.pieces)) - _SEED + 1
        seeds: dict[str, set[tuple[int, int]]] = {}
        for piece in self.pieces:
            for offset in range(stride):
                seeds.setdefault(piece[offset : offset + _SEED], set()).add((offset, len(piece)))
        return seeds, stride


@lru_cache(maxsize=64)
def _redactor(secrets: frozenset[str]) -> Redactor:
    return Redactor(frozenset(spelling for secret in secrets for spelling in _pieces_of(secret)))


def _pieces_of(secret: str) -> Iterator[str]:
    """Yield all pieces of one length in all encodings; a secret of plain words is one piece."""
    length = len(secret) if is_words(secret) else min(LONGEST_PIECE + 1, len(secret))
    public = PUBLIC_PREFIX.match(secret)
    # In a key that is shorter than usual for its kind, the prefix counts.
    first = public.end() - length + 1 if public and len(secret) - public.end() >= length else 0
    for start in range(max(0, first), len(secret) - length + 1):
        piece = secret[start : start + length]
        if len(set(piece)) >= min(_FEWEST_CHARACTERS, len(set(secret))):
            yield from _spellings(piece)
    yield from _spellings(secret)  # common prefixes and pieces of ordinary text are parts of it
    yield from _ends_in_base64(secret[-length:])


def _spellings(piece: str) -> Iterator[str]:
    """Yield a piece plain, as in a form, in hex, and in base64 at each of its three alignments."""
    data = piece.encode("utf-8", "replace")
    yield piece
    yield piece.replace(" ", "+")
    yield data.hex()
    yield data.hex().upper()
    for before in range(3):
        n_whole = (before + len(data)) * 8 // 6
        yield from _base64(data, before, n_whole)


def _ends_in_base64(piece: str) -> Iterator[str]:
    """Yield a secret's last piece at the end of the encoded text, with and without padding."""
    data = piece.encode("utf-8", "replace")
    for before in range(3):
        n_characters = -(-(before + len(data)) * 8 // 6)
        yield from _base64(data, before, n_characters)
        yield from _base64(data, before, None)


def _base64(data: bytes, before: int, end: int | None) -> Iterator[str]:
    """Yield the characters up to `end` that depend only on the data, after this many other bytes."""
    first = -(-before * 8 // 6)
    written = base64.b64encode(bytes(before) + data).decode()[first:end]
    yield written
    yield written.translate(_URL_SAFE)


_URL_SAFE = str.maketrans("+/", "-_")


def _joined(spans: Iterable[Span]) -> list[Span]:
    """Join spans that overlap; those that only touch are two secrets."""
    joined: list[Span] = []
    for start, stop in sorted(spans):
        if joined and start < joined[-1][1]:
            joined[-1] = (joined[-1][0], max(joined[-1][1], stop))
        else:
            joined.append((start, stop))
    return joined
