"""How much of a long result, file or page a model receives: the limits of OpenClaw 2026.9.6.

Most of them grow with the model's context. Sizes are UTF-16 units, or weights in which a Chinese, Japanese or
Korean character counts as several Latin ones. The names of OpenClaw's own functions are beside each rule.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from functools import partial
from typing import TYPE_CHECKING

from pytest_openclaw.values.requests import DEFAULT_CONTEXT_TOKENS

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

# --- sizes ----------------------------------------------------------------------------------------

# `WEIGHTED_CJK_RANGES`: common characters, rarer ones, wide forms, symbols, and those beyond 16 bits.
_WEIGHED = (
    (4, "\u00b7\u3000-\u319f\u4e00-\u9fa5\uac00-\ud7af\uff01-\uff60"),
    (
        12,
        "\u1100-\u11ff\u2e80-\u2fff\u31a0-\u4dff\u9fa6-\ua4ff\ua700-\ua707\ua960-\ua97f\ud7b0-\ud7ff\uf900-\ufaff"
        "\U0001d360-\U0001d371",
    ),
    (
        8,
        "\u02c7\u02c9-\u02cb\u02d9\u02ea\u02eb\u0305\u0323\ufe10-\ufe4f\uff61-\uffdc\uffe0-\uffe6",
    ),
    (
        16,
        "\U00016fe0-\U00016fff\U0001aff0-\U0001b16f\U0001f200-\U0001f2ff\U00020000-\U0002fa1f"
        "\U00030000-\U0003347f",
    ),
)
_HEAVY = tuple((each, re.compile(f"[{characters}]+")) for each, characters in _WEIGHED)


def units(text: str) -> int:
    """Return the length of a text in JavaScript."""
    return len(text) if text.isascii() else len(text.encode("utf-16-le", "surrogatepass")) // 2


def weight(text: str, least: int = 1) -> int:
    """Return the weight of a text (`estimateStringCharsWithMinimumRawWeight`).

    Args:
        text: of any length.
        least: the weight of a unit that has no higher one, 1 or 2.

    """
    if text.isascii():
        return least * len(text)
    weights = 0
    for each, pattern in _HEAVY:
        heavy = "".join(pattern.findall(text))
        weights += each * len(heavy) - least * units(heavy)
    return least * units(text) + weights


def n_bytes(text: str) -> int:
    """Return the length of a text as UTF-8."""
    return len(text.encode())


def longest_part(text: str, most: int, size: Callable[[str], int] = units, *, at_end: bool = False) -> str:
    """Return the longest beginning, or end, of a text that is no larger than `most`.

    Args:
        text: of any length.
        most: a negative one is 0.
        size: measures a part; a longer part of the text is not smaller.
        at_end: keep the end.

    """
    low, high = 0, min(len(text), max(0, most))
    while low < high:
        middle = (low + high + 1) // 2
        fits = size(text[-middle:] if at_end else text[:middle]) <= most
        low, high = (middle, high) if fits else (low, middle - 1)
    return text[len(text) - low :] if at_end else text[:low]


# --- limits ---------------------------------------------------------------------------------------

# `resolveAutoLiveToolResultMaxChars`: the least context, and the characters of a result.
_RESULT_CHARS = ((200_000, 64_000), (100_000, 32_000), (0, 16_000))
_RESULT_SHARE = 0.3
_PAGE_SHARE = 0.1
_CHARS_A_TOKEN = 4
_LEAST_PAGE_BYTES, _MOST_PAGE_BYTES = 32_768, 131_072
#: of one page of a file; `read` joins up to four
MOST_PAGE_BYTES = 51_200
MOST_PAGE_LINES = 2000
MOST_PAGES = 4
#: of the output of a command; `DEFAULT_MAX_OUTPUT` in its `bash-tools.exec-runtime`
MOST_OUTPUT_UNITS = 200_000
#: of a web page in its wrapping; `DEFAULT_FETCH_MAX_CHARS` in its `web-fetch`
MOST_FETCHED_UNITS = 20_000
LEAST_FETCHED_UNITS = 100


@dataclass(frozen=True)
class ResultLimits:
    """The limits for a model with a context of so many tokens."""

    context_tokens: int = DEFAULT_CONTEXT_TOKENS

    @property
    def context_weight(self) -> int:
        """What a result may weigh if each unit weighs at least 2 (`resolveToolResultContextMaxChars`)."""
        return max(1024, self.context_tokens)

    @property
    def result_weight(self) -> int:
        """What a result may weigh after that (`resolveLiveToolResultMaxChars`)."""
        most = next(chars for least, chars in _RESULT_CHARS if self.context_tokens >= least)
        return min(most, int(self.context_tokens * _RESULT_SHARE) * _CHARS_A_TOKEN)

    @property
    def read_bytes(self) -> int:
        """The bytes of one call of `read` (`resolveAdaptiveReadMaxBytes`)."""
        wanted = int(self.context_tokens * _CHARS_A_TOKEN * _PAGE_SHARE)
        return min(_MOST_PAGE_BYTES, max(_LEAST_PAGE_BYTES, wanted))

    def fits(self, text: str) -> bool:
        """Whether a result is not cut (`toolResultFitsBudget`)."""
        return weight(text) <= self.result_weight and weight(text, 2) <= self.context_weight


# --- results --------------------------------------------------------------------------------------

_LEFT_OUT = "\n\n⚠️ [... middle content omitted — showing head and tail ...]\n\n"
_SHOWS_OUTCOME = re.compile(
    r"\b(?:error|exception|failed|fatal|traceback|panic|stack trace|errno|exit code"
    r"|total|summary|result|complete|finished|done)\b|\}\s*\Z",
    re.ASCII,
)
_LAST_UNITS = 2000
_LEAST_KEPT = 2000
_MOST_TAIL = 4000
_DISCARDED = "[earlier output was discarded at the retention cap and cannot be recovered]\n\n"


def cut_mark(chars: int) -> str:
    """Return what follows a result of which so many characters were cut off."""
    return f"[... {chars} more characters truncated; rerun with narrower args if needed]"


def cut_result(text: str, limits: ResultLimits) -> str:
    """Return a result as a model receives it: whole, its beginning, or its beginning and end.

    It is cut twice, so the number in its mark counts from the first cut.
    """
    return _cut(_cut(text, limits.context_weight, least=2), limits.result_weight, least=1)


def _cut(text: str, most: int, *, least: int) -> str:
    """Return a text of at most this weight; `truncateToolResultText` in its `tool-result-truncation`."""
    size = partial(weight, least=least)
    if size(text) <= most:
        return text
    least_kept = max(0, min(_LEAST_KEPT, most - size(cut_mark(1))))
    left_out = max(1, units(text) - units(longest_part(text, most, size)))
    room = max(least_kept, most - size(cut_mark(left_out)))
    tail_room = min(int(room * 0.3), _MOST_TAIL)
    head_room = room - tail_room - size(_LEFT_OUT)
    last = longest_part(text, _LAST_UNITS, at_end=True).lower()
    if _SHOWS_OUTCOME.search(last) and room > 2 * least_kept and head_room > least_kept:
        end = longest_part(text, tail_room, size, at_end=True)
        kept = _head(longest_part(text, head_room, size)) + _LEFT_OUT + _tail(end)
    else:
        kept = _head(longest_part(text, room, size))
    # A larger number in the mark can need one more character.
    while True:
        mark = cut_mark(max(1, units(text) - units(kept)))
        if size(kept) + size(mark) <= most:
            return kept + mark
        kept = longest_part(kept, most - size(mark), size)


def _head(text: str) -> str:
    """Without its last, broken line, unless that is long."""
    end = text.rfind("\n")
    return text[:end] if units(text[: max(0, end)]) > units(text) * 0.8 else text


def _tail(text: str) -> str:
    """Without its first, broken line, unless that is long."""
    end = text.find("\n")
    return text[end + 1 :] if end >= 0 and units(text[:end]) < units(text) * 0.2 else text


def kept_output(output: str) -> tuple[str, str]:
    """Return what is kept of a command's output, and before it a note if its beginning is not."""
    kept = longest_part(output, MOST_OUTPUT_UNITS, at_end=True)
    return "" if len(kept) == len(output) else _DISCARDED, kept


