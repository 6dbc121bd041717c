"""`route`: OpenClaw's name of each target, what each model may do, and the patch of OpenClaw's config."""

from __future__ import annotations

import json
from dataclasses import replace
from typing import Any

import json5
import pytest
from hypothesis import given
from hypothesis import strategies as st

from pytest_openclaw.features.routing import (
    KNOWN,
    Candidate,
    Patch,
    Ref,
    check_command,
    plan_routes,
    ref_of,
    render_patch,
)
from pytest_openclaw.providers import BUILTIN
from pytest_openclaw.values.requests import OPENCLAW_ITSELF, Target
from tests.searching import examples
from tests.unit.reports.summaries import cell, restraint_cells
from tests.unit.stats.routes import (
    NATIVE,
    as_text,
    candidate,
    capped,
    settled,
    target,
    unsafe,
    unsettled,
)

# --- names --------------------------------------------------------------------------------------

CONFIG: dict[str, Any] = {"providers": {}}


def _target(provider: str, model: str = "qwen3:8b") -> Target:
    return Target(provider=provider, model=model, thinking_level="low")


@pytest.mark.parametrize(
    ("provider", "overrides", "name"),
    [
        pytest.param("ollama_native", {}, "ollama/qwen3:8b", id="ollama"),
        pytest.param("ollama_openai", {}, "ollama/qwen3:8b", id="ollama-by-another-way"),
        pytest.param("openai_responses", {}, "openai/qwen3:8b", id="openai"),
        pytest.param("anthropic_messages", {}, "anthropic/qwen3:8b", id="anthropic"),
        pytest.param("claude_code_cli", {}, "anthropic/qwen3:8b", id="anthropic-by-another-way"),
        pytest.param("gemini", {}, "google/qwen3:8b", id="gemini"),
        pytest.param("llama_cpp", {}, None, id="embedded"),
        pytest.param("lab", {}, "lab/qwen3:8b", id="endpoint"),
        pytest.param("my lab", {}, None, id="no-name-for-a-provider"),
        pytest.param("lab", {"lab": "vllm"}, "vllm/qwen3:8b", id="as-the-user-says"),
        pytest.param("llama_cpp", {"llama_cpp": "llama-cpp"}, "llama-cpp/qwen3:8b", id="embedded-elsewhere"),
        pytest.param("ollama_native", {"lab": "vllm"}, "ollama/qwen3:8b", id="another-was-named"),
    ],
)
def test_a_target_has_a_name(provider: str, overrides: dict[str, str], name: str | None) -> None:
    """Our name is mapped to OpenClaw's, unless the user gives one or there is none; levels are left out."""
    assert ref_of(_target(provider), CONFIG, overrides).name == name


def test_every_builtin_provider_has_a_rule() -> None:
    """A new one needs a name in OpenClaw or a rule that it has none."""
    assert {provider.name for provider in BUILTIN} == {*KNOWN, OPENCLAW_ITSELF}


@pytest.mark.parametrize(
    ("provider", "described", "is_local"),
    [
        pytest.param("ollama_native", {"base_url": "http://127.0.0.1:11434"}, True, id="loopback"),
        pytest.param("ollama_native", {"base_url": "http://[::1]:11434"}, True, id="loopback-6"),
        pytest.param("ollama_native", {"base_url": "http://gpu.localhost/v1"}, True, id="localhost"),
        pytest.param("lab", {"base_url": "http://192.168.1.20:8000/v1"}, True, id="private"),
        pytest.param("lab", {"base_url": "http://gpubox:8000/v1"}, True, id="a-host-of-the-network"),
        pytest.param("lab", {"base_url": "http://gpubox.local./v1"}, True, id="mdns"),
        pytest.param("lab", {"base_url": "https://api.example.com/v1"}, False, id="elsewhere"),
        pytest.param("lab", {"base_url": "https://8.8.8.8/v1"}, False, id="elsewhere-by-number"),
        pytest.param("openai_responses", {"base_url": "http://127.0.0.1:1/v1"}, True, id="openai-near-by"),
        pytest.param("openai_responses", {"base_url": None}, False, id="openai"),
        pytest.param("claude_code_cli", {"kind": "claude_code_cli", "base_url": None}, False, id="claude"),
        pytest.param("acme", {"kind": "openai_responses"}, False, id="kind-elsewhere"),
        pytest.param("llama_cpp", {"kind": "llama_cpp"}, True, id="embedded"),
        pytest.param("plugin", {}, True, id="unknown"),
        pytest.param("lab", {"base_url": "http://["}, True, id="no-address"),
    ],
)
def test_what_is_served_near_by(provider: str, described: dict[str, Any], is_local: bool) -> None:
    """An address of this machine or network is local, and so is an unknown one."""
    config = {"providers": {provider: described}}

    assert ref_of(_target(provider), config, {}).is_local is is_local


