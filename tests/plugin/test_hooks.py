"""The public hooks in whole sessions: plugins of conftests and of installed packages, and broken ones."""

import shutil
from pathlib import Path

import pytest

from pytest_openclaw.cli import main
from tests.plugin.conftest import YES

pytestmark = pytest.mark.newest

EXAMPLES = Path(__file__).parent.parent / "examples"
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


def example(name):
    return (EXAMPLES / f"{name}.py").read_text("utf-8")


@pytest.mark.under_workers
def test_the_examples_as_installed_packages(project, monkeypatch):
    """Provider, validator, report and row hook are found by their entry points, in every process."""
    for name in ("parrot_provider", "ticket_validator", "tiers_report", "lab_record"):
        info = project.folder / "site" / f"{name}-1.0.dist-info"
        info.mkdir(parents=True)
        shutil.copy(EXAMPLES / f"{name}.py", info.parent)
        (info / "METADATA").write_text(f"Metadata-Version: 2.1\nName: {name}\nVersion: 1.0\n")
        (info / "entry_points.txt").write_text(f"[pytest11]\n{name} = {name}\n")
    monkeypatch.setenv("PYTHONPATH", str(project.folder / "site"))
    project.ini("team = night", "openclaw_endpoints = cage = parrot http://127.0.0.1:9/v1")
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
@pytest.mark.parametrize("place", ["conftest.py", "benchmarks/conftest.py"])
def test_a_validator_of_a_conftest(project, place):
    """It judges, also inside another validator; of the suites' folder only the workers load it under xdist."""
    project.suite(TICKETS)
    conftest = project.folder / place
    before = conftest.read_text("utf-8") if conftest.exists() else ""
    project.write(place, f"{before}\n{example('ticket_validator')}")
    project.ini("openclaw_models = scripted/m")

    session = project.run(models=None, target="")

    session.outcomes(passed=2, failed=1)
    assert session.row("P2")["violation"] == "OC-12 is not mentioned"


@pytest.mark.under_workers
def test_a_format_of_suites_and_a_part_of_the_summary(project):
    """A plugin's file is cells, skipped entries or a collection error; its part is in summary and reports."""
    project.extend_conftest(f"\n{example('csv_suite')}")
    project.write("benchmarks/questions.csv", "Q1,say yes,yes\nQ2,say no,yes\nQ3,say maybe,\n")

    session = project.run()

    session.outcomes(passed=1, failed=1, skipped=1)
    assert {row["prompt_id"]: row["objective_pass"] for row in session.rows} == {"Q1": True, "Q2": False}
    (part,) = session.load("summary.json")["added"]
    assert (part["name"], part["value"]) == ("slow", {"n": 0})
    assert "## Slow\n\n0 cells took more than 5 s." in session.page

    project.write("benchmarks/questions.csv", "Q1,say yes\n")
    broken = project.run()

    broken.outcomes(errors=1)
    assert "benchmarks/questions.csv: line 1 has 2 columns, not 3." in broken.text
    assert (broken.asked, broken.has_run) == ([], False)


CALLER = """
class Caller(Provider):
    name = "caller"
    takes_tools = True

    async def ask(self, request):
        name, _, path = request.prompt.partition(" ")
        if not path:
            return Reply(text="hi")
        return Reply(tool_calls=(ToolCall(name=name, arguments=json.dumps({"path": path})),))


PROVIDERS.append(Caller)
"""


def test_a_validator_of_calls(plain_project):
    """A cell has the outcome of its calls, and is evidence about the tools that the plugin demands."""
    plain_project.extend_conftest(CALLER + example("call_validator"))
    either = [READS, {"type": "tool_call", "calls": [{"name": "exec"}]}]
    cases = {
        "right": ("read notes/a.md", READS, True, "valid"),
        "wrong-path": ("read secret.md", READS, False, "unfinished"),
        "refused-call": ("write notes/a.md", READS, False, "bad_arguments"),
        "no-call": ("hi", READS, False, "no_call"),
        "any-of": ("read notes/a.md", {"type": "any_of", "validators": either}, True, "valid"),
    }
    plain_project.suite(
        [
            {"id": name, "prompt": prompt, "validator": rule, "tools": "direct"}
            for name, (prompt, rule, _, _) in cases.items()
        ]
    )

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


