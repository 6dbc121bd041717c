"""Ends of an exchange: without an answer, at the step limit, in a loop, or with a call written as text."""

from __future__ import annotations

from collections.abc import Iterator

from tests.openclaw.agreement.cases import DONE, FILES, READ, Case, call, calls, own_case, says
from tests.openclaw.model_server import Said

OPEN = calls(call("open", path="a"))


def endings() -> Iterator[Case]:
    """Yield the cases."""
    yield from _endings()
    yield from _without_tools()
    yield from _written()


def _endings() -> Iterator[Case]:
    yield own_case("ends-at-once", "an answer without a call", DONE, files=FILES)
    yield own_case("ends-empty", "a call, then an empty answer", calls(READ), says(""), files=FILES)
    yield own_case("ends-empty-at-once", "an empty answer at once", says(""), files=FILES)
    yield own_case("ends-blank", "a call, then blanks", calls(READ), says(" \n"), files=FILES)
    yield own_case(
        "ends-reasoning", "a call, then thinking alone", calls(READ), Said(reasoning="Hm."), files=FILES
    )
    yield own_case("ends-reasoning-at-once", "thinking alone at once", Said(reasoning="Hm."), files=FILES)
    yield own_case(
        "ends-think-at-once", "thinking tags alone at once", says("<think>Hm.</think>"), files=FILES
    )
    for name, about, before in (
        ("write", "a file written", calls(call("write", path="n.txt", content="x"))),
        ("error", "a call that failed", calls(call("read", path="no.txt"))),
        ("corrected", "a call that failed and a right one", calls(call("read", path="no.txt"), READ)),
    ):
        yield own_case(
            f"ends-empty-after-{name}",
            f"{about}, an empty answer, then words",
            before,
            says(""),
            DONE,
            files=FILES,
        )
    yield own_case(
        "ends-length",
        "an answer that was cut off",
        calls(READ),
        Said(text="Done, and", finish="length"),
        files=FILES,
    )
    yield own_case(
        "ends-stop-with-calls",
        "calls whose finish_reason is stop",
        Said(calls=(READ,), finish="stop"),
        DONE,
        files=FILES,
    )
    yield own_case(
        "ends-length-with-calls",
        "calls whose finish_reason is length",
        Said(calls=(READ,), finish="length"),
        DONE,
        files=FILES,
    )
    for name, about, *cut in (
        ("empty", "an answer of which nothing came", Said(text="", finish="length")),
        ("calls", "calls whose finish_reason is length", Said(calls=(READ,), finish="length")),
        ("twice", "two empty ones", *[Said(text="", finish="length")] * 2),
    ):
        yield own_case(
            f"ends-length-after-call-{name}",
            f"a call, then at the output limit: {about}",
            calls(READ),
            *cut,
            DONE,
            files=FILES,
        )
    yield own_case(
        "ends-call-beside-text",
        "words and calls in one turn",
        Said(text="Let me look.", calls=(READ,)),
        Said(text="Done.", calls=(call("write", path="n.txt", content="x"),)),
        says("Done, really."),
        files=FILES,
    )
    yield own_case(
        "ends-call-after-answer",
        "an answer, with a needless call in its turn",
        says("Done."),
        calls(call("write", path="n.txt", content="x")),
        files=FILES,
    )
    yield own_case(
        "ends-never",
        "another call in each turn, to the last step",
        *(calls(call("write", path=f"n{n}.txt", content="x")) for n in range(6)),
        tools=("write", "read"),
        files=FILES,
        steps=6,
    )
    yield own_case("loop-same", "the same call again and again", calls(READ), files=FILES)
    yield own_case(
        "loop-error",
        "the same failing call again and again",
        calls(call("read", path="no.txt")),
        files=FILES,
    )
    yield own_case(
        "loop-refused",
        "the same refused call again and again",
        calls(call("read", file="a.txt")),
        files=FILES,
    )
    yield own_case(
        "loop-unknown",
        "the same unknown tool again and again",
        OPEN,
        files=FILES,
    )
    yield own_case(
        "loop-unknown-known",
        "an unknown tool ten times, a right call, and the unknown one again",
        *[OPEN] * 10,
        calls(READ),
        OPEN,
        OPEN,
        DONE,
        files=FILES,
        steps=16,
    )
    yield own_case(
        "loop-unknown-written",
        "the same unknown tool in other letters and arguments",
        *(calls(call(name, n=n)) for n in range(7) for name in ("open", "Open ")),
        files=FILES,
        steps=14,
    )
    yield own_case(
        "loop-unknown-two",
        "two unknown tools that take turns",
        *[OPEN, calls(call("view", path="a"))] * 6,
        files=FILES,
    )
    yield own_case(
        "loop-unknown-beside",
        "an unknown tool beside a right call, again and again",
        calls(call("open", path="a"), READ),
        files=FILES,
    )
    yield own_case(
        "loop-found-out",
        "the same call six times, then the right one",
        *[calls(READ)] * 6,
        calls(call("write", path="n.txt", content="x")),
        DONE,
        tools=("write", "read"),
        files=FILES,
    )
    yield own_case(
        "loop-ping-pong",
        "two calls that take turns",
        *([calls(READ), calls(call("ls"))] * 6),
        files=FILES,
    )
    yield own_case(
        "loop-write",
        "the same write again and again",
        calls(call("write", path="n.txt", content="x")),
        tools=("write", "read"),
        files=FILES,
    )
    yield own_case(
        "loop-in-a-turn", "the same call five times in a turn", calls(*[READ] * 5), DONE, files=FILES
    )