# --- files ----------------------------------------------------------------------------------------


@dataclass(frozen=True)
class ReadFrom:
    """A place in a file: a line from 1, a unit of it from 0, and how many lines are wanted from it."""

    line: int
    cursor: int = 0
    limit: int | None = None

    def mark(self, limits: ResultLimits) -> str:
        """Return what follows the part of a file that ends here."""
        size = f"{limits.read_bytes / 1024:.1f}".removesuffix(".0")
        cursor = f", cursor={self.cursor}" if self.cursor else ""
        limit = "" if self.limit is None else f", limit={self.limit}"
        at = f"offset={self.line}{cursor}{limit}"
        return f"\n\n[Read output capped at {size}KB for this call. Use {at} to continue.]"


def read_part(lines: Sequence[str], end: str, place: ReadFrom, limits: ResultLimits) -> str:
    """Return the part of a file from a place on; up to four pages, if no number of lines is wanted.

    `executeReadWithAdaptivePaging` in its `agent-tools.read`.

    Args:
        lines: all lines of the file, without their ends.
        end: what follows the last line, a line end or nothing.
        place: a line that is there.
        limits: of the model.

    """
    text, mark = "", ""
    for _ in range(MOST_PAGES):
        page, following = _page(lines, end, place, limits)
        if place.limit is not None:
            return page + _limit_mark(lines, place) if following is None else page + following.mark(limits)
        joint = "\n" if text and page and not place.cursor else ""
        next_mark = following.mark(limits) if following else ""
        if text and not _is_page(f"{text}{joint}{page}{next_mark}", limits.read_bytes, limits):
            break
        text, mark = f"{text}{joint}{page}", next_mark
        if following is None:
            break
        place = following
    return text + mark


