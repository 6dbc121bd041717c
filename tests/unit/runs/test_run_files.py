"""One run: whole files and lines with one writer, its summary, and the facts that a machine reports."""

import errno
import json
import os
import subprocess
import sys

import psutil
import pytest

from pytest_openclaw.asking import sending
from pytest_openclaw.asking.sending import collect_snapshot
from pytest_openclaw.parts.repeats import EarlyStopping, Stage
from pytest_openclaw.runs import directory as directories
from pytest_openclaw.runs.directory import RunDirectory, collect_inventory, file_names, write_snapshot
from pytest_openclaw.runs.session import Plan, RunSession
from pytest_openclaw.util.errors import OpenClawError
from pytest_openclaw.values.parts import whole
from pytest_openclaw.values.requests import CellKey, Target
from pytest_openclaw.values.rows import LeftOut
from pytest_openclaw.values.settings import IDENTITY, OTHER, Settings, setting_rules
from tests.unit.reports.summaries import missed, record
from tests.unit.runs.stored_runs import files_of


def _rows(run):
    return [json.loads(line) for line in (run / "results.jsonl").read_text("utf-8").splitlines()]


def test_rows_are_lines(tmp_path):
    """Each row is one line of UTF-8, at once on disk, in the order of arrival."""
    with RunDirectory.new(tmp_path, "r", exactly=True) as run:
        run.append({"text": "grüße\n日本\u2028\x00"})
        seen = (run.path / "results.jsonl").read_bytes()
        run.append({"n": 2})

    assert seen.count(b"\n") == 1
    assert _rows(run.path) == [{"text": "grüße\n日本\u2028\x00"}, {"n": 2}]


def test_a_row_that_is_not_json_is_refused_whole(tmp_path):
    """NaN and half surrogate pairs write nothing."""
    with RunDirectory.new(tmp_path, "r", exactly=True) as run:
        for value in (float("nan"), "\ud800", {1}):
            with pytest.raises((ValueError, TypeError)):
                run.append({"v": value})
        run.append({"v": 1})

    assert _rows(run.path) == [{"v": 1}]


def test_a_full_disk_leaves_whole_rows(tmp_path, monkeypatch):
    """If the system writes fewer bytes than given, the rest is written again; a row that does not fit is removed."""
    write, left = os.write, [20]

    def full(descriptor, data):
        if not left[0]:
            raise OSError(errno.ENOSPC, "No space left on device")
        written = write(descriptor, data[: min(7, left[0])])
        left[0] -= written
        return written

    with RunDirectory.new(tmp_path, "r", exactly=True) as run:
        monkeypatch.setattr(directories.os, "write", full)
        run.append({"n": 123456})
        with pytest.raises(OSError, match="No space left"):
            run.append({"text": "x" * 100})
        monkeypatch.undo()
        run.append({"n": 3})

    assert _rows(run.path) == [{"n": 123456}, {"n": 3}]


@pytest.mark.parametrize(
    ("name", "replace"),
    [
        pytest.param("config.json", lambda run: run.write_json("config.json", {"n": 2}), id="file"),
        pytest.param("results.jsonl", lambda run: run.replace_rows([b'{"n": 2}\n']), id="rows"),
    ],
)
def test_a_file_is_the_old_one_or_the_new_one(tmp_path, monkeypatch, name, replace):
    """A replacement that fails leaves the old file and nothing temporary, and rows can still be appended."""

    def full(descriptor):
        raise OSError(errno.ENOSPC, "No space left on device")

    with RunDirectory.new(tmp_path, "r", exactly=True) as run:
        run.write_json("config.json", {"n": 1})
        run.append({"n": 1})
        before = files_of(run.path)
        monkeypatch.setattr(directories.os, "fsync", full)
        with pytest.raises(OSError, match="No space left"):
            replace(run)
        monkeypatch.undo()

        assert files_of(run.path) == before
        run.append({"n": 3})
    assert _rows(run.path) == [{"n": 1}, {"n": 3}]


@pytest.mark.parametrize("full", ["open", "fsync"])
def test_a_start_that_fails_leaves_the_id_free(tmp_path, monkeypatch, full):
    """A full disk leaves neither a folder nor a file of a run that has not begun."""

    def fail(file, flags=os.O_CREAT, *mode, **more):
        if flags & os.O_CREAT:
            raise OSError(errno.ENOSPC, "No space left on device")
        return open_(file, flags, *mode, **more)

    open_ = os.open

    def start():
        with RunDirectory.new(tmp_path, "r", exactly=True) as run:
            run.write_json("config.json", {"n": 1})

    monkeypatch.setattr(directories.os, full, fail)
    with pytest.raises(OSError, match="No space left"):
        start()
    monkeypatch.undo()

    assert [*tmp_path.iterdir()] == []
    start()
    assert {path.name for path in tmp_path.glob("r/*")} == {"config.json", "results.jsonl"}


