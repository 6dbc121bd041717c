"""Synthetic runs for the tests of `route`: a target of each tier, by native calls."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from pytest_openclaw.core.json_types import JsonObject
from pytest_openclaw.types.records import Record
from pytest_openclaw.types.targets import Target
from tests.unit.stats.routes import rows_of
from tests.unit.stored.stored_runs import SUITE, definition, row, store

ABLE = Target(provider="ollama_native", model="qwen3:8b")
MIDDLING = Target(provider="ollama_native", model="mid:7b")
UNABLE = Target(provider="lab", model="llama3.2:3b")
PROVIDERS = {
    "ollama_native": {
        "kind": "ollama_native",
        "base_url": "http://127.0.0.1:11434",
        "key_env": "OLLAMA_API_KEY",
    },
    "lab": {"kind": "ollama_openai", "base_url": "https://lab.example/v1", "key_env": "LAB_KEY"},
}


def store_run(path: Path, records: list[Record], *, proven: tuple[str, ...] = ("read",), **more: Any) -> Path:
    """Store a run of these rows, in which the passed cells of tier 2 required calls of `proven`."""
    return store(path, records, prompts=_definitions(records, proven), providers=PROVIDERS, **more)


def _definitions(records: list[Record], proven: tuple[str, ...]) -> list[JsonObject]:
    def of(prompt_id: str) -> JsonObject:
        if prompt_id.startswith("H"):
            return definition(prompt_id, tags=["heartbeat"])
        return definition(prompt_id, validator=_calls(*(proven if prompt_id.startswith("U") else ("exec",))))

    return [of(prompt_id) for prompt_id in dict.fromkeys(one.prompt_id for one in records)]


def _calls(*names: str) -> JsonObject:
    return {"type": "tool_call", "calls": [{"name": name} for name in names]}


def three_tiers(*, said: str = "", calls: tuple[str, ...] = ("read",)) -> list[Record]:
    """Rows of a target of each tier, with calls of `calls`; the one of tier 3 answers heartbeats.

    Args:
        said: the reply of each.
        calls: names of tools.
    """
    given: dict[str, Any] = {
        "suite": SUITE,
        "tool_calls": calls,
        "raw_output": said,
        "violation": said or None,
    }
    return [
        *rows_of(1, ABLE, **given),
        *rows_of(2, MIDDLING, **given),
        *rows_of(3, UNABLE, **given),
        *(row(UNABLE, f"H{n}") for n in range(3)),
    ]