def _page(
    lines: Sequence[str], end: str, place: ReadFrom, limits: ResultLimits
) -> tuple[str, ReadFrom | None]:
    """Return a page, and where the next one begins if it was cut (`createBoundedReadTextPage`)."""
    last = len(lines) if place.limit is None else min(len(lines), place.line - 1 + place.limit)
    wanted = list(lines[place.line - 1 : last])
    wanted[0] = wanted[0].removeprefix(longest_part(wanted[0], place.cursor))
    text = "\n".join(wanted) + (end if last == len(lines) else "")
    most_bytes = min(MOST_PAGE_BYTES, limits.read_bytes)
    if len(wanted) <= MOST_PAGE_LINES and _is_page(text + _limit_mark(lines, place), most_bytes, limits):
        return text, None
    marks = (
        ReadFrom(place.line, place.cursor + units(wanted[0]), place.limit),
        ReadFrom(len(lines) + 1, 0, place.limit),
    )
    reserved = max(len(one.mark(limits)) for one in marks)
    part = longest_part(text, most_bytes - reserved, n_bytes)
    part = longest_part(part, limits.result_weight - reserved, weight)
    part = longest_part(part, limits.context_weight - 2 * reserved, partial(weight, least=2))
    room = len(part)
    if len(wanted[0]) > room:
        return part, ReadFrom(place.line, place.cursor + units(part), place.limit)
    whole = part.count("\n") + (room >= len(text) or text[room] == "\n")
    n = min(whole, MOST_PAGE_LINES, len(wanted))
    if n == len(wanted):
        return part, None
    after = place.line + n
    return "\n".join(wanted[:n]), ReadFrom(after, 0, None if place.limit is None else last - after + 1)


def _limit_mark(lines: Sequence[str], place: ReadFrom) -> str:
    """What follows all lines that were wanted, if the file has more."""
    left = 0 if place.limit is None else len(lines) - (place.line - 1 + place.limit)
    if left <= 0:
        return ""
    more = "1 more line" if left == 1 else f"{left} more lines"
    return f"\n\n[{more} in file. Use offset={len(lines) - left + 1} to continue.]"


def _is_page(text: str, most_bytes: int, limits: ResultLimits) -> bool:
    return n_bytes(text) <= most_bytes and limits.fits(text)
