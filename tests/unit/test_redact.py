"""Secrets in texts, values and logs: whole, spelled otherwise, cut."""

from __future__ import annotations

import base64
import functools
import json
import logging
from urllib.parse import quote

import pytest
from hypothesis import given
from hypothesis import strategies as st

from pytest_openclaw.redact import HIDDEN, SHORTEST_SECRET, Redactor

KEY = "sk-0123456789abcdef"
PASSWORD = "Größe/'n\"\\x"


@pytest.mark.parametrize(
    ("text", "shown"),
    [
        pytest.param(f"a {KEY} b", "a [secret] b", id="whole"),
        pytest.param(KEY * 2, "[secret][secret]", id="twice"),
        pytest.param("Bearer sk-0123456…", "Bearer [secret]…", id="cut-at-its-end"),
        pytest.param("Bearer sk-0123456 … b", "Bearer [secret] … b", id="cut-with-a-blank"),
        pytest.param("...9abcdef b", "...9abcdef b", id="too-little-is-left"),
        pytest.param("a ... 89abcdef b", "a ... [secret] b", id="cut-at-its-start"),
        pytest.param("said sk-0123456789", "said [secret]", id="cut-by-the-texts-end"),
        pytest.param("89abcdef is the rest", "[secret] is the rest", id="cut-by-the-texts-start"),
        pytest.param("sk-01234 and 89abcdef.", "sk-01234 and 89abcdef.", id="pieces-that-nobody-cut"),
        pytest.param("", "", id="empty"),
    ],
)
def test_texts(text, shown):
    """A key is replaced wherever it stands, and what a cut has left of it, but no other text."""
    assert Redactor.of([KEY]).text(text) == shown


@pytest.mark.parametrize(
    "spelled",
    [
        PASSWORD,
        json.dumps(PASSWORD),
        json.dumps(PASSWORD, ensure_ascii=False),
        repr(PASSWORD),
        repr(PASSWORD.encode()),
        quote(PASSWORD, safe=""),
        repr({"said": json.dumps({"said": PASSWORD})}),
        repr(ValueError(f"said {[PASSWORD]}")),
    ],
)
def test_spellings(spelled):
    """A password with odd characters is found as JSON, URLs and `repr` write it."""
    shown = Redactor.of([PASSWORD]).text(f"it is {spelled}.")

    assert HIDDEN in shown
    assert "Gr" not in shown


def test_short_texts_are_no_secrets():
    """A local server's dummy key would otherwise vanish from every row."""
    assert Redactor.of(["ollama"]).text("ollama") == "ollama"


def test_the_longest_goes_first():
    """A key that begins like another one leaves no rest."""
    assert Redactor.of([KEY, KEY + "-and-more"]).text(f"{KEY}-and-more") == HIDDEN


def test_values():
    """Keys and items of JSON values are searched, and tuples stay tuples."""
    value = {f"a {KEY}": [KEY, 1, None, (KEY,)]}

    assert Redactor.of([KEY]).value(value) == {"a [secret]": [HIDDEN, 1, None, (HIDDEN,)]}


@given(
    secret=st.text(st.sampled_from("ab.…'\\"), min_size=SHORTEST_SECRET, max_size=20),
    around=st.text(st.sampled_from("ab.… '\\")),
)
def test_no_whole_secret_is_left(secret, around):
    """Whatever stands around it, the whole secret is gone."""
    assert secret not in Redactor.of([secret]).text(around + secret + around)


def test_logs(caplog):
    """Messages, arguments and tracebacks of log records are searched while the redactor is over them."""
    log = logging.getLogger("guest.http")
    header = base64.b64encode(KEY.encode()).decode()
    before = logging.getLogRecordFactory()

    with caplog.at_level(logging.DEBUG), Redactor.of([KEY, header]).over_logs():
        log.debug("sent %r", {"authorization": f"Basic {header}"})
        log.info("count %d", 5)
        try:
            raise ValueError(KEY)
        except ValueError:
            log.exception("broken")

    assert logging.getLogRecordFactory() is before
    assert [record.getMessage() for record in caplog.records] == [
        "sent {'authorization': 'Basic [secret]'}",
        "count 5",
        "broken",
    ]
    assert caplog.records[1].args == (5,)
    assert "ValueError: [secret]" in caplog.text
    assert KEY not in caplog.text


def test_a_factory_that_came_later_stays():
    """Another plugin's record factory is not taken away."""
    before = logging.getLogRecordFactory()
    try:
        with Redactor.of([KEY]).over_logs():
            later = functools.partial(before)
            logging.setLogRecordFactory(later)
        assert logging.getLogRecordFactory() is later
    finally:
        logging.setLogRecordFactory(before)
