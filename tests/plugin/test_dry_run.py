"""`--openclaw-dry-run`: the planned requests and their cost; no request is sent, nothing is written."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

import pytest

from pytest_openclaw.util.installation import install_command

NOOP = {"type": "noop"}
TWO = {"P1": ("say one", NOOP), "P2": ("say two", NOOP)}

# Every call, also for the list of models, is recorded; replies use tokens.
CLERK = """
import pathlib
from pytest_openclaw import CallFailed, Provider, Reply, faults

FOLDER = pathlib.Path(__file__).parent


class Clerk(Provider):
    name = "clerk"
    takes_tools = True

    def note(self, what):
        with open(FOLDER / "asked.txt", "a") as file:
            file.write(what + "\\n")

    async def ask(self, request):
        self.note(request.prompt)
        if request.prompt == "break":
            raise CallFailed(faults.timed_out("clerk", 1.0))
        return Reply(text="hi", input_tokens=100, output_tokens=10)

    async def models(self):
        self.note("models")
        return ("a", "b")


def pytest_openclaw_providers():
    return [Clerk]
"""


@pytest.fixture(name="project")
def _project(project: Any) -> Any:
    project.extend_conftest(CLERK)
    project.pytester.makeini("[pytest]\nopenclaw_prices = clerk/* = 10 50\n")
    return project


def asked(project: Any) -> list[str]:
    """Return the calls since the last time."""
    path = project.folder / "asked.txt"
    words = path.read_text().splitlines() if path.exists() else []
    path.unlink(missing_ok=True)
    return words


def files(folder: Path) -> dict[str, int]:
    """Return every file of the project and its runs, with its time; without caches and pytester's own."""
    others = {".pytest_cache", "__pycache__", "stdout", "stderr", "runpytest-0", "runpytest-1"}
    kept = (path for path in folder.rglob("*") if not others & {*path.relative_to(folder).parts})
    return {str(path): path.stat().st_mtime_ns for path in kept if path.is_file()}


def table(session: Any) -> dict[str, list[str]]:
    """Return the lines of the table: target → figures."""
    lines = session.text.partition("no request was sent")[2].partition("based on")[0].splitlines()
    rows = [re.split(r"\s{2,}", line.strip()) for line in lines[2:] if line.strip()]
    return {target: figures for target, *figures in rows}


@pytest.mark.under_workers
def test_no_request_is_sent_and_nothing_is_written(project: Any) -> None:
    """Without an earlier run only cells and calls are known; a glob is one line; workers are not started."""
    project.suite(TWO)
    (project.folder / "test_own.py").write_text("def test_own(): assert False\n")
    before = files(project.folder)

    session = project.run(
        "test_own.py", "--openclaw-dry-run", "--openclaw-repeat=3", models="clerk/a,clerk/*"
    )

    assert session.status == 0
    assert table(session) == {
        "clerk/a": ["6", "?", "?", "?"],
        "clerk/*": ["6", "?", "?", "?"],
        "all": ["12", "?", "?", "?"],
    }
    assert "clerk/* means every model served there" in session.text
    assert "nothing: no earlier run asked this" in session.text
    assert "created:" not in session.text
    assert "workers [" not in session.text
    assert asked(project) == []
    assert files(project.folder) == before


def test_earlier_runs_supply_the_estimates(project: Any) -> None:
    """Tokens and cost come from the newest run with the same prompts; an unknown target has those of the prompts."""
    project.suite(TWO)
    run = project.run("--openclaw-run-id=before", models="clerk/a")
    run.outcomes(passed=2)
    asked(project)

    words = ("--openclaw-dry-run", "--openclaw-repeat=2")
    session = project.run(*words, "--openclaw-budget-usd=0.001", models="clerk/a,clerk/b")
    enough = project.run(*words, "--openclaw-budget-usd=5", models="clerk/a,clerk/b")

    figures = table(session)
    # 4 cells, each 100 tokens in at 10 USD and 10 out at 50 USD for a million.
    assert figures["clerk/a"] == figures["clerk/b"] == ["4", "400", "40", "0.006 USD"]
    assert "medians of 1 earlier run" in session.text
    assert "0.001 USD is less than the estimate" in session.text
    assert "5.00 USD is enough, by the estimate" in enough.text
    assert asked(project) == []


@pytest.mark.parametrize(
    ("has_list", "model", "said"),
    [
        pytest.param(False, "gpt-5.3-codex", "the extra `cost` has the list prices of", id="no-extra"),
        pytest.param(True, "not-listed", "openclaw_prices = openai_responses/not-listed = INPUT OUTPUT", id="not-in-the-list"),
    ],
)  # fmt: skip
def test_an_unknown_cost_says_how_to_know_it(
    plain_project: Any, monkeypatch: pytest.MonkeyPatch, has_list: bool, model: str, said: str
) -> None:
    """Next to a `?` there is the command for the extra, or the ini line for a price."""
    from pytest_openclaw.providers import prices

    monkeypatch.setenv("OPENAI_API_KEY", "dummy-key-0123456789")
    if not has_list:
        monkeypatch.setattr(prices, "_price_list", lambda: None)
    plain_project.suite(TWO)

    session = plain_project.run("--openclaw-dry-run", models=f"openai_responses/{model}")

    assert session.status == 0
    assert said in " ".join(session.text.split())
    assert (install_command("cost") in session.text) is not has_list


def test_of_a_resumed_run_the_rest_is_counted(project: Any) -> None:
    """Kept cells are not asked again; the run itself stays unchanged."""
    project.suite({**TWO, "P3": ("break", NOOP)})
    project.run("--openclaw-run-id=before", models="clerk/a")
    asked(project)
    before = files(project.folder)

    session = project.run("--openclaw-resume=before", "--openclaw-dry-run", models=None)

    assert session.status == 0
    # The estimate for the failed cell is that of the others.
    assert table(session)["clerk/a"][:3] == ["1", "100", "10"]
    assert asked(project) == []
    assert files(project.folder) == before


def test_a_complete_run_has_nothing_left(plain_project: Any) -> None:
    """Then there is no table, but a sentence."""
    plain_project.suite(TWO)
    plain_project.run()

    session = plain_project.run("--openclaw-resume=last", "--openclaw-dry-run", models=None)

    assert "nothing: no cell is selected, or each has its answer" in session.text


def test_an_unreadable_suite_is_reported(plain_project: Any) -> None:
    """As without `--openclaw-dry-run`."""
    plain_project.suite("[[prompts]]\nid = 'P1'\n")

    session = plain_project.run("--openclaw-dry-run")

    assert session.status == 1
    assert "P1" in session.text
    assert "no request was sent" not in session.text


def test_an_unreadable_run_is_left_out(plain_project: Any) -> None:
    """It gives no estimates, which is reported."""
    plain_project.suite(TWO)
    plain_project.run("--openclaw-run-id=before")
    results = plain_project.folder / "runs/before/results.jsonl"
    results.write_text("no row\n" + results.read_text())

    session = plain_project.run("--openclaw-dry-run")

    assert session.status == 0
    assert "left out: " in session.text
    assert "nothing: no earlier run asked this" in session.text
