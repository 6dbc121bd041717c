"""Removes personal and temporary data from a system prompt: names, paths, times, ids."""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from collections.abc import Mapping

_DAY = r"(?:Mon|Tue|Wed|Thu|Fri|Sat|Sun)[a-z]*,? "
_CLOCK = r"[T ]\d{1,2}:\d{2}(?::\d{2}(?:\.\d+)?)?(?: ?(?:Z|UTC|GMT|[A-Z]{3,4}\b|[+-]\d{2}:?\d{2}))?"
_PATTERNS = (
    (re.compile(r"\b[0-9a-f]{8}-(?:[0-9a-f]{4}-){3}[0-9a-f]{12}\b", re.IGNORECASE), "<id>"),
    (re.compile(rf"(?:{_DAY})?\b\d{{4}}-\d{{2}}-\d{{2}}(?:{_CLOCK})?"), "<time>"),
    (re.compile(r"(?<=Time zone: )[^\n]+"), "<zone>"),
    (re.compile(r"(?<=\bhost=)[^\s|]+"), "<host>"),
    (re.compile(r"(?<=\bos=)[^|\n]+?(?= \||\n|$)"), "<os>"),
    (re.compile(r"\b127\.0\.0\.1:\d+"), "127.0.0.1:<port>"),
    (re.compile(r"(?:/home|/Users|[A-Za-z]:\\Users)[/\\][^/\\\s\"'`<>:]+"), "<home>"),
    (re.compile(r"\b[\w.+-]+@[\w-]+\.[\w.-]+\w"), "<address>"),
)
_DOCS = re.compile(r"^Docs: (.+?)[/\\]docs$", re.MULTILINE)
# Ordinary words of any prompt, which identify no user.
_COMMON = frozenset({"root", "user", "admin", "agent", "host", "system", "localhost", "openclaw", "runner"})


@dataclass(frozen=True, kw_only=True)
class Masks:
    """The known personal data.

    Attributes:
        paths: a path → its placeholder, such as `<workspace>`.
        host: the machine's name, with or without its domain.
        user: the user's name.
        model: the model's name in OpenClaw, `provider/model`, which is another one in each later request.
        secrets: texts that must be removed.
    """

    paths: Mapping[str, str]
    host: str = ""
    user: str = ""
    model: str = ""
    secrets: tuple[str, ...] = ()

    def text(self, text: str) -> str:
        """Return a text with placeholders for all of it."""
        for secret in self.secrets:
            text = text.replace(secret, "<key>") if secret else text
        if package := _DOCS.search(text):
            text = text.replace(package[1], "<openclaw>")
        # A folder is replaced before its parent.
        for path in sorted(filter(None, self.paths), key=len, reverse=True):
            text = re.sub(rf"{re.escape(path)}(?![\w-]|\.\w)", self.paths[path].replace("\\", r"\\"), text)
        for pattern, placeholder in _PATTERNS:
            text = pattern.sub(placeholder, text)
        for name, placeholder in ((self.host, "<host>"), (self.host.partition(".")[0], "<host>")):
            text = _without_name(text, name, placeholder)
        return _without_name(_without_name(text, self.user, "<user>"), self.model, "<model>")

    def value(self, value: Any) -> Any:
        """Return a JSON value with all texts masked, except keys."""
        if isinstance(value, str):
            return self.text(value)
        if isinstance(value, dict):
            return {key: self.value(part) for key, part in value.items()}
        return [self.value(part) for part in value] if isinstance(value, list) else value


def _without_name(text: str, name: str, placeholder: str) -> str:
    if len(name) < 2 or name.casefold() in _COMMON:
        return text
    return re.sub(rf"(?<![\w<]){re.escape(name)}(?![\w>])", placeholder, text)
