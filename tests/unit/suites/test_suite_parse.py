"""The content of a suite file, and the errors for an invalid one."""

import json

import pytest
from hypothesis import given
from hypothesis import strategies as st

from pytest_openclaw.suites.cells import definition
from pytest_openclaw.suites.load import parse_suite
from pytest_openclaw.util.errors import SuiteError
from pytest_openclaw.values.prompts import Prompt, part_keys

NAME = "benchmarks/prompts_x.json"
NO_JSON = (
    "has a value that JSON cannot represent."
    " Write whole characters and finite numbers, and put dates in quotes."
)
ID_HINT = ", which pytest's node ids cannot contain. Write letters, digits, _ or -, such as P1."
SUITE_KEYS = ", ".join(["prompts", "named_only", *part_keys()])
JSON_FORM = 'Write a list of prompts: [{"id": "P1", "prompt": "…", "validator": {…}}].'
TOML_FORM = "Write each prompt below a line [[prompts]], with id, prompt and validator."

FULL_TOML = """
[[prompts]]
id = "P1"
name = "greeting"
prompt = '''
Say hello.
'''
validator = { type = "says", word = "hello" }
expected_tool_calls = ["free", { name = "du" }]
category = "chat"
tags = ["short", "polite"]
system = "Be kind."
timeout_s = 2.5
max_output_tokens = 64
variant = "enhanced"
x_weights = { a = [1, 2] }
"""


def parse(entries, registry):
    return parse_suite(json.dumps(entries), format="json", name=NAME, registry=registry)


def read(text, registry, form="json"):
    try:
        return parse_suite(text, format=form, name=NAME, registry=registry).prompts, ""
    except SuiteError as error:
        return (), str(error)


def complaint(text, registry, form="json"):
    with pytest.raises(SuiteError) as caught:
        parse_suite(text, format=form, name=NAME, registry=registry)
    return str(caught.value)


def test_every_key_of_a_prompt_arrives(registry):
    """A TOML suite gives prompts with all their keys; those without a meaning here are in `extra`."""
    suite = parse_suite(FULL_TOML, format="toml", name="benchmarks/prompts_x.toml", registry=registry)

    (prompt,) = suite.prompts
    assert suite.path == prompt.suite == "benchmarks/prompts_x.toml"
    assert (prompt.id, prompt.name, prompt.prompt) == ("P1", "greeting", "Say hello.\n")
    assert (prompt.validator.type, prompt.validator_spec) == ("says", {"type": "says", "word": "hello"})
    assert prompt.expected_tool_calls == ("free", "du")
    assert (prompt.category, prompt.tags, prompt.system) == ("chat", ("short", "polite"), "Be kind.")
    assert (prompt.timeout_s, prompt.max_output_tokens) == (2.5, 64)
    assert prompt.extra == {"variant": "enhanced", "x_weights": {"a": [1, 2]}}


@pytest.mark.parametrize(
    "absent",
    [
        pytest.param({}, id="absent"),
        pytest.param({"validator": {}, "name": ""}, id="empty"),
        pytest.param(
            dict.fromkeys(
                [
                    "name",
                    "validator",
                    "expected_tool_calls",
                    "category",
                    "tags",
                    "system",
                    "timeout_s",
                    "max_output_tokens",
                    "tools",
                ]
            ),
            id="null",
        ),
    ],
)
def test_id_and_prompt_are_enough(absent, registry):
    """Without further keys a prompt is named after its id, judged by noop, and has the defaults."""
    (prompt,) = parse([{"id": "P1", "prompt": "Hi", **absent}], registry).prompts

    expected = Prompt(suite=NAME, id="P1", name="P1", prompt="Hi", validator=prompt.validator)
    assert prompt == expected
    assert prompt.validator.type == "noop"


@pytest.mark.parametrize("key", ["owner", "variant", "base_prompt", "promptly"])
def test_a_prompt_file_of_the_original_harness_has_further_keys(key, registry):
    """In JSON, a key that resembles none that the entry lacks is kept."""
    (prompt,) = parse([{"id": "P1", "prompt": "Hi", key: {"n": 1}}], registry).prompts

    assert prompt.extra == {key: {"n": 1}}


