"""A row hook: adds each row's team, and whether its reply came too late to be useful."""

from collections.abc import Mapping
from typing import Any

import pytest


def pytest_addoption(parser: pytest.Parser) -> None:
    """Add the ini key of the team."""
    parser.addini("team", "The team that owns the rows.", default="none")


def pytest_openclaw_record(row: Mapping[str, Any], config: pytest.Config) -> Mapping[str, Any]:
    """Return the keys to add to the row; they begin with `x_`."""
    return {"x_lab": {"team": config.getini("team"), "too_late": row["e2e_ms"] > 30_000}}
