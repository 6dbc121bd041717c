"""Judge a run again: the current validators on its replies, without a call.

The prompts are read from the suite files again, so you can fix a validator and
see what changes. The result is a new run; the old one is unchanged. A row keeps
its verdict if its reply is incomplete (cut at 64 KiB, a secret removed) or if a
Python test has judged it; faults stay faults. If a suite or a prompt was
removed, or asks something else now, the definition in config.json is used; the
same applies to suites outside the project and among the runs.

Your own validators come from conftest.py and installed plugins, as in a pytest
session: its ini file and the conftest.py of the root folder and of the suites'
folders are loaded; no test is collected or run. Their reports are written too,
and pytest_openclaw_record is called with rows that change.

Example:
  pytest-openclaw rescore 20260213_235930
  pytest-openclaw rescore last --rootdir ~/assistant --into fixed
"""

from __future__ import annotations

import json
from collections import Counter
from dataclasses import asdict, dataclass, replace
from itertools import islice
from typing import TYPE_CHECKING, Any, Literal

from pytest_openclaw import __version__
from pytest_openclaw.asking.clipping import clipped, unjudged
from pytest_openclaw.cli.project import load_project
from pytest_openclaw.cli.result import (
    Command,
    CommandResult,
    add_rootdir,
    add_run,
    new_run_path,
    read_run,
    terminal_width,
)
from pytest_openclaw.judging.judge import JUDGED, conclude, judge, judge_done, prepare
from pytest_openclaw.judging.tool_outcomes import tool_demand_of
from pytest_openclaw.reports.cells import verdict_of
from pytest_openclaw.reports.terminal import render_terminal
from pytest_openclaw.runs.directory import SURFACE
from pytest_openclaw.runs.reading import is_python
from pytest_openclaw.runs.report_files import Plugins
from pytest_openclaw.runs.rows import of_judgment
from pytest_openclaw.runs.summaries import NewRow, NewRun, write_run
from pytest_openclaw.stats.summary import summary_to_json
from pytest_openclaw.suites import definition as definition_of
from pytest_openclaw.suites import known_failure_of, load_suite
from pytest_openclaw.suites.offered import catalogue_of, on_surface
from pytest_openclaw.suites.prompt import read_prompt
from pytest_openclaw.util.errors import OpenClawError
from pytest_openclaw.util.json_text import line_of
from pytest_openclaw.util.redact import HIDDEN
from pytest_openclaw.util.signals import epoch_ms
from pytest_openclaw.util.text import counted, valid_value
from pytest_openclaw.values import faults
from pytest_openclaw.values.replies import ANSWER, THINKING, Reply, Timing, Turn, Verdict
from pytest_openclaw.values.requests import LISTED
from pytest_openclaw.values.rows import call_of, to_row
from pytest_openclaw.values.settings import Gates

if TYPE_CHECKING:
    import argparse
    from collections.abc import Iterator, Mapping
    from pathlib import Path

    from pytest_openclaw.judging.registry import Registry
    from pytest_openclaw.openclaw.catalog import Catalogue
    from pytest_openclaw.runs.reading import PromptKey, StoredRow, StoredRun
    from pytest_openclaw.util.json_types import JsonObject
    from pytest_openclaw.values.prompts import Prompt, Suite
    from pytest_openclaw.values.rows import Record


Kept = Literal["truncated", "python", "secret", "unclear", "unknown"]
KEPT: Mapping[Kept, str] = {
    "truncated": "the reply was cut to fit its row",
    "python": "a benchmark in Python is judged by its own test",
    "secret": "a secret was taken out of the reply",
    "unclear": "thinking and answer can no longer be distinguished",
    "unknown": "config.json does not define the prompt",
}
"""Why a row keeps its verdict."""

MOST_READINGS = 8
"""A limit, because a reply of nothing but such tags could be split in thousands of ways."""
_OLD_ANSWERS = frozenset({"refusal", "content_filter"})


def _add_arguments(parser: argparse.ArgumentParser) -> None:
    add_run(parser)
    parser.add_argument(
        "--into", metavar="RUN", help="the new run: its directory or its id (RUN-rescored, beside it)"
    )
    add_rootdir(
        parser, "the project's root folder, to which the rows' suites are relative (as pytest finds it)"
    )


