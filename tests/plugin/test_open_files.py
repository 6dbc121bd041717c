"""Requests in flight and the limit of open files."""

import sys

import pytest

resource = pytest.importorskip("resource")
pytestmark = pytest.mark.newest


@pytest.fixture
def few_files():
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    resource.setrlimit(resource.RLIMIT_NOFILE, (300, hard))
    yield
    resource.setrlimit(resource.RLIMIT_NOFILE, (soft, hard))


@pytest.mark.usefixtures("few_files")
@pytest.mark.skipif(sys.platform == "win32", reason="Windows has no such limit")
@pytest.mark.parametrize(("asked", "is_reduced"), [(1, False), (4000, True)])
def test_concurrency_fits_into_the_open_files(plain_project, asked, *, is_reduced):
    """More requests at once would fail; the run asks fewer, says so, and records the number."""
    plain_project.suite({"P1": ("Hi", {"type": "noop"})})

    session = plain_project.run(f"--openclaw-concurrency={asked}", models="mock/m")

    assert ("only 300 files may be open (ulimit -n)" in session.text) == is_reduced
    used = session.load("config.json")["concurrency"]
    assert used["everywhere"] == (None if is_reduced else asked)
    assert all(0 < n < 300 for n in used["by_provider"].values())
    assert bool(used["by_provider"]) == is_reduced
