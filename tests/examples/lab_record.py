"""A last look at rows: each says which team's it is, and whether its answer came too late to be of use."""

from collections.abc import Mapping
from typing import Any

import pytest


def pytest_addoption(parser: pytest.Parser) -> None:
    """Let the ini file name the team."""
    parser.addini("team", "Whose rows these are.", default="none")


def pytest_openclaw_record(row: Mapping[str, Any], config: pytest.Config) -> Mapping[str, Any]:
    """Return what is to be added to the row: keys that begin with `x_`."""
    return {"x_lab": {"team": config.getini("team"), "too_late": row["e2e_ms"] > 30_000}}
