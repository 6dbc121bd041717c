"""The public hooks in whole sessions: plugins of conftests and of installed packages, and broken ones."""

from __future__ import annotations

import json
import shutil
from pathlib import Path
from typing import Any

import pytest

from pytest_openclaw.cli import main

pytestmark = pytest.mark.newest

EXAMPLES = Path(__file__).parent.parent / "examples"
YES = {"type": "exact", "value": "yes"}
SUITE = {"P1": ("say yes", YES), "P2": ("say no", YES)}
READS = {"type": "reads_only", "folder": "notes/"}
TICKET = {"type": "mentions_ticket", "ticket": "OC-12"}
TICKETS = {
    "P1": ("say see OC-12", TICKET),
    "P2": ("say nothing", TICKET),
    "P3": ("say OC-12", {"type": "all_of", "validators": [TICKET, {"type": "max_words", "value": 1}]}),
}
ROW_HOOK = """
def pytest_openclaw_record(row, config):
    return {}
"""
REPORT = """
class Mine:
    name = "mine.txt"
    def render(self, summary):
        return {}

def pytest_openclaw_reports():
    return [Mine]
"""


def example(name: str) -> str:
    """Return the text of an example."""
    return (EXAMPLES / f"{name}.py").read_text("utf-8")


def check_tickets(session: Any) -> None:
    """Only the reply without the ticket fails."""
    session.outcomes(passed=2, failed=1)
    assert session.row("P2")["violation"] == "OC-12 is not mentioned"


