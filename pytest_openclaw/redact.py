"""Keeps secrets out of everything that is written."""

from __future__ import annotations

import json
import logging
import re
from contextlib import contextmanager
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any
from urllib.parse import quote

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

# Shorter texts are no keys: replacing "ollama" everywhere would spoil every row of a local server.
SHORTEST_SECRET = 8
HIDDEN = "[secret]"
# Where somebody shortened a text before it came here: a mark, or the text's own end.
_CUT = re.compile(r"\s?(?:…|\.\.\.)|\Z")


@dataclass(frozen=True)
class Redactor:
    """Replaces known secrets in texts; the longest first, because one may hold another.

    What a shortened text has left of a secret is replaced too, if it is `SHORTEST_SECRET` characters or more.
    """

    secrets: tuple[str, ...] = ()

    @classmethod
    def of(cls, secrets: Iterable[str]) -> Redactor:
        """Return a redactor for the secrets that are long enough to be some, in all their spellings."""
        # Twice, because a traceback may show the repr of a text that holds a repr or JSON.
        unique = {
            again
            for secret in secrets
            if len(secret) >= SHORTEST_SECRET
            for spelling in _spellings(secret)
            for again in _spellings(spelling)
        }
        return cls(tuple(sorted(unique, key=lambda secret: (-len(secret), secret))))

    def text(self, text: str) -> str:
        """Return the text without secrets."""
        for secret in self.secrets:
            text = text.replace(secret, HIDDEN)
        for secret in self.secrets:
            text = _without_start(text, secret, HIDDEN)
            if secret[-SHORTEST_SECRET:] in text:
                text = _without_start(text[::-1], secret[::-1], HIDDEN[::-1])[::-1]
        return text

    def value(self, value: Any) -> Any:
        """Return a JSON value, or tuples and mappings like one, with every text in it redacted."""
        if not self.secrets:
            return value
        if isinstance(value, str):
            return self.text(value)
        if isinstance(value, dict):
            return {self.text(key): self.value(item) for key, item in value.items()}
        if isinstance(value, (list, tuple)):
            return type(value)(self.value(item) for item in value)
        return value

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
            # Whoever came later has ours inside; taking theirs away is not our business.
            if logging.getLogRecordFactory() is make:
                logging.setLogRecordFactory(made_before)

    def _hide_in(self, record: logging.LogRecord) -> None:
        try:
            message = record.getMessage()
        except (TypeError, ValueError, KeyError):
            return  # the handler tells that message and arguments do not fit
        shown = self.text(message)
        if shown != message:
            record.msg, record.args = shown, ()
        if record.exc_info and record.exc_info[0] is not None:
            told = logging.Formatter().formatException(record.exc_info)
            if (shown := self.text(told)) != told:
                record.exc_text = shown


def _spellings(secret: str) -> Iterator[str]:
    """A secret as JSON, URLs and Python's `repr` write it; a plain key has one spelling."""
    yield secret
    yield json.dumps(secret)[1:-1]
    yield json.dumps(secret, ensure_ascii=False)[1:-1]
    yield quote(secret, safe="")
    yield repr(secret)[1:-1]
    yield repr(secret.encode("utf-8", "replace"))[2:-1]


def _without_start(text: str, secret: str, hidden: str) -> str:
    """Replace what is left of a secret where the text was cut within it."""
    start = secret[:SHORTEST_SECRET]
    pieces: list[str] = []
    position, at = 0, text.find(start)
    while at >= 0:
        end = at + SHORTEST_SECRET
        while end < len(text) and text[end] == secret[end - at : end - at + 1]:
            end += 1
        is_cut = _CUT.match(text, end)
        if is_cut:
            pieces += [text[position:at], hidden]
            position = end
        at = text.find(start, end if is_cut else at + 1)
    return "".join([*pieces, text[position:]])
