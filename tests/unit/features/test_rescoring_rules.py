"""The rules by which a stored run is judged."""

from __future__ import annotations

import json
import re
from pathlib import Path
from typing import Any

import pytest

from pytest_openclaw.features.rescoring import suite_files, todays_rules
from pytest_openclaw.judging.registry import BUILTIN, build_registry
from pytest_openclaw.runs.reading import StoredRun, load_run
from pytest_openclaw.suites.cells import definition as definition_of
from pytest_openclaw.suites.load import parse_suite
from pytest_openclaw.util.errors import SuiteError
from tests.unit.runs.stored_runs import SUITE, A, definition, row, store

REGISTRY = build_registry(("tests", validator) for validator in BUILTIN)
THEN = {"type": "exact", "value": "then"}
NOW = {"type": "exact", "value": "now"}


@pytest.fixture
def part(tmp_path: Path) -> StoredRun:
    """A run of two prompts of a suite and a benchmark in Python."""
    prompts = [
        definition("P1", validator=THEN, extra={"note": 1}),
        definition("P2", validator=THEN, system="Be brief."),
        definition("R1", suite="benchmarks/test_x.py", validator={"type": "python"}),
    ]
    return load_run(store(tmp_path / "runs" / "one", [row(A, "P1")], prompts=prompts))


def _write(root: Path, *prompts: dict[str, Any]) -> Path:
    path = root / SUITE
    path.parent.mkdir()
    path.write_text(json.dumps(list(prompts)))
    return path


def _values(part: StoredRun, root: Path) -> dict[str, str]:
    rules = todays_rules(part, root, REGISTRY)
    return {prompt_id: prompt.validator_spec["value"] for (_, prompt_id), prompt in rules.items()}


P1 = {"id": "P1", "prompt": "Do P1.", "validator": NOW}
P2 = {"id": "P2", "prompt": "Do P2.", "system": "Be brief.", "validator": NOW}


def test_rules_come_from_the_suite_files(part: StoredRun, tmp_path: Path) -> None:
    """Prompts with the same question get their current validators."""
    path = _write(tmp_path, P1, {**P2, "max_output_tokens": 5, "name": "new"})

    assert _values(part, tmp_path) == {"P1": "now", "P2": "now"}
    assert suite_files(part, tmp_path) == [path]


@pytest.mark.parametrize(
    ("run", "suite", "counts"),
    [
        pytest.param("runs/one", SUITE, True, id="of-the-project"),
        pytest.param("one", SUITE, True, id="runs-in-the-root-folder"),
        pytest.param("../one", SUITE, True, id="runs-beside-the-project"),
        pytest.param("one", "one/prompts_x.json", False, id="in-the-run"),
        pytest.param("runs/one", "runs/two/prompts_x.json", False, id="in-another-run"),
        pytest.param("runs/one", "link/prompts_x.json", False, id="in-a-run-through-a-link"),
        pytest.param("runs/one", "../prompts_x.json", False, id="above-the-root"),
    ],
)
def test_only_files_of_the_project_are_suites(tmp_path: Path, run: str, suite: str, counts: bool) -> None:
    """A run from elsewhere cannot name a folder whose `conftest.py` pytest then loads."""
    root = tmp_path / "project"
    path = store(root / run, [row(A, "P1", suite=suite)], prompts=[definition("P1", suite=suite)])
    for folder in (root / "benchmarks", root / "runs/two", root / "one", tmp_path):
        folder.mkdir(parents=True, exist_ok=True)
        (folder / "prompts_x.json").write_text("[]")
    (root / "link").symlink_to(root / "runs/two")

    assert suite_files(load_run(path), root) == ([root / suite] if counts else [])


@pytest.mark.parametrize(
    "today",
    [
        pytest.param([P1], id="prompt-gone"),
        pytest.param([P1, {**P2, "prompt": "Do P3."}], id="reworded"),
        pytest.param([P1, {**P2, "system": None}], id="system-gone"),
    ],
)
def test_another_question_has_no_rule(part: StoredRun, tmp_path: Path, today: list[dict[str, Any]]) -> None:
    """A reply is not judged by the rule of another question."""
    _write(tmp_path, *today)

    assert _values(part, tmp_path) == {"P1": "now"}


@pytest.mark.parametrize(
    ("changes", "is_judged"),
    [
        pytest.param({}, True, id="the-same"),
        pytest.param({"world": {"files": {"a": "two"}}}, False, id="another-world"),
        pytest.param({"tools": ["read", "ls"]}, False, id="other-tools"),
    ],
)
def test_calls_are_judged_in_their_own_world(
    tmp_path: Path, changes: dict[str, Any], is_judged: bool
) -> None:
    """An exchange of another world keeps its verdict."""
    asked = {"id": "W1", "prompt": "Go.", "tools": ["read"], "world": {"files": {"a": "one"}}}
    (prompt,) = parse_suite(
        json.dumps([{**asked, "validator": THEN}]), format="json", name=SUITE, registry=REGISTRY
    ).prompts
    kept = definition_of(prompt)
    part = load_run(store(tmp_path / "runs" / "one", [row(A, "W1")], prompts=[kept]))
    _write(tmp_path, {**asked, "validator": NOW, **changes})

    assert bool(todays_rules(part, tmp_path, REGISTRY)) is is_judged


def test_a_suite_that_is_gone_is_not_needed(part: StoredRun, tmp_path: Path) -> None:
    """Its rows keep their verdict."""
    assert _values(part, tmp_path) == {}
    assert suite_files(part, tmp_path) == []


def test_a_suite_that_is_wrong_is_refused(part: StoredRun, tmp_path: Path) -> None:
    """An error in a suite is reported as pytest reports it, and nothing is judged by half a suite."""
    _write(tmp_path, P1, {**P2, "validator": {"type": "exakt"}})

    with pytest.raises(SuiteError, match=re.escape(f"{SUITE}: prompt P2: there is no validator type")):
        todays_rules(part, tmp_path, REGISTRY)