@pytest.mark.under_workers
def test_the_examples_as_installed_packages(project: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    """Provider, validator, report and row hook are found by their entry points, in every process."""
    for name in ("parrot_provider", "ticket_validator", "tiers_report", "lab_record"):
        info = project.folder / "site" / f"{name}-1.0.dist-info"
        info.mkdir(parents=True)
        shutil.copy(EXAMPLES / f"{name}.py", info.parent)
        (info / "METADATA").write_text(f"Metadata-Version: 2.1\nName: {name}\nVersion: 1.0\n")
        (info / "entry_points.txt").write_text(f"[pytest11]\n{name} = {name}\n")
    monkeypatch.setenv("PYTHONPATH", str(project.folder / "site"))
    project.pytester.makeini(
        "[pytest]\nteam = night\nopenclaw_endpoints = cage = parrot http://127.0.0.1:9/v1\n"
    )
    project.suite(TICKETS)

    session = project.run(models="parrot/any,cage/any", apart=True)

    session.outcomes(passed=2, failed=4)  # the parrot repeats the whole prompt
    assert {row["provider"] for row in session.rows} == {"parrot", "cage"}
    assert [row["x_lab"] for row in session.rows] == [{"team": "night", "too_late": False}] * 6
    assert (session.run_dir / "tiers.csv").read_text() == (
        "target,tier,conclusive\nparrot/any,None,None\ncage/any,None,None\n"
    )
    assert (session.run_dir / "summary.md").is_file()


@pytest.mark.under_workers
def test_a_validator_of_the_root_conftest(project: Any) -> None:
    """It judges, also inside another validator, and its violation is in the row."""
    project.extend_conftest(f"\n{example('ticket_validator')}")
    project.suite(TICKETS)

    check_tickets(project.run())


@pytest.mark.parametrize(
    "mode", [(), pytest.param(("-n", "2"), marks=pytest.mark.workers)], ids=["plain", "workers"]
)
def test_a_validator_beside_the_suites(plain_project: Any, mode: tuple[str, ...]) -> None:
    """A conftest in the suites' folder counts too; under xdist only the workers load it."""
    plain_project.suite(TICKETS)
    (plain_project.folder / "benchmarks" / "conftest.py").write_text(example("ticket_validator"))
    plain_project.pytester.makeini("[pytest]\nopenclaw_models = scripted/m\n")

    check_tickets(plain_project.run(*mode, models=None, target=""))


QUESTIONS = "Q1,say yes,yes\nQ2,say no,yes\nQ3,say maybe,\n"


@pytest.mark.under_workers
def test_a_format_of_suites_and_a_part_of_the_summary(project: Any) -> None:
    """A file of a plugin's format is cells and skipped entries; its part is in the summary and in reports."""
    project.extend_conftest(f"\n{example('csv_suite')}")
    (project.folder / "benchmarks").mkdir(exist_ok=True)
    (project.folder / "benchmarks/questions.csv").write_text(QUESTIONS)

    session = project.run()

    session.outcomes(passed=1, failed=1, skipped=1)
    assert {row["prompt_id"]: row["objective_pass"] for row in session.rows} == {"Q1": True, "Q2": False}
    (part,) = json.loads((session.run_dir / "summary.json").read_text())["added"]
    assert (part["name"], part["value"]) == ("slow", {"n": 0})
    assert "## Slow\n\n0 cells took more than 5 s." in (session.run_dir / "summary.md").read_text()


@pytest.mark.under_workers
def test_a_broken_file_of_a_plugins_format(project: Any) -> None:
    """It is a collection error with the plugin's text, before any request."""
    project.extend_conftest(f"\n{example('csv_suite')}")
    (project.folder / "benchmarks").mkdir(exist_ok=True)
    (project.folder / "benchmarks/questions.csv").write_text("Q1,say yes\n")

    session = project.run()

    session.outcomes(errors=1)
    assert "benchmarks/questions.csv: line 1 has 2 columns, not 3." in session.text


CALLER = """
import json
from pytest_openclaw import Provider, Reply, ToolCall


class Caller(Provider):
    name = "caller"
    takes_tools = True

    async def ask(self, request):
        name, _, path = request.prompt.partition(" ")
        if not path:
            return Reply(text="hi")
        return Reply(tool_calls=(ToolCall(name=name, arguments=json.dumps({"path": path})),))


def pytest_openclaw_providers():
    return [Caller]


"""


def test_a_validator_of_calls(plain_project: Any) -> None:
    """A cell has the outcome of its calls, and is evidence about the tools that the plugin demands."""
    plain_project.pytester.makeconftest(CALLER + example("call_validator"))
    either = [READS, {"type": "tool_call", "calls": [{"name": "exec"}]}]
    cases: dict[str, tuple[str, Any, bool, str]] = {
        "right": ("read notes/a.md", READS, True, "valid"),
        "wrong-path": ("read secret.md", READS, False, "unfinished"),
        "refused-call": ("write notes/a.md", READS, False, "bad_arguments"),
        "no-call": ("hi", READS, False, "no_call"),
        "any-of": ("read notes/a.md", {"type": "any_of", "validators": either}, True, "valid"),
    }
    suite = [
        {"id": name, "prompt": prompt, "validator": rule, "tools": "direct"}
        for name, (prompt, rule, _, _) in cases.items()
    ]
    plain_project.suite(suite)

    rows = plain_project.run(models="caller/m").rows

    assert {row["prompt_id"]: (row["objective_pass"], row["tool_outcome"]) for row in rows} == {
        name: case[2:] for name, case in cases.items()
    }
    assert all(row["tool_use_success"] is row["objective_pass"] for row in rows)
    assert {(row["tool_demand"], *row["tools_tested"]) for row in rows} == {("call", "read")}


COUNTING = """

import threading


class Counting(Provider):
    name = "counting"

    def __init__(self, setup):
        super().__init__(setup)
        calls = []

        class Exhausted(Exception):
            def __init__(self, n, lock):
                super().__init__(f"after {n} calls")
                self.lock = lock

        def count(text):
            calls.append(text)
            if text == "break":
                raise Exhausted(len(calls), threading.Lock())
            return f"call {len(calls)}: {text}"

        self.answer = lambda request: Reply(text=count(request.prompt))

    async def ask(self, request):
        return self.answer(request)


def pytest_openclaw_providers():
    return [Counting]
"""


@pytest.mark.under_workers
def test_a_provider_is_an_ordinary_object(project: Any) -> None:
    """One object answers all cells; it may hold closures and raise an exception of its own."""
    project.extend_conftest(COUNTING)
    project.suite({"P1": ("one", None), "P2": ("break", None), "P3": ("three", None)})

    session = project.run(models="counting/m")

    session.outcomes(passed=2, errors=1)
    answers = sorted(row["raw_output"] for row in session.rows if row["success"])
    assert answers == ["call 1: one", "call 3: three"]
    assert session.row("P2")["failure_type"] == "harness_error"
    assert "Exhausted: after 2 calls" in session.row("P2")["fault_message"]


def test_a_wrong_plugin_ends_the_session(plain_project: Any) -> None:
    """The message names the plugin; nothing is asked."""
    plain_project.extend_conftest("\ndef pytest_openclaw_validators():\n    return ['exact']\n")
    plain_project.suite(SUITE)

    session = plain_project.run()

    assert session.status == pytest.ExitCode.USAGE_ERROR
    assert "conftest.py registers 'exact', which is not a validator" in session.text
    assert "Traceback" not in session.text
    assert not session.has_run


BROKEN = '''
from dataclasses import dataclass
from typing import ClassVar
import pytest
from pytest_openclaw import Verdict


@dataclass(frozen=True)
class Broken:
    """Its check does what `how` says."""

    type: ClassVar[str] = "broken"
    how: str

    def check(self, reply):
        return eval(self.how)


def pytest_openclaw_validators():
    return [Broken]
'''
BREAKS = {
    "1 / 0": "ZeroDivisionError: division by zero",
    "True": "a validator's check returns a Verdict, not bool",
    "Verdict(passed='yes')": "Verdict.passed is 'yes', not bool | None",
    "Verdict(passed=False, violation=7)": "Verdict.violation is 7, not str | None",
    "Verdict(passed=True, parsed=[1])": "Verdict.parsed is [1], not dict | None",
    "Verdict(passed=True, parsed={'a': {1}})": "set is not JSON serializable",
    "Verdict(passed=True, parsed={'a': float('nan')})": "not JSON compliant",
    "pytest.fail('no')": "Failed: no",
    "pytest.skip('no')": "a validator returns a Verdict; it cannot skip",
}


def test_a_validator_that_breaks_costs_its_own_cell(project: Any) -> None:
    """The cell is an error with a traceback and its row keeps the reply; the others are judged."""
    project.extend_conftest(BROKEN)
    broken = {f"B{n}": ("say yes", {"type": "broken", "how": how}) for n, how in enumerate(BREAKS)}
    project.suite({**broken, "P1": ("say yes", YES)})

    session = project.run("--tb=short")

    session.outcomes(passed=1, errors=len(BREAKS))
    for prompt_id, message in zip(broken, BREAKS.values(), strict=True):
        row = session.row(prompt_id)
        assert (row["availability_status"], row["failure_type"]) == ("error", "harness_error")
        assert row["raw_output"] == "yes"
        assert message in row["fault_message"]
    assert "INTERNALERROR" not in session.text


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
        pytest.param("{7: 1}", "7 cannot be added", id="no-text"),
        pytest.param("{'x_a': {1}}", "set is not JSON serializable", id="no-json"),
        pytest.param("__import__('pytest').exit('no')", "Exit: no", id="pytest.exit"),
        pytest.param("__import__('sys').exit(3)", "SystemExit: 3", id="sys.exit"),
    ],
)  # fmt: skip
def test_a_broken_row_hook_loses_only_its_keys(plain_project: Any, body: str, message: str) -> None:
    """It is reported once with its count; rows, other plugins' keys, verdicts and exit status are kept."""
    plain_project.extend_conftest(ROW_HOOK.replace("{}", body))
    plain_project.suite({"P1": ("say yes", YES), "P2": ("say yes", YES)})
    (plain_project.folder / "benchmarks/conftest.py").write_text(ROW_HOOK.replace("{}", "{'x_other': 1}"))

    session = plain_project.run()

    session.outcomes(passed=2)
    assert session.status == 0
    added = [{key: row[key] for key in row if key.startswith("x_")} for row in session.rows]
    assert added == [{"x_other": 1}] * 2
    words = "".join(session.text.split())
    assert message.replace(" ", "") in words
    assert words.count("pluginbroke") == 1
    assert "(2times)" in words


