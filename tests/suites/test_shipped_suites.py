"""The suites in `benchmarks/`: right replies pass, wrong ones and echoes fail, and each suite covers enough."""

import re
from collections import Counter
from dataclasses import replace
from itertools import combinations, pairwise

import pytest

from pytest_openclaw.judging.calls import demands_of
from pytest_openclaw.judging.judge import judge, tool_demand_of
from pytest_openclaw.openclaw.catalog import load_catalogue
from pytest_openclaw.parts.repeats import affects_tier
from pytest_openclaw.providers.chat_completions import chat_body
from pytest_openclaw.stats.intervals import wilson_95
from pytest_openclaw.stats.tool_use import MOST_NEEDLESS, PROVEN_PROMPTS, is_conclusive, joint_z
from pytest_openclaw.values.replies import Reply
from tests.suites.shipped import (
    NAMED,
    REPLIES,
    REWORDED,
    ROLES,
    SUITES,
    ids_of,
    judged,
    judged_replies,
    played,
    prompts_of,
    request_of,
)

pytestmark = pytest.mark.newest

TEXT_SUITES = ("core", "tools", "images")
WITH_PROBES = ("safety", "failures", "images")
WITH_TOOLS = ("native", "agentic", "pressure", "safety", *NAMED)
CORE_CATEGORIES = [
    "exact",
    "json",
    "extraction",
    "dates_units",
    "rewriting",
    "logs",
    "triage",
    "planning",
    "ambiguity",
]
OUTCOMES = {"call": ("valid", True), "restraint": ("restrained", False), "none": (None, False)}
"""How a right reply ends, by the demand of its prompt."""

every_suite = pytest.mark.parametrize("name", SUITES)


def text_judgment(prompt, text):
    return judge(prompt, Reply(text=text, finish_reason="stop"))


@every_suite
def test_right_replies_pass(name):
    """The validator accepts every reply that a careful reader would accept."""
    verdicts = {one.id: one.judgment.verdict for one in judged(name, "right")}

    assert {key: verdict.violation for key, verdict in verdicts.items() if not verdict.passed} == {}


@every_suite
def test_wrong_replies_fail(name):
    """Wrong content, a wrong form, a refused call, a claim without a call and forgotten facts all fail."""
    passed = {one.id: one.judgment.verdict.passed for one in judged(name, "wrong")}

    assert [key for key, verdict in passed.items() if verdict is not False] == []


@every_suite
def test_right_replies_count_for_tool_use(name):
    """A right reply to a tool prompt is valid, one to a restraint prompt restrained."""
    found = {
        one.id: (one.judgment.tool_outcome, one.judgment.tool_use_success) for one in judged(name, "right")
    }

    expected = {one.id: OUTCOMES[tool_demand_of(one.prompt)] for one in judged(name, "right")}
    assert found == expected


@pytest.mark.parametrize("name", ["native", "agentic", "pressure"])
def test_wrong_replies_are_not_valid_tool_use(name):
    """A wrong reply never counts for the tier, unless the tools did their part and only the answer is wrong."""
    for one in judged(name, "wrong"):
        only_words = (one.judgment.verdict.violation or "").startswith("answer: ")
        assert (one.judgment.tool_outcome == "valid", one.judgment.tool_use_success) == (only_words,) * 2, (
            one.id
        )


@pytest.mark.parametrize("name", NAMED)
def test_wrong_exchanges_have_their_outcomes(name):
    """Each fails for the reason for which the prompt was written, by name."""
    expected = {one.id: one.written["outcome"] for one in judged(name, "wrong")}

    assert {one.id: one.judgment.tool_outcome for one in judged(name, "wrong")} == expected


@pytest.mark.parametrize("name", NAMED)
def test_the_model_receives_the_facts_of_the_world(name):
    """Each result contains the facts that the right exchange relies on, failures included."""
    for one in judged(name, "right"):
        texts = [text for turn in one.reply.turns for text in turn.results]
        results = [" ".join(text.replace("\\n", " ").split()) for text in texts]
        receives = one.written["receives"]
        assert [text in result for text, result in zip(receives, results, strict=True)] == [True] * len(
            results
        ), one.id


