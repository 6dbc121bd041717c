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
from pytest_openclaw.suites import definition as definition_of
from pytest_openclaw.suites import parse_suite
from pytest_openclaw.util.errors import OpenClawError, SuiteError
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
    return {prompt_id: prompt.validator_spec["value"] for (_, prompt_id), prompt in rules.prompts.items()}


P1 = {"id": "P1", "prompt": "Do P1.", "validator": NOW}
P2 = {"id": "P2", "prompt": "Do P2.", "system": "Be brief.", "validator": NOW}


def test_rules_come_from_the_suite_files(part: StoredRun, tmp_path: Path) -> None:
    """Prompts with the same question get their current validators."""
    path = _write(tmp_path, P1, {**P2, "max_output_tokens": 5, "name": "new"})

    assert _values(part, tmp_path) == {"P1": "now", "P2": "now"}
    assert todays_rules(part, tmp_path, REGISTRY).notes == ()
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
def test_another_question_is_judged_by_its_own_rule(
    part: StoredRun, tmp_path: Path, today: list[dict[str, Any]]
) -> None:
    """A reply is not judged by the rule of another question; the stored definition applies, with a note."""
    _write(tmp_path, *today)

    assert _values(part, tmp_path) == {"P1": "now", "P2": "then"}
    assert todays_rules(part, tmp_path, REGISTRY).notes == (
        f"{SUITE} has these prompts no longer or asks something else: P2; judged as config.json defines",
    )


@pytest.mark.parametrize(
    ("changes", "rule"),
    [
        pytest.param({}, "now", id="the-same"),
        pytest.param({"world": {"files": {"a": "two"}}}, "then", id="another-world"),
        pytest.param({"tools": ["read", "ls"]}, "then", id="other-tools"),
    ],
)
def test_calls_are_carried_out_in_their_own_world(tmp_path: Path, changes: dict[str, Any], rule: str) -> None:
    """An exchange of another world is judged in that one."""
    asked = {"id": "W1", "prompt": "Go.", "tools": ["read"], "world": {"files": {"a": "one"}}}
    (prompt,) = parse_suite(
        json.dumps([{**asked, "validator": THEN}]), format="json", name=SUITE, registry=REGISTRY
    ).prompts
    kept = definition_of(prompt)
    part = load_run(store(tmp_path / "runs" / "one", [row(A, "W1")], prompts=[kept]))
    _write(tmp_path, {**asked, "validator": NOW, **changes})

    rules = todays_rules(part, tmp_path, REGISTRY)

    (judged,) = rules.prompts.values()
    assert (judged.validator_spec["value"], judged.world) == (rule, prompt.world)
    assert [tool.name for tool in judged.tools or ()] == ["read"]
    assert bool(rules.notes) == (rule == "then")


def test_a_suite_that_is_gone_is_not_needed(part: StoredRun, tmp_path: Path) -> None:
    """`config.json` defines every selected prompt."""
    assert _values(part, tmp_path) == {"P1": "then", "P2": "then"}
    assert suite_files(part, tmp_path) == []


def test_a_suite_that_is_wrong_is_refused(part: StoredRun, tmp_path: Path) -> None:
    """An error in a suite is reported as pytest reports it, and nothing is judged by half a suite."""
    _write(tmp_path, P1, {**P2, "validator": {"type": "exakt"}})

    with pytest.raises(SuiteError, match=re.escape(f"{SUITE}: prompt P2: there is no validator type")):
        todays_rules(part, tmp_path, REGISTRY)


def test_a_validator_of_a_missing_plugin_is_refused(tmp_path: Path) -> None:
    """Without the suite, a plugin's rule in `config.json` needs the plugin."""
    prompts = [definition("P1", validator={"type": "mentions_ticket"})]
    part = load_run(store(tmp_path / "one", [row(A, "P1")], prompts=prompts))

    with pytest.raises(
        OpenClawError, match=r"config\.json: prompt P1: there is no validator type"
    ) as refused:
        todays_rules(part, tmp_path, REGISTRY)

    assert "mentions_ticket" in str(refused.value)
