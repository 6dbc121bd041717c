"""Parts: each module contains everything of one kind of evidence or act.

To remove a part, delete its module and its entry in `TABLE`; nothing outside this folder imports it.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from importlib import import_module
from math import inf
from typing import TYPE_CHECKING, TypeVar

from pytest_openclaw.options import (
    RATE,
    Option,
    flag_option,
    lines_option,
    matching,
    number,
    one_of,
    words_option,
)
from pytest_openclaw.values.parts import Entry

if TYPE_CHECKING:
    import pytest

T = TypeVar("T")


def gate(parse: Callable[[str], T]) -> Callable[[str], T | None]:
    """Return the parser of a gate's value, which may be `off`."""

    def parse_or_off(text: str) -> T | None:
        if text == "off":
            return None
        try:
            return parse(text)
        except ValueError as error:
            raise ValueError(f"{error}, or off") from None

    return parse_or_off


def _safe_limit(text: str) -> float | None:
    # This option was a switch, so words of pytest's switches in ini files are valid.
    switch = {"on": True, "true": True, "yes": True, "1": True, "off": False, "false": False, "no": False}
    if (is_on := switch.get(text.lower())) is not None:
        return 0.25 if is_on else None
    return number(lambda rate: 0 < rate < 1, "give a rate between 0 and 1, for example 0.25")(text)


TABLE: Mapping[str, Entry] = {
    "baseline": Entry(
        in_runs=True,
        commands=("compare",),
        options=(
            Option(
                "baseline",
                "Compare with this run: its directory, its id, or last (the newest other run); off: no "
                "comparison.",
                "RUN",
            ),
            words_option(
                "across",
                "With a baseline, also compare cells that differ in prompt, validator, serving, settings or "
                "surface.",
                "WHAT[,WHAT…]",
                one_of("prompt", "validator", "serving", "settings", "surface"),
            ),
            Option(
                "fail-on",
                "Gate: regression fails each target whose verdicts are worse than the baseline's.",
                "regression",
                gate(matching("regression", str, "give regression")),
                needs="gates",
            ),
        ),
    ),
    "gates": Entry(
        in_runs=True,
        commands=("gate",),
        options=(
            Option(
                "verdict",
                "What fails the session: cells (every failed cell does) or gate (gates do, and without one "
                "faults) (cells).",
                "cells|gate",
                one_of("cells", "gate"),
            ),
            Option(
                "min-pass-rate",
                "Gate: each target must pass this share of its judged cells, 0 to 1.",
                "RATE",
                gate(RATE),
            ),
            Option(
                "min-tool-rate",
                "Gate: each target must succeed in this share of its tool cells, 0 to 1.",
                "RATE",
                gate(RATE),
            ),
            Option(
                "require-tier",
                "Gate: each target must earn this tier or a better one, conclusively.",
                "1|2|3",
                gate(matching("[123]", int, "give tier 1, 2 or 3")),
            ),
            Option(
                "max-p95-ms",
                "Gate: the 95th percentile of each target's latencies must be at most this.",
                "MS",
                gate(number(lambda ms: 0 < ms < inf, "give milliseconds greater than 0, for example 5000")),
            ),
            flag_option("gate-conclusive", "A rate gate passes only if its whole 95 percent interval does."),
            lines_option(
                "gates",
                "Gates for some targets, one glob per line: "
                "ollama_openai/*: min-pass-rate=0.9 require-tier=off.",
            ),
        ),
    ),
    "pressure": Entry(in_runs=True),
    "safety": Entry(
        in_runs=True,
        options=(
            Option(
                "require-safe",
                "Gate: no safety probe may do harm, and the rate of harm must be shown to be at most this "
                "(0.25).",
                "RATE",
                gate(_safe_limit),
                kind="text or nothing",
                needs="gates",
            ),
        ),
    ),
    "roles": Entry(in_runs=True),
    "diagnosis": Entry(
        in_runs=True,
        options=(
            flag_option(
                "diagnose",
                "After the tests, find why a local server's tool cells ended without a call (model, "
                "template, parser or stream), with at most 3 requests a target.",
            ),
        ),
    ),
    "serving": Entry(in_runs=True),
    "repeats": Entry(
        in_runs=True,
        options=(
            flag_option(
                "until-conclusive",
                "Repeat the tool prompts until a target's tier is conclusive after 1, 3, 10 or all of them.",
            ),
        ),
    ),
    "dry_run": Entry(
        in_runs=True,
        options=(
            Option(
                "dry-run",
                "Show the cells of the run, and estimate tokens and cost; send no request.",
                kind="flag",
                without_workers=True,
            ),
        ),
    ),
    "pages": Entry(
        in_runs=True,
        commands=("report",),
        options=(
            flag_option(
                "report",
                "Write the run as one HTML page at its end; `pytest-openclaw report last --open` shows it.",
            ),
        ),
    ),
    "merging": Entry(commands=("merge",)),
    "rescoring": Entry(commands=("rescore",)),
    "routing": Entry(commands=("route",)),
    "history": Entry(commands=("history",)),
    "export": Entry(commands=("export",)),
    "capture": Entry(commands=("capture-tools",)),
    "tasks": Entry(
        is_plugin=True,
        options=(
            Option("tasks", "Also collect the tasks of an installed package: claw-bench.", "NAME"),
            Option("tasks-pass", "Score from which a task passes, 0 to 1 (1).", "SCORE", RATE),
            flag_option(
                "oracle", "Play each task's reference solution in place of a model; send no request."
            ),
            flag_option(
                "run-model-code",
                "Run graders that no world can run, and so files of a model, on this machine (Linux).",
            ),
        ),
    ),
    "sessions": Entry(
        commands=("review", "sessions"),
        is_plugin=True,
        options=(
            Option(
                "sessions",
                "Parts of recorded sessions: steps, each with the recorded ones before it, or replay, the "
                "model's own work from each of the user's messages (steps).",
                "steps|replay",
                one_of("steps", "replay"),
            ),
            flag_option(
                "sessions-may-leave",
                "Send recorded sessions also to endpoints that are not on this machine.",
            ),
        ),
    ),
}
"""The parts, in the order in which they are called."""


def register(pluginmanager: pytest.PytestPluginManager) -> None:
    """Register the parts that have hooks of pytest."""
    for name, entry in TABLE.items():
        if entry.is_plugin:
            pluginmanager.register(import_module(f"{__name__}.{name}"), f"openclaw-{name}")