@pytest.mark.skipif(sys.platform == "win32", reason="Windows has no permission bits")
@pytest.mark.parametrize(("umask", "mode"), [(0, 0o666), (0o022, 0o644), (0o077, 0o600)])
def test_the_users_umask_counts(tmp_path, umask, mode):
    """Files are as private as the user's umask says; no other user can block a run by its lock."""
    before = os.umask(umask)
    try:
        with RunDirectory.new(tmp_path, "r", exactly=True) as run:
            run.write_text("summary.md", "x")
            modes = {path.name: path.stat().st_mode & 0o777 for path in run.path.iterdir()}
    finally:
        os.umask(before)

    assert modes == {".lock": 0o600, "results.jsonl": mode, "summary.md": mode}


def test_a_name_is_taken_once(tmp_path):
    """A chosen name that exists is refused; a generated one gets a number."""
    names = [RunDirectory.new(tmp_path / "runs", "r", exactly=False).run_id for _ in range(3)]
    assert names == ["r", "r_2", "r_3"]
    for hint in ("remove its folder", "continue it with --openclaw-resume=r"):
        with pytest.raises(OpenClawError, match=f"the run r exists already .*{hint}"):
            RunDirectory.new(tmp_path / "runs", "r", exactly=True)
        (tmp_path / "runs" / "r" / "config.json").write_text("{}")


def test_a_second_writer_is_refused(tmp_path):
    """While a run lives no other process opens its directory; afterwards no lock is left."""
    with RunDirectory.new(tmp_path, "r", exactly=True) as run:
        with pytest.raises(OpenClawError, match="is still active in another session"), RunDirectory(run.path):
            pass
        run.append({"n": 1})

    assert [path.name for path in run.path.iterdir()] == ["results.jsonl"]
    with RunDirectory(run.path) as again:
        again.append({"n": 2})
    assert _rows(run.path) == [{"n": 1}, {"n": 2}]


A = Target(provider="p", model="a")
B = Target(provider="p", model="b", thinking_level="low")


@pytest.fixture
def directory(tmp_path):
    with RunDirectory.new(tmp_path, "r", exactly=True) as opened:
        yield opened


def _plan(n_cells, n_repeats=1, fixed=None):
    """A plan with so many cells of each target in each repeat; the prompts in `fixed` set their own repeats."""
    cells = {
        CellKey("s", f"T{n}", target, repeat): False
        for target, total in n_cells.items()
        for repeat in range(1, n_repeats + 1)
        for n in range(total)
    }
    prompts = [{"suite": "s", "id": "P1"}]
    for name, repeats in (fixed or {}).items():
        prompts.append({"suite": "s", "id": name, "repeat": repeats})
        cells |= {CellKey("s", name, target, n + 1): True for target in n_cells for n in range(repeats)}
    stages = {key: Stage(key.repeat, key.repeat, is_fixed) for key, is_fixed in cells.items()}
    return Plan(
        cells=frozenset(cells),
        targets=tuple(n_cells),
        prompts={(one["suite"], one["id"]): one for one in prompts},
        providers={"p": {"kind": "p"}},
        stopping=EarlyStopping(stages, (1, n_repeats) if n_repeats > 1 else ()),
    )


def _session(directory, n_selected):
    return RunSession(directory, whole(Settings)(), _plan(n_selected))


def _left_out(prompt_id="T0", repeat=1, *, of=A):
    return LeftOut(suite="s", prompt_id=prompt_id, target=of.label, repeat=repeat)


def _load(directory, name):
    return json.loads((directory.path / name).read_text("utf-8"))


def test_a_run_says_whether_it_is_whole(directory):
    """With a row for each cell it is finished; a cell skipped by a mark does not count."""
    session = _session(directory, {A: 2, B: 1})
    session.add(record(A))
    before = session.finish().state
    session.leave_out(_left_out(of=B))
    session.add(missed(A, prompt_id="P2"))

    assert (before, session.finish().state) == ("interrupted", "finished")
    assert session.finish().n_cells == 2


def test_the_description_of_a_server_is_put_together(directory):
    """The warm-up comes first, the server's description after a reply; another description is kept, too."""
    session = _session(directory, {A: 3})
    warm_up = {"warm_up": {"ok": True, "e2e_ms": 5, "message": None}}

    session.take_facts(A, warm_up)
    session.take_facts(A, {"server": {"version": "1"}})
    facts = {**warm_up, "server": {"version": "1"}}
    assert _load(directory, "inventory.json")["targets"] == {"p/a": facts}

    session.take_facts(A, {"server": {"version": "2"}})
    facts["server_when_resumed"] = {"version": "2"}
    assert _load(directory, "inventory.json")["targets"] == {"p/a": facts}


