"""What a run costs, and `--openclaw-budget-usd`: what is paid is kept, and nothing is sent beyond it."""

from collections import Counter

import pytest

from tests.plugin.conftest import NOOP
from tests.providers.servers.apis import CHAT
from tests.providers.servers.misbehaving import MisbehavingServer, Script

pytestmark = pytest.mark.newest


@pytest.fixture(name="project")
def _project(project):
    project.ini("openclaw_prices = scripted/m = 1000000 0")
    project.suite({f"P{number}": ("pay 1", NOOP) for number in range(12)})
    return project


def kinds(session):
    return Counter(row["failure_type"] or "answered" for row in session.rows)


@pytest.mark.under_workers
def test_the_asking_stops_when_the_budget_is_spent(project):
    """With one request at a time nothing is asked beyond the budget; the rest is skipped, with rows."""
    words = ("--openclaw-budget-usd=3", "--openclaw-concurrency=1", "--openclaw-fail-unavailable")
    session = project.run(*words)

    session.outcomes(passed=3, skipped=9)
    assert session.status == 0, "the option is about servers"
    assert len(session.asked) == 3
    assert kinds(session) == {"answered": 3, "budget_spent": 9}
    left = [row for row in session.rows if row["failure_type"]]
    assert {(row["availability_status"], row["attempts"], row["cost_usd"]) for row in left} == {
        ("skipped_unavailable", 0, None)
    }
    assert left[0]["fault_message"] == "scripted: not asked: the budget of 3 USD is spent."
    assert session.summary["budget"] == {"budget_usd": 3.0, "spent_usd": 3.0, "n_not_asked": 9}
    assert "budget            3.00 USD of 3.00 USD spent by this session; 9 cells not asked" in session.text
    assert session.load("config.json")["budget_usd"] == 3.0


def test_a_resumed_run_spends_anew(project):
    """It asks the remaining cells and counts only its own spending."""
    one = "--openclaw-concurrency=1"
    first = project.run("--openclaw-budget-usd=5", one)
    again = project.run("--openclaw-resume=last", "--openclaw-budget-usd=4", one, models=None)

    assert (len(first.asked), len(again.asked)) == (5, 4)
    assert kinds(again) == {"answered": 9, "budget_spent": 3}
    assert again.summary["budget"] == {"budget_usd": 4.0, "spent_usd": 4.0, "n_not_asked": 3}
    assert "4.00 USD of 4.00 USD spent by this session; 3 cells" in again.text
    assert first.run_dir == again.run_dir

    last = project.run("--openclaw-resume=last", models=None)
    last.outcomes(passed=12)
    assert last.summary["budget"] is None


@pytest.mark.parametrize("args", [[], ["--openclaw-dry-run"]], ids=["run", "dry-run"])
def test_a_target_without_a_price_is_refused(project, args):
    """Before the first request, with a hint."""
    session = project.run("--openclaw-budget-usd=3", *args, models="scripted/m,scripted/free")

    session.is_refused("--openclaw-budget-usd=3: the price of scripted/free is not known")
    assert "openclaw_prices = scripted/free = INPUT OUTPUT" in session.words


USAGE = {"prompt_tokens": 1000, "completion_tokens": 100, "prompt_tokens_details": {"cached_tokens": 400}}


@pytest.mark.parametrize(
    ("price", "usd"),
    [
        pytest.param("lab/* = 2 8 0.5", (600 * 2 + 400 * 0.5 + 100 * 8) / 1e6, id="own-price"),
        pytest.param("other/* = 2 8 0.5", 0.0, id="nothing-here"),
    ],
)
def test_rows_and_summary_have_the_cost(project, price, usd):
    """A cell costs what its tokens cost, and a group the sum; a cost of zero is not printed."""
    project.suite({"P1": ("a", NOOP), "P2": ("b", NOOP)})
    with MisbehavingServer() as server:
        server.on("/v1/chat/completions", Script.answer({**CHAT.whole("Hi."), "usage": USAGE}))
        project.ini(f"openclaw_endpoints = lab = ollama_openai {server.url}", f"openclaw_prices = {price}")
        session = project.run(models="lab/m")

    session.outcomes(passed=2)
    assert [row["cost_usd"] for row in session.rows] == [pytest.approx(usd)] * 2
    assert session.summary["groups"][0]["cost_usd"] == pytest.approx(2 * usd)
    assert ("0.0044 USD, lab/m" in session.text) is (usd > 0)
