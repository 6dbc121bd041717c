"""The suites in `benchmarks/` that offer tools: right exchanges pass, wrong ones fail, and they cover enough."""

from __future__ import annotations

import asyncio
import json
import re
import tomllib
from dataclasses import replace
from itertools import chain, combinations, pairwise, repeat
from pathlib import Path

import pytest

from pytest_openclaw.asking.exchanges import hold_exchange
from pytest_openclaw.judging.calls import demands_of
from pytest_openclaw.judging.judge import judge
from pytest_openclaw.judging.registry import BUILTIN, build_registry
from pytest_openclaw.openclaw.catalog import load_catalogue
from pytest_openclaw.stats.intervals import wilson_95
from pytest_openclaw.stats.tiers import MOST_NEEDLESS, is_conclusive, joint_z
from pytest_openclaw.suites.load import load_suite
from pytest_openclaw.values.replies import CallResult, Reply, Timing
from pytest_openclaw.values.requests import Request
from pytest_openclaw.values.tool_calls import ToolCall

pytestmark = pytest.mark.newest

HERE = Path(__file__).parent
BENCHMARKS = HERE.parents[1] / "benchmarks"
REGISTRY = build_registry([("pytest-openclaw", validator) for validator in BUILTIN])
NAMES = ("native", "agentic", "pressure", "safety", "failures", "conventions")
WITH_PROBES = ("safety", "failures")
NAMED = ("failures", "conventions")
"""The suites whose wrong exchanges say by which outcome they fail."""
SUITES = {
    name: load_suite(
        BENCHMARKS / f"prompts_{name}.toml", name=f"benchmarks/prompts_{name}.toml", registry=REGISTRY
    )
    for name in NAMES
}
REPLIES = {name: tomllib.loads((HERE / f"replies_{name}.toml").read_text("utf-8")) for name in NAMES}
PROMPTS = [prompt for suite in SUITES.values() for prompt in suite.prompts]
EVERY_PROMPT = [pytest.param(prompt, id=prompt.id) for prompt in PROMPTS]
PROBES = [pytest.param(prompt, id=prompt.id) for prompt in PROMPTS if prompt.probe]


def suite_of(prompt):
    """Return the short name of a prompt's suite."""
    return prompt.suite.removeprefix("benchmarks/prompts_").removesuffix(".toml")


def entry_of(name, prompt):
    """Return the replies of a prompt; harder forms of one entry share them."""
    return REPLIES[name][prompt.pressure_of or prompt.id]


def replies(verdict, *names):
    """Return a parameter for each reply of the tables that must come to this verdict, right or wrong."""
    return [
        pytest.param(prompt, written, id=f"{prompt.id}-{number}")
        for name in names or NAMES
        for prompt in SUITES[name].prompts
        for entry in [entry_of(name, prompt)]
        for number, written in enumerate([entry[verdict], *entry.get(f"also_{verdict}", [])])
    ]


def calls_of(written):
    """Return calls as the API would send them."""
    return tuple(
        ToolCall(name=call["name"], arguments=json.dumps(call["arguments"], ensure_ascii=False))
        for call in written
    )


def reply_of(prompt, written):
    """Return a reply as a provider returns it: a text, calls, or a whole exchange in the prompt's world."""
    if isinstance(written, str):
        return Reply(text=written, finish_reason="stop")
    if isinstance(written, list):
        return Reply(tool_calls=calls_of(written), finish_reason="tool_calls")
    request = Request(
        model="m", prompt=prompt.prompt, tools=prompt.tools, world=prompt.world, turns=prompt.turns
    )
    said = [
        Reply(text=step, finish_reason="stop")
        if isinstance(step, str)
        else Reply(tool_calls=calls_of(step), finish_reason="tool_calls")
        for step in written["turns"]
    ]
    if not written.get("loop"):
        said.append(Reply(text=written["text"], finish_reason="stop"))
    turns = chain(said, repeat(said[-1]))

    async def ask(_):
        return CallResult(result=next(turns), timing=Timing(started_at_ms=0, ended_at_ms=0, e2e_ms=0))

    return asyncio.run(hold_exchange(request, ask)).result


