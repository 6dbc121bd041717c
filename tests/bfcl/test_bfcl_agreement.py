"""BFCL's checker and ours agree on the same replies, or differ in a class that the page names."""

from __future__ import annotations

import sys

import pytest

from tests.bfcl import checker
from tests.bfcl.__main__ import PAGE, render
from tests.bfcl.agreement import CLASSES, UNEXPLAINED, compare
from tests.bfcl.scripted_replies import BfclReply
from tests.conftest import require_bfcl

pytestmark = pytest.mark.newest

ENTRY = {
    "id": "case_0",
    "function": [{
        "name": "add",
        "parameters": {"type": "dict", "required": ["a"], "properties": {"a": {"type": "integer"}}},
    }],
}  # fmt: skip


@pytest.mark.parametrize(
    ("reply", "accepted"),
    [
        pytest.param(BfclReply(kind="", calls=(("add", '{"a": 1}'),)), True, id="right"),
        pytest.param(BfclReply(kind="", calls=(("add", '{"a": 2}'),)), False, id="wrong"),
        pytest.param(BfclReply(kind="", calls=(("add", '{"a": "1"}'),)), False, id="type"),
        pytest.param(BfclReply(kind="", calls=(("add", '{"a": 1'),)), False, id="no-json"),
        pytest.param(BfclReply(kind="", text="One."), False, id="no-call"),
        pytest.param(BfclReply(kind="", text="[add(a=1)]", dialect="python"), True, id="python"),
        pytest.param(
            BfclReply(
                kind="",
                text='<tool_call>\n{"name": "add", "arguments": {"a": 1}}\n</tool_call>',
                dialect="qwen",
            ),
            True,
            id="qwen",
        ),
        pytest.param(
            BfclReply(kind="", text='{"name": "add", "parameters": {"a": 1}}', dialect="llama"),
            True,
            id="llama",
        ),
    ],
)
def test_bfcls_checker_runs_without_its_dependencies(reply, accepted):
    """It is BFCL's own code that judges; the dummies for its dependencies are gone after the import."""
    require_bfcl()
    before = {name for name in sys.modules if checker._is_not_needed(name)}

    assert checker.check("simple_python", ENTRY, [{"add": {"a": [1]}}], reply) is accepted
    assert {name for name in sys.modules if checker._is_not_needed(name)} == before
    assert checker.check("irrelevance", ENTRY, None, reply) is (
        "no-json" in reply.kind or not _decodes(reply)
    )


def _decodes(reply):
    """Whether BFCL finds a call in a reply."""
    return reply.dialect != "wire" or any(arguments.endswith("}") for _, arguments in reply.calls)


def test_every_disagreement_has_a_class(tmp_path):
    """On a sample of all categories each disagreement is of a class that the page explains."""
    require_bfcl()
    tally = compare(tmp_path, every=180)

    assert UNEXPLAINED not in tally.classes, tally.classes[UNEXPLAINED]
    assert tally.kinds["right"]["11"] >= 0.9 * tally.kinds["right"].total()
    assert tally.kinds["a wrong value"]["01"] == tally.kinds["a wrong value"]["10"] == 0
    assert set(tally.classes) <= set(CLASSES)


@pytest.mark.nightly
def test_the_page_is_what_is_found(tmp_path):
    """The documentation shows the current figures."""
    require_bfcl()

    assert PAGE.read_text("utf-8") == render(tmp_path)
