"""A run's settings, from options and ini keys, as one frozen value and in the form of `config.json`.

Tables define which keys of `config.json` may differ when a run is resumed, merged or compared. A key without
a rule has the last rule of its table. `prompt_rules` in `values/prompts.py` has those of prompts.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Mapping
from dataclasses import asdict, dataclass, field
from functools import cache
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, Literal, NamedTuple

from msgspec import Meta

from pytest_openclaw.util.typed import Positive
from pytest_openclaw.values.parts import in_places, parts
from pytest_openclaw.values.requests import Target, ThinkingLevel
from pytest_openclaw.values.tool_calls import SUBSTITUTE, Surface, surface_facts

if TYPE_CHECKING:
    from pytest_openclaw.util.files import JsonObject


LAST = "last"
"""The name of the newest run on the command line."""

Temperature = Annotated[float, Meta(ge=0, le=2)] | Literal["server"]

DEFAULT_PROVIDER = "ollama_native"
"""The provider of a model that is named without one: Ollama's own API, which OpenClaw uses."""
V1_PROVIDER = "ollama_openai"
"""The default provider if `OLLAMA_OPENAI_BASE` names a server with the OpenAI-compatible API."""
SAMPLING = ("temperature", "seed", "request_fields")
"""The settings that control how a model chooses its words."""
SERVER: Literal["server"] = "server"
"""The value of `temperature` that leaves the choice to the server."""
INSTALLED = "installed"
"""The value of `catalogue` for the surface of the installed OpenClaw."""
EMBEDDED_TARGET = "llama_cpp/smollm2:135m"
THINKING_ROOM_TOKENS: Mapping[ThinkingLevel, int] = {
    "low": 1024,
    "medium": 4096,
    "high": 8192,
    "xhigh": 16384,
}
"""Tokens added to a prompt's `max_output_tokens`, which are for the answer only, at each thinking level."""
SUITE_LOOKS = (12, 24, 48)
"""In the first repeat, the numbers of prompts that count for the tier after which a run checks whether the
evidence excludes the tier."""
LOCAL_ENDPOINT_LIMIT = 1
CLOUD_ENDPOINT_LIMIT = 8


@dataclass(frozen=True, kw_only=True)
class Endpoint:
    """A server of the user: an ini line `name = kind base_url KEY_ENV_NAME`.

    Attributes:
        name: the provider's name in specs and rows.
        kind: the built-in or plugin provider that speaks its API.
        key_env: the environment variable that holds its key; None sends no key.
    """

    name: str
    kind: str
    base_url: str
    key_env: str | None = None


@dataclass(frozen=True, kw_only=True)
class Concurrency:
    """Requests in flight on an endpoint: by provider, else one number for all, else the endpoint's own."""

    everywhere: Positive | None = None
    by_provider: Mapping[str, Positive] = field(default_factory=dict)

    def limit(self, provider: str, *, is_local: bool) -> int:
        """Return how many requests may be in flight at once on this provider's endpoint."""
        if provider in self.by_provider:
            return self.by_provider[provider]
        if self.everywhere is not None:
            return self.everywhere
        return LOCAL_ENDPOINT_LIMIT if is_local else CLOUD_ENDPOINT_LIMIT


class Shard(NamedTuple):
    """One of the equal parts into which jobs divide the cells of a run; `number` starts from 1."""

    number: int
    of: int

    def __str__(self) -> str:
        return f"{self.number}/{self.of}"


def parse_shard(text: str) -> Shard:
    """Return the shard that a text such as `2/8` names.

    Raises:
        ValueError: it is malformed; the text is the hint.
    """
    found = re.fullmatch(r"([1-9][0-9]{0,3})/([1-9][0-9]{0,3})", text)
    shard = Shard(int(found[1]), int(found[2])) if found else None
    if shard is None or shard.number > shard.of:
        raise ValueError("give K/N, part K of N from 1 to 9999, for example 2/8")
    return shard


@dataclass(frozen=True, kw_only=True)
class OwnPrice:
    """A price set by the user: an ini line `glob = input output [cached]`.

    Attributes:
        pattern: a glob over labels, with or without their thinking level; case does not matter.
        input_usd, output_usd, cached_usd: US dollars per million tokens; the last for tokens from a cache.
    """

    pattern: str
    input_usd: float
    output_usd: float
    cached_usd: float