@pytest.mark.parametrize(
    ("key", "hint"),
    [("probes", "probe"), ("Validators", "validator"), ("turn", "turns"), ("systems_text", "system")],
)
def test_a_misspelt_key_in_json(key, hint, registry):
    """A key that resembles one that the entry lacks is an error, as in TOML."""
    error = complaint(json.dumps([{"id": "P1", "prompt": "Hi", key: "x"}]), registry)

    assert error.endswith(
        f'has the unknown key "{key}". Did you mean {hint}? A key of your own begins with x_.'
    )


def test_keys_of_the_author_are_free_in_all_tables(registry):
    """A key that begins with `x_` changes nothing, and is kept for `config.json`."""
    noted = {
        "files": {"x_1.txt": "kept"},
        "x_by": "me",
        "commands": [{"pattern": "df", "x_why": 1}],
        "answers": [{"tool": "read", "error": "busy", "x_n": []}],
        "env": {"x_y": "z"},
    }
    tool = {"name": "t", "parameters": {"type": "object", "properties": {"x_at": {}}}, "x_from": "lab"}
    entry = {"id": "P1", "prompt": "Hi", "tools": [tool], "world": noted, "x_a": [1]}

    (prompt,) = parse([entry], registry).prompts

    assert (prompt.world.files, prompt.world.env) == ({"x_1.txt": "kept"}, {"x_y": "z"})
    assert (prompt.world.commands[0].pattern, prompt.world.answers[0].error) == ("df", "busy")
    assert prompt.tools[0].parameters["properties"] == {"x_at": {}}
    assert definition(prompt)["extra"] == {"x_a": [1], "world": noted}
    assert definition(prompt)["tools"] == [tool]


@pytest.mark.parametrize(
    "text",
    [
        pytest.param('[{"id": "P1", "prompt": "Hé"}]', id="a-list"),
        pytest.param('{"prompts": [{"id": "P1", "prompt": "Hé"}]}', id="an-object"),
        pytest.param('\ufeff[{"id": "P1", "prompt": "Hé"}]', id="byte-order-mark"),
        pytest.param('[{"id": "P1", "prompt": "Hé"}]'.encode(), id="bytes"),
        pytest.param('[{"id": "P1", "prompt": "Hé"}]'.encode("utf-8-sig"), id="bytes-with-a-mark"),
        pytest.param('[\r\n{"id": "P1",\r\n"prompt": "H\\u00e9"}]\r\n', id="crlf-and-escapes"),
    ],
)
def test_json_comes_in_these_forms(text, registry):
    """A JSON suite is a list of prompts or an object with one, as text or as UTF-8 bytes."""
    suite = parse_suite(text, format="json", name=NAME, registry=registry)

    assert [(prompt.id, prompt.prompt) for prompt in suite.prompts] == [("P1", "Hé")]


@pytest.mark.parametrize(
    ("entry", "expected"),
    [
        ({"prompt": "p"}, 'no. 1: has no "id". Write for example id = "P1".'),
        ({"id": None, "prompt": "p"}, 'no. 1: id is null, not a text. Write for example id = "P1".'),
        ({"id": 7, "prompt": "p"}, 'no. 1: id is 7, not a text. Write for example id = "P1".'),
        ({"id": " ", "prompt": "p"}, 'no. 1: id is blank. Write for example id = "P1".'),
        ({"id": "P 1", "prompt": "p"}, f'no. 1: id is "P 1"{ID_HINT}'),
        ({"id": "P\x1b1", "prompt": "p"}, f'no. 1: id is "P\\u001b1"{ID_HINT}'),
        ({"id": "P[1", "prompt": "p"}, f'no. 1: id is "P[1"{ID_HINT}'),
        ({"id": "P1]", "prompt": "p"}, f'no. 1: id is "P1]"{ID_HINT}'),
        ({"id": "a::b", "prompt": "p"}, f'no. 1: id is "a::b"{ID_HINT}'),
        ({"id": "a/b", "prompt": "p"}, f'no. 1: id is "a/b"{ID_HINT}'),
        ({"id": "P1"}, 'P1: has no "prompt". Write the text to send to the model.'),
        ({"id": "P1", "prompt": None}, 'P1: has no "prompt". Write the text to send to the model.'),
        ({"id": "P1", "prompt": " "}, 'P1: prompt is blank. Write for example prompt = "What is 2 + 2?".'),
        ({"id": "P1", "prompt": 5}, 'P1: prompt is 5, not a text. Write for example prompt = "What is 2 + 2?".'),
        ("P1", 'no. 1: is "P1", not an object. Write an object with id, prompt and validator.'),
        (None, "no. 1: is null, not an object. Write an object with id, prompt and validator."),
    ],
    ids=repr,
)  # fmt: skip
def test_an_entry_without_a_usable_id_or_prompt(entry, expected, registry):
    """A bad id is reported by the entry's position, a bad prompt text by its id."""
    assert complaint(json.dumps([entry]), registry) == f"{NAME}: prompt {expected}"


