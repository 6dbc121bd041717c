"""Leases: the engine lives as long as one is held, and each side notices the other's end."""

from __future__ import annotations

import asyncio
import contextlib
import select
import socket
import threading
import time

import pytest

from pytest_openclaw.providers.llama_cpp.leases import (
    LOOPBACK,
    MOST_STRANGERS,
    LeaseServer,
    give_back,
    is_held,
    take_lease,
)
from tests.e2e.processes import wait_until

TOKEN = "dummy-token"
BOUND_S = 120.0


@contextlib.contextmanager
def open_lease_server(first_within_s=BOUND_S, clock=time.monotonic, token_within_s=BOUND_S):
    """Run a lease server in a thread; at the end the remaining leases end, then the server."""
    server = LeaseServer(TOKEN, token_within_s=token_within_s)
    served = threading.Event()

    def serve():
        server.serve_until_unused(first_within_s, clock)
        server.close()
        served.set()

    thread = threading.Thread(target=serve)
    thread.start()
    try:
        yield server.port, served
    finally:
        thread.join(BOUND_S)
        assert not thread.is_alive()


def test_it_ends_with_the_last_lease():
    """Of two leases the first may be returned; the server ends with the second."""

    async def use(port, served):
        first = await take_lease(port, TOKEN)
        second = await take_lease(port, TOKEN)
        await give_back(first)
        still_there = is_held(second) and not served.is_set()
        await give_back(second)
        return still_there

    with open_lease_server() as (port, served):
        assert asyncio.run(use(port, served))
        assert served.wait(BOUND_S)


def test_it_ends_when_a_holder_just_disappears():
    """A holder that died closes its socket without a message, which is all that the server needs."""
    with open_lease_server() as (port, served):
        asyncio.run(take_lease(port, TOKEN)).close()

        assert served.wait(BOUND_S)


def test_it_ends_without_a_first_lease():
    """The wait for the first lease is limited."""
    with open_lease_server(first_within_s=0.05) as (_, served):
        assert served.wait(BOUND_S)


def test_a_lease_that_is_granted_in_time_ends_the_wait_for_the_first():
    """The limit is for the first lease; a held one lives longer than that."""
    now = [0.0]

    async def use(port):
        lease = await take_lease(port, TOKEN)
        now[0] = 3600.0
        other = await take_lease(port, TOKEN)  # so that the server has read its clock
        held = is_held(lease)
        await give_back(other)
        await give_back(lease)
        return held

    with open_lease_server(first_within_s=0.5, clock=lambda: now[0]) as (port, _):
        assert asyncio.run(use(port))


def test_a_stranger_gets_no_lease_and_ends_nothing():
    """A client without the token is rejected; neither that nor a silent client ends the server."""

    async def use(port, served):
        refused = await take_lease(port, "wrong")
        lease = await take_lease(port, TOKEN)
        held = is_held(lease) and not served.is_set()
        await give_back(lease)
        return refused, held

    with open_lease_server() as (port, served), socket.create_connection((LOOPBACK, port)):
        assert asyncio.run(use(port, served)) == (None, True)


def n_open(connections):
    """How many of these connections the other side has not closed."""
    ended = select.select(connections, [], [], 0)[0]
    return len(connections) - len(ended)


def test_200_silent_connections_change_nothing():
    """A lease is granted at once beside them; few of them stay open, and none after its time."""
    now = [0.0]

    async def use(port, silent):
        lease = await take_lease(port, TOKEN)
        for _ in range(200):
            silent.append(socket.create_connection((LOOPBACK, port)))
        other = await take_lease(port, TOKEN)
        n_left = n_open(silent)
        now[0] = 3600.0
        await give_back(other)  # so that the server has read its clock
        all_closed = wait_until(lambda: not n_open(silent), BOUND_S)
        held = is_held(lease)
        await give_back(lease)
        return n_left, all_closed, held

    silent: list[socket.socket] = []
    try:
        with open_lease_server(clock=lambda: now[0]) as (port, _):
            n_left, all_closed, held = asyncio.run(use(port, silent))
    finally:
        for connection in silent:
            connection.close()

    assert 0 < n_left <= MOST_STRANGERS
    assert (all_closed, held) == (True, True)


def test_a_silent_connection_is_closed_in_time():
    """This needs no other event, whether a lease is held or not."""

    async def use(port):
        with socket.create_connection((LOOPBACK, port)) as before:
            ended_before = wait_until(lambda: not n_open([before]))
            lease = await take_lease(port, TOKEN)
            with socket.create_connection((LOOPBACK, port)) as beside:
                ended_beside = wait_until(lambda: not n_open([beside]))
            held = is_held(lease)
            await give_back(lease)
            return ended_before, ended_beside, held

    with open_lease_server(token_within_s=0.05) as (port, _):
        assert asyncio.run(use(port)) == (True, True, True)


def test_no_listener_gives_no_lease():
    """A port without a listener gives None, not an exception."""
    with socket.create_server((LOOPBACK, 0)) as listener:
        port = listener.getsockname()[1]

    assert asyncio.run(take_lease(port, TOKEN)) is None


def test_a_listener_that_says_nothing_is_a_timeout():
    """An engine that hangs is distinguished from one that is gone."""
    with socket.create_server((LOOPBACK, 0)) as listener, pytest.raises(TimeoutError):
        asyncio.run(take_lease(listener.getsockname()[1], TOKEN, within_s=0.05))


def test_holder_sees_the_end_of_the_engine():
    """When the engine's side closes, the lease is no longer held."""

    async def lose():
        ours, theirs = socket.socketpair()
        with ours, theirs:
            ours.setblocking(False)
            before = is_held(ours)
            theirs.close()
            return before, is_held(ours)

    assert asyncio.run(lose()) == (True, False)


def test_giving_back_waits_for_an_engine_no_longer_than_its_bound():
    """An engine that hangs cannot delay the end of a run."""

    async def return_to_silence():
        ours, theirs = socket.socketpair()
        with theirs:
            ours.setblocking(False)
            await give_back(ours, within_s=0.05)
            return ours.fileno()

    assert asyncio.run(return_to_silence()) == -1
