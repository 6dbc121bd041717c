"""A patch by `route` and the real OpenClaw: it applies the patch; its agent sends the allowed tools only."""

import json
import re
from pathlib import Path

import pytest

from pytest_openclaw.cli import main
from pytest_openclaw.openclaw.catalog import load_catalogue
from tests.commands.routed_runs import store_run, three_tiers
from tests.openclaw.model_server import ScriptedModel
from tests.openclaw.real import openclaw_apart, run_openclaw

pytestmark = [pytest.mark.openclaw_cli, pytest.mark.nightly]

ABLE, MIDDLING, UNABLE = "ollama/qwen3:8b", "ollama/mid:7b", "lab/llama3.2:3b"
PROVEN = ("memory_search", "read", "write")
CODING = set(load_catalogue("openclaw-2026.9.6").surfaces["coding"]) - {"web_fetch", "web_search"}
BRIDGE = {"tool_search", "tool_describe", "tool_call"}
KEY = "sk-live-4242424242424242"


@pytest.fixture
def openclaw(real_openclaw):
    with openclaw_apart(real_openclaw, patience_s=200.0) as openclaw:
        yield openclaw


@pytest.fixture
def run(tmp_path, monkeypatch):
    for name in ("project", "home"):
        (tmp_path / name).mkdir()
    monkeypatch.chdir(tmp_path / "project")
    for name in ("OPENCLAW_CONFIG_PATH", "OPENCLAW_STATE_DIR", "OPENCLAW_HOME"):
        monkeypatch.delenv(name, raising=False)
    monkeypatch.setenv("HOME", str(tmp_path / "home"))
    return store_run(Path("runs/one"), three_tiers(calls=PROVEN))


def _config(url, tools):
    def server(*names):
        limits = {"reasoning": False, "input": ["text"], "contextWindow": 131_072, "maxTokens": 1000}
        models = [{"id": name, "name": name, **limits} for name in names]
        return {"baseUrl": url, "apiKey": KEY, "api": "openai-completions", "models": models}

    providers = {"ollama": server("qwen3:8b", "mid:7b"), "lab": server("llama3.2:3b")}
    return {"models": {"mode": "replace", "providers": providers}, "tools": tools}


def _deferred(body):
    """Return the tools that a model can reach by tool search, as its system prompt lists them."""
    return set(re.findall(r"^- (\w+) \(", str(body["messages"][0]["content"]), re.MULTILINE))


def _call(name):
    return "tool_call", json.dumps({"id": name, "args": {"url": "http://127.0.0.1:9/", "command": "true"}})


LISTED = {"apply_patch", "edit", "exec", "ls", "process", "read", "sessions_yield", "write"}
DIRECT, SEARCHED = {"toolSearch": False}, {"toolSearch": True}


@pytest.mark.parametrize(
    ("tools", "ref", "offered", "deferred"),
    [
        pytest.param(DIRECT, ABLE, CODING, set(), id="tier-1-all-at-once"),
        pytest.param({}, ABLE, LISTED | BRIDGE, CODING - LISTED, id="tier-1-by-tool-search"),
        pytest.param(SEARCHED, MIDDLING, {*PROVEN}, set(), id="tier-2-with-tool-search"),
        pytest.param(SEARCHED, UNABLE, set(), set(), id="tier-3-with-tool-search"),
    ],
)
def test_the_agent_sends_what_the_patch_allows(openclaw, run, tools, ref, offered, deferred):
    """After the real `config patch` the model gets these tools, and reaches no others in any way."""
    assert main(["route", "one"]) == 0
    beyond = ["web_fetch", "browser", *(() if ref == ABLE else ("exec", "apply_patch", "gateway"))]
    calls = [call for name in beyond for call in (_call(name), (name, _call(name)[1]))]
    with ScriptedModel(calls, "Done.") as model:
        openclaw.scratch.config.write_text(json.dumps(_config(model.url, tools)), "utf-8")
        applied = run_openclaw(
            openclaw, "config", "patch", "--file", str(run.absolute() / "openclaw.patch.json5")
        )
        assert applied.exit_status == 0, applied.stderr

        printed = run_openclaw(
            openclaw,
            *("agent", "exec", "--json", "--config", str(openclaw.scratch.config)),
            *("--cwd", str(openclaw.scratch.workspace), "--model", ref, "--timeout", "120", "Go on."),
        )

        assert len(model.asked) == 2, printed.stdout + printed.stderr
        for body in model.asked:
            assert {tool["function"]["name"] for tool in body.get("tools", [])} == offered
            assert _deferred(body) == deferred
        results = [str(one["content"]) for one in model.asked[1]["messages"] if one["role"] == "tool"]
    assert len(results) == len(calls)
    assert all(re.search(r"Tool \w+ not found|Unknown tool id", result) for result in results), results