@pytest.mark.parametrize(("prompt", "written"), replies("right"))
def test_a_right_reply_passes(prompt, written):
    """What a careful reader would accept, the validator accepts."""
    verdict = judge(prompt, reply_of(prompt, written)).verdict

    assert (verdict.passed, verdict.violation) == (True, None)


@pytest.mark.parametrize(("prompt", "written"), replies("wrong"))
def test_a_wrong_reply_fails(prompt, written):
    """A call that OpenClaw would refuse, a call of the wrong tool, and a claim without a call all fail."""
    assert judge(prompt, reply_of(prompt, written)).verdict.passed is False


@pytest.mark.parametrize(("prompt", "written"), replies("wrong", *NAMED))
def test_a_wrong_exchange_has_its_outcome(prompt, written):
    """It fails for the reason for which the prompt was written, by name."""
    judgment = judge(prompt, reply_of(prompt, written))

    assert (judgment.tool_outcome, judgment.verdict.passed) == (written["outcome"], False)
    assert judgment.tool_use_success is (written["outcome"] == "valid")


@pytest.mark.parametrize(("prompt", "written"), replies("right", *NAMED))
def test_the_model_receives_what_the_world_has(prompt, written):
    """Each result contains the facts that the right exchange relies on, failures included."""
    turns = reply_of(prompt, written).turns
    results = [" ".join(text.replace("\\n", " ").split()) for turn in turns for text in turn.results]

    assert [text in result for text, result in zip(written["receives"], results, strict=True)] == [
        True
    ] * len(results)


@pytest.mark.parametrize("prompt", PROBES)
def test_harm_is_apart_from_the_task(prompt):
    """Some tools do harm; a reply without harm is safe, with the task done or not."""
    entry = entry_of(suite_of(prompt), prompt)
    right, wrong = (judge(prompt, reply_of(prompt, entry[name])) for name in ("right", "wrong"))

    assert (right.harm, right.harm_tools) == (False, ())
    assert (wrong.harm, wrong.harm_tools) == (True, tuple(entry["harm_tools"]))
    if "resisted" in entry:
        resisted = judge(prompt, reply_of(prompt, entry["resisted"]))
        assert (resisted.verdict.passed, resisted.harm, resisted.harm_tools) == (False, False, ())


@pytest.mark.parametrize("name", WITH_PROBES)
def test_probes_and_twins_are_paired(name):
    """Each probe has one harmless twin with the same tools, which can do no harm."""
    prompts, written = SUITES[name].prompts, REPLIES[name]
    twins = [prompt for prompt in prompts if prompt.twin_of]
    tools = {prompt.id: prompt.tools_spec for prompt in prompts}

    assert [twin.twin_of for twin in twins] == [prompt.id for prompt in prompts if prompt.probe]
    assert [tools[twin.id] for twin in twins] == [tools[twin.twin_of] for twin in twins]
    assert [key for key, entry in written.items() if "harm_tools" in entry] == [p.twin_of for p in twins]
    assert {judge(twin, reply_of(twin, written[twin.id]["wrong"])).harm for twin in twins} == {None}


@pytest.mark.parametrize(("prompt", "written"), replies("right", "native", "agentic", "pressure", *NAMED))
def test_a_right_reply_counts_for_tool_use(prompt, written):
    """A right reply to a tool prompt is valid, one to a restraint prompt restrained."""
    judgment = judge(prompt, reply_of(prompt, written))

    expected = ("restrained", False) if demands_of(prompt.validator).restrains else ("valid", True)
    assert (judgment.tool_outcome, judgment.tool_use_success) == expected


@pytest.mark.parametrize(("prompt", "written"), replies("wrong", "native", "agentic", "pressure"))
def test_a_wrong_reply_is_no_valid_tool_use(prompt, written):
    """A wrong reply never counts for the tier, unless the tools did their part and only the answer is wrong."""
    judgment = judge(prompt, reply_of(prompt, written))
    words_alone = (judgment.verdict.violation or "").startswith("answer: ")

    assert (judgment.tool_outcome == "valid", judgment.tool_use_success) == (words_alone, words_alone)


@pytest.mark.parametrize("prompt", EVERY_PROMPT)
def test_an_echo_is_no_tool_use(prompt):
    """Neither the prompt sent back nor silence does what a tool prompt asks for; a probe asks for nothing."""
    for text in (prompt.prompt, ""):
        judgment = judge(prompt, Reply(text=text, finish_reason="stop"))
        assert prompt.probe or not judgment.tool_use_success


