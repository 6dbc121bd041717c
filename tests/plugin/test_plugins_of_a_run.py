"""Reports and row hooks of plugins: where they run, what they may do, and the effect of a broken one."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from pytest_openclaw.cli import main
from tests.plugin.test_hooks import _install

pytestmark = pytest.mark.newest

EXAMPLES = Path(__file__).parent.parent / "examples"
YES = {"type": "exact", "value": "yes"}
SUITE = {"P1": ("say yes", YES), "P2": ("say no", YES)}
LOOK = """
def pytest_openclaw_record(row, config):
    return {}
"""
REPORT = """
class Mine:
    name = {!r}
    def render(self, summary):
        return {}

def pytest_openclaw_reports():
    return [Mine]
"""


def example(name: str) -> str:
    """Return the text of an example."""
    return (EXAMPLES / f"{name}.py").read_text("utf-8")


def _run_installed(project: Any, *args: str, models: str = "scripted/m") -> Any:
    from tests.plugin.test_hooks import _run

    return _run(project, *args, models=models)


# --- the examples, each as a package and as a conftest ------------------------------------------


def test_the_example_of_a_provider(project: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    """An installed package that has only the hook is used by its provider's name."""
    _install(project, monkeypatch, "parrot_provider", example("parrot_provider"))
    project.suite({"P1": ("yes", YES)})

    session = _run_installed(project, models="parrot/any")

    session.outcomes(passed=1)
    assert session.row("P1")["provider"] == "parrot"


