"""The types of `config.json` and `inventory.json`, and checks of files.

The published schemas in `schemas/` are generated from them by `python -m tests.docs.refresh`.
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from contextlib import suppress
from dataclasses import asdict, dataclass, field
from functools import cached_property
from importlib import resources
from pathlib import Path
from typing import Any, NotRequired, TypedDict, TypeVar, cast, get_type_hints

from pytest_openclaw.util.errors import OpenClawError
from pytest_openclaw.util.files import DEEPEST, JsonObject, is_deeper, load_object
from pytest_openclaw.util.json_text import line_of
from pytest_openclaw.util.text import cut, valid_text, valid_value
from pytest_openclaw.util.typed import LARGEST, Amount, Count, PositiveAmount, converted
from pytest_openclaw.values.parts import whole
from pytest_openclaw.values.prompts import PromptEntry
from pytest_openclaw.values.requests import SurfaceName, Target, ThinkingLevel, target_of
from pytest_openclaw.values.rows import Record, Repeat
from pytest_openclaw.values.settings import Concurrency, Temperature
from pytest_openclaw.values.tool_calls import SurfaceSource

T = TypeVar("T")

BEFORE, AFTER = "resources_before", "resources_after"
"""The names of a target's snapshots among its facts."""


class TargetEntry(TypedDict):
    """A target of a run.

    Attributes:
        surface: The kind of request: the suite's own list of tools, or OpenClaw's whole request.
    """

    provider: str
    model: str
    thinking_level: ThinkingLevel | None
    n_cells: Count
    surface: SurfaceName


class ProviderEntry(TypedDict, total=False):
    """The settings of a provider that shape a request, among others of its own.

    Attributes:
        key_env: The name of the environment variable with the key.
    """

    kind: str | None
    base_url: str | None
    path: str | None
    key_env: str | None


class SurfaceEntry(TypedDict):
    """The surface `openclaw` of a run, without its texts and tools."""

    source: SurfaceSource
    release: str
    sha256: NotRequired[str | None]
    fields: NotRequired[dict[str, Any]]


class RunEntry(TypedDict):
    """A run: its targets, and the settings.

    Attributes:
        temperature: The temperature of requests on the surface listed; `server` sends none.
        request_fields: Further fields of requests, by provider.
        surface: The surface `openclaw`; null if no target is asked on it.
        shard: The part of the selected cells that the run asked, as 2/8; null for all.
        divided_sha256: The digest of the cells that the shards divide; equal in all shards of one run.
    """

    run_id: str
    targets: list[TargetEntry]
    providers: dict[str, ProviderEntry]
    temperature: NotRequired[Temperature | None]
    seed: NotRequired[Count | None]
    request_fields: NotRequired[dict[str, dict[str, Any]] | None]
    thinking_room_tokens: NotRequired[dict[str, Any] | None]
    surface: NotRequired[SurfaceEntry | None]
    repeat: NotRequired[Repeat | None]
    shard: NotRequired[str | None]
    divided_sha256: NotRequired[str | None]
    stream: NotRequired[bool | None]
    timeout_s: NotRequired[PositiveAmount | None]
    retries: NotRequired[Count | None]
    concurrency: NotRequired[Concurrency | None]
    fail_unavailable: NotRequired[bool | None]
    budget_usd: NotRequired[Amount | None]
    rescored: NotRequired[dict[str, Any] | None]


class ConfigFile(RunEntry):
    """config.json.

    Attributes:
        parts: The measured runs of a merged run.
    """

    schema_version: int
    models: NotRequired[list[str]]
    prompts: list[PromptEntry]
    parts: NotRequired[list[RunEntry]]


class ServerFacts(TypedDict, total=False):
    """A server's description of itself, as far as the server gives one.

    Attributes:
        error: Why there is none.
        left_out: Facts that are too long, too deep, or not of the expected type.
    """

    server: str | None
    server_version: str | None
    digest: str | None
    quantisation: str | None
    context_length: Count | None
    template_sha256: str | None
    template_shows_tools: bool | None
    error: str
    left_out: list[str]


class TargetFacts(TypedDict):
    """The facts about a target that a run has collected.

    Attributes:
        resources_before, resources_after: The machine before the target's first cell and after its last one.
        server, server_when_resumed: The server's description of itself, and another one in a later session.
        warm_up: How the first request ended.
    """

    resources_before: NotRequired[dict[str, float | None] | None]
    resources_after: NotRequired[dict[str, float | None] | None]
    server: NotRequired[ServerFacts | None]
    server_when_resumed: NotRequired[ServerFacts | None]
    warm_up: NotRequired[dict[str, Any] | None]


class InventoryPart(TypedDict):
    """The machine of a run, and its servers.

    Attributes:
        targets: The facts by target.
    """

    run_id: str
    python: NotRequired[dict[str, Any] | None]
    packages: NotRequired[dict[str, Any] | None]
    host: NotRequired[dict[str, Any] | None]
    cpu: NotRequired[dict[str, Any] | None]
    memory_total_bytes: NotRequired[Count | None]
    gpus: NotRequired[list[dict[str, Any]] | None]
    targets: dict[str, TargetFacts]


class InventoryFile(InventoryPart):
    """inventory.json.

    Attributes:
        openclaw_release: The release of OpenClaw whose tools suites offer; null in a merged run of several.
    """

    openclaw_release: NotRequired[str | None]
    parts: NotRequired[list[InventoryPart]]


