"""The workers of a run, on this machine and on others: what each receives, and what each says of itself.

Workers on this machine see what their controller sees, so they receive everything at their start. Where one
of them is elsewhere, each sends first what it reaches with the environment of its own machine, and receives
what it may send. Addresses and facts travel that way, never a key.
"""

from __future__ import annotations

import contextlib
import hashlib
import json
from typing import TYPE_CHECKING, Any

import pytest

from pytest_openclaw.asking.shares import Division, WorkerEndpoint, reaches, whole_limits
from pytest_openclaw.core.clock import anchor_s
from pytest_openclaw.distributed.messages import Command, Handshake, HostFacts, Shares, command_to_text
from pytest_openclaw.recording.inventory import installed_version, machine_id
from pytest_openclaw.recording.selection import Selection
from pytest_openclaw.session.coordinator import WorkerInput
from pytest_openclaw.session.registries import describe

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence
    from pathlib import Path

    from xdist.workermanage import WorkerController

    from pytest_openclaw.core.json_types import JsonObject
    from pytest_openclaw.session.plugin_session import PluginSession

CONTROLLER = "openclaw-controller"
"""The name of the plugin that is registered in a controller."""
LINE_S = 60.0
"""For a message that is under way already when it is waited for."""
OURS = "pytest-openclaw"


