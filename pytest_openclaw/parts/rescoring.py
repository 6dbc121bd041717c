"""Judge a run's replies again with the current validators, without any request.

The prompts are read from the suite files again, so you can fix a validator and
see what changes. The result is a new run; the old run is unchanged. A row keeps
its verdict if it lacks the judged reply (a fault, a reply cut at 64 KiB, a
removed secret), if a Python test has judged it, or if its prompt was removed or
changed.

Your own validators come from conftest.py and installed plugins, as in a pytest
session: its ini file and the conftest.py of the root folder and of the suites'
folders are loaded; no test is collected or run. Plugins' reports are written
too, and pytest_openclaw_record is called with rows that change.

Example:
  pytest-openclaw rescore 20260213_235930
  pytest-openclaw rescore last --rootdir ~/assistant --into fixed
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import fields, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

from pytest_openclaw import __version__
from pytest_openclaw.cli.project import load_project
from pytest_openclaw.cli.result import (
    CliCommand,
    CommandResult,
    add_rootdir,
    add_run,
    new_run_path,
    read_run,
    terminal_width,
)
from pytest_openclaw.conclusions.summary import to_json
from pytest_openclaw.judging.judge import JUDGED, judge, tool_demand_of
from pytest_openclaw.judging.registry import Registry
from pytest_openclaw.openclaw.catalog import Catalogue
from pytest_openclaw.reports.cells import verdict_of
from pytest_openclaw.reports.terminal import render_terminal
from pytest_openclaw.runs.directory import RESULTS, SURFACE
from pytest_openclaw.runs.reading import StoredRow, StoredRun
from pytest_openclaw.runs.rows import REPLY_FIELDS, clipped, judgment_fields
from pytest_openclaw.runs.summaries import NewRow, NewRun, Plugins, write_run
from pytest_openclaw.suites.cells import definition as definition_of
from pytest_openclaw.suites.load import known_failure_of, load_suite
from pytest_openclaw.suites.offered import catalogue_of, on_surface
from pytest_openclaw.util.errors import OpenClawError
from pytest_openclaw.util.files import JsonObject, is_there
from pytest_openclaw.util.json_text import line_of
from pytest_openclaw.util.redact import HIDDEN
from pytest_openclaw.util.signals import epoch_ms
from pytest_openclaw.util.text import counted, valid_value
from pytest_openclaw.values.prompts import Prompt
from pytest_openclaw.values.replies import ANSWER, THINKING, Reply, Timing, Turn
from pytest_openclaw.values.requests import LISTED
from pytest_openclaw.values.rows import Record, call_of, to_row
from pytest_openclaw.values.run_files import target_entries

if TYPE_CHECKING:
    import argparse


Rules = dict[tuple[str, str], "Prompt"]
"""The current prompts, by suite and id."""
_QUESTION = ("prompt", "system", "messages", "history", "turns", "images_sha256", "tools_sha256", "world")
"""The keys of a prompt that must be unchanged, because a rule cannot judge a reply to another question."""
_RULE = ("validator", "expected_tool_calls", "xfail")
"""The keys of a prompt that a rescored run takes from the current suites."""
_OF_JUDGING = {"violation", "parsed_output", "tool_calls", "harm_tools", "fault_message", "written_calls"}
"""The keys of a row that judging sets, and that may be cut."""


def _add_arguments(parser: argparse.ArgumentParser) -> None:
    add_run(parser)
    parser.add_argument(
        "--into", metavar="RUN", help="the new run: its directory or its id (RUN-rescored, next to it)"
    )
    add_rootdir(
        parser, "the project's root folder, to which the rows' suites are relative (as pytest finds it)"
    )


def _run(arguments: argparse.Namespace) -> CommandResult:
    into = new_run_path(arguments.into, arguments.runs_dir) if arguments.into else None
    run = read_run(arguments)
    root = arguments.rootdir.resolve(strict=True)
    project = load_project(root, suite_files(run, root))
    plugins = project.plugins
    rescored = rescore_run(run, todays_rules(run, root, project.validators), plugins)
    target = into or run.path.with_name(f"{run.run_id}-rescored")
    path, summary = write_run(
        rescored.new, target, exactly=into is not None, now_ms=epoch_ms(), plugins=plugins
    )
    return CommandResult(
        lines=[
            *_change_lines(run.name, rescored),
            "",
            *render_terminal(summary, str(path / "summary.md"), width=terminal_width()),
        ],
        data={
            "into": str(path),
            "run": run.name,
            "n_rows": len(rescored.new.rows),
            "changed": [_as_json(change) for change in rescored.changes],
            "n_kept": rescored.n_kept,
            "notes": run.shortcomings,
            "summary": to_json(summary),
        },
        warnings=[*run.shortcomings, *plugins.complaints],
    )


def _change_lines(name: str, rescored: Rescored) -> Iterator[str]:
    flips = [change for change in rescored.changes if change.before != change.after]
    others = len(rescored.changes) - len(flips)
    n_rows, n_flips = counted(len(rescored.new.rows), "row"), counted(len(flips), "verdict")
    more = f", {counted(others, 'other row')} changed too" if others else ""
    yield f"rescored {n_rows} of {name}: {n_flips} changed{more}"
    if n := rescored.n_kept:
        keep = "1 row keeps its verdict" if n == 1 else f"{n} rows keep their verdict"
        yield f"note: {keep}: the row lacks the judged reply, or no current suite asks the same"
    for change in flips:
        record = change.record
        cell = f"{record.target.label}  {record.suite}::{record.prompt_id}"
        why = f"  {record.violation}" if record.violation else ""
        yield f"  {change.before} -> {change.after}  {cell}{why}"


def _as_json(change: Change) -> JsonObject:
    names = ("suite", "prompt_id", "provider", "model", "thinking_level", "repeat", "violation")
    shown = {name: getattr(change.record, name) for name in names}
    return shown | {"before": change.before, "after": change.after}


# --- rows -----------------------------------------------------------------------------------------


class Change(NamedTuple):
    """A changed row, with its verdicts before and after: `passed`, `failed` or `not judged`."""

    before: str
    after: str
    record: Record


class Rescored(NamedTuple):
    """The new run, its changed rows, and how many rows keep their verdict."""

    new: NewRun
    changes: Sequence[Change]
    n_kept: int


def rescore_run(run: StoredRun, rules: Rules, plugins: Plugins | None = None) -> Rescored:
    """Return the run with every reply judged again.

    Raises:
        OpenClawError: a validator raised an error, or the run's surface is missing.
    """
    plugins = plugins or Plugins()
    rows: list[StoredRow | NewRow] = []
    changes: list[Change] = []
    n_kept = 0
    for row in run.rows.values():
        old = row.whole
        prompt = _prompt_of(old, run, rules)
        new = rescore_record(old, prompt) if prompt else None
        n_kept += new is None
        if new is None or new == old:
            rows.append(row)
            continue
        json_row = to_row(new)
        rows.append(NewRow(line=line_of(json_row | plugins.added_keys(json_row)), record=new))
        changes.append(Change(verdict_of(old), verdict_of(new), new))
    new_run = NewRun(
        n_selected=run.n_selected,
        rows=rows,
        config=_config(run, rules),
        inventory={key: value for key, value in run.inventory.items() if key != "run_id"},
        surface=run.surface,
    )
    return Rescored(new_run, changes, n_kept)


def rescore_record(record: Record, prompt: Prompt) -> Record | None:
    """Return the row as a prompt's validator judges it; None if the row lacks the judged reply.

    Raises:
        OpenClawError: the validator raised an error.
    """
    has_answer = record.success or record.failure_type == "empty_response"
    if record.availability_status != "ok" or not has_answer:
        return None
    judged_parts = {*JUDGED, "turns" if record.turns else "raw_output"}
    texts = (record.raw_output, json.dumps([record.tool_call_details, record.turns]))
    if not judged_parts.isdisjoint(record.cut or ()) or any(HIDDEN in text for text in texts):
        return None
    try:
        judgment = judge(prompt, _reply(record))
    except KeyboardInterrupt:
        raise
    except BaseException as error:  # `pytest.fail` is not an Exception
        what = f"{prompt.suite}: prompt {prompt.id}: its validator raised {type(error).__name__}: {error}"
        raise OpenClawError(f"{what}. Nothing was written.") from error
    known = known_failure_of(prompt, record.target)
    judged = {
        **judgment_fields(judgment),
        "tool_demand": tool_demand_of(prompt),
        "known_failure": known and known.reason,
    }
    cut = tuple(name for name in record.cut or () if name not in _OF_JUDGING) or None
    truncated = record.truncated if record.cut is None else cut is not None
    return clipped(replace(record, truncated=truncated, cut=cut, **valid_value(judged)))


def _reply(record: Record) -> Reply:
    raw = text = record.raw_output
    turns = tuple(map(_turn, record.turns or ()))
    reasoning = ""
    if turns:
        text, reasoning = turns[-1].text, turns[-1].reasoning
        raw = "\n\n".join(_raw(turn) for turn in turns if turn.text or turn.reasoning)
    elif raw.startswith(THINKING) and ANSWER in raw:
        reasoning, _, text = raw.removeprefix(THINKING).partition(ANSWER)
    return Reply(
        text=text,
        raw=raw,
        reasoning=reasoning,
        tool_calls=tuple(map(call_of, record.tool_call_details)),
        timing=Timing(
            **{one.name: getattr(record, one.name) for one in fields(Timing) if one.name != "at_once"}
        ),
        turns=turns,
        **{name: getattr(record, name) for name in REPLY_FIELDS},
    )


def _turn(turn: Mapping[str, Any]) -> Turn:
    calls = turn["calls"]
    return Turn(
        user=turn.get("user"),
        text=turn["text"],
        reasoning=turn.get("reasoning") or "",
        calls=tuple(map(call_of, calls)),
        results=tuple(result for call in calls if (result := call.get("result")) is not None),
        finish_reason=turn.get("finish_reason"),
        input_tokens=turn.get("input_tokens"),
        output_tokens=turn.get("output_tokens"),
    )


def _raw(turn: Turn) -> str:
    return f"{THINKING}{turn.reasoning}{ANSWER}{turn.text}" if turn.reasoning else turn.text


def _prompt_of(record: Record, run: StoredRun, rules: Rules) -> Prompt | None:
    prompt = rules.get((record.suite, record.prompt_id))
    if prompt is None or record.surface == LISTED or prompt.tools is None:
        return prompt
    if run.surface is None:
        raise OpenClawError(
            f"{run.name}: {SURFACE} is missing, with which {prompt.id} was asked; bring it back"
        )
    return on_surface(prompt, run.surface)


def _config(run: StoredRun, rules: Rules) -> JsonObject:
    current = {key: definition_of(prompt) for key, prompt in rules.items()}
    definitions = [
        definition | {name: value for name, value in current.get(key, {}).items() if name in _RULE}
        for key, definition in run.prompts.items()
    ]
    config = {key: value for key, value in run.config.items() if key not in ("schema_version", "run_id")}
    return {
        **config,
        "targets": target_entries(run.n_selected, run.entries),
        "prompts": definitions,
        "rescored": {"run_id": run.run_id, "pytest_openclaw": __version__},
    }


# --- rules ----------------------------------------------------------------------------------------


def suite_files(run: StoredRun, root: Path) -> list[Path]:
    """Return the suite files of a run that are still in the project.

    pytest loads the `conftest.py` next to each file. A run from elsewhere can name any file, so only the
    project's own files are returned: none outside `root`, in the folder of runs, or in the folder of a run.
    """
    path = run.path.resolve()
    runs = path if root.is_relative_to(path.parent) else path.parent
    files = dict.fromkeys(
        root / suite
        for (suite, _), entry in run.prompts.items()
        if (entry.get("validator") or {}).get("type") != "python"  # judged by its own test or grader
    )
    return [
        file
        for file in files
        if file.is_file() and (real := file.resolve()).is_relative_to(root) and not real.is_relative_to(runs)
        if not any(is_there(above / RESULTS) for above in real.parents)
    ]


def todays_rules(run: StoredRun, root: Path, registry: Registry) -> Rules:
    """Return the prompts of the suites below `root` that ask the same as in the run.

    Raises:
        OpenClawError: a suite is malformed.
    """
    rules: Rules = {}
    for file in suite_files(run, root):
        name = file.relative_to(root).as_posix()
        suite = load_suite(file, name=name, registry=registry, catalogue=_catalogue_of(run, name))
        for prompt in suite.prompts:
            key = (name, prompt.id)
            then, now = run.prompts.get(key), definition_of(prompt)
            if then and all(now.get(name) == then.get(name) for name in _QUESTION):
                rules[key] = prompt
    return rules


def _catalogue_of(run: StoredRun, suite: str) -> Catalogue | None:
    offered = (one.get("tools") for (name, _), one in run.prompts.items() if name == suite)
    try:
        return catalogue_of(next((tools for tools in offered if tools is not None), None))
    except ValueError as error:
        raise OpenClawError(f"{run.name}: its tools {error} Bring that file back.") from None


COMMANDS = (CliCommand(name="rescore", help=__doc__, add_arguments=_add_arguments, run=_run),)
