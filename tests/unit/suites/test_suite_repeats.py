"""A suite's settings for repeats and known failures, and the errors for invalid ones."""

from __future__ import annotations

import json

import pytest
from hypothesis import given
from hypothesis import strategies as st

from pytest_openclaw.suites import definition, known_failure_of, parse_suite
from pytest_openclaw.util.errors import SuiteError
from pytest_openclaw.values.prompts import KnownFailure
from pytest_openclaw.values.requests import Target

NAME = "benchmarks/prompts_x.json"
SMALL = {"target": "*smollm*", "reason": "too small"}


def parse(registry, **keys):
    """Return the prompt of a suite that has one, with these keys."""
    text = json.dumps([{"id": "P1", "prompt": "Hi", **keys}])
    (prompt,) = parse_suite(text, format="json", name=NAME, registry=registry).prompts
    return prompt


@pytest.mark.parametrize(
    ("keys", "expected"),
    [
        pytest.param({}, (None, None), id="nothing"),
        pytest.param({"repeat": None, "pass": None, "xfail": None}, (None, None), id="null"),
        pytest.param({"repeat": 5}, (5, None), id="repeat"),
        pytest.param({"pass": "4 of 5"}, (5, 4), id="pass-alone"),
        pytest.param({"pass": "5 of 5", "repeat": 5}, (5, 5), id="both-agree"),
        pytest.param({"pass": " 1  of 9999 "}, (9999, 1), id="blanks"),
    ],
)
def test_how_often(registry, keys, expected):
    """`pass` alone sets how often a prompt is asked; with `repeat` alone each repeat is judged by itself."""
    prompt = parse(registry, **keys)

    assert (prompt.repeat, prompt.min_passes) == expected
    assert prompt.extra == {}


@pytest.mark.parametrize(
    ("written", "expected"),
    [
        pytest.param([SMALL], [("*smollm*", "too small", None)], id="list"),
        pytest.param(SMALL, [("*smollm*", "too small", None)], id="table"),
        pytest.param({"reason": " all "}, [("*", "all", None)], id="every-target"),
        pytest.param([{**SMALL, "strict": True}, {"reason": "x", "strict": False}],
                     [("*smollm*", "too small", True), ("*", "x", False)], id="strict"),
        pytest.param([], [], id="none"),
    ],
)  # fmt: skip
def test_known_failures(registry, written, expected):
    """A table or a list of them; without a target they apply to all."""
    found = parse(registry, xfail=written).known_failures

    assert found == tuple(KnownFailure(target=t, reason=r, strict=s) for t, r, s in expected)


@pytest.mark.parametrize(
    ("keys", "message"),
    [
        pytest.param({"repeat": 0}, "repeat is 0. Write a whole number from 1 to 9999, such as 5.", id="zero"),
        pytest.param({"repeat": True}, "repeat is true. Write a whole number", id="boolean"),
        pytest.param({"repeat": 2.5}, "repeat is 2.5. Write a whole number", id="fraction"),
        pytest.param({"repeat": "5"}, 'repeat is "5". Write a whole number', id="text"),
        pytest.param({"repeat": 10_000}, "repeat is 10000. Write a whole number", id="too-many"),
        pytest.param({"pass": 4}, 'pass is a number, not a string. Write for example "4 of 5".', id="pass-number"),
        pytest.param({"pass": "4/5"}, 'pass is "4/5". Write how many repeats of how many must pass, at least 1', id="pass-slash"),
        pytest.param({"pass": "0 of 5"}, 'pass is "0 of 5". Write how many', id="pass-none"),
        pytest.param({"pass": "6 of 5"}, 'pass is "6 of 5". Write how many', id="pass-more-than-all"),
        pytest.param({"pass": "-1 of 5"}, 'pass is "-1 of 5". Write how many', id="pass-negative"),
        pytest.param({"pass": "4 of 99999"}, 'pass is "4 of 99999". Write how many', id="pass-too-many"),
        pytest.param({"pass": "4 of 5", "repeat": 3}, 'repeat is 3, but pass is "4 of 5". Leave repeat out, or write 5.', id="disagreement"),
        pytest.param({"xfail": True}, 'xfail is a boolean, not a table. Write [{ target = "*smollm*", reason =', id="xfail-boolean"),
        pytest.param({"xfail": ["*smollm*"]}, 'xfail holds "*smollm*", which is a string. Write [{', id="xfail-text"),
        pytest.param({"xfail": [{**SMALL, "targets": "x"}]}, 'xfail has "targets". Did you mean target? Its keys are', id="xfail-key"),
        pytest.param({"xfail": {"target": "*"}}, "xfail has no reason. Say why it is expected", id="no-reason"),
        pytest.param({"xfail": {"reason": " "}}, 'xfail has a reason " ". Say in words why', id="blank-reason"),
        pytest.param({"xfail": {"reason": 5}}, "xfail has a reason 5. Say in words why", id="reason-number"),
        pytest.param({"xfail": {**SMALL, "target": ""}}, 'xfail has a target "". Write a target or a glob', id="blank-target"),
        pytest.param({"xfail": {**SMALL, "target": ["a"]}}, 'xfail has a target ["a"]. Write a target', id="target-list"),
        pytest.param({"xfail": {**SMALL, "strict": "yes"}}, 'xfail has strict "yes". Write true or false.', id="strict-text"),
    ],
)  # fmt: skip
def test_an_invalid_setting_is_reported(registry, keys, message):
    """The message has file, prompt, key and hint."""
    with pytest.raises(SuiteError) as caught:
        parse(registry, **keys)

    assert str(caught.value).startswith(f"{NAME}: prompt P1: {message}")


@pytest.mark.parametrize(
    ("glob", "fits"),
    [
        pytest.param("*smollm*", True, id="part"),
        pytest.param("LLAMA_CPP/*", True, id="case"),
        pytest.param("llama_cpp/SmolLM2:135m@low", True, id="label"),
        pytest.param("smollm*", False, id="whole-label-counts"),
        pytest.param("*@high", False, id="another-level"),
    ],
)
def test_a_target_is_a_glob_over_the_label(registry, glob, fits):
    """It matches provider, model and thinking level, ignoring case."""
    prompt = parse(registry, xfail={"target": glob, "reason": "x"})
    target = Target(provider="llama_cpp", model="SmolLM2:135m", thinking_level="low")

    assert (known_failure_of(prompt, target) is not None) == fits


@given(
    repeat=st.none() | st.integers(1, 9999),
    share=st.none() | st.integers(1, 9999).flatmap(lambda n: st.tuples(st.integers(1, n), st.just(n))),
    strict=st.none() | st.booleans(),
)
def test_a_definition_reads_as_it_was(registry, repeat, share, strict):
    """A prompt's definition in `config.json` has the same meaning when it is read as a suite again."""
    keys = {"repeat": repeat, "xfail": {**SMALL, "strict": strict}}
    if share is not None:
        keys |= {"pass": "{} of {}".format(*share), "repeat": None}
    prompt = parse(registry, **keys)
    kept = definition(prompt)

    again = parse(registry, **{key: kept[key] for key in ("repeat", "pass", "xfail")})

    assert definition(again) == kept
    assert again.known_failures == prompt.known_failures
