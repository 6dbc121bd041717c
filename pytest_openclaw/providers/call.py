"""What is asked over HTTP, and how the answer is read.

Apart from those who do it, so that a process that makes providers for others to ask loads no HTTP library.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from pytest_openclaw.core.redact import Redactor

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

    from pytest_openclaw.core.json_types import JsonObject
    from pytest_openclaw.providers.exchange import Exchange
    from pytest_openclaw.types import faults


@dataclass(frozen=True, kw_only=True)
class Call:
    """One HTTP request, ready to be sent.

    Attributes:
        base_url: how the user knows the server; shown in errors.
        body: sent as JSON by POST; None is a GET.
        headers: they may hold a key.
        secrets: taken out of what the server says.
        model: for the wording of errors.
    """

    base_url: str
    url: str
    body: JsonObject | None
    headers: Mapping[str, str] = field(repr=False)
    secrets: tuple[str, ...] = field(default=(), repr=False)
    model: str = ""

    def hide(self, text: str) -> str:
        """Return the text without secrets."""
        return Redactor.of(self.secrets).text(text)


@dataclass(frozen=True, kw_only=True)
class Dialect:
    """How one API's answers are read.

    Attributes:
        read: takes one event or a whole answer into the exchange; gives the error that it is, if it is one.
        is_whole: whether an object is a whole answer.
        end_mark: what a stream ends with, in words.
        done_ends: whether `[DONE]` is an end mark.
        by_lines: whether a stream is a JSON object a line; else it is one of server-sent events.
    """

    read: Callable[[JsonObject, Exchange], faults.WireError | None]
    is_whole: Callable[[JsonObject], bool]
    end_mark: str
    done_ends: bool
    by_lines: bool = False
