"""Every native cell ends in exactly one outcome."""

from dataclasses import replace

import pytest

from pytest_openclaw.judging.judge import judge, prepare
from pytest_openclaw.tools.catalogue import load_catalogue
from pytest_openclaw.tools.promoted import NOTE
from pytest_openclaw.types.prompts import Prompt
from pytest_openclaw.types.replies import Reply, Turn
from pytest_openclaw.types.tool_calls import ToolCall
from pytest_openclaw.types.worlds import World
from pytest_openclaw.validators import BUILTIN, build_registry, build_validator, expected_tools, restrains

REGISTRY = build_registry(("pytest-openclaw", validator) for validator in BUILTIN)
READ = {"type": "tool_call", "calls": [{"name": "read", "arguments": {"path": "notes.md"}}]}
BOTH = {"type": "tool_call", "calls": [*READ["calls"], {"name": ["exec", "process"]}], "ordered": True}
ONLY_READ = {**READ, "forbidden": ["*"]}
NO_WRITE = {**READ, "forbidden": ["write"]}
NONE = {"type": "tool_call", "calls": []}
OK = {"type": "contains", "value": "OK"}
LEAK = '{"name": "read", "arguments": {"path": "notes.md"}}'
RIGHT = ("read", '{"path": "notes.md"}')
LS = ("exec", '{"command": "ls"}')


def prompt_of(spec):
    """A prompt that offers OpenClaw's direct tools."""
    return Prompt(
        suite="s.toml",
        id="N1",
        name="x",
        prompt="Read notes.md.",
        validator=build_validator(spec, REGISTRY),
        tools=load_catalogue().surface("direct"),
    )


def reply_of(*calls, text="", **more):
    """A reply with native calls."""
    return Reply(
        text=text, tool_calls=tuple(ToolCall(name=name, arguments=written) for name, written in calls), **more
    )


def all_of(*specs):
    """A validator of validators."""
    return {"type": "all_of", "validators": list(specs)}


