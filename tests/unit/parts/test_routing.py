"""`route`: OpenClaw's name of each target, what each model may do, and the patch of OpenClaw's config."""

import json
from dataclasses import replace

import json5
import pytest
from hypothesis import given
from hypothesis import strategies as st

from pytest_openclaw.parts.routing import (
    KNOWN,
    Candidate,
    Ref,
    check_command,
    plan_routes,
    ref_of,
    render_patch,
)
from pytest_openclaw.providers import BUILTIN
from pytest_openclaw.values.requests import Target
from tests.searching import examples
from tests.unit.reports.summaries import (
    NATIVE,
    cell,
    group_of,
    missed,
    restraint_cells,
    rows_of,
    target,
    tool_cells,
)


def _target(provider, model="qwen3:8b"):
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
def test_a_target_has_a_name(provider, overrides, name):
    """Our name is mapped to OpenClaw's, unless the user gives one or there is none; levels are left out."""
    assert ref_of(_target(provider), {"providers": {}}, overrides).name == name


def test_models_of_the_agent_have_openclaws_names():
    """An endpoint of its kind, whatever its name; the user's name has precedence."""
    config = {"providers": {"gate": {"kind": "openclaw_agent", "is_openclaw": True}}}
    target = Target(provider="gate", model="ollama/qwen3:8b")

    assert ref_of(target, config, {}).name == "ollama/qwen3:8b"
    assert ref_of(target, config, {"gate": "mine"}).name == "mine/ollama/qwen3:8b"


def test_every_builtin_provider_has_a_rule():
    """A new one needs a name in OpenClaw or a rule that it has none."""
    assert {provider.name for provider in BUILTIN} == {*KNOWN, "openclaw_agent"}


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
def test_local_servers_are_recognized(provider, described, is_local):
    """An address of this machine or network is local, and so is an unknown one."""
    config = {"providers": {provider: described}}

    assert ref_of(_target(provider), config, {}).is_local is is_local


@pytest.mark.parametrize(
    ("url", "is_local"), [("https://b.example/v1", False), ("http://127.0.0.1/v1", True)]
)
def test_a_merged_run_is_asked_of_its_parts(url, is_local):
    """Parts may have used servers in different places; one local server is enough."""
    parts = [{"providers": {"lab": {"base_url": one}}} for one in ("https://a.example/v1", url)]
    config = {"providers": {"lab": {"base_url": None}}, "parts": [*parts, {"providers": {}}]}

    assert ref_of(_target("lab"), config, {}).is_local is is_local


def _candidate(model, rows, one=None, *, has_name=True, **changes):
    one = one or target(model)
    group = group_of(rows, one)
    return Candidate(group=group, ref=Ref(f"ollama/{model}" if has_name else None, **changes), rows=rows)


def _settled(model, tier, *, level=None, e2e_ms=100, tools=("read",), **changes):
    one = target(model, level=level)
    rows = rows_of(tier, one, e2e_ms=e2e_ms, tools=tools)
    return _candidate(model, rows, one, **changes)


def _unsafe(model, **changes):
    one = target(model)
    probe = missed(one, prompt_id="S", probe="secret", tools_offered=11)
    return _candidate(model, [*rows_of(1, one), probe], one, **changes)


def _capped(model, **changes):
    one = target(model)
    needless = restraint_cells(0, 40, one, **NATIVE)
    return _candidate(model, [*rows_of(1, one), *needless], one, **changes)


def _as_text(model, tier=1, **changes):
    one = target(model)
    return _candidate(model, rows_of(tier, one, tools_offered=None), one, **changes)


def _unsettled(model, **changes):
    return _candidate(model, tool_cells(5, 1, target(model), **NATIVE), **changes)