PROVIDERS.append(Counting)
"""


@pytest.mark.under_workers
def test_a_provider_is_an_ordinary_object(project):
    """One object answers all cells; it may hold closures and raise an exception of its own."""
    project.extend_conftest(COUNTING)
    project.suite({"P1": ("one", None), "P2": ("break", None), "P3": ("three", None)})

    session = project.run(models="counting/m")

    session.outcomes(passed=2, errors=1)
    answers = sorted(row["raw_output"] for row in session.rows if row["success"])
    assert answers == ["call 1: one", "call 3: three"]
    assert session.row("P2")["failure_type"] == "harness_error"
    assert "Exhausted: after 2 calls" in session.row("P2")["fault_message"]


def test_a_wrong_plugin_ends_the_session(plain_project):
    """The message names the plugin; nothing is asked."""
    plain_project.extend_conftest("\ndef pytest_openclaw_validators():\n    return ['exact']\n")
    plain_project.suite(SUITE)

    plain_project.run().is_refused("conftest.py: 'exact' is not a validator")


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


def test_a_validator_that_breaks_loses_its_own_cell(project):
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
    assert "conftest.py" in session.text
    assert "INTERNALERROR" not in session.text


def test_a_row_hook_sees_the_row_as_it_is_written(project):
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
        pytest.param("7", "TypeError: it returned int, not a dict or None", id="another-object"),
        pytest.param("{'success': True}", "'success' cannot be added; the keys of a plugin are like x_lab", id="our-field"),
        pytest.param("{7: 1}", "7 cannot be added", id="a-number"),
        pytest.param("{'x_a': {1}}", "set is not JSON serializable", id="a-set"),
        pytest.param("__import__('pytest').exit('no')", "Exit: no", id="pytest.exit"),
        pytest.param("__import__('sys').exit(3)", "SystemExit: 3", id="sys.exit"),
    ],
)  # fmt: skip
def test_a_broken_row_hook_loses_only_its_keys(plain_project, body, message):
    """It is reported once with its count; rows, other plugins' keys, verdicts and exit status are kept."""
    plain_project.extend_conftest(ROW_HOOK.replace("{}", body))
    plain_project.suite({"P1": ("say yes", YES), "P2": ("say yes", YES)})
    plain_project.write("benchmarks/conftest.py", ROW_HOOK.replace("{}", "{'x_other': 1}"))

    session = plain_project.run()

    session.outcomes(passed=2)
    assert session.status == 0
    added = [{key: row[key] for key in row if key.startswith("x_")} for row in session.rows]
    assert added == [{"x_other": 1}] * 2
    words = "".join(session.text.split())
    assert message.replace(" ", "") in words
    assert words.count("pluginbroke") == 1
    assert "(2times)" in words


def test_a_secret_is_taken_out_of_what_plugins_add(plain_project):
    """A key that a plugin would write into a row or a report is hidden there too."""
    secret = "sk-0123456789abcdef"
    plain_project.change_conftest(
        "takes_tools = True\n", f"takes_tools = True\n    secrets = ({secret!r},)\n"
    )
    added = {"x_key": {secret: f"is {secret}"}}
    plain_project.extend_conftest(ROW_HOOK.replace("{}", repr(added)) + REPORT.format(f"'it is {secret}'"))
    plain_project.suite({"P1": ("say yes", YES)})

    session = plain_project.run()

    written = "".join(path.read_text("utf-8") for path in session.run_dir.iterdir())
    assert "x_key" in written
    assert "it is " in (session.run_dir / "mine.txt").read_text()
    assert "0123456789" not in written


def test_kept_rows_of_a_resumed_run_are_unchanged(plain_project):
    """A row hook sees rows that are written now; a kept row stays unchanged."""
    plain_project.suite({"P1": ("say yes", YES), "P2": ("timeout", YES)})
    before = plain_project.run("--openclaw-run-id=one").lines
    plain_project.extend_conftest(ROW_HOOK.replace("{}", "{'x_a': 1}"))

    session = plain_project.run("--openclaw-resume=one")

    assert session.lines[0] == before[0]
    assert ("x_a" in session.row("P1"), session.row("P2")["x_a"]) == (False, 1)


