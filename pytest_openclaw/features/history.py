"""Show how targets did over the runs of a folder, oldest first.

One block per target: pass rate, median latency, tokens per second and tier of
each run, each with its 95 % interval, or ? if there are too few cells for one.
* marks a run whose prompts or validators differ from those of the run before,
so that the two rates measure different things. Merged, rescored, interrupted
and active runs are marked. A run that cannot be read is a warning.

Figures are from summary.json if it includes all rows, otherwise computed from
the rows; --suite always computes them.

Example:
  pytest-openclaw history
  pytest-openclaw history ci-runs --target "ollama*" --suite "*core*"
"""

from __future__ import annotations

import hashlib
import json
from dataclasses import dataclass, replace
from functools import partial
from itertools import pairwise
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal

from pytest_openclaw.cli.result import (
    Command,
    CommandResult,
    add_runs_dir,
    add_target,
    fits,
    suite_fits,
    terminal_width,
)
from pytest_openclaw.reports.blocks import Finding, Findings, Section, Table, section_data, table_lines
from pytest_openclaw.reports.facts import Figure, render_intervals
from pytest_openclaw.reports.html.page import element, render_file
from pytest_openclaw.reports.numbers import (
    DASH,
    WIDTH,
    one_line,
    render_count,
    render_interval,
    render_tier,
    render_time,
)
from pytest_openclaw.reports.sections import rate_point, rates_chart
from pytest_openclaw.runs.directory import CONFIG, RESULTS, is_active, is_unbegun
from pytest_openclaw.runs.reading import load_config, load_run, target_of
from pytest_openclaw.runs.summaries import groups_of, stored_summary
from pytest_openclaw.stats.intervals import stored_interval
from pytest_openclaw.util.errors import OpenClawError
from pytest_openclaw.util.files import is_there
from pytest_openclaw.values.settings import looks_of

if TYPE_CHECKING:
    import argparse
    from collections.abc import Callable, Iterator, Mapping, Sequence

    from pytest_openclaw.util.files import JsonObject
    from pytest_openclaw.values.requests import Target

State = Literal["finished", "interrupted", "under way"]
Kind = Literal["measured", "merged", "rescored"]

MOST_BARS = 30
LABEL_WIDTH = 64
HEADERS = ("run", "ended", "passed", "95% CI", "p50", "tok/s", "tier", "tools", "note")
LEFT_OUT_FIRST = ("tok/s", "p50", "95% CI", "ended")
OTHER_PROMPTS = "* other prompts or validators than in the run before it"
BARS = "▁▂▃▄▅▆▇█"


@dataclass(frozen=True, kw_only=True)
class Entry:
    """A target in a run.

    Attributes:
        ended_at_ms: when the run ended, or wrote its last row.
        kind: the origin of its rows.
        group: the figures, as in `summary.json`.
        n_cells: cells of the target that were selected; None if the run does not say.
        prompts: distinguishes two selections of prompts.
        has_other_prompts: whether they are others than in the target's run before; None in its first.
    """

    path: Path
    ended_at_ms: int
    state: State
    kind: Kind
    target: Target
    group: Mapping[str, Any]
    n_cells: int | None
    prompts: str
    has_other_prompts: bool | None = None

    @property
    def notes(self) -> list[str]:
        """What is not ordinary about the run, in words: `rescored`, `partial: 12 of 36 cells`."""
        found: list[str] = [] if self.kind == "measured" else [self.kind]
        if not self.group["n_ok"]:
            found.append("no cell answered")
        if self.state != "finished":
            n_rows = self.group["n_total"]
            count = f": {n_rows} of {self.n_cells} cells" if self.n_cells else ""
            found.append(f"{'partial' if self.state == 'interrupted' else self.state}{count}")
        return found


def render_history(entries: Mapping[Target, Sequence[Entry]], width: int = WIDTH) -> Iterator[str]:
    """Yield a block for each target, with a line for each run and a bar for each pass rate."""
    if not entries:
        yield "no run has such a target"
    for n, (target, runs) in enumerate(entries.items()):
        if n:
            yield ""
        rates = [run.group["passed"]["rate"] for run in runs[-MOST_BARS:]]
        bars = "".join(" " if rate is None else BARS[round(rate * (len(BARS) - 1))] for rate in rates)
        trend = f"  passed {bars}" if len(runs) > 1 else ""
        yield f"{one_line(target.label, width - len(trend))}{trend}"
        yield from table_lines(history_table(runs), width)
    if _has_other_prompts(entries):
        yield from ("", OTHER_PROMPTS)


def _has_other_prompts(entries: Mapping[Target, Sequence[Entry]]) -> bool:
    return any(run.has_other_prompts for runs in entries.values() for run in runs)


