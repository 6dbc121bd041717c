"""Summaries of runs, new run directories made from stored rows, and additions by plugins.

A plugin may add keys to a row before the row is written, parts to the summary, and files. If it breaks, the
error is reported at the end, and only the additions of this plugin are lost.
"""

from __future__ import annotations

import contextlib
import copy
import json
import re
import shutil
import traceback
from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass, field, replace
from pathlib import Path
from typing import Any

from pytest_openclaw.conclusions.summary import Summary, SummaryPart, summarize_run, to_json
from pytest_openclaw.reports.pages import BUILTIN, Report
from pytest_openclaw.runs.directory import (
    CONFIG,
    INVENTORY,
    RESULTS,
    SUMMARY,
    SURFACE,
    RunDirectory,
    file_names,
    write_snapshot,
)
from pytest_openclaw.runs.reading import StoredRow, StoredRun, in_planned_order
from pytest_openclaw.runs.rows import MAX_ROW_BYTES
from pytest_openclaw.util.files import JsonObject, is_deeper, is_there
from pytest_openclaw.util.json_text import MAX_DEPTH, line_of
from pytest_openclaw.util.text import valid_text, valid_value
from pytest_openclaw.util.typed import converted
from pytest_openclaw.values.requests import Target
from pytest_openclaw.values.rows import Record
from pytest_openclaw.values.run_files import MeasuredRun, load_document
from pytest_openclaw.values.settings import CONFIG_VERSION
from pytest_openclaw.values.tool_calls import Surface

# --- additions of plugins ---------------------------------------------------------------------------

_KEY = re.compile(r"x_[a-z0-9_]{1,60}")
"""The keys that a plugin may add to a row; our own fields never begin with `x_`."""


PluginHook = tuple[str, "Callable[[Any], Any]"]
"""The name of a plugin, and its hook."""


@dataclass(kw_only=True)
class Plugins:
    """The plugins of one run.

    Attributes:
        reports: each with the name of its plugin.
        row_hooks: each receives a row before it is written, and returns keys to add.
        summary_hooks: each receives all records of a run, and returns a part of its summary.
        clean: removes secrets from what the plugins return.
    """

    reports: Sequence[tuple[str, Report]] = tuple(("pytest_openclaw", report) for report in BUILTIN)
    row_hooks: Sequence[PluginHook] = ()
    summary_hooks: Sequence[PluginHook] = ()
    clean: Callable[[Any], Any] = lambda value: value
    _complaints: Counter[str] = field(default_factory=Counter)

    @property
    def complaints(self) -> list[str]:
        """The plugins' errors, one sentence each; a repeated error appears once, with a count."""
        return [text if n == 1 else f"{text} ({n} times)" for text, n in self._complaints.items()]

    def added_keys(self, row: JsonObject) -> JsonObject:
        """Return the keys that the plugins add to a row; the row itself is unchanged."""
        added: JsonObject = {}
        for plugin, hook in self.row_hooks:
            with self._reporting(plugin, "pytest_openclaw_record"):
                returned = _checked(hook(copy.deepcopy(row)))
                if twice := added.keys() & returned.keys():
                    raise ValueError(f"another plugin already adds {min(twice)}")
                if len(line_of(row | added | returned)) > MAX_ROW_BYTES:
                    raise ValueError(f"the added keys make the row longer than {MAX_ROW_BYTES >> 10} KiB")
                added |= self.clean(returned)
        return added

    def summary_parts(self, records: Sequence[Record]) -> tuple[SummaryPart, ...]:
        """Return the plugins' parts of the summary of these records."""
        parts: dict[str, SummaryPart] = {}
        for plugin, hook in self.summary_hooks:
            with self._reporting(plugin, "pytest_openclaw_summary"):
                if (part := hook(records)) is None:
                    continue
                if not isinstance(part, SummaryPart) or part.name in parts:
                    raise TypeError(f"it returned {part!r}, not a SummaryPart with a unique name")
                plain = json.loads(json.dumps(asdict(part), allow_nan=False))
                parts[part.name] = converted(self.clean(valid_value(plain)), SummaryPart)
        return tuple(parts.values())

    def write_reports(self, directory: RunDirectory, summary: Summary) -> None:
        """Write the reports into a run directory, except reports that fail to render.

        Raises:
            OSError: a report cannot be written.
        """
        for plugin, report in self.reports:
            text: object = None
            with self._reporting(plugin, f"{report.name} is not written"):
                text = report.render(summary)
                if not isinstance(text, str):
                    raise TypeError(f"render returned {type(text).__name__}, not a text")
            if isinstance(text, str):
                directory.write_text(report.name, self.clean(valid_text(text)))
            else:
                directory.remove(report.name)  # an older report would describe other rows

    @contextlib.contextmanager
    def _reporting(self, plugin: str, what: str) -> Iterator[None]:
        """Note an error of a plugin, and continue."""
        try:
            yield
        except KeyboardInterrupt:
            raise
        except BaseException as error:  # `pytest.fail` raises no Exception
            # The location of the error, unless this file raised it.
            last = traceback.extract_tb(error.__traceback__)[-1]
            place = f" ({Path(last.filename).name}:{last.lineno})" if last.filename != __file__ else ""
            # A conftest's name is its whole path.
            path = Path(plugin)
            who = "/".join(path.parts[-2:]) if path.is_absolute() else plugin
            self._complaints[f"{who}: {what}: {type(error).__name__}: {error}{place}"] += 1


