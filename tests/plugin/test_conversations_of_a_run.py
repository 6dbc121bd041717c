"""Prompts with `messages` and `turns`, in whole sessions: asked, judged, recorded, judged again."""

import pytest

from pytest_openclaw.cli import main

pytestmark = pytest.mark.newest

# Answers by the user's last message, with what it was sent of the conversation before it.
TALKER = '''
def written(turn):
    return turn.user or turn.text or " ".join(call.name for call in turn.calls)

class Talker(Provider):
    """Does what the user's last message says."""

    name = "talker"
    takes_tools = True
    takes_messages = True

    async def ask(self, request):
        *before, last = request.conversation
        counts = {"finish_reason": "stop", "input_tokens": len(before) + 1, "output_tokens": 2}
        if last.user is None:
            return Reply(text=f"Done: {last.results[0].strip()}", **counts)
        word, _, rest = last.user.partition(" ")
        if word == "repeat":
            return Reply(text=" | ".join(map(written, before)), **counts)
        if word == "write":
            path, _, content = rest.partition(" ")
            return Reply(tool_calls=(ToolCall(name="write", arguments=json.dumps({"path": path, "content": content})),))
        if word == "read":
            return Reply(tool_calls=(ToolCall(name="read", arguments=json.dumps({"path": rest})),))
        return Reply(text="Fine.", **counts)

PROVIDERS.append(Talker)
'''
BEFORE = [
    {"role": "user", "content": "Is a.txt there?"},
    {"role": "assistant", "content": "", "calls": [{"name": "exec", "arguments": {"command": "rm b.txt"}}]},
    {"role": "tool", "content": "removed"},
    {"role": "assistant", "content": "It is."},
]
TOOLS = ["read", "write", "exec"]
KEPT = {
    "id": "kept",
    "prompt": "write a.txt one",
    "turns": ["thank you", "read a.txt"],
    "tools": TOOLS,
    "world": {"files": {"a.txt": "none"}},
    "validator": {
        "type": "world",
        "calls": [{"name": "write"}, {"name": "read"}],
        "ordered": True,
        "exact": True,
        "answer": {"type": "contains", "value": "one"},
    },
}
PAST = {
    "id": "past",
    "prompt": "repeat all",
    "messages": BEFORE,
    "tools": TOOLS,
    "world": {"files": {}},
    "validator": {
        "type": "world",
        "forbidden": ["exec"],
        "never_shown": ["removed"],
        "ran": [],
        "answer": {"type": "exact", "value": "Is a.txt there? | exec | It is."},
    },
}
LATE = {
    **KEPT,
    "id": "late",
    "turns": ["write a.txt two", "thank you"],
    "validator": {**KEPT["validator"], "calls": [{"name": "write"}]},
}
PLAIN = {
    "id": "plain",
    "prompt": "Hello.",
    "turns": ["repeat all"],
    "validator": {"type": "exact", "value": "Hello. | Fine."},
}
PYTHON = """
import pytest

@pytest.mark.openclaw(id="R1", prompt="Hello.", turns=["repeat all"], messages=[
    {"role": "user", "content": "Hi."}, {"role": "assistant", "content": "Yes?"}])
def test_the_conversation_is_known(reply):
    assert [turn.text for turn in reply.turns] == ["Fine.", "Hi. | Yes? | Hello. | Fine."]
    assert reply.turns[1].user == "repeat all"
"""


def write(project, *prompts):
    if TALKER not in (project.folder / "conftest.py").read_text("utf-8"):
        project.extend_conftest(TALKER)
    project.suite(prompts)
    project.write("benchmarks/test_talk.py", PYTHON)


@pytest.mark.under_workers
def test_conversations_are_recorded_and_judged(project):
    """Verdicts are of the last answer and of all calls after the prompt; rows say what the user said."""
    write(project, KEPT, PAST, LATE, PLAIN)

    session = project.run("-v", models="talker/m")

    session.outcomes(passed=4, failed=1)
    kept = session.row("kept")
    assert [turn.get("user") for turn in kept["turns"]] == [None, None, "thank you", "read a.txt", None]
    assert [turn["text"] for turn in kept["turns"]][1:4] == [
        "Done: Successfully wrote 3 bytes to /workspace/a.txt",
        "Fine.",
        "",
    ]
    assert (kept["tool_outcome"], kept["ended_by"], kept["attempts"]) == ("valid", "answer", 5)
    assert [call["name"] for call in kept["tool_call_details"]] == ["write", "read"]
    past = session.row("past")
    assert (past["objective_pass"], past["tool_calls"], past["input_tokens"]) == (True, [], 4)
    late = session.row("late")
    assert (late["objective_pass"], late["tool_outcome"]) == (False, "extra_call")
    assert "  user      write a.txt two\n" in session.text
    plain = session.row("plain")
    assert (plain["objective_pass"], plain["tool_outcome"], len(plain["turns"])) == (True, None, 2)
    defined = {prompt["id"]: prompt for prompt in session.load("config.json")["prompts"]}
    assert (defined["past"]["messages"], defined["kept"]["turns"]) == (BEFORE, KEPT["turns"])


@pytest.fixture
def stored(plain_project):
    write(plain_project, KEPT, PAST, LATE)
    plain_project.run("--openclaw-run-id=r", models="talker/m")
    return plain_project


def test_stored_conversations_are_used_again(stored, capsys):
    """Shown, rescored, resumed and merged, the rows stay what they were; another conversation is another prompt."""
    rows = stored.stored("r").lines

    assert main(["show", "r", "past"]) == 0
    assert "  user      Is a.txt there?\n" in capsys.readouterr().out
    assert main(["rescore", "r", "--into", "rescored"]) == 0
    resumed = stored.run("--openclaw-resume=r", models="talker/m")
    assert main(["merge", "r", "--into", "merged"]) == 0

    resumed.outcomes(passed=3, failed=1)
    rescored = [
        line.replace(b'"run_id": "rescored"', b'"run_id": "r"') for line in stored.stored("rescored").lines
    ]
    assert rescored == resumed.lines == rows
    assert b"".join(stored.stored("merged").lines).count(b"thank you") == 2

    write(stored, {**KEPT, "turns": ["read a.txt"]}, {**PAST, "messages": BEFORE[:1]}, LATE)
    refused = stored.run("--openclaw-resume=r", models="talker/m")
    refused.is_refused("prompt kept: its turns has changed")
    assert "prompt past: its messages has changed" in refused.words
    capsys.readouterr()
    assert main(["rescore", "r", "--into", "again"]) == 0
    assert "3 rows keep their verdict: the row lacks the judged reply" in capsys.readouterr().out
