"""The files of the how-to on watching work as they are: crontab, systemd units, and the scripts beside them."""

from __future__ import annotations

import json
import re
import shlex
import shutil
import subprocess
from configparser import RawConfigParser
from pathlib import Path

import pytest

from tests.docs.pages import File, read_page
from tests.docs.reference import DOCS
from tests.docs.terminal import Terminal
from tests.docs.test_pages import CONFTEST

pytestmark = pytest.mark.newest

FOLDER = "/home/me/lab"
PAGE = DOCS / "how-to/watch.md"
FILES = {block.path: block.text for block in read_page(PAGE.read_text("utf-8")) if isinstance(block, File)}
UNITS = [name for name in FILES if name.startswith("openclaw-watch")]
MUTE = CONFTEST.replace("text=request.prompt", 'text="No."')
PROMPT = (
    '[[prompts]]\nid = "P{}"\nprompt = "Say hello."\nvalidator = {{ type = "contains", value = "hello" }}\n'
)


@pytest.fixture(scope="module")
def terminal(tmp_path_factory: pytest.TempPathFactory) -> Terminal:
    """A project with a predictable model, whose first run, twenty times, is the baseline."""
    terminal = Terminal(tmp_path_factory.mktemp("lab"))
    terminal.write(File(path="pytest.ini", text="[pytest]\nopenclaw_models = parrot/any\n"))
    terminal.write(File(path="conftest.py", text=CONFTEST))
    terminal.write(File(path="worse.sh", text=FILES["worse.sh"]))
    suite = "".join(PROMPT.format(number) for number in range(8))
    terminal.write(File(path="benchmarks/prompts_small.toml", text=suite))
    first = terminal.run(FILES["baseline.sh"].replace("seq 20", "seq 1"))
    assert "parrot/any: run 1 of 20 of the baseline; 8 of 8 cells passed" in first.stdout
    (run,) = (terminal.folder / "runs").glob("watch_*")
    for n in range(20):
        shutil.copytree(run, run.with_name(f"before_{n:02}"))
    assert terminal.run("pytest-openclaw watch --new-baseline 'before_*'").returncode == 0
    return terminal


def _timed(terminal: Terminal) -> str:
    """The command of the crontab, in this folder."""
    (line,) = (line for line in FILES["crontab"].splitlines() if line.startswith("7 * * * * "))
    return line.removeprefix("7 * * * * ").replace(FOLDER, str(terminal.folder))


def _started(terminal: Terminal) -> str:
    """The command of the service, in this folder."""
    (line,) = re.findall(r"^ExecStart=(.+)$", FILES["openclaw-watch.service"], re.MULTILINE)
    return line.replace(f"{FOLDER}/.venv/bin/", "")


def test_a_server_that_stays_equal_sends_no_mail(terminal: Terminal) -> None:
    """Cron mails what a command prints."""
    done = terminal.run(_timed(terminal))

    assert (done.returncode, done.stdout) == (0, "")
    assert "not shown to be worse" in (terminal.folder / "watch.log").read_text()


def test_a_server_that_gets_worse_fails_the_service_and_calls_the_script(terminal: Terminal) -> None:
    """The script has the sentence and the report; then it is acknowledged as the page says."""
    terminal.write(File(path="conftest.py", text=MUTE))

    worse = terminal.run(_started(terminal))
    said = (terminal.folder / "worse.txt").read_text().splitlines()
    acknowledged = terminal.run("pytest-openclaw watch --acknowledge")

    terminal.write(File(path="conftest.py", text=CONFTEST))
    assert (worse.returncode, acknowledged.returncode) == (1, 0), worse.stdout
    assert said[0].startswith("parrot/any got worse: 0 % of 8 cells passed")
    assert Path(said[1].removeprefix("Report: ")).name == "summary.md"
    assert json.loads((terminal.folder / "runs/watch.watch.json").read_text())["findings"] == []


@pytest.mark.parametrize("name", UNITS)
def test_a_unit_is_well_formed(name: str, tmp_path: Path) -> None:
    """By a parser everywhere, and by systemd where it is installed."""
    unit = RawConfigParser(strict=True)
    unit.optionxform = str  # type: ignore[assignment, method-assign]
    unit.read_string(FILES[name])
    assert unit.sections()[0] == "Unit"
    program = tmp_path / ".venv/bin/pytest-openclaw"
    program.parent.mkdir(parents=True)
    program.write_text("#!/bin/sh\n")
    program.chmod(0o700)
    for each in UNITS:
        (tmp_path / each).write_text(FILES[each].replace(FOLDER, str(tmp_path)))
    if analyze := shutil.which("systemd-analyze"):
        done = subprocess.run(
            [analyze, "verify", str(tmp_path / name)], capture_output=True, text=True, check=False
        )
        assert (done.returncode, str(tmp_path / name) in done.stderr) == (0, False), done.stderr


def test_the_service_runs_what_the_crontab_runs() -> None:
    """The same suite on the same schedule; the timer's is hourly, too."""
    (cron,) = (line for line in FILES["crontab"].splitlines() if line.startswith("7 "))
    words = shlex.split(_started(Terminal(Path())))

    assert shlex.join(words[-2:]) in cron
    assert "--every 1h" in cron
    assert words[2:4] == ["--every", "1h"]
    assert "OnCalendar=hourly" in FILES["openclaw-watch.timer"]