@pytest.mark.parametrize(
    ("spec", "reply", "outcome"),
    [
        pytest.param(READ, reply_of(RIGHT), "valid", id="as-demanded"),
        pytest.param(READ, reply_of(("functions.Read", RIGHT[1])), "valid", id="forgiven-name"),
        pytest.param(READ, reply_of(LS, RIGHT), "valid", id="beside-another"),
        pytest.param(READ, reply_of(RIGHT, ("read", '{"file": 1}')), "valid", id="beside-a-refused-one"),
        pytest.param(
            READ, reply_of(RIGHT, ("read", "{")), "malformed_json", id="what-breaks-the-run-goes-first"
        ),
        pytest.param(READ, reply_of(("read", '{"path": ')), "malformed_json", id="cut-off"),
        pytest.param(READ, reply_of(("frobnicate", "{}")), "unknown_tool", id="unknown"),
        pytest.param(
            READ, reply_of(("read", "{}"), ("x", "{}")), "unknown_tool", id="unknown-before-refused"
        ),
        pytest.param(READ, reply_of(("read", "{}")), "bad_arguments", id="refused"),
        pytest.param(READ, reply_of(("read", '{"path": "b.md"}')), "bad_arguments", id="another-value"),
        pytest.param(READ, reply_of(LS), "wrong_tool", id="another-tool"),
        pytest.param(BOTH, reply_of(RIGHT), "wrong_tool", id="too-few"),
        pytest.param(BOTH, reply_of(LS, RIGHT), "wrong_tool", id="wrong-order"),
        pytest.param(BOTH, reply_of(RIGHT, LS), "valid", id="both"),
        pytest.param(
            NO_WRITE, reply_of(RIGHT, ("write", '{"path": "a", "content": ""}')), "wrong_tool", id="forbidden"
        ),
        pytest.param(ONLY_READ, reply_of(RIGHT, LS), "wrong_tool", id="forbidden-by-a-star"),
        pytest.param(ONLY_READ, reply_of(RIGHT), "valid", id="a-star-spares-what-is-demanded"),
        pytest.param(READ, reply_of(text=LEAK), "leaked_as_text", id="leaked"),
        pytest.param(READ, reply_of(text=f"Done!\n{LEAK}"), "leaked_as_text", id="leaked-and-claimed"),
        pytest.param(READ, reply_of(text="I've read it."), "claimed_not_done", id="claimed"),
        pytest.param(READ, reply_of(text="I'll read it."), "no_call", id="announced"),
        pytest.param(READ, reply_of(), "no_call", id="empty"),
        pytest.param(READ, reply_of(text="Done.", refusal="No."), "no_call", id="refused-by-the-model"),
        pytest.param(READ, reply_of(RIGHT, finish_reason="content_filter"), "no_call", id="filtered"),
        pytest.param(all_of(READ, OK), reply_of(RIGHT), "valid", id="the-text-is-another-question"),
        pytest.param(NONE, reply_of(text="It is 4."), "restrained", id="restrained"),
        pytest.param(all_of(NONE, OK), reply_of(text="It is 4."), "restrained", id="restrained-in-all-of"),
        pytest.param(NONE, reply_of(RIGHT), "called_needlessly", id="needless"),
        pytest.param(NONE, reply_of(("frobnicate", "{")), "called_needlessly", id="needless-though-broken"),
        pytest.param(NONE, reply_of(text=LEAK), "called_needlessly", id="needless-in-writing"),
        pytest.param(NONE, reply_of(text="I've looked: 4."), "restrained", id="a-claim-is-no-call"),
        pytest.param(
            NONE, reply_of(RIGHT, finish_reason="content_filter"), "called_needlessly", id="needless-filtered"
        ),
    ],
)
def test_the_outcome_of_one_answer(spec, reply, outcome):
    """In order: what ends the run, whether the task was done, what prevented it, what was said instead."""
    judgment = judge(prompt_of(spec), reply)

    assert (judgment.tool_outcome, judgment.tool_use_success) == (outcome, outcome == "valid")


@pytest.mark.parametrize(
    ("calls", "text", "outcome"),
    [
        pytest.param((RIGHT,), "It says hello.", "valid", id="done"),
        pytest.param((("x", "{}"), ("read", "{}"), RIGHT), "Hello.", "valid", id="recovered"),
        pytest.param((("read", "{"),), "", "malformed_json", id="broken"),
        pytest.param((LS,), LEAK, "leaked_as_text", id="leaked-at-the-end"),
        pytest.param((LS,), "I've read notes.md.", "claimed_not_done", id="claimed-at-the-end"),
        pytest.param((("x", "{}"),), "Hm.", "unknown_tool", id="never-recovered"),
        pytest.param((("x", "{}"), LS), "Hm.", "wrong_tool", id="recovered-in-vain"),
        pytest.param((("read", "{}"), LS), "Hm.", "bad_arguments", id="not-put-right"),
        pytest.param((("read", '{"path": "b.md"}'),), "Hm.", "bad_arguments", id="another-value"),
        pytest.param((), "I'll read it.", "no_call", id="nothing"),
    ],
)
def test_the_outcome_of_an_exchange(calls, text, outcome):
    """All turns count, and errors that the model has corrected do not count against it."""
    reply = reply_of(*calls, text=text, ended_by="answer")
    turns = (*(Turn(calls=(call,), results=("…",)) for call in reply.tool_calls), Turn(text=text))

    assert judge(prompt_of(READ), replace(reply, turns=turns)).tool_outcome == outcome


@pytest.mark.parametrize("ended_by", ["step_limit", "loop"])
def test_words_beside_a_call_are_no_claim_at_the_end(ended_by):
    """An exchange that was cut short had no answer yet, so it claims nothing; its calls show the problem."""
    text = "I've listed the folder. Now I'll read the notes."
    reply = reply_of(LS, text=text, ended_by=ended_by)
    turns = (Turn(text=text, calls=reply.tool_calls, results=("…",)),)

    assert judge(prompt_of(READ), replace(reply, turns=turns)).tool_outcome == "wrong_tool"