def _run(arguments: argparse.Namespace) -> CommandResult:
    into = new_run_path(arguments.into, arguments.runs_dir) if arguments.into else None
    run = read_run(arguments)
    root = arguments.rootdir.resolve(strict=True)
    project = load_project(root, suite_files(run, root))
    rules, plugins = todays_rules(run, root, project.validators), project.plugins
    rescored = rescore_part(run, rules, version=__version__, plugins=plugins)
    beside = into or run.path.with_name(f"{run.run_id}-rescored")
    path, summary = write_run(
        rescored.new, beside, exactly=into is not None, now_ms=epoch_ms(), plugins=plugins
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
            "kept": dict(rescored.kept),
            "n_faults": rescored.n_faults,
            "notes": list(rescored.notes),
            "summary": summary_to_json(summary),
        },
        warnings=plugins.complaints,
    )


def _change_lines(name: str, rescored: Rescored) -> Iterator[str]:
    flips = [change for change in rescored.changes if change.flipped]
    others = len(rescored.changes) - len(flips)
    n_rows, n_flips = counted(len(rescored.new.rows), "row"), counted(len(flips), "verdict")
    more = f", {counted(others, 'other row')} changed besides" if others else ""
    yield f"rescored {n_rows} of {name}: {n_flips} changed{more}"
    for reason, n in sorted(rescored.kept.items()):
        yield f"note: {_rows_keep(n, 'verdict')}: {KEPT[reason]}"
    if rescored.n_faults:
        yield f"note: {_rows_keep(rescored.n_faults, 'fault')}: there is no reply to judge"
    yield from (f"note: {note}" for note in rescored.notes)
    for change in flips:
        before, after = change.verdicts
        record = change.after
        why = record.violation or record.fault_message
        words = [f"{before} -> {after}", record.target.label, f"{record.suite}::{record.prompt_id}"]
        yield f"  {'  '.join(words)}{f'  {why}' if why else ''}"


def _rows_keep(n: int, what: str) -> str:
    return f"1 row keeps its {what}" if n == 1 else f"{n} rows keep their {what}"


def _as_json(change: Change) -> JsonObject:
    before, after = change.verdicts
    record = change.after
    return {
        "suite": record.suite,
        "prompt_id": record.prompt_id,
        "provider": record.provider,
        "model": record.model,
        "thinking_level": record.thinking_level,
        "repeat": record.repeat,
        "before": before,
        "after": after,
        "violation": record.violation,
        "fault_message": record.fault_message,
    }


@dataclass(frozen=True, kw_only=True)
class Change:
    """A row that the rescore has changed."""

    before: Record
    after: Record

    @property
    def verdicts(self) -> tuple[str, str]:
        """The old and new verdict, each `passed`, `failed`, `not judged`, or the failure type."""
        return verdict_of(self.before), verdict_of(self.after)

    @property
    def flipped(self) -> bool:
        """Whether the verdict itself has changed."""
        return self.verdicts[0] != self.verdicts[1]


@dataclass(frozen=True, kw_only=True)
class Rescored:
    """The new run, and its differences from the old one.

    Attributes:
        kept: how many rows keep their verdict, by reason.
        n_faults: rows without a reply, which are unchanged.
    """

    new: NewRun
    changes: tuple[Change, ...]
    kept: Mapping[Kept, int]
    n_faults: int
    notes: tuple[str, ...]


def rescore_part(run: StoredRun, rules: Rules, *, version: str, plugins: Plugins | None = None) -> Rescored:
    """Return the run with every reply judged again."""
    plugins = plugins or Plugins()
    rows: list[StoredRow | NewRow] = []
    changes: list[Change] = []
    kept: Counter[Kept] = Counter()
    n_faults = 0
    for row in run.rows.values():
        old = row.whole
        result = rescore_record(old, _prompt_of(old, run, rules))
        if isinstance(result, str):
            kept[result] += 1
            rows.append(row)
            continue
        n_faults += old.availability_status != "ok"
        if _text(result) == _text(old):
            rows.append(row)
        else:
            new = to_row(result)
            rows.append(NewRow(line=line_of(new | plugins.added_keys(new)), record=result))
            changes.append(Change(before=old, after=result))
    return Rescored(
        new=NewRun(
            n_selected=run.n_selected,
            rows=rows,
            config=_config(run, rules, version),
            inventory={key: value for key, value in run.inventory.items() if key != "run_id"},
            snapshots=run.snapshots,
            gates=run.gates or Gates(),
            surface=run.surface,
        ),
        changes=tuple(changes),
        kept=kept,
        n_faults=n_faults,
        notes=(*run.shortcomings, *rules.notes),
    )


