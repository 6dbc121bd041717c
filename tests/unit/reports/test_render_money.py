"""The notation of amounts of money and of time."""

from __future__ import annotations

import pytest

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
