"""How much of a long result, file or page a model receives: the limits of OpenClaw 2026.9.6.

Most of them grow with the model's context. Sizes are UTF-16 units, or weights in which a Chinese, Japanese or
Korean character counts as several Latin ones. Each rule names OpenClaw's own function.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from functools import partial
from typing import TYPE_CHECKING

from pytest_openclaw.values.requests import DEFAULT_CONTEXT_TOKENS

if TYPE_CHECKING:
    from collections.abc import Callable

# `WEIGHTED_CJK_RANGES`: common characters, rarer ones, wide forms and symbols, and those beyond 16 bits.
_HEAVY = (
    (4, re.compile("[\u00b7\u3000-\u319f\u4e00-\u9fa5\uac00-\ud7af\uff01-\uff60]+")),
    (
        12,
        re.compile(
            "[\u1100-\u11ff\u2e80-\u2fff\u31a0-\u4dff\u9fa6-\ua4ff\ua700-\ua707\ua960-\ua97f\ud7b0-\ud7ff"
            "\uf900-\ufaff\U0001d360-\U0001d371]+"
        ),
    ),
    (
        8,
        re.compile(
            "[\u02c7\u02c9-\u02cb\u02d9\u02ea\u02eb\u0305\u0323\ufe10-\ufe4f\uff61-\uffdc\uffe0-\uffe6]+"
        ),
    ),
    (
        16,
        re.compile(
            "[\U00016fe0-\U00016fff\U0001aff0-\U0001b16f\U0001f200-\U0001f2ff\U00020000-\U0002fa1f"
            "\U00030000-\U0003347f]+"
        ),
    ),
)


def units(text: str) -> int:
    """Return the length of a text in JavaScript."""
    return len(text) if text.isascii() else len(text.encode("utf-16-le", "surrogatepass")) // 2


def weight(text: str, least: int = 1) -> int:
    """Return the weight of a text (`estimateStringCharsWithMinimumRawWeight`).

    Args:
        text: of any length.
        least: the weight of a unit that has no higher one, 1 or 2.
    """
    total = least * units(text)
    if not text.isascii():
        for each, pattern in _HEAVY:
            heavy = "".join(pattern.findall(text))
            total += each * len(heavy) - least * units(heavy)
    return total


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


# --- limits by the context of a model -------------------------------------------------------------

# `resolveAutoLiveToolResultMaxChars`: the least context, and the characters of a result.
_RESULT_CHARS = ((200_000, 64_000), (100_000, 32_000), (0, 16_000))
_CHARS_A_TOKEN = 4
_LEAST_READ_BYTES, _MOST_READ_BYTES = 32_768, 131_072


@dataclass(frozen=True)
class ResultLimits:
    """The limits for a model with a context of so many tokens."""

    context_tokens: int = DEFAULT_CONTEXT_TOKENS

    @property
    def context_weight(self) -> int:
        """The weight of a result if each unit weighs at least 2 (`resolveToolResultContextMaxChars`)."""
        return max(1024, self.context_tokens)

    @property
    def result_weight(self) -> int:
        """The weight of a result after that (`resolveLiveToolResultMaxChars`): 30 % of the context."""
        most = next(chars for least, chars in _RESULT_CHARS if self.context_tokens >= least)
        return min(most, int(self.context_tokens * 0.3) * _CHARS_A_TOKEN)

    @property
    def read_bytes(self) -> int:
        """The bytes of one call of `read` (`resolveAdaptiveReadMaxBytes`): 10 % of the context."""
        wanted = int(self.context_tokens * _CHARS_A_TOKEN * 0.1)
        return min(_MOST_READ_BYTES, max(_LEAST_READ_BYTES, wanted))

    def fits(self, text: str) -> bool:
        """Whether a result is not cut (`toolResultFitsBudget`)."""
        return weight(text) <= self.result_weight and weight(text, 2) <= self.context_weight


# --- results that are cut -------------------------------------------------------------------------

_LEFT_OUT = "\n\n⚠️ [... middle content omitted — showing head and tail ...]\n\n"
_SHOWS_OUTCOME = re.compile(
    r"\b(?:error|exception|failed|fatal|traceback|panic|stack trace|errno|exit code"
    r"|total|summary|result|complete|finished|done)\b|\}\s*\Z",
    re.ASCII,
)
#: units at the end of a text in which an outcome is looked for
_LAST_UNITS = 2000
_LEAST_KEPT, _MOST_TAIL = 2000, 4000
#: of the output of a command; `DEFAULT_MAX_OUTPUT` in its `bash-tools.exec-runtime`
MOST_OUTPUT_UNITS = 200_000
_DISCARDED = "[earlier output was discarded at the retention cap and cannot be recovered]\n\n"


def cut_mark(chars: int) -> str:
    """Return the text after a result of which so many characters were cut off."""
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
    """Return a text without its last, broken line, unless that is long."""
    end = text.rfind("\n")
    return text[:end] if units(text[: max(0, end)]) > units(text) * 0.8 else text


def _tail(text: str) -> str:
    """Return a text without its first, broken line, unless that is long."""
    end = text.find("\n")
    return text[end + 1 :] if end >= 0 and units(text[:end]) < units(text) * 0.2 else text


def kept_output(output: str) -> tuple[str, str]:
    """Return the kept end of a command's output, and before it a note if the beginning is lost."""
    kept = longest_part(output, MOST_OUTPUT_UNITS, at_end=True)
    return "" if len(kept) == len(output) else _DISCARDED, kept
