"""Reads suites and target specs, and combines them into cells with stable ids.

Everything here is text and values; only `load_suite` opens a file.
"""

from __future__ import annotations

from pytest_openclaw.suites.cells import (
    build_cells,
    definition,
    definitions,
    digest_of_cells,
    keyword_token,
    mixed,
    rewrite_keyword,
    select_prompts,
    shard_of,
    spread,
    stages_of,
    unmatched,
)
from pytest_openclaw.suites.load import load_suite, parse_suite
from pytest_openclaw.suites.prompt import known_failure_of
from pytest_openclaw.suites.targets import expand, is_wildcard, parse_endpoint, parse_targets
from pytest_openclaw.suites.wording import closest

__all__ = [
    "build_cells",
    "closest",
    "definition",
    "definitions",
    "digest_of_cells",
    "expand",
    "is_wildcard",
    "keyword_token",
    "known_failure_of",
    "load_suite",
    "mixed",
    "parse_endpoint",
    "parse_suite",
    "parse_targets",
    "rewrite_keyword",
    "select_prompts",
    "shard_of",
    "spread",
    "stages_of",
    "unmatched",
]
