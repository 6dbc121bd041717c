"""The hooks of pytest-openclaw, which the built-in providers, validators and reports use too."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

if TYPE_CHECKING:
    from pytest_openclaw.conclusions.summary import SummaryPart
    from pytest_openclaw.reports.pages import Report
    from pytest_openclaw.values.prompts import Cell, Suite
    from pytest_openclaw.values.protocols import Provider, Validator
    from pytest_openclaw.values.rows import Record


@pytest.hookspec
def pytest_openclaw_providers() -> Sequence[type[Provider]]:
    """Return further providers, from the root `conftest.py` or an installed plugin.

    ```python
    class Parrot(Provider):
        name = "parrot"

        async def ask(self, request):
            return Reply(text=request.prompt)


    def pytest_openclaw_providers():
        return [Parrot]
    ```

    Then `--openclaw-models=parrot/any` uses the provider. A name that is registered twice is an error that
    names both plugins. With `takes_tools = True` a provider also receives prompts with tools, and sends
    `request.tools` and `request.history`; with `takes_messages = True` prompts with `messages` or `turns`,
    and sends `request.conversation`; with `images` in `takes` prompts with images, and sends
    `request.images`.
    """
    raise AssertionError("a specification is never called")


@pytest.hookspec
def pytest_openclaw_validators() -> Sequence[type[Validator]]:
    """Return further validators, from the root `conftest.py` or an installed plugin.

    ```python
    @dataclass(frozen=True)
    class MentionsTicket:
        type: ClassVar[str] = "mentions_ticket"
        ticket: str

        def check(self, reply):
            found = self.ticket in reply.text
            return Verdict(passed=found, violation=None if found else f"{self.ticket} is not mentioned")


    def pytest_openclaw_validators():
        return [MentionsTicket]
    ```

    Then a suite can contain `validator = { type = "mentions_ticket", ticket = "OC-12" }`.
    """
    raise AssertionError("a specification is never called")


@pytest.hookspec
def pytest_openclaw_reports() -> Sequence[type[Report] | Report]:
    r"""Return further reports about a whole run, from the root `conftest.py` or an installed plugin.

    ```python
    class Tiers:
        name = "tiers.csv"

        def render(self, summary):
            rows = (f"{group.target.label},{group.tool_use.tier}" for group in summary.groups)
            return "\n".join(["target,tier", *rows, ""])


    def pytest_openclaw_reports():
        return [Tiers]
    ```

    Each report is written into the run directory, under its name, at the end of a run, and by `merge` and
    `rescore`; under xdist, the controller writes it. `summary` is the content of `summary.json`. An error
    in a report is shown at the end, and the report is left out; verdicts and exit status are unchanged.
    """
    raise AssertionError("a specification is never called")


@pytest.hookspec
def pytest_openclaw_record(row: Mapping[str, Any], config: pytest.Config) -> Mapping[str, Any] | None:
    """Return keys to add to a row before it is written; None adds nothing.

    ```python
    def pytest_openclaw_record(row):
        return {"x_lab": {"is_slow": row["e2e_ms"] > 5000}}
    ```

    Called once for each row, in the process that receives the reports: a plain session, or xdist's
    controller; and by `rescore` for each changed row. Write it in the root `conftest.py` or an installed
    plugin. Added keys begin with `x_`, so that no future field can collide with them; values are any
    JSON. An exception is reported at the end, and the keys are not added.

    Args:
        row: as it will be in `results.jsonl`; a copy for this hook.
        config: pytest's. `rescore` and `merge` load the project without configuring it.
    """
    raise AssertionError("a specification is never called")


@pytest.hookspec(firstresult=True)
def pytest_openclaw_suite(path: Path, config: pytest.Config) -> Callable[[str], Suite] | None:
    """Return the function that reads a file as a suite, or None for a file in another format.

    ```python
    def pytest_openclaw_suite(path):
        return partial(read_questions, path) if path.suffix == ".csv" else None


    def read_questions(path, name):
        rows = list(csv.reader(path.open()))
        prompts = [Prompt(suite=name, id=id, name=id, prompt=text, validator=Polite()) for id, text in rows]
        return Suite(path=name, prompts=tuple(prompts))
    ```

    Called in each process that collects, for each file in a folder of suites, and for each file that the
    command line names, itself or by a folder above it. `name` is the suite's name in rows. A `SuiteError`
    is a collection error with its text.
    """
    raise AssertionError("a specification is never called")


@pytest.hookspec
def pytest_openclaw_summary(records: Sequence[Record], config: pytest.Config) -> SummaryPart | None:
    """Return a part of the run's summary; None adds nothing.

    ```python
    def pytest_openclaw_summary(records):
        n = sum(record.e2e_ms > 5000 for record in records)
        return SummaryPart(name="slow", value={"n": n}, title="Slow", intro=f"{n} cells took more than 5 s.")
    ```

    The part is in `added` of `summary.json`, and a section of the reports. Called when a run is summarized,
    and by `merge` and `rescore`. An exception is reported at the end, and the part is left out.

    Args:
        records: the records of all cells, without texts; of `parsed_output` they have only
            `score`, `agreement`, `steps` and `recorded_steps`.
        config: as in `pytest_openclaw_record`.
    """
    raise AssertionError("a specification is never called")


@pytest.hookspec
def pytest_openclaw_begin(
    cells: Sequence[Cell], providers: Mapping[str, Provider], config: pytest.Config
) -> None:
    """Look at the cells of a run before anything is sent; a `pytest.UsageError` ends the session.

    ```python
    def pytest_openclaw_begin(cells):
        if len(cells) > 1000:
            raise pytest.UsageError(f"{len(cells)} cells are more than this lab pays for")
    ```

    Called once, in a plain session or in xdist's controller.

    Args:
        cells: all selected cells, in order.
        providers: the providers of their targets, by name.
        config: pytest's.
    """
    raise AssertionError("a specification is never called")
