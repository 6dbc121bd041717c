"""Prompts as stored in `config.json`."""

from dataclasses import fields, replace

import pytest

from pytest_openclaw.suites.cells import definition
from pytest_openclaw.values.prompts import KEYS, Prompt
from pytest_openclaw.values.replies import Turn


def test_every_key_is_there_with_its_default():
    """A definition has all keys of a prompt, the rule as it was written, defaults included."""
    prompt = Prompt(suite="benchmarks/prompts_x.toml", id="P1", name="hello", prompt="Hi", validator=None)

    assert definition(prompt) == dict.fromkeys(KEYS) | {
        "suite": "benchmarks/prompts_x.toml",
        "id": "P1",
        "name": "hello",
        "prompt": "Hi",
        "validator": {"type": "noop"},
        "tags": [],
        "max_output_tokens": 1024,
        "extra": {},
    }


def test_every_field_is_kept():
    """No field of a prompt is missing in its definition, under the keys of a suite."""
    in_other_words = {"min_passes": "pass", "known_failures": "xfail"}
    apart = {"validator_spec", "tools_spec", "surface", "listed", "is_private"}
    named = {one.name for one in fields(Prompt)} - apart
    hashes = {"images_sha256", "tools_sha256"}

    assert {in_other_words.get(name, name) for name in named} | hashes == {*KEYS}


def test_a_private_prompt_has_hashes_of_its_texts():
    """They change with the texts, and the texts are not in the definition."""
    turns = (Turn(user="my secret plan"), Turn(text="a plan"))
    prompt = Prompt(
        suite="s", id="P1", name="n", prompt="my secret plan", system="my secret plan", validator=None,
        messages=turns, history=turns[1:], tools_spec=["read"], is_private=True,
    )  # fmt: skip

    kept, other = definition(prompt), definition(replace(prompt, messages=turns[:1]))

    assert "plan" not in str(kept)
    assert {name for name in kept if kept[name] != other[name]} == {"messages"}


def test_a_value_that_json_cannot_represent_is_refused():
    """A definition never becomes a file that JSON readers reject."""
    prompt = Prompt(suite="s", id="P1", name="n", prompt="p", validator=None, extra={"x": float("nan")})

    with pytest.raises(ValueError, match="not JSON compliant"):
        definition(prompt)
