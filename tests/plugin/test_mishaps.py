"""Failures around the cells lose no row: a full disk, and a provider that cannot close."""

import pytest

from tests.plugin.conftest import NOOP

pytestmark = pytest.mark.newest

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


def test_a_full_disk_keeps_the_rows_before_it(project):
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


def test_a_summary_that_cannot_be_written_is_reported(project):
    """At the very end too a full disk is a message and not a traceback, and not a success."""
    project.suite({"P1": ("say yes", NOOP)})
    project.extend_conftest(FULL_DISK.format(owner="RunSession", method="finish", after=0))

    session = project.run()

    assert "No space left on device" in session.text
    assert "INTERNALERROR" not in session.text
    assert session.status == pytest.ExitCode.INTERNAL_ERROR
    assert len(session.rows) == 1


@pytest.mark.parametrize("ends", ["raise RuntimeError(1)", "raise SystemExit(7)"])
def test_a_provider_that_cannot_close_loses_no_summary(project, ends):
    """An error of a plugin at the end, or its `sys.exit`, is too late to change the result."""
    models = "    async def models(self):"
    project.change_conftest(models, f"    async def aclose(self):\n        {ends}\n\n{models}")
    project.suite({"P1": ("say yes", NOOP)})

    session = project.run()

    assert session.status == 0
    assert session.summary["n_rows"] == 1


def test_no_answer_stays_in_memory(project):
    """Neither pytest's reports nor its items keep a reply once another test of the worker has begun."""
    project.extend_conftest(
        "\nimport gc\nfrom pytest_openclaw.values.replies import Reply\n"
        "def pytest_unconfigure(config):\n"
        "    gc.collect()\n"
        "    kept = [o for o in gc.get_objects() if isinstance(o, Reply) and 'needle' in o.text]\n"
        "    rows = [o for o in gc.get_objects() if isinstance(o, dict) and 'needle' in str(o.get('raw_output'))]\n"
        "    print('kept', len(kept), len(rows), 'in', getattr(config, 'workerinput', {}).get('workerid', 'the session'))\n"
    )
    project.suite({f"P{n}": (f"say needle {n}", NOOP) for n in range(30)})

    session = project.run("-s")

    session.outcomes(passed=30)
    session.result.stdout.re_match_lines(["kept [0-2] 0 in the session"])
