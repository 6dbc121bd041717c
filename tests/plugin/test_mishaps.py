"""Failures around the cells lose no row: a full disk, a broken closing, another plugin, an odd folder."""

from __future__ import annotations

from typing import Any

import pytest

pytestmark = pytest.mark.newest

NOOP = {"type": "noop"}


FULL_DISK = """
import errno
from pytest import MonkeyPatch
from pytest_openclaw.runs.directory import RunDirectory
from pytest_openclaw.runs.session import RunSession

patch = MonkeyPatch()
whole = {owner}.{method}
done = []

def full(self, *args, **named):
    done.append(args)
    if len(done) > {after}:
        raise OSError(errno.ENOSPC, "No space left on device")
    return whole(self, *args, **named)

def pytest_configure():
    patch.setattr({owner}, "{method}", full)

def pytest_unconfigure():
    patch.undo()
"""


def test_a_full_disk_keeps_the_rows_before_it(project: Any) -> None:
    """The session ends with one message; earlier rows are kept."""
    project.extend_conftest(FULL_DISK.format(owner="RunDirectory", method="append", after=2))
    project.suite({f"P{n}": ("say yes", NOOP) for n in range(40)})

    session = project.run("--openclaw-concurrency=8")

    assert "No space left on device" in session.text
    assert "Every row before this is kept there" in session.text
    assert "INTERNALERROR" not in session.text
    assert session.status == pytest.ExitCode.INTERNAL_ERROR
    assert len(session.rows) == 2
    assert session.summary["state"] == "interrupted"


def test_a_summary_that_cannot_be_written_is_said(project: Any) -> None:
    """At the very end too a full disk is a message and not a traceback, and no success."""
    project.suite({"P1": ("say yes", NOOP)})
    project.extend_conftest(FULL_DISK.format(owner="RunSession", method="finish", after=0))

    session = project.run()

    assert "No space left on device" in session.text
    assert "INTERNALERROR" not in session.text
    assert session.status == pytest.ExitCode.INTERNAL_ERROR
    assert len(session.rows) == 1


@pytest.mark.parametrize(
    "body", ["raise RuntimeError('cannot close')", "import sys; sys.exit(7)"], ids=["raises", "exits"]
)
def test_a_provider_that_cannot_close_costs_no_summary(project: Any, body: str) -> None:
    """An exception of a plugin at the end comes too late to matter."""
    conftest = project.folder / "conftest.py"
    conftest.write_text(
        conftest.read_text().replace(
            "    async def models(self):",
            f"    async def aclose(self):\n        {body}\n\n    async def models(self):",
        )
    )
    project.suite({"P1": ("say yes", NOOP)})

    session = project.run()

    assert session.status == 0
    assert session.summary["n_rows"] == 1


COUNTS_CALLS = """
whole = Scripted.ask

async def counted(self, request):
    with open("calls.txt", "a") as file:
        file.write(request.prompt + "\\n")
    return await whole(self, request)

Scripted.ask = counted
"""


@pytest.mark.workers
def test_stolen_cells_are_asked_once(plain_project: Any) -> None:
    """If workers take items from each other, a cell is not asked ahead where another worker may get it."""
    slow_first = {f"P{n:02}": (f"wait {0.2 if n < 12 else 0.0}", NOOP) for n in range(24)}
    plain_project.suite(slow_first)
    plain_project.extend_conftest(COUNTS_CALLS)

    session = plain_project.run("-n", "2", "--dist=worksteal")

    session.outcomes(passed=24)
    assert len((plain_project.folder / "calls.txt").read_text().splitlines()) == 24


INTERRUPTS = """
import pytest

@pytest.hookimpl(trylast=True)
def pytest_configure_node(node):
    if node.gateway.id == "gw2":
        raise KeyboardInterrupt
"""
DIES = "import os\ndef test_that_dies():\n    os._exit(1)\n"


@pytest.mark.nightly
@pytest.mark.workers
def test_ctrl_c_while_a_worker_is_replaced(plain_project: Any) -> None:
    """The session ends as interrupted, with its summary, though one worker has not been started yet."""
    plain_project.suite({f"P{n}": ("say yes", NOOP) for n in range(4)})
    (plain_project.folder / "benchmarks" / "test_dies.py").write_text(DIES)
    plain_project.extend_conftest(INTERRUPTS)

    session = plain_project.run("-n", "2", apart=True)

    assert session.status == pytest.ExitCode.INTERRUPTED
    assert "KeyboardInterrupt" in session.text
    assert session.summary["n_rows"] == len(session.rows)


@pytest.mark.parametrize("option", ["--help", "--collect-only", "--setup-plan"])
def test_listing_options_send_no_request(plain_project: Any, option: str) -> None:
    """With models in the ini, pytest's lists neither call a model nor leave a run behind."""
    plain_project.pytester.makeini("[pytest]\nopenclaw_models = scripted/*\nopenclaw_runs_dir = runs\n")
    conftest = plain_project.folder / "conftest.py"
    conftest.write_text(
        conftest.read_text().replace(
            "async def models(self):", "async def models(self):\n        open('called', 'w')"
        )
    )
    plain_project.suite({"P1": (f"log {plain_project.folder / 'called'}", NOOP)})

    session = plain_project.run(option, models=None)

    assert session.status == 0
    assert not (plain_project.folder / "called").exists()
    assert not session.has_run


SKIPS = """
import pytest

def pytest_collection_modifyitems(items):
    for item in items:
        item.add_marker(pytest.mark.skip(reason="not today"))
"""


def test_cells_that_are_all_skipped_by_a_mark(project: Any) -> None:
    """They fail nothing, but a gate over them has no verdict, and says so."""
    project.suite({"P1": ("say yes", NOOP)})
    project.extend_conftest(SKIPS)

    session = project.run()
    gated = project.run("--openclaw-min-pass-rate=0.5")

    session.outcomes(skipped=1)
    assert (session.status, gated.status) == (0, 10)
    assert "gate NO VERDICT" in gated.text


def test_no_answer_stays_in_memory(project: Any) -> None:
    """Neither pytest's reports nor its items keep a reply once its row is written."""
    project.extend_conftest(
        "\nimport gc\nfrom pytest_openclaw.values.replies import Reply\n"
        "def pytest_unconfigure(config):\n"
        "    gc.collect()\n"
        "    kept = [o for o in gc.get_objects() if isinstance(o, Reply) and 'needle' in o.text]\n"
        "    rows = [o for o in gc.get_objects() if isinstance(o, dict) and 'needle' in str(o.get('raw_output'))]\n"
        "    print('kept', len(kept), len(rows), 'in', getattr(config, 'workerinput', {}).get('workerid', 'the session'))\n",
    )
    project.suite({f"P{n}": (f"say needle {n}", NOOP) for n in range(5)})

    session = project.run("-s")

    session.outcomes(passed=5)
    assert "kept 0 0 in the session" in session.text
