"""The parsers of option values."""

from __future__ import annotations

from math import inf

import pytest

from pytest_openclaw.options import matching, number, on_off, one_of

SECONDS = number(lambda seconds: 0 < seconds < inf, "give seconds")
WHOLE = matching("[1-9][0-9]{0,3}", int, "give a number")
KIND = one_of("cells", "gate")


@pytest.mark.parametrize(
    ("parse", "text", "value"),
    [
        pytest.param(SECONDS, "300", 300.0, id="number"),
        pytest.param(SECONDS, "1e-3", 0.001, id="small-number"),
        pytest.param(WHOLE, "9999", 9999, id="whole-number"),
        pytest.param(KIND, "gate", "gate", id="word"),
        pytest.param(on_off, "on", True, id="on"),
        pytest.param(on_off, "off", False, id="off"),
    ],
)
def test_a_value(parse, text, value):
    """A text that fits becomes a value."""
    assert parse(text) == value


@pytest.mark.parametrize(
    ("parse", "text", "hint"),
    [
        *((SECONDS, text, "give seconds") for text in ("0", "-1", "inf", "nan", "1e400", "", "many")),
        *((WHOLE, text, "give a number") for text in ("0", "01", "10000", "1.5", "+1", " 1", "1\n", "٣", "")),
        *((KIND, text, "give cells or gate") for text in ("", "Gate", "cells|gate", "cells,gate")),
        *((on_off, text, "give on or off") for text in ("", "true", "ON")),
    ],
)
def test_no_value(parse, text, hint):
    """Any other text is an error that says what to give."""
    with pytest.raises(ValueError, match=f"^{hint}$"):
        parse(text)
