"""The public hooks: plugins in the root conftest and in installed packages, and errors of wrong plugins."""

from __future__ import annotations

import textwrap
from typing import Any

import pytest

pytestmark = pytest.mark.newest

NOOP = {"type": "noop"}

VALIDATOR = '''
from dataclasses import dataclass
from typing import ClassVar
from pytest_openclaw import Reply, Verdict


@dataclass(frozen=True)
class MentionsTicket:
    """The reply names a ticket."""

    type: ClassVar[str] = "mentions_ticket"
    ticket: str

    def check(self, reply: Reply) -> Verdict:
        found = self.ticket in reply.text
        return Verdict(passed=found, violation=None if found else f"{self.ticket} is not mentioned", parsed={"found": found})


def pytest_openclaw_validators():
    return [MentionsTicket]
'''
PARROT = """
from pytest_openclaw import Provider, Reply


class Parrot(Provider):
    name = "parrot"

    async def ask(self, request):
        return Reply(text=request.prompt)


def pytest_openclaw_providers():
    return [Parrot]
"""
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
SUITE = {
    "P1": ("say see OC-12", {"type": "mentions_ticket", "ticket": "OC-12"}),
    "P2": ("say nothing", {"type": "mentions_ticket", "ticket": "OC-12"}),
    "P3": (
        "say OC-12",
        {
            "type": "all_of",
            "validators": [{"type": "mentions_ticket", "ticket": "OC-12"}, {"type": "max_words", "value": 1}],
        },
    ),
}


def _install(project: Any, monkeypatch: pytest.MonkeyPatch, name: str, text: str) -> None:
    """Put a distribution with an entry point onto the path, as pip would."""
    site = project.folder / "site"
    info = site / f"{name}-1.0.dist-info"
    info.mkdir(parents=True, exist_ok=True)
    (site / f"{name}.py").write_text(text, "utf-8")
    (info / "METADATA").write_text(f"Metadata-Version: 2.1\nName: {name}\nVersion: 1.0\n")
    (info / "entry_points.txt").write_text(f"[pytest11]\n{name} = {name}\n")
    monkeypatch.setenv("PYTHONPATH", str(site))


def _run(project: Any, *args: str, models: str = "scripted/m") -> Any:
    """Run in a separate process, which alone finds installed plugins."""
    from tests.plugin.conftest import Session

    words = ["benchmarks", f"--openclaw-models={models}", *project.mode, *args]
    return Session(project.pytester.runpytest_subprocess(*words, timeout=600), project.folder)


def _holds(session: Any) -> None:
    session.outcomes(passed=2, failed=1)
    assert session.row("P1")["parsed_output"] == {"found": True}
    assert session.row("P2")["violation"] == "OC-12 is not mentioned"


@pytest.mark.under_workers
def test_a_validator_of_the_root_conftest(project: Any) -> None:
    """It judges, alone and inside another validator, and its words are in the row."""
    project.extend_conftest(VALIDATOR)
    project.suite(SUITE)

    _holds(project.run())


