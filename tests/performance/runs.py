"""What every program that is measured looks like: it asks N items, and what came of it can be read."""

from __future__ import annotations

import json
import sys
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Protocol

from tests.performance import processes
from tests.performance.processes import Cost
from tests.performance.serving import ROOT, MockServer, RunFailed, ServerLog


@dataclass(frozen=True)
class Times:
    """What a program itself says of one item; null where it says nothing."""

    ttft_ms: float | None
    e2e_ms: float | None


@dataclass(frozen=True)
class Run:
    """A run that counts: exit status 0, each item asked once and answered, a row for each."""

    cost: Cost
    log: ServerLog
    times: Mapping[str, Times]


class Runner(Protocol):
    """A program that can be measured."""

    @property
    def name(self) -> str:
        """Its row in the table."""
        ...

    def run(self, n: int, concurrency: int, behavior: str = "") -> Run:
        """Ask `n` items with `concurrency` in flight.

        Raises:
            RunFailed: the run does not count.
        """
        ...


@dataclass(frozen=True)
class LoopRunner:
    """One of the bare loops of `clients.py`."""

    client: str
    folder: Path
    server: MockServer

    @property
    def name(self) -> str:
        """Its row in the table."""
        return f"{self.client} loop"

    def run(self, n: int, concurrency: int, behavior: str = "") -> Run:
        """Run the loop; see `Runner.run`."""
        base, out = self.server.base(behavior), self.folder / f"{self.client}.jsonl"
        words = [self.client, base, str(n), str(concurrency), str(out)]
        command = [sys.executable, "-m", "tests.performance.clients", *words]
        cost = processes.run(command, ROOT, processes.environment(self.folder))
        log = self.server.log(base)
        log.require(n)
        rows = [json.loads(line) for line in out.read_text("utf-8").splitlines()]
        times = {row["item"]: Times(row["ttft_ms"], row["e2e_ms"]) for row in rows}
        if not len(rows) == len(times) == n:
            raise RunFailed(f"{n} items, {len(rows)} rows")
        return Run(cost=cost, log=log, times=times)
