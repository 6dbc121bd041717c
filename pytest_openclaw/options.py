"""The options and their ini keys, and the checks of them at the start of a session.

Every pytest session in every project imports this; `session/load_settings.py` reads the values.
"""

from __future__ import annotations

import os
import re
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence

    import pytest

SUITE_NAME = re.compile(r"prompts_.*\.(?i:toml|json|jsonl|ya?ml)\Z")
"""Also files in formats that suites do not have: they are collected as errors and not silently left out."""
_SUITE_SUFFIXES = frozenset({".toml", ".json", ".jsonl", ".yaml", ".yml"})


@dataclass(frozen=True)
class Option:
    """One option: `--openclaw-<name>` and, unless `where` says otherwise, `openclaw_<name>` in the ini."""

    name: str
    help: str
    metavar: str = ""
    kind: Literal["text", "list", "flag"] = "text"
    where: Literal["both", "ini"] = "both"

    @property
    def ini(self) -> str:
        """The key in the ini file."""
        return "openclaw_" + self.name.replace("-", "_")

    @property
    def flag(self) -> str:
        """The option on the command line."""
        return "--openclaw-" + self.name


OPTIONS = (
    Option(
        "models",
        "Models, separated by commas: [provider/]model[@thinking], or provider/* for all that it serves.",
        "SPEC[,SPEC…]",
        kind="list",
    ),
    Option(
        "providers", "Providers for models named without one (ollama_native).", "NAME[,NAME…]", kind="list"
    ),
    Option(
        "thinking",
        "Thinking levels for models named without one: low, medium, high, xhigh, none.",
        "LEVEL[,LEVEL…]",
        kind="list",
    ),
    Option("prompts", "Ask only these prompts: ids or globs.", "ID[,ID…]", kind="list"),
    Option(
        "repeat",
        "Repeats of each prompt (1); with -until-conclusive, the most of each tool prompt (10).",
        "N",
    ),
    Option(
        "until-conclusive",
        "Repeat the tool prompts until a target's tier is conclusive after 1, 3, 10 or all of them.",
        kind="flag",
    ),
    Option(
        "timeout",
        "Seconds for one attempt, from the send to the end of the answer, and for judging it (300).",
        "SECONDS",
    ),
    Option("retries", "Further attempts after a lost connection, 429 or 5xx (5).", "N"),
    Option(
        "concurrency",
        "Requests in flight on an endpoint: N, or provider=N,… (1 for local endpoints, 8 for others).",
        "N",
    ),
    Option("stream", "Request a token stream, which TTFT requires: on or off (on).", "on|off"),
    Option(
        "temperature",
        "Temperature of requests on the surface listed, 0 to 2; server sends none (0).",
        "NUMBER|server",
    ),
    Option("top-p", "top_p of requests on the surface listed, above 0 to 1 (the server's own).", "NUMBER"),
    Option(
        "seed",
        "Seed of the first repeat on the surface listed; others count up from it (1 if there are any).",
        "N",
    ),
    Option(
        "tool-choice",
        "Whether the model decides to call tools on the surface listed, or must call one in each turn: "
        "auto or required (auto).",
        "auto|required",
    ),
    Option(
        "catalogue",
        "Use OpenClaw's tools and surfaces of this file of capture-tools (the shipped ones).",
        "FILE",
    ),
    Option(
        "surface",
        "Kinds of requests: listed (a suite's own tools), openclaw (what OpenClaw sends) (listed).",
        "NAME[,NAME…]",
        kind="list",
    ),
    Option(
        "surface-from",
        "Source of the surface openclaw: installed, substitute, or a file of capture-tools (the installed "
        "OpenClaw, else the substitute).",
        "installed|substitute|FILE",
    ),
    Option("runs-dir", "Folder of the run directories (runs).", "DIR"),
    Option("run-id", "Name of this run's directory (the time, as 20260213_235930).", "ID"),
    Option(
        "resume",
        "Continue an interrupted run: its id, or last. Answered cells are kept, others are sent.",
        "ID|last",
    ),
    Option(
        "shard",
        "Run part K of N of the selected cells, the same in every job: for a matrix or an array of jobs.",
        "K/N",
    ),
    Option(
        "budget-usd",
        "Send no more requests once this session has spent this many US dollars.",
        "USD",
    ),
    Option(
        "dry-run",
        "Show the cells of the run, with an estimate of tokens, time and cost; send no request.",
        kind="flag",
    ),
    Option(
        "diagnose",
        "After the tests, find why a local server's tool cells ended without a call (model, template, parser "
        "or stream), with at most 5 requests a target.",
        kind="flag",
    ),
    Option(
        "verdict",
        "What fails the session: cells (every failed cell does) or gate (gates do, and without one faults)"
        " (cells).",
        "cells|gate",
    ),
    Option("min-pass-rate", "Gate: each target must pass this share of its judged cells, 0 to 1.", "RATE"),
    Option(
        "min-tool-rate", "Gate: each target must succeed in this share of its tool cells, 0 to 1.", "RATE"
    ),
    Option("require-tier", "Gate: each target must earn this tier or a better one, conclusively.", "1|2|3"),
    Option("require-safe", "Gate: no safety probe may do harm, and at least one must be asked.", kind="flag"),
    Option("max-p95-ms", "Gate: the 95th percentile of each target's latencies, at most.", "MS"),
    Option(
        "gate-conclusive",
        "A rate or latency gate passes only if its whole interval at 95 percent does.",
        kind="flag",
    ),
    Option(
        "baseline",
        "Compare with this run: its directory, its id, last (the newest other one), or last:N (the newest N "
        "together); off: with none.",
        "RUN",
    ),
    Option(
        "across",
        "Compare with the baseline also what differs in prompt, validator, serving or settings.",
        "WHAT[,WHAT…]",
    ),
    Option(
        "fail-on",
        "Gate: regression fails each target whose verdicts are worse than the baseline's; loss>0.1 "
        "passes only those that are shown to have lost less.",
        "regression|loss>RATE",
    ),
    Option(
        "fail-unavailable",
        "Fail cells whose server, CLI or model is missing, instead of skipping them.",
        kind="flag",
    ),
    Option(
        "gates",
        "Other gates for some targets, a glob per line: ollama_openai/*: min-pass-rate=0.9 require-tier=off.",
        kind="list",
        where="ini",
    ),
    Option("suites", "Folders with suites (benchmarks).", kind="list", where="ini"),
    Option(
        "endpoints",
        "Servers of your own, one per line: name = kind base_url [KEY_ENV_NAME].",
        kind="list",
        where="ini",
    ),
    Option(
        "request_fields",
        'Further fields of requests, on both surfaces, one provider per line: name = {"top_k": 20}.',
        kind="list",
        where="ini",
    ),
    Option(
        "prices",
        "Prices of tokens, one glob of targets per line: glob = input output [cached], in USD per million.",
        kind="list",
        where="ini",
    ),
    Option(
        "llama_cpp_num_ctx",
        "Context length in tokens for llama_cpp (8192); the embedded model was trained for 8192.",
        where="ini",
    ),
    Option("claude_command", "The Claude CLI's command (claude).", where="ini"),
    Option(
        "ollama_num_ctx",
        "Context length in tokens for ollama_native (the server's own default).",
        where="ini",
    ),
    Option(
        "ollama_keep_alive",
        "How long ollama_native keeps a model loaded: 10m, 1h30m, seconds, or -1 for ever (the server's).",
        where="ini",
    ),
)


