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

from pytest_openclaw.asking.shares import Allocation, HostEndpoint, whole_limits
from pytest_openclaw.core.clock import anchor_s
from pytest_openclaw.distributed.worker_messages import (
    Assigned,
    Command,
    Handshake,
    HostFacts,
    Waits,
    command_to_text,
)
from pytest_openclaw.recording.inventory import installed_version, machine_id
from pytest_openclaw.recording.selection import Selection
from pytest_openclaw.session.coordinator import WorkerInput
from pytest_openclaw.session.registries import describe
from pytest_openclaw.types.surface import surface_to_json

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
        self._assigned: dict[int, Assigned] = {}
        self._owners: dict[int, int] = {}

    def number_of(self, node: WorkerController) -> int:
        """Return a worker's number, from 0."""
        return next(n for n, spec in enumerate(node.nodemanager.specs) if spec is node.gateway.spec)

    def input_of(self, node: WorkerController) -> WorkerInput:
        """Return what a worker receives at its start."""
        session, number = self._session, self.number_of(node)
        is_here = are_here(node.nodemanager.specs)
        line = self._lines[number] = node.gateway.newchannel()
        settings, kept = session.resumed.for_workers(session.settings) if session.resumed else ({}, [])
        return WorkerInput(
            targets=[target.label for target in session.settings.targets],
            machine=self._machine,
            shared_dir=str(session.shared_dir),
            run=node.nodemanager.testrunuid,
            is_here=is_here,
            is_ordered=not distributes_freely(session.config),
            anchor_s=anchor_s() if is_here else None,
            settings=settings,
            surface=json.dumps(surface_to_json(surface)) if (surface := session.settings.surface) else "",
            kept=kept,
            line=line,
        )

    def receive(self, node: WorkerController) -> Selection:
        """Return what a worker has selected, from the message that it sent before its collection.

        When all workers that are elsewhere have sent theirs, their hosts receive what each sends, before any
        item runs.

        Raises:
            pytest.UsageError: it cannot work on this run.
        """
        number = self.number_of(node)
        line = self._lines[number]
        try:
            message = Handshake.from_text(line.receive(LINE_S))
        except (OSError, EOFError) as error:
            whom = f"worker {node.gateway.id}"
            raise pytest.UsageError(f"{whom} has sent no handshake: {type(error).__name__}") from None
        line.setcallback(self._note_wait)
        digest = hashlib.sha256(message.selection.encode()).digest()
        if self._selection is None or digest != self._selection_digest:
            self._selection_digest = digest
            targets = self._session.settings.targets
            self._selection = Selection.from_json(json.loads(message.selection), targets)
        if message.host:
            self._meet(number, message.host, len(node.nodemanager.specs), self._selection)
        return self._selection

    def _note_wait(self, text: str) -> None:
        waits = Waits.from_text(text)
        self._session.writer.display.note_wait(waits.nodeid, waits.why, waits.seconds)

    def send(self, node: WorkerController, command: Command) -> None:
        """Send a command to a worker; one that has ended or died receives nothing."""
        self._send(self.number_of(node), command)

    def _send(self, number: int, command: Command) -> None:
        if (line := self._lines.get(number)) is not None:
            with contextlib.suppress(OSError):  # it has died; another one will come in its place
                line.send(command_to_text(command))

    def _meet(self, number: int, host: HostFacts, n_workers: int, selection: Selection) -> None:
        self._check(host)
        self._hosts[number] = host
        if not self._assigned and len(self._hosts) == n_workers:
            self._assign(selection)
            for n, assigned in self._assigned.items():
                self._send(n, assigned)
        elif self._assigned:  # it has come in place of another
            self._send(number, self._assigned[number])

    def _assign(self, selection: Selection) -> None:
        """Decide what each host sends: a share of each endpoint, and cells."""
        reached = {
            _identity(facts): {name: HostEndpoint(**reach) for name, reach in facts.reaches.items()}
            for _, facts in sorted(self._hosts.items())
        }
        hosts = list(reached)
        places: dict[str, list[int]] | None = None
        if distributes_freely(self._session.config):
            shares: Sequence[Mapping[str, int]] = whole_limits(list(reached.values()))
        else:
            try:
                allocation = Allocation(list(reached.values()))
            except ValueError as error:
                raise pytest.UsageError(str(error)) from None
            shares = allocation.shares
            places = {host: [] for host in hosts}
            workers = {
                host: [n for n, facts in self._hosts.items() if _identity(facts) == host] for host in hosts
            }
            for place, key in enumerate(selection.keys):
                if key:
                    is_kept = key in self._session.kept
                    host = hosts[allocation.assign(key.target.provider, is_kept=is_kept)]
                    own = workers[host]
                    self._owners[place] = own[len(places[host]) % len(own)]
                    places[host].append(place)
        for number, facts in self._hosts.items():
            host = _identity(facts)
            self._assigned[number] = Assigned(
                limits=shares[hosts.index(host)], places=None if places is None else places[host]
            )

    def owner_of(self, place: int) -> int | None:
        """Return the number of the worker that runs an item, whose host sends the cell; None for any."""
        return self._owners.get(place)

    def limits_of(self, node: WorkerController) -> Mapping[str, int] | None:
        """Return the requests that a worker's host may have in flight, by provider, if that was divided."""
        assigned = self._assigned.get(self.number_of(node))
        return assigned.limits if assigned else None

    def identity_of(self, node: WorkerController) -> str | None:
        """Return what distinguishes a worker's host; None where all workers are here."""
        host = self._hosts.get(self.number_of(node))
        return _identity(host) if host else None

    def host_of(self, node: WorkerController) -> str | None:
        """Return the name by which rows call a worker's host; None where it is this very machine."""
        host = self._hosts.get(self.number_of(node))
        return self._name(host) if host else None

    def facts_of(self, node: WorkerController) -> JsonObject:
        """Return what a worker's host is, and where its providers point to, for `inventory.json`."""
        host = self._hosts[self.number_of(node)]
        return {**host.inventory, "providers": host.providers}

    def _name(self, host: HostFacts) -> str | None:
        """One name for each machine, and for each environment on it; equal ones get a number."""
        identity = _identity(host)
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


def _identity(host: HostFacts) -> str:
    """Return what distinguishes a host: the machine, and what its environment makes of the providers."""
    return json.dumps([host.machine, host.providers], sort_keys=True)


def are_here(specs: Sequence[Any]) -> bool:
    """Whether workers reach what their controller reaches, because they are its own processes."""
    return all(spec.popen and not spec.via and not spec.env for spec in specs)


def distributes_freely(config: pytest.Config) -> bool:
    """Whether any worker may be given any cell in any order: `-n` alone means xdist's scheduling by load."""
    return config.getvalue("dist") != "load" or has_own_scheduler(config)


def has_own_scheduler(config: pytest.Config) -> bool:
    """Whether a conftest file or another plugin distributes the items."""
    makers = config.hook.pytest_xdist_make_scheduler.get_hookimpls()
    return any(maker.plugin_name not in {"dsession", CONTROLLER} for maker in makers)


def digest_of(path: Path) -> str:
    """Return the digest of a file, by which machines compare it."""
    return hashlib.sha256(path.read_bytes()).hexdigest()