def rescore_record(record: Record, prompt: Prompt | Kept) -> Record | Kept:
    """Return the row under a prompt's validator, or why it keeps its verdict.

    Args:
        record: as it was measured.
        prompt: with the current rule; or why there is none.
    """
    if record.tool_demand is not None and not isinstance(prompt, str):
        record = replace(record, tool_demand=tool_demand_of(prompt))
    if record.availability_status != "ok":
        return record if isinstance(prompt, str) else _with_harm(record, prompt)
    if isinstance(prompt, str):
        return prompt
    known = known_failure_of(prompt, record.target)
    record = replace(record, known_failure=None if known is None else known.reason)
    if record.failure_type in _OLD_ANSWERS:
        # It had no verdict and gets none: the row does not separate a refusal from the text.
        # Its calls were made nevertheless; the state of a world is not considered.
        silence = prepare(replace(prompt, world=None), replace(_reply(record, ""), refusal=""))
        silence = replace(silence, tool_names=record.tool_calls)
        silent = conclude(prompt, silence, Verdict(passed=None))
        return replace(record, tool_outcome=silent.tool_outcome, tools_tested=silent.tools_tested)
    if _lacks_what_is_judged(record):
        return "truncated"
    if HIDDEN in record.raw_output or HIDDEN in json.dumps([record.tool_call_details, record.turns]):
        return "secret"
    replies = list(islice(readings(record), MOST_READINGS + 1))
    if len(replies) > MOST_READINGS:
        return "unclear"
    try:
        first, *others = (valid_value(of_judgment(judge(prompt, reply))) for reply in replies)
    except KeyboardInterrupt:
        raise
    except BaseException as error:  # `pytest.fail` is not an Exception; a live run records it in the row too
        return clipped(_broken(unjudged(record), prompt, error))
    if any(other != first for other in others):
        return "unclear"
    return clipped(replace(unjudged(record), **first))


def _with_harm(record: Record, prompt: Prompt) -> Record:
    """Return a row without an answer with the harm that a probe's calls did before."""
    if not record.turns or _lacks_what_is_judged(record) or HIDDEN in json.dumps(record.turns):
        return record
    done = judge_done(prompt, [_turn(turn) for turn in record.turns])
    return replace(record, harm=done.harm if done else None, harm_tools=done.harm_tools if done else ())


def _lacks_what_is_judged(record: Record) -> bool:
    return not (record.cut or {}).keys().isdisjoint({*JUDGED, "turns" if record.turns else "raw_output"})


def readings(record: Record) -> Iterator[Reply]:
    """Yield every reply from which this row may have been written.

    A `<think>` block is part of the model's text, or its reasoning channel, which may contain such tags
    itself. The turns of a scripted exchange have both separately.
    """
    if record.turns:
        yield _exchange(record)
        return
    raw = record.raw_output
    yield _reply(record, raw)
    if not raw.startswith(THINKING):
        return
    end = raw.find(ANSWER, len(THINKING))
    while end >= 0:
        reasoning, text = raw[len(THINKING) : end], raw[end + len(ANSWER) :]
        yield replace(_reply(record, text), reasoning=reasoning)
        end = raw.find(ANSWER, end + 1)


def _prompt_of(record: Record, run: StoredRun, rules: Rules) -> Prompt | Kept:
    key = (record.suite, record.prompt_id)
    if key in rules.prompts:
        return _as_asked(rules.prompts[key], record, run)
    return "python" if is_python(run.prompts.get(key, {})) else "unknown"


