"""Synthetic runs for the tests of `route`: a target of each tier, by native calls."""

from pytest_openclaw.values.requests import Target
from tests.unit.reports.summaries import rows_of
from tests.unit.runs.stored_runs import SUITE, store

ABLE = Target(provider="ollama_native", model="qwen3:8b")
MIDDLING = Target(provider="ollama_native", model="mid:7b")
UNABLE = Target(provider="lab", model="llama3.2:3b")
NEAR = {"kind": "ollama_native", "base_url": "http://127.0.0.1:11434", "key_env": "OLLAMA_API_KEY"}
LAB = {"kind": "ollama_openai", "base_url": "https://lab.example/v1", "key_env": "LAB_KEY"}
PROVIDERS = {"ollama_native": NEAR, "lab": LAB}


def store_run(path, records, **more):
    return store(path, records, providers=PROVIDERS, **more)


def three_tiers(*, said="", calls=("read",)):
    """Rows of a target of each tier, each with the reply `said`; right cells test the tools `calls`."""
    given = {"suite": SUITE, "tools": calls, "raw_output": said, "violation": said or None}
    targets = enumerate((ABLE, MIDDLING, UNABLE), 1)
    return [one for tier, target in targets for one in rows_of(tier, target, **given)]