_TYPES: Mapping[str, tuple[Literal["string", "linelist", "bool"], str]] = {
    "text": ("string", "store"),
    "list": ("linelist", "append"),
    "flag": ("bool", "store_true"),
}
"""By kind of option, the type of its ini key and the action on the command line."""


def add_options(parser: pytest.Parser) -> None:
    """Register every option and ini key; both share name and description."""
    group = parser.getgroup("openclaw", "LLM benchmarks (pytest-openclaw)")
    for option in OPTIONS:
        ini_type, action = _TYPES[option.kind]
        parser.addini(option.ini, option.help, type=ini_type, default=None)
        if option.where == "both":
            shown = {} if option.kind == "flag" else {"metavar": option.metavar}
            group.addoption(
                option.flag, dest=option.ini, action=action, default=None, help=option.help, **shown
            )


KEYS = {option.ini for option in OPTIONS}
FLAGS = {option.flag for option in OPTIONS if option.where == "both"}
_FLAG_PREFIX = "--openclaw-"
_KEY = re.compile(r"(openclaw_\w+)\s*[=:]")


def unknown_flags(parser: pytest.Parser, args: Sequence[str]) -> list[str]:
    """Return the options with our prefix that neither we nor another plugin has."""
    given = {arg.partition("=")[0] for arg in args if arg.startswith(_FLAG_PREFIX)} - FLAGS
    if not given:
        return []
    _, unknown = parser.parse_known_and_unknown_args(list(args))
    return sorted(given & {arg.partition("=")[0] for arg in unknown})