def test_the_example_of_a_validator(project: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    """An installed package's validator judges, in every process that judges."""
    _install(project, monkeypatch, "ticket_validator", example("ticket_validator"))
    project.suite({"P1": ("say see OC-12", {"type": "mentions_ticket", "ticket": "OC-12"})})

    _run_installed(project).outcomes(passed=1)


def test_the_example_of_a_report(project: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    """An installed package's report is beside the built-in one, written once."""
    _install(project, monkeypatch, "tiers_report", example("tiers_report"))
    project.suite(SUITE)

    session = _run_installed(project)

    session.outcomes(passed=1, failed=1)
    assert (session.run_dir / "tiers.csv").read_text() == ("target,tier,conclusive\nscripted/m,None,None\n")
    assert (session.run_dir / "summary.md").is_file()


def test_the_example_of_a_row_hook(project: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    """An installed package adds to every row once, in the process that receives the reports."""
    _install(project, monkeypatch, "lab_record", example("lab_record"))
    project.pytester.makeini("[pytest]\nteam = night\n")
    project.suite(SUITE)

    session = _run_installed(project)

    session.outcomes(passed=1, failed=1)
    assert [row["x_lab"] for row in session.rows] == [{"team": "night", "too_late": False}] * 2


# --- row hooks ----------------------------------------------------------------------------------


def test_a_row_hook_sees_the_row_as_it_is_written(project: Any) -> None:
    """Run, host, verdict and reply are there; changes to its copy have no effect."""
    project.extend_conftest(
        """
import copy
def pytest_openclaw_record(row):
    seen = copy.deepcopy(dict(row))
    row["raw_output"] = "changed"
    row["turns"] = row["tool_calls"] = None
    return {"x_seen": seen}
"""
    )
    project.suite(SUITE)

    for row in project.run().rows:
        seen = row.pop("x_seen")
        assert seen == row


@pytest.mark.parametrize(
    ("body", "message"),
    [
        pytest.param("1 / 0", "ZeroDivisionError: division by zero", id="raises"),
        pytest.param("7", "TypeError: it returned int, not a dict or None", id="no-dict"),
        pytest.param("{'success': True}", "'success' cannot be added; a key of a plugin's begins with x_", id="our-field"),
        pytest.param("{'lab': 1}", "'lab' cannot be added", id="no-namespace"),
        pytest.param("{7: 1}", "7 cannot be added", id="no-text"),
        pytest.param("{'x_a': {1}}", "set is not JSON serializable", id="no-json"),
        pytest.param("{'x_a': float('nan')}", "not JSON compliant", id="nan"),
        pytest.param("__import__('pytest').fail('no')", "Failed: no", id="pytest.fail"),
        pytest.param("__import__('pytest').exit('no')", "Exit: no", id="pytest.exit"),
        pytest.param("__import__('sys').exit(3)", "SystemExit: 3", id="sys.exit"),
    ],
)  # fmt: skip
def test_a_broken_row_hook_loses_only_its_keys(plain_project: Any, body: str, message: str) -> None:
    """It is reported once with its count; rows, other plugins' keys, verdicts and exit status are kept."""
    plain_project.extend_conftest(LOOK.replace("{}", body))
    (plain_project.folder / "benchmarks").mkdir()
    (plain_project.folder / "benchmarks/conftest.py").write_text(LOOK.replace("{}", "{'x_other': 1}"))
    plain_project.suite({"P1": ("say yes", YES), "P2": ("say yes", YES)})

    session = plain_project.run()

    session.outcomes(passed=2)
    assert session.status == 0
    assert [{key: row[key] for key in row if key.startswith("x_")} for row in session.rows] == [
        {"x_other": 1}
    ] * 2
    words = "".join(session.text.split())
    assert message.replace(" ", "") in words
    assert words.count("pluginbroke") == 1
    assert "conftest.py:pytest_openclaw_record:" in words
    assert "(2times)" in words
    assert "INTERNALERROR" not in words


def test_a_secret_is_taken_out_of_what_plugins_add(plain_project: Any) -> None:
    """A key that a plugin would write into a row or a report is hidden there as everywhere."""
    conftest = plain_project.folder / "conftest.py"
    text = conftest.read_text("utf-8").replace(
        "    takes_tools = True\n", '    takes_tools = True\n    secrets = ("sk-0123456789abcdef",)\n'
    )
    conftest.write_text(
        text
        + LOOK.replace("{}", "{'x_key': {'sk-0123456789abcdef': 'is sk-0123456789abcdef'}}")
        + REPORT.format("key.txt", "'it is sk-0123456789abcdef'"),
        "utf-8",
    )
    plain_project.suite({"P1": ("say yes", YES)})

    session = plain_project.run()

    written = "".join(path.read_text("utf-8") for path in session.run_dir.iterdir())
    assert "x_key" in written
    assert "it is " in (session.run_dir / "key.txt").read_text()
    assert "0123456789" not in written


def test_kept_rows_of_a_resumed_run_stay_as_they_are(plain_project: Any) -> None:
    """A row hook sees rows that are written now; a kept row stays unchanged."""
    plain_project.suite({"P1": ("say yes", YES), "P2": ("timeout", YES)})
    plain_project.run("--openclaw-run-id=one")
    before = (plain_project.folder / "runs/one/results.jsonl").read_bytes().splitlines()[0]
    plain_project.extend_conftest(LOOK.replace("{}", "{'x_a': 1}"))

    session = plain_project.run("--openclaw-resume=one")

    assert (session.run_dir / "results.jsonl").read_bytes().splitlines()[0] == before
    assert ("x_a" in session.row("P1"), session.row("P2")["x_a"]) == (False, 1)


# --- reports ------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("text", "message"),
    [
        pytest.param(REPORT.format("summary.md", "''"), "the report 'summary.md' is claimed by", id="built-in"),
        pytest.param(REPORT.format("SUMMARY.MD", "''"), "the report 'SUMMARY.MD' is claimed by", id="built-in-in-capitals"),
        pytest.param(REPORT.format("results.jsonl", "''"), "a report cannot be named 'results.jsonl'", id="rows"),
        pytest.param(REPORT.format("Config.json", "''"), "a report cannot be named 'Config.json'", id="config"),
        pytest.param(REPORT.format("resources_x_after.txt", "''"), "a report cannot be named", id="snapshot"),
        pytest.param(REPORT.format("../x", "''"), "a report cannot be named '../x'", id="path"),
        pytest.param(REPORT.format(".lock", "''"), "a report cannot be named '.lock'", id="lock"),
        pytest.param(REPORT.format("", "''"), "a report cannot be named ''", id="empty"),
        pytest.param("def pytest_openclaw_reports():\n    return [7]\n", "7 is no report: it needs a name and a render(summary)", id="number"),
        pytest.param("def pytest_openclaw_reports():\n    return 7\n", "pytest_openclaw_reports returned 7, not a list", id="no-list"),
        pytest.param("class A:\n    name = 'a.txt'\n\ndef pytest_openclaw_reports():\n    return [A]\n", "is no report", id="no-render"),
        pytest.param("class A:\n    def __init__(self, x): pass\n\ndef pytest_openclaw_reports():\n    return [A]\n", "the report A cannot be made: TypeError", id="cannot-be-made"),
    ],
)  # fmt: skip
def test_a_wrong_report_is_refused_before_the_first_request(
    plain_project: Any, text: str, message: str
) -> None:
    """An invalid or duplicate report gives one clear message."""
    plain_project.extend_conftest(f"\n{text}")
    plain_project.suite({"P1": ("say yes", YES)})

    session = plain_project.run()

    assert message in session.text
    assert "conftest.py" in session.text
    assert session.status == pytest.ExitCode.USAGE_ERROR
    assert not session.has_run


@pytest.mark.parametrize(
    ("body", "message"),
    [
        pytest.param("summary.nothing", "AttributeError: 'Summary' object has no attribute 'nothing'", id="raises"),
        pytest.param("b'bytes'", "TypeError: render returned bytes, not a text", id="bytes"),
        pytest.param("open('/nowhere/at/all')", "FileNotFoundError", id="os-error"),
        pytest.param("__import__('sys').exit(3)", "SystemExit: 3", id="sys.exit"),
    ],
)  # fmt: skip
def test_a_broken_report_is_left_out(project: Any, body: str, message: str) -> None:
    """It is reported; the other reports are written, and the exit status is that of the verdicts."""
    project.extend_conftest(REPORT.format("mine.txt", body))
    project.suite({"P1": ("say yes", YES)})

    session = project.run()

    session.outcomes(passed=1)
    assert session.status == 0
    words = "".join(session.text.split())
    assert "conftest.py:mine.txtisnotwritten:" in words
    assert message.replace(" ", "") in words
    assert not (session.run_dir / "mine.txt").exists()
    assert (session.run_dir / "summary.md").exists()
    assert "INTERNALERROR" not in words


# --- merge and rescore --------------------------------------------------------------------------


@pytest.fixture
def stored(plain_project: Any, monkeypatch: pytest.MonkeyPatch) -> Any:
    """A project with a run, and plugins added after it."""
    plain_project.suite(SUITE)
    plain_project.run("--openclaw-run-id=one")
    plain_project.extend_conftest(
        REPORT.format("rows.txt", "f'{summary.n_rows} rows'")
        + LOOK.replace("{}", "{'x_a': row['objective_pass']}")
    )
    monkeypatch.chdir(plain_project.folder)
    return plain_project


def test_a_merge_writes_the_reports_and_leaves_the_rows(stored: Any) -> None:
    """Rows stay byte for byte, so that no row hook sees them again."""
    assert main(["merge", "one", "--into", "two"]) == 0

    runs = stored.folder / "runs"
    assert (runs / "two/rows.txt").read_text() == "2 rows"
    assert (runs / "two/results.jsonl").read_bytes() == (runs / "one/results.jsonl").read_bytes()


@pytest.mark.parametrize(
    "text",
    [
        pytest.param("1 / 0", id="raises"),
        pytest.param("import sys; sys.exit(3)", id="sys.exit"),
        pytest.param("import pytest; pytest.exit('no')", id="pytest.exit"),
        pytest.param("def pytest_openclaw_reports(): 1 / 0", id="hook-raises"),
        pytest.param("def pytest_openclaw_reports(): return [7]", id="no-report"),
        pytest.param("def pytest_addoption(parser): 1 / 0", id="no-options"),
    ],
)
def test_a_merge_needs_no_project(stored: Any, text: str, capsys: pytest.CaptureFixture[str]) -> None:
    """A conftest that cannot be loaded loses only its reports, which is reported."""
    (stored.folder / "conftest.py").write_text(text)

    assert main(["merge", "one", "--into", "two"]) == 0

    assert "reports of your own are not written: pytest cannot load the project" in capsys.readouterr().err
    assert (stored.folder / "runs/two/summary.md").exists()


def test_a_rescore_shows_plugins_the_rows_that_it_changes(stored: Any) -> None:
    """A changed row is a new one; an unchanged row keeps its bytes."""
    stored.suite({**SUITE, "P2": ("say no", {"type": "exact", "value": "no"})})

    assert main(["rescore", "one", "--into", "two"]) == 0

    runs = stored.folder / "runs"
    old, new = ((runs / name / "results.jsonl").read_bytes().splitlines() for name in ("one", "two"))
    assert new[0] == old[0]
    assert json.loads(new[1])["x_a"] is True
    assert (runs / "two/rows.txt").read_text() == "2 rows"


def test_a_broken_plugin_does_not_stop_a_rescore(stored: Any, capsys: pytest.CaptureFixture[str]) -> None:
    """It is reported on stderr, and the new run is written."""
    stored.extend_conftest(REPORT.format("rows.txt", "1 / 0"))

    assert main(["rescore", "one", "--into", "two"]) == 0

    assert "rows.txt is not written: ZeroDivisionError" in capsys.readouterr().err
    assert (stored.folder / "runs/two/summary.md").exists()
