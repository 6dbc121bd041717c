"""Text that can be written anywhere: valid, and no control of a terminal or command of a CI system."""

import json
import re
import sys
import textwrap
import unicodedata

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from pytest_openclaw.util.text import UNSEEN, inert, printable, valid_text
from tests.ci_systems import COMMANDS, all_commands


@pytest.mark.parametrize(
    ("text", "valid"),
    [
        pytest.param("\ud83e\udd9e", "🦞", id="pair"),
        pytest.param("a\ud83eb\udd9ec", "a\ufffdb\ufffdc", id="lone-high-and-low"),
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


# Pieces of commands and text that may be between them.
PIECES = (
    *COMMANDS.values(),
    *("::", ":", "#", "##", "##[", "[", "]", "error", "error]", "section_start:", "1:a", "x", "word "),
    *("\n", "\r", " ", "\t", "\xa0", "\u2029", "\ufe0f", "\u200b", "\x1b[0K"),
)
HOSTILE = st.lists(st.sampled_from(PIECES) | st.text(max_size=3), max_size=12).map("".join)


@pytest.mark.parametrize(
    ("text", "shown"),
    [
        pytest.param("a\nb\tc", "a\nb\tc", id="new-lines-and-tabs-stay"),
        pytest.param("\x1b[31mred", "\\x1b[31mred", id="escape"),
        pytest.param("a\rb\x00\x07\x08", "a\\rb\\x00\\x07\\x08", id="control"),
        pytest.param("a\u202eb\u200bc", "a\\u202eb\\u200bc", id="direction-and-invisible"),
        pytest.param("\ud800", "\\ud800", id="half-a-character"),
        pytest.param("grüße 日本 😀 e\u0301", "grüße 日本 😀 e\u0301", id="foreign-letters-stay"),
        pytest.param("::error::x", "\\u003a:error::x", id="github"),
        pytest.param("a\n \xa0::error::x", "a\n \xa0\\u003a:error::x", id="github-on-a-later-line"),
        pytest.param("a ::error::x", "a ::error::x", id="colons-within-a-line-stay"),
        pytest.param("suite.toml::P1[a/b]", "suite.toml::P1[a/b]", id="node-ids-stay"),
        pytest.param("a ##[error]x", "a \\u0023#[error]x", id="github-v1"),
        pytest.param("section_end:1:a", "\\u0073ection_end:1:a", id="gitlab"),
        pytest.param("## title\n[a](b) #[x] section_a: b", None, id="markdown-stays"),
    ],
)
def test_control_characters_are_escaped(text, shown):
    """A user can still read the text; a terminal or a CI system does nothing."""
    assert printable(text) == (text if shown is None else shown)


def test_every_unseen_character_is_known():
    """The class has Unicode's control, format and separator characters and all ignorable by default."""
    # DerivedCoreProperties.txt, Default_Ignorable_Code_Point, as far as it is not Cf.
    ignorable = {0x034F, 0x115F, 0x1160, 0x17B4, 0x17B5, *range(0x180B, 0x1810), 0x2065, 0x3164, 0xFFA0}
    ignorable |= {*range(0xFE00, 0xFE10), *range(0xFFF0, 0xFFF9), *range(0xE0000, 0xE1000)}
    categories = {"Cc", "Cf", "Cs", "Zl", "Zp"}
    everything = "".join(map(chr, range(sys.maxunicode + 1)))
    wanted = {c for c in everything if unicodedata.category(c) in categories} | {*map(chr, ignorable)}

    found = {*re.findall(f"[{UNSEEN}]", everything)}

    assert wanted - found == {"\n", "\t"}
    # Apart from the blank Braille pattern only what this Python's Unicode does not have yet.
    assert {c for c in found - wanted if unicodedata.category(c) != "Cn"} == {"\u2800"}


@pytest.mark.parametrize("command", COMMANDS.values(), ids=COMMANDS)
def test_no_command_is_left(command):
    """A reply's command works on its system, and no longer once it is printable, at any indentation."""
    assert all_commands(f"{command}\n") or "\u2028" in command or "x ::" in command

    assert all_commands(f"    {printable(command)}\n{printable(command)}") == []


@given(text=HOSTILE, width=st.integers(min_value=1, max_value=40))
def test_a_text_that_is_wrapped_later_has_no_command(text, width):
    """Wherever the lines are broken, also within words."""
    lines = textwrap.wrap(printable(text, wraps=True), width, replace_whitespace=False)

    assert all_commands("\n".join(lines)) == []


@given(value=st.lists(HOSTILE, max_size=3) | st.dictionaries(HOSTILE, HOSTILE, max_size=3))
def test_json_stays_the_same_value(value):
    """A program reads from inert JSON what was written, and a CI system no command."""
    text = inert(json.dumps(value, indent=2))

    assert json.loads(text) == value
    assert all_commands(text) == []
