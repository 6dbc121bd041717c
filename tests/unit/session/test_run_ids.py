"""The valid names of a run."""

from __future__ import annotations

import pytest

from pytest_openclaw.values.settings import parse_run_id


@pytest.mark.parametrize(
    "name", ["r", "20260213_235930", "a.b-c+d_2", "console", "com10", "lasting", "x.con", "a" * 128]
)
def test_a_name_that_every_system_holds(name: str) -> None:
    """It is used unchanged."""
    assert parse_run_id(name) == name


@pytest.mark.parametrize("name", ["last", "LAST"])
def test_last_is_another_runs_name(name: str) -> None:
    """A run of this name could not be distinguished from the newest one."""
    with pytest.raises(ValueError, match="last means the newest run"):
        parse_run_id(name)


@pytest.mark.parametrize("name", ["", ".", "..", "-x", ".x", "x.", "a b", "a/b", "é", "a" * 129, "x\n"])
def test_what_is_no_name(name: str) -> None:
    """Neither a path nor a name that a system would change."""
    with pytest.raises(ValueError, match="give up to 128 letters"):
        parse_run_id(name)