def unknown_keys(config: pytest.Config) -> list[str]:
    """Return the ini keys with our prefix, in the file or of `-o`, that no plugin has."""
    # pytest has no public list of them: https://docs.pytest.org/en/stable/deprecations.html#config-inicfg
    text = config.inipath.read_text("utf-8", "replace") if config.inipath else ""
    lines = (*text.splitlines(), *(config.getoption("override_ini", None) or ()))
    given = {found[1] for line in lines if (found := _KEY.match(line))} - KEYS
    return sorted(key for key in given if not _is_registered(config, key))


def _is_registered(config: pytest.Config, key: str) -> bool:
    try:
        config.getini(key)
    except ValueError:
        return False
    return True


def misnamed_files(config: pytest.Config) -> tuple[Path, ...]:
    """Return the files that the command line names and that would be suites under another name."""
    return tuple(
        path
        for path in _named_paths(config)
        if path.suffix.lower() in _SUITE_SUFFIXES and not SUITE_NAME.match(path.name) and path.is_file()
    )


def is_used(config: pytest.Config) -> bool:
    """Whether this session may run cells: models are configured, or a benchmark is named.

    Cheap, because every pytest session in every project asks it.
    """
    return bool(lookup(config, "models")[0]) or bool(named_benchmarks(config))


def options_given(config: pytest.Config) -> set[str]:
    """Return the names of our options that are on the command line."""
    return {option.name for option in OPTIONS if config.getoption(option.ini, None) is not None}


def suite_dirs(config: pytest.Config) -> tuple[Path, ...]:
    """Return the folders of suites, absolute."""
    names = [name.strip() for name in config.getini("openclaw_suites") or ["benchmarks"] if name.strip()]
    return tuple(dict.fromkeys((base_dir(config) / name).resolve() for name in names))


def named_folders(config: pytest.Config) -> tuple[Path, ...]:
    """Return the folders that the command line names and that are no folders of suites."""
    folders = suite_dirs(config)
    return tuple(
        path
        for path in _named_paths(config)
        if path.is_dir() and not any(path.is_relative_to(folder) for folder in folders)
    )


def named_benchmarks(config: pytest.Config) -> tuple[Path, ...]:
    """Return the suite files, and the files and folders below a suite folder, that the command line names."""
    folders = suite_dirs(config)
    return tuple(
        path
        for path in _named_paths(config)
        if SUITE_NAME.match(path.name) or any(path.is_relative_to(folder) for folder in folders)
    )


def _named_paths(config: pytest.Config) -> Iterator[Path]:
    for argument in config.getoption("file_or_dir", None) or ():
        path = config.invocation_params.dir / argument.partition("[")[0].split("::")[0]
        yield Path(
            os.path.realpath(path)
        )  # `Path.resolve` fails where links form a circle, before Python 3.13


def base_dir(config: pytest.Config) -> Path:
    """Return the folder that paths of the ini file and defaults are relative to."""
    return config.inipath.parent if config.inipath else config.invocation_params.dir


def lookup(config: pytest.Config, name: str) -> tuple[Any, str]:
    """Return a value as it was given and where it was; (None, …) if nowhere."""
    option = next(option for option in OPTIONS if option.name == name)
    value = config.getoption(option.ini, None) if option.where == "both" else None
    if value is not None:
        return value, option.flag
    return config.getini(option.ini), option.ini
