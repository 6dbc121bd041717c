"""Options and ini keys → `Settings`; the command line overrides the ini file, which overrides the default.

Every value is checked here, so that a mistake ends the session before the first call.
"""

from __future__ import annotations

import dataclasses
import os
from collections.abc import Callable, Collection, Sequence
from datetime import datetime
from functools import partial
from math import inf
from pathlib import Path
from typing import Any, NoReturn, TypeVar

import pytest

from pytest_openclaw import options
from pytest_openclaw.openclaw.catalog import read_catalogue
from pytest_openclaw.suites.cells import parse_endpoint, parse_targets
from pytest_openclaw.util.errors import TargetError
from pytest_openclaw.util.files import parse_json
from pytest_openclaw.util.text import closest
from pytest_openclaw.values.parts import added_to, called, whole
from pytest_openclaw.values.requests import SURFACES, Target
from pytest_openclaw.values.settings import (
    DEFAULT_PROVIDER,
    EMBEDDED_TARGET,
    INSTALLED,
    V1_PROVIDER,
    Concurrency,
    Endpoint,
    OwnPrice,
    Settings,
)
from pytest_openclaw.values.tool_calls import SUBSTITUTE

T = TypeVar("T")


def load_settings(config: pytest.Config, providers: Collection[str]) -> Settings:
    """Read and check all options and ini keys.

    Raises:
        pytest.UsageError: a value is wrong; the message names the option or ini key and has a hint.
    """
    endpoints = load_endpoints(config, providers)
    names = [*providers, *(endpoint.name for endpoint in endpoints)]
    given = {name: value for name in options.by_name() if (value := _value(config, name)) is not None}
    for complete in called("given"):
        complete(given)
    # Local time, as on the user's clock; tests set the id instead.
    time = datetime.now().astimezone().strftime("%Y%m%d_%H%M%S")
    settings = whole(Settings)
    fields = {field.name for field in dataclasses.fields(settings)}
    values = {"run_id": time, **{name.replace("-", "_"): value for name, value in given.items()}}
    values |= {
        "targets": _targets(config, names, given),
        "suite_dirs": options.suite_dirs(config),
        "surface": None,  # `start.load_surface` reads it
        "timeout_s": given.get("timeout", Settings.timeout_s),
        "concurrency": _concurrency(config, names),
        "catalogue": _catalogue(config),
        "request_fields": _request_fields(config, names),
        "runs_dir": _path(
            config, str(given.get("runs-dir", "runs")), options.lookup(config, "runs-dir")[1]
        ).resolve(),
        "run_id_given": "run-id" in given,
        "endpoints": endpoints,
        "provider_options": {"num_ctx": given["num_ctx"]} if "num_ctx" in given else {},
        "prices": tuple(lines_of(config, "prices", _own_price)),
    }
    values |= {name: key.of(config, given) for name, key in added_to(Settings).items() if key.of}
    return settings(**{name: value for name, value in values.items() if name in fields})


# --- values ---------------------------------------------------------------------------------------


def _value(config: pytest.Config, name: str) -> Any:
    value, where = options.lookup(config, name)
    parse = options.by_name()[name].parse
    if not value or parse is None:
        return value or None
    if not isinstance(value, list):
        return _parsed(where, str(value).strip(), parse)
    return tuple(_parsed(where, word, parse) for word in split(value)) or None


def _parsed(where: str, text: str, parse: Callable[[str], T]) -> T:
    try:
        return parse(text)
    except (ValueError, TargetError) as error:
        raise pytest.UsageError(f"{where}={text}: {error}") from None


def lines_of(config: pytest.Config, name: str, parse: Callable[[str], T]) -> list[T]:
    """Return the parsed lines of an ini key."""
    key = options.by_name()[name].ini
    try:
        return [parse(line.strip()) for line in config.getini(key) or () if line.strip()]
    except (ValueError, TargetError) as error:
        raise pytest.UsageError(f"{key}: {error}") from None


def split(values: Sequence[str]) -> list[str]:
    """Return the words of comma-separated texts."""
    return [part.strip() for value in values for part in value.split(",") if part.strip()]


def _path(config: pytest.Config, name: str, where: str) -> Path:
    """Return a path, relative to the current folder if it is an option, else to the ini file."""
    base = config.invocation_params.dir if where.startswith("--") else options.base_dir(config)
    return base / Path(name).expanduser()


def _no_provider(name: str, providers: Collection[str]) -> NoReturn:
    known = ", ".join(sorted(providers))
    raise ValueError(f"there is no provider {name!r}; there are {known}.{closest(name, providers)}")