def test_a_secret_is_taken_out_of_what_plugins_add(plain_project: Any) -> None:
    """A key that a plugin would write into a row or a report is hidden there as everywhere."""
    conftest = plain_project.folder / "conftest.py"
    secret = "sk-0123456789abcdef"
    text = conftest.read_text("utf-8").replace(
        "    takes_tools = True\n", f"    takes_tools = True\n    secrets = ({secret!r},)\n"
    )
    added = {"x_key": {secret: f"is {secret}"}}
    conftest.write_text(text + ROW_HOOK.replace("{}", repr(added)) + REPORT.format(f"'it is {secret}'"))
    plain_project.suite({"P1": ("say yes", YES)})

    session = plain_project.run()

    written = "".join(path.read_text("utf-8") for path in session.run_dir.iterdir())
    assert "x_key" in written
    assert "it is " in (session.run_dir / "mine.txt").read_text()
    assert "0123456789" not in written


def test_kept_rows_of_a_resumed_run_stay_as_they_are(plain_project: Any) -> None:
    """A row hook sees rows that are written now; a kept row stays unchanged."""
    plain_project.suite({"P1": ("say yes", YES), "P2": ("timeout", YES)})
    plain_project.run("--openclaw-run-id=one")
    before = (plain_project.folder / "runs/one/results.jsonl").read_bytes().splitlines()[0]
    plain_project.extend_conftest(ROW_HOOK.replace("{}", "{'x_a': 1}"))

    session = plain_project.run("--openclaw-resume=one")

    assert (session.run_dir / "results.jsonl").read_bytes().splitlines()[0] == before
    assert ("x_a" in session.row("P1"), session.row("P2")["x_a"]) == (False, 1)


