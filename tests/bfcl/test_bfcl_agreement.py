"""BFCL's checker and ours agree on the same replies, or differ in a class that the page names."""

import sys

import pytest

from tests.bfcl import checker
from tests.bfcl.__main__ import PAGE, render
from tests.bfcl.agreement import CLASSES, UNEXPLAINED, compare
from tests.bfcl.scripted_replies import BfclReply
from tests.conftest import require_bfcl

pytestmark = pytest.mark.newest

PARAMETERS = {"type": "dict", "required": ["a"], "properties": {"a": {"type": "integer"}}}
ENTRY = {"id": "case_0", "function": [{"name": "add", "parameters": PARAMETERS}]}
TAGGED = '<tool_call>\n{"name": "add", "arguments": {"a": 1}}\n</tool_call>'


@pytest.mark.parametrize(
    ("written", "dialect", "accepted", "is_call"),
    [
        pytest.param('{"a": 1}', "wire", True, True, id="right"),
        pytest.param('{"a": 2}', "wire", False, True, id="wrong"),
        pytest.param('{"a": "1"}', "wire", False, True, id="type"),
        pytest.param('{"a": 1', "wire", False, False, id="no-json"),
        pytest.param("[add(a=1)]", "python", True, True, id="python"),
        pytest.param(TAGGED, "qwen", True, True, id="qwen"),
        pytest.param('{"name": "add", "parameters": {"a": 1}}', "llama", True, True, id="llama"),
    ],
)
def test_bfcls_checker_runs_without_its_dependencies(written, dialect, accepted, is_call):
    """BFCL's own code judges; the dummies for its dependencies are gone after the import."""
    require_bfcl()
    before = {name for name in sys.modules if checker._is_not_needed(name)}
    on_wire = {"calls": (("add", written),)} if dialect == "wire" else {"text": written}
    reply = BfclReply(kind="", dialect=dialect, **on_wire)

    assert checker.check("simple_python", ENTRY, [{"add": {"a": [1]}}], reply) is accepted
    assert checker.check("irrelevance", ENTRY, None, reply) is not is_call
    assert {name for name in sys.modules if checker._is_not_needed(name)} == before


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
