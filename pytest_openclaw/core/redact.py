"""Keeps secrets out of everything that is written.

A text is searched for keys of published formats and for pieces of known secrets: every `LONGEST_PIECE + 1` of
their characters, plain, in base64 and in hex, where the text has them and under its escapes, layer by layer.
"""

from __future__ import annotations

import base64
import logging
from contextlib import contextmanager
from dataclasses import dataclass, field
from functools import cached_property, lru_cache
from itertools import chain
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
    """Knows texts that must never be written, as a provider does."""

    @property
    def secrets(self) -> tuple[str, ...]:
        """The texts."""
        ...


@dataclass(frozen=True)
class Redactor:
    """Replaces secrets in texts.

    Attributes:
        pieces: texts of which none may be left: a secret's pieces in every spelling.
    """

    pieces: frozenset[str] = field(default=frozenset(), repr=False)

    @classmethod
    def of(cls, secrets: Iterable[str]) -> Redactor:
        """Return a redactor for the secrets that are long enough to be some."""
        return _redactor(frozenset(secret for secret in secrets if len(secret) >= SHORTEST_SECRET))

    @classmethod
    def of_run(cls, providers: Iterable[HasSecrets], environ: Mapping[str, str]) -> Redactor:
        """Return the redactor of a run: for its providers' secrets, and those of the environment."""
        secrets = {secret for provider in providers for secret in provider.secrets}
        return cls.of(secrets.union(secrets_in_environment(environ)))

    def text(self, text: str) -> str:
        """Return the text without secrets."""
        shown, end = [], 0
        found = chain(keys_in(text), self._pieces_in(text, _LAYERS) if self.pieces else ())
        for start, stop in _joined(found):
            shown += [text[end:start], HIDDEN]
            end = stop
        return "".join([*shown, text[end:]]) if shown else text

    def value(self, value: Any) -> Any:
        """Return a JSON value, or tuples and mappings like one, with every text in it redacted."""
        return map_texts(value, self.text)

    @contextmanager
    def over_logs(self) -> Iterator[None]:
        """Take secrets out of every log record that is made meanwhile.

        HTTP libraries log the headers of an answer, and a server may send back what it was sent. At the
        record's making, because a live log and a log file write it before any report exists.
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
            # A factory set after ours calls ours; it is not ours to remove.
            if logging.getLogRecordFactory() is make:
                logging.setLogRecordFactory(made_before)

    def _hide_in(self, record: logging.LogRecord) -> None:
        try:
            message = record.getMessage()
        except (TypeError, ValueError, KeyError):
            return  # the handler reports that message and arguments do not fit
        shown = self.text(message)
        if shown != message:
            record.msg, record.args = shown, ()
        if record.exc_info and record.exc_info[0] is not None:
            trace = logging.Formatter().formatException(record.exc_info)
            if (shown := self.text(trace)) != trace:
                record.exc_text = shown

    # --- how ----------------------------------------------------------------------------------

    def _pieces_in(self, text: str, layers: int) -> Iterator[Span]:
        """Yield where pieces are, also under so many layers of escapes."""
        yield from self._plain_pieces_in(text)
        for stretch in stretches(text, self._reach) if layers else ():
            if inner := list(self._pieces_in(stretch.undone(), layers - 1)):
                yield from stretch.traced(inner)

    def _plain_pieces_in(self, text: str) -> Iterator[Span]:
        """Look closely only at one of every few places: a piece holds one of them."""
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
        """What is in a piece at which offset, with the piece's length; and how far apart places may be."""
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
    """Yield all pieces of one length in all spellings; what consists of words is secret as a whole only."""
    length = len(secret) if is_words(secret) else min(LONGEST_PIECE + 1, len(secret))
    public = PUBLIC_PREFIX.match(secret)
    # Of a key that is shorter than its kind's keys are, the prefix counts.
    first = public.end() - length + 1 if public and len(secret) - public.end() >= length else 0
    for start in range(max(0, first), len(secret) - length + 1):
        piece = secret[start : start + length]
        if len(set(piece)) >= min(_FEWEST_CHARACTERS, len(set(secret))):
            yield from _spellings(piece)
    yield from _spellings(secret)  # what all such keys begin with, and dull pieces, are parts of it
    yield from _ends_in_base64(secret[-length:])


def _spellings(piece: str) -> Iterator[str]:
    """A piece as it is, as a form sends it, in hex, and in base64 at each of its three alignments."""
    data = piece.encode("utf-8", "replace")
    yield piece
    yield piece.replace(" ", "+")
    yield data.hex()
    yield data.hex().upper()
    for before in range(3):
        n_whole = (before + len(data)) * 8 // 6
        yield from _base64(data, before, n_whole)


def _ends_in_base64(piece: str) -> Iterator[str]:
    """A secret's last piece where the encoded text ends with it, with and without padding."""
    data = piece.encode("utf-8", "replace")
    for before in range(3):
        n_characters = -(-(before + len(data)) * 8 // 6)
        yield from _base64(data, before, n_characters)
        yield from _base64(data, before, None)


def _base64(data: bytes, before: int, end: int | None) -> Iterator[str]:
    """Yield the characters up to `end` that the data alone decide, after so many other bytes."""
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
