"""How a run was asked, and on what: its settings, its servers, its machines."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from pytest_openclaw.reports.html.pieces import Section, Table
from pytest_openclaw.reports.numbers import DASH, one_line

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

    from pytest_openclaw.core.json_types import JsonObject

_SETTINGS = ("repeat", "until_conclusive", "stream", "temperature", "timeout_s", "retries", "verdict")
_SERVER = ("server", "server_version", "quantisation", "context_length", "digest")
# A page is sent around, so it does not show the addresses of servers.
_PRIVATE = frozenset({"base_url", "key_env"})
_WIDTH = 60


def asked_section(config: JsonObject, inventory: JsonObject) -> Section:
    """Return the section; what a file does not have is left out."""
    packages = _object(inventory.get("packages"))
    versions = [[one_line(name, _WIDTH), _shown(version)] for name, version in packages.items()]
    tables = [
        Table(caption="Settings", head=("setting", "value"), rows=list(_settings(config)), n_words=2),
        Table(caption="Machine", head=("machine", *_MACHINE), rows=[_machine(inventory)], n_words=9),
        Table(caption="Servers", head=("target", *_WORDS), rows=list(_served(inventory)), n_words=9),
        Table(caption="Versions", head=("package", "version"), rows=versions, n_words=2),
    ]
    return Section(
        id="asked",
        title="How it was asked",
        intro=f"Machine: {host_of(inventory)}. Versions: {versions_of(inventory)}.",
        more=tables,
    )


def host_of(inventory: JsonObject) -> str:
    """Return the machine in a few words."""
    host, cpu = _object(inventory.get("host")), _object(inventory.get("cpu"))
    parts = (host.get("name"), cpu.get("model"), host.get("system"), host.get("machine"))
    return ", ".join(one_line(part, 40) for part in parts if isinstance(part, str) and part) or DASH


def versions_of(inventory: JsonObject) -> str:
    """Return the versions that matter most."""
    python, packages = _object(inventory.get("python")), _object(inventory.get("packages"))
    data = [
        (name, packages.get(name)) for name in ("pytest-openclaw", "pytest", "xllamacpp") if name in packages
    ]
    data.append(("Python", python.get("version")))
    return ", ".join(f"{name} {_shown(version)}" for name, version in data if version) or DASH


_MACHINE = ("processor", "cores", "memory", "GPU", "system", "Python")
_WORDS = tuple(name.replace("_", " ") for name in _SERVER)


def _settings(config: JsonObject) -> Iterator[list[str]]:
    for name in _SETTINGS:
        if name in config:
            yield [name.replace("_", " "), _shown(config[name])]
    limits = _object(config.get("concurrency"))
    for endpoint, limit in {
        "everywhere": limits.get("everywhere"),
        **_object(limits.get("by_provider")),
    }.items():
        if limit is not None:
            yield [f"in flight, {one_line(endpoint, _WIDTH)}", _shown(limit)]
    for provider, shape in _object(config.get("providers")).items():
        for key, value in _object(shape).items():
            if key in _PRIVATE:
                continue
            yield [f"{one_line(provider, _WIDTH)}: {one_line(key, _WIDTH).replace('_', ' ')}", _shown(value)]


def _machine(inventory: JsonObject) -> list[str]:
    cpu, host = _object(inventory.get("cpu")), _object(inventory.get("host"))
    memory, listed = inventory.get("memory_total_bytes"), inventory.get("gpus")
    gpus = [_object(gpu) for gpu in listed] if isinstance(listed, list) else []
    return [
        _shown(host.get("name")),
        _shown(cpu.get("model")),
        _shown(cpu.get("usable_cores")),
        f"{memory / 2**30:.1f} GiB" if isinstance(memory, int) else DASH,
        ", ".join(_shown(gpu.get("name") or gpu.get("error")) for gpu in gpus) or DASH,
        " ".join(_shown(host[key]) for key in ("system", "release", "machine") if host.get(key)) or DASH,
        _shown(_object(inventory.get("python")).get("version")),
    ]


def _served(inventory: JsonObject) -> Iterator[list[str]]:
    for label, facts in _object(inventory.get("targets")).items():
        server = _object(_object(facts).get("server"))
        if server:
            yield [one_line(label, _WIDTH), *(_shown(server.get(name)) for name in _SERVER)]


def _shown(value: Any) -> str:
    if value is None:
        return DASH
    if isinstance(value, bool):
        return "yes" if value else "no"
    return one_line(str(value), _WIDTH)


def _object(value: Any) -> Mapping[str, Any]:
    return value if isinstance(value, dict) else {}
