"""Additions of plugins to a run: keys of a row before it is written, parts of the summary, more files.

A plugin that breaks is reported at the end; the run loses only the additions of this plugin.
"""

from __future__ import annotations

import contextlib
import copy
import json
import re
import traceback
from collections import Counter
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any

from pytest_openclaw.asking.clipping import MAX_ROW_BYTES
from pytest_openclaw.reports.pages import BUILTIN
from pytest_openclaw.stats.summary import SummaryPart
from pytest_openclaw.util.json_text import line_of
from pytest_openclaw.util.text import valid_text, valid_value
from pytest_openclaw.util.typed import converted

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Sequence

    from pytest_openclaw.reports.pages import Report
    from pytest_openclaw.runs.directory import RunDirectory
    from pytest_openclaw.stats.summary import Summary
    from pytest_openclaw.util.files import JsonObject
    from pytest_openclaw.values.rows import Record

_KEY = re.compile(r"x_[a-z0-9_]{1,60}")
"""The prefix of keys that a plugin may add to a row; our own fields never have it."""


@dataclass(frozen=True, kw_only=True)
class PluginHook:
    """A plugin's hook.

    Attributes:
        claimant: where it comes from, such as a plugin's name.
        see: takes a row before it is written, or all records of a run; returns what to add.
    """

    claimant: str
    see: Callable[[Any], Any]


@dataclass(kw_only=True)
class Plugins:
    """The plugins of one run.

    Attributes:
        reports: each with the name of its plugin.
    """

    reports: Sequence[tuple[str, Report]] = tuple(("pytest_openclaw", report) for report in BUILTIN)
    row_hooks: Sequence[PluginHook] = ()
    summary_hooks: Sequence[PluginHook] = ()
    clean: Callable[[Any], Any] = lambda value: value
    _complaints: Counter[str] = field(default_factory=Counter)

    @property
    def complaints(self) -> list[str]:
        """The plugins' errors, in a sentence each; a repeated error appears once."""
        return [text if n == 1 else f"{text} ({n} times)" for text, n in self._complaints.items()]

    def added_keys(self, row: JsonObject) -> JsonObject:
        """Return the keys that the plugins add to a row; the row itself is unchanged."""
        added: JsonObject = {}
        for hook in self.row_hooks:
            with self._reporting(hook.claimant, "pytest_openclaw_record"):
                returned = _checked(hook.see(copy.deepcopy(row)))
                if twice := added.keys() & returned.keys():
                    raise ValueError(f"{min(twice)} is added by another plugin already")
                if len(line_of(row | added | returned)) > MAX_ROW_BYTES:
                    raise ValueError(f"its keys make the row longer than {MAX_ROW_BYTES >> 10} KiB")
                added |= self.clean(returned)
        return added

    def summary_parts(self, records: Sequence[Record]) -> tuple[SummaryPart, ...]:
        """Return the plugins' parts of the summary of these records."""
        parts: dict[str, SummaryPart] = {}
        for hook in self.summary_hooks:
            with self._reporting(hook.claimant, "pytest_openclaw_summary"):
                if (part := hook.see(records)) is None:
                    continue
                if not isinstance(part, SummaryPart) or part.name in parts:
                    raise TypeError(f"it returned {part!r}, not a SummaryPart with a name of its own")
                plain = json.loads(json.dumps(asdict(part), allow_nan=False))
                parts[part.name] = converted(self.clean(valid_value(plain)), SummaryPart)
        return tuple(parts.values())

    def write_reports(self, directory: RunDirectory, summary: Summary) -> None:
        """Write the reports into a run directory, except those that fail.

        Raises:
            OSError: one cannot be written.
        """
        for claimant, report in self.reports:
            text: object = None
            with self._reporting(claimant, f"{report.name} is not written"):
                text = report.render(summary)
                if not isinstance(text, str):
                    raise TypeError(f"render returned {type(text).__name__}, not a text")
            if isinstance(text, str):
                directory.write_text(report.name, self.clean(valid_text(text)))
            else:
                directory.remove(report.name)  # an older one would describe other rows

    @contextlib.contextmanager
    def _reporting(self, claimant: str, what: str) -> Iterator[None]:
        """Note an error of a plugin, and continue."""
        try:
            yield
        except KeyboardInterrupt:
            raise
        except BaseException as error:  # `pytest.fail` raises no Exception
            # The place of the error, unless it was rejected here.
            last = traceback.extract_tb(error.__traceback__)[-1]
            place = f" ({Path(last.filename).name}:{last.lineno})" if last.filename != __file__ else ""
            # A conftest's name is its whole path.
            path = Path(claimant)
            who = "/".join(path.parts[-2:]) if path.is_absolute() else claimant
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
            rule = "a key of a plugin's begins with x_, as x_lab, and has small letters, digits and _"
            raise ValueError(f"{key!r} cannot be added; {rule}")
    plain: JsonObject = json.loads(json.dumps(returned, allow_nan=False))
    return valid_value(plain)  # type: ignore[no-any-return]
