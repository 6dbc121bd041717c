"""A prompt whose validator judges native calls must offer tools, and a world if the validator checks one."""

import pytest

from pytest_openclaw.suites.load import read_prompt
from tests.builtin import REGISTRY

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
