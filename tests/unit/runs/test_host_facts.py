"""Snapshots and the inventory: the facts that a machine reports, and those that it does not."""

from __future__ import annotations

import subprocess
from typing import Any

import psutil
import pytest

from pytest_openclaw.asking import resources
from pytest_openclaw.asking.resources import collect_snapshot, render_snapshot
from pytest_openclaw.runs import environment
from pytest_openclaw.runs.environment import collect_inventory


@pytest.mark.parametrize(
    "error",
    [OSError("hidden"), RuntimeError("no vmstat"), NotImplementedError(), psutil.AccessDenied()],
    ids=lambda error: type(error).__name__,
)
def test_what_a_machine_does_not_say_is_null(monkeypatch: pytest.MonkeyPatch, error: Exception) -> None:
    """A container that hides its figures loses the figures and no cell."""

    def hidden(*_: Any, **__: Any) -> Any:
        raise error

    for name in ("virtual_memory", "swap_memory", "disk_usage", "getloadavg", "cpu_percent"):
        monkeypatch.setattr(resources.psutil, name, hidden)

    snapshot = collect_snapshot()

    assert {key for key, value in snapshot.items() if value is not None} == {"taken_at_ms"}
    assert "memory_total_bytes      None\n" in render_snapshot("p/m", "before", snapshot)


def test_a_snapshot_as_text() -> None:
    """Bytes are shown in readable units, too."""
    assert render_snapshot("p/m", "after", {"load_1m": 0.5, "disk_free_bytes": 3 * 1024**3}) == (
        "# p/m, after\nload_1m                 0.5\ndisk_free_bytes         3221225472  (3.0 GiB)\n"
    )


def test_the_inventory_names_what_measured() -> None:
    """It has host, processor, Python and packages."""
    found = collect_inventory()

    assert found["packages"]["pytest"] == pytest.__version__
    assert found["cpu"]["logical_cores"] >= 1
    assert found["host"]["system"]


@pytest.mark.parametrize(
    ("said", "gpus"),
    [
        pytest.param(
            "NVIDIA A10, Rev. B, 24564, 555.42\n",
            [{"name": "NVIDIA A10, Rev. B", "memory_mib": "24564", "driver": "555.42"}],
            id="one",
        ),
        pytest.param("No devices were found\n", [], id="a-sentence"),
        pytest.param("", [], id="nothing"),
    ],
)
def test_graphics_cards(monkeypatch: pytest.MonkeyPatch, said: str, gpus: list[Any]) -> None:
    """Each card is listed; a tool that finds none may report that as text."""
    monkeypatch.setattr(
        environment.subprocess, "run", lambda *_, **__: subprocess.CompletedProcess([], 0, stdout=said)
    )

    assert collect_inventory()["gpus"] == gpus
