"""Worlds, and turns of calls in them, designed to cause as much work as possible."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from typing import Any

from hypothesis import strategies as st

from pytest_openclaw.types.tool_calls import ToolCall
from pytest_openclaw.types.worlds import Answer, Command, World

_UNITS = (
    "a", "ab", "x\n", "\n", "a\n\n", "q b\n", "\r\n", "x\r", "\x0b", "\u2028", "é", "é\n", "\ufdfa", "\u0301", "a\u0301\u0316",
    "ß ", "aaaa ", "1 ", "-", " ", "\t", "@", "“", "\u00a0\n", "deploy1 ", "a: 1\n", "\U0001f600", "%s", "\\n", "*", "[!a]",
)  # fmt: skip
_SIZES = (1, 3, 40, 1000, 2400, 20_000, 120_000, 400_000)
_PATHS = ("b", "c", "d/e", "d", ".", "/", "memory/a.md", "d/../b", "~", "x" * 200, "", "a/" * 30 + "z")
_PROGRAMS = (
    "cat", "cat -n", "ls", "ls -la", "echo", "echo -e", "printf", "head -n 999999", "tail -1", "wc", "grep -c", "grep -rin",
    "grep -v", "grep -F", "sort", "sort -nr", "sort -u", "cp", "mv", "rm -r", "mkdir -p", "touch", "cd", "nope", "make", "true",
    "sed s/a*b/[&]/g", "sed -n /a.*b/p", "sed -i s/a/aa/g", "grep -E (a|ab|b*)*c", "grep -o a*", "grep -C9 b", "find", "find . -name *a*b -exec cat {} ;",
    "tr a-z b", "cut -c1-", "uniq -c", "xargs", "xargs -n1 echo", "tee c", "tac", "rev", "sort -t: -k2", "cp -r d", "env", "test", "seq 9999", "ls -R",
    "for i in {1..999}; do cat", "if [ -f b ]; then grep a", "bash -c", "a=$(cat b); echo $a$a$a", "printf %s%s",
)  # fmt: skip
_WORDS = (
    "b", "c", "d", ".", "./.", "/", "d/*", "*", "*a*b", "[!x]*", "?" * 30, "*a" * 60, "n*n*n*z", "d/e", "a/" * 20, "-n", "%s",
    "'a b'", '"$x"', "a" * 900 + "b", "\\*", "-", "é", "x", "q",
)  # fmt: skip
_LINKS = (" | ", "; ", " && ", " || ", "\n", " >> c; ", " > b; ", " 2>/dev/null | ", " < b | ")
_PATCHED = ("*** Update File: b", "*** Add File: z", "*** Delete File: c", "@@", "@@ q b", "-x", "-q b", "+y", " x", " ", "-", "*** End of File", "*** Move to: y")  # fmt: skip


def _repeated(pieces: Sequence[str], sizes: Sequence[int], most_chars: int) -> st.SearchStrategy[str]:
    return st.builds(
        lambda piece, n, end: (piece * min(n, most_chars // len(piece)) + end)[:most_chars],
        st.sampled_from(pieces),
        st.sampled_from(sizes),
        st.sampled_from(("", "b", "\n", "q b\n")),
    )


def _as_often(entries: list[dict[str, Any]], n: int) -> list[dict[str, Any]]:
    """Repeat entries up to a million characters: more is refused unread."""
    return entries * max(1, min(n, 1_000_000 // len(str(entries))))


TEXTS = _repeated(_UNITS, _SIZES, 400_000)
SHORT_TEXTS = _repeated(_UNITS, _SIZES[:-2], 60_000)


@st.composite
def commands(draw: st.DrawFn) -> str:
    """A command of up to 32,768 characters."""
    parts: list[str] = []
    for _ in range(draw(st.integers(1, 4))):
        words = draw(st.lists(st.sampled_from(_WORDS), min_size=1, max_size=3))
        one = " ".join(
            [draw(st.sampled_from(_PROGRAMS)), *words * draw(st.sampled_from((1, 1, 2, 40, 1400)))]
        )
        link = draw(st.sampled_from(_LINKS))
        parts.append(f"{one}{link}" * draw(st.sampled_from((1, 1, 5, 45))))
    whole = "".join(parts)[: draw(st.sampled_from((700, 8000, 32_700)))]
    return draw(st.sampled_from((whole, f"{whole}true", f"cat <<E >> b; {whole}\n{whole}\nE\n")))


@st.composite
def patches(draw: st.DrawFn) -> str:
    """A patch of up to 120,000 lines."""
    lines = draw(st.lists(st.sampled_from(_PATCHED), min_size=1, max_size=6))
    repeated = draw(st.lists(st.sampled_from(lines), max_size=3)) * draw(
        st.sampled_from((1, 9, 3000, 20_000))
    )
    body = ["*** Update File: b", *lines, *repeated]
    return "\n".join(["*** Begin Patch", *body * draw(st.sampled_from((1, 1, 20))), "*** End Patch"])[
        :240_000
    ]


_ARGUMENTS: Mapping[str, st.SearchStrategy[Any]] = {
    "exec": st.fixed_dictionaries({"command": commands()}),
    "read": st.fixed_dictionaries(
        {"path": st.sampled_from(_PATHS)}, optional={"offset": st.integers(0, 10**6), "limit": st.integers(0, 10**6)}
    ),
    "write": st.fixed_dictionaries({"path": st.sampled_from(_PATHS), "content": TEXTS}),
    "edit": st.builds(
        lambda path, pairs, n: {"path": path, "edits": _as_often([{"oldText": old, "newText": new} for old, new in pairs], n)},
        st.sampled_from(("b", "c", "memory/a.md")),
        st.lists(st.tuples(SHORT_TEXTS, SHORT_TEXTS), min_size=1, max_size=3),
        st.sampled_from((1, 1, 30, 2000)),
    ),
    "apply_patch": st.fixed_dictionaries({"input": patches()}),
    "ls": st.fixed_dictionaries({}, optional={"path": st.sampled_from(_PATHS), "after": SHORT_TEXTS}),
    "memory_search": st.fixed_dictionaries({"query": TEXTS}),
    "memory_get": st.fixed_dictionaries({"path": st.sampled_from(_PATHS)}, optional={"from": st.integers(1, 10**6)}),
    "web_search": st.fixed_dictionaries({"query": TEXTS}),
    "web_fetch": st.builds(lambda rest: {"url": f"http://{rest}"}, TEXTS),
    "tool_search": st.builds(lambda texts, n: {"queries": _as_often([{"query": text, "limit": 20} for text in texts], n)}, st.lists(SHORT_TEXTS, min_size=1, max_size=2), st.sampled_from((1, 10, 1000))),
    "tool_describe": st.fixed_dictionaries({"id": SHORT_TEXTS}),
    "message": st.builds(lambda text, n: {"action": "send", "message": text, "attachments": [{}] * n}, TEXTS, st.sampled_from((0, 4000, 60_000))),
    "weather": st.builds(lambda n, text: {"city": text, "list": [[]] * n}, st.sampled_from((0, 4000, 60_000)), SHORT_TEXTS),
    "process": st.fixed_dictionaries({"action": st.just("poll"), "sessionId": SHORT_TEXTS}),
    "nope": st.fixed_dictionaries({"x": TEXTS}),
}  # fmt: skip


@st.composite
def calls(draw: st.DrawFn) -> ToolCall:
    """One call, perhaps over the bridge, perhaps with invalid arguments."""
    tool = draw(st.sampled_from(sorted(_ARGUMENTS)))
    arguments = draw(_ARGUMENTS[tool])
    if draw(st.integers(0, 9)) == 0:
        tool, arguments = "tool_call", {"id": tool, "args": arguments}
    written = json.dumps(arguments, ensure_ascii=draw(st.booleans()))
    return ToolCall(name=tool, arguments=written[:-1] if draw(st.integers(0, 30)) == 0 else written)


@st.composite
def turns(draw: st.DrawFn) -> tuple[tuple[ToolCall, ...], ...]:
    """The calls of some turns."""
    made = draw(st.lists(st.lists(calls(), min_size=1, max_size=3), min_size=1, max_size=3))
    return tuple(tuple(turn * draw(st.sampled_from((1, 1, 10, 400)))) for turn in made)


@st.composite
def worlds(draw: st.DrawFn) -> World:
    """A world of large files, or of many."""
    files = {path: draw(TEXTS) for path in ("b", "c", "d/e", "memory/a.md")}
    name, n = draw(st.sampled_from(("n", "n" * 200, "d/n", "m/n/"))), draw(st.sampled_from((0, 20, 1900)))
    return World(
        files={**files, **{f"{name}{number}": "" for number in range(n)}},
        commands=tuple(
            Command(pattern=f"(make|build{number}).*now", output="x" * 1000) for number in range(20)
        ),
        pages={"https://a.example/b": draw(TEXTS)},
        answers=(
            Answer(tool="weather", result="rain", matching={"properties": {"list": {"uniqueItems": True}}}),
        ),
    )