def _without_tools() -> Iterator[Case]:
    """Calls where OpenClaw asks for only words, after a call and an answer without text."""
    written = '[write]\n{"path": "n.txt", "content": "x"}\n[END_TOOL_REQUEST]'
    write = call("write", path="n.txt", content="x")
    for name, about, *after in (
        ("call", "the same call", calls(READ), DONE),
        ("calls", "a write and other calls, turn by turn", calls(write), calls(call("ls"), READ), DONE),
        ("beside-text", "words beside a call", Said(text="Let me look.", calls=(READ,)), DONE),
        ("odd", "a name that no tool can have", calls(call("re ad", path="a.txt")), DONE),
        ("written", "a call written in brackets", says(written), DONE),
        ("broken", "arguments that are cut off", calls(("read", '{"path": "a.t')), DONE),
        ("empty", "a call, then an empty answer again", calls(READ), says(""), DONE),
        (
            "length",
            "a call, then nothing came before the output limit",
            calls(READ),
            Said(finish="length"),
            DONE,
        ),
        ("length-call", "a call whose finish_reason is length", Said(calls=(READ,), finish="length"), DONE),
        ("again", "the same call again and again", calls(READ)),
    ):
        yield own_case(
            f"without-tools-{name}",
            f"a call, an empty answer, and without tools {about}",
            calls(READ),
            says(""),
            *after,
            files=FILES,
            steps=16,
        )


def _written() -> Iterator[Case]:
    write = '{"path": "n.txt", "content": "x"}'
    named = '{"name": "write", "arguments": {"path": "n.txt", "content": "x"}}'
    for name, about, text in (
        ("bracket", "a call written in brackets", f"[write]\n{write}\n[END_TOOL_REQUEST]"),
        ("bracket-tool", "a call written as `[tool:name]`", f"[tool:write]{write}"),
        ("bracket-closed", "a call written in brackets that close by name", f"[write]\n{write}\n[/write]"),
        (
            "bracket-words",
            "words before a call in brackets",
            f"I write it.\n[write]\n{write}\n[END_TOOL_REQUEST]",
        ),
        ("bracket-unknown", "an unknown tool in brackets", f"[save]\n{write}\n[END_TOOL_REQUEST]"),
        ("bracket-broken", "brackets around what is no JSON", '[write]\n{"path": \n[END_TOOL_REQUEST]'),
        ("xml", "a call in `<tool_call>`", f"<tool_call>{named}</tool_call>"),
        ("fence", "a call in a fence of JSON", f"```json\n{named}\n```"),
        ("json", "a call as bare JSON", named),
        (
            "harmony",
            "a call of the harmony format",
            f"<|channel|>commentary to=functions.write <|constrain|>json<|message|>{write}<|call|>",
        ),
        (
            "think",
            "thinking tags before a call in brackets",
            f"<think>I write it.</think>\n[write]\n{write}\n[END_TOOL_REQUEST]",
        ),
        (
            "think-call",
            "a call in brackets within thinking tags",
            f"<think>\n[write]\n{write}\n[END_TOOL_REQUEST]\n</think>\nDone.",
        ),
        ("think-answer", "thinking tags before an answer", "<think>Nothing to do.</think>Done."),
        ("think-open", "thinking that never ends", "<think>Nothing to do. Done."),
    ):
        yield own_case(f"written-{name}", about, says(text), DONE, tools=("write", "read"), files=FILES)
