"""Compute how many prompts and repeats it takes to detect a loss.

The model: a share of the prompts, which always passed, now always fails; every
other prompt passes as often as before, and two repeats of it differ with the
rate of --flips. A loss is detected if `compare` calls the target worse; both
runs have these prompts and repeats. Without repeats this is computed exactly,
with repeats to within a few hundredths.

--from measures this rate for each target of a run, and plans each of them: over
all pairs of repeats of a prompt, at the server's own temperature or above 0. A
target without such repeats has the assumed rate, 0.2: a cautious guess, which
asks for more prompts than needed where repeats agree more often.

Example:
  pytest-openclaw plan --detect 0.1
  pytest-openclaw plan --detect 0.05 --power 0.9 --from last
  pytest-openclaw plan --prompts 36 --repeats 5 --targets 3
"""

from __future__ import annotations

from dataclasses import asdict, dataclass
from typing import TYPE_CHECKING, Any

from pytest_openclaw.commands.result import CommandResult, add_runs_dir, run_path
from pytest_openclaw.core.errors import OpenClawError

if TYPE_CHECKING:
    import argparse
    from collections.abc import Callable, Sequence

    from pytest_openclaw.core.json_types import JsonObject
    from pytest_openclaw.types.records import Record

USUAL_FLIPS = 0.2
_ASSUMED = "assumed, not measured"
REPEATS = (1, 2, 3, 5, 10)


