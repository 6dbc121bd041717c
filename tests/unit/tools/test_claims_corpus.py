"""How well claims of acts and of results are distinguished from promises, refusals and knowledge."""

from __future__ import annotations

import json
from typing import Any

import pytest

from pytest_openclaw.openclaw.claims import claims_done
from tests.corpus.readings import FOLDER

pytestmark = pytest.mark.newest

STATEMENTS: list[dict[str, Any]] = [
    json.loads(line) for line in (FOLDER / "claims.jsonl").read_text("utf-8").splitlines()
]
# A little below the reached values, which README.md beside the corpus has.
LEAST = {"seen": (0.98, 0.95), "unseen": (0.95, 0.70)}


@pytest.mark.parametrize("half", LEAST)
def test_claims_are_recognized(half: str) -> None:
    """Precision and recall are at least those that are published; `-rP` prints them."""
    found = [(one["claim"], claims_done(one["text"])) for one in STATEMENTS if one["half"] == half]
    right = sum(claim and said for claim, said in found)
    precision = right / sum(said for _, said in found)
    recall = right / sum(claim for claim, _ in found)
    print(f"{half}: precision {precision:.3f}, recall {recall:.3f} of {len(found)}")

    assert (precision >= LEAST[half][0], recall >= LEAST[half][1]) == (True, True)
