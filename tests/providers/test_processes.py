"""Programs in their own process groups."""

import asyncio
import os
import signal
import sys
from itertools import pairwise

import pytest
from hypothesis import given
from hypothesis import strategies as st

from pytest_openclaw.providers import processes
from pytest_openclaw.providers.processes import Program, Running
from pytest_openclaw.values.faults import CallFailed
from tests.e2e.processes import is_gone
from tests.providers.fake_claude import dies

pytestmark = pytest.mark.skipif(sys.platform == "win32", reason="process groups are POSIX")


def python(code, *, cwd, stdin=b""):
    return Program(argv=(sys.executable, "-S", "-E", "-c", code), env={}, cwd=cwd, stdin=stdin)


async def lines_of(program):
    running = await processes.start("p", program)
    lines = []
    try:
        while (line := await running.next_line()) is not None:
            lines.append(line)
        await running.wait_exit(20)
    finally:
        await running.stop()
    return lines, running


def test_input_goes_in_and_lines_come_out(tmp_path):
    """A program reads its whole input; its lines arrive without line feeds, including the last one."""
    code = "import sys; data = sys.stdin.read(); print(len(data)); sys.stdout.write('end')"
    lines, running = asyncio.run(lines_of(python(code, cwd=tmp_path, stdin=b"x" * 300_000)))

    assert (lines, running.exit_status) == ([b"300000", b"end"], 0)


def test_the_end_of_stderr_is_kept(tmp_path):
    """Any amount of stderr is drained, and its end kept."""
    code = "import sys; sys.stderr.write('noise\\n' * 100_000 + 'the reason'); sys.exit(3)"
    _, running = asyncio.run(lines_of(python(code, cwd=tmp_path)))

    assert running.exit_status == 3
    assert running.stderr.endswith("noise\nthe reason")
    assert len(running.stderr) <= processes.STDERR_TAIL_BYTES


def test_a_missing_command_cannot_be_started(tmp_path):
    """A missing program is an error with the system's reason."""
    with pytest.raises(CallFailed, match="cannot be started: No such file"):
        asyncio.run(processes.start("p", Program(argv=("/no/such/program",), env={}, cwd=tmp_path)))


@pytest.mark.parametrize(
    "ignores", [pytest.param("", id="polite"), pytest.param("signal.SIG_IGN", id="ignores-SIGTERM")]
)
def test_stop_ends_the_whole_group(tmp_path, monkeypatch, ignores):
    """A program and its children are gone after `stop`, even if they ignore SIGTERM."""
    monkeypatch.setattr(processes, "GRACE_S", 0.3)
    code = (
        "import os, signal, time\n"
        + (f"signal.signal(signal.SIGTERM, {ignores})\n" if ignores else "")
        + "child = os.fork()\nprint(os.getpid(), flush=True)\ntime.sleep(600)"
    )

    async def start_and_stop():
        running = await processes.start("p", python(code, cwd=tmp_path))
        pids = [int(await running.next_line()), int(await running.next_line())]
        await running.stop()
        return pids, running.exit_status

    pids, status = asyncio.run(start_and_stop())

    assert status is None, "it was ended, and did not end by itself"
    assert all(dies(pid) for pid in pids)


@pytest.mark.parametrize(
    "session", [pytest.param(False, id="in-the-group"), pytest.param(True, id="in-its-own-session")]
)
def test_a_grandchild_that_keeps_the_pipes_open(tmp_path, session):
    """The lines end with the program, even if its pipes are still open; its group is killed."""
    code = (
        "import subprocess, sys\n"
        "sleep = [sys.executable, '-S', '-E', '-c', 'import time; time.sleep(600)']\n"
        f"print(subprocess.Popen(sleep, start_new_session={session}).pid)"
    )
    lines, running = asyncio.run(lines_of(python(code, cwd=tmp_path)))
    pid = int(lines[0])
    if session:
        assert not is_gone(pid), "it was not waited for"
        os.kill(pid, signal.SIGKILL)

    assert running.exit_status == 0
    assert dies(pid)


@pytest.mark.parametrize(
    ("limit", "piece", "why"),
    [
        ("MOST_LINE_BYTES", b"x" * 65536, "a line of it than 1 MiB"),
        ("MOST_BYTES", b"x\n" * 32768, "it is longer than 1 MiB"),
    ],
)
def test_output_without_end(monkeypatch, tmp_path, limit, piece, why):
    """A program that writes too much is ended at once."""
    monkeypatch.setattr(processes, limit, 1 << 20)
    code = f"import sys\nwhile True: sys.stdout.buffer.write({piece[:2]!r} * {len(piece) // 2})"

    with pytest.raises(CallFailed, match=why):
        asyncio.run(processes.run("p", python(code, cwd=tmp_path), within_s=60.0))


@given(data=st.binary(max_size=60), cuts=st.lists(st.integers(0, 60), max_size=6))
def test_chunks_read_like_the_whole(data, cuts):
    """However the pipe cuts the output, the same lines are read."""
    expected = data.split(b"\n")
    expected = expected if expected[-1] else expected[:-1]
    bounds = [0, *sorted(min(cut, len(data)) for cut in cuts), len(data)]

    async def lines():
        running = Running()
        for start, end in pairwise(bounds):
            running.pipe_data_received(1, data[start:end])
        running.pipe_connection_lost(1, None)
        received = []
        while (line := await running.next_line()) is not None:
            received.append(line)
        return received

    assert asyncio.run(lines()) == expected