def _as_asked(prompt: Prompt, record: Record, run: StoredRun) -> Prompt:
    """Return the prompt on the surface of a row.

    Raises:
        OpenClawError: the run's surface is missing.
    """
    if record.surface == LISTED or prompt.tools is None:
        return prompt
    if run.surface is None:
        raise OpenClawError(
            f"{run.name}: {SURFACE} is missing, with which {prompt.id} was asked; bring it back"
        )
    return on_surface(prompt, run.surface)


def _reply(record: Record, text: str) -> Reply:
    timing = Timing(
        started_at_ms=record.started_at_ms,
        ended_at_ms=record.ended_at_ms,
        e2e_ms=record.e2e_ms,
        ttft_ms=record.ttft_ms,
        ttfo_ms=record.ttfo_ms,
    )
    return Reply(
        text=text,
        raw=record.raw_output,
        tool_calls=tuple(call_of(call) for call in record.tool_call_details),
        finish_reason=record.finish_reason,
        effective_model=record.effective_model,
        timing=timing,
        input_tokens=record.input_tokens,
        output_tokens=record.output_tokens,
        reasoning_tokens=record.reasoning_tokens,
        cached_tokens=record.cached_tokens,
    )


def _exchange(record: Record) -> Reply:
    """Return the reply of a scripted exchange: the last turn's text, all turns, and how it ended."""
    assert record.turns, "an exchange has turns"
    turns = tuple(_turn(turn) for turn in record.turns)
    last = turns[-1]
    raw = "\n\n".join(_raw(turn) for turn in turns if turn.text or turn.reasoning)
    return replace(
        _reply(record, last.text),
        raw=raw if record.truncated else record.raw_output,
        reasoning=last.reasoning,
        turns=turns,
        ended_by=record.ended_by,
    )


def _turn(turn: Mapping[str, Any]) -> Turn:
    calls = turn["calls"]
    return Turn(
        user=turn.get("user"),
        text=turn["text"],
        reasoning=turn.get("reasoning") or "",
        calls=tuple(call_of(call) for call in calls),
        results=tuple(result for call in calls if (result := call.get("result")) is not None),
        finish_reason=turn.get("finish_reason"),
        input_tokens=turn.get("input_tokens"),
        output_tokens=turn.get("output_tokens"),
    )


def _raw(turn: Turn) -> str:
    return f"{THINKING}{turn.reasoning}{ANSWER}{turn.text}" if turn.reasoning else turn.text


def _broken(record: Record, prompt: Prompt, error: BaseException) -> Record:
    """Return the row that a live run writes if a validator raises an error; measurements are unchanged."""
    fault = faults.broke(f"{prompt.id}[{record.target.label}]", f"{type(error).__name__}: {error}")
    outcome = faults.outcome_of(fault)
    unjudged: dict[str, Any] = {
        "availability_status": outcome.status,
        "success": outcome.success,
        "failure_type": outcome.failure_type,
        "fault_message": fault.message,
        "objective_pass": None,
        "violation": None,
        "parsed_output": None,
        "tool_calls": (),
        "tool_call_count": 0,
        "tool_use_success": False,
        "tool_outcome": None,
        "tools_tested": (),
        "harm": None,
        "harm_tools": (),
    }
    return replace(record, **valid_value(unjudged))


def _config(run: StoredRun, rules: Rules, version: str) -> JsonObject:
    """Return the old config with the current rules, and a note of the run that was rescored."""
    definitions = []
    for key, definition in run.prompts.items():
        if prompt := rules.prompts.get(key):
            tools = prompt.expected_tool_calls
            definition = {  # noqa: PLW2901 - the old one with three keys replaced
                **definition,
                "validator": prompt.validator_spec,
                "expected_tool_calls": None if tools is None else list(tools),
                "xfail": definition_of(prompt)["xfail"],
            }
        definitions.append(definition)
    config = {key: value for key, value in run.config.items() if key not in ("schema_version", "run_id")}
    return {
        **config,
        "targets": [{**asdict(target), "n_cells": n} for target, n in run.n_selected.items()],
        "prompts": definitions,
        "rescored": {"run_id": run.run_id, "pytest_openclaw": version},
    }


def _text(record: Record) -> str:
    return json.dumps(to_row(record), sort_keys=True)