@pytest.mark.parametrize(
    ("levels", "role"),
    [
        pytest.param([_settled("m", 1)], "all", id="tier-1"),
        pytest.param([_settled("m", 2)], "some", id="tier-2"),
        pytest.param([_settled("m", 3)], "none", id="tier-3"),
        pytest.param([_settled("m", 2, tools=())], "unsettled", id="tier-2-without-a-proven-tool"),
        pytest.param([_capped("m")], "none", id="needless-calls"),
        pytest.param([_unsafe("m")], "none", id="harm"),
        pytest.param([_unsettled("m")], "unsettled", id="too-few-cells"),
        pytest.param([_as_text("m", 1)], "unsettled", id="tier-1-as-text"),
        pytest.param([_as_text("m", 3)], "unsettled", id="tier-3-as-text"),
        pytest.param([_candidate("m", [])], "unsettled", id="nothing-answered"),
        pytest.param([_settled("m", 1), _settled("m", 1, level="low")], "all", id="two-of-tier-1"),
        pytest.param([_settled("m", 1), _settled("m", 2, level="low")], "some", id="tier-1-and-2"),
        pytest.param([_unsettled("m"), _settled("m", 3, level="low")], "none", id="unsettled-and-tier-3"),
        pytest.param([_settled("m", 1), _unsettled("m")], "unsettled", id="tier-1-and-unsettled"),
    ],
)
def test_a_role_follows_the_recommendation(levels, role):
    """A policy knows no thinking level, so a model's levels have one route together, of the weakest."""
    (route,) = plan_routes(levels).routes

    assert route.may_hold == role


@pytest.mark.parametrize(
    ("rivals", "best"),
    [
        pytest.param([_settled("a", 1, e2e_ms=900), _settled("b", 1)], "b", id="as-sure-then-faster"),
        pytest.param([_settled("b", 1), _settled("a", 1)], "a", id="as-sure-as-fast-then-by-name"),
        pytest.param([_settled("a", 2), _unsettled("c"), _as_text("d")], None, id="no-tier-1"),
        pytest.param([_settled("a", 1, has_name=False), _settled("b", 1, e2e_ms=900)], "b", id="nameless"),
        pytest.param([_settled("a", 1), _settled("a", 2, level="low")], None, id="a-level-of-a-weaker-route"),
    ],
)
def test_the_best_tier_1_answers_for_subagents(rivals, best):
    """Of those not shown to be worse than the best the lowest p50 wins; no other tier is ever chosen."""
    found = plan_routes(rivals).subagent

    assert (found and found.ref.name) == (best and f"ollama/{best}")


@pytest.mark.parametrize(("n_missed", "chosen"), [(4, "fast"), (5, "sure")])
def test_a_target_that_is_shown_to_be_worse_is_not_chosen(n_missed, chosen):
    """Of two Tier 1 targets the faster one is chosen only if it may be the best."""

    def rival(name, n_wrong, ms):
        given = {**NATIVE, "e2e_ms": ms}
        calls = [
            cell(f"P{n}", "no_call" if n < n_wrong else "valid", target(name), **given) for n in range(100)
        ]
        return _candidate(name, [*calls, *restraint_cells(40, 0, target(name), **given)])

    routing = plan_routes([rival("fast", n_missed, 1), rival("sure", 0, 9000)])

    assert {route.may_hold for route in routing.routes} == {"all"}
    assert routing.subagent.ref.name == f"ollama/{chosen}"
    assert routing.best.n_targets == 2


def test_a_tool_must_be_proven_at_every_level():
    """Proven tools are those that all targets of a route have in common."""
    one = _settled("m", 2, tools=("read", "ls"))
    other = _settled("m", 2, level="low", tools=("exec", "read"))

    (route,) = plan_routes([one, other]).routes

    assert route.proven_tools == ["read"]


SEARCH = ["tool_search", "tool_describe", "tool_call", "tool_search_code"]
READ = {"allow": ["read"], "alsoAllow": None}


def _render(*candidates):
    return render_patch(plan_routes(candidates), "20261121_233059")


def _read(text):
    """A JSON5 text as a value; the reader keeps halves of surrogate pairs separate."""
    return json.loads(json.dumps(json5.loads(text)))


def _said(patch):
    lines = (line.strip() for line in patch.text.splitlines())
    return " ".join(" ".join(line.removeprefix("//") for line in lines if line.startswith("//")).split())


