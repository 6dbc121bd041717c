"""Show whether one run is better or worse than another, cell by cell.

Cells with replies in both runs are compared: verdicts by the exact test of
McNemar (with repeats, by a randomization test), times, tokens and cost as
ratios. A word such as "worse" appears only if chance would produce it in fewer
than 5 of 100 pairs of equal runs, over all targets together. Cells that were
asked, judged or served differently are set aside, with the reason; --across
compares them too, to show the effect of a changed prompt, model or server.

Targets that both runs have are compared. If the runs have no target in common
and only one each, these two are compared; --target selects others.
`gate --baseline` fails a run that is worse.

Example:
  pytest-openclaw compare 20260213_235930 last
  pytest-openclaw compare before after --across serving,validator
  pytest-openclaw compare a b --target ollama_native/x=ollama_native/y
"""

from __future__ import annotations

from dataclasses import asdict
from typing import TYPE_CHECKING

from pytest_openclaw.cli.result import (
    Command,
    CommandResult,
    add_across,
    add_runs_dir,
    run_path,
    terminal_width,
)
from pytest_openclaw.conclusions.run_comparison import compare_runs, named_targets, parse_across
from pytest_openclaw.reports.terminal import render_comparison
from pytest_openclaw.runs.reading import load_run

if TYPE_CHECKING:
    import argparse


def _add_arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("base", metavar="BASE", help="the baseline: its directory, its id, or last")
    parser.add_argument("candidate", metavar="CANDIDATE", help="the run to compare with the baseline")
    add_across(parser)
    parser.add_argument(
        "--target",
        action="append",
        metavar="BASE=CANDIDATE",
        help="compare this target of BASE with this target of CANDIDATE; may be repeated",
    )
    add_runs_dir(parser)


def _run(arguments: argparse.Namespace) -> CommandResult:
    across = parse_across(arguments.across)
    candidate = load_run(run_path(arguments.candidate, arguments.runs_dir), even_active=True).measured
    base = load_run(run_path(arguments.base, arguments.runs_dir), even_active=True).measured
    targets = named_targets(base, candidate, arguments.target) if arguments.target else None
    compared = compare_runs(base, candidate, across=across, targets=targets)
    return CommandResult(
        lines=[f"{base.run_id} -> {candidate.run_id}", "", *render_comparison(compared, terminal_width())],
        data={**asdict(compared), "candidate": candidate.run_id},
    )


COMMANDS = (Command(name="compare", help=__doc__, add_arguments=_add_arguments, run=_run),)
