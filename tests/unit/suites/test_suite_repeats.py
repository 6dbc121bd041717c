"""A suite's settings for repeats and known failures, and the errors for invalid ones."""

import json

import pytest

from pytest_openclaw.suites.load import parse_suite
from pytest_openclaw.values.prompts import KnownFailure

NAME = "benchmarks/prompts_x.json"
SMALL = {"target": "*smollm*", "reason": "too small"}


def parse(registry, **keys):
    text = json.dumps([{"id": "P1", "prompt": "Hi", **keys}])
    (prompt,) = parse_suite(text, format="json", name=NAME, registry=registry).prompts
    return prompt


@pytest.mark.parametrize(
    ("keys", "expected"),
    [
        pytest.param({}, (None, None), id="nothing"),
        pytest.param({"repeat": None, "pass": None, "xfail": None}, (None, None), id="null"),
        pytest.param({"repeat": 5}, (5, None), id="repeat"),
        pytest.param({"pass": "4 of 5"}, (5, 4), id="only-pass"),
        pytest.param({"pass": "5 of 5", "repeat": 5}, (5, 5), id="both-agree"),
        pytest.param({"pass": " 1  of 9999 "}, (9999, 1), id="blanks"),
    ],
)
def test_how_often(registry, keys, expected):
    """`pass` without `repeat` sets how often a prompt is asked; with only `repeat` each repeat is judged by itself."""
    prompt = parse(registry, **keys)

    assert (prompt.repeat, prompt.min_passes) == expected
    assert prompt.extra == {}


@pytest.mark.parametrize(
    ("written", "expected"),
    [
        pytest.param([SMALL], [("*smollm*", "too small", None)], id="list"),
        pytest.param(SMALL, [("*smollm*", "too small", None)], id="table"),
        pytest.param({"reason": "all"}, [("*", "all", None)], id="every-target"),
        pytest.param([{**SMALL, "strict": True}, {"reason": "x", "strict": False}], [("*smollm*", "too small", True), ("*", "x", False)], id="strict"),
        pytest.param([], [], id="none"),
    ],
)  # fmt: skip
def test_known_failures(registry, written, expected):
    """A table or a list of them; without a target they apply to all."""
    found = parse(registry, xfail=written).known_failures

    assert found == tuple(KnownFailure(target=t, reason=r, strict=s) for t, r, s in expected)
