"""The workers of a run, on this machine and on others: what each is told, and what it tells of itself.

Workers on this machine see what their controller sees, so they are told everything at their start. Where
one of them is elsewhere, each tells first what it reaches with the environment of its own machine, over an
execnet channel that came with its input, and the answer is what it may ask. Addresses and facts go that
way, never a key.
"""

from __future__ import annotations

import contextlib
import hashlib
import json
from typing import TYPE_CHECKING, Any

import pytest

from pytest_openclaw.asking.shares import Division, WorkerEndpoint, reaches, whole_limits
from pytest_openclaw.core.clock import anchor_s
from pytest_openclaw.core.run_once import once, path_of, read_json
from pytest_openclaw.recording.inventory import collect_inventory, installed_version, machine_id
from pytest_openclaw.session.messages import DISTRIBUTED

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence
    from pathlib import Path

    from xdist.workermanage import WorkerController

    from pytest_openclaw.core.json_types import JsonObject
    from pytest_openclaw.session.plugin_session import State
    from pytest_openclaw.session.run_writer import Ledger

LINE_S = 60.0
"""For a message that is under way already when it is waited for."""
OURS = "pytest-openclaw"
BENCHMARKS = "benchmarks"


class Crew:
    """The workers, as their controller sees them; a worker that replaces a dead one has its number."""

    def __init__(self, state: State, ledger: Ledger) -> None:
        self._state = state
        self._ledger = ledger
        self._machine = machine_id()
        self._lines: dict[int, Any] = {}
        self._told: dict[int, JsonObject] = {}
        self._names: dict[str, str] = {}
        self._benchmarks: JsonObject | None = None
        self._shares: Sequence[Mapping[str, int]] = ()
        self._division: Division | None = None

    def number_of(self, node: WorkerController) -> int:
        """Return a worker's number, from 0."""
        return next(n for n, spec in enumerate(node.nodemanager.specs) if spec is node.gateway.spec)

    def hand_over(self, node: WorkerController) -> JsonObject:
        """Return what a worker is told at its start."""
        specs = node.nodemanager.specs
        told = {
            "machine": self._machine,
            "run": node.nodemanager.testrunuid,
            "others": "any_cell" if distributes_freely(self._state.config) else "own_parts",
            "gives_back": gives_back(self._state.config),
        }
        if all(spec.popen and not spec.via and not spec.env for spec in specs):
            if not self._shares:
                reached = reaches(self._state.providers, self._state.settings, self._machine)
                self._divide([reached] * len(specs))
            return {**told, "shares": self._shares[self.number_of(node)], "anchor_s": anchor_s()}
        line = self._lines[self.number_of(node)] = node.gateway.newchannel()
        return {**told, "shares": None, "line": line}

    def receive(self, node: WorkerController) -> None:
        """Take what a worker has told of itself before it told what it has collected.

        When all have told, each is answered with its shares, before it is given anything to run.

        Raises:
            pytest.UsageError: it cannot work on this run.
        """
        number = self.number_of(node)
        if number not in self._lines:
            return
        told = self._told[number] = _receive(self._lines[number], f"worker {node.gateway.id}")
        self._check(told)
        if self._shares:  # it has come in place of another
            self._answer(number)
        elif len(self._told) == len(node.nodemanager.specs):
            reached = [self._told[n]["reaches"] for n in sorted(self._told)]
            self._divide(
                [{name: WorkerEndpoint(**reach) for name, reach in seen.items()} for seen in reached]
            )
            for n in self._lines:
                self._answer(n)

    @property
    def benchmarks(self) -> JsonObject:
        """What the Python benchmarks are cells of, by id: see `report_payload.benchmarks_of`.

        There as soon as the first worker has told what it has collected.
        """
        if self._benchmarks is None:
            told = next(iter(self._told.values()), None)
            path = path_of(self._state.shared_path, BENCHMARKS)
            self._benchmarks = told[BENCHMARKS] if told else read_json(path) or {}
        return self._benchmarks

    def _answer(self, number: int) -> None:
        with contextlib.suppress(OSError):  # it has died since it told; another one will come in its place
            self._lines[number].send(json.dumps(self._shares[number]))

    def _divide(self, reached: Sequence[Mapping[str, WorkerEndpoint]]) -> None:
        """Decide what each worker may have in flight: a part of each endpoint, or what they keep together."""
        if distributes_freely(self._state.config):
            self._shares = whole_limits(reached)
            return
        try:
            self._division = Division(reached)
        except ValueError as error:
            raise pytest.UsageError(str(error)) from None
        self._shares = self._division.shares

    def shares_of(self, node: WorkerController) -> Mapping[str, int]:
        """Return the requests that a worker may have in flight, by provider; none before it is told."""
        return self._shares[self.number_of(node)] if self._shares else {}

    def deal(self, provider: str, *, is_kept: bool) -> int:
        """Return the number of the worker that runs the provider's next cell."""
        assert self._division is not None, "it is asked where we distribute, when all have told"
        return self._division.deal(provider, is_kept=is_kept)

    def host_of(self, node: WorkerController) -> str | None:
        """Return the name by which rows call a worker's host; None where it is this very machine."""
        told = self._told.get(self.number_of(node))
        return self._name(told) if told else None

    def elsewhere(self, node: WorkerController) -> str | None:
        """Return what tells a worker's machine from all others; None where it is this one."""
        machine: str = self._told.get(self.number_of(node), {}).get("machine", self._machine)
        return None if machine == self._machine else machine

    def facts_of(self, node: WorkerController) -> JsonObject:
        """Return what a worker's host is, and where its providers point to, for `inventory.json`."""
        told = self._told[self.number_of(node)]
        return {**told["inventory"], "providers": told["providers"]}

    def _name(self, told: JsonObject) -> str | None:
        """One name for each machine, and for each environment on it; equal ones get a number."""
        identity = json.dumps([told["machine"], told["providers"]], sort_keys=True)
        if identity == json.dumps([self._machine, self._state.described], sort_keys=True):
            return None
        if identity not in self._names:
            self._names[identity] = self._name_before(told) or self._new_name(told)
        return self._names[identity]

    def _name_before(self, told: JsonObject) -> str | None:
        """In a resumed run, the name that its rows have for this host already."""
        taken = self._names.values()
        for name, facts in self._hosts_before.items():
            same_name = facts["host"]["name"] == told["inventory"]["host"]["name"]
            if same_name and facts["providers"] == told["providers"] and name not in taken:
                return name
        return None

    def _new_name(self, told: JsonObject) -> str:
        assert self._ledger.run is not None, "a run begins before a host is named"
        taken = {self._ledger.run.host, *self._names.values(), *self._hosts_before}
        base = name = str(told["inventory"]["host"]["name"])
        number = 2
        while name in taken:
            name, number = f"{base}-{number}", number + 1
        return name

    @property
    def _hosts_before(self) -> Mapping[str, JsonObject]:
        earlier = self._state.resumption.earlier
        hosts: Mapping[str, JsonObject] = earlier.inventory.get("hosts", {}) if earlier else {}
        return hosts

    def _check(self, told: JsonObject) -> None:
        where = told["inventory"]["host"]["name"]
        theirs, ours = told["inventory"]["packages"].get(OURS), installed_version(OURS)
        if theirs != ours:
            raise pytest.UsageError(
                f"{where} has {OURS} {theirs}, and this machine {ours}; install one version everywhere."
            )
        for name, digest in told["suites"].items():
            path = self._state.config.rootpath / name
            if not path.is_file():
                raise pytest.UsageError(f"{name} is on {where} and not here; copy it, then run again.")
            if _digest(path) != digest:
                raise pytest.UsageError(
                    f"{name} is not the same on {where} as here; copy it there, then run again."
                )


