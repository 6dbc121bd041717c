"""The notation of figures and foreign texts."""

from __future__ import annotations

import unicodedata

import pytest
from hypothesis import given
from hypothesis import strategies as st

from pytest_openclaw.reports.facts import full
from pytest_openclaw.reports.numbers import (
    columns,
    lines_of,
    one_line,
    render_count,
    render_duration,
    render_interval,
    render_ms,
    render_rate,
    render_usd,
    shorten,
)
from pytest_openclaw.stats.intervals import Interval


@pytest.mark.parametrize(
    ("milliseconds", "text"),
    [
        pytest.param(None, "–", id="no-data"),
        pytest.param(0, "0 ms", id="zero-is-a-measurement"),
        pytest.param(81.4, "81 ms", id="ms"),
        pytest.param(999.4, "999 ms", id="last-ms"),
        pytest.param(999.5, "1.0 s", id="first-s"),
        pytest.param(99_950, "100 s", id="no-decimals"),
    ],
)
def test_milliseconds(milliseconds: float | None, text: str) -> None:
    """A time has three figures and the unit that fits it."""
    assert render_ms(milliseconds) == text


@pytest.mark.parametrize(
    ("rate", "text"),
    [
        (None, "–"),
        (0.0, "0 %"),
        (1.0, "100 %"),
        (0.999, "99 %"),
        (0.29, "29 %"),
        (0.004, "1 %"),
    ],
)
def test_rates_are_cut(rate: float | None, text: str) -> None:
    """100 % means all and 0 % none, so nothing is rounded to them, and exact figures stay exact."""
    assert render_rate(rate) == text


@pytest.mark.parametrize(
    ("interval", "text"),
    [
        (None, "–"),
        (Interval(low=0.1375, high=0.4107), "13-41 %"),
        (Interval(low=0.0, high=1.0), "0-100 %"),
        (Interval(low=0.004, high=0.999), "1-99 %"),
        (Interval(low=0.796, high=0.9), "79-90 %"),
    ],
)
def test_intervals(interval: Interval | None, text: str) -> None:
    """An interval is two whole percentages; 0 and 100 mean exactly that, and 80 means that 80 is reached."""
    assert render_interval(interval) == text


def test_a_figure_has_its_interval() -> None:
    """A `?` says that there are too few cells for one."""
    assert full(1100, Interval(low=900, high=1449)) == "1.1 s (900 ms to 1.4 s)"
    assert full(100.4, None, render_count) == "100?"
    assert full(None, None) == "–"


@pytest.mark.parametrize(
    ("text", "width", "shown"),
    [
        pytest.param("abcdef", 6, "abcdef", id="fits"),
        pytest.param("abcdefg", 6, "abc…fg", id="even"),
        pytest.param("abcdefg", 5, "ab…fg", id="odd"),
        pytest.param("abc", 1, "…", id="nothing-but-the-mark"),
        pytest.param("", 0, "", id="empty"),
    ],
)
def test_shortening_keeps_both_ends(text: str, width: int, shown: str) -> None:
    """A long text loses its middle."""
    assert shorten(text, width) == shown


@pytest.mark.parametrize(
    ("text", "width"),
    [("abc", 3), ("日本", 4), ("Ａ", 2), ("é", 1), ("e\u0301", 1), ("😀", 2), ("ё", 1), ("", 0)],
    ids=["ascii", "japanese", "full-width", "composed", "combining", "emoji", "cyrillic", "empty"],
)
def test_columns_of_a_terminal(text: str, width: int) -> None:
    """Wide characters take two columns, combining ones none."""
    assert columns(text) == width


@given(text=st.text(), width=st.integers(min_value=1, max_value=90))
def test_one_line_is_one_line_that_fits(text: str, width: int) -> None:
    """Any text becomes one line within its columns and without control characters."""
    line = one_line(text, width)

    assert columns(line) <= width
    assert len(line) <= 4 * width
    assert not any(unicodedata.category(character) in {"Cc", "Cf", "Cs", "Zl", "Zp"} for character in line)


@given(text=st.text() | st.text("0 \u0300日", max_size=400), width=st.integers(min_value=8, max_value=90))
def test_wrapped_lines_fit(text: str, width: int) -> None:
    """Every line of a wrapped text fits."""
    lines = lines_of(text, width, "  ")

    assert lines
    assert all(columns(line) <= width for line in lines)


@pytest.mark.parametrize(
    ("usd", "text"),
    [
        (None, "–"),
        (0.0, "0.00 USD"),
        (1234.567, "1234.57 USD"),
        (0.5, "0.50 USD"),
        (0.04217, "0.0422 USD"),
        (1e-9, "0.000000001 USD"),
    ],
)
def test_money(usd: float | None, text: str) -> None:
    """Cents from a dollar on, and three significant digits below."""
    assert render_usd(usd) == text


@pytest.mark.parametrize(("seconds", "text"), [(99, "99 s"), (600, "10 min"), (9000, "2.5 h")])
def test_durations(seconds: float, text: str) -> None:
    """The unit is the one that a person would use."""
    assert render_duration(seconds) == text