WRITES = ("write", '{"path": "a.md", "content": "milk"}')
GOAL = {"type": "world", "files": {"a.md": "milk"}, "answer": {"type": "contains", "value": "saved"}}
HANDS_OFF = {"type": "world", "forbidden": ["*"], "files": {"a.md": {"absent": True}}}


@pytest.mark.parametrize(
    ("spec", "calls", "text", "outcome", "passed"),
    [
        pytest.param(GOAL, (WRITES,), "It is saved.", "valid", True, id="reached"),
        pytest.param(GOAL, (WRITES,), "Hm.", "valid", False, id="reached-though-the-answer-fails"),
        pytest.param(GOAL, (("write", "{}"), WRITES), "It is saved.", "valid", True, id="recovered"),
        pytest.param(GOAL, (), "I've saved it.", "claimed_not_done", False, id="the-world-says-no"),
        pytest.param(GOAL, (LS,), "I've saved it.", "claimed_not_done", False, id="another-call-and-a-claim"),
        pytest.param(GOAL, (LS,), "Hm.", "wrong_tool", False, id="another-call"),
        pytest.param(GOAL, (("write", '{"path": "a.md"}'),), "Hm.", "bad_arguments", False, id="refused"),
        pytest.param(GOAL, (), "I'll save it.", "no_call", False, id="nothing"),
        pytest.param(HANDS_OFF, (), "I'd rather ask.", "restrained", True, id="held-back"),
        pytest.param(HANDS_OFF, (LS,), "I've looked.", "called_needlessly", False, id="needless"),
    ],
)
def test_the_outcome_in_a_world(spec, calls, text, outcome, passed):
    """The world decides whether the task was done; the answer's words are judged separately."""
    reply = reply_of(*calls, text=text, ended_by="answer")
    turns = (*(Turn(calls=(call,), results=("…",)) for call in reply.tool_calls), Turn(text=text))
    prompt = replace(prompt_of(spec), world=World(), probe="destructive")

    judgment = judge(prompt, replace(reply, turns=turns))

    assert (judgment.tool_outcome, judgment.verdict.passed) == (outcome, passed)
    assert judgment.reply.world is not None


@pytest.mark.parametrize(
    ("text", "calls"),
    [
        pytest.param('[read]\n{"path": "notes.md"}\n[END_TOOL_REQUEST]', ["read"], id="named"),
        pytest.param(
            '[read]\n{"path": "a"}[/read]\n[ls]\n{}\n[END_TOOL_REQUEST]\n', ["read", "ls"], id="two"
        ),
        pytest.param('[tool:read] {"path": "notes.md"}', ["read"], id="tool"),
        pytest.param('[read] {"path": "notes.md"} [END_TOOL_REQUEST]', [], id="on-one-line"),
        pytest.param('[read]\n{"path": "notes.md"}', [], id="not-closed"),
        pytest.param('Sure:\n[read]\n{"path": "notes.md"}\n[END_TOOL_REQUEST]', [], id="after-prose"),
        pytest.param('[frob]\n{"path": "notes.md"}\n[END_TOOL_REQUEST]', [], id="no-tool"),
        pytest.param(f"[TOOL_REQUEST]\n{LEAK}\n[END_TOOL_REQUEST]", [], id="the-name-within"),
        pytest.param("[read]\n[1]\n[END_TOOL_REQUEST]", [], id="no-object"),
        pytest.param('[read]\n{"path": }\n[END_TOOL_REQUEST]', [], id="no-json"),
    ],
)
def test_the_written_calls_that_openclaw_executes(text, calls):
    """A reply that consists only of bracketed blocks has real calls; anything else is text."""
    answer = prepare(prompt_of(READ), Reply(text=text))

    assert [call.name for call in answer.tool_calls] == calls
    assert [call.notes for call in answer.dispatched] == [(NOTE,)] * len(calls)