def distributes_freely(config: pytest.Config) -> bool:
    """Whether any worker may be given any cell: `-n` alone means that we choose, all else that they did."""
    return config.getvalue("dist") != "load" or has_own_scheduler(config)


def gives_back(config: pytest.Config) -> bool:
    """Whether a worker may be told to give items back, which must not have been asked by then."""
    return config.getvalue("dist") == "worksteal" or has_own_scheduler(config)


def has_own_scheduler(config: pytest.Config) -> bool:
    """Whether a conftest file or another plugin distributes the items."""
    makers = config.hook.pytest_xdist_make_scheduler.get_hookimpls()
    return any(maker.plugin_name not in {"dsession", DISTRIBUTED} for maker in makers)


def tell(state: State, benchmarks: JsonObject) -> None:
    """Tell the controller what this worker reaches and where it is, if it waits for that.

    Args:
        state: this worker's.
        benchmarks: see `Crew.benchmarks`; a worker on the controller's machine leaves it in their folder.
    """
    if (line := _line_of(state)) is None:
        if benchmarks:
            once(state.shared_path, BENCHMARKS, lambda: benchmarks)
        return
    machine = machine_id()
    line.send(
        json.dumps(
            {
                "machine": machine,
                "inventory": once(state.shared_path, "inventory", collect_inventory),
                "providers": state.described,
                "reaches": {
                    name: {"endpoint": reach.endpoint, "limit": reach.limit}
                    for name, reach in reaches(state.providers, state.settings, machine).items()
                },
                "suites": {name: _digest(path) for name, path in state.suite_files.items()},
                BENCHMARKS: benchmarks,
            }
        )
    )


def shares_of(state: State) -> Mapping[str, int]:
    """Return the requests that this worker may have in flight, by provider."""
    assert state.handed_over is not None, "only a worker has a share"
    shares: Mapping[str, int] | None = state.handed_over["shares"]
    return _receive(_line_of(state), "the controller") if shares is None else shares


def _line_of(state: State) -> Any:
    return state.handed_over and state.handed_over.get("line")


def _receive(line: Any, whom: str) -> JsonObject:
    try:
        message: JsonObject = json.loads(line.receive(LINE_S))
    except (OSError, EOFError) as error:
        raise pytest.UsageError(f"{whom} has told nothing of itself: {type(error).__name__}") from None
    return message


def _digest(path: Path) -> str:
    return hashlib.sha256(path.read_bytes()).hexdigest()
