"""Makes `-k P1` mean the prompt P1 and never P10, which pytest's substrings cannot express.

Each item carries a private token made from its prompt's id among its extra keywords; before pytest
evaluates a `-k` expression, the ids in it are replaced by these tokens.
"""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Collection

# Egyptian hieroglyphs: letters to pytest's scanner, without case, and never typed. A token in
# ASCII would be found by keywords of other tests, since `-k` looks for substrings.
_FIRST = 0x13000
_BEGIN, _END = chr(_FIRST + 256), chr(_FIRST + 257)

# An identifier for pytest's scanner.
_IDENTIFIER = r"[\w:+\-.\[\]\\/]+"
_TOKENS = re.compile(rf"[ \t]+|[()]|{_IDENTIFIER}")


def keyword_token(prompt_id: str) -> str:
    """Return the private keyword of a prompt id; ids that differ in case alone share it, as in `-k`.

    No token is a part of another one, or of text that people type.
    """
    code = prompt_id.lower().encode("utf-8", "surrogatepass")
    return _BEGIN + "".join(chr(_FIRST + byte) for byte in code) + _END


def rewrite_keyword(expression: str, ids: Collection[str]) -> str:
    """Return a `-k` expression in which the ids of collected prompts have become their tokens.

    An identifier that equals an id, ignoring case as `-k` does, is replaced; everything else stays
    byte for byte. An expression that pytest rejects is unchanged, so that its error shows the
    user's text.

    Args:
        expression: as the user gave it.
        ids: of all prompts collected.
    """
    tokens = {prompt_id.lower(): keyword_token(prompt_id) for prompt_id in ids}
    body = expression.lstrip()  # as pytest does, which forgives a line break there and nowhere else
    parts = _TOKENS.findall(body)
    if "".join(parts) != body or not _is_grammatical(parts):
        return expression
    lead = expression[: len(expression) - len(body)]
    words = (part if part in ("and", "or", "not") else tokens.get(part.lower(), part) for part in parts)
    return lead + "".join(words)


def _is_grammatical(parts: list[str]) -> bool:
    """Whether pytest can evaluate the parts of a `-k` expression."""
    depth, wants_operand = 0, True
    for part in parts:
        if part.isspace():
            continue
        if wants_operand:
            if part in ("and", "or", ")"):
                return False
            depth += part == "("
            wants_operand = part in ("not", "(")
        else:
            if part not in ("and", "or", ")"):
                return False
            depth -= part == ")"
            wants_operand = part != ")"
        if depth < 0:
            return False
    return depth == 0 and not wants_operand


def base_id(prompt_id: str) -> str:
    """Return the id in the mark of a benchmark, without the parameters of one of its items."""
    return prompt_id.partition("[")[0]
