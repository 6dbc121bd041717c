"""The notation of figures and foreign texts."""

import unicodedata

import pytest
from hypothesis import given
from hypothesis import strategies as st

from pytest_openclaw.reports.numbers import (
    columns,
    lines_of,
    one_line,
    render_duration,
    render_interval,
    render_ms,
    render_rate,
    render_usd,
    shorten,
)
from pytest_openclaw.stats.intervals import Interval

FIGURES = {
    # A time has three figures and the unit that fits it; zero is a measurement.
    render_ms: {None: "–", 0: "0 ms", 81.4: "81 ms", 999.4: "999 ms", 999.5: "1.0 s", 99_950: "100 s"},
    # 100 % means all and 0 % none, so nothing is rounded to them, and exact figures stay exact.
    render_rate: {None: "–", 0.0: "0 %", 1.0: "100 %", 0.999: "99 %", 0.29: "29 %", 0.004: "1 %"},
    # Cents from a dollar on, and three significant digits below.
    render_usd: {None: "–", 0.0: "0.00 USD", 1234.567: "1234.57 USD", 0.5: "0.50 USD", 0.04217: "0.0422 USD"},
    render_duration: {99: "99 s", 600: "10 min", 9000: "2.5 h"},
}


@pytest.mark.parametrize("render", FIGURES, ids=lambda render: render.__name__)
def test_figures(render):
    """They have the unit and the digits that a person would use."""
    assert {value: render(value) for value in FIGURES[render]} == FIGURES[render]
    assert render_usd(1e-9) == "0.000000001 USD"


@pytest.mark.parametrize(
    ("low", "high", "text"),
    [(0.1375, 0.4107, "13-41 %"), (0.0, 1.0, "0-100 %"), (0.004, 0.999, "1-99 %"), (0.796, 0.9, "79-90 %")],
)
def test_intervals(low, high, text):
    """An interval is two whole percentages; 0 and 100 mean exactly that, and 80 means that 80 is reached."""
    assert render_interval(Interval(low=low, high=high)) == text
    assert render_interval(None) == "–"


@pytest.mark.parametrize(
    ("text", "width", "shown"),
    [
        ("abcdef", 6, "abcdef"),
        ("abcdefg", 6, "abc…fg"),
        ("abcdefg", 5, "ab…fg"),
        ("abc", 1, "…"),
        ("", 0, ""),
    ],
)
def test_shortening_keeps_both_ends(text, width, shown):
    """A long text loses its middle."""
    assert shorten(text, width) == shown


@pytest.mark.parametrize(
    ("text", "width"),
    [("abc", 3), ("日本", 4), ("Ａ", 2), ("é", 1), ("e\u0301", 1), ("😀", 2), ("ё", 1), ("", 0)],
    ids=["ascii", "japanese", "full-width", "composed", "combining", "emoji", "cyrillic", "empty"],
)
def test_columns_of_a_terminal(text, width):
    """Wide characters take two columns, combining ones none."""
    assert columns(text) == width


@given(text=st.text(), width=st.integers(min_value=1, max_value=90))
def test_one_line_is_one_line_that_fits(text, width):
    """Any text becomes one line within its columns and without control characters."""
    line = one_line(text, width)

    assert columns(line) <= width
    assert len(line) <= 4 * width
    assert not any(unicodedata.category(character) in {"Cc", "Cf", "Cs", "Zl", "Zp"} for character in line)


@given(text=st.text() | st.text("0 \u0300日", max_size=400), width=st.integers(min_value=8, max_value=90))
def test_wrapped_lines_fit(text, width):
    """Every line of a wrapped text fits."""
    lines = lines_of(text, width, "  ")

    assert lines
    assert all(columns(line) <= width for line in lines)
