"""Run folders from elsewhere: whatever they contain, each reader ends with an exit status and a message."""

import contextlib
import io
import json
import os
import random
import re
import shutil
import signal
from dataclasses import asdict
from pathlib import Path
from types import SimpleNamespace

import pytest
from hypothesis import given, note, settings
from hypothesis import strategies as st

from pytest_openclaw.cli import main
from pytest_openclaw.openclaw.catalog import substitute_surface
from pytest_openclaw.parts.rescoring import suite_files
from pytest_openclaw.runs.directory import RunDirectory
from pytest_openclaw.runs.reading import load_run
from pytest_openclaw.runs.session import Plan, RunSession, answered_rows, find_changes, settings_of
from pytest_openclaw.runs.summaries import Plugins
from pytest_openclaw.util.errors import OpenClawError
from pytest_openclaw.values.parts import whole
from pytest_openclaw.values.requests import CellKey
from pytest_openclaw.values.settings import Settings
from tests.browser.made_runs import make_run
from tests.builtin import REGISTRY

pytestmark = [
    pytest.mark.newest,
    pytest.mark.skipif(os.name == "nt", reason="pipes and links in folders are POSIX's"),
]

SECRET = "canary-7f3a"
"""The content of a file outside every run; no command may print or change it."""


def resume(folder, run):
    """Load a run as a resumed session does, up to its first call; return the error."""
    path = folder / "runs" / run
    try:
        with RunDirectory(path) as directory:
            earlier = load_run(path, even_active=True)
            settings = settings_of(earlier.config, whole(Settings)(), ())
            plan = Plan(
                cells=frozenset(CellKey("s", "P1", target, 1) for target in settings.targets),
                targets=settings.targets,
                prompts={(one["suite"], one["id"]): one for one in earlier.config["prompts"]},
                providers=earlier.config["providers"],
            )
            find_changes(earlier.config, answered_rows(earlier), plan, settings)
            RunSession(directory, settings, plan, earlier).finish()
    except (OpenClawError, OSError) as error:
        return str(error)
    return ""


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    """Two runs and a file outside; the project has no conftest, so that no rescore loads one."""
    with pytest.MonkeyPatch.context() as patch:
        project = SimpleNamespace(validators=REGISTRY, plugins=Plugins())
        patch.setattr("pytest_openclaw.cli.project.load_project", lambda root, suites: project)
        folder = tmp_path_factory.mktemp("foreign")
        patch.chdir(folder)
        for seed, name in enumerate(("base", "good")):
            run = make_run(folder / "runs" / name, prompts=8, targets=2, repeats=2, seed=seed)
            assert main(["gate", str(run), "--min-pass-rate=0.5", "--write"]) in (0, 1, 10)
        (folder / "outside").mkdir()
        (folder / "outside/canary.txt").write_text(SECRET)
        yield folder


@pytest.fixture
def within_a_minute():
    """End a command that hangs."""

    def end(*_):
        raise TimeoutError("no end within a minute")

    before = signal.signal(signal.SIGALRM, end)
    signal.alarm(60)
    yield
    signal.alarm(0)
    signal.signal(signal.SIGALRM, before)


@pytest.fixture
def bad(folder):
    path = folder / "runs/bad"
    shutil.rmtree(path, ignore_errors=True)
    shutil.copytree(folder / "runs/good", path)
    yield path
    shutil.rmtree(path)


DEEP = b"[" * 100_000
COMMANDS = (
    "merge good bad --into nowhere",
    "show bad",
    "rescore bad --into nowhere",
    "export bad",
    "compare good bad",
    "report bad",
    "gate good --baseline bad --fail-on=regression",
    "route bad",
)


