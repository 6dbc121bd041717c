"""A check before a run: a lab that pays for each cell sends at most a thousand of them."""

from collections.abc import Sequence

import pytest

from pytest_openclaw.values.prompts import Cell


def pytest_openclaw_begin(cells: Sequence[Cell]) -> None:
    """Refuse a run that is too large, before anything is sent."""
    if len(cells) > 1000:
        raise pytest.UsageError(f"{len(cells)} cells are selected; a run may have 1000")
