"""The options and their ini keys, with the parser of each value; options of parts are in `parts/__init__.py`.

Every pytest session in every project imports this, and few other modules of ours; `session/settings.py`
turns the values into `Settings`.
"""

from __future__ import annotations

import argparse
import os
import re
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from functools import cache
from math import inf, nan
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal, TypeVar

from pytest_openclaw.values.parts import table

if TYPE_CHECKING:
    import pytest

T = TypeVar("T")

_LAST = "last"
_RUN_ID = re.compile(r"[A-Za-z0-9_](?:[A-Za-z0-9_.+-]{0,126}[A-Za-z0-9_+-])?")
SUITE_NAME = re.compile(r"prompts_.*\.(?i:toml|json|jsonl|ya?ml)\Z")
"""Includes formats that suites cannot have, so that such files are errors and not silently left out."""

# --- parsers: each raises ValueError with a hint ------------------------------------------------


def number(fits: Callable[[float], bool], hint: str) -> Callable[[str], float]:
    """Return the parser of a number that fits; a text that is not a number is tried as NaN."""

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
    """Return the parser of a text; the whole text must match the pattern."""

    def parse(text: str) -> T:
        if not re.fullmatch(pattern, text):
            raise ValueError(hint)
        return read(text)

    return parse


def one_of(*words: str) -> Callable[[str], str]:
    """Return the parser of a text that must be one of these words."""
    return matching("|".join(words), str, f"give {', '.join(words[:-1])} or {words[-1]}")


ON = "on"
"""The value of an option that may have none."""
on_off = matching("on|off", lambda word: word == "on", "give on or off")
_COUNT = matching("[1-9][0-9]{0,3}", int, "give a number from 1 to 9999")
_WHOLE = matching("[0-9]{1,6}", int, "give a whole number, 0 or more")


RATE = number(lambda rate: 0 <= rate <= 1, "give a rate from 0 to 1, for example 0.9")


def _temperature(text: str) -> float | str:
    parse = number(lambda value: 0 <= value <= 2, "give a number from 0 to 2, or server to send none")
    return text if text == "server" else parse(text)


def parse_run_id(text: str) -> str:
    """Return a new run's id, which is a valid folder name on every system.

    Raises:
        ValueError: it is malformed; the text is the hint.
    """
    if not _RUN_ID.fullmatch(text):
        rule = "not starting with a sign and not ending with a dot"
        raise ValueError(f"give up to 128 letters, digits, _ . + -, {rule}")
    if text.casefold() == _LAST:
        raise ValueError(f"{_LAST} means the newest run; give another name")
    return text


def _shard(text: str) -> str:
    from pytest_openclaw.values.settings import parse_shard

    return str(parse_shard(text))


# --- the table ----------------------------------------------------------------------------------


@dataclass(frozen=True)
class Option:
    """One option: `--openclaw-<name>` and, unless `where` says otherwise, `openclaw_<name>` in the ini.

    Attributes:
        parse: parses the value, or each word of a list; None leaves this to `session/settings.py`.
        needs: the part that must be present for this option to exist.
        without_workers: whether xdist starts no workers with it.
    """

    name: str
    help: str
    metavar: str = ""
    parse: Callable[[str], Any] | None = None
    kind: Literal["text", "text or nothing", "list", "flag"] = "text"
    where: Literal["both", "ini"] = "both"
    needs: str = ""
    without_workers: bool = False

    @property
    def ini(self) -> str:
        """The key in the ini file."""
        return "openclaw_" + self.name.replace("-", "_")

    @property
    def flag(self) -> str:
        """The option on the command line."""
        return "--openclaw-" + self.name


def words_option(name: str, help: str, metavar: str, parse: Callable[[str], Any] | None = str) -> Option:  # noqa: A002
    """Return an option with a list of words."""
    return Option(name, help, metavar, parse, kind="list")


def flag_option(name: str, help: str) -> Option:  # noqa: A002
    """Return an option that is on or off."""
    return Option(name, help, kind="flag")


def lines_option(name: str, help: str) -> Option:  # noqa: A002
    """Return an ini key with a list of lines."""
    return Option(name, help, kind="list", where="ini")


