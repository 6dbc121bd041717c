"""How much of a long result, file or page a model receives: the limits of OpenClaw 2026.9.6.

They grow with the model's context. OpenClaw counts a Chinese, Japanese or Korean character as several Latin
ones; here each character counts once.
"""

from __future__ import annotations

import re
from dataclasses import dataclass

from pytest_openclaw.values.requests import DEFAULT_CONTEXT_TOKENS

# `resolveAutoLiveToolResultMaxChars`: the least context, and the characters of a result.
_RESULT_CHARS = ((200_000, 64_000), (100_000, 32_000), (0, 16_000))
_CHARS_A_TOKEN = 4
_LEAST_READ_BYTES, _MOST_READ_BYTES = 32_768, 131_072


@dataclass(frozen=True)
class ResultLimits:
    """The limits for a model with a context of so many tokens."""

    context_tokens: int = DEFAULT_CONTEXT_TOKENS

    @property
    def result_chars(self) -> int:
        """The characters of a result: 30 % of the context and, in tokens of two, at most all of it.

        `resolveLiveToolResultMaxChars` and `resolveToolResultContextMaxChars`.
        """
        most = next(chars for least, chars in _RESULT_CHARS if self.context_tokens >= least)
        share = int(self.context_tokens * 0.3) * _CHARS_A_TOKEN
        return min(most, share, max(512, self.context_tokens // 2))

    @property
    def read_bytes(self) -> int:
        """The bytes of one call of `read` (`resolveAdaptiveReadMaxBytes`): 10 % of the context."""
        wanted = int(self.context_tokens * _CHARS_A_TOKEN * 0.1)
        return min(_MOST_READ_BYTES, max(_LEAST_READ_BYTES, wanted))


_LEFT_OUT = "\n\n⚠️ [... middle content omitted — showing head and tail ...]\n\n"
_SHOWS_OUTCOME = re.compile(
    r"\b(?:error|exception|failed|fatal|traceback|panic|stack trace|errno|exit code"
    r"|total|summary|result|complete|finished|done)\b|\}\s*\Z",
    re.ASCII,
)
#: characters at the end of a text in which an outcome is looked for
_LAST_CHARS = 2000
_LEAST_KEPT, _MOST_TAIL = 2000, 4000
#: of the output of a command; `DEFAULT_MAX_OUTPUT` in its `bash-tools.exec-runtime`
MOST_OUTPUT_CHARS = 200_000
_DISCARDED = "[earlier output was discarded at the retention cap and cannot be recovered]\n\n"


def cut_mark(chars: int) -> str:
    """Return the text after a result of which so many characters were cut off."""
    return f"[... {chars} more characters truncated; rerun with narrower args if needed]"


def cut_result(text: str, limits: ResultLimits) -> str:
    """Return a result as a model receives it: whole, its beginning, or its beginning and end.

    `truncateToolResultText` in its `tool-result-truncation`.
    """
    most = limits.result_chars
    if len(text) <= most:
        return text
    room = max(0, most - len(cut_mark(len(text))))
    least_kept = min(_LEAST_KEPT, room)
    tail_room = min(int(room * 0.3), _MOST_TAIL)
    head_room = room - tail_room - len(_LEFT_OUT)
    has_outcome = _SHOWS_OUTCOME.search(text[-_LAST_CHARS:].lower())
    if has_outcome and room > 2 * least_kept and head_room > least_kept:
        kept = _head(text[:head_room]) + _LEFT_OUT + _tail(text[-tail_room:])
    else:
        kept = _head(text[:room])
    return kept + cut_mark(len(text) - len(kept))


def _head(text: str) -> str:
    """Return a text without its last, broken line, unless that is long."""
    end = text.rfind("\n")
    return text[:end] if end > len(text) * 0.8 else text


def _tail(text: str) -> str:
    """Return a text without its first, broken line, unless that is long."""
    end = text.find("\n")
    return text[end + 1 :] if 0 <= end < len(text) * 0.2 else text


def kept_output(output: str) -> tuple[str, str]:
    """Return the kept end of a command's output, and before it a note if the beginning is lost."""
    kept = output[-MOST_OUTPUT_CHARS:]
    return "" if len(kept) == len(output) else _DISCARDED, kept
