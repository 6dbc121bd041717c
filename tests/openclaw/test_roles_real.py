"""A patch by `route` and the real OpenClaw: heartbeats and titles go to the models that it names."""

from __future__ import annotations

import asyncio
import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from pytest_openclaw.cli import main
from tests.commands.routed_runs import ABLE, MIDDLING, UNABLE, roles_of, store_run
from tests.openclaw.model_server import ScriptedModel
from tests.openclaw.real import (
    GATEWAY_TOKEN,
    OpenClaw,
    RealOpenClaw,
    free_port,
    gateway,
    openclaw_apart,
    run_openclaw,
)
from tests.unit.runs.stored_runs import SUITE
from tests.unit.stats.routes import rows_of

pytestmark = [pytest.mark.openclaw_cli, pytest.mark.nightly]

BEATS, WORDS, MAIN = "ollama/qwen3:8b", "lab/llama3.2:3b", "ollama/main:7b"
LONG: dict[str, Any] = {"suite": SUITE, "input_tokens": 12_000}


@pytest.fixture
def openclaw(real_openclaw: RealOpenClaw) -> Iterator[OpenClaw]:
    """The real OpenClaw, in folders of its own."""
    with openclaw_apart(
        real_openclaw,
        patience_s=500.0,
        OPENCLAW_GATEWAY_TOKEN=GATEWAY_TOKEN,
        OPENCLAW_DISABLE_BONJOUR="1",
        OPENCLAW_NO_RESPAWN="1",
    ) as openclaw:
        yield openclaw


@pytest.fixture
def patch(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """The patch of a run in which two models are trusted, one of them with heartbeats, and one writes titles."""
    monkeypatch.chdir(tmp_path)
    beats = [one for one in roles_of(ABLE) if one.role == "heartbeat"]
    words = [one for one in roles_of(UNABLE) if one.role != "heartbeat"]
    rows = [*rows_of(1, ABLE, **LONG), *rows_of(1, MIDDLING, **LONG, e2e_ms=900), *rows_of(3, UNABLE, **LONG)]
    run = store_run(Path("runs/one"), [*rows, *beats, *words])
    assert main(["route", "one"]) == 0
    return run.absolute() / "openclaw.patch.json5"


def _config(url: str, port: int) -> dict[str, Any]:
    def provider(*ids: str) -> dict[str, Any]:
        limits = {"reasoning": False, "input": ["text"], "contextWindow": 131_072, "maxTokens": 1000}
        models = [{"id": one, "name": one, **limits} for one in ids]
        return {"baseUrl": url, "apiKey": "none", "api": "openai-completions", "models": models}

    return {
        "models": {
            "mode": "replace",
            "providers": {
                "ollama": provider("qwen3:8b", "mid:7b", "main:7b"),
                "lab": provider("llama3.2:3b"),
            },
        },
        "gateway": {
            "mode": "local",
            "bind": "loopback",
            "port": port,
            "auth": {"mode": "token", "token": GATEWAY_TOKEN},
        },
        "agents": {"defaults": {"model": MAIN, "heartbeat": {"every": "12h", "target": "none"}}},
    }


def _models(asked: list[dict[str, Any]], words: str) -> set[tuple[str, bool]]:
    """Return the models that were sent a text, and whether they were offered tools with it."""
    return {
        (body["model"], bool(body.get("tools"))) for body in asked if words in json.dumps(body["messages"])
    }


async def _use(openclaw: OpenClaw, port: int, model: ScriptedModel) -> dict[str, Any]:
    """Start the gateway, ask it for a title and a heartbeat, and end it; return the title's answer."""
    where = ("--url", f"ws://127.0.0.1:{port}", "--token", GATEWAY_TOKEN)
    params = json.dumps({"agentId": "main", "message": "The dishwasher shows error E24."})
    async with gateway(openclaw, port):
        title = await openclaw.printed(
            "gateway", "call", "sessions.title.prepare", "--json", "--params", params, *where
        )
        assert title.exit_status == 0, title.stdout + title.stderr
        event = ("system", "event", "--text", "Look after the oven.", "--mode", "now")
        sent = await openclaw.printed(*event, *where)
        assert sent.exit_status == 0, sent.stdout + sent.stderr
        while not _models(model.asked, "Look after the oven."):
            await asyncio.sleep(1)
    answer: dict[str, Any] = json.loads(title.stdout)
    return answer


def test_requests_of_a_role_go_to_its_model(openclaw: OpenClaw, patch: Path) -> None:
    """The patch is applied and valid; a title is asked for without tools, a heartbeat with those of its entry."""
    port = free_port()
    with ScriptedModel('Title: "Broken dishwasher"\nIt is broken.') as model:
        openclaw.scratch.config.write_text(json.dumps(_config(model.url, port)), "utf-8")
        applied = run_openclaw(openclaw, "config", "patch", "--file", str(patch))
        assert applied.exit_status == 0, applied.stderr
        assert json.loads(run_openclaw(openclaw, "config", "validate", "--json").stdout)["valid"]
        defaults = json.loads(openclaw.scratch.config.read_text("utf-8"))["agents"]["defaults"]
        assert defaults["heartbeat"] == {"every": "12h", "target": "none", "model": BEATS}
        assert defaults["utilityModel"] == WORDS
        assert defaults["subagents"]["model"] == BEATS

        title = asyncio.run(asyncio.wait_for(_use(openclaw, port, model), 900))

        assert title == {"title": "Broken dishwasher"}
        assert _models(model.asked, "The dishwasher shows error E24.") == {("llama3.2:3b", False)}
        assert _models(model.asked, "Look after the oven.") == {("qwen3:8b", True)}
