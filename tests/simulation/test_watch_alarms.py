"""A watched server that stays equal is called worse as seldom as stated, and one that got worse is found."""

from __future__ import annotations

from math import sqrt

import numpy as np
import pytest

from pytest_openclaw.stats.watching import limit_of
from tests.simulation.watching import HOUR_S, SEED, Server, delay, n_alarms

pytestmark = [pytest.mark.newest, pytest.mark.simulation, pytest.mark.xdist_group("simulation")]

PER_MONTH = 20.0
N_RUNS, MONTH_RUNS = 48, 720


@pytest.mark.parametrize(
    ("server", "slower", "n_servers"),
    [
        pytest.param(Server(n_prompts=12), None, 40, id="passed"),
        *(
            pytest.param(server, slower, 100, id=name, marks=pytest.mark.nightly)
            for name, server, slower in (
                ("passed-often", Server(n_prompts=12), None),
                ("repeats", Server(n_prompts=12, rate=0.7, repeats=3), None),
                ("few-prompts", Server(n_prompts=4, rate=0.5), None),
                ("times", Server(n_prompts=6, timed=True), 1.0),
            )
        ),
    ],
)
def test_an_equal_server_is_called_worse_as_seldom_as_stated(
    server: Server, slower: float | None, n_servers: int
) -> None:
    """Over many servers, each with a baseline of its own, that all later runs are compared with."""
    source = np.random.default_rng(SEED)
    limit = limit_of(PER_MONTH, HOUR_S, 1 if slower is None else 2)

    found = sum(
        n_alarms(source, server, limit, n_base=20, n_runs=N_RUNS, slower=slower) for _ in range(n_servers)
    )

    stated = PER_MONTH / MONTH_RUNS
    # Runs of one server share its baseline, so their number counts as that of servers.
    assert found / (n_servers * N_RUNS) <= stated + 3.1 * sqrt(stated * (1 - stated) / n_servers)


@pytest.mark.parametrize(
    ("loss", "most_runs", "n_times"),
    [
        pytest.param(0.4, 4, 20, id="great"),
        pytest.param(0.2, 8, 60, id="middle", marks=pytest.mark.nightly),
        pytest.param(0.1, 34, 40, id="small", marks=pytest.mark.nightly),
    ],
)
def test_a_loss_is_found_as_soon_as_the_page_says(loss: float, most_runs: int, n_times: int) -> None:
    """In half of the cases, hourly, with 12 prompts and a baseline of 20 runs: twice the table's median."""
    source = np.random.default_rng(SEED)
    limit = limit_of(0.1, HOUR_S, 1)
    server = Server(n_prompts=12, loss=loss)

    found = [delay(source, server, limit, n_base=20, most=most_runs) for _ in range(n_times)]

    assert sum(one is not None for one in found) >= n_times / 2