@pytest.mark.parametrize(
    ("form", "text", "expected"),
    [
        # A value that a row or `config.json` could not hold is refused in any place.
        pytest.param("json", '[{"id": "P1", "prompt": "a", "timeout_s": NaN}]', f"prompt no. 1: {NO_JSON}", id="nan"),
        pytest.param("json", '[{"id": "P1", "prompt": "a", "x": [{"y z": 1e999}]}]', f"prompt no. 1: {NO_JSON}", id="overflow-inside"),
        pytest.param("json", '[{"id": "P1", "prompt": "half a face: \\ud83d"}]', f"prompt no. 1: {NO_JSON}", id="lone-surrogate"),
        pytest.param("json", '[{"id": "P1", "prompt": "a", "\\udc00": 1}]', f"prompt no. 1: {NO_JSON}", id="lone-surrogate-in-a-key"),
        pytest.param("toml", '[[prompts]]\nid = "P1"\nprompt = "a"\nsince = 2026-02-13\n', f"prompt no. 1: {NO_JSON}", id="date"),
        # A suite needs a non-empty list of prompts.
        pytest.param("json", "", f"has no prompts. {JSON_FORM}", id="empty"),
        pytest.param("json", "[]", f"has no prompts. {JSON_FORM}", id="empty-list"),
        pytest.param("json", '{"prompts": []}', f"has no prompts. {JSON_FORM}", id="empty-list-in-an-object"),
        pytest.param("json", '{"cases": []}', f"cases is an unknown key. Its keys are {SUITE_KEYS}. {JSON_FORM}", id="object-without-prompts"),
        pytest.param("json", '{"prompts": {"id": "P1"}}', f'prompts is {{"id": "P1"}}, not a list. {JSON_FORM}', id="prompts-an-object"),
        pytest.param("json", '"P1"', f'it is "P1", not a table. {JSON_FORM}', id="string"),
        pytest.param("json", "null", f"it is null, not a table. {JSON_FORM}", id="null"),
        pytest.param("toml", "# nothing yet\n", f"has no prompts. {TOML_FORM}", id="comment-only"),
        pytest.param("toml", '[prompts]\nid = "P1"\n', f'prompts is {{"id": "P1"}}, not a list. {TOML_FORM}', id="one-bracket"),
        pytest.param("toml", '[[prompts]]\nid = "P1"\nprompt = "a"\n[[prompt]]\nid = "P2"\n', f'prompt is an unknown key. Did you mean prompts? Its keys are {SUITE_KEYS}. {TOML_FORM}', id="misspelt-heading"),
        pytest.param("json", b'[{"prompt": "caf\xe9"}]', "is not UTF-8. Save the file as UTF-8.", id="latin-1"),
        pytest.param("json", '[{"id": "P1"}]'.encode("utf-16"), "is not UTF-8. Save the file as UTF-8.", id="utf-16"),
    ],
)  # fmt: skip
def test_a_file_that_is_refused(form, text, expected, registry):
    """Each problem of the whole file has its message, with the form to write."""
    assert complaint(text, registry, form=form) == f"{NAME}: {expected}"


@pytest.mark.parametrize(
    ("form", "text", "what"),
    [
        pytest.param("toml", '[[prompts]]\nid = "P1"\nid = "P2"\n', "(at line 3, column 10)", id="key-twice"),
        pytest.param("toml", "[[prompts]]\nid = P1\n", "Invalid value (at line 2, column 6)", id="no-quotes"),
        pytest.param("toml", "x = " + "[" * 5000 + "]" * 5000, "", id="too-deep"),
        pytest.param("json", "[" * 200_000, "recursion", id="too-deep-json"),
        pytest.param("json", "[" + "1" * 9000 + "]", "limit", id="number-that-python-refuses"),
        pytest.param("json", '[{"id": "P1",}]', "line 1 column", id="comma"),
    ],
)  # fmt: skip
def test_a_syntax_error_names_its_line(form, text, what, registry):
    """Line and column come from the reader, the hint from us."""
    said = complaint(text, registry, form=form)

    assert said.startswith(f"{NAME}: is not {form.upper()}: ")
    assert what in said


