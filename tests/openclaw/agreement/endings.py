"""Ends of an exchange: without an answer, at the step limit, in a loop, or with a call written as text."""

from functools import partial

from tests.openclaw.agreement.cases import DONE, READ, call, own_case, read, write
from tests.openclaw.model_server import Said

OPEN = [call("open", path="a")]
WRITE = write("n.txt", "x")
CUT = Said(finish="length")
CUT_CALL = Said(calls=(READ,), finish="length")
LOOK = Said(text="Let me look.", calls=(READ,))
WRITER = partial(own_case, tools=("write", "read"))


def endings():
    yield from _endings()
    yield from _loops()
    yield from _without_tools()
    yield from _written()


def _endings():
    yield own_case("ends-at-once", "an answer without a call", DONE)
    yield own_case("ends-empty", "a call, then an empty answer", [READ], "")
    yield own_case("ends-empty-at-once", "an empty answer at once", "")
    yield own_case("ends-blank", "a call, then blanks", [READ], " \n")
    yield own_case("ends-reasoning", "a call, then only thinking", [READ], Said(reasoning="Hm."))
    yield own_case("ends-reasoning-at-once", "only thinking at once", Said(reasoning="Hm."))
    yield own_case("ends-think-at-once", "only thinking tags at once", "<think>Hm.</think>")
    for name, about, *before in (
        ("write", "a file written", [WRITE]),
        ("error", "a call that failed", [read("no.txt")]),
        ("corrected", "a call that failed and a right one", [read("no.txt"), READ]),
    ):
        yield own_case(f"ends-empty-after-{name}", f"{about}, an empty answer, then words", *before, "", DONE)
    yield own_case(
        "ends-length", "an answer that was cut off", [READ], Said(text="Done, and", finish="length")
    )
    yield own_case(
        "ends-stop-with-calls", "calls whose finish_reason is stop", Said(calls=(READ,), finish="stop"), DONE
    )
    yield own_case("ends-length-with-calls", "calls whose finish_reason is length", CUT_CALL, DONE)
    for name, about, *cut in (
        ("empty", "an empty answer", CUT),
        ("calls", "calls whose finish_reason is length", CUT_CALL),
        ("twice", "two empty ones", CUT, CUT),
    ):
        whole = f"a call, then at the output limit: {about}"
        yield own_case(f"ends-length-after-call-{name}", whole, [READ], *cut, DONE)
    yield own_case(
        "ends-call-beside-text",
        "words and calls in one turn",
        LOOK,
        Said(text="Done.", calls=(WRITE,)),
        "Done, really.",
    )
    yield own_case("ends-call-after-answer", "an answer, with a needless call in its turn", DONE, [WRITE])
    yield WRITER(
        "ends-never",
        "another call in each turn, to the last step",
        *([write(f"n{n}.txt", "x")] for n in range(6)),
        steps=6,
    )


def _loops():
    yield own_case("loop-same", "the same call again and again", [READ])
    yield own_case("loop-refused", "the same refused call again and again", [call("read", file="a.txt")])
    yield own_case("loop-unknown", "the same unknown tool again and again", OPEN)
    yield own_case(
        "loop-unknown-known",
        "an unknown tool ten times, a right call, and the unknown one again",
        *[OPEN] * 10,
        [READ],
        OPEN,
        OPEN,
        DONE,
        steps=16,
    )
    yield WRITER(
        "loop-found-out", "the same call six times, then the right one", *[[READ]] * 6, [WRITE], DONE
    )
    yield own_case("loop-ping-pong", "two calls that alternate", *[[READ], [call("ls")]] * 6)
    yield own_case("loop-in-a-turn", "the same call five times in a turn", [READ] * 5, DONE)


def _without_tools():
    """Calls where OpenClaw asks for only words, after a call and an answer without text."""
    written = '[write]\n{"path": "n.txt", "content": "x"}\n[END_TOOL_REQUEST]'
    for name, about, *after in (
        ("call", "the same call", [READ], DONE),
        ("calls", "a write and other calls, turn by turn", [WRITE], [call("ls"), READ], DONE),
        ("beside-text", "words next to a call", LOOK, DONE),
        ("odd", "a name that no tool can have", [call("re ad", path="a.txt")], DONE),
        ("written", "a call written in brackets", written, DONE),
        ("broken", "arguments that are cut off", [("read", '{"path": "a.t')], DONE),
        ("empty", "a call, then an empty answer again", [READ], "", DONE),
        ("length", "a call, then nothing before the output limit", [READ], CUT, DONE),
        ("length-call", "a call whose finish_reason is length", CUT_CALL, DONE),
        ("again", "the same call again and again", [READ]),
    ):
        whole = f"a call, an empty answer, and without tools {about}"
        yield own_case(f"without-tools-{name}", whole, [READ], "", *after, steps=16)


def _written():
    write = '{"path": "n.txt", "content": "x"}'
    named = f'{{"name": "write", "arguments": {write}}}'
    bracket = f"[write]\n{write}\n[END_TOOL_REQUEST]"
    harmony = f"<|channel|>commentary to=functions.write <|constrain|>json<|message|>{write}<|call|>"
    for name, about, text in (
        ("bracket", "a call written in brackets", bracket),
        ("bracket-tool", "a call written as `[tool:name]`", f"[tool:write]{write}"),
        ("bracket-closed", "a call written in brackets that close by name", f"[write]\n{write}\n[/write]"),
        ("bracket-words", "words before a call in brackets", f"I write it.\n{bracket}"),
        ("bracket-unknown", "an unknown tool in brackets", f"[save]\n{write}\n[END_TOOL_REQUEST]"),
        ("bracket-broken", "brackets around text that is not JSON", '[write]\n{"path": \n[END_TOOL_REQUEST]'),
        ("xml", "a call in `<tool_call>`", f"<tool_call>{named}</tool_call>"),
        ("fence", "a call in a fence of JSON", f"```json\n{named}\n```"),
        ("json", "a call as bare JSON", named),
        ("harmony", "a call of the harmony format", harmony),
        ("think", "thinking tags before a call in brackets", f"<think>I write it.</think>\n{bracket}"),
        ("think-call", "a call in brackets within thinking tags", f"<think>\n{bracket}\n</think>\nDone."),
        ("think-answer", "thinking tags before an answer", "<think>Nothing to do.</think>Done."),
        ("think-open", "thinking that never ends", "<think>Nothing to do. Done."),
    ):
        yield WRITER(f"written-{name}", about, text, DONE)
