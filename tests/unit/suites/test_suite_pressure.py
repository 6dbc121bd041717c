"""What native prompts need, harder forms of one entry, and the text before them."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from pytest_openclaw.suites.load import load_suite, parse_suite, read_prompt
from pytest_openclaw.suites.offered import TOKENS_PER_WORD, padding
from pytest_openclaw.util.errors import SuiteError
from tests.builtin import REGISTRY

ENTRY = """
[[prompts]]
id = "X1"
prompt = "Which files are there?"
tools = {tools}
validator = {{ type = "tool_call", calls = [{{ name = "ls" }}] }}
pressure = {pressure}
"""


def _suite(pressure, tools='["ls"]'):
    text = ENTRY.format(pressure=pressure, tools=tools)
    return parse_suite(text, format="toml", name="s", registry=REGISTRY)


def test_an_entry_becomes_its_harder_forms():
    """Each number of tools and of tokens is a separate prompt, which names its entry."""
    prompts = _suite("{ tools = [1, 11], padding_tokens = [2000, 500] }").prompts

    assert [(p.id, len(p.tools), p.padding_tokens, p.pressure_of) for p in prompts] == [
        ("X1-1t", 1, 0, "X1"),
        ("X1-11t", 11, 0, "X1"),
        ("X1-2k", 1, 2000, "X1"),
        ("X1-500", 1, 500, "X1"),
    ]
    assert prompts[0].prompt == "Which files are there?"
    assert prompts[2].prompt == f"{padding(2000)}\n\nWhich files are there?"


def test_tools_of_a_suite_are_among_those_of_the_surface():
    """A tool that the surface lacks is offered too, in place of the surface's last one."""
    own = '["read", { name = "get_weather" }]'
    (prompt,) = _suite("{ tools = [11] }", own).prompts
    names = [tool.name for tool in prompt.tools]

    assert (len(names), names[:2]) == (11, ["read", "get_weather"])
    assert len(set(names)) == 11


@given(st.integers(1, 20_000))
def test_padding_is_about_as_long_as_asked_for(tokens):
    """The text is at least as long as asked for, and at most two sentences longer."""
    words = len(padding(tokens).split())

    assert tokens <= words * TOKENS_PER_WORD <= max(tokens, 31) + 60


@pytest.mark.parametrize(
    ("tools", "name", "is_reached"),
    [
        pytest.param('["read"]', "exec", False, id="not-offered"),
        pytest.param('["read", "exec"]', "bash", True, id="by-another-name"),
        pytest.param('"tool-search"', "sessions_send", True, id="over-the-bridge"),
        pytest.param('"tool-search"', "browser", False, id="not-even-over-the-bridge"),
    ],
)
def test_an_impossible_call_is_reported(tools, name, is_reached):
    """A required tool that is not offered would fail every model, so it is an error of the suite."""
    text = ENTRY.format(pressure="", tools=tools).replace("pressure = \n", "").replace('"ls"', f'"{name}"')
    if is_reached:
        assert parse_suite(text, format="toml", name="s", registry=REGISTRY)
        return
    with pytest.raises(SuiteError, match=f'demands a call of "{name}", which "tools" does not offer'):
        parse_suite(text, format="toml", name="s", registry=REGISTRY)


def test_a_suite_says_that_it_wants_to_be_named(tmp_path):
    """`named_only` is next to the prompts; it must be a boolean, and a misspelling is reported."""
    path = tmp_path / "prompts_x.toml"
    prompt = '[[prompts]]\nid = "A"\nprompt = "Hi"\n'

    path.write_text(f"named_only = true\n{prompt}", "utf-8")
    assert load_suite(path, name="x", registry=REGISTRY).named_only
    path.write_text(f'named_only = "yes"\n{prompt}', "utf-8")
    with pytest.raises(SuiteError, match='named_only is "yes"'):
        load_suite(path, name="x", registry=REGISTRY)
    path.write_text(f"named_olny = true\n{prompt}", "utf-8")
    with pytest.raises(SuiteError, match="Did you mean named_only"):
        load_suite(path, name="x", registry=REGISTRY)


NONE = {"type": "tool_call", "calls": []}
HANDS_OFF = {"type": "world", "forbidden": ["*"]}
NO_TOOLS = 'has a validator {}, but no "tools" to call. Write for example tools = "direct".'
NO_WORLD = 'has a validator world, but no "world" to check. Write for example world = { files = {} }.'


@pytest.mark.parametrize(
    ("keys", "expected"),
    [
        pytest.param({"validator": NONE, "tools": "direct"}, [], id="tools"),
        pytest.param({"validator": NONE, "tools": []}, [], id="no-tool-to-tempt"),
        pytest.param({"validator": HANDS_OFF, "tools": "direct", "world": {}}, [], id="world"),
        pytest.param({"validator": NONE}, [NO_TOOLS.format("tool_call")], id="no-tools"),
        pytest.param({"validator": NONE, "tools": None}, [NO_TOOLS.format("tool_call")], id="null"),
        pytest.param({"validator": {"type": "all_of", "validators": [{"type": "not", "validator": NONE}]}}, [NO_TOOLS.format("tool_call")], id="deep-within"),
        pytest.param({"validator": HANDS_OFF, "tools": "direct"}, [NO_WORLD], id="no-world"),
        pytest.param({"validator": HANDS_OFF}, [NO_TOOLS.format("world"), NO_WORLD], id="neither"),
        pytest.param(
            {"validator": NONE, "tools": ["reed"]},
            ['tools names "reed", which openclaw-2026.9.6 does not have. Did you mean read?'],
            id="a-wrong-tool-is-one-complaint",
        ),
    ],
)  # fmt: skip
def test_the_needs_of_a_native_rule(keys, expected):
    """Each missing part is one error, with its hint."""
    prompt, complaints = read_prompt(
        {"id": "N1", "prompt": "Hi", **keys}, "N1", suite="s.toml", registry=REGISTRY
    )

    assert complaints == expected
    assert (prompt is None) == bool(expected)
