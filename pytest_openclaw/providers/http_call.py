"""An HTTP request, and the rules for reading its answer.

Separate from the modules that use the HTTP library: a process that only creates providers does not load it.
"""

from __future__ import annotations

from dataclasses import dataclass, field, replace
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
        base_url: the server's address as the user knows it; shown in errors.
        body: sent as JSON by POST; None is a GET.
        headers: may contain a key.
        secrets: removed from the server's texts.
        model: for messages.
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

    def hide_in(self, error: faults.WireError) -> faults.WireError:
        """Return the error without secrets."""
        hide = self.hide
        return replace(
            error,
            code=hide(error.code),
            type=hide(error.type),
            message=hide(error.message),
            written=hide(error.written),
        )


@dataclass(frozen=True, kw_only=True)
class Dialect:
    """The rules for reading the answers of one API.

    Attributes:
        read: adds one event or a whole answer to the exchange; returns the error, if it is one.
        is_whole: whether an object is a whole answer.
        end_mark: a description of the end of a stream.
        done_ends: whether `[DONE]` is an end mark.
        by_lines: whether a stream has one JSON object per line; otherwise it has server-sent events.
    """

    read: Callable[[JsonObject, Exchange], faults.WireError | None]
    is_whole: Callable[[JsonObject], bool]
    end_mark: str
    done_ends: bool
    by_lines: bool = False
