"""Decisions of the engine's own process."""

from __future__ import annotations

import pytest

from pytest_openclaw.providers.llama_cpp.server import thread_count


@pytest.mark.parametrize(
    ("available", "physical", "cpu_quota", "threads"),
    [
        pytest.param(8, 4, "", 4, id="one-a-core"),
        pytest.param(2, 4, "", 2, id="a-part-of-the-machine"),
        pytest.param(8, None, "", 8, id="cores-unknown"),
        pytest.param(64, 32, "200000 100000\n", 2, id="a-container-with-a-quota"),
        pytest.param(4, 4, "50000 100000\n", 1, id="less-than-one-cpu"),
        pytest.param(4, 4, "max 100000\n", 4, id="a-container-without-a-quota"),
    ],
)
def test_thread_count(available, physical, cpu_quota, threads):
    """More threads than cores slow llama.cpp down, so every limit counts."""
    assert thread_count(available, physical, cpu_quota) == threads
