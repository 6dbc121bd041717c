"""Retries, waits and warm-ups: counted at the server, checked in the rows."""

import time
from email.utils import formatdate
from typing import Any

import pytest

from tests.plugin.bad_servers import Behavior, ModelServer, point_at
from tests.plugin.conftest import NOOP
from tests.providers.servers.apis import CHAT, Api
from tests.providers.servers.misbehaving import Pause, Reset, Script

pytestmark = pytest.mark.newest


def answers(api: Api) -> Script:
    """A plain answer."""
    return Script.stream(api.text("Hi."), api.end())


def at_first(*scripts: Script) -> Behavior:
    """Return these scripts, one per attempt, and then an answer."""
    return lambda api: [*scripts, answers(api)]


def row_of(session: Any, model: str) -> dict[str, Any]:
    """The only row of a model."""
    (row,) = (row for row in session.rows if (row["provider"], row["model"]) == (CHAT.kind.name, model))
    return row


def test_the_server_says_how_long_to_wait(project: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    """`Retry-After` in each of its forms is obeyed, and the wait is in the row's own field."""
    dates = []

    def at_a_date(api: Api) -> list[Script]:
        dates.append(int(time.time()) + 2)
        return [Script.answer(status=503, retry_after=formatdate(dates[-1], usegmt=True)), answers(api)]

    behaviors = {
        "seconds": (at_first(Script.answer(status=429, retry_after="1")), 1000),
        "milliseconds": (at_first(Script.answer(status=503, retry_after_ms="300")), 300),
        # Its length depends on how soon it is read.
        "date": (at_a_date, 0),
    }
    project.suite({"P1": ("Hi", NOOP)})

    with ModelServer({model: behave for model, (behave, _) in behaviors.items()}) as server:
        point_at(monkeypatch, server)
        session = project.run("--openclaw-concurrency=8", models=",".join(behaviors))

    session.outcomes(passed=3)
    for model, (_, least_ms) in behaviors.items():
        row = row_of(session, model)
        first, second = (asked.at_s for asked in server.asked if asked.model == model)
        assert row["attempts"] == 2
        assert row["retry_wait_ms"] >= least_ms
        # The server's clock is the wall clock, and both ends were rounded.
        assert (second - first) * 1000 >= row["retry_wait_ms"] - 50
    (date,) = dates
    assert [asked.at_s for asked in server.asked if asked.model == "date"][1] >= date - 0.05


def test_a_retry_does_not_pollute_a_latency(project: Any, monkeypatch: pytest.MonkeyPatch) -> None:
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


def _busy(wait_ms: int) -> bytes:
    return b"HTTP/1.1 503 Busy\r\ncontent-length: 0\r\nretry-after-ms: %d\r\n\r\n" % wait_ms


@pytest.mark.parametrize(
    "warm_up",
    [
        pytest.param(Script.of(Reset()), id="reset"),
        pytest.param(Script.answer({"error": "model 'm' not found"}, status=404), id="404"),
    ],
)
def test_a_warm_up_that_fails(project: Any, monkeypatch: pytest.MonkeyPatch, warm_up: Script) -> None:
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