def test_snapshots_are_files_and_in_the_summary(directory):
    """The one after is taken with the last cell of a target, or at the end."""
    session = _session(directory, {A: 1, B: 2})
    session.take_facts(A, {"resources_before": {"n": 1}})
    session.take_facts(B, {"resources_before": {"n": 5}})
    session.add(record(A))
    assert (directory.path / "resources_p__a_after.txt").exists()
    session.add(record(B))

    groups = session.finish().groups

    assert [group.resources_before for group in groups] == [{"n": 1}, {"n": 5}]
    assert all(group.resources_after for group in groups)
    assert (directory.path / "resources_p__a_after.txt").read_text().splitlines()[0] == "# p/a, after"


def test_targets_have_safe_names_of_their_own():
    """Names that a file system would treat as equal get a number; nothing leaves the folder."""
    models = ["a/b:c", "a_b_c", "A_B_C", "../../x", "é" * 200, "con"]

    names = list(file_names(Target(provider="p", model=model) for model in models).values())

    assert names[:4] == ["p__a_b_c", "p__a_b_c_2", "p__A_B_C_3", "p__.._.._x"]
    assert len({name.casefold() for name in names}) == len(names)
    assert all(len(name) <= 123 and "/" not in name for name in names)


def test_names_for_thousands_of_targets_with_one_beginning():
    """Their number does not matter for the time of one; in a run from elsewhere they would take hours."""
    names = file_names(Target(provider="p", model=f"{'m' * 200}{n}") for n in range(5000))

    assert len({*names.values()}) == 5000


def test_each_setting_has_a_rule(directory):
    """The rules say whether runs that differ in a setting are the same run; a new setting needs one."""
    _session(directory, {A: 1}).add(record(A))

    assert {*_load(directory, "config.json")} - {*IDENTITY} == {*setting_rules()} - {OTHER}


def test_a_conclusive_target_still_needs_its_fixed_repeats(directory):
    """Prompts with their own number are cells of the run, except those that a mark skips."""
    plan = _plan({A: 8}, 3, fixed={"F1": 4})
    session = RunSession(directory, whole(Settings)(repeat=3, until_conclusive=True), plan)
    for n in range(8):
        session.add(record(A, prompt_id=f"T{n}", tool_outcome="no_call"))
    for repeat in (1, 2):
        session.add(record(A, prompt_id="F1", repeat=repeat))
    session.leave_out(_left_out("F1", 4))
    session.leave_out(_left_out("T0", 2))

    summary = session.finish()
    assert (summary.n_cells, summary.n_rows, summary.state) == (11, 10, "interrupted")


@pytest.mark.parametrize(
    "error",
    [OSError("hidden"), RuntimeError("no vmstat"), NotImplementedError("no swap"), psutil.AccessDenied()],
    ids=lambda error: type(error).__name__,
)
def test_an_unknown_fact_about_the_machine_is_null(tmp_path, monkeypatch, error):
    """A container that hides its figures loses the figures and no cell."""

    def hidden(*_, **__):
        raise error

    for name in ("virtual_memory", "swap_memory", "disk_usage", "getloadavg", "cpu_percent"):
        monkeypatch.setattr(sending.psutil, name, hidden)

    snapshot = collect_snapshot()

    assert {key for key, value in snapshot.items() if value is not None} == {"taken_at_ms"}
    write_snapshot(RunDirectory(tmp_path), "p__m", "p/m", "resources_before", snapshot)
    assert "memory_total_bytes      None\n" in (tmp_path / "resources_p__m_before.txt").read_text()


def test_a_snapshot_as_text(tmp_path):
    """Bytes are shown in readable units, too."""
    snapshot = {"load_1m": 0.5, "disk_free_bytes": 3 * 1024**3}
    write_snapshot(RunDirectory(tmp_path), "p__m", "p/m", "resources_after", snapshot)
    assert (tmp_path / "resources_p__m_after.txt").read_text() == (
        "# p/m, after\nload_1m                 0.5\ndisk_free_bytes         3221225472  (3.0 GiB)\n"
    )


@pytest.mark.parametrize(
    ("said", "gpus"),
    [
        ("NVIDIA A10, Rev. B, 24564, 555.42\n", [("NVIDIA A10, Rev. B", "24564", "555.42")]),
        ("No devices were found\n", []),
        ("", []),
    ],
)
def test_graphics_cards(monkeypatch, said, gpus):
    """Each card is listed; a tool that finds none may report that as text."""
    done = subprocess.CompletedProcess([], 0, stdout=said)
    monkeypatch.setattr(directories.subprocess, "run", lambda *_, **__: done)

    names = ("name", "memory_mib", "driver")
    assert collect_inventory()["gpus"] == [dict(zip(names, gpu, strict=True)) for gpu in gpus]
