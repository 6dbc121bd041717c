"""Apply gates to a stored run, for example one that was merged from shards.

Without gates on the command line, the run's own gates apply. An option changes
a gate for every target, and `off` switches it off; --gates takes a line of the
ini key openclaw_gates, which changes gates for some targets. Each gate is shown
on a line with its reason.

With --write, summary.json and the reports, such as summary.md, are rewritten
with the gates and the comparison; the rows are unchanged.

Exit status: 0 passed, 1 failed, 10 no verdict (as in pytest; never a pass), 4
error.

Example:
  pytest-openclaw gate last --min-pass-rate 0.9 --require-tier 1
  pytest-openclaw gate last --require-safe
  pytest-openclaw gate last --baseline main --fail-on regression
  pytest-openclaw gate whole --gates "*qwen*: max-p95-ms=5000"
"""

from __future__ import annotations

import argparse
from dataclasses import asdict, replace
from typing import TYPE_CHECKING, Any

from pytest_openclaw.cli.project import plugins_of
from pytest_openclaw.cli.result import (
    Command,
    CommandResult,
    add_across,
    add_rootdir,
    add_run,
    or_argument_error,
    read_run,
)
from pytest_openclaw.conclusions.run_comparison import parse_across
from pytest_openclaw.conclusions.summary import to_json
from pytest_openclaw.options import ON, OPTIONS
from pytest_openclaw.reports.blocks import Finding
from pytest_openclaw.reports.facts import comparison_findings, gate_findings
from pytest_openclaw.reports.terminal import LABEL_WIDTH
from pytest_openclaw.runs.directory import SUMMARY, RunDirectory
from pytest_openclaw.runs.reading import read_baseline
from pytest_openclaw.runs.summaries import gated_summary
from pytest_openclaw.session.settings import parse_gate_line
from pytest_openclaw.util.errors import OpenClawError
from pytest_openclaw.util.signals import epoch_ms
from pytest_openclaw.values.settings import GATE_OPTIONS, GATE_SWITCHES, Gates, firm_gates

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

    from pytest_openclaw.conclusions.summary import Summary
    from pytest_openclaw.runs.reading import StoredRun

STATUS = {"passed": 0, "failed": 1, "no_verdict": 10}
_FOR_EXAMPLE = "for example --min-pass-rate 0.9, or --baseline RUN --fail-on regression"


def _add_arguments(parser: argparse.ArgumentParser) -> None:
    add_run(parser)
    fields = {option: field for field, option in GATE_OPTIONS.items()}
    for option in OPTIONS:
        if (field := fields.get(option.name)) is None:
            continue
        text = option.help.removeprefix("Gate: ").removesuffix(".")
        shared: dict[str, Any] = {"dest": field, "default": argparse.SUPPRESS}
        if field in GATE_SWITCHES or option.parse is None:
            parser.add_argument(f"--{option.name}", action="store_true", help=text, **shared)
        else:
            read, help_ = or_argument_error(option.parse), f"{text}; or off"
            shared |= {"nargs": "?", "const": ON} if option.kind == "text or nothing" else {}
            parser.add_argument(f"--{option.name}", type=read, metavar=option.metavar, help=help_, **shared)
    parser.add_argument(
        "--gates",
        action="append",
        type=or_argument_error(parse_gate_line),
        default=[],
        metavar="LINE",
        help='gates for some targets, "GLOB: min-pass-rate=0.9 require-tier=off"; may be repeated',
    )
    parser.add_argument("--baseline", metavar="RUN", help="the run to compare with")
    add_across(parser)
    parser.add_argument(
        "--write", action="store_true", help="rewrite the run's summary and reports with the gates"
    )
    add_rootdir(parser, "with --write: the project's root folder, whose reports are written too")


def _run(arguments: argparse.Namespace) -> CommandResult:
    across = parse_across(arguments.across)
    run = read_run(arguments)
    gates = _gates(arguments, run)
    named = arguments.baseline
    baseline = read_baseline(named, arguments.runs_dir, besides=run.path) if named else None
    summary = replace(gated_summary(run, gates, baseline, across), generated_at_ms=epoch_ms())
    if not summary.gates:
        globs = ", ".join(summary.unmatched_gates)
        raise OpenClawError(f"{run.name}: no gate applies to any of its targets ({globs}); {_FOR_EXAMPLE}")
    warnings = _write(run, summary, arguments.rootdir) if arguments.write else []
    return CommandResult(
        lines=[*_gate_lines(summary, run.path if arguments.write else None)],
        data={
            "run": run.name,
            "verdict": summary.verdict,
            "gates": [asdict(gate) for gate in summary.gates],
            "unmatched_gates": list(summary.unmatched_gates),
            "comparison": summary.comparison and asdict(summary.comparison),
            "wrote": arguments.write,
            "notes": run.shortcomings,
        },
        status=STATUS[summary.verdict],
        warnings=[*run.shortcomings, *warnings],
    )


def _gates(arguments: argparse.Namespace, run: StoredRun) -> Gates:
    """Return the run's own gates, changed by the options.

    Raises:
        OpenClawError: no gate is set, or there is no baseline to compare with.
    """
    given = {name: getattr(arguments, name) for name in GATE_OPTIONS if hasattr(arguments, name)}
    own = run.gates or Gates()
    own = replace(own, by_target=(*own.by_target, *arguments.gates))
    gates = firm_gates(own, Gates(**given), {GATE_OPTIONS[name] for name in given})
    if all(replace(each, conclusive=False, by_target=()) == Gates() for each in gates.all_gates):
        differ = "its parts had different gates; name those that count"
        why = differ if run.gates is None else "it has no gate of its own; name one"
        raise OpenClawError(f"{run.name}: {why}, {_FOR_EXAMPLE}")
    compared = [each.fail_on for each in gates.all_gates if each.fail_on]
    if compared and not arguments.baseline:
        raise OpenClawError(f"--fail-on {compared[0]} needs a run to compare with: add --baseline RUN")
    return gates


def _write(run: StoredRun, summary: Summary, root: Path) -> list[str]:
    """Rewrite a run's summary and reports; return warnings about plugins."""
    plugins, warnings = plugins_of(root)
    with RunDirectory.reopen(run.path) as directory:
        directory.write_json(SUMMARY, to_json(summary))
        plugins.write_reports(directory, summary)
    return [*warnings, *plugins.complaints]


def _gate_lines(summary: Summary, wrote: Path | None) -> Iterator[str]:
    found = [*gate_findings(summary), *comparison_findings(summary)]
    if wrote:
        found.append(Finding(label="wrote", text=str(wrote / "summary.md")))
    for finding in found:
        yield f"{finding.label:<{LABEL_WIDTH}}{finding.text}"
    yield ""
    yield summary.verdict.replace("_", " ")


COMMANDS = (Command(name="gate", help=__doc__, add_arguments=_add_arguments, run=_run),)