@pytest.mark.parametrize("name", NAMES)
def test_every_prompt_has_its_replies(name):
    """Each prompt of a suite has a right and a wrong reply, and no reply is left without a prompt."""
    ids = dict.fromkeys(prompt.pressure_of or prompt.id for prompt in SUITES[name].prompts)

    assert list(REPLIES[name]) == list(ids)
    assert all({"right", "wrong"} <= entry.keys() for entry in REPLIES[name].values())


def test_ids_and_names_never_collide():
    """An id means one prompt in all shipped suites, text suites included, so that `-k` is never ambiguous."""
    suites = [
        load_suite(path, name=path.name, registry=REGISTRY)
        for path in sorted(BENCHMARKS.glob("prompts_*.toml"))
    ]
    prompts = [prompt for suite in suites for prompt in suite.prompts]
    named = {prompt.pressure_of or prompt.id: prompt.name for prompt in prompts}

    assert len({prompt.id for prompt in prompts}) == len(prompts)
    assert len(set(named.values())) == len(named)


def test_no_two_prompts_ask_the_same():
    """Two prompts share less than half of their wording."""
    asked = {p.id: re.findall(r"\w+", p.prompt.lower()) for p in PROMPTS if p.pressure_of is None}
    words = {key: set(pairwise(text)) for key, text in asked.items()}
    alike = {
        (one, other): share
        for one, other in combinations(words, 2)
        if (share := len(words[one] & words[other]) / min(len(words[one]), len(words[other]))) >= 0.5
    }

    assert alike == {}


def test_every_native_prompt_has_a_second_wording():
    """With the same tools and the same rules, in the same category, and in other words."""
    path = BENCHMARKS / "prompts_native_reworded.toml"
    suite = load_suite(path, name=f"benchmarks/{path.name}", registry=REGISTRY)
    first = {f"{prompt.suite}::{prompt.id}": prompt for prompt in SUITES["native"].prompts}

    assert suite.named_only
    assert [prompt.variant_of for prompt in suite.prompts] == [*first]
    for second in suite.prompts:
        one = first[second.variant_of]
        same = replace(
            second, suite=one.suite, id=one.id, name=one.name, prompt=one.prompt, variant_of=one.variant_of
        )
        assert same == one
        words = [set(pairwise(re.findall(r"\w+", text.lower()))) for text in (one.prompt, second.prompt)]
        assert len(words[0] & words[1]) <= 0.75 * max(1, min(map(len, words))), second.id


def test_the_native_suite_covers_the_catalogue():
    """Over at least 20 of OpenClaw's tools; asked once, the prompts can settle each tier, and restraint."""
    prompts = SUITES["native"].prompts
    demanded = {
        name
        for prompt in prompts
        for call in prompt.validator_spec.get("calls", [])
        for name in ([call["name"]] if isinstance(call["name"], str) else call["name"])
    }

    n_restraint = sum(demands_of(prompt.validator).restrains for prompt in prompts)
    n_call = len(prompts) - n_restraint

    assert len(demanded & set(load_catalogue().tools)) >= 20
    assert n_restraint * 4 >= len(prompts)
    assert any(is_conclusive(2, wilson_95(n_right, n_call)) for n_right in range(n_call))
    # Restraint is settled without a needless call if the upper end is a fifth at most; here for three targets, too.
    assert wilson_95(0, n_restraint, z=joint_z(3)).high <= MOST_NEEDLESS


def test_the_other_suites_are_large_enough_and_wait_to_be_named():
    """At least 12 worlds, each pressure at each level, every kind of probe; only the native suite runs unnamed."""
    agentic, pressure, safety = (SUITES[name].prompts for name in ("agentic", "pressure", "safety"))

    assert sum(prompt.world is not None for prompt in agentic) >= 12
    assert {len(p.tools) for p in pressure} == {1, 11, 54}
    assert {p.padding_tokens for p in pressure} == {0, 2000, 16000}
    assert {p.probe for p in safety} == {"injection", "destructive", "outside_workspace", "secret", None}
    assert [SUITES[name].named_only for name in NAMES] == [False, True, True, True, True, True]
    assert sum(len(SUITES[name].prompts) for name in NAMED) >= 40
