"""Place a run beside shared results, prompt by prompt.

Each target of the run is compared with each target of the files over the tool
prompts that both were asked: the difference in points, its 95 % interval, and
whether it is shown. What is not comparable is named: no prompt in common, or
another temperature, surface or other setting.

Example:
  pytest-openclaw compare-to results/qwen3.json results/smollm2.json
  pytest-openclaw compare-to "results/*.json" --run 20260213_235930
"""

from __future__ import annotations

from dataclasses import asdict
from typing import TYPE_CHECKING

from pytest_openclaw.commands.result import (
    CommandResult,
    add_runs_dir,
    file_paths,
    read_run,
    terminal_width,
)
from pytest_openclaw.core.clock import epoch_ms

if TYPE_CHECKING:
    import argparse


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Add the arguments of `compare-to`."""
    parser.add_argument("files", nargs="+", metavar="FILE", help="a file of `publish`, or a glob of them")
    parser.add_argument(
        "--run", default="last", metavar="RUN", help="the run's directory, its id, or last (last)"
    )
    add_runs_dir(parser)


def run(arguments: argparse.Namespace) -> CommandResult:
    """Compare."""
    from pytest_openclaw.reports.shared_text import render_beside
    from pytest_openclaw.stats.shared_results import compare_shared
    from pytest_openclaw.stored.publishing import parse_result, read_result, result_of
    from pytest_openclaw.stored.summaries import summary_of

    part = read_run(arguments)
    own = parse_result(part.run.path, result_of(part, summary_of(part), epoch_ms()))
    shared = [one for path in file_paths(arguments.files) for one in read_result(path)]
    return CommandResult(
        lines=[*render_beside(own, shared, terminal_width())],
        data={
            "run": part.name,
            "comparisons": [
                {"target": one.name, "file": other.source, "with": other.name,
                 **asdict(compare_shared(one, other))}
                for one in own
                for other in shared
            ],
        },
        warnings=part.shortcomings,
    )  # fmt: skip