def _checked(returned: Any) -> JsonObject:
    """Return the result of a hook as plain JSON.

    Raises:
        TypeError, ValueError: it cannot be added to a row.
    """
    if returned is None:
        return {}
    if not isinstance(returned, dict):
        raise TypeError(f"it returned {type(returned).__name__}, not a dict or None")
    for key in returned:
        if not isinstance(key, str) or not _KEY.fullmatch(key):
            rule = "the keys of a plugin are like x_lab: x_, then lowercase letters, digits and _"
            raise ValueError(f"{key!r} cannot be added; {rule}")
    plain: JsonObject = json.loads(json.dumps(returned, allow_nan=False))
    if is_deeper(plain, MAX_DEPTH):
        raise ValueError(f"it is nested more than {MAX_DEPTH} levels deep")
    return valid_value(plain)  # type: ignore[no-any-return]


# --- the summary of a stored run ------------------------------------------------------------------


def stored_summary(path: Path) -> Summary | None:
    """Return a run's `summary.json` if it includes all rows.

    None if the file is missing or older than the rows, since a resumed run may have been killed.

    Raises:
        OpenClawError: the file cannot be read, is malformed or has another format.
    """
    file = path / SUMMARY
    if not is_there(file) or file.lstat().st_mtime_ns < (path / RESULTS).lstat().st_mtime_ns:
        return None
    summary: Summary = load_document(file, Summary)
    return summary


def summary_of(run: StoredRun, *, anew: bool = False) -> Summary:
    """Return a run's own summary; if it has none, or `anew`, the summary of its rows by its config."""
    written = stored_summary(run.path)
    if written is not None and not anew:
        return written
    summary = summarize_run(run, max((record.ended_at_ms for record in run.records), default=0))
    if written is None:
        return summary
    # Only the old summary has the spending of the sessions and the parts of plugins.
    return replace(summary, budget=written.budget, added=written.added)


def write_summary(
    directory: RunDirectory, summary: Summary, records: Sequence[Record], plugins: Plugins
) -> Summary:
    """Write a summary, with the additions of plugins, and its reports; return the summary."""
    summary = replace(summary, added=plugins.summary_parts(records))
    directory.write_json(SUMMARY, to_json(summary))
    plugins.write_reports(directory, summary)
    return summary


# --- a new run ------------------------------------------------------------------------------------


@dataclass(frozen=True, kw_only=True)
class NewRow:
    """A row that differs from the stored one."""

    line: bytes
    record: Record


@dataclass(frozen=True, kw_only=True)
class NewRun:
    """The content of a run directory.

    Attributes:
        n_selected: the number of cells of each target, in the order of `targets` in the config.
        rows: one row for each cell, in the order of the file.
        config: the content of `config.json`, without version and run id.
        inventory: the content of `inventory.json`, without the run id.
        surface: the surface of the targets on `openclaw`.
    """

    n_selected: Mapping[Target, int]
    rows: Sequence[StoredRow | NewRow]
    config: JsonObject
    inventory: JsonObject
    surface: Surface | None = None


def write_run(
    new: NewRun, path: Path, *, exactly: bool, now_ms: int, plugins: Plugins | None = None
) -> tuple[Path, Summary]:
    """Write a run directory and return its path and summary; remove it if it cannot be completed.

    Args:
        new: the content.
        path: the preferred path; the folder of runs is created if necessary.
        exactly: raise an error if the name is taken; otherwise a number is added.
        now_ms: for the summary's `generated_at_ms`.
        plugins: for their reports and additions; by default, only the built-in reports are written.

    Raises:
        OpenClawError: the name is taken.
        OSError: the directory cannot be written.
    """
    directory = RunDirectory.new(path.parent, path.name, exactly=exactly)
    try:
        prompts = [(prompt["suite"], prompt["id"]) for prompt in new.config["prompts"]]
        measured = MeasuredRun(
            run_id=directory.run_id,
            records=in_planned_order((row.record for row in new.rows), new.n_selected, prompts),
            config=new.config,
            inventory=new.inventory,
            n_selected=new.n_selected,
        )
        with directory:
            directory.replace_rows(row.line for row in new.rows)
            if new.surface is not None:
                directory.write_json(SURFACE, asdict(new.surface))
            directory.write_json(INVENTORY, {"run_id": directory.run_id, **new.inventory})
            for target, name in file_names(new.n_selected).items():
                for fact, value in new.inventory["targets"].get(target.label, {}).items():
                    write_snapshot(directory, name, target.label, fact, value)
            summary = summarize_run(measured, now_ms)
            summary = write_summary(directory, summary, measured.records, plugins or Plugins())
            # Last: a directory without a config is not a run, and a killed process leaves no incomplete run.
            config = {"schema_version": CONFIG_VERSION, "run_id": directory.run_id, **new.config}
            directory.write_json(CONFIG, config)
            return directory.path, summary
    except BaseException:
        shutil.rmtree(directory.path, ignore_errors=True)
        raise