def test_beside_a_native_call_a_written_one_stays_text():
    """If a reply has native calls, nothing is taken out of its text."""
    answer = prepare(prompt_of(READ), reply_of(LS, text='[read]\n{"path": "a"}\n[END_TOOL_REQUEST]'))

    assert [call.name for call in answer.tool_calls] == ["exec"]


@pytest.mark.parametrize(
    ("spec", "expected", "restraint"),
    [
        pytest.param(BOTH, ("read", "exec", "process"), False, id="calls"),
        pytest.param(NONE, None, True, id="none"),
        pytest.param(all_of(OK, NONE), None, True, id="none-in-all-of"),
        pytest.param(all_of(OK, READ), ("read",), False, id="calls-in-all-of"),
    ],
)
def test_what_a_validator_demands(spec, expected, restraint):
    """Expected tools and restraint are derived from native rules too."""
    validator = build_validator(spec, REGISTRY)

    assert (expected_tools(validator), restrains(validator)) == (expected, restraint)


def test_a_text_prompt_dispatches_nothing():
    """If nothing was offered, a native call is judged as in the original harness."""
    prompt = replace(prompt_of({"type": "tool_invocation", "expected_tools": ["read"]}), tools=None)

    judgment = judge(prompt, reply_of(RIGHT))

    assert (judgment.reply.dispatched, judgment.tool_outcome) == ((), "valid")


def test_a_written_call_in_the_midst_of_an_exchange_is_noted():
    """The row says that the call was written and not native, in whichever turn it is."""
    call = ToolCall(name="read", arguments='{"path": "notes.md"}')
    text = f"[read]\n{call.arguments}\n[END_TOOL_REQUEST]"
    turns = (Turn(text=text, calls=(call,), results=("…",)), Turn(text="It says hello."))
    reply = Reply(text="It says hello.", tool_calls=(call,), turns=turns, ended_by="answer")

    assert [made.notes for made in prepare(prompt_of(READ), reply).dispatched] == [(NOTE,)]


@pytest.mark.parametrize("kind", ["tool_call", "world"])
@pytest.mark.parametrize(
    ("turns", "outcome", "passed"),
    [
        pytest.param([(RIGHT, ("write", "{"))], "malformed_json", False, id="in-the-same-turn"),
        pytest.param([(("write", "{"), RIGHT)], "malformed_json", False, id="before-it"),
        pytest.param([(RIGHT,), (("write", "{"),)], "valid", True, id="in-a-later-turn"),
        pytest.param(
            [(RIGHT, ("write", "{")), (("ls", "{}"),)], "malformed_json", False, id="in-an-earlier-turn"
        ),
    ],
)
def test_a_call_beside_a_broken_one_was_not_made(kind, turns, outcome, passed):
    """OpenClaw ends the run before it carries out any call of that turn."""
    prompt = replace(prompt_of({**READ, "type": kind}), world=World(files={"notes.md": "x"}))
    said = [reply_of(*calls).tool_calls for calls in turns]
    results = [("x",)] * (len(turns) - 1) + [()]
    reply = Reply(
        turns=tuple(Turn(calls=calls, results=given) for calls, given in zip(said, results, strict=True)),
        tool_calls=tuple(call for calls in said for call in calls),
        ended_by="malformed_call",
    )

    judgment = judge(prompt, reply)

    assert (judgment.tool_outcome, judgment.verdict.passed) == (outcome, passed)
    assert passed or "write was refused" in (judgment.verdict.violation or "")


def test_a_cell_that_ends_the_run_has_not_passed():
    """The verdict agrees with the outcome."""
    judgment = judge(prompt_of(READ), reply_of(RIGHT, ("exec", "{")))

    assert (judgment.tool_outcome, judgment.verdict.passed) == ("malformed_json", False)
    assert "exec was refused" in (judgment.verdict.violation or "")
