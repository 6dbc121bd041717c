"""Starts the mock server as a separate process and reads its log."""

from __future__ import annotations

import http.client
import json
import subprocess
import sys
from dataclasses import dataclass
from functools import cached_property
from itertools import count
from pathlib import Path
from types import TracebackType

ROOT = Path(__file__).parents[2]


@dataclass(frozen=True)
class Served:
    """The server's log of one request for an item; the times are `perf_counter`'s."""

    item: str
    received: float
    first: float
    last: float

    @property
    def ttft_ms(self) -> float:
        """From the whole request to its first token sent."""
        return (self.first - self.received) * 1000

    @property
    def e2e_ms(self) -> float:
        """From the whole request to the last byte sent."""
        return (self.last - self.received) * 1000


@dataclass(frozen=True)
class ServerLog:
    """The requests under one base URL.

    Attributes:
        answered: requests for items that were answered to their end.
        n_other: answered requests without an item, such as a warm-up.
        n_given_up: requests whose client went away.
        max_in_flight: the most requests of all kinds at one time.
    """

    answered: tuple[Served, ...]
    n_other: int
    n_given_up: int
    max_in_flight: int

    @cached_property
    def by_item(self) -> dict[str, Served]:
        """The requests by item; of several for one item, the last."""
        return {served.item: served for served in self.answered}

    @property
    def window_s(self) -> float:
        """From the first request to the last byte."""
        return max(s.last for s in self.answered) - min(s.received for s in self.answered)

    def require(self, n: int) -> None:
        """Refuse a run unless exactly `n` different items were asked once each.

        Raises:
            RunFailed: they were not.
        """
        if (len(self.answered), len(self.by_item), self.n_given_up) != (n, n, 0):
            raise RunFailed(
                f"{n} items: the server answered {len(self.answered)} requests for {len(self.by_item)} of them, "
                f"{self.n_given_up} were given up"
            )


class RunFailed(Exception):
    """A run that does not count, with the reason."""


class MockServer:
    """The server as a process; use it with `with`."""

    def __init__(self) -> None:
        self._names = count(1)

    def __enter__(self) -> MockServer:
        self.process = subprocess.Popen(
            [sys.executable, "-m", "tests.performance.server"],
            cwd=ROOT, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True,
        )  # fmt: skip
        assert self.process.stdout is not None
        line = self.process.stdout.readline()
        if not line:
            raise RunFailed(f"the server ended at once with status {self.process.wait()}")
        self.root = f"http://127.0.0.1:{int(line)}"
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        assert self.process.stdin is not None
        assert self.process.stdout is not None
        self.process.stdin.close()
        self.process.wait(120)
        self.process.stdout.close()

    def base(self, behavior: str = "") -> str:
        """Return a new base URL, ending in `/v1`; see `server.py` for the behavior."""
        words = ",".join(filter(None, (f"run={next(self._names)}", behavior)))
        return f"{self.root}/{words}/v1"

    def log(self, base: str) -> ServerLog:
        """Return the requests under a base URL."""
        path = base.removeprefix(self.root).removesuffix("/v1")
        connection = http.client.HTTPConnection(self.root.removeprefix("http://"), timeout=120)
        connection.request("GET", f"/log?{path}")
        log = json.load(connection.getresponse())
        connection.close()
        ended = [request for request in log["requests"] if request[3] is not None]
        return ServerLog(
            answered=tuple(Served(*request) for request in ended if request[0] is not None),
            n_other=sum(request[0] is None for request in ended),
            n_given_up=len(log["requests"]) - len(ended),
            max_in_flight=log["max_in_flight"],
        )
