"""Judging takes a bounded time: whatever a model replies, as long as a reply may be."""

import math
import time
from dataclasses import dataclass, replace
from typing import ClassVar

import pytest
from hypothesis import given
from hypothesis import strategies as st

from pytest_openclaw.asking.sending import bounded_reply
from pytest_openclaw.judging.judge import JudgedCell, judge
from pytest_openclaw.openclaw.catalog import load_catalogue
from pytest_openclaw.openclaw.claims import claims_done, reports_failure
from pytest_openclaw.openclaw.detector import detect_tools
from pytest_openclaw.util.bounded import fullmatches, left_s, within
from pytest_openclaw.util.errors import OpenClawError
from pytest_openclaw.util.text import MAX_ANSWER_BYTES, MAX_CALLS_BYTES
from pytest_openclaw.values.prompts import Cell
from pytest_openclaw.values.replies import CallResult, Reply, Timing, Verdict
from pytest_openclaw.values.requests import Target
from pytest_openclaw.values.tool_calls import ToolCall
from pytest_openclaw.values.worlds import ScriptedCommand, World
from tests.builtin import build
from tests.searching import examples
from tests.unit.judging.finding import find_written_calls
from tests.unit.judging.test_judge import OK, make_prompt
from tests.unit.judging.test_laws import SPECS


def _work_s():
    began = time.process_time()
    sum(range(1_000_000))
    return time.process_time() - began


# Limits follow the machine: about 2 s and 40 s where the work takes 15 ms. Quadratic time takes minutes.
WORK_S = max(_work_s() for _ in range(5))
MOMENT_S, HANG_S = 130 * WORK_S, 2600 * WORK_S

PIECES = [
    "`", "``", "```", "```\n", "```bash\n", "~~~\n", "`a ", "[", "]", "[[", "[]", "{", "}", "{}", '{"',
    '{"a":', "[1,", '["', '"', "'", '"a ', "'a ", "\\", '\\"', "<", "<tool>", "<tool>a", "</tool>",
    "<tool_call>", "<think>", "</think>", "<think>\n</think>", "<a ", '<a b="', "$ ", "$ a ", "# a\n", "a@b ",
    "\na@b:", " ", ".", "..", ". ", "! ", "e.g. ", "U.S. ", "No. ", "。", "\n", "\r\n", "\t", " \n", "- ",
    "\n-", "> ", "*", "_", "a", "a ", "a.", "é", "0 ", "1.", "| a", "<<a\n", "\\\n", "&&\n", "A=b ", "[tool: ",
    "[tool: a", "[read]\n{", "[tool:read]{}", "Action: ", "commentary to", "<|channel|>", "[TOOL_CALLS]",
    "\ntool:a\n", "“", "「", "I have saved ", "done ", "has been sent ", "HEARTBEAT_OK ", "<b>", "\x00",
    "\u2028", "read(", "read(path=", '{"name": "read", ', "{'name': 'read', ", '{"name":"read","arguments":{',
    "for example, ", "x\n", "(", ")", "=", "/", ": ", "<think>x", "<think></think>", "`</think>`", "`a",
    "``` ` `` ", "'a | b ", "$   ", "a@b:", "<<a ", "~~~ `", "```bash\na <<b\n", "plain text. ", "{'",
    'read("', "<read ", "<function=", "to=", "action:\n", '"name": "read"', "[read]{", "<read><path>",
    '{"x":"\\"', "a.b.c.", "tool: ", '{"name": "read", "arguments": {"path": "notes.md"}} ',
    'read(path="x")\n', "[read]\n{}[/read]\n", "<tool_call>read\n", "to=functions.read ", "I have ", "the ",
    "ich habe ", "已", "- \n", "was was ", "was not ", "no ", "error ", "it is still ", "rest of ", "if ", "(4",
    "only the ", "<parameter=path>", "read\npath: ", "read\\_", "]<]minimax[>[", "&lt;tool_call&gt;", "<tool_call:a>", "{a: b ",
    "(a=", "<edits><item>", "read <", "<arg_key>path</arg_key>", "I have paid ", "in 1923 ", "your bill has been ",
]  # fmt: skip
TOOLS = load_catalogue().surface("direct")
EVERY_ONE = build("any_of", validators=SPECS)
READS = {"type": "tool_call", "calls": [{"name": "read"}]}