OPTIONS = (
    words_option(
        "models",
        "Models, separated by commas: [provider/]model[@thinking], or provider/* for all its models.",
        "SPEC[,SPEC…]",
        None,
    ),
    words_option("providers", "Providers for models named without one (ollama_native).", "NAME[,NAME…]"),
    words_option(
        "thinking",
        "Thinking levels for models named without one: low, medium, high, xhigh, none.",
        "LEVEL[,LEVEL…]",
        one_of("low", "medium", "high", "xhigh", "none"),
    ),
    words_option("prompts", "Ask only these prompts: ids or globs.", "ID[,ID…]"),
    Option(
        "repeat",
        "Repeats of each prompt (1); with -until-conclusive, the maximum for a tool prompt (10).",
        "N",
        _COUNT,
    ),
    Option(
        "timeout",
        "Seconds for one attempt, from the send to the end of the answer, and for judging it (300).",
        "SECONDS",
        number(lambda seconds: 0 < seconds < inf, "give seconds greater than 0, for example 300"),
    ),
    Option("retries", "Further attempts after a lost connection, 429 or 5xx (5).", "N", _WHOLE),
    Option(
        "concurrency",
        "Requests in flight on an endpoint: N, or provider=N,… (1 for local endpoints, 8 for others).",
        "N",
    ),
    Option("stream", "Request a token stream, which TTFT requires: on or off (on).", "on|off", on_off),
    Option(
        "temperature",
        "Temperature of requests on the surface listed, 0 to 2; server sends none (0).",
        "NUMBER|server",
        _temperature,
    ),
    Option(
        "seed",
        "Seed of the first repeat on the surface listed; later repeats count up from it (1 with repeats).",
        "N",
        _WHOLE,
    ),
    words_option(
        "surface",
        "Kinds of requests: listed (a suite's own tools), openclaw (what OpenClaw sends) (listed).",
        "NAME[,NAME…]",
        one_of("listed", "openclaw"),
    ),
    Option(
        "catalogue",
        "OpenClaw's tools and its surface: a file from capture-tools; installed or substitute selects only "
        "the surface (the shipped tools; the surface of the installed OpenClaw, else the substitute).",
        "FILE|installed|substitute",
    ),
    Option("runs-dir", "Folder of the run directories (runs).", "DIR"),
    Option("run-id", "Name of this run's directory (the time, as 20260213_235930).", "ID", parse_run_id),
    Option(
        "resume",
        "Continue an interrupted run: its id, or last. Answered cells, and harm, are kept; others are sent.",
        "ID|last",
        lambda text: text if text == _LAST else parse_run_id(text),
    ),
    Option(
        "shard",
        "Run part K of N of the selected cells; select the same cells in every job of a matrix or an array.",
        "K/N",
        _shard,
    ),
    Option(
        "budget-usd",
        "Send no more requests once this session has spent this many US dollars.",
        "USD",
        number(lambda usd: 0 < usd < inf, "give US dollars greater than 0, for example 5 or 0.25"),
    ),
    flag_option(
        "fail-unavailable", "Fail cells whose server, CLI or model is missing, instead of skipping them."
    ),
    lines_option("suites", "Folders with suites (benchmarks)."),
    lines_option("endpoints", "Servers of your own, one per line: name = kind base_url [KEY_ENV_NAME]."),
    lines_option(
        "request_fields",
        'Further fields of requests, on both surfaces, one provider per line: name = {"top_k": 20}.',
    ),
    lines_option(
        "prices",
        "Prices of tokens, one glob of targets per line: glob = input output [cached], in USD per million.",
    ),
    Option(
        "num_ctx",
        "Context length in tokens for llama_cpp (8192) and ollama_native (the server's own default).",
        parse=matching("[1-9][0-9]{0,8}", str, "give a whole number of tokens, for example 32768"),
        where="ini",
    ),
)


@cache
def all_options() -> tuple[Option, ...]:
    """Return the options of the core and of all parts."""
    known = table()
    of_parts = (option for entry in known.values() for option in entry.options)
    return (*OPTIONS, *(option for option in of_parts if not option.needs or option.needs in known))