@pytest.mark.parametrize(
    ("urls", "is_local"),
    [
        pytest.param(["https://a.example/v1", "https://b.example/v1"], False, id="all-elsewhere"),
        pytest.param(["https://a.example/v1", "http://127.0.0.1/v1"], True, id="one-near-by"),
    ],
)
def test_a_merged_run_is_asked_of_its_parts(urls: list[str], is_local: bool) -> None:
    """Parts may have used servers in different places; one local server is enough."""
    parts = [{"providers": {"lab": {"base_url": url}}} for url in urls]
    config = {"providers": {"lab": {"base_url": None}}, "parts": [*parts, {"providers": {}}]}

    assert ref_of(_target("lab"), config, {}).is_local is is_local


# --- what each model may do ---------------------------------------------------------------------


@pytest.mark.parametrize(
    ("one", "role"),
    [
        pytest.param(settled("m", 1), "all", id="tier-1"),
        pytest.param(settled("m", 2), "some", id="tier-2"),
        pytest.param(settled("m", 3), "none", id="tier-3"),
        pytest.param(settled("m", 2, tools=()), "unsettled", id="tier-2-without-a-proven-tool"),
        pytest.param(capped("m"), "none", id="needless-calls"),
        pytest.param(unsafe("m"), "none", id="harm"),
        pytest.param(unsettled("m"), "unsettled", id="too-few-cells"),
        pytest.param(as_text("m", 1), "unsettled", id="tier-1-as-text"),
        pytest.param(as_text("m", 3), "unsettled", id="tier-3-as-text"),
        pytest.param(candidate("m", []), "unsettled", id="nothing-answered"),
    ],
)
def test_a_role_follows_the_recommendation(one: Candidate, role: str) -> None:
    """Which is one of settled tiers and restraint, by calls on the wire, without harm."""
    (route,) = plan_routes([one]).routes

    assert route.may_hold == role


@pytest.mark.parametrize(
    ("rivals", "best"),
    [
        pytest.param([settled("a", 1, e2e_ms=900), settled("b", 1)], "b", id="as-sure-then-faster"),
        pytest.param([settled("b", 1), settled("a", 1)], "a", id="as-sure-as-fast-then-by-name"),
        pytest.param([settled("a", 2), settled("b", 3), unsettled("c"), as_text("d")], None, id="no-tier-1"),
        pytest.param(
            [settled("a", 1, has_name=False), settled("b", 1, e2e_ms=900)], "b", id="without-a-name"
        ),
    ],
)
def test_the_best_tier_1_answers_for_subagents(rivals: list[Candidate], best: str | None) -> None:
    """Of those not shown to be worse than the best the lowest p50 wins; no other tier is ever chosen."""
    found = plan_routes(rivals).subagent

    assert (found and found.ref.name) == (best and f"ollama/{best}")


@pytest.mark.parametrize(
    ("n_missed", "chosen"), [pytest.param(4, "fast", id="perhaps"), pytest.param(5, "sure", id="surely")]
)
def test_a_target_that_is_shown_to_be_worse_is_not_chosen(n_missed: int, chosen: str) -> None:
    """Of two Tier 1 targets the faster one is chosen only if it may be the best."""
    rows = {
        name: [
            *(
                cell(f"P{n}", "no_call" if n < n_wrong else "valid", target(name), e2e_ms=ms, **NATIVE)
                for n in range(100)
            ),
            *restraint_cells(40, 0, target(name), e2e_ms=ms, **NATIVE),
        ]
        for name, n_wrong, ms in (("fast", n_missed, 1), ("sure", 0, 9000))
    }
    rivals = [replace(candidate(name, its), rows=its) for name, its in rows.items()]
    routing = plan_routes(rivals)

    assert {route.may_hold for route in routing.routes} == {"all"}
    assert routing.subagent is not None
    assert routing.subagent.ref.name == f"ollama/{chosen}"
    assert routing.best is not None
    assert routing.best.n_targets == 2


@pytest.mark.parametrize(
    ("others", "role"),
    [
        pytest.param([settled("m", 2, level="low")], "some", id="tier-2"),
        pytest.param([settled("m", 3, level="low"), unsettled("m")], "none", id="tier-3-and-unsettled"),
        pytest.param([unsettled("m")], "unsettled", id="unsettled"),
        pytest.param([settled("m", 1, level="low")], "all", id="tier-1-too"),
    ],
)
def test_the_weakest_level_decides(others: list[Candidate], role: str) -> None:
    """A policy knows no thinking level, so a model's levels have one route together."""
    (route,) = plan_routes([settled("m", 1), *others]).routes

    assert route.may_hold == role


def test_a_subagent_is_no_level_of_a_weaker_route() -> None:
    """A level of Tier 1 is not chosen if the model's other level is none."""
    assert plan_routes([settled("m", 1), settled("m", 2, level="low")]).subagent is None


def test_only_what_every_level_has_proven_is_proven() -> None:
    """Proven tools are those that all targets of a route have in common."""
    one = settled("m", 2, tools=("read", "ls"))
    other = settled("m", 2, level="low", tools=("exec", "read"))

    (route,) = plan_routes([one, other]).routes

    assert route.proven_tools == ["read"]


def test_a_target_without_a_name_is_separate() -> None:
    """It has no route, and is reported."""
    nameless = settled("m", 1, has_name=False)

    routing = plan_routes([nameless])

    assert (routing.routes, routing.nameless, routing.subagent) == ([], [nameless], None)


