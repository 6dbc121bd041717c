"""Data inside a page: no text in it can end its element, and none is changed by it."""

from __future__ import annotations

import json
import re

from hypothesis import given
from hypothesis import strategies as st

from pytest_openclaw.reports.html.page import element, fill
from pytest_openclaw.util.text import valid_value

VALUES = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False, allow_infinity=False) | st.text(),
    lambda inner: st.lists(inner, max_size=4) | st.dictionaries(st.text(), inner, max_size=4),
    max_leaves=12,
)


@given(value=VALUES)
def test_an_island_is_the_value_and_no_markup(value: object) -> None:
    """Whatever it contains: no tag, no entity, no invisible character; JSON gives it back."""
    written = element("page", value).partition(">")[2].removesuffix("</script>")

    assert not re.search("[<>&\x00-\x1f\x7f-\x9f\u2028\u2029\u202e]", written)
    assert json.loads(written) == valid_value(value)


def test_what_fills_a_template_is_not_filled_itself() -> None:
    """A style that contains the name of another placeholder stays unchanged."""
    assert fill({"a": "{{b}}", "b": "x{{a}}"}, "{{a}} {{b}}") == "{{b}} x{{a}}"
