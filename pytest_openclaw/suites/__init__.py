"""Reads suites and target specs, and combines them into cells with stable ids.

Everything here is text and values; only `load_suite` opens a file.
"""

from __future__ import annotations

from pytest_openclaw.suites.definitions import definition, definitions
from pytest_openclaw.suites.endpoints import parse_endpoint
from pytest_openclaw.suites.keywords import keyword_token, rewrite_keyword
from pytest_openclaw.suites.known_failures import known_failure_of
from pytest_openclaw.suites.load import load_suite
from pytest_openclaw.suites.matrix import build_cells, select_prompts, unmatched
from pytest_openclaw.suites.order import digest_of_cells, shard_of, spread
from pytest_openclaw.suites.parse import parse_suite
from pytest_openclaw.suites.target_specs import expand, is_wildcard, parse_targets
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
    "parse_endpoint",
    "parse_suite",
    "parse_targets",
    "rewrite_keyword",
    "select_prompts",
    "shard_of",
    "spread",
    "unmatched",
]
