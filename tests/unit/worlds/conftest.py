"""A small world, and a way to call its tools."""

import json

import pytest

from pytest_openclaw.openclaw.catalog import load_catalogue
from pytest_openclaw.values.tool_calls import Tool, ToolCall
from pytest_openclaw.values.worlds import ScriptedAnswer, ScriptedCommand, World
from pytest_openclaw.worlds import shell
from pytest_openclaw.worlds.playing import Playing

MESSAGE = Tool(name="message", parameters={"type": "object", "required": ["action"]})
SESSIONS = tuple(
    Tool(name=name) for name in ("sessions_list", "sessions_send", "sessions_spawn", "session_status")
)
OFFERED = {
    tool.name: tool for tool in (MESSAGE, *SESSIONS, Tool(name="weather"), *load_catalogue().tools.values())
}
TOOLS = tuple(OFFERED.values())

WORLD = World(
    files={
        "notes.md": "milk\neggs\nbread\n",
        "src/app.py": "def greet():\n    return 'hi'\n\n\ndef leave():\n    return 'bye'\n",
        "src/lib/util.py": "x = 1\n",
        ".hidden": "h",
        "empty.txt": "",
        "/etc/hosts": "127.0.0.1 localhost\n",
    },
    commands=(
        ScriptedCommand(pattern=r"free( -h)?", output="Mem: 8G"),
        ScriptedCommand(pattern=r"make .*", output="boom", exit_code=3),
        ScriptedCommand(pattern=r"build", writes={"out.bin": "built"}, removes=("notes.md",)),
    ),
    memory={"memory/2026-11-20.md": "Anna's birthday is 3 May.\n\nThe deployment is on Friday."},
    pages={"https://example.org/news": "# Big news\nThe moon is full."},
    answers=(
        ScriptedAnswer(tool="weather", result="rain", matching={"required": ["city"]}),
        ScriptedAnswer(tool="sessions_send", result="they say yes"),
    ),
)


class Caller:
    def __init__(self, world=WORLD, tools=TOOLS, **more):
        self.playing = Playing(world, tools, **more)

    def __call__(self, tool, **arguments):
        return self.playing.answer(ToolCall(name=tool, arguments=json.dumps(arguments)))

    def error(self, tool, **arguments):
        failure = json.loads(self(tool, **arguments))
        assert (failure["status"], failure["tool"]) == ("error", tool)
        return str(failure["error"])

    def sh(self, command, **more):
        return self("exec", command=command, **more)

    @property
    def files(self):
        return dict(self.playing.state.files)


@pytest.fixture(autouse=True)
def short_commands(monkeypatch):
    monkeypatch.setattr(shell, "RUN_S", 1.2)


@pytest.fixture
def call():
    return Caller()


@pytest.fixture
def calls_in():
    return Caller
