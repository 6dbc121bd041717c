"""`--openclaw-budget-usd`: no more requests are sent once the budget is spent; paid replies are kept."""

from __future__ import annotations

from collections import Counter
from typing import Any

import pytest

from pytest_openclaw.util.installation import install_command

pytestmark = pytest.mark.newest

NOOP = {"type": "noop"}

# Every call is recorded and costs a dollar, at the ini's price.
TILL = """
import pathlib
from pytest_openclaw import Provider, Reply

FOLDER = pathlib.Path(__file__).parent


class Till(Provider):
    name = "till"

    async def ask(self, request):
        with open(FOLDER / "asked.txt", "a") as file:
            file.write(request.prompt + "\\n")
        return Reply(text="hi", input_tokens=1, output_tokens=0)


class Unpriced(Till):
    name = "unpriced"


def pytest_openclaw_providers():
    return [Till, Unpriced]
"""


@pytest.fixture(name="project")
def _project(project: Any) -> Any:
    """A project of 12 prompts."""
    project.extend_conftest(TILL)
    project.pytester.makeini("[pytest]\nopenclaw_prices = till/* = 1000000 0\n")
    project.suite({f"P{number}": (f"say {number}", NOOP) for number in range(12)})
    return project


def n_asked(project: Any) -> int:
    """Return the number of calls since the last time."""
    path = project.folder / "asked.txt"
    lines = path.read_text().splitlines() if path.exists() else []
    path.unlink(missing_ok=True)
    return len(lines)


def kinds(session: Any) -> Counter[str]:
    """Return how many cells ended in which way."""
    return Counter(row["failure_type"] or "answered" for row in session.rows)


@pytest.mark.under_workers
def test_the_asking_stops_when_the_budget_is_spent(project: Any) -> None:
    """With one request at a time nothing is asked beyond the budget; the rest is skipped, with rows."""
    words = ("--openclaw-budget-usd=3", "--openclaw-concurrency=1", "--openclaw-fail-unavailable")
    session = project.run(*words, models="till/m")

    session.outcomes(passed=3, skipped=9)
    assert session.status == 0, "the option is about servers"
    assert n_asked(project) == 3
    assert kinds(session) == {"answered": 3, "budget_spent": 9}
    left = [row for row in session.rows if row["failure_type"]]
    assert {(row["availability_status"], row["attempts"], row["cost_usd"]) for row in left} == {
        ("skipped_unavailable", 0, None)
    }
    assert left[0]["fault_message"] == "till: not asked: the budget of 3 USD is spent."
    assert session.summary["budget"] == {"budget_usd": 3.0, "spent_usd": 3.0, "n_not_asked": 9}
    assert "budget            3.00 USD of 3.00 USD spent by this session; 9 cells not asked" in session.text
    assert session.load("config.json")["budget_usd"] == 3.0


def test_no_more_is_spent_than_was_in_flight(project: Any) -> None:
    """Requests in progress when the budget is reached are paid for too, and kept."""
    session = project.run("--openclaw-budget-usd=3", "--openclaw-concurrency=4", models="till/m")

    n = n_asked(project)
    assert 3 <= n <= 6
    assert kinds(session) == {"answered": n, "budget_spent": 12 - n}
    assert session.summary["budget"]["spent_usd"] == n


def test_a_resumed_run_spends_anew(project: Any) -> None:
    """It asks the remaining cells, counts only its own spending, and says so."""
    first = project.run("--openclaw-budget-usd=5", "--openclaw-concurrency=1", models="till/m")
    assert n_asked(project) == 5

    again = project.run(
        "--openclaw-resume=last", "--openclaw-budget-usd=4", "--openclaw-concurrency=1", models=None
    )

    assert n_asked(project) == 4
    assert kinds(again) == {"answered": 9, "budget_spent": 3}
    assert again.summary["budget"] == {"budget_usd": 4.0, "spent_usd": 4.0, "n_not_asked": 3}
    assert "4.00 USD of 4.00 USD spent by this session; 3 cells" in again.text
    assert first.run_dir == again.run_dir

    last = project.run("--openclaw-resume=last", models=None)
    last.outcomes(passed=12)
    assert last.summary["budget"] is None


@pytest.mark.parametrize("args", [[], ["--openclaw-dry-run"]], ids=["run", "dry-run"])
def test_a_target_without_a_price_is_refused(project: Any, args: list[str]) -> None:
    """Before the first request, with a hint."""
    session = project.run("--openclaw-budget-usd=3", *args, models="till/m,unpriced/m")

    assert session.status == 4
    text = " ".join(session.text.split())
    assert "--openclaw-budget-usd=3: the price of unpriced/m is not known" in text
    assert "openclaw_prices = unpriced/m = INPUT OUTPUT" in text
    assert n_asked(project) == 0
    assert not session.has_run


def test_without_the_list_the_hint_installs_it(project: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    """A cloud model's price is in the list of the extra."""
    from pytest_openclaw.providers import prices

    monkeypatch.setenv("OPENAI_API_KEY", "dummy-key-0123456789")
    monkeypatch.setattr(prices, "_price_list", lambda: None)
    session = project.run("--openclaw-budget-usd=3", models="openai_responses/gpt-5.3-codex")

    assert session.status == 4
    assert f"Install the list of prices ({install_command('cost')})" in " ".join(session.text.split())