@cache
def by_name() -> Mapping[str, Option]:
    """Return all options by their names."""
    return {option.name: option for option in all_options()}


class _MayHaveValue(argparse.Action):
    """An option with or without a value; a file that follows it is not its value."""

    def __init__(self, *args: Any, **named: Any) -> None:
        super().__init__(*args, **{**named, "nargs": "?", "const": ON})

    def __call__(self, _: object, namespace: argparse.Namespace, values: Any, *_more: object) -> None:
        """Set the value; pass a file on as argparse's subparsers pass on what they do not know."""
        if values != ON and Path(values.partition("::")[0]).exists():
            left = getattr(namespace, argparse._UNRECOGNIZED_ARGS_ATTR, [])
            setattr(namespace, argparse._UNRECOGNIZED_ARGS_ATTR, [*left, values])
            values = ON
        setattr(namespace, self.dest, values)


_TYPES: Mapping[str, tuple[Literal["string", "linelist", "bool"], Any]] = {
    "text": ("string", "store"),
    "text or nothing": ("string", _MayHaveValue),
    "list": ("linelist", "append"),
    "flag": ("bool", "store_true"),
}
"""Kind of option → type of its ini key, action on the command line."""


def add_options(parser: pytest.Parser) -> None:
    """Register every option and ini key; both share name and description."""
    group = parser.getgroup("openclaw", "LLM benchmarks (pytest-openclaw)")
    for option in all_options():
        ini_type, action = _TYPES[option.kind]
        parser.addini(option.ini, option.help, type=ini_type, default=None)
        if option.where == "both":
            shown = {} if option.kind == "flag" else {"metavar": option.metavar}
            group.addoption(
                option.flag, dest=option.ini, action=action, default=None, help=option.help, **shown
            )


# --- the options of a session -------------------------------------------------------------------


def lookup(config: pytest.Config, name: str) -> tuple[Any, str]:
    """Return an option's value as given, and the option or ini key that gave it; (None, …) if unset."""
    option = by_name()[name]
    value = config.getoption(option.ini, None) if option.where == "both" else None
    if value is not None:
        return value, option.flag
    return config.getini(option.ini), option.ini


def is_used(config: pytest.Config) -> bool:
    """Whether this session may run cells: models, a benchmark or one of our options are given.

    This is cheap, because every pytest session in every project calls it.
    """
    return bool(lookup(config, "models")[0] or options_given(config) or named_benchmarks(config))


def options_given(config: pytest.Config) -> set[str]:
    """Return the names of our options that are on the command line."""
    return {option.name for option in all_options() if config.getoption(option.ini, None) is not None}


def base_dir(config: pytest.Config) -> Path:
    """Return the folder that paths of the ini file and defaults are relative to."""
    return config.inipath.parent if config.inipath else config.invocation_params.dir


def suite_dirs(config: pytest.Config) -> tuple[Path, ...]:
    """Return the folders of suites, absolute."""
    names = [name.strip() for name in config.getini("openclaw_suites") or ["benchmarks"] if name.strip()]
    return tuple(dict.fromkeys((base_dir(config) / name).resolve() for name in names))


def named_paths(config: pytest.Config) -> Iterator[Path]:
    """Yield the files and folders that the command line names."""
    for argument in config.getoption("file_or_dir", None) or ():
        path = config.invocation_params.dir / argument.partition("[")[0].split("::")[0]
        # `Path.resolve` of Python before 3.13 fails if links form a circle.
        yield Path(os.path.realpath(path))


def is_below(path: Path, folders: tuple[Path, ...]) -> bool:
    """Whether a path is one of these folders or inside one."""
    return any(path.is_relative_to(folder) for folder in folders)


def named_benchmarks(config: pytest.Config) -> tuple[Path, ...]:
    """Return the suite files, and the files and folders below a suite folder, that the command line names."""
    folders = suite_dirs(config)
    return tuple(
        path for path in named_paths(config) if SUITE_NAME.match(path.name) or is_below(path, folders)
    )