def load_document(path: Path, kind: type) -> Any:
    """Return the content of a file of a run folder as a value of a type.

    Raises:
        OpenClawError: it cannot be read, or is malformed; the message names file, key and value.
    """
    return checked(path, kind, load_object(path))


def checked(path: Path, kind: type, value: JsonObject) -> Any:
    """Return the content of a file, read or to be written, as a value of a type; see `load_document`."""
    try:
        if is_deeper(value, DEEPEST):
            raise ValueError(f"it is nested more than {DEEPEST} levels deep")
        return converted(value, whole(kind))
    except ValueError as error:
        raise OpenClawError(f"{path} is not as a run writes it: {error}") from None


def load_schema(name: str) -> JsonObject:
    """Return a published JSON Schema: `row`, `summary`, `config` or `inventory`."""
    file = resources.files("pytest_openclaw.values").joinpath("schemas", f"{name}.schema.json")
    return cast("JsonObject", json.loads(file.read_text("utf-8")))


# --- a measured run -------------------------------------------------------------------------------


@dataclass(frozen=True, kw_only=True)
class MeasuredRun:
    """A run, stored or just ended.

    Attributes:
        records: the last row of each cell, without texts.
        config, inventory: the contents of its files.
        n_selected: the number of cells of each target, in their order; an unfinished target has fewer rows.
        held: what parts hold for it in this process, by their names.
    """

    run_id: str
    records: tuple[Record, ...]
    config: JsonObject
    inventory: JsonObject
    n_selected: Mapping[Target, int]
    held: Mapping[str, Any] = field(default_factory=dict)

    @cached_property
    def targets(self) -> dict[Target, int]:
        """The number of rows of each target, in the order of the config, then of the rows."""
        counts = dict.fromkeys(self.n_selected, 0)
        for record in self.records:
            counts[record.target] = counts.get(record.target, 0) + 1
        return counts

    @cached_property
    def entries(self) -> dict[Target, JsonObject]:
        """The entries of the targets in the config."""
        return {target_of(entry): entry for entry in self.config.get("targets", ())}

    @cached_property
    def rows_of(self) -> dict[Target, list[Record]]:
        """The rows by target, targets in the order of their first row."""
        rows: dict[Target, list[Record]] = {}
        for record in self.records:
            rows.setdefault(record.target, []).append(record)
        return rows

    @property
    def unfinished(self) -> frozenset[Target]:
        """Targets with cells that have no row."""
        return frozenset(target for target, n in self.n_selected.items() if self.targets[target] < n)


def target_entries(
    n_cells: Mapping[Target, int], further: Mapping[Target, JsonObject] | None = None
) -> list[JsonObject]:
    """Return the targets of a `config.json`, with their cells and further keys."""
    further = further or {}
    return [{**asdict(target), **further.get(target, {}), "n_cells": n} for target, n in n_cells.items()]


def served_in(inventory: JsonObject, label: str) -> Iterator[JsonObject]:
    """Yield the known facts about how a target is served, from each part of a merged run."""
    for part in [inventory, *inventory.get("parts", ())]:
        if serving := (part.get("targets") or {}).get(label):
            yield serving


def reported(inventory: JsonObject, label: str, key: str, kind: type[T]) -> list[T]:
    """Return the values of a type that a target's servers report for a key."""
    servers = (serving.get("server") for serving in served_in(inventory, label))
    values = (server.get(key) for server in servers if isinstance(server, dict))
    return [value for value in values if isinstance(value, kind)]


# --- facts from servers ---------------------------------------------------------------------------

MOST_FACTS_BYTES = 64 * 1024
DEEPEST_FACTS = 20


def facts_of(found: Mapping[str, Any], kinds: Mapping[str, Any] | None = None) -> JsonObject:
    """Return facts from a server or a plugin as `inventory.json` can have them.

    Texts are made valid. Facts that are not JSON, not of their type, nested more than 20 levels deep, or for
    which 64 KiB do not suffice are left out, and `left_out` names them. So are numbers beyond 2**53.
    """
    kept: JsonObject = {}
    left_out: list[str] = []
    room = MOST_FACTS_BYTES
    for name, value in found.items():
        written = b""
        if _is_plain(value, DEEPEST_FACTS):
            with suppress(ValueError):
                converted(value, (kinds or {}).get(name, Any))
                written = line_of(valid_value({str(name): value}))
        if 0 < len(written) <= room:
            kept |= json.loads(written)
            room -= len(written)
        else:
            left_out.append(cut(valid_text(str(name)), 80))
    return {**kept, "left_out": left_out[:100]} if left_out else kept


def server_facts(found: Mapping[str, Any]) -> JsonObject:
    """Return a server's description of itself; see `facts_of`."""
    return facts_of(found, get_type_hints(ServerFacts, include_extras=True))


def _is_plain(value: Any, levels: int) -> bool:
    match value:
        case None | bool() | str():
            return True
        case int() | float():
            return abs(value) <= LARGEST  # never true of NaN
        case list() | tuple() if levels:
            return all(_is_plain(one, levels - 1) for one in value)
        case dict() if levels:
            return all(isinstance(key, str) and _is_plain(one, levels - 1) for key, one in value.items())
    return False
