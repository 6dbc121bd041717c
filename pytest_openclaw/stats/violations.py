"""Classifies violations, so that equal ones can be counted.

A violation quotes the answer, so hardly two are equal. Their kind is the text without quotations and
numbers.
"""

from __future__ import annotations

import re

LONGEST = 300
# The answer or a part of it, as a text or as JSON, then what is wrong with it.
_OF_AN_ANSWER = re.compile(r'["{\[].*["}\]] ((?:is|does)\b[^"{\[]*)', re.DOTALL)


def violation_kind(violation: str) -> str:
    """Return the part that does not depend on the answer: `… is not …`, `N words, at most N allowed`."""
    clause = violation[:LONGEST].split("; ")[0]
    if found := _OF_AN_ANSWER.match(clause):
        return f"… {found[1].strip()} …"
    said, quoted, _ = clause.partition('"')
    return re.sub(r"\d+(\.\d+)?", "N", said.strip()) + (" …" if quoted else "")
