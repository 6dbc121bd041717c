"""A prompt's `messages` and its world: valid and invalid ones, and their form in `config.json`."""

import json

from hypothesis import given
from hypothesis import strategies as st

from pytest_openclaw.suites.cells import definition
from pytest_openclaw.suites.load import read_prompt, turns_of, written_messages
from pytest_openclaw.values.prompts import KEYS
from pytest_openclaw.values.replies import Turn
from pytest_openclaw.values.tool_calls import ToolCall
from pytest_openclaw.values.worlds import ScriptedAnswer, ScriptedCommand, World

USER = {"role": "user", "content": "What is the port?"}
SAYS = {"role": "assistant", "content": "Which server?"}
CALLS = {"role": "assistant", "content": "", "calls": [{"name": "read", "arguments": {"path": "ä.md"}}]}
RESULT = {"role": "tool", "content": "8080"}
TWO_CALLS = {"role": "assistant", "content": "Both.", "calls": [{"name": "read"}, {"name": "exec"}]}
OF_EXEC = {"role": "tool", "content": "", "name": "exec"}


def test_messages_become_turns():
    """Results belong to the calls before them, in their order; arguments are the JSON that is sent."""
    read = KEYS["messages"].read(
        "messages", [USER, CALLS, RESULT, SAYS, USER, USER, TWO_CALLS, RESULT, OF_EXEC], turns_of
    )

    assert read == (
        Turn(user="What is the port?"),
        Turn(calls=(ToolCall(name="read", arguments='{"path": "ä.md"}'),), results=("8080",)),
        Turn(text="Which server?"),
        Turn(user="What is the port?"),
        Turn(user="What is the port?"),
        Turn(
            text="Both.",
            calls=(ToolCall(name="read", arguments="{}"), ToolCall(name="exec", arguments="{}")),
            results=("8080", ""),
        ),
    )


def test_turns_with_tools_need_a_world(registry):
    """Without one, no call before the last message would have a result."""
    raw = {"prompt": "Hi", "tools": ["read"], "turns": ["And now?"]}

    _, complaints = read_prompt(raw, "M1", suite="s", registry=registry)
    prompt, _ = read_prompt({**raw, "world": {}}, "M1", suite="s", registry=registry)

    assert complaints == [
        'has turns and "tools", but no "world" that answers calls. Write world = { files = {} }.'
    ]
    assert prompt.turns == ("And now?",)
    assert definition(prompt)["turns"] == ["And now?"]


def test_history_is_what_the_model_did_after_the_prompt(registry):
    """It begins with the model's turn, ends with a result, and is in the definition as it is read again."""
    raw = {"prompt": "Which port?", "tools": ["read"], "history": [CALLS, RESULT]}

    prompt, _ = read_prompt(raw, "M1", suite="s", registry=registry)
    _, toolless = read_prompt({**raw, "tools": None}, "M1", suite="s", registry=registry)
    _, open_end = read_prompt({**raw, "history": [CALLS, RESULT, SAYS]}, "M1", suite="s", registry=registry)

    (turn,) = prompt.history
    assert (turn.calls[0].name, turn.results) == ("read", ("8080",))
    assert definition(prompt)["history"] == [CALLS, RESULT]
    assert toolless == ['has history with calls, but no "tools". Offer the tools that were called.']
    assert "do not end with a tool's result" in open_end[0]


VALUES = st.recursive(
    st.none() | st.booleans() | st.integers() | st.text(st.characters(codec="utf-8")),
    lambda inner: st.lists(inner, max_size=2) | st.dictionaries(st.text(max_size=3), inner, max_size=2),
    max_leaves=4,
)
WORDS = st.text(st.characters(codec="utf-8"), min_size=1).filter(str.strip)
CALL = st.fixed_dictionaries(
    {"name": WORDS, "arguments": st.dictionaries(st.text(max_size=3), VALUES, max_size=2)}
)


@st.composite
def conversations(draw):
    messages = []
    for _ in range(draw(st.integers(1, 3))):
        messages += [
            {"role": "user", "content": text} for text in draw(st.lists(WORDS, min_size=1, max_size=2))
        ]
        for calls in draw(st.lists(st.lists(CALL, min_size=1, max_size=2), max_size=2)):
            messages.append({"role": "assistant", "content": draw(st.text(max_size=3)), "calls": calls})
            messages += [{"role": "tool", "content": draw(st.text(max_size=3))} for _ in calls]
        if draw(st.booleans()):
            messages.append({"role": "assistant", "content": draw(WORDS)})
    return messages


@given(conversations())
def test_a_conversation_is_written_as_it_was_read(messages):
    """A conversation in a possible order is read, and written again as it was."""
    assert written_messages(KEYS["messages"].read("messages", messages, turns_of)) == messages


FULL = {
    "files": {"a.txt": "one", "/etc/hosts": "127.0.0.1"},
    "commands": [
        {"pattern": "free.*", "output": "8G"},
        {"pattern": "make", "exit_code": 2, "writes": {"out": "x"}, "removes": ["tmp"]},
    ],
    "memory": {"memory/1.md": "note"},
    "pages": {"https://example.org": "page"},
    "answers": [
        {"tool": "weather", "result": "rain", "matching": {"required": ["city"]}},
        {"tool": "read", "fails": "denied", "times": 1},
        {"tool": "read", "error": "disk busy", "after": 2, "times": 3},
        {"tool": "exec", "cut": 80},
        {"tool": "exec", "result": "x" * 99, "cut": 80},
    ],
    "env": {"API_KEY": "k-4471"},
    "steps": 3,
}


def test_a_world_is_read():
    """Every key is read."""
    assert KEYS["world"].read("world", FULL) == World(
        files={"a.txt": "one", "/etc/hosts": "127.0.0.1"},
        commands=(
            ScriptedCommand(pattern="free.*", output="8G"),
            ScriptedCommand(pattern="make", exit_code=2, writes={"out": "x"}, removes=("tmp",)),
        ),
        memory={"memory/1.md": "note"},
        pages={"https://example.org": "page"},
        answers=(
            ScriptedAnswer(tool="weather", result="rain", matching={"required": ["city"]}),
            ScriptedAnswer(tool="read", fails="denied", times=1),
            ScriptedAnswer(tool="read", error="disk busy", after=2, times=3),
            ScriptedAnswer(tool="exec", cut=80),
            ScriptedAnswer(tool="exec", result="x" * 99, cut=80),
        ),
        env={"API_KEY": "k-4471"},
        steps=3,
    )
    assert KEYS["world"].read("world", {}) == World()


def test_a_world_in_config_json_is_a_world_again(registry):
    """A prompt's definition in a run can be read without its suite."""
    raw = {
        "prompt": "Go.",
        "tools": ["read"],
        "world": FULL,
        "probe": "injection",
        "validator": {"type": "says", "word": "x"},
    }
    prompt, _ = read_prompt(raw, "P1", suite="s.toml", registry=registry)

    kept = {key: value for key, value in definition(prompt).items() if key not in ("suite", "extra")}
    again, complaints = read_prompt(json.loads(json.dumps(kept)), "P1", suite="s.toml", registry=registry)

    assert complaints == []
    assert again.world == prompt.world
    assert (again.tools, again.probe) == (prompt.tools, prompt.probe)