@dataclass(frozen=True, kw_only=True)
class Noise:
    """How often two repeats of a prompt differ.

    Attributes:
        flips: 0 to 1.
        is_assumed: whether nothing was measured.
        text: where it is from, as a sentence.
        facts: what it was measured from, for JSON; empty without a run.
    """

    flips: float
    is_assumed: bool
    text: str
    facts: JsonObject


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Add the arguments of `plan`."""
    parser.add_argument("--detect", type=_rate, metavar="LOSS", help="the loss to detect, such as 0.1")
    parser.add_argument(
        "--power",
        type=_rate,
        default=0.8,
        metavar="RATE",
        help="the probability of detecting it (0.8)",
    )
    parser.add_argument(
        "--flips",
        type=_rate_or_none,
        metavar="RATE",
        help="how often two repeats of a prompt differ (0.2, assumed)",
    )
    parser.add_argument(
        "--from",
        dest="source",
        metavar="RUN",
        help="measure the flips of each target in this run with repeats: directory, id, last",
    )
    parser.add_argument(
        "--prompts",
        type=_count,
        metavar="N",
        help="compute the loss that this many prompts can detect",
    )
    parser.add_argument(
        "--repeats", type=_count, metavar="R", help="only for this number of repeats (1, 2, 3, 5, 10)"
    )
    parser.add_argument(
        "--targets", type=_count, default=1, metavar="N", help="number of targets compared at once (1)"
    )
    add_runs_dir(parser)


def run(arguments: argparse.Namespace) -> CommandResult:
    """Compute, and show one line per number of repeats."""
    if arguments.detect is None and arguments.prompts is None:
        raise OpenClawError("set the loss to detect, --detect 0.1, or the number of prompts, --prompts 36")
    if arguments.source and arguments.flips is not None:
        raise OpenClawError("--flips and --from both set how often verdicts flip; use one of them")
    noises = _measured(arguments) if arguments.source else [_chosen(arguments.flips)]
    plans = [_plans(arguments, noise.flips) for noise in noises]
    lines = []
    for noise, (shown, _) in zip(noises, plans, strict=True):
        lines += [noise.text, "", *shown, ""]
    n_targets = arguments.targets
    over = f" of all {n_targets} targets" if n_targets > 1 else ""
    lines += [
        f"a real loss is detected in {_percent(arguments.power)} of cases,"
        f" one that is not real in at most 2.5 %{over};",
        "calls are for one target in one run; both runs need as many",
    ]
    most = max(range(len(noises)), key=lambda at: noises[at].flips)
    data = {
        "detect": arguments.detect,
        "power": arguments.power,
        "flips": noises[most].flips,
        "assumed": noises[most].is_assumed,
        "targets": n_targets,
        "plans": plans[most][1],
    }
    if arguments.source:
        data["by_target"] = [
            {**noise.facts, "flips": noise.flips, "assumed": noise.is_assumed, "plans": found}
            for noise, (_, found) in zip(noises, plans, strict=True)
        ]
    return CommandResult(lines=lines, data=data)


def _plans(arguments: argparse.Namespace, flips: float) -> tuple[list[str], list[JsonObject]]:
    """Return a line and an object for each number of repeats."""
    from pytest_openclaw.stats.power import MOST_PROMPTS, fewest_prompts, power, smallest_loss

    wanted, n_targets = arguments.power, arguments.targets
    lines, plans = [], []
    for repeats in (arguments.repeats,) if arguments.repeats else REPEATS:
        each: dict[str, Any] = {"repeats": repeats}
        n_prompts = arguments.prompts
        if n_prompts is None:
            n_prompts = fewest_prompts(repeats, flips, arguments.detect, wanted=wanted, n_targets=n_targets)
            each |= {"prompts": n_prompts, "calls": n_prompts and n_prompts * repeats}
            needed = (
                f"{n_prompts} prompts, {n_prompts * repeats} calls"
                if n_prompts
                else f"over {MOST_PROMPTS} prompts"
            )
            line = f"{_times(repeats):<16}{needed}"
        else:
            loss = smallest_loss(n_prompts, repeats, flips, wanted=wanted, n_targets=n_targets)
            each |= {"prompts": n_prompts, "calls": n_prompts * repeats, "smallest_loss": loss}
            seen = (
                "no loss is detected so often"
                if loss is None
                else f"a loss of {_points(loss)} points is detected"
            )
            line = f"{_times(repeats):<16}{seen}, {n_prompts * repeats} calls"
            if arguments.detect is not None:
                each["power"] = power(n_prompts, repeats, flips, arguments.detect, n_targets=n_targets)
                line += f"; one of {_points(arguments.detect)} points in {_percent(each['power'])} of cases"
        lines.append(line)
        plans.append(each)
    return lines, plans


def _chosen(flips: float | None) -> Noise:
    if flips is None:
        return Noise(
            flips=USUAL_FLIPS, is_assumed=True, text=f"{_differ(USUAL_FLIPS)} ({_ASSUMED})", facts={}
        )
    return Noise(flips=flips, is_assumed=False, text=_differ(flips), facts={})


def _measured(arguments: argparse.Namespace) -> list[Noise]:
    """Measure each target of the run."""
    from pytest_openclaw.stats.rates import is_judged
    from pytest_openclaw.stored.baseline import read_measured
    from pytest_openclaw.types.run_config import temperature_of

    source = read_measured(run_path(arguments.source, arguments.runs_dir))
    judged = [record for record in source.records if is_judged(record)]
    return [
        _noise(
            target.label,
            source.run_id,
            [record for record in judged if record.target == target],
            temperature_of(source.config, target),
        )
        for target in source.targets
    ]


def _noise(label: str, run_id: str, judged: Sequence[Record], temperature: float | str) -> Noise:
    """Measure a target, or say why it cannot be done and assume."""
    from pytest_openclaw.stats.intervals import percent_range
    from pytest_openclaw.stats.repeats import repeats_of
    from pytest_openclaw.types.settings import SERVER

    found = repeats_of(judged)
    facts: JsonObject = {"target": label, "run_id": run_id, "temperature": temperature}
    facts |= {"n_prompts": 0, "n_cells": 0, "n_differing": 0, "measured_flips": None, "interval_95": None}
    options = "--openclaw-repeat=5 --openclaw-temperature=server"
    why = f"{run_id} has no repeats of this target; measure with {options}"
    if found:
        facts |= {
            "n_prompts": len(found.prompts),
            "n_cells": sum(prompt.n for prompt in found.prompts),
            "n_differing": found.n_differing,
            "measured_flips": found.flip_rate,
            "interval_95": found.flip_interval_95 and asdict(found.flip_interval_95),
        }
        why = (
            f"the repeats in {run_id} are at temperature 0, where they differ in {_percent(found.flip_rate)};"
            " for more runs at 0 give that to --flips, else measure with --openclaw-temperature=server"
        )
    if not found or temperature == 0:
        text = f"{label}: {_differ(USUAL_FLIPS)} ({_ASSUMED}: {why})"
        return Noise(flips=USUAL_FLIPS, is_assumed=True, text=text, facts=facts)
    fewest, most = (pick(prompt.n for prompt in found.prompts) for pick in (min, max))
    times = f"{fewest}" if fewest == most else f"{fewest} to {most}"
    within = f" (95 %: {percent_range(found.flip_interval_95)})" if found.flip_interval_95 else ""
    at = "the server's own temperature" if temperature == SERVER else f"temperature {temperature:g}"
    text = (
        f"{label}: {_differ(found.flip_rate)}{within}, measured in {run_id}:"
        f" {len(found.prompts)} prompts, {times} repeats each, at {at}; {found.n_differing} of them differ"
    )
    return Noise(flips=found.flip_rate, is_assumed=False, text=text, facts=facts)


def _differ(flips: float) -> str:
    return f"two repeats of a prompt differ in {_percent(flips)} of cases"


def _times(repeats: int) -> str:
    return "asked once" if repeats == 1 else f"asked {repeats} times"


def _points(rate: float) -> str:
    return f"{rate * 100:.3g}"


def _percent(rate: float) -> str:
    return f"{_points(rate)} %"


def _checked(parse: Callable[[str], Any], fits: Callable[[Any], bool], hint: str) -> Callable[[str], Any]:
    import argparse

    def read(text: str) -> Any:
        try:
            value = parse(text)
        except ValueError:
            value = None
        if value is None or not fits(value):
            raise argparse.ArgumentTypeError(f"{text}: {hint}")
        return value

    return read


_rate = _checked(float, lambda value: 0 < value < 1, "give a rate between 0 and 1, such as 0.1")
_rate_or_none = _checked(float, lambda value: 0 <= value <= 1, "give a rate from 0 to 1, such as 0.2")
_count = _checked(int, lambda value: 0 < value <= 100_000, "give a number from 1 to 100000")
