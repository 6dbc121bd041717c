"""Text that can be written anywhere."""

from __future__ import annotations

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from pytest_openclaw.util.text import valid_text


@pytest.mark.parametrize(
    ("text", "valid"),
    [
        pytest.param("\ud83e\udd9e", "🦞", id="pair"),
        pytest.param("a\ud83eb", "a\ufffdb", id="lone-high"),
        pytest.param("a\udd9eb", "a\ufffdb", id="lone-low"),
        pytest.param("\ud83e\ud83e\udd9e", "\ufffd🦞", id="lone-before-pair"),
        pytest.param("\ufeffa\0\x1b", "\ufeffa\0\x1b", id="control-characters-stay"),
    ],
)
def test_valid_text(text, valid):
    """Surrogate pairs become their character, lone ones U+FFFD, and nothing else changes."""
    assert valid_text(text) == valid


@settings(deadline=None)
@given(text=st.text(st.characters()))
def test_valid_text_can_be_encoded_and_stays(text):
    """The result is valid UTF-8, and making it valid again changes nothing."""
    once = valid_text(text)

    assert once.encode().decode() == once == valid_text(once)
