"""What the rows of a target prove beside its tier."""

from __future__ import annotations

from pytest_openclaw.stats.proofs import Proof
from pytest_openclaw.stored.run_proofs import proofs_of
from tests.unit.reports.summaries import fault
from tests.unit.stored.stored_runs import SUITE, A, definition, row

PROMPTS = {(SUITE, "H"): definition("H", tags=["heartbeat"]), (SUITE, "T"): definition("T")}


def test_text_prompts_prove_heartbeats_and_text() -> None:
    """Judged text cells count, those with the tag for heartbeats too; an empty answer is a miss."""
    records = [
        row(A, "H"),
        row(A, "H", repeat=2, objective_pass=False),
        row(A, "T", success=False, objective_pass=None, failure_type="empty_response"),
        row(A, "T", repeat=2, objective_pass=None),
        row(A, "T", repeat=3, tools_offered=3),
        row(A, "T", repeat=4, tool_outcome="valid"),
        fault(A, prompt_id="H", suite=SUITE, repeat=3),
    ]

    proofs = proofs_of(records, PROMPTS)

    assert proofs.heartbeat == Proof(n=2, n_right=1, n_prompts=1, n_prompts_right=0)
    assert proofs.text == Proof(n=3, n_right=1, n_prompts=2, n_prompts_right=0)
