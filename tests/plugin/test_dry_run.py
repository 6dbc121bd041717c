"""`--openclaw-dry-run`: the planned requests and their cost; no request is sent, nothing is written."""

import re

import pytest

from pytest_openclaw.util.files import install_command
from tests.plugin.conftest import NOOP

# A reply to one of them costs 100 tokens at 10 USD for a million, and 10 at 50 USD.
TWO = {"P1": ("pay 100", NOOP), "P2": ("pay 100 again", NOOP)}
PRICES = "openclaw_prices = scripted/* = 10 50"


def files(folder):
    """Return every file of the project and its runs, with its time; without caches and pytester's own."""
    others = {".pytest_cache", "__pycache__", "stdout", "stderr", "runpytest-0", "runpytest-1", "asked.txt"}
    kept = (path for path in folder.rglob("*") if not others & {*path.relative_to(folder).parts})
    return {str(path): path.stat().st_mtime_ns for path in kept if path.is_file()}


def table(session):
    lines = session.text.partition("no request was sent")[2].partition("based on")[0].splitlines()
    rows = [re.split(r"\s{2,}", line.strip()) for line in lines[2:] if line.strip()]
    return {target: figures for target, *figures in rows}


@pytest.mark.under_workers
def test_no_request_is_sent_and_nothing_is_written(project):
    """Without an earlier run only cells and calls are known; a glob is one line; workers are not started."""
    project.ini(PRICES)
    project.suite(TWO)
    project.write("test_own.py", "def test_own(): assert False\n")
    before = files(project.folder)

    session = project.run(
        "test_own.py", "--openclaw-dry-run", "--openclaw-repeat=3", models="scripted/a,scripted/*"
    )

    assert session.status == 0
    assert table(session) == {
        "scripted/a": ["6", "?", "?", "?", "?"],
        "scripted/*": ["6", "?", "?", "?", "?"],
        "all": ["12", "?", "?", "?", "?"],
    }
    assert "scripted/* means every model served there" in session.text
    assert "nothing: no earlier run asked this" in session.text
    assert "created:" not in session.text
    assert "workers [" not in session.text
    assert session.asked == []
    assert files(project.folder) == before


def test_earlier_runs_supply_the_estimates(project):
    """Tokens and cost come from a run with the same prompts, for an unknown target too; times do not."""
    project.ini(PRICES)
    project.suite(TWO)
    run = project.run("--openclaw-run-id=before", models="scripted/a")
    run.outcomes(passed=2)

    words, models = ("--openclaw-dry-run", "--openclaw-repeat=2"), "scripted/a,scripted/b"
    session = project.run(*words, "--openclaw-budget-usd=0.001", models=models)
    enough = project.run(*words, "--openclaw-budget-usd=5", models=models)
    done = project.run("--openclaw-resume=before", "--openclaw-dry-run", models=None)

    figures = table(session)
    assert figures["scripted/a"] == ["4", "400", "40", "0 s", "0.006 USD"]
    assert figures["scripted/b"] == ["4", "400", "40", "?", "0.006 USD"]
    assert "medians of 1 earlier run; for scripted/b, tokens of other targets" in session.words
    assert "0.001 USD is less than the estimate" in session.text
    assert "5.00 USD is enough, by the estimate" in enough.text
    assert "nothing: no cell is selected, or each has its answer" in done.text
    assert (session.asked, enough.asked, done.asked) == ([], [], [])

    run.run_dir.joinpath("results.jsonl").write_bytes(b"no row\n" + b"".join(run.lines))
    unreadable = project.run("--openclaw-dry-run", models="scripted/a")
    assert unreadable.status == 0
    assert "left out: " in unreadable.text
    assert "nothing: no earlier run asked this" in unreadable.text


@pytest.mark.parametrize(
    ("has_list", "model", "message"),
    [
        pytest.param(False, "gpt-5.3-codex", "the extra `cost` has the list prices of", id="no-extra"),
        pytest.param(True, "not-listed", "openclaw_prices = openai_responses/not-listed = INPUT OUTPUT", id="not-in-the-list"),
    ],
)  # fmt: skip
def test_an_unknown_cost_says_how_to_know_it(plain_project, monkeypatch, has_list, model, message):
    """Next to a `?` there is the command for the extra, or the ini line for a price."""
    from pytest_openclaw.providers import prices

    monkeypatch.setenv("OPENAI_API_KEY", "dummy-key-0123456789")
    if not has_list:
        monkeypatch.setattr(prices, "_price_list", lambda: None)
    plain_project.suite(TWO)

    session = plain_project.run("--openclaw-dry-run", models=f"openai_responses/{model}")

    assert session.status == 0
    assert message in session.words
    assert (install_command("cost") in session.text) is not has_list


def test_the_rest_of_a_resumed_run_is_counted(project):
    """Kept cells are not asked again; the run itself stays unchanged."""
    project.suite({**TWO, "P3": ("timeout", NOOP)})
    project.run("--openclaw-run-id=before", models="scripted/a")
    before = files(project.folder)

    session = project.run("--openclaw-resume=before", "--openclaw-dry-run", models=None)

    assert session.status == 0
    # The estimate for the failed cell is the median of the others.
    assert table(session)["scripted/a"][:3] == ["1", "100", "10"]
    assert session.asked == []
    assert files(project.folder) == before
