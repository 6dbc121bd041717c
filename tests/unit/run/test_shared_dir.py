"""The folder in which the processes of a run meet."""

from __future__ import annotations

import stat
import sys
import tempfile

import pytest

from pytest_openclaw.run.shared import SharedDir


@pytest.fixture
def temporary(tmp_path, monkeypatch):
    """The system's folder for temporary files, for this test."""
    monkeypatch.setattr(tempfile, "tempdir", str(tmp_path))
    return tmp_path


def test_it_is_there_while_it_is_open(temporary):
    """The folder lies under the temporary folder and is gone with all its files afterwards."""
    with SharedDir.create() as shared:
        (shared.path / "engine.json").write_text("{}")
        inside = shared.path.parent == temporary

    assert inside
    assert list(temporary.iterdir()) == []


def test_runs_do_not_meet(temporary):
    """Two runs at the same time have two folders."""
    with SharedDir.create() as one, SharedDir.create() as other:
        assert one.path != other.path


@pytest.mark.skipif(sys.platform == "win32", reason="Windows has no permission bits")
def test_nobody_else_may_enter(temporary):
    """Only its owner may read, write or enter it."""
    with SharedDir.create() as shared:
        assert stat.S_IMODE(shared.path.stat().st_mode) == 0o700


def test_removing_it_twice_is_no_error(temporary):
    """What is gone already is no error."""
    shared = SharedDir.create()
    shared.remove()
    shared.remove()

    assert list(temporary.iterdir()) == []