def filled(start, piece, n_bytes):
    text = start + piece * (n_bytes // len(piece.encode()) + 1)
    return text.encode()[:n_bytes].decode("utf-8", "ignore")


def seconds(prompt, reply):
    began = time.process_time()
    judge(prompt, reply)
    return time.process_time() - began


@pytest.mark.nightly
@examples(2)
@given(start=st.sampled_from(["", *PIECES]), pieces=st.lists(st.sampled_from(PIECES), min_size=1, max_size=3))
@pytest.mark.newest
def test_no_text_hangs_a_judge(start, pieces):
    """Searches for tools, leaked calls and claims, and validators, finish for any text up to the limit."""
    reply = Reply(text=filled(start, "".join(pieces), MAX_ANSWER_BYTES))
    native = replace(make_prompt(READS), tools=TOOLS)

    took = seconds(native, reply)
    took += seconds(replace(native, validator=EVERY_ONE, tools=None), reply)

    assert took < HANG_S


SEARCHES = {
    "tools": detect_tools,
    "calls": lambda text: find_written_calls(text, TOOLS),
    "claims": claims_done,
    "failures": reports_failure,
}


@pytest.mark.parametrize("name", SEARCHES)
@pytest.mark.newest
def test_a_search_takes_linear_time(name):
    """An eighth of the longest answer, of any piece, is searched in a moment; quadratic time is many seconds."""
    slow = {}
    for piece in PIECES:
        began = time.process_time()
        SEARCHES[name](filled("", piece, MAX_ANSWER_BYTES // 8))
        slow[piece] = time.process_time() - began

    assert {piece: took for piece, took in slow.items() if took > MOMENT_S} == {}


SLOWEST = [
    ("", "。"),
    ('"', "x\n"),
    ("", '{"name": "read", '),
    ("```bash\n", "x\n"),
    ("", "[]"),
    ("", "<think>\n</think>"),
]
"""A start and a piece; of a few hundred texts these took longest: 0.3 to 0.7 s each."""


@pytest.mark.parametrize(("start", "piece"), SLOWEST)
@pytest.mark.newest
def test_the_slowest_texts_known(start, piece):
    """They are judged as any others."""
    reply = Reply(text=filled(start, piece, MAX_ANSWER_BYTES))

    assert seconds(replace(make_prompt(READS), tools=TOOLS), reply) < HANG_S


WORLD = World(files={"notes.md": "a\n" * 20_000}, commands=(ScriptedCommand(pattern="make.*"),))


@pytest.mark.parametrize(
    ("name", "arguments", "n_calls"),
    [
        ("edit", '{"path":"notes.md","edits":[' + "{}," * (MAX_CALLS_BYTES // 3 - 20) + "{}]}", 1),
        ("exec", '{"command": "' + "cat notes.md | " * 30 + 'cat"}', 64),
        ("read", "[" * MAX_CALLS_BYTES, 1),
        ("write", '{"path": "a", "content": "' + "x" * (MAX_CALLS_BYTES - 50) + '"}', 1),
    ],
    ids=["edits", "commands", "brackets", "a-file"],
)
@pytest.mark.newest
def test_no_calls_hang_a_judge(name, arguments, n_calls):
    """Calls up to the limit are checked and carried out in the world in seconds."""
    calls = tuple(ToolCall(name=name, arguments=arguments) for _ in range(n_calls))
    reply = bounded_reply(Reply(tool_calls=calls))

    assert seconds(replace(make_prompt(READS), tools=TOOLS, world=WORLD), reply) < HANG_S


@pytest.mark.parametrize(
    ("spec", "passed"),
    [
        ({"type": "not", "validator": {"type": "contains", "value": "secret"}}, False),
        ({"type": "max_words", "value": 1}, False),
        ({"type": "contains", "value": "nothing of it"}, False),
        ({"type": "noop"}, None),
    ],
    ids=["passed", "passed-by-length", "failed", "not-judged"],
)
def test_a_reply_that_was_cut_passes_nothing(spec, passed):
    """The text beyond the limit might be required or forbidden."""
    reply = bounded_reply(Reply(text="a" * 400_000))

    verdict = judge(make_prompt(spec), reply).verdict

    assert (verdict.passed, verdict.violation is None) == (passed, passed is None)


@dataclass(frozen=True)
class Slow:
    type: ClassVar[str] = "slow"

    def check(self, reply):
        del reply
        time.sleep(0.02)
        return Verdict(passed=True)


def test_judging_within_the_cells_time():
    """A plugin's validator may finish; if it took longer than the cell's time, there is no verdict."""
    prompt = replace(make_prompt(OK), validator=Slow())

    assert judge(prompt, Reply(text="OK")).verdict.passed is True
    with pytest.raises(
        OpenClawError, match=r"the reply was not judged within 0\.01 s\. Raise --openclaw-timeout"
    ):
        judge(prompt, Reply(text="OK"), timeout_s=0.01)


def test_patterns_end_with_the_time_that_is_left():
    """A pattern that would take forever takes no more than its cell's time."""
    pattern = {"type": "regex_fullmatch", "pattern": "(a|aa)+b"}

    with pytest.raises(
        OpenClawError, match=r"cannot be decided on a reply of 60 characters within 0\.0[0-9]+ s"
    ):
        judge(make_prompt(pattern), Reply(text="a" * 60), timeout_s=0.05)


@pytest.mark.parametrize(
    ("own_s", "run_s"), [(0.01, 300.0), (None, 0.01)], ids=["of-the-prompt", "of-the-run"]
)
def test_the_time_is_the_cells(own_s, run_s):
    """A prompt's own time limit takes precedence over the run's."""
    prompt = replace(make_prompt(OK), validator=Slow(), timeout_s=own_s)
    timing = Timing(started_at_ms=0, ended_at_ms=1, e2e_ms=1.0)
    result = JudgedCell(
        cell=Cell(prompt=prompt, target=Target(provider="p", model="m")),
        call=CallResult(result=Reply(text="OK"), timing=timing),
    )

    judged = result.judged_or_broken(run_s)

    assert (judged.outcome.failure_type, judged.outcome.pytest) == ("harness_error", "error")


def test_an_inner_time_ends_no_later_than_the_outer():
    """Without a limit the time is infinite."""
    assert left_s() == math.inf
    with within(0.0), within(60.0):
        assert left_s() <= 0
        assert fullmatches("a+", "aaa"), "a moment is left for what takes none"
    assert left_s() == math.inf