# --- reports ------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("body", "message"),
    [
        pytest.param("summary.nothing", "AttributeError: 'Summary' object has no attribute 'nothing'", id="raises"),
        pytest.param("b'bytes'", "TypeError: render returned bytes, not a text", id="bytes"),
        pytest.param("__import__('sys').exit(3)", "SystemExit: 3", id="sys.exit"),
    ],
)  # fmt: skip
def test_a_broken_report_is_left_out(plain_project: Any, body: str, message: str) -> None:
    """It is reported; the other reports are written, and the exit status is that of the verdicts."""
    plain_project.extend_conftest(REPORT.format(body))
    plain_project.suite({"P1": ("say yes", YES)})

    session = plain_project.run()

    session.outcomes(passed=1)
    assert session.status == 0
    words = "".join(session.text.split())
    assert "conftest.py:mine.txtisnotwritten:" in words
    assert message.replace(" ", "") in words
    assert not (session.run_dir / "mine.txt").exists()
    assert (session.run_dir / "summary.md").exists()


# --- merge and rescore --------------------------------------------------------------------------


@pytest.fixture
def stored(plain_project: Any) -> Any:
    """A project with a run, and plugins added after it."""
    plain_project.suite(SUITE)
    plain_project.run("--openclaw-run-id=one")
    plain_project.extend_conftest(
        REPORT.format("f'{summary.n_rows} rows'") + ROW_HOOK.replace("{}", "{'x_a': row['objective_pass']}")
    )
    return plain_project


def test_a_merge_writes_the_reports_and_leaves_the_rows(stored: Any) -> None:
    """Rows stay byte for byte, so that no row hook sees them again."""
    assert main(["merge", "one", "--into", "two"]) == 0

    runs = stored.folder / "runs"
    assert (runs / "two/mine.txt").read_text() == "2 rows"
    assert (runs / "two/results.jsonl").read_bytes() == (runs / "one/results.jsonl").read_bytes()


@pytest.mark.parametrize(
    "text",
    [
        pytest.param("1 / 0", id="raises"),
        pytest.param("import pytest; pytest.exit('no')", id="pytest.exit"),
        pytest.param("def pytest_openclaw_reports(): return [7]", id="no-report"),
    ],
)
def test_a_merge_needs_no_project(stored: Any, text: str, capsys: pytest.CaptureFixture[str]) -> None:
    """A conftest that cannot be loaded loses only its reports, which is reported."""
    (stored.folder / "conftest.py").write_text(text)

    assert main(["merge", "one", "--into", "two"]) == 0

    assert "reports of your own are not written: pytest cannot load the project" in capsys.readouterr().err
    assert (stored.folder / "runs/two/summary.md").exists()


def test_a_rescore_shows_plugins_the_rows_that_it_changes(
    stored: Any, capsys: pytest.CaptureFixture[str]
) -> None:
    """A changed row is a new one, an unchanged row keeps its bytes; a broken report is reported."""
    stored.suite({**SUITE, "P2": ("say no", {"type": "exact", "value": "no"})})
    stored.extend_conftest(REPORT.format("1 / 0").replace("mine.txt", "broken.txt"))

    assert main(["rescore", "one", "--into", "two"]) == 0

    runs = stored.folder / "runs"
    old, new = ((runs / name / "results.jsonl").read_bytes().splitlines() for name in ("one", "two"))
    assert new[0] == old[0]
    assert json.loads(new[1])["x_a"] is True
    assert (runs / "two/summary.md").exists()
    assert "broken.txt is not written: ZeroDivisionError" in capsys.readouterr().err