def _concurrency(config: pytest.Config, providers: Collection[str]) -> Concurrency:
    count = options.matching("[1-9][0-9]{0,3}", int, "give a number from 1 to 9999, or provider=N,…")

    def parse(text: str) -> Concurrency:
        everywhere = None
        by_provider: dict[str, int] = {}
        for part in split([text]):
            name, _, limit = (word.strip() for word in part.rpartition("="))
            if not name:
                everywhere = count(limit)
            elif name in providers:
                by_provider[name] = count(limit)
            else:
                _no_provider(name, providers)
        return Concurrency(everywhere=everywhere, by_provider=by_provider)

    value, where = options.lookup(config, "concurrency")
    return _parsed(where, value or "", parse)


def _request_fields(config: pytest.Config, providers: Collection[str]) -> dict[str, dict[str, Any]]:
    def parse(line: str) -> tuple[str, dict[str, Any]]:
        name, _, text = (part.strip() for part in line.partition("="))
        if name not in providers:
            _no_provider(name, providers)
        try:
            value = parse_json(text.encode())
        except ValueError:
            value = None
        if not isinstance(value, dict):
            example = f'{name} = {{"top_k": 20}}'
            raise ValueError(f"write JSON, an object, such as {example}")
        return name, value

    fields: dict[str, dict[str, Any]] = {}
    for name, value in lines_of(config, "request_fields", parse):
        fields[name] = {**fields.get(name, {}), **value}
    return fields


def load_endpoints(config: pytest.Config, kinds: Collection[str]) -> tuple[Endpoint, ...]:
    """Return the servers of the ini key `openclaw_endpoints`.

    Raises:
        pytest.UsageError: a line is malformed, or its name is taken.
    """
    endpoints = tuple(lines_of(config, "endpoints", partial(parse_endpoint, kinds=kinds)))
    names = [endpoint.name for endpoint in endpoints]
    for name, kind in ((endpoint.name, endpoint.kind) for endpoint in endpoints):
        # `name = name base_url` gives a provider another address.
        if names.count(name) > 1 or (name in kinds and name != kind):
            raise pytest.UsageError(f"openclaw_endpoints: {name!r} is a provider already; rename one.")
    return endpoints


def _own_price(line: str) -> OwnPrice:
    hint = "write GLOB = INPUT OUTPUT [CACHED] in USD per million tokens, for example: lab/* = 0.5 1.5"
    pattern, _, figures = (part.strip() for part in line.rpartition("="))
    read = options.number(lambda usd: 0 <= usd < inf, f"{line!r}: {hint}")
    prices = [read(figure) for figure in figures.split()]
    if not pattern or len(prices) not in {2, 3}:
        raise ValueError(f"{line!r}: {hint}")
    input_usd, output_usd, cached_usd = [*prices, prices[0]][:3]
    return OwnPrice(pattern=pattern, input_usd=input_usd, output_usd=output_usd, cached_usd=cached_usd)


# --- files and folders ----------------------------------------------------------------------------


def _catalogue(config: pytest.Config) -> str:
    """Return the path of a captured catalogue, relative to the current folder if it is inside."""
    value, where = options.lookup(config, "catalogue")
    name = str(value or "").strip()
    if name in ("", INSTALLED, SUBSTITUTE):
        return name
    path = _path(config, name, where)
    _parsed(where, name, lambda _: read_catalogue(path))
    here, path = config.invocation_params.dir, path.resolve()
    return path.relative_to(here).as_posix() if path.is_relative_to(here) else str(path)


# --- targets --------------------------------------------------------------------------------------


def _targets(config: pytest.Config, providers: Collection[str], given: dict[str, Any]) -> tuple[Target, ...]:
    specs, where = options.lookup(config, "models")
    if "resume" in given and not where.startswith("--"):
        return ()  # a resumed run keeps its own
    # Ollama's own API, unless the environment names an OpenAI-compatible server.
    usual = V1_PROVIDER if os.environ.get("OLLAMA_OPENAI_BASE") else DEFAULT_PROVIDER
    chosen = given.get("providers", (usual,))
    for name in chosen:
        if name not in (*providers, usual):
            _parsed(options.lookup(config, "providers")[1], name, lambda name: _no_provider(name, providers))
    levels = [None if level == "none" else level for level in given.get("thinking", ("none",))]
    surfaces = sorted(given.get("surface", SURFACES[:1]), key=SURFACES.index)
    try:
        return parse_targets(
            specs or _embedded_default(config),
            providers=providers,
            default_providers=chosen,
            default_levels=levels,
            default_surfaces=surfaces,
        )
    except TargetError as error:
        raise pytest.UsageError(f"{where}: {error}") from None


def _embedded_default(config: pytest.Config) -> list[str]:
    """Return the embedded model if a benchmark is named without models."""
    from pytest_openclaw.providers.llama_cpp.provider import embedded_model_is_installed, install_engine

    if not options.named_benchmarks(config):
        return []
    if embedded_model_is_installed():
        return [EMBEDDED_TARGET]
    raise pytest.UsageError(
        "no model to ask. Name one, for example --openclaw-models=ollama_native/llama3.2:3b, or install the "
        f"embedded one: {install_engine()}"
    )