@pytest.mark.usefixtures("within_a_minute")
@pytest.mark.parametrize(
    ("name", "kind", "said"),
    [
        pytest.param("config.json", "link", "config.json is not a regular file", id="link-out"),
        pytest.param("results.jsonl", "zero", "results.jsonl is not a regular file", id="link-to-a-device"),
        pytest.param("config.json", "pipe", "config.json is not a regular file", id="pipe"),
        pytest.param("config.json", DEEP, "it is nested more than 200 levels", id="nested"),
        pytest.param("results.jsonl", b'{"e2e_ms": NaN}\n', "line 1 is not a row of this format", id="nan"),
        pytest.param("config.json", "holes", "config.json has more than 1 MiB", id="holes"),
        pytest.param("results.jsonl", "holes", "line 1 is not a row of this format", id="a-row-of-holes"),
    ],
)
def test_every_reader_refuses_malformed_files(folder, bad, name, kind, said, command, monkeypatch):
    """One sentence names the file, with exit status 4; `history` shows the other runs and ends with 0."""
    for module in ("util.files", "runs.reading"):
        monkeypatch.setattr(f"pytest_openclaw.{module}.MOST_BYTES", 1 << 20)
    (bad / name).unlink()
    if isinstance(kind, bytes):
        (bad / name).write_bytes(kind)
    elif kind == "pipe":
        os.mkfifo(bad / name)
    elif kind == "holes":
        (bad / name).touch()
        os.truncate(bad / name, 1 << 40)
    else:
        (bad / name).symlink_to("/dev/zero" if kind == "zero" else folder / "outside/canary.txt")
    if name == "results.jsonl":  # otherwise the summary is used instead of the rows
        (bad / "summary.json").unlink()

    messages = [command.refused(*words.split()) for words in COMMANDS]
    history = command("history")

    assert [text for text in (*messages, history.err, resume(folder, "bad")) if said not in text] == []
    assert SECRET not in f"{messages} {history}"
    assert not Path("nowhere").exists()


@pytest.mark.usefixtures("within_a_minute")
@pytest.mark.parametrize("kind", ["pipe", "zero", "link", "folder"])
def test_a_page_of_a_foreign_run_is_not_followed(folder, bad, command, kind):
    """Its notes are not read, and it is not replaced."""
    page = bad / "report.html"
    page.unlink(missing_ok=True)
    if kind == "pipe":
        os.mkfifo(page)
    elif kind == "folder":
        page.mkdir()
    else:
        page.symlink_to("/dev/zero" if kind == "zero" else folder / "outside/canary.txt")

    assert "report.html exists and is not a page of pytest-openclaw" in command.refused("report", "bad")
    assert (folder / "outside/canary.txt").read_text() == SECRET


@pytest.mark.parametrize(
    "notes", ["5", "[5]", '[["a"]]', "[" * 100_000, '{"a": 1}', '[["\\ud800", 1]]', "\x00"]
)
def test_notes_of_a_foreign_page_are_left_out(bad, command, notes):
    """A page in which they are broken is replaced."""
    command("report", "bad")
    page, notes = bad / "report.html", f'class="notes">{notes}<'
    page.write_text(re.sub('class="notes">[^<]*<', lambda _: notes, page.read_text("utf-8")), "utf-8")

    assert command("report", "bad").err == ""

    assert notes not in page.read_text("utf-8")


def test_a_summary_of_other_models_loses_no_row(bad, command):
    """The page has the rows of all targets, including those that a foreign summary does not name."""
    summary = json.loads((bad / "summary.json").read_text())
    (bad / "summary.json").write_text(
        json.dumps({**summary, "groups": [{**one, "model": "../.."} for one in summary["groups"]]})
    )

    command("report", "bad", "--into", "page.html")

    page = Path("page.html").read_text()
    assert [one["model"] for one in summary["groups"] if f'"{one["model"]}"' not in page] == []


@pytest.mark.usefixtures("within_a_minute")
def test_any_number_of_cells_without_a_row_is_quick(bad, command):
    """A config may say that a target has more cells than any run."""
    (bad / "summary.json").unlink()
    config = json.loads((bad / "config.json").read_text())
    config["targets"][0]["n_cells"] = 2**53
    (bad / "config.json").write_text(json.dumps(config))

    command("show", "bad")


def test_a_row_that_has_changed_since_it_was_read(bad):
    """A command that needs its texts says so."""
    run = load_run(bad)
    os.truncate(bad / "results.jsonl", 100)

    with pytest.raises(OpenClawError, match=r"results.jsonl has changed while it was read"):
        _ = [row.whole for row in run.rows.values()]


