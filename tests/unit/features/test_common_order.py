"""An order that is consistent with several lists."""

from __future__ import annotations

from itertools import pairwise

import pytest
from hypothesis import given
from hypothesis import strategies as st

from pytest_openclaw.features.merging import common_order, natural


@pytest.mark.parametrize(
    ("sequences", "ordered"),
    [
        pytest.param([["P3", "P1"], ["P1", "P2"]], ["P3", "P1", "P2"], id="one-after-the-other"),
        pytest.param([["P10"], ["P9"]], ["P9", "P10"], id="left-open-by-number"),
        pytest.param([["P1", "P3"], ["P2", "P4"]], ["P1", "P2", "P3", "P4"], id="interleaved"),
        pytest.param([["b", "a"], ["a", "b"]], ["a", "b"], id="contradiction"),
        pytest.param([["b", "a", "c"], ["a", "b"], ["0"]], ["0", "a", "b", "c"], id="contradiction-in-part"),
        pytest.param([[], ["a", "a"]], ["a"], id="once"),
    ],
)
def test_an_order_fits_all_lists(sequences: list[list[str]], ordered: list[str]) -> None:
    """The order of each list is kept; otherwise numbers and letters decide."""
    assert common_order(sequences, key=natural) == ordered


@given(st.lists(st.lists(st.sampled_from("abcdef"), unique=True), max_size=5), st.randoms())
def test_the_order_of_the_lists_makes_no_difference(sequences: list[list[str]], random: object) -> None:
    """The result has each item once, whatever the lists and their order."""
    ordered = common_order(sequences, key=natural)
    random.shuffle(sequences)  # type: ignore[attr-defined]

    assert sorted(ordered) == sorted({item for sequence in sequences for item in sequence})
    assert common_order(sequences, key=natural) == ordered


@given(st.permutations("abcdefg"), st.lists(st.sets(st.sampled_from("abcdefg")), max_size=5))
def test_parts_of_one_list_never_contradict_it(whole: list[str], parts: list[set[str]]) -> None:
    """Adjacent items of a part keep their order, if the parts come from one list."""
    sequences = [[item for item in whole if item in part] for part in parts]

    places = {item: n for n, item in enumerate(common_order(sequences, key=natural))}

    assert all(places[one] < places[other] for sequence in sequences for one, other in pairwise(sequence))


@pytest.mark.parametrize(
    ("lower", "higher"),
    [
        pytest.param("P2", "P10", id="numbers"),
        pytest.param("P2", "P2a", id="prefix"),
        pytest.param("P01", "P1", id="leading-nought"),
        pytest.param("1", "a", id="digit-first"),
        pytest.param("P" + "9" * 5000, "P1" + "0" * 5000, id="more-digits-than-int-reads"),
    ],
)
def test_numbers_count_as_numbers(lower: str, higher: str) -> None:
    """P2 comes before P10, and no two different texts are equal."""
    assert natural(lower) < natural(higher)
