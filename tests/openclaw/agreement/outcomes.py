"""The outcome of a case, in our loop and, recorded, in the real agent, so that both can be compared."""

import hashlib
import json
import re
from collections.abc import Mapping
from dataclasses import dataclass, field
from itertools import zip_longest
from pathlib import Path
from typing import Literal

import msgspec

from pytest_openclaw.judging.judge import judge
from pytest_openclaw.values.faults import outcome_of
from pytest_openclaw.values.replies import Fault

Kind = Literal["ok", "error", "bad_arguments", "unknown_tool", "unanswered"]


JUSTIFIED = (
    (r'"observedAt": \d+', '"observedAt": 0', "the moment at which OpenClaw looked at a note"),
    (
        r"(?s:(?:SECURITY NOTICE|CAUTION):.*?(?=(?:\\n|\n){3}(?:<<<|\[\[)))",
        "NOTICE",
        "the notice before a page, in our words and of the same length",
    ),
    (
        r'(?<=CONTENT id=\\")[0-9a-f]{16}|(?<=CONTENT id=")[0-9a-f]{16}|(?<=web-fetch-)[0-9a-f]{16}',
        "0" * 16,
        "the ids of pages and of their files, which are random in OpenClaw",
    ),
    (r'"fetchedAt": "[^"]*"', '"fetchedAt": ""', "the moment at which a page was fetched"),
    (r'"tookMs": \d+', '"tookMs": 0', "the time that a page took"),
    (
        r"http://127\.0\.0\.1:\d{5}",
        "http://council.example",
        "the address of the pages, which are on loopback",
    ),
)
"""Pattern, replacement, and why the text may differ: the only normalisation."""


LONG_CHARS = 4000


def alike(text):
    for pattern, replacement, _ in JUSTIFIED:
        text = re.sub(pattern, replacement, text)
    return shortened(text)


def shortened(text):
    if len(text) <= LONG_CHARS:
        return text
    digest = hashlib.sha256(text.encode()).hexdigest()[:16]
    return f"{text[:300]} … {len(text)} characters with the hash {digest} … {text[-300:]}"


@dataclass(frozen=True, kw_only=True)
class Happened:
    """A call: executed (`ok`, `error`), refused, or without a result; and the result that the model received."""

    name: str
    kind: Kind
    result: str = ""


@dataclass(frozen=True, kw_only=True)
class Outcome:
    """The outcome of a case: verdict or failure type, class of its tool use, end, calls of each turn, files."""

    verdict: str
    tool_outcome: str | None
    ended: str | None
    turns: tuple[tuple[Happened, ...], ...] = ()
    files: Mapping[str, str]


def outcome(prompt, result):
    """Return the outcome of a case, as its row would have it."""
    if isinstance(result, Fault):
        return Outcome(verdict=outcome_of(result).failure_type or "", tool_outcome=None, ended=None, files={})
    judged = judge(prompt, result)
    passed = {True: "passed", False: "failed", None: "not judged"}[judged.verdict.passed]
    turns = tuple(
        tuple(
            Happened(name=call.name, kind=_kind(received), result=alike(received or ""))
            for call, received in zip_longest(turn.calls, turn.results[: len(turn.calls)])
        )
        for turn in judged.reply.turns
    )
    state = judged.reply.world
    return Outcome(
        verdict=judged.outcome.failure_type or passed,
        tool_outcome=judged.tool_outcome,
        ended=judged.reply.ended_by,
        turns=turns,
        files={path: shortened(text) for path, text in state.files.items()} if state else {},
    )


def _kind(received):
    """Derive the kind from the result that the model received, by the same rule on both sides."""
    if not received:
        return "unanswered"
    if received.startswith("Validation failed for tool "):
        return "bad_arguments"
    if re.fullmatch(r"Tool .* not found", received, re.DOTALL):
        return "unknown_tool"
    try:
        value = json.loads(received)
    except ValueError:
        return "ok"
    return "error" if isinstance(value, dict) and value.get("status") == "error" else "ok"


def differences(ours, real):
    """Yield the differences in words, without those in the texts of results."""
    first, second = "our loop", "OpenClaw"
    for name in ("verdict", "tool_outcome", "ended"):
        one, other = getattr(ours, name), getattr(real, name)
        if one != other:
            yield f"{name.replace('_', ' ')}: {one} in {first}, {other} in {second}"
    if len(ours.turns) != len(real.turns):
        yield f"turns: {len(ours.turns)} in {first}, {len(real.turns)} in {second}"
    for number, (turn, other_turn) in enumerate(zip(ours.turns, real.turns, strict=False), 1):
        one, other = (", ".join(f"{c.name} {c.kind}" for c in calls) for calls in (turn, other_turn))
        if one != other:
            yield f"turn {number}: {one or 'no call'} in {first}, {other or 'no call'} in {second}"
    for path in sorted({*ours.files, *real.files}):
        if ours.files.get(path) != real.files.get(path):
            one, other = (json.dumps(files.get(path))[:80] for files in (ours.files, real.files))
            yield f"{path}: {one} in {first}, {other} in {second}"


def n_other_words(ours, real):
    turns = zip(ours.turns, real.turns, strict=False)
    calls = (pair for turn, other in turns for pair in zip(turn, other, strict=False))
    return sum(one.result != other.result for one, other in calls)


FILE = Path(__file__).with_name("observed.json")


@dataclass(frozen=True, kw_only=True)
class Releases:
    openclaw: str
    node: str
    pytest_openclaw: str
    date: str


@dataclass(frozen=True, kw_only=True)
class Kept:
    digest: str
    outcome: Outcome


@dataclass(kw_only=True)
class Observed:
    releases: Releases | None = None
    cases: dict[str, Kept] = field(default_factory=dict)

    def outcome(self, case):
        kept = self.cases.get(case.id)
        return kept.outcome if kept and kept.digest == case.digest else None

    def save(self):
        text = json.dumps(msgspec.to_builtins(self), indent=1, ensure_ascii=False)
        FILE.write_text(f"{text}\n", encoding="utf-8")


def load():
    return msgspec.json.decode(FILE.read_bytes(), type=Observed)