def test_all_errors_are_reported_at_once(registry):
    """One reading reports every error of a suite, one per line, in the order of the file."""
    entries = [
        {"id": "P1", "prompt": "a", "tags": 1, "timeout_s": 0},
        {"id": "P1"},
        7,
        {"id": "P4", "prompt": "fine"},
    ]

    assert complaint(json.dumps(entries), registry).splitlines() == [
        f'{NAME}: prompt P1: tags is 1, not a list. Write for example tags = ["router"].',
        f"{NAME}: prompt P1: timeout_s is 0, not a number > 0. Write for example timeout_s = 60.",
        f'{NAME}: prompt no. 2: id "P1" is the id of another prompt too. Give each its own id.',
        f"{NAME}: prompt no. 3: is 7, not an object. Write an object with id, prompt and validator.",
    ]


@pytest.mark.parametrize(
    ("faults", "last"), [(20, "prompt no. 20: "), (21, "and 1 more."), (500, "and 480 more.")]
)
def test_at_most_twenty_errors_are_listed(faults, last, registry):
    """Beyond twenty errors the rest is counted."""
    lines = complaint(json.dumps([None] * faults), registry).splitlines()

    assert len(lines) == min(faults, 21)
    assert lines[-1].startswith(f"{NAME}: {last}")


@given(text=st.text() | st.binary(), form=st.sampled_from(["toml", "json"]))
def test_any_text_is_a_suite_or_an_error_that_names_the_file(text, form, registry):
    """No content of a file leads to anything but a suite or a `SuiteError`."""
    prompts, said = read(text, registry, form)

    assert bool(prompts) is not said.startswith(f"{NAME}: ")


json_values = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(st.characters()),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(), inner, max_size=3),
    max_leaves=6,
)
known_keys = st.sampled_from(
    [
        "id",
        "name",
        "prompt",
        "validator",
        "tags",
        "category",
        "system",
        "timeout_s",
        "max_output_tokens",
        "expected_tool_calls",
    ]
)


@given(
    entries=st.lists(
        st.dictionaries(known_keys | st.text(st.characters()), json_values), min_size=1, max_size=3
    )
)
def test_whatever_is_accepted_can_be_kept(entries, registry):
    """Prompts that pass are unique and have a JSON definition; all others are refused with their place."""
    prompts, said = read(json.dumps(entries), registry)

    assert all(line.startswith(f"{NAME}: ") for line in said.splitlines())
    assert len({prompt.id for prompt in prompts}) == (0 if said else len(entries))
    assert [definition(prompt)["id"] for prompt in prompts] == [prompt.id for prompt in prompts]


def test_a_variant_names_the_prompt_that_it_asks_in_other_words(registry):
    """A prompt of its suite, or of a suite next to it, which need not be part of the session."""
    entries = [
        {"id": "V", "prompt": "a", "variant_of": "P"},
        {"id": "P", "prompt": "b"},
        {"id": "W", "prompt": "c", "variant_of": "prompts_other.toml::P7"},
    ]

    own, plain, other = parse(entries, registry).prompts

    assert (own.variant_of, plain.variant_of) == (f"{NAME}::P", None)
    assert other.variant_of == "benchmarks/prompts_other.toml::P7"


def test_a_twin_names_a_probe_of_its_suite(registry):
    """A twin may come before its probe; a prompt that is not a probe has no twin."""
    entries = [{"id": "T", "prompt": "a", "twin_of": "S"}, {"id": "S", "prompt": "b", "probe": "secret"}]

    twin, probe = parse(entries, registry).prompts

    assert (twin.twin_of, twin.probe, probe.twin_of, probe.probe) == ("S", None, None, "secret")
    with pytest.raises(
        SuiteError, match=r'prompt T: twin_of "P" is not a probe of this suite\. Probes: "S"\.'
    ):
        parse([{**entries[0], "twin_of": "P"}, entries[1], {"id": "P", "prompt": "c"}], registry)