@dataclass(frozen=True, kw_only=True)
class Rules:
    """The rules for a run's prompts.

    Attributes:
        prompts: by suite and id; those of Python benchmarks are missing.
        notes: on prompts that are judged by the recorded definition.
    """

    prompts: Mapping[PromptKey, Prompt]
    notes: tuple[str, ...]


def suite_files(run: StoredRun, root: Path) -> list[Path]:
    """Return the suite files of a run that are still in the project.

    pytest loads the `conftest.py` beside each of them. A foreign run can name any file, so only the project's
    own files count: none outside `root`, and none below the folder of runs.
    """
    suites = dict.fromkeys(suite for (suite, _), entry in run.prompts.items() if not is_python(entry))
    foreign = _folder_of_runs(run.path.resolve(), root)
    return [
        path
        for suite in suites
        if (path := root / suite).is_file()
        and (real := path.resolve()).is_relative_to(root)
        and not real.is_relative_to(foreign)
    ]


def _folder_of_runs(run: Path, root: Path) -> Path:
    """Return the folder with the run and other runs, or the run itself if the project is in it."""
    return run if root.is_relative_to(run.parent) else run.parent


def todays_rules(run: StoredRun, root: Path, registry: Registry) -> Rules:
    """Return the current rules in the suites below `root`.

    For a suite or prompt that was removed or asks something else now, the definition in `config.json` is
    used, read with the current validators.

    Raises:
        OpenClawError: a suite is malformed, or the current validators cannot read an old definition.
    """
    files = suite_files(run, root)
    suites: dict[str, Suite] = {}
    prompts: dict[PromptKey, Prompt] = {}
    old: dict[str, list[str]] = {}
    for (name, prompt_id), definition in run.prompts.items():
        if is_python(definition):
            continue
        if name not in suites and (path := root / name) in files:
            catalogue = _catalogue_of(run, name)
            suites[name] = load_suite(path, name=name, registry=registry, catalogue=catalogue)
        found = _todays(suites.get(name), definition)
        if isinstance(found, str):
            old.setdefault(f"{name} {found}", []).append(prompt_id)
            found = _as_defined_then(run, definition, registry)
        prompts[name, prompt_id] = found
    notes = tuple(
        f"{what}: {', '.join(prompt_ids)}; judged as config.json defines" for what, prompt_ids in old.items()
    )
    return Rules(prompts=prompts, notes=notes)


def _catalogue_of(run: StoredRun, suite: str) -> Catalogue | None:
    """Return the captured catalog of a suite's tools, found through any of its prompts with tools."""
    offered = (one.get("tools") for (name, _), one in run.prompts.items() if name == suite)
    try:
        return catalogue_of(next((tools for tools in offered if tools is not None), None))
    except ValueError as error:
        raise OpenClawError(f"{run.name}: its tools {error} Bring that file back.") from None


def _todays(suite: Suite | None, definition: JsonObject) -> Prompt | str:
    """Return the current prompt; or why it cannot judge the recorded reply."""
    if suite is None:
        return "is not there any more"
    now = next((prompt for prompt in suite.prompts if prompt.id == definition["id"]), None)
    if now is None:
        return "has some prompts no longer"
    # A reply to another question cannot be judged by this rule.
    today = definition_of(now)
    if any(today.get(key) != definition.get(key) for key in ("prompt", "system", "messages", "turns")):
        return "asks some prompts in other words now"
    if today.get("images_sha256") != definition.get("images_sha256"):
        return "shows other pictures with some prompts now"
    # Calls are played again, which requires the same world and the same tools.
    if any(today.get(key) != definition.get(key) for key in ("tools_sha256", "world")):
        return "gives some prompts other tools or another world now"
    return now


def _as_defined_then(run: StoredRun, definition: JsonObject, registry: Registry) -> Prompt:
    raw = {key: value for key, value in definition.items() if key not in ("suite", "extra")}
    prompt, complaints = read_prompt(raw, definition["id"], suite=definition["suite"], registry=registry)
    if prompt is None:
        where = f"{run.path / 'config.json'}: prompt {definition['id']}"
        raise OpenClawError("\n".join(f"{where}: {complaint}" for complaint in complaints))
    return prompt


COMMANDS = (Command(name="rescore", help=__doc__, add_arguments=_add_arguments, run=_run),)
