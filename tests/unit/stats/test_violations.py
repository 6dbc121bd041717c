"""Violations that differ only in the model's text are of one kind."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from pytest_openclaw.stats.groups import LONGEST, violation_kind


@pytest.mark.parametrize(
    ("violation", "kind"),
    [
        pytest.param('"no" is not "yes"', "… is not …", id="exact"),
        pytest.param('"a "quoted" word" is not "yes"', "… is not …", id="quotes-within"),
        pytest.param(r'"16" does not match "\d{3}"', "… does not match …", id="pattern"),
        pytest.param('"x" does not contain "a"; "x" does not contain "b"', "… does not contain …", id="first-of-several"),
        pytest.param('{"a": 1} does not equal {"a": 2}', "… does not equal …", id="json"),
        pytest.param("45 words, at most 15 allowed", "N words, at most N allowed", id="count"),
        pytest.param("the JSON is broken at line 11, column 32", "the JSON is broken at line N, column N", id="broken-json"),
        pytest.param('invoked: no tool; expected: one of "df"', "invoked: no tool", id="no-tool"),
        pytest.param('invoked: "ls"; expected: one of "df"', "invoked: …", id="other-tool"),
        pytest.param("no JSON object found, exactly 1 expected", "no JSON object found, exactly N expected", id="no-json"),
    ],
)  # fmt: skip
def test_kinds(violation: str, kind: str) -> None:
    """The model's text and the numbers are left out, the problem stays."""
    assert violation_kind(violation) == kind


@given(st.text())
def test_every_violation_has_a_kind(violation: str) -> None:
    """Whatever a plugin's validator writes, the kind is a bounded text."""
    assert len(violation_kind(violation)) <= LONGEST + 10
