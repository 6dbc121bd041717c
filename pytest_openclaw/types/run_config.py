"""The keys of a run's `config.json`: its version, and what may differ between runs of one question."""

from __future__ import annotations

CONFIG_VERSION = 1
# Settings of `config.json` that may differ, because they say what was asked of whom, how often, how fast,
# and what pytest made of it. Every other one (`temperature`, `thinking_room_tokens`, `stream`, `timeout_s`,
# and what comes later) shapes a request or decides which replies count, and must be equal.
IDENTITY = ("schema_version", "run_id", "models", "targets", "prompts", "providers", "parts", "rescored")
MAY_DIFFER = (
    "repeat", "until_conclusive", "retries", "concurrency", "verdict", "gates", "fail_unavailable",
    "baseline", "across", "budget_usd",
)  # fmt: skip
# Of a provider: each machine reaches its own server, by its own way in. What is served there stands in
# the inventory; a difference is told.
MAY_DIFFER_IN_PROVIDERS = ("base_url", "key_env", "auth")
