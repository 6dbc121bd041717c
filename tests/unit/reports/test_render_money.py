"""The notation of amounts of money and of time."""

from __future__ import annotations

import pytest

from pytest_openclaw.features.dry_run import Forecast, Line, Sum, render_forecast
from pytest_openclaw.reports.numbers import render_duration, render_usd


@pytest.mark.parametrize(
    ("usd", "text"),
    [
        (None, "–"),
        (0.0, "0.00 USD"),
        (12.4, "12.40 USD"),
        (1234.567, "1234.57 USD"),
        (1.0, "1.00 USD"),
        (0.5, "0.50 USD"),
        (0.999, "0.999 USD"),
        (0.42, "0.42 USD"),
        (0.04217, "0.0422 USD"),
        (0.00123456, "0.00123 USD"),
        (0.000012, "0.000012 USD"),
        (1e-9, "0.000000001 USD"),
    ],
)
def test_render_usd(usd: float | None, text: str) -> None:
    """Cents from a dollar on, and three significant digits below."""
    assert render_usd(usd) == text


@pytest.mark.parametrize(
    ("seconds", "text"),
    [(8, "8 s"), (99, "99 s"), (600, "10 min"), (9000, "2.5 h")],
)  # fmt: skip
def test_render_duration(seconds: float, text: str) -> None:
    """The unit is that which a person would use."""
    assert render_duration(seconds) == text


def line(label: str, value: float, n_known: int = 4) -> Line:
    """A target of four cells."""
    known = Sum(value=value, n_known=n_known, n=4)
    return Line(label=label, n_cells=4, n_calls=9, input_tokens=known, output_tokens=known, seconds=known, usd=known)  # fmt: skip


def test_a_forecast_fits_the_width() -> None:
    """A long name loses its middle; a partial sum is a lower bound, an unknown one a question mark."""
    lines = render_forecast(
        Forecast(
            lines=[line("p/" + "long" * 20, 1_234_567.0), line("p/部分", 3.0, 2), line("p/none", 0.0, 0)],
            based_on={"20261122_040737": 6},
            budget_usd=5.0,
            notes=[
                "a note that is a little longer than what fits on one line of eighty columns, so it is broken"
            ],
        )
    )

    assert max(map(len, lines)) <= 80
    assert lines[2].split() == ["p/部分", "4", "9", ">3", ">3", ">3", "s", ">3.00", "USD"]
    assert lines[3].split() == ["p/none", "4", "9", "?", "?", "?", "?"]
    assert lines[4].startswith("all ")
    assert "based on          medians of 20261122_040737 (6 of 12 cells)" in lines
    assert any(text.startswith("budget            5.00 USD is less than") for text in lines)


@pytest.mark.parametrize("width", [60, 140])
def test_a_forecast_is_as_wide_as_the_terminal(width: int) -> None:
    """A narrow terminal gets shorter names and lines; a wide one cuts no name."""
    name = "p/" + "long" * 10

    lines = render_forecast(Forecast(lines=[line(name, 3.0)], notes=["a note " * 12]), width)

    assert max(map(len, lines)) <= width
    assert (name in lines[1]) is (width == 140)


@pytest.mark.parametrize(
    ("usd", "n_known", "text"),
    [
        pytest.param(6.0, 4, "5.00 USD is less than the estimate", id="too-little"),
        pytest.param(6.0, 2, "5.00 USD is less than the estimate", id="too-little-for-what-is-known"),
        pytest.param(4.0, 2, "5.00 USD; the cost of some cells is not known", id="unknown"),
        pytest.param(4.0, 4, "5.00 USD is enough, by the estimate", id="enough"),
    ],
)
def test_a_budget_is_compared_with_the_estimate(usd: float, n_known: int, text: str) -> None:
    """The table ends with whether the budget is sufficient."""
    lines = render_forecast(Forecast(lines=[line("p/m", usd, n_known)], budget_usd=5.0))

    assert text in " ".join(lines)
