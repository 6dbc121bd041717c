"""The lines about unknown costs at a session's end."""

from __future__ import annotations

from typing import Any

import pytest

from pytest_openclaw.providers import prices
from pytest_openclaw.providers.openai_responses import OpenAIResponses
from pytest_openclaw.reports.terminal import notes_on_cost
from pytest_openclaw.util.installation import install_command
from pytest_openclaw.values.protocols import ProviderSetup
from pytest_openclaw.values.requests import Target
from pytest_openclaw.values.settings import Settings
from tests.unit.reports.summaries import record, summary_of

TARGET = Target(provider="openai_responses", model="gpt-5.3-codex")


def notes(summary: Any, url: str) -> list[Any]:
    """The lines for a run that used OpenAI."""
    provider = OpenAIResponses(ProviderSetup(name="openai_responses", base_url=url))
    own = prices.Prices({"openai_responses": provider}, Settings(targets=(TARGET,)))
    return [(one.label, one.text) for one in notes_on_cost(own, summary)]


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
    assert notes(summary, url) == (expected if said else [])
