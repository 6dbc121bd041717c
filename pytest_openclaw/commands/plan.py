"""Compute how many prompts and repeats it takes to detect a loss.

The model: a share of the prompts, which always passed, now always fails; every
other prompt passes as often as before, and two repeats of it differ with the
rate of --flips. A loss is detected if `compare` calls the target worse; both
runs have these prompts and repeats. Without repeats this is computed exactly,
with repeats to within a few hundredths.

A run with repeats knows its flips (--from): how often two repeats of a prompt
differ, counted over all pairs. The default, 0.2, is a cautious guess: it asks
for more prompts than needed where repeats agree more often.

Example:
  pytest-openclaw plan --detect 0.1
  pytest-openclaw plan --detect 0.05 --power 0.9 --from last
  pytest-openclaw plan --prompts 36 --repeats 5 --targets 3
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from pytest_openclaw.commands.result import CommandResult, add_runs_dir, run_path
from pytest_openclaw.core.errors import OpenClawError

if TYPE_CHECKING:
    import argparse
    from collections.abc import Callable

    from pytest_openclaw.stats.repeats import Repeats

USUAL_FLIPS = 0.2
REPEATS = (1, 2, 3, 5, 10)


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
        "--flips", type=_rate_or_none, metavar="RATE", help="how often two repeats of a prompt differ (0.2)"
    )
    parser.add_argument(
        "--from",
        dest="source",
        metavar="RUN",
        help="use the flips of this run with repeats: directory, id, last",
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
    from pytest_openclaw.stats.power import MOST_PROMPTS, fewest_prompts, power, smallest_loss

    if arguments.detect is None and arguments.prompts is None:
        raise OpenClawError("set the loss to detect, --detect 0.1, or the number of prompts, --prompts 36")
    if arguments.source and arguments.flips is not None:
        raise OpenClawError("--flips and --from both set how often verdicts flip; use one of them")
    flips, heading = _flips(arguments)
    wanted, n_targets = arguments.power, arguments.targets
    lines, found = [heading, ""], []
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
        found.append(each)
    over = f" of all {n_targets} targets" if n_targets > 1 else ""
    lines += [
        "",
        f"a real loss is detected in {_percent(wanted)} of cases,"
        f" one that is not real in at most 2.5 %{over};",
    ]
    lines += ["calls are for one target in one run; both runs need as many"]
    data = {"detect": arguments.detect, "power": wanted, "flips": flips, "targets": n_targets, "plans": found}
    return CommandResult(lines=lines, data=data)


def _flips(arguments: argparse.Namespace) -> tuple[float, str]:
    if not arguments.source:
        flips = USUAL_FLIPS if arguments.flips is None else arguments.flips
        return flips, f"two repeats of a prompt differ in {_percent(flips)} of cases"
    from pytest_openclaw.stats.rates import is_judged
    from pytest_openclaw.stats.repeats import repeats_of
    from pytest_openclaw.stored.baseline import read_measured

    source = read_measured(run_path(arguments.source, arguments.runs_dir))
    judged = [record for record in source.records if is_judged(record)]
    found: dict[str, Repeats | None] = {
        target.label: repeats_of(record for record in judged if record.target == target)
        for target in source.targets
    }
    known = {label: repeats for label, repeats in found.items() if repeats}
    if not known:
        raise OpenClawError(
            f"{source.run_id} has no repeats; measure with --openclaw-repeat=5, or set --flips"
        )
    label, most = max(known.items(), key=lambda item: item[1].flip_rate)
    of = f"of {len(most.prompts)} prompts on {label}" + (", the unsteadiest target" if len(known) > 1 else "")
    return (
        most.flip_rate,
        f"two repeats of a prompt differ in {_percent(most.flip_rate)} of cases, by the repeats {of}",
    )


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
