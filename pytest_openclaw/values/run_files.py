"""The types of `config.json` and `inventory.json`, and checks of files.

The published schemas in `schemas/` are generated from them by `python -m tests.docs.refresh`.
"""

from __future__ import annotations

import json
from dataclasses import dataclass
from importlib import resources
from typing import TYPE_CHECKING, Any, NotRequired, TypedDict, cast

from pytest_openclaw.util.errors import OpenClawError
from pytest_openclaw.util.files import load_object
from pytest_openclaw.util.typed import Amount, Count, Positive, PositiveAmount, converted
from pytest_openclaw.values.requests import SurfaceName, ThinkingLevel
from pytest_openclaw.values.rows import Repeat
from pytest_openclaw.values.settings import Concurrency, Gates, Temperature, VerdictMode

if TYPE_CHECKING:
    from pathlib import Path

    from pytest_openclaw.util.files import JsonObject


@dataclass(frozen=True, kw_only=True)
class Settled:
    """The point at which a target was settled early, or more repeats would have added nothing.

    Attributes:
        repeat: The last repeat.
        prompts: The prompts of its first repeat that count for the tier and were asked.
        of: All prompts that count for the tier.
    """

    repeat: Repeat
    prompts: Count
    of: Count


class TargetEntry(TypedDict):
    """A target of a run.

    Attributes:
        settled: When its requests ended early; missing if they did not.
        surface: The kind of request: the suite's own list of tools, or OpenClaw's whole request.
    """

    provider: str
    model: str
    thinking_level: ThinkingLevel | None
    n_cells: Count
    settled: NotRequired[Settled]
    surface: SurfaceName


class ValidatorEntry(TypedDict):
    """A validator, with its keys as the suite has them."""

    type: str


_Pass = TypedDict("_Pass", {"pass": NotRequired[str | None]})


class PromptEntry(_Pass):
    """A prompt as its suite defines it, defaults included.

    Attributes:
        messages: The conversation before the prompt.
        turns: The user's messages after the first answer.
        tools: The tools as the suite lists them.
    """

    suite: str
    id: str
    name: NotRequired[str]
    prompt: NotRequired[str]
    validator: NotRequired[ValidatorEntry]
    expected_tool_calls: NotRequired[list[str] | None]
    category: NotRequired[str | None]
    tags: NotRequired[list[str]]
    system: NotRequired[str | None]
    images: NotRequired[list[str]]
    images_sha256: NotRequired[list[str]]
    messages: NotRequired[list[dict[str, Any]]]
    turns: NotRequired[list[str]]
    max_output_tokens: NotRequired[Positive]
    timeout_s: NotRequired[PositiveAmount | None]
    repeat: NotRequired[Repeat | None]
    xfail: NotRequired[list[dict[str, Any]] | None]
    extra: NotRequired[dict[str, Any]]
    tools: NotRequired[Any]
    tools_sha256: NotRequired[str]
    world: NotRequired[dict[str, Any] | None]
    probe: NotRequired[str | None]
    twin_of: NotRequired[str | None]
    variant_of: NotRequired[str | None]
    role: NotRequired[str]
    padding_tokens: NotRequired[Count | None]
    pressure_of: NotRequired[str | None]


class RunEntry(TypedDict):
    """A run: its targets, and the settings.

    Attributes:
        temperature: The temperature of requests on the surface listed; `server` sends none.
        request_fields: Further fields of requests, by provider.
        surface: The surface `openclaw`: its source, release, hash and sizes; null if no target is asked on
            it.
        looks: The numbers of repeats after which a conclusive tier ends them; null for a fixed number.
        shard: The part of the selected cells that the run asked, as 2/8; null for all.
        divided_sha256: The digest of the cells that the shards divide; equal in all shards of one run.
    """

    run_id: str
    targets: list[TargetEntry]
    providers: dict[str, dict[str, Any]]
    gates: Gates | None
    temperature: NotRequired[Temperature | None]
    seed: NotRequired[Count | None]
    request_fields: NotRequired[dict[str, dict[str, Any]] | None]
    thinking_room_tokens: NotRequired[dict[str, Any] | None]
    surface: NotRequired[dict[str, Any] | None]
    repeat: NotRequired[Repeat | None]
    until_conclusive: NotRequired[bool | None]
    looks: NotRequired[list[Repeat] | None]
    shard: NotRequired[str | None]
    divided_sha256: NotRequired[str | None]
    stream: NotRequired[bool | None]
    timeout_s: NotRequired[PositiveAmount | None]
    retries: NotRequired[Count | None]
    concurrency: NotRequired[Concurrency | None]
    verdict: NotRequired[VerdictMode | None]
    fail_unavailable: NotRequired[bool | None]
    budget_usd: NotRequired[Amount | None]
    baseline: NotRequired[str | None]
    across: NotRequired[list[str] | None]
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


class TargetFacts(TypedDict):
    """The facts about a target that a run has collected.

    Attributes:
        resources_before, resources_after: The machine before the target's first cell and after its last one.
        server: The server's description of itself.
    """

    resources_before: NotRequired[dict[str, float | None] | None]
    resources_after: NotRequired[dict[str, float | None] | None]
    server: NotRequired[Any]


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
    """Return the content of a file as a value of a type; see `load_document`."""
    try:
        return converted(value, kind)
    except ValueError as error:
        raise OpenClawError(f"{path} is not as a run writes it: {error}") from None


def load_schema(name: str) -> JsonObject:
    """Return a published JSON Schema: `row`, `summary`, `config` or `inventory`."""
    file = resources.files("pytest_openclaw.values").joinpath("schemas", f"{name}.schema.json")
    return cast("JsonObject", json.loads(file.read_text("utf-8")))