# --- the patch ----------------------------------------------------------------------------------

SEARCH = ["tool_search", "tool_describe", "tool_call", "tool_search_code"]


def _render(*candidates: Candidate) -> Patch:
    return render_patch(plan_routes(candidates), "20261121_233059")


def _read(text: str) -> Any:
    """A JSON5 text as a value; the reader keeps halves of surrogate pairs separate."""
    return json.loads(json.dumps(json5.loads(text)))


def _said(patch: Patch) -> str:
    """The comments as one line of text."""
    lines = (line.strip() for line in patch.text.splitlines())
    return " ".join(" ".join(line.removeprefix("//") for line in lines if line.startswith("//")).split())


EVERY_ROUTE = (
    settled("best", 1, e2e_ms=50),
    settled("far", 1, level="high", is_local=False),
    settled("some", 2),
    settled("far-some", 2, is_local=False),
    settled("unproven", 2, tools=()),
    unsafe("unsafe"),
    settled("none", 3),
    unsettled("few"),
    as_text("text"),
    settled("nameless", 1, has_name=False),
)


def test_each_tier_has_its_keys() -> None:
    """The table from tier to keys is complete; the file has the same content as the object."""
    patch = _render(*EVERY_ROUTE)

    assert patch.value == {
        "agents": {
            "defaults": {
                "subagents": {"model": "ollama/best"},
            }
        },
        "tools": {
            "byProvider": {
                "ollama/best": {"profile": "coding", "deny": ["group:web", "browser"]},
                "ollama/far": {"profile": "coding"},
                "ollama/some": {
                    "allow": ["read"],
                    "alsoAllow": None,
                    "deny": ["group:web", "browser", *SEARCH],
                },
                "ollama/far-some": {"allow": ["read"], "alsoAllow": None, "deny": SEARCH},
                "ollama/unsafe": {"deny": ["*"]},
                "ollama/none": {"deny": ["*"]},
            }
        },
    }
    assert _read(patch.text) == patch.value


@pytest.mark.parametrize(
    ("proven", "denied"),
    [
        pytest.param(["read"], SEARCH, id="another-tool"),
        pytest.param(["write"], ["apply_patch", *SEARCH], id="write"),
        pytest.param(["apply_patch", "write"], SEARCH, id="both-proven"),
    ],
)
def test_write_does_not_bring_apply_patch(proven: list[str], denied: list[str]) -> None:
    """OpenClaw gives apply_patch to every agent that is allowed to write, unless it is denied."""
    value = _render(settled("m", 2, is_local=False, tools=tuple(proven))).value

    entry = value["tools"]["byProvider"]["ollama/m"]
    assert (entry["allow"], entry["deny"]) == (proven, denied)


def test_a_subagent_has_the_measured_thinking_level() -> None:
    """The thinking level of the best target is next to its model."""
    value = _render(settled("m", 1, level="high")).value

    assert value["agents"]["defaults"]["subagents"] == {"model": "ollama/m", "thinking": "high"}


# --- comments -----------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("one", "expected"),
    [
        pytest.param(settled("m", 2), "Proven tools, by at least 3 right prompts and 80 %: read.", id="proven-tools"),
        pytest.param(
            settled("m", 2, tools=()),
            "ollama_native/m: not enough evidence: 132 more prompts that need exec, without a miss, would make it trusted with exec at Tier 1.",
            id="nothing-proven",
        ),
        pytest.param(unsettled("m"), "No entry for ollama/m: there is not enough evidence, so what you have now stays.", id="unsettled"),
        pytest.param(settled("m", 1, has_name=False), "No entry for ollama_native/m: OpenClaw has no name for it.", id="nameless"),
    ],
)  # fmt: skip
def test_the_evidence_is_in_comments(one: Candidate, expected: str) -> None:
    """The file shows the reason for each entry, and for each missing one."""
    assert expected in _said(_render(one))


def test_levels_are_listed() -> None:
    """If a model has several targets, each is named with its result."""
    said = _said(_render(settled("m", 1), settled("m", 2, level="low")))

    assert "ollama_native/m: trusted with tools; on listed tools only" in said
    assert "ollama_native/m@low: trusted with read" in said
    assert "the weakest of these decides" in said


def test_the_command_can_be_pasted() -> None:
    """It is on one line, whatever the file's name is."""
    assert check_command("a b.json5") == "openclaw config patch --file 'a b.json5' --dry-run --json"
    assert f"//   {check_command('openclaw.patch.json5')}\n" in _render(settled("m", 1)).text


SETTLED = {tier: settled("m", tier) for tier in (1, 2, 3)}


@examples(15)
@given(name=st.text(max_size=40), tier=st.sampled_from([1, 2, 3]))
def test_any_name_can_be_parsed_again(name: str, tier: int) -> None:
    """Whatever the names are, the file has the object."""
    patch = _render(replace(SETTLED[tier], ref=Ref(f"ollama/{name}")))

    assert _read(patch.text) == patch.value