@pytest.mark.parametrize("words", ["merge bad --into nowhere", "export bad", "report bad"])
def test_rows_that_are_exchanged_are_not_taken_for_the_others(bad, command, monkeypatch, words):
    """As when a run is resumed meanwhile; their lines may have the same lengths."""
    results, find = bad / "results.jsonl", load_run
    lines = results.read_text().splitlines()
    longest = max(map(len, lines))
    lines = [f"{line[:-1]}{' ' * (longest - len(line))}}}\n" for line in lines]
    results.write_text("".join(lines))

    def exchange(*given, **more):
        run = find(*given, **more)
        results.write_text("".join(reversed(lines)))
        return run

    monkeypatch.setattr("pytest_openclaw.runs.reading.load_run", exchange)
    monkeypatch.setattr("pytest_openclaw.parts.merging.load_run", exchange)

    assert "results.jsonl has changed while it was read" in command(*words.split(), status=4).err
    assert not Path("nowhere").exists()


def test_a_run_folder_may_be_a_link_itself(folder, tmp_path, command):
    """The user made the link; only a link that leads out of the folder is refused."""
    (tmp_path / "mine").symlink_to(folder / "runs/good")

    command("show", str(tmp_path / "mine"))


def test_no_link_is_written_through(folder, bad, command):
    """Files that a command writes into a run stay there, even if a link is in their place."""
    for name in ("summary.md", "report.html", ".summary.json.tmp", ".config.json.tmp", ".report.html.tmp"):
        (bad / name).unlink(missing_ok=True)
        (bad / name).symlink_to(folder / "outside/canary.txt")
    gate = ("gate", "bad", "--min-pass-rate=0.1", "--write")

    assert main([*gate]) in (0, 1, 10)
    command("report", "bad", status=4)  # the page would replace a file that is not a page
    assert resume(folder, "bad") == ""
    (bad / ".lock").symlink_to(folder / "outside/canary.txt")
    messages = [command.refused(*gate), resume(folder, "bad")]

    assert all(".lock is not a regular file" in message for message in messages)
    assert (folder / "outside/canary.txt").read_text() == SECRET


@pytest.mark.parametrize(
    "suite",
    ["{outside}/evil.toml", "../outside/evil.toml", "runs/bad/evil.toml", "other/suites/evil.toml"],
)
def test_a_suite_outside_of_the_project_is_not_loaded(folder, bad, suite):
    """A foreign conftest.py may be next to it, even in the run folder itself, or in another run's folder."""
    project = folder / "project"
    for inside in ("runs/bad", "other/suites"):
        (project / inside).mkdir(parents=True, exist_ok=True)
    (project / "other/results.jsonl").write_text("")
    for place in (folder / "outside/evil.toml", bad / "evil.toml", project / "other/suites/evil.toml"):
        place.write_text("")
    config = (bad / "config.json").read_text()
    named = suite.format(outside=folder / "outside")
    (bad / "config.json").write_text(config.replace("benchmarks/prompts_core.toml", named))
    part = load_run(bad)

    assert named in {name for name, _ in part.prompts}
    assert suite_files(part, folder if suite.startswith("runs") else project) == []
    (folder / "outside/evil.toml").unlink()


def test_pytest_loads_no_code_of_a_run(bad, pytester, monkeypatch):
    """A session without a path skips folders of runs."""
    monkeypatch.chdir(bad.parent.parent)
    for place, text in {"conftest": "1 / 0", "test_x": "1 / 0"}.items():
        (bad / f"{place}.py").write_text(text)
    (bad.parent / "test_own.py").write_text("def test_own(): pass")

    pytester.runpytest_subprocess("--rootdir=.", "-p", "no:cacheprovider").assert_outcomes(passed=1)


SERVER = {"server": "vllm", "server_version": "1", "context_length": 8192, "template_shows_tools": True}
TRIES = [
    {"change": name, "outcome": "no_call", "input_tokens": 9}
    for name in ("as_asked", "unstreamed", "without_tools")
]
WRONG = (
    None, True, 0, -1, 1.5, 10**400, 1e308, 2**53 + 1, "", "x", "\0\u202e", "x" * 9000, "http://[::1", "3/2", "../..",
    [], [None], [[]], [1, "x"], {}, {"a": 1}, {"": {}},
)  # fmt: skip
ALL_COMMANDS = (
    *COMMANDS, "show bad P1 --json", "history", "gate bad --require-tier=1 --write", "report good --baseline bad",
    "compare bad good --across serving,validator,prompt,settings,surface", "merge good bad --into nowhere --prefer=newest",
)  # fmt: skip