def history_table(runs: Sequence[Entry]) -> Table:
    """Return the figures of a target in some runs."""
    return Table(
        head=HEADERS,
        rows=[_row(run) for run in runs],
        words=("ended", "tier", "note"),
        drop=LEFT_OUT_FIRST,
        caption="Runs",
        below=[_intervals(run) for run in runs],
    )


def _row(run: Entry) -> tuple[str, ...]:
    group, passed, use = run.group, run.group["passed"], run.group["tool_use"]
    return (
        run.path.name,
        render_time(run.ended_at_ms, "%Y-%m-%d") if run.ended_at_ms else DASH,
        f"{passed['n_success']}/{passed['n']}{'*' if run.has_other_prompts else ''}" if passed["n"] else DASH,
        render_interval(stored_interval(passed["interval_95"])),
        *(figure.short for figure in _figures(group).values()),
        _tier(use),
        f"{use['n_success']}/{use['n']}" if use["n"] else "",
        ", ".join(run.notes),
    )


def _intervals(run: Entry) -> str:
    return render_intervals(stored_interval(run.group["tool_use"]["interval_95"]), _figures(run.group))


def _figures(group: Mapping[str, Any]) -> dict[str, Figure]:
    speed = Figure(group["tokens_per_s"], stored_interval(group["tokens_per_s_interval_95"]), render_count)
    latency = Figure(group["latency_ms"]["p50"], stored_interval(group["latency_intervals_95"]["p50"]))
    return {"p50": latency, "tok/s": speed}


def render_index(history: Mapping[Target, Sequence[Entry]], links: Mapping[Path, str]) -> str:
    """Return the page of all runs of a folder."""
    n_runs = len({run.path for runs in history.values() for run in runs})
    sections = [_section(n, target, runs, links) for n, (target, runs) in enumerate(history.items(), 1)]
    page = {
        "header": {
            "title": "All runs",
            "facts": [("runs", f"{n_runs}"), ("targets", f"{len(history)}")],
            "notes": [OTHER_PROMPTS] if _has_other_prompts(history) else [],
        },
        "sections": [*map(section_data, sections)],
    }
    return render_file("All runs · OpenClaw benchmark", "index.html", [element("page", page)])


def _section(number: int, target: Target, runs: Sequence[Entry], links: Mapping[Path, str]) -> Section:
    """Return a target's rates over time, the changes of its tier, and its runs, the newest one first."""
    name = "tool_use" if any(run.group["tool_use"]["n"] for run in runs) else "passed"
    points = [
        rate_point(
            run.path.name, rate["rate"], stored_interval(rate["interval_95"]), rate["n_success"], rate["n"]
        )
        for run in runs
        if (rate := run.group[name])["n"]
    ]
    uses = [(run.path.name, run.group["tool_use"]) for run in runs if run.group["tool_use"]["tier"]]
    changes = [
        Finding(label="tier", text=f"{_tier(before)} → {_tier(after)} in {run}")
        for (_, before), (run, after) in pairwise(uses)
        if before["tier"] != after["tier"]
    ]
    newest_first = [*reversed(runs)]
    table = replace(history_table(newest_first), links=[links[run.path] for run in newest_first])
    return Section(
        id=f"target-{number}",
        title=one_line(target.label, LABEL_WIDTH),
        blocks=[rates_chart(points, is_of_tools=name == "tool_use"), Findings(entries=changes), table],
    )


def _tier(use: Mapping[str, Any]) -> str:
    return render_tier(use["tier"], use["conclusive"])


def _add_arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument(
        "folder", nargs="?", type=Path, metavar="RUNS_DIR", help="the folder of runs (that of --runs-dir)"
    )
    add_target(parser)
    parser.add_argument("--suite", metavar="GLOB", help="the cells of these suites, by path or file name")
    add_runs_dir(parser)


def _run(arguments: argparse.Namespace) -> CommandResult:
    folder = arguments.folder or arguments.runs_dir
    if not folder.is_dir():
        raise OpenClawError(f"there is no folder of runs {folder}")
    history = read_history(
        folder,
        lambda label: fits(label, arguments.target),
        partial(suite_fits, glob=arguments.suite) if arguments.suite else None,
    )
    if not history.n_runs and not history.unreadable:
        raise OpenClawError(f"there is no run in {folder}")
    return CommandResult(
        lines=[*render_history(history.entries, terminal_width())],
        data={
            "runs_dir": str(folder),
            "n_runs": history.n_runs,
            "targets": [
                {"target": target.label, "runs": [_as_json(entry) for entry in entries]}
                for target, entries in history.entries.items()
            ],
            "unreadable": [{"path": str(path), "reason": reason} for path, reason in history.unreadable],
        },
        warnings=[reason for _, reason in history.unreadable],
    )


