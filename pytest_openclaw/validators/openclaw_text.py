"""What does OpenClaw show of a short text that it asked for: a title, a recap, a status line?"""

from __future__ import annotations

import re
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, ClassVar

from pytest_openclaw.core.quoting import listed, shown
from pytest_openclaw.validators.answer import answer, judged, kept
from pytest_openclaw.validators.keys import hint, list_value, settle, text_value, texts_value

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

    from pytest_openclaw.types.replies import Reply, Verdict


def _title(text: str) -> str:
    """Return the first line that is no fence, without `Title:` and quotes around it."""
    lines = (line.strip() for line in text.replace("\r", "").split("\n"))
    first = next((line for line in lines if line and not line.startswith("```")), "")
    return _one_line(re.sub(r"\A(?:title\s*:\s*)?", "", first, count=1, flags=re.IGNORECASE).strip("\"'`"))


def _status(text: str) -> str:
    """Return the text on one line, without quotes around it."""
    return _one_line(text).strip("\"'`“”").strip()


def _one_line(text: str) -> str:
    return " ".join(text.split())


FORMS: Mapping[str, tuple[int, Callable[[str], str]]] = {
    "title": (60, _title),
    "recap": (450, _one_line),
    "status": (280, _status),
}
"""By form, the characters (UTF-16) at which OpenClaw 2026.9.6 cuts, and what it takes for the text."""


@dataclass(frozen=True, kw_only=True)
class OpenclawText:
    """What OpenClaw shows of a title, a recap or a status line is whole, and about the right thing.

    `form` is `title`, `recap` or `status`. A title is the first line that is no fence, without `Title:` and
    quotes. OpenClaw cuts a reply with a title off after 60 characters, a recap after 450 and a status line
    after 280. Of each list of `about` the text has one of the words, in any case, and none of `never`.
    """

    type: ClassVar[str] = "openclaw_text"
    form: str = field(metadata=hint('Write "title", "recap" or "status".'))
    about: tuple[tuple[str, ...], ...] = ()
    never: tuple[str, ...] = ()

    def __post_init__(self) -> None:
        if text_value(self.type, "form", self.form) not in FORMS:
            raise ValueError(
                f'validator {self.type}: "form" is {shown(self.form)}. Write one of {listed([*FORMS])}.'
            )
        about = list_value(self.type, "about", self.about)
        settle(
            self,
            about=tuple(texts_value(self.type, "about", one) for one in about),
            never=texts_value(self.type, "never", self.never),
        )

    def check(self, reply: Reply) -> Verdict:
        """Judge the text that OpenClaw would show."""
        limit, read = FORMS[self.form]
        text, whole = answer(reply), read(answer(reply))
        # A title is read from what was cut off, and the other texts are cut off after they were read.
        shown_text = read(_cut(text, limit)) if self.form == "title" else _cut(whole, limit)
        violation = self._violation(shown_text, is_whole=shown_text == whole)
        return judged(violation is None, violation or "", kept(shown_text))

    def _violation(self, text: str, *, is_whole: bool) -> str | None:
        if not text:
            return f"no text is left for a {self.form}"
        if not is_whole:
            return f"{shown(text)} is all that OpenClaw shows, the rest is cut off"
        folded = text.casefold()
        for words in self.about:
            if not any(word.casefold() in folded for word in words):
                return f"{shown(text)} has none of {listed(words)}"
        found = next((word for word in self.never if word.casefold() in folded), None)
        return None if found is None else f"{shown(text)} has {shown(found)}"


def _cut(text: str, limit: int) -> str:
    return text.encode("utf-16-le")[: 2 * limit].decode("utf-16-le", "ignore")
