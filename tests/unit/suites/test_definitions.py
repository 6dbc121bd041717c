"""Prompts as stored in `config.json`."""

from __future__ import annotations

from dataclasses import fields, replace

import pytest

from pytest_openclaw.suites.cells import definition
from pytest_openclaw.values.prompts import Prompt
from pytest_openclaw.values.replies import Image, Turn


def test_every_field_is_there_with_its_default():
    """A definition has all fields of a prompt, the rule as it was written, defaults included."""
    prompt = Prompt(suite="benchmarks/prompts_x.toml", id="P1", name="hello", prompt="Hi", validator=None)

    assert definition(prompt) == {
        "suite": "benchmarks/prompts_x.toml",
        "id": "P1",
        "name": "hello",
        "prompt": "Hi",
        "validator": {"type": "noop"},
        "expected_tool_calls": None,
        "category": None,
        "tags": [],
        "system": None,
        "max_output_tokens": 1024,
        "timeout_s": None,
        "repeat": None,
        "pass": None,
        "xfail": None,
        "variant_of": None,
        "extra": {},
    }
    image = Image(path="a.png", media_type="image/png", data=b"")
    whole = replace(
        prompt,
        tools=(),
        tools_spec=[],
        messages=(Turn(user="Hi"),),
        turns=("Bye",),
        images=(image,),
        role="title",
    )
    with_tools = definition(whole)
    named = {field.name for field in fields(Prompt)} - {"validator_spec", "tools_spec", "surface", "listed"}
    as_written = {"min_passes": "pass", "known_failures": "xfail"}
    if_set = {"probe", "twin_of", "padding_tokens", "pressure_of"}
    assert set(with_tools) | if_set == {as_written.get(name, name) for name in named} | {
        "tools_sha256",
        "images_sha256",
    }


def test_a_value_that_json_cannot_represent_is_refused():
    """A definition never becomes a file that JSON readers reject."""
    prompt = Prompt(suite="s", id="P1", name="n", prompt="p", validator=None, extra={"x": float("nan")})

    with pytest.raises(ValueError, match="not JSON compliant"):
        definition(prompt)