@dataclass(frozen=True, kw_only=True)
class Settings:
    """All choices of the user for this run.

    Attributes:
        targets: in the order of the command line; empty means that no cell is collected.
        suite_dirs: folders below which `prompts_*.toml` and `prompts_*.json` are suites.
        prompts: ids or globs that select prompts; empty means all.
        repeat: the repeats of each prompt; the maximum for a tool prompt if the run ends early.
        timeout_s: seconds for one attempt, from the send to the end of the reply, and for judging the reply.
        catalogue: the file of a captured catalogue, which has the tools of suites and the surface `openclaw`;
            or `installed` or `substitute` for the source of the surface only. Empty means the shipped tools,
            and the surface of the installed OpenClaw, else the substitute.
        temperature, seed: sent on `listed`; `server` and None send none, but repeats always have seeds.
        request_fields: further fields by provider, on both surfaces.
        surface: the surface of targets on `openclaw`; None without such targets.
        resume: the id of the run to continue, or `last`; empty starts a new one.
        prices: the user's own prices; the last one that fits a target is used.
        shard: which part of the selected cells is run, as `2/8`; empty for all.
    """

    targets: tuple[Target, ...] = ()
    suite_dirs: tuple[Path, ...] = ()
    prompts: tuple[str, ...] = ()
    repeat: int = 1
    timeout_s: float = 300.0
    retries: int = 5
    concurrency: Concurrency = Concurrency()
    stream: bool = True
    catalogue: str = ""
    temperature: float | Literal["server"] = 0
    seed: int | None = None
    request_fields: Mapping[str, Mapping[str, Any]] = field(default_factory=dict)
    surface: Surface | None = None
    runs_dir: Path = Path("runs")
    run_id: str = ""
    run_id_given: bool = False
    resume: str = ""
    fail_unavailable: bool = False
    endpoints: tuple[Endpoint, ...] = ()
    provider_options: Mapping[str, str] = field(default_factory=dict)
    prices: tuple[OwnPrice, ...] = ()
    shard: str = ""
    budget_usd: float | None = None

    @property
    def catalogue_file(self) -> Path | None:
        """The file of the captured catalogue; None means the shipped one."""
        return None if self.catalogue in ("", INSTALLED, SUBSTITUTE) else Path(self.catalogue)


CONFIG_VERSION = 1
IDENTITY = ("schema_version", "run_id", "models", "targets", "prompts", "providers", "parts", "rescored")
"""Keys that are not settings: the identity of the run, and keys with their own rules."""
OTHER = "any other key"


class Rule(NamedTuple):
    """Whether a key may differ, and for a setting its value in `config.json`.

    Attributes:
        resume: `equal` refuses another value; `kept` uses the run's value unless the command line sets one;
            `grows` refuses a smaller value; `once` refuses another value if the run has one.
        compare: the difference that `--across` must name; otherwise such cells are set aside. `merge`
            refuses runs that differ in `settings`, in `noted` or in a prompt.
        value: of a setting; by default the field of `Settings` with the key's name, if there is one.
    """

    resume: Literal["equal", "kept", "grows", "once", "free"]
    compare: Literal["settings", "prompt", "validator", "noted", "free"]
    value: Callable[[Settings], Any] | None = None


_REQUEST, _FREE = Rule("equal", "settings"), Rule("free", "free")
SETTINGS: Mapping[str, Rule] = {
    **dict.fromkeys(("temperature", "seed", "stream"), _REQUEST),
    "request_fields": _REQUEST._replace(value=lambda one: {**one.request_fields}),
    "thinking_room_tokens": _REQUEST._replace(value=lambda _: dict(THINKING_ROOM_TOKENS)),
    "surface": Rule("once", "free", lambda one: surface_facts(one.surface)),  # compared by target
    "timeout_s": Rule("free", "noted"),  # it decides how many slow cells end as timeouts
    "repeat": Rule("grows", "free"),
    "fail_unavailable": Rule("kept", "free"),
    "shard": Rule("equal", "free", lambda one: one.shard or None),
    "concurrency": _FREE._replace(value=lambda one: asdict(one.concurrency)),
    **dict.fromkeys(("divided_sha256", "retries", "budget_usd"), _FREE),
    OTHER: Rule("free", "settings"),  # unknown: written by another version
}
PROVIDERS: Mapping[str, Rule] = {
    **dict.fromkeys(("base_url", "auth"), Rule("equal", "free")),  # each machine has its own server
    **dict.fromkeys(("key_env", "is_openclaw"), _FREE),
    OTHER: _REQUEST,
}
"""Resume checks only providers with an answered row, because others may have moved."""


def keys_to(
    rules: Mapping[str, Rule], command: Literal["resume", "compare"], need: str, keys: Iterable[str]
) -> list[str]:
    """Return the keys for which a command has this need, in their order."""
    return [key for key in keys if getattr(rules.get(key, rules[OTHER]), command) == need]


def is_openclaw(config: JsonObject, provider: str) -> bool:
    """Whether a provider of a run is the installed OpenClaw.

    Its models have OpenClaw's own names, and it sends the real request.
    """
    runs = config.get("parts") or (config,)
    entries = ((run.get("providers") or {}).get(provider) or {} for run in runs)
    # Older runs have only the kind.
    return any(entry.get("is_openclaw", entry.get("kind") == "openclaw_agent") for entry in entries)


def looks_of(config: JsonObject) -> tuple[int, ...]:
    """Return the numbers of repeats after which a run, or a part of a merged run, checked its tiers."""
    looks = {look for run in config.get("parts") or (config,) for look in run.get("looks") or ()}
    return tuple(sorted(looks))


@cache
def setting_rules() -> Mapping[str, Rule]:
    """Return the rules of all settings, with those of the parts."""
    tables = (keys for part in parts().values() for keys in part.keys.values())
    added = {name: key for keys in tables for name, key in keys.items() if key.rule}
    rules = {**SETTINGS, **{name: key.rule for name, key in added.items()}}
    return {
        name: rules[name] for name in in_places([*rules], {name: key.place for name, key in added.items()})
    }


def settings_to_json(settings: Settings) -> JsonObject:
    """Return the settings as in `config.json`."""
    own = vars(settings)
    return {
        name: rule.value(settings) if rule.value else own[name]
        for name, rule in setting_rules().items()
        if rule.value or name in own
    }