def paths_of(value, before=()):
    yield before
    inner = (
        value.items() if isinstance(value, dict) else enumerate(value[:3]) if isinstance(value, list) else ()
    )
    for key, one in inner:
        yield from paths_of(one, (*before, key))


def changed(value, path, wrong):
    if not path:
        return None if wrong is ... else wrong
    copy = value.copy()
    if wrong is ... and len(path) == 1:
        del copy[path[0]]
    else:
        copy[path[0]] = changed(value[path[0]], path[1:], wrong)
    return copy


@pytest.fixture(scope="module")
def rich(folder):
    """The files of a run with facts of every kind, and all paths in each; a row stands for all rows."""
    path = folder / "runs/good"
    inventory = json.loads((path / "inventory.json").read_text())
    for label in [
        f"{one['provider']}/{one['model']}"
        for one in json.loads((path / "config.json").read_text())["targets"]
    ]:
        diagnosis = {
            "suite": "s",
            "prompt_id": "P1",
            "outcome": "no_call",
            "tools_offered": 2,
            "tries": TRIES,
        }
        facts = {
            "server": SERVER,
            "server_when_resumed": SERVER,
            "diagnosis": diagnosis,
            "warm_up": {"ok": True},
        }
        inventory["targets"][label] = {**inventory["targets"].get(label, {}), **facts}
    inventory["parts"] = [{"run_id": "part", "targets": inventory["targets"]}]
    contents = {name: json.loads((path / name).read_text()) for name in ("config.json", "summary.json")}
    contents |= {"inventory.json": inventory, "surface.json": asdict(substitute_surface())}
    contents["results.jsonl"] = json.loads((path / "results.jsonl").read_text().splitlines()[0])
    return {name: (content, [*paths_of(content)]) for name, content in contents.items()}


def check_every_command(folder, rich, seed):
    """Put a wrong value somewhere into a copy of a run; each command ends by itself."""
    choose = random.Random(seed).choice
    name = choose(sorted(rich))
    content, paths = rich[name]
    path, wrong = choose(paths), choose([..., *WRONG])
    note(f"{name}: {path} becomes {wrong!r:.60}")
    bad = folder / "runs/bad"
    shutil.rmtree(bad, ignore_errors=True)
    shutil.copytree(folder / "runs/good", bad)
    (bad / "inventory.json").write_text(json.dumps(rich["inventory.json"][0]))
    written = json.dumps(changed(content, path, wrong))
    if name == "results.jsonl":
        lines = (bad / name).read_text().splitlines()
        written = "\n".join([written, *lines[1:], ""])
    (bad / name).write_text(written)
    if name != "summary.json":  # otherwise it would be used in place of the others
        (bad / "summary.json").unlink()
    for words in ALL_COMMANDS:
        shutil.rmtree("nowhere", ignore_errors=True)
        shutil.rmtree("runs/nowhere", ignore_errors=True)
        output = io.TextIOWrapper(io.BytesIO(), "utf-8")
        with contextlib.redirect_stdout(output), contextlib.redirect_stderr(io.StringIO()):
            assert main(words.split()) in (0, 1, 4, 10)
    resume(folder, "bad")


SEEDS = st.integers(0, 2**63)


@settings(deadline=None, max_examples=15)
@given(seed=SEEDS)
def test_no_command_ends_in_a_traceback(folder, rich, seed):
    """Any value at any place of any file is shown, left out, or refused in one sentence."""
    check_every_command(folder, rich, seed)


@pytest.mark.nightly
@settings(deadline=None, max_examples=500, derandomize=False)
@given(seed=SEEDS)
def test_no_command_ends_in_a_traceback_all_night(folder, rich, seed):
    """As above, with new values each time."""
    check_every_command(folder, rich, seed)