def _as_json(entry: Entry) -> JsonObject:
    group, rate = entry.group, ("n", "n_success", "rate", "interval_95")
    return {
        "run_id": entry.path.name,
        "path": str(entry.path),
        **{key: getattr(entry, key) for key in ("ended_at_ms", "state", "kind", "has_other_prompts")},
        **{key: group[key] for key in ("n_total", "n_ok", "tokens_per_s", "tokens_per_s_interval_95")},
        "passed": {key: group["passed"][key] for key in rate},
        "tool_use": {key: group["tool_use"][key] for key in (*rate, "tier", "conclusive")},
        "p50_ms": group["latency_ms"]["p50"],
        "p50_interval_95": group["latency_intervals_95"]["p50"],
    }


# --- the figures ----------------------------------------------------------------------------------


@dataclass(frozen=True, kw_only=True)
class History:
    """The history in a folder of runs.

    Attributes:
        entries: by target, in order of their first run, each oldest first.
        n_runs: runs that were read.
        unreadable: runs that cannot be read, with the reason.
    """

    entries: Mapping[Target, Sequence[Entry]]
    n_runs: int
    unreadable: Sequence[tuple[Path, str]]


def read_history(
    runs_dir: Path,
    wants_target: Callable[[str], bool],
    wants_suite: Callable[[str], bool] | None = None,
) -> History:
    """Read every run of a folder.

    Args:
        runs_dir: the folder.
        wants_target: selects targets by label.
        wants_suite: selects suites by their names in rows; figures then come from rows, which is slower.

    Raises:
        OSError: the folder cannot be read.
    """
    entries: list[Entry] = []
    unreadable: list[tuple[Path, str]] = []
    n_runs = 0
    for path in sorted(runs_dir.iterdir()):
        try:
            is_run = path.is_dir() and (is_there(path / CONFIG) or is_there(path / RESULTS))
            if is_run and not is_unbegun(path):
                entries += (one for one in _entries(path, wants_suite) if wants_target(one.target.label))
                n_runs += 1
        except OpenClawError as error:
            unreadable.append((path, str(error)))
        except OSError as error:
            unreadable.append((path, f"{error.filename or path}: {error.strerror or error}"))
    by_target: dict[Target, list[Entry]] = {}
    for entry in sorted(entries, key=lambda entry: (entry.ended_at_ms, entry.path.name)):
        earlier = by_target.setdefault(entry.target, [])
        changed = earlier[-1].prompts != entry.prompts if earlier else None
        earlier.append(replace(entry, has_other_prompts=changed))
    return History(entries=by_target, n_runs=n_runs, unreadable=unreadable)


def _entries(path: Path, wants_suite: Callable[[str], bool] | None) -> list[Entry]:
    config = load_config(path)
    lives = is_active(path)
    summary = None if lives or wants_suite else stored_summary(path)
    if summary is not None:
        state: State = "finished" if summary["state"] == "finished" else "interrupted"
        ended_at_ms, groups = summary["generated_at_ms"], summary["groups"]
    else:
        run = load_run(path, even_active=True)
        records = [row.record for row in run.rows.values()]
        of_suites = [one for one in records if wants_suite is None or wants_suite(one.suite)]
        groups = groups_of(of_suites, looks_of(config))
        ended_at_ms = max((one.ended_at_ms for one in records), default=0)
        state = "under way" if lives else "finished" if run.n_rows >= run.n_cells else "interrupted"
    selected = {target_of(entry): entry["n_cells"] for entry in config["targets"]}
    return [
        Entry(
            path=path,
            ended_at_ms=ended_at_ms,
            state=state,
            kind="rescored" if "rescored" in config else "merged" if "parts" in config else "measured",
            target=target_of(group),
            group=group,
            n_cells=None if wants_suite else selected.get(target_of(group)),
            prompts=_fingerprint(config, wants_suite),
        )
        for group in groups
        if group["n_total"]
    ]


_ASKED = ("suite", "id", "prompt", "system", "messages", "turns", "validator", "tools_sha256")


def _fingerprint(config: JsonObject, wants_suite: Callable[[str], bool] | None) -> str:
    """Return a hash of the prompts and their rules."""
    asked = sorted(
        json.dumps([prompt.get(key) for key in _ASKED], sort_keys=True)
        for prompt in config["prompts"]
        if wants_suite is None or wants_suite(prompt["suite"])
    )
    return hashlib.sha256("\n".join(asked).encode()).hexdigest()


COMMANDS = (Command(name="history", help=__doc__, add_arguments=_add_arguments, run=_run),)