@pytest.mark.parametrize("name", WITH_PROBES)
def test_harm_is_apart_from_the_task(name):
    """Some tools do harm; a reply without harm is safe, with the task done or not."""
    for prompt in prompts_of(name):
        if not prompt.probe:
            continue
        right, wrong = (judged_replies(name, prompt, kind)[0].judgment for kind in ("right", "wrong"))
        assert (right.harm, right.harm_tools) == (False, ()), prompt.id
        assert (wrong.harm, wrong.harm_tools) == (True, (*REPLIES[name][prompt.id]["harm_tools"],)), prompt.id
        assert {one.judgment.harm for one in judged_replies(name, prompt, "right")} == {False}, prompt.id
        for one in judged_replies(name, prompt, "resisted"):
            judgment = one.judgment
            assert (judgment.verdict.passed, judgment.harm, judgment.harm_tools) == (False, False, ()), one.id


@pytest.mark.parametrize("name", WITH_PROBES)
def test_probes_and_twins_are_paired(name):
    """Each probe has one harmless twin with the same tools, which can do no harm."""
    prompts = {prompt.id: prompt for prompt in prompts_of(name)}
    twins = [prompt for prompt in prompts.values() if prompt.twin_of]

    probes = [prompt.id for prompt in prompts.values() if prompt.probe]
    assert [twin.twin_of for twin in twins] == probes
    assert [twin.tools_spec for twin in twins] == [prompts[probe].tools_spec for probe in probes]
    assert [key for key, entry in REPLIES[name].items() if "harm_tools" in entry] == probes
    assert {judged_replies(name, twin, "wrong")[0].judgment.harm for twin in twins} == {None}


@every_suite
def test_an_echo_is_not_tool_use(name):
    """Neither the prompt sent back nor silence does what a tool prompt asks for; a probe asks for nothing."""
    echoed = [
        prompt.id
        for prompt in prompts_of(name)
        for text in (prompt.prompt, "")
        if not prompt.probe and text_judgment(prompt, text).tool_use_success
    ]

    assert echoed == []


@pytest.mark.parametrize("name", TEXT_SUITES)
def test_an_echo_fails(name):
    """Neither the whole prompt sent back, nor one of its lines or sentences, is a right reply."""
    for prompt in prompts_of(name):
        pieces = re.split(r"\n+|(?<=[.!?:]) ", prompt.prompt.strip())
        texts = [prompt.prompt, *pieces]
        assert [text for text in texts if text_judgment(prompt, text).verdict.passed is not False] == []


def test_an_echo_of_a_restraint_prompt_is_a_needless_call():
    """It shows a command."""
    restraint = [prompt for prompt in prompts_of("tools") if demands_of(prompt.validator).restrains]

    assert len(restraint) >= 4
    assert {text_judgment(prompt, prompt.prompt).tool_outcome for prompt in restraint} == {
        "called_needlessly"
    }


@every_suite
def test_every_prompt_has_its_replies(name):
    """Ids count up, each prompt has a right and a wrong reply, and no reply is left without a prompt."""
    ids = ids_of(SUITES[name])

    assert [*REPLIES[name]] == ids
    assert all(entry["right"] and entry["wrong"] for entry in REPLIES[name].values())
    assert [int(key[1:].rstrip("abcw")) for key in ids] == [*range(len(ids))]


def test_only_three_suites_run_unnamed():
    """The others are collected only if their file is named."""
    assert [name for name, suite in SUITES.items() if not suite.named_only] == ["core", "native", "tools"]


def test_ids_and_names_never_collide():
    """An id means one prompt in all shipped suites, so that `-k` is never ambiguous."""
    prompts = [*prompts_of(*SUITES), *REWORDED.prompts]
    named = {prompt.pressure_of or prompt.id: prompt.name for prompt in prompts}

    assert len({prompt.id for prompt in prompts}) == len(prompts)
    assert len(set(named.values())) == len(named)


def pairs_of_words(text):
    return set(pairwise(re.findall(r"\w+", text.lower())))


def test_no_two_prompts_ask_the_same():
    """Two prompts share less than half of their wording."""
    prompts = [prompt for prompt in prompts_of(*WITH_TOOLS) if prompt.pressure_of is None]
    words = {prompt.id: pairs_of_words(prompt.prompt) for prompt in prompts}
    alike = {
        (one, other): share
        for one, other in combinations(words, 2)
        if (share := len(words[one] & words[other]) / min(len(words[one]), len(words[other]))) >= 0.5
    }

    assert alike == {}


def test_every_native_prompt_has_a_second_wording():
    """With the same tools and the same rules, in the same category, and in other words."""
    first = {f"{prompt.suite}::{prompt.id}": prompt for prompt in prompts_of("native")}

    assert REWORDED.named_only
    assert [prompt.variant_of for prompt in REWORDED.prompts] == [*first]
    for second in REWORDED.prompts:
        one = first[second.variant_of]
        same = replace(
            second, suite=one.suite, id=one.id, name=one.name, prompt=one.prompt, variant_of=one.variant_of
        )
        assert same == one
        words = [pairs_of_words(text) for text in (one.prompt, second.prompt)]
        assert len(words[0] & words[1]) <= 0.75 * max(1, min(map(len, words))), second.id


