"""The lines about money at a session's end."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest

from pytest_openclaw.providers import prices
from pytest_openclaw.providers.openai_responses import OpenAIResponses
from pytest_openclaw.reports.spending import notes_on_cost
from pytest_openclaw.stats.summary import Budget
from pytest_openclaw.util.installation import install_command
from pytest_openclaw.values.protocols import ProviderSetup
from pytest_openclaw.values.requests import Target
from pytest_openclaw.values.settings import Settings
from tests.unit.reports.summaries import record, summary_of

TARGET = Target(provider="openai_responses", model="gpt-5.3-codex")


def notes(summary: Any, *, resumed: bool = False, url: str = "https://api.openai.com/v1") -> list[Any]:
    """The lines for a run that used OpenAI."""
    provider = OpenAIResponses(ProviderSetup(name="openai_responses", base_url=url))
    own = prices.Prices({"openai_responses": provider}, Settings(targets=(TARGET,)))
    return [*notes_on_cost(own, summary, is_resumed=resumed)]


@pytest.mark.parametrize(
    ("has_list", "url", "cost_usd", "said"),
    [
        pytest.param(False, "https://api.openai.com/v1", None, True, id="no-list"),
        pytest.param(True, "https://api.openai.com/v1", None, False, id="the-list-does-not-know-either"),
        pytest.param(False, "https://api.openai.com/v1", 0.5, False, id="it-is-known"),
        pytest.param(False, "http://127.0.0.1:9/v1", None, False, id="here"),
    ],
)
def test_a_cloud_cost_without_the_extra(
    monkeypatch: pytest.MonkeyPatch, has_list: bool, url: str, cost_usd: float | None, said: bool
) -> None:
    """One line says how to get the list of prices, if that is what is lacking."""
    monkeypatch.setattr(prices, "_price_list", lambda: object() if has_list else None)
    summary = summary_of([record(TARGET, cost_usd=cost_usd)], n_selected={TARGET: 1})

    expected = [
        ("cost unknown", "the extra `cost` has the list prices of openai_responses/gpt-5.3-codex"),
        ("next", install_command("cost")),
    ]
    assert notes(summary, url=url) == (expected if said else [])


@pytest.mark.parametrize(
    ("n_not_asked", "resumed", "text"),
    [
        pytest.param(0, False, "4.50 USD of 5.00 USD spent", id="enough"),
        pytest.param(1, False, "4.50 USD of 5.00 USD spent; 1 cell not asked", id="one-left"),
        pytest.param(7, True, "4.50 USD of 5.00 USD spent by this session; 7 cells not asked", id="resumed"),
    ],
)  # fmt: skip
def test_a_budget_is_reported(n_not_asked: int, resumed: bool, text: str) -> None:
    """The line has the amount spent, and the number of cells not asked."""
    summary = summary_of([record(TARGET, cost_usd=4.5)], n_selected={TARGET: 1})
    budget = Budget(budget_usd=5.0, spent_usd=4.5, n_not_asked=n_not_asked)

    assert notes(replace(summary, budget=budget), resumed=resumed) == [("budget", text)]


def test_cost_and_budget_agree_on_one_screen() -> None:
    """What else the budget has paid for is named, so that nobody compares it with the cost of the cells."""
    summary = summary_of([record(TARGET, cost_usd=4.5)], n_selected={TARGET: 1})
    budget = Budget(budget_usd=5.0, spent_usd=4.75, n_not_asked=0)

    ((_, text),) = notes(replace(summary, budget=budget))

    assert text == (
        "4.75 USD of 5.00 USD spent, with warm-ups and the most that requests without counts can have cost"
    )
