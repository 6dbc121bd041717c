"""The cost of a run: in its rows, in its summary, and in a line at the end."""

from typing import Any

import pytest

from tests.plugin.conftest import NOOP
from tests.providers.servers.apis import CHAT
from tests.providers.servers.misbehaving import MisbehavingServer, Script

pytestmark = pytest.mark.newest

USAGE = {"prompt_tokens": 1000, "completion_tokens": 100, "prompt_tokens_details": {"cached_tokens": 400}}


@pytest.mark.parametrize(
    ("price", "usd"),
    [
        pytest.param("lab/* = 2 8 0.5", (600 * 2 + 400 * 0.5 + 100 * 8) / 1e6, id="own-price"),
        pytest.param("other/* = 2 8 0.5", 0.0, id="nothing-here"),
    ],
)
def test_rows_and_summary_have_the_cost(project: Any, price: str, usd: float) -> None:
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


def test_a_plugin_s_cost_is_not_known(project: Any) -> None:
    """The price of a custom provider is unknown until the ini gives it."""
    project.suite({"P1": ("say one two", NOOP)})

    session = project.run()

    assert session.row("P1")["cost_usd"] is None
    assert session.summary["groups"][0]["cost_usd"] is None
    assert "USD" not in session.text
    assert "cost unknown" not in session.text