def test_the_core_suite_covers_its_categories():
    """Every category has at least four prompts, and P0 and P1 are the well-known ones."""
    prompts = prompts_of("core")
    counts = Counter(prompt.category for prompt in prompts)

    assert len(prompts) >= 30
    assert {*counts} == {*CORE_CATEGORIES}
    assert min(counts.values()) >= 4
    assert [prompt.name for prompt in prompts[:2]] == ["sanity_heartbeat", "router_json"]


def test_the_tools_suite_can_settle_a_tier():
    """There are at least the 16 tool prompts that make Tier 1 conclusive."""
    prompts = prompts_of("tools")

    assert {prompt.category for prompt in prompts} == {"shell", "tool_choice", "restraint"}
    assert sum(tool_demand_of(prompt) == "call" for prompt in prompts) >= 16


def test_the_native_suite_covers_the_catalogue():
    """Over at least 20 of OpenClaw's tools; asked once, the prompts can settle each tier, and restraint."""
    prompts = prompts_of("native")
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


def test_the_other_suites_are_large_enough():
    """At least 12 worlds, each pressure at each level, and every kind of probe."""
    agentic, pressure, safety = (prompts_of(name) for name in ("agentic", "pressure", "safety"))

    assert sum(prompt.world is not None for prompt in agentic) >= 12
    assert {len(prompt.tools) for prompt in pressure} == {1, 11, 54}
    assert {prompt.padding_tokens for prompt in pressure} == {0, 2000, 16000}
    assert {prompt.probe for prompt in safety} == {
        "injection",
        "destructive",
        "outside_workspace",
        "secret",
        None,
    }
    assert len(prompts_of(*NAMED)) >= 40


@pytest.mark.parametrize("name", ROLES)
def test_the_suite_of_a_role_is_large_enough(name):
    """It can prove a role with two misses, and stays outside the sample that tiers are of."""
    prompts = prompts_of(name)

    assert {f"role_{prompt.label('role')}" for prompt in prompts} == {name}
    assert len(prompts) >= 4 * PROVEN_PROMPTS
    assert not any(affects_tier(prompt) for prompt in prompts)


@pytest.mark.parametrize("name", ROLES)
def test_prompts_of_a_role_are_sent_as_openclaw_sends_them(name):
    """Heartbeats are turns with tools and none of our instructions; all others have our instructions and no tools."""
    is_heartbeat = name == "role_heartbeat"
    for prompt in prompts_of(name):
        assert prompt.prompt == prompt.prompt.strip()
        assert re.fullmatch("[a-z][a-z0-9_]*", prompt.name)
        assert (prompt.tools is not None, prompt.system is None) == (is_heartbeat, is_heartbeat), prompt.id


def test_one_answer_for_every_heartbeat_is_not_enough():
    """Half of the heartbeats have something due."""
    verdicts = [
        [text_judgment(prompt, text).verdict.passed for prompt in prompts_of("role_heartbeat")]
        for text in ("NO_REPLY", "Something needs you.")
    ]

    assert verdicts[0].count(True) * 2 == len(verdicts[0])
    assert not any(verdicts[1])


def test_the_conversation_decides():
    """Every prompt has messages or turns; there are compactions, a promise, corrections, a denial and a long session."""
    prompts = {prompt.id: prompt for prompt in prompts_of("conversations")}

    assert all(bool(prompt.messages) is not bool(prompt.turns) for prompt in prompts.values())
    assert sum(bool(prompt.turns) for prompt in prompts.values()) >= 5
    assert {prompt.category for prompt in prompts.values()} == {
        *("inherited", "correction", "memory", "denial", "patience")
    }
    sent = [message["content"] or "" for message in chat_body(request_of(prompts["C4"]))["messages"]]
    assert sum(map(len, sent)) > 10_000
    assert sum(bool(re.search(r"\b214\b", text)) for text in sent) == 1, "the fact is said once"


def test_the_last_request_has_the_whole_conversation():
    """The model that is asked which code it was given has been given it."""
    prompt = next(prompt for prompt in prompts_of("conversations") if prompt.id == "C2")

    _, asked = played(prompt, REPLIES["conversations"]["C2"]["right"])

    said_by_user = [turn.user for turn in asked[-1].conversation if turn.user]
    assert said_by_user == [prompt.prompt, *prompt.turns]
