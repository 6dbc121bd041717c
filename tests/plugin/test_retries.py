"""Retries, waits and warm-ups: counted at the server, checked in the rows."""

import pytest

from tests.plugin.bad_servers import ModelServer, point_at
from tests.plugin.conftest import NOOP
from tests.providers.servers.apis import CHAT
from tests.providers.servers.misbehaving import Pause, Reset, Script

pytestmark = pytest.mark.newest


def answers(api):
    return Script.stream(api.text("Hi."), api.end())


def at_first(*scripts):
    return lambda api: [*scripts, answers(api)]


def row_of(session, model):
    (row,) = (row for row in session.rows if (row["provider"], row["model"]) == (CHAT.kind.name, model))
    return row


def test_a_retry_does_not_pollute_a_latency(project, monkeypatch):
    """Times describe the attempt that counted: it began after the earlier one had ended, and the wait too."""
    slow_s = 0.3
    behaviors = {
        "answered": at_first(Script.of(Pause(slow_s), _busy(200))),
        "failed": lambda api: [Script.of(Pause(slow_s), _busy(200)), Script.of(_busy(200))],
    }
    project.suite({"P1": ("Hi", NOOP)})

    with ModelServer(behaviors) as server:
        point_at(monkeypatch, server)
        session = project.run("--openclaw-retries=1", models=",".join(behaviors))

    for model in behaviors:
        row = row_of(session, model)
        first = next(asked.at_s for asked in server.asked if asked.model == model)
        assert row["attempts"] == 2
        assert row["started_at_ms"] >= (first + slow_s) * 1000 + 200 - 50
        assert abs(row["ended_at_ms"] - row["started_at_ms"] - row["e2e_ms"]) <= 1


def _busy(wait_ms):
    return b"HTTP/1.1 503 Busy\r\ncontent-length: 0\r\nretry-after-ms: %d\r\n\r\n" % wait_ms


@pytest.mark.parametrize(
    "warm_up",
    [
        pytest.param(Script.of(Reset()), id="reset"),
        pytest.param(Script.answer({"error": "model 'm' not found"}, status=404), id="404"),
    ],
)
def test_a_warm_up_that_fails(project, monkeypatch, warm_up):
    """It has no row and is not repeated; the cells are asked regardless, the first of them cold."""
    project.suite({f"P{n}": ("Hi", NOOP) for n in range(3)})

    with ModelServer({"m": answers}) as server:
        server.warm_up = warm_up
        point_at(monkeypatch, server)
        session = project.run(models="m")

    session.outcomes(passed=3)
    assert server.warm_ups == ["ollama_openai/m"]
    assert [row["attempts"] for row in session.rows] == [1, 1, 1]
    rows = sorted(session.rows, key=lambda row: row["started_at_ms"])
    assert [row["cold_start"] for row in rows] == [True, False, False]
    warm_up = session.load("inventory.json")["targets"]["ollama_openai/m"]["warm_up"]
    assert warm_up["ok"] is False
    assert warm_up["message"].startswith("ollama_openai: ")
    assert session.status == 0