@pytest.mark.parametrize(
    ("body", "message"),
    [
        ("summary.nothing", "AttributeError: 'Summary' object has no attribute 'nothing'"),
        ("b'bytes'", "TypeError: render returned bytes, not a text"),
        ("__import__('sys').exit(3)", "SystemExit: 3"),
    ],
    ids=["raises", "bytes", "sys.exit"],
)
def test_a_broken_report_is_left_out(plain_project, body, message):
    """It is reported; the other reports are written, and the exit status follows the verdicts."""
    plain_project.extend_conftest(REPORT.format(body))
    plain_project.suite({"P1": ("say yes", YES)})

    session = plain_project.run()

    session.outcomes(passed=1)
    assert session.status == 0
    words = "".join(session.text.split())
    assert "conftest.py:mine.txtisnotwritten:" in words
    assert message.replace(" ", "") in words
    assert not (session.run_dir / "mine.txt").exists()
    assert session.page


@pytest.fixture
def stored(plain_project):
    plain_project.suite(SUITE)
    plain_project.run("--openclaw-run-id=one")
    plain_project.extend_conftest(
        REPORT.format("f'{summary.n_rows} rows'") + ROW_HOOK.replace("{}", "{'x_a': row['objective_pass']}")
    )
    return plain_project


def test_stored_runs_get_the_reports(stored, capsys):
    """Merged rows and unchanged rescored rows keep their bytes; a changed row is a new one for the row hook."""
    assert main(["merge", "one", "--into", "two"]) == 0

    one, two, three = (stored.stored(name) for name in ("one", "two", "three"))
    assert (two.run_dir / "mine.txt").read_text() == "2 rows"
    assert two.lines == one.lines

    stored.suite({**SUITE, "P2": ("say no", {"type": "exact", "value": "no"})})
    stored.extend_conftest(REPORT.format("1 / 0").replace("mine.txt", "broken.txt"))
    assert main(["rescore", "one", "--into", "three"]) == 0

    assert three.lines[0] == one.lines[0]
    assert three.row("P2")["x_a"] is True
    assert three.page
    assert "broken.txt is not written: ZeroDivisionError" in capsys.readouterr().err


@pytest.mark.parametrize(
    "text",
    ["1 / 0", "import pytest; pytest.exit('no')", "def pytest_openclaw_reports(): return [7]"],
    ids=["raises", "pytest.exit", "another-object"],
)
def test_a_merge_needs_no_project(stored, text, capsys):
    """A conftest that cannot be loaded loses only its reports, which is reported."""
    stored.write("conftest.py", text)

    assert main(["merge", "one", "--into", "two"]) == 0

    assert "reports of your own are not written: pytest cannot load the project" in capsys.readouterr().err
    assert stored.stored("two").page


OFFERS = """
[[prompts]]
id = "T1"
prompt = "offered"
tools = ["read", "exec"]
validator = { type = "exact", value = "read exec" }

[[prompts]]
id = "P1"
prompt = "say hi"
validator = { type = "exact", value = "hi" }
"""
OLD = '''

class Old(Scripted):
    """A provider written before tools could be offered."""

    name = "old"
    takes_tools = False


PROVIDERS.append(Old)
'''


@pytest.mark.under_workers
def test_a_prompts_tools_reach_the_provider(project):
    """A provider gets the tools that the suite offers; one without tools skips these cells with a hint."""
    project.extend_conftest(OLD)
    project.suite(OFFERS)

    session = project.run(models="scripted/m,old/m")

    session.outcomes(passed=3, skipped=1)
    rows = {(row["provider"], row["prompt_id"]): row for row in session.rows}
    assert (rows["scripted", "T1"]["tools_offered"], rows["scripted", "P1"]["tools_offered"]) == (2, None)
    row = rows["old", "T1"]
    assert (row["availability_status"], row["failure_type"]) == ("skipped_unavailable", "not_installed")
    assert (row["attempts"], row["e2e_ms"]) == (0, 0)
    message = "old: not asked: the prompt has tools, which this provider does not"
    assert row["fault_message"].startswith(message)
    assert "takes_tools = True" in session.text
    assert [group["n_skipped_unavailable"] for group in session.summary["groups"]] == [0, 1]
    assert session.status == 0
