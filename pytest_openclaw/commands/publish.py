"""Write the figures of a run without texts, to share; or check such a file.

The file has rates with intervals, tiers, recommendations, times, the machine,
how each model was served, and for each prompt a digest and counts. It contains
no prompt, no reply, no address and no host name.

A FILE is checked instead: its format, and that its parts fit together.

Example:
  pytest-openclaw publish last --into results/smollm2.json
  pytest-openclaw publish results/smollm2.json
"""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

from pytest_openclaw.commands.result import CommandResult, add_run, read_run, write_over_ours
from pytest_openclaw.core.clock import epoch_ms
from pytest_openclaw.core.text import counted

if TYPE_CHECKING:
    import argparse

FILE = "result.json"


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Add the arguments of `publish`."""
    add_run(parser)
    parser.add_argument("--into", metavar="FILE", help=f"the file to write, with its folder (RUN/{FILE})")


def run(arguments: argparse.Namespace) -> CommandResult:
    """Write the file, or check it."""
    from pytest_openclaw.stored.publishing import read_result, render_result, result_of
    from pytest_openclaw.stored.summaries import summary_of

    if Path(arguments.run).is_file():
        results = read_result(Path(arguments.run))
        names = [one.name for one in results]
        return CommandResult(
            lines=[
                f"{arguments.run} is a result file of {counted(len(names), 'target')}: {', '.join(names)}"
            ],
            data={"file": arguments.run, "targets": names},
        )
    part = read_run(arguments)
    content = result_of(part, summary_of(part), epoch_ms())
    into = Path(arguments.into) if arguments.into else part.run.path / FILE
    text = render_result(content)
    into.parent.mkdir(parents=True, exist_ok=True)
    write_over_ours(into, text, text[: text.index(",")], "result file")
    n_targets, n_prompts = len(content["targets"]), len(content["prompts"])
    size = f"{into.stat().st_size / 1e3:.0f} kB"
    return CommandResult(
        lines=[
            f"{counted(n_targets, 'target')}, {counted(n_prompts, 'prompt')}, {size}",
            f"wrote {into}",
        ],
        data={"run": part.name, "into": str(into), "n_targets": n_targets, "n_prompts": n_prompts},
        warnings=part.shortcomings,
    )