EVERY_ROUTE = (
    _settled("best", 1, e2e_ms=50),
    _settled("far", 1, level="high", is_local=False),
    _settled("some", 2),
    _settled("far-some", 2, is_local=False),
    _settled("unproven", 2, tools=()),
    _unsafe("unsafe"),
    _settled("none", 3),
    _unsettled("few"),
    _as_text("text"),
    _settled("nameless", 1, has_name=False),
)


def test_each_tier_has_its_keys():
    """The table from tier to keys is complete; the file has the same content as the object."""
    patch = _render(*EVERY_ROUTE)

    assert patch.value == {
        "agents": {"defaults": {"subagents": {"model": "ollama/best"}}},
        "tools": {
            "byProvider": {
                "ollama/best": {"profile": "coding", "deny": ["group:web", "browser"]},
                "ollama/far": {"profile": "coding"},
                "ollama/some": {**READ, "deny": ["group:web", "browser", *SEARCH]},
                "ollama/far-some": {**READ, "deny": SEARCH},
                "ollama/unsafe": {"deny": ["*"]},
                "ollama/none": {"deny": ["*"]},
            }
        },
    }
    assert _read(patch.text) == patch.value


@pytest.mark.parametrize(
    ("proven", "denied"),
    [(["write"], ["apply_patch", *SEARCH]), (["apply_patch", "write"], SEARCH)],
    ids=["write", "both-proven"],
)
def test_write_does_not_bring_apply_patch(proven, denied):
    """OpenClaw gives apply_patch to every agent that is allowed to write, unless it is denied."""
    value = _render(_settled("m", 2, is_local=False, tools=tuple(proven))).value

    entry = value["tools"]["byProvider"]["ollama/m"]
    assert (entry["allow"], entry["deny"]) == (proven, denied)


def test_a_subagent_has_the_measured_thinking_level():
    """The thinking level of the best target is next to its model."""
    value = _render(_settled("m", 1, level="high")).value

    assert value["agents"]["defaults"]["subagents"] == {"model": "ollama/m", "thinking": "high"}


@pytest.mark.parametrize(
    ("one", "expected"),
    [
        pytest.param(_settled("m", 2), "Proven tools, by at least 3 right prompts and 80 %: read.", id="proven-tools"),
        pytest.param(_settled("m", 2, tools=()), "ollama_native/m: not enough evidence (60 of 93 calls right); 132 more prompts that need exec, without a miss, would make it trusted with exec at Tier 1.", id="nothing-proven"),
        pytest.param(_unsettled("m"), "No entry for ollama/m: there is not enough evidence, so what you have now stays.", id="unsettled"),
        pytest.param(_settled("m", 1, has_name=False), "No entry for ollama_native/m: OpenClaw has no name for it.", id="nameless"),
    ],
)  # fmt: skip
def test_the_evidence_is_in_comments(one, expected):
    """The file shows the reason for each entry, and for each missing one."""
    assert expected in _said(_render(one))


def test_levels_are_listed():
    """If a model has several targets, each is named with its result."""
    said = _said(_render(_settled("m", 1), _settled("m", 2, level="low")))

    for words in ("m: trusted with tools (", "m@low: trusted with read ("):
        assert f"ollama_native/{words}" in said
    assert "the weakest of these decides" in said


def test_the_command_can_be_pasted():
    """It is on one line, whatever the file's name is."""
    assert check_command("a b.json5") == "openclaw config patch --file 'a b.json5' --dry-run --json"
    assert f"//   {check_command('openclaw.patch.json5')}\n" in _render(_settled("m", 1)).text


SETTLED = {tier: _settled("m", tier) for tier in (1, 2, 3)}


@examples(15)
@given(name=st.text(max_size=40), tier=st.sampled_from([1, 2, 3]))
def test_any_name_can_be_parsed_again(name, tier):
    """Whatever the names are, the file has the object."""
    patch = _render(replace(SETTLED[tier], ref=Ref(f"ollama/{name}")))

    assert _read(patch.text) == patch.value
