"""A system prompt has no personal data and no moment left."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from pytest_openclaw.openclaw.captured import Masks

MASKS = Masks(
    paths={"/tmp/s/workspace": "<workspace>", "/tmp/s": "<scratch>", "/srv/ann": "<home>"},
    host="box-7.lan",
    user="ann",
    secrets=("sk-1",),
)


@pytest.mark.parametrize(
    ("text", "masked"),
    [
        pytest.param("in /tmp/s/workspace/AGENTS.md", "in <workspace>/AGENTS.md", id="the-inner-folder-first"),
        pytest.param("in /tmp/s.\n", "in <scratch>.\n", id="at-the-end-of-a-sentence"),
        pytest.param("in /tmp/s, and", "in <scratch>, and", id="a-folder"),
        pytest.param("in /tmp/second", "in /tmp/second", id="a-longer-name-is-another-folder"),
        pytest.param("~ is /srv/ann/x", "~ is <home>/x", id="home"),
        pytest.param("in /home/bob/x and /Users/Bob", "in <home>/x and <home>", id="any-home"),
        pytest.param("on box-7.lan and box-7", "on <host> and <host>", id="host-with-and-without-domain"),
        pytest.param("host=other | os=Linux 6.1 (x64) | node=v24", "host=<host> | os=<os> | node=v24", id="runtime-line"),
        pytest.param("ann, annals", "<user>, annals", id="user-as-a-word"),
        pytest.param("ann@mail.example", "<address>", id="address"),
        pytest.param("Current date: 2026-11-22\nTime zone: Europe/Berlin\n", "Current date: <time>\nTime zone: <zone>\n", id="date-and-zone"),
        pytest.param("[Sun 2026-11-22 19:50 UTC] Hi", "[<time>] Hi", id="day-and-time"),
        pytest.param("at 2026-11-22T19:50:01.123Z", "at <time>", id="iso-time"),
        pytest.param("release 2026.9.6", "release 2026.9.6", id="a-release-is-no-date"),
        pytest.param("id f954f989-d15e-45b1-a99d-d016fdea0ef6", "id <id>", id="uuid"),
        pytest.param("key sk-1", "key <key>", id="secret"),
        pytest.param("http://127.0.0.1:8080/x", "http://127.0.0.1:<port>/x", id="port"),
        pytest.param("Docs: /opt/oc/docs\nSee /opt/oc/skills", "Docs: <openclaw>/docs\nSee <openclaw>/skills", id="where-openclaw-is"),
    ],
)  # fmt: skip
def test_a_placeholder_replaces_it(text: str, masked: str) -> None:
    """Paths, names, times and ids are replaced; words that only look like them stay."""
    assert MASKS.text(text) == masked


@pytest.mark.parametrize("user", ["root", "user", "x", ""])
def test_a_name_that_is_a_word_stays(user: str) -> None:
    """A prompt mentions the root of the workspace for every user."""
    masks = Masks(paths={}, host="", user=user)

    assert masks.text("the root of x, user") == "the root of x, user"


def test_texts_within_a_value_are_masked() -> None:
    """Keys, numbers and the order stay."""
    value = {"user": "ann", "n": 1, "list": ["/tmp/s", None, True]}

    assert MASKS.value(value) == {"user": "<user>", "n": 1, "list": ["<scratch>", None, True]}


@given(before=st.text(), after=st.text())
def test_a_known_path_is_never_left(before: str, after: str) -> None:
    """This holds whatever surrounds it, unless it is part of a longer name."""
    found = MASKS.text(f"{before} /srv/ann/x {after}")

    assert "/srv/ann/x" not in found


@given(st.text())
def test_masked_text_stays_as_it_is(text: str) -> None:
    """Placeholders are not mistaken for personal data."""
    once = MASKS.text(text)

    assert MASKS.text(once) == once
