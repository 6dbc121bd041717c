"""Write a page of many shared results, in groups that the evidence supports.

The first group has the targets that no other one is shown to be better than;
then come those that are shown to be worse, those that cannot be compared with
any other (no tool prompt in common, or other conditions), and last those that
are unsafe or not to be trusted with tools, whatever their rate.

Example:
  pytest-openclaw leaderboard "results/*.json" --out leaderboard.html
"""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

from pytest_openclaw.commands.result import CommandResult, file_paths, write_over_ours
from pytest_openclaw.core.text import counted

if TYPE_CHECKING:
    import argparse


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Add the arguments of `leaderboard`."""
    parser.add_argument("files", nargs="+", metavar="FILE", help="a file of `publish`, or a glob of them")
    parser.add_argument("--out", required=True, type=Path, metavar="PAGE", help="the page to write")


def run(arguments: argparse.Namespace) -> CommandResult:
    """Write the page."""
    from pytest_openclaw.reports.html.page import FIRST_WORDS, render_plain
    from pytest_openclaw.reports.shared_text import rank, render_leaderboard
    from pytest_openclaw.stored.publishing import read_result

    results = [one for path in file_paths(arguments.files) for one in read_result(path)]
    ranking = rank(results)
    page = render_plain("Leaderboard · OpenClaw benchmark", render_leaderboard(ranking))
    write_over_ours(arguments.out, page, FIRST_WORDS, "page")
    best = ", ".join(one.name for one in ranking.best)
    return CommandResult(
        lines=[
            f"{counted(len(results), 'result')}; not shown to be worse than the best: {best or 'none'}",
            f"wrote {arguments.out}",
        ],
        data={
            "into": str(arguments.out),
            **{
                name: [{"target": one.name, "file": one.source} for one in group]
                for name, group in ranking._asdict().items()
            },
        },
    )
