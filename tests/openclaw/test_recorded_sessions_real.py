"""Sessions that the real OpenClaw has recorded with a scripted model, exported by its own command and read."""

import json
import shlex

import pytest

from pytest_openclaw.cli import main
from pytest_openclaw.parts.sessions.prompts import read_session
from tests.openclaw.model_server import ScriptedModel
from tests.openclaw.real import models_of, openclaw_apart, run_openclaw

pytestmark = [pytest.mark.openclaw_cli, pytest.mark.nightly]


def call(name, **arguments):
    return [(name, json.dumps(arguments))]


# Session → messages of the user, each with the model's turns.
TALKS = {
    "files": [("What is in my notes?", [call("read", path="notes.txt"), "Milk and bread."])],
    "commands": [
        ("Count the lines", [call("exec", command="wc -l notes.txt"), "One."]),
        ("Show the other file", [call("exec", command="cat missing.txt"), "There is none."]),
    ],
    "corrected": [
        ("Write a list", [call("write", path="a.md", content="- x\n"), "Written."]),
        ("No, I meant b.md", [call("write", path="b.md", content="- x\n"), "Written."]),
    ],
    "parallel": [("Read both", [call("read", path="notes.txt") + call("read", path="./notes.txt"), "Both."])],
    "compacted": [
        ("Read the notes", [call("read", path="notes.txt"), "Milk, bread. " * 400]),
        ("What time is it?", [call("exec", command="date"), "It is late."]),
    ],
}


@pytest.fixture(scope="module")
def exported(real_openclaw):
    """OpenClaw with the five sessions, and the folder of their exports."""
    turns = [turn for talk in TALKS.values() for _, said in talk for turn in said]

    def answer(request):
        # Summaries and notes of a compaction are asked with fewer tools.
        return turns.pop(0) if len(request.get("tools") or ()) > 5 else "They have notes."

    # Each run leaves little room in the context, so OpenClaw compacts after the first one of each session.
    with (
        ScriptedModel(answer, prompt_tokens=30_500) as model,
        openclaw_apart(real_openclaw, patience_s=600, SHELL="/bin/sh") as openclaw,
    ):
        workspace = openclaw.scratch.workspace
        (workspace / "notes.txt").write_text("milk, bread\n", "utf-8")
        agents = {"workspace": str(workspace), "model": {"primary": "local/tiny"}, "skipBootstrap": True}
        config = {"agents": {"defaults": agents}, "models": models_of(model.url, "tiny", 32_000)}
        openclaw.scratch.config.write_text(json.dumps(config), "utf-8")
        for name, talk in TALKS.items():
            for message, _ in talk:
                done = run_openclaw(
                    openclaw, "agent", "--local", "--session-id", name, "--json", "--message", message
                )
                assert done.exit_status == 0, done.stdout + done.stderr
        with pytest.MonkeyPatch.context() as patch:
            for variable, value in openclaw.environ.items():
                patch.setenv(variable, value)
            patch.setenv("OPENCLAW_AGENT_COMMAND", shlex.join(openclaw.command))
            assert main(["sessions", "--export", "--workspace", str(workspace)]) == 0
        yield openclaw, workspace / ".openclaw/trajectory-exports"


def suite_of(exported, session):
    (folder,) = (
        path
        for path in exported[1].iterdir()
        if json.loads((path / "manifest.json").read_text())["sessionId"] == session
    )
    return read_session(folder / "manifest.json", session)


def test_each_step_is_read(exported):
    """With its calls, the conversation before it, and the tools that OpenClaw sent."""
    first, second = suite_of(exported, "files").prompts

    assert (first.prompt, first.name, second.name) == ("What is in my notes?", "read", "answer")
    assert second.history[0].results == ("milk, bread\n",)
    assert {"read", "exec", "write", "edit", "tool_call"} <= {tool.name for tool in first.tools or ()}
    assert len(first.tools or ()) < 20
    assert "personal assistant" in (first.system or "")
    both = suite_of(exported, "parallel").prompts[0].validator
    assert [one["tool"] for one in both.recorded] == ["read", "read"]


def test_failures_and_corrections_are_left_out(exported):
    """The exit status of a command is in its result, and an objection begins the user's next message."""
    assert suite_of(exported, "commands").left_out == {"2.1": "its call of exec failed"}
    assert {*suite_of(exported, "corrected").left_out} == {"1.1", "1.2"}


def test_a_compaction_is_repeated(exported):
    """After it, the summary takes the place of the messages before."""
    last = suite_of(exported, "compacted").prompts[-1]

    assert (last.messages[0].user or "").startswith(
        "The conversation history before this point was compacted"
    )
    assert last.prompt == "What time is it?"