def test_a_validator_of_an_installed_plugin(project: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    """The same through a distribution's entry point, in workers too."""
    _install(project, monkeypatch, "ticketrules", VALIDATOR)
    project.suite(SUITE)

    _holds(_run(project))


def test_a_provider_of_an_installed_plugin(project: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    """It is used by its name, and may serve a user's endpoint."""
    _install(project, monkeypatch, "parrots", PARROT)
    project.pytester.makeini("[pytest]\nopenclaw_endpoints = cage = parrot http://127.0.0.1:9/v1\n")
    project.suite({"P1": ("hello", {"type": "exact", "value": "hello"})})

    session = _run(project, models="parrot/any,cage/any")

    session.outcomes(passed=2)
    assert {row["provider"] for row in session.rows} == {"parrot", "cage"}


@pytest.mark.under_workers
def test_a_provider_is_an_ordinary_object(project: Any) -> None:
    """One object answers all cells; it may hold closures and raise an exception of its own."""
    project.extend_conftest(COUNTING)
    project.suite({"P1": ("one", NOOP), "P2": ("break", NOOP), "P3": ("three", NOOP)})

    session = project.run(models="counting/m")

    session.outcomes(passed=2, errors=1)
    assert sorted(row["raw_output"] for row in session.rows if row["success"]) == [
        "call 1: one",
        "call 3: three",
    ]
    assert session.row("P2")["failure_type"] == "harness_error"
    assert "Exhausted: after 2 calls" in session.row("P2")["fault_message"]


def test_a_validator_beside_the_suites(plain_project: Any) -> None:
    """In a plain session a conftest in the suites' folder counts too."""
    plain_project.suite(SUITE)
    (plain_project.folder / "benchmarks" / "conftest.py").write_text(VALIDATOR)

    _holds(plain_project.run())


@pytest.mark.workers
def test_a_validator_that_the_controller_does_not_load(plain_project: Any) -> None:
    """Under xdist only the workers read suites, so a conftest that only they load counts."""
    plain_project.suite(SUITE)
    (plain_project.folder / "benchmarks" / "conftest.py").write_text(VALIDATOR)
    plain_project.pytester.makeini("[pytest]\nopenclaw_models = scripted/m\n")

    _holds(plain_project.run("-n", "2", models=None, target=""))


VALIDATOR_OF = """
def pytest_openclaw_validators():
    return [{}]
"""
PROVIDER_OF = """
def pytest_openclaw_providers():
    return [{}]
"""
CLASS = "type('Mine', (), {})"

WRONG = [
    pytest.param(VALIDATOR.replace('"mentions_ticket"', '"exact"'), "the validator type \"exact\" is claimed twice, by ", id="validator-twice"),
    pytest.param(VALIDATOR_OF.format("'exact'"), "brings 'exact' as a validator, which is none", id="no-validator"),
    pytest.param(VALIDATOR_OF.format(CLASS), "brings 'Mine' as a validator, which is none", id="no-type"),
    pytest.param(PARROT.replace('"parrot"', '"ollama_openai"'), "the provider 'ollama_openai' is claimed by ", id="provider-twice"),
    pytest.param(PARROT.replace('"parrot"', '"a/b"'), "is no provider: it needs a name without / and an async ask", id="provider-with-a-slash"),
    pytest.param(PROVIDER_OF.format(CLASS), "is no provider: it needs a name without / and an async ask", id="no-provider"),
    pytest.param(PROVIDER_OF.format("7"), "7 is no provider: it needs a name without / and an async ask", id="number"),
    pytest.param("def pytest_openclaw_validators():\n    return 7\n", "pytest_openclaw_validators returned 7, not a list of classes", id="no-list"),
    pytest.param("def pytest_openclaw_providers():\n    return None\n", None, id="nothing-is-nothing"),
]  # fmt: skip


@pytest.mark.parametrize(("text", "message"), WRONG)
def test_a_wrong_plugin_is_reported(
    plain_project: Any, monkeypatch: pytest.MonkeyPatch, text: str, message: str | None
) -> None:
    """An invalid or duplicate validator or provider gives one clear message that names its plugin."""
    _install(plain_project, monkeypatch, "otherplugin", textwrap.dedent(text))
    plain_project.suite({"P1": ("say yes", NOOP)})

    session = _run(plain_project)

    assert "Traceback" not in session.text
    assert "INTERNALERROR" not in session.text
    if message is None:
        session.outcomes(passed=1)
    else:
        assert message in session.text
        assert "otherplugin" in session.text
        assert session.status == pytest.ExitCode.USAGE_ERROR
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


@pytest.mark.parametrize(
    ("how", "message"),
    [
        pytest.param("1 / 0", "ZeroDivisionError: division by zero", id="raises"),
        pytest.param("True", "a validator's check returns a Verdict, not bool", id="no-verdict"),
        pytest.param(
            "Verdict(passed='yes')", "Verdict.passed is True, False or None, not 'yes'", id="passed-as-text"
        ),
        pytest.param(
            "Verdict(passed=False, violation=7)",
            "Verdict.violation is a text or None, not 7",
            id="violation-as-number",
        ),
        pytest.param(
            "Verdict(passed=True, parsed=[1])",
            "Verdict.parsed is a dict or None, not list",
            id="parsed-as-list",
        ),
        pytest.param(
            "Verdict(passed=True, parsed={'a': {1}})", "set is not JSON serializable", id="parsed-no-json"
        ),
        pytest.param(
            "Verdict(passed=True, parsed={'a': float('nan')})", "not JSON compliant", id="parsed-nan"
        ),
        pytest.param("pytest.fail('no')", "Failed: no", id="pytest.fail"),
        pytest.param("pytest.skip('no')", "a validator returns a Verdict; it cannot skip", id="pytest.skip"),
    ],
)
def test_a_validator_that_breaks_costs_its_own_cell(project: Any, how: str, message: str) -> None:
    """The cell is an error with a traceback and its row keeps the reply; the others are judged."""
    project.extend_conftest(BROKEN)
    project.suite(
        {
            "P1": ("say yes", {"type": "broken", "how": how}),
            "P2": ("say yes", {"type": "exact", "value": "yes"}),
        }
    )

    session = project.run()

    session.outcomes(passed=1, errors=1)
    row = session.row("P1")
    assert (row["availability_status"], row["failure_type"], row["raw_output"]) == (
        "error",
        "harness_error",
        "yes",
    )
    assert message in row["fault_message"]
    assert "INTERNALERROR" not in session.text
