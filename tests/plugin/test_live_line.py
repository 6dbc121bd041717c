"""The state of a run while it runs: in a real terminal of 80 columns, and without one."""

import os
import re
import select
import struct
import subprocess
import sys
from typing import NamedTuple

import pytest

from tests.plugin.conftest import YES

fcntl = pytest.importorskip("fcntl")
pty = pytest.importorskip("pty")
pyte = pytest.importorskip("pyte")
termios = pytest.importorskip("termios")
pytestmark = pytest.mark.newest

SLOW = """
class Slow(Provider):
    name = "slow"

    async def ask(self, request):
        await asyncio.sleep(0.1 if request.model == "a" else 0.5)
        if request.prompt == "fail once" and not (FOLDER / "failed").exists():
            (FOLDER / "failed").touch()
            raise CallFailed(Fault(failure_type="http_500", status="error", message="slow: 500", retryable=True, retry_after_s=1))
        return Reply(text="yes", finish_reason="stop")


PROVIDERS.append(Slow)
"""
LIVE = "\x1b7"
"""The code that only the live line sends: save the cursor."""


class Shown(NamedTuple):
    """A session in a terminal: all bytes, the last lines that were seen below the progress, and the last screen."""

    raw: str
    seen: list[str]
    screen: list[str]


@pytest.fixture
def slow(plain_project):
    plain_project.extend_conftest(SLOW)
    prompts = {f"P{n}": ("fail once" if n == 2 else "say", YES) for n in range(6)}
    plain_project.suite(prompts)
    return plain_project


def in_terminal(folder, *words, columns=80, **variables):
    controller, terminal = pty.openpty()
    fcntl.ioctl(terminal, termios.TIOCSWINSZ, struct.pack("HHHH", 24, columns, 0, 0))
    hidden = {"CI", "BUILD_NUMBER", "COLUMNS", "NO_COLOR", "PYTEST_ADDOPTS", "GITHUB_ACTIONS"}
    environment = {name: text for name, text in os.environ.items() if name not in hidden}
    command = [sys.executable, "-m", "pytest", "benchmarks", *words]
    process = subprocess.Popen(
        command, cwd=folder, stdin=terminal, stdout=terminal, stderr=terminal, close_fds=True,
        env={**environment, "TERM": "xterm", **variables},
    )  # fmt: skip
    os.close(terminal)
    screen, raw, seen = pyte.Screen(columns, 24), b"", []
    stream = pyte.ByteStream(screen)
    while True:
        if select.select([controller], [], [], 0.05)[0]:
            try:
                data = os.read(controller, 65536)
            except OSError:
                break
            if not data:
                break
            raw += data
            stream.feed(data)
        below = screen.display[screen.cursor.y + 1] if screen.cursor.y < 23 else ""
        if below.strip() and below.rstrip() not in seen:
            seen.append(below.rstrip())
    process.wait(60)
    os.close(controller)
    return Shown(raw.decode(), seen, [line.rstrip() for line in screen.display if line.strip()])


def plain(lines):
    return [
        re.sub(r"[0-9.]+ ?m?s\??|[0-9]{8}_[0-9]{6}|=+|gw[01]|\[ *[0-9]+ ?%\]", "", line).strip()
        for line in lines
    ]


MODELS = "--openclaw-models=slow/a,slow/b"


def test_the_line_says_where_the_run_is(slow):
    """Target, prompt, cells, a retry with its wait, the time left by the target's median, later targets."""
    shown = in_terminal(slow.folder, MODELS, "--openclaw-concurrency=1")

    assert any(re.fullmatch(r"slow/a P[0-9] · [0-9] of 6 · .*then 1 target", line) for line in shown.seen)
    assert any(re.search(r"· HTTP 500, try 2 of 6 in 1 s", line) for line in shown.seen)
    assert any(re.search(r"slow/b P[3-5] · [3-5] of 6 · about 1 s left$", line) for line in shown.seen)
    assert not any("slow/a P" in line for line in shown.screen)


@pytest.mark.parametrize(
    "words",
    [
        pytest.param([], id="plain"),
        pytest.param(["-q"], id="quiet", marks=pytest.mark.nightly),
        pytest.param(["-v"], id="verbose", marks=pytest.mark.nightly),
        pytest.param(["-n", "2"], id="workers", marks=pytest.mark.workers),
        pytest.param(
            ["-n", "2", "-v"], id="workers-verbose", marks=[pytest.mark.workers, pytest.mark.nightly]
        ),
    ],
)
def test_the_screen_is_the_same_at_the_end(slow, words):
    """As without the line: nothing of it stays, and no character of pytest's output is lost."""
    with_line = in_terminal(slow.folder, "--openclaw-models=slow/a", *words)
    without = in_terminal(slow.folder, "--openclaw-models=slow/a", *words, TERM="dumb")

    assert LIVE in with_line.raw
    assert LIVE not in without.raw
    order = sorted if "-n" in words else list
    assert order(plain(with_line.screen)) == order(plain(without.screen))


@pytest.mark.parametrize(
    ("words", "variables"),
    [
        pytest.param(["--capture=no"], {}, id="tests-write"),
        pytest.param(["--log-cli-level=INFO"], {}, id="live-logs", marks=pytest.mark.nightly),
        pytest.param(["--setup-show"], {}, id="setup-show", marks=pytest.mark.nightly),
        pytest.param(["-p", "no:terminal"], {}, id="no-reporter"),
        pytest.param(["-o", "console_output_style=classic"], {}, id="no-progress", marks=pytest.mark.nightly),
        pytest.param(["-p", "no:capture"], {}, id="no-capture", marks=pytest.mark.nightly),
        pytest.param([], {"CI": "true"}, id="ci", marks=pytest.mark.nightly),
        pytest.param([], {"TERM": "dumb"}, id="dumb-terminal", marks=pytest.mark.nightly),
    ],
)
def test_there_is_no_line_where_others_write(slow, words, variables):
    """It could mix with their output."""
    shown = in_terminal(slow.folder, "--openclaw-models=slow/a", *words, **variables)

    assert LIVE not in shown.raw


@pytest.mark.parametrize("columns", [60, *(pytest.param(n, marks=pytest.mark.nightly) for n in (40, 140))])
def test_a_narrow_terminal_shows_less(slow, columns):
    """The line never wraps; its last parts go first. Without colors it is still drawn, because it has none."""
    shown = in_terminal(slow.folder, MODELS, columns=columns, NO_COLOR="1")

    assert any(line.startswith("slow/a P") and " of 6" in line for line in shown.seen)
    assert max(map(len, shown.seen)) < columns
    assert "\x1b[3" not in shown.raw


def test_without_a_terminal_each_ended_target_has_a_line(slow):
    """While others are left; `-q` leaves it out."""
    text = slow.run(models="slow/a,slow/b").text
    assert text.count("slow/a: 6 cells, 0 missed; 1 target left") == 1
    assert "slow/b: 6 cells" not in text

    assert "slow/a: 6 cells" not in slow.run("-q", models="slow/a,slow/b").text