class Workers:
    """The workers, as their controller sees them; a worker that replaces a dead one has its number."""

    def __init__(self, session: PluginSession) -> None:
        self._session = session
        self._described = describe(session.providers)
        self._machine = machine_id()
        self._lines: dict[int, Any] = {}
        self._hosts: dict[int, HostFacts] = {}
        self._names: dict[str, str] = {}
        self._selection_digest = b""
        self._selection: Selection | None = None
        self._shares: Sequence[Mapping[str, int]] = ()
        self._division: Division | None = None

    def number_of(self, node: WorkerController) -> int:
        """Return a worker's number, from 0."""
        return next(n for n, spec in enumerate(node.nodemanager.specs) if spec is node.gateway.spec)

    def input_of(self, node: WorkerController) -> WorkerInput:
        """Return what a worker receives at its start."""
        session, number, specs = self._session, self.number_of(node), node.nodemanager.specs
        is_here = all(spec.popen and not spec.via and not spec.env for spec in specs)
        if is_here and not self._shares:
            self._divide([reaches(session.providers, session.settings, self._machine)] * len(specs))
        line = self._lines[number] = node.gateway.newchannel()
        settings, kept = session.resumed.for_workers(session.settings) if session.resumed else ({}, [])
        return WorkerInput(
            targets=[target.label for target in session.settings.targets],
            machine=self._machine,
            shared_dir=str(session.shared_dir),
            run=node.nodemanager.testrunuid,
            others="any_cell" if distributes_freely(session.config) else "own_parts",
            gives_back=gives_back(session.config),
            shares=self._shares[number] if is_here else None,
            anchor_s=anchor_s() if is_here else None,
            settings=settings,
            kept=kept,
            line=line,
        )

    def receive(self, node: WorkerController) -> Selection:
        """Return what a worker has selected, from the message that it sent before its collection.

        When all workers that are elsewhere have sent theirs, each receives its shares, before any item.

        Raises:
            pytest.UsageError: it cannot work on this run.
        """
        number = self.number_of(node)
        try:
            message = Handshake.from_text(self._lines[number].receive(LINE_S))
        except (OSError, EOFError) as error:
            whom = f"worker {node.gateway.id}"
            raise pytest.UsageError(f"{whom} has sent no handshake: {type(error).__name__}") from None
        if message.host:
            self._meet(number, message.host, len(node.nodemanager.specs))
        digest = hashlib.sha256(message.selection.encode()).digest()
        if self._selection is None or digest != self._selection_digest:
            self._selection_digest = digest
            targets = self._session.settings.targets
            self._selection = Selection.from_json(json.loads(message.selection), targets)
        return self._selection

    def send(self, node: WorkerController, command: Command) -> None:
        """Send a command to a worker; one that has ended or died receives nothing."""
        self._send(self.number_of(node), command)

    def _send(self, number: int, command: Command) -> None:
        if (line := self._lines.get(number)) is not None:
            with contextlib.suppress(OSError):  # it has died; another one will come in its place
                line.send(command_to_text(command))

    def _meet(self, number: int, host: HostFacts, n_workers: int) -> None:
        self._check(host)
        self._hosts[number] = host
        if self._shares:  # it has come in place of another
            self._send(number, Shares(by_provider=self._shares[number]))
        elif len(self._hosts) == n_workers:
            reached = [self._hosts[n].reaches for n in sorted(self._hosts)]
            self._divide(
                [{name: WorkerEndpoint(**reach) for name, reach in seen.items()} for seen in reached]
            )
            for n in self._hosts:
                self._send(n, Shares(by_provider=self._shares[n]))

    def _divide(self, reached: Sequence[Mapping[str, WorkerEndpoint]]) -> None:
        """Decide what each worker may have in flight: a part of each endpoint, or what they keep together."""
        if distributes_freely(self._session.config):
            self._shares = whole_limits(reached)
            return
        try:
            self._division = Division(reached)
        except ValueError as error:
            raise pytest.UsageError(str(error)) from None
        self._shares = self._division.shares

    def shares_of(self, node: WorkerController) -> Mapping[str, int]:
        """Return the requests that a worker may have in flight, by provider; none before they are known."""
        return self._shares[self.number_of(node)] if self._shares else {}

    def deal(self, provider: str, *, is_kept: bool) -> int:
        """Return the number of the worker that runs the provider's next cell."""
        assert self._division is not None, "cells are assigned where we distribute, when all shares are known"
        return self._division.deal(provider, is_kept=is_kept)

    def host_of(self, node: WorkerController) -> str | None:
        """Return the name by which rows call a worker's host; None where it is this very machine."""
        host = self._hosts.get(self.number_of(node))
        return self._name(host) if host else None

    def elsewhere(self, node: WorkerController) -> str | None:
        """Return what distinguishes a worker's machine from all others; None where it is this one."""
        host = self._hosts.get(self.number_of(node))
        return None if host is None or host.machine == self._machine else host.machine

    def facts_of(self, node: WorkerController) -> JsonObject:
        """Return what a worker's host is, and where its providers point to, for `inventory.json`."""
        host = self._hosts[self.number_of(node)]
        return {**host.inventory, "providers": host.providers}

    def _name(self, host: HostFacts) -> str | None:
        """One name for each machine, and for each environment on it; equal ones get a number."""
        identity = json.dumps([host.machine, host.providers], sort_keys=True)
        if identity == json.dumps([self._machine, self._described], sort_keys=True):
            return None
        if identity not in self._names:
            self._names[identity] = self._name_before(host) or self._new_name(host)
        return self._names[identity]

    def _name_before(self, host: HostFacts) -> str | None:
        """In a resumed run, the name that its rows have for this host already."""
        taken = self._names.values()
        for name, facts in self._hosts_before.items():
            same_name = facts["host"]["name"] == host.inventory["host"]["name"]
            if same_name and facts["providers"] == host.providers and name not in taken:
                return name
        return None

    def _new_name(self, host: HostFacts) -> str:
        run = self._session.writer.run
        assert run is not None, "a run starts before a host is named"
        taken = {run.host, *self._names.values(), *self._hosts_before}
        base = name = str(host.inventory["host"]["name"])
        number = 2
        while name in taken:
            name, number = f"{base}-{number}", number + 1
        return name

    @property
    def _hosts_before(self) -> Mapping[str, JsonObject]:
        resumed = self._session.resumed
        hosts: Mapping[str, JsonObject] = resumed.earlier.inventory.get("hosts", {}) if resumed else {}
        return hosts

    def _check(self, host: HostFacts) -> None:
        where = host.inventory["host"]["name"]
        theirs, ours = host.inventory["packages"].get(OURS), installed_version(OURS)
        if theirs != ours:
            raise pytest.UsageError(
                f"{where} has {OURS} {theirs}, and this machine {ours}; install one version everywhere."
            )
        for name, digest in host.suites.items():
            path = self._session.config.rootpath / name
            if not path.is_file():
                raise pytest.UsageError(f"{name} is on {where} and not here; copy it, then run again.")
            if digest_of(path) != digest:
                raise pytest.UsageError(
                    f"{name} is not the same on {where} as here; copy it there, then run again."
                )


def distributes_freely(config: pytest.Config) -> bool:
    """Whether any worker may be given any cell: `-n` alone means that we choose, all else that they did."""
    return config.getvalue("dist") != "load" or has_own_scheduler(config)


def gives_back(config: pytest.Config) -> bool:
    """Whether a worker may have to give items back, which must not have been sent by then."""
    return config.getvalue("dist") == "worksteal" or has_own_scheduler(config)


def has_own_scheduler(config: pytest.Config) -> bool:
    """Whether a conftest file or another plugin distributes the items."""
    makers = config.hook.pytest_xdist_make_scheduler.get_hookimpls()
    return any(maker.plugin_name not in {"dsession", CONTROLLER} for maker in makers)


def digest_of(path: Path) -> str:
    """Return the digest of a file, by which machines compare it."""
    return hashlib.sha256(path.read_bytes()).hexdigest()
