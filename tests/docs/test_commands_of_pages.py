"""Commands on the pages that work on runs do their work, on runs with the names that the pages use."""

import shutil
from itertools import chain
from pathlib import Path

import pytest

from pytest_openclaw.cli import main
from pytest_openclaw.suites.cells import definition
from pytest_openclaw.suites.load import load_suite
from pytest_openclaw.values.requests import Target
from tests.builtin import REGISTRY
from tests.docs.test_pages import FOLLOWED, NAMED, PAGES, ROOT
from tests.unit.reports.summaries import cell
from tests.unit.runs.stored_runs import store

pytestmark = pytest.mark.newest

TARGET = Target(provider="ollama_native", model="qwen3:8b")
SUITE = "benchmarks/prompts_small.toml"
IDS = ["S0", "V1", *(f"P{n}" for n in range(1, 13))]
WHOLE = ("main", "again", "RUN", "RUN_OF_HOST1", "RUN_OF_HOST2")
DATED = ("20260213_235930", "20261114_021700", "20261114_090000", "20261115_021700")
"""Runs of all prompts; `last` is one of them."""
PARTS = ("runs/shard-1 runs/shard-2", "runs/JOB-1 runs/JOB-2", "shards/shard-core shards/shard-tools")
"""Runs of half of the prompts each."""
ELSEWHERE = {"capture-tools"}
"""Words of commands that need an installed OpenClaw: tests/openclaw runs them."""
USUAL = (0, 1, 10)
"""Exit statuses of a command that has done its work: a gate may fail, or have no verdict."""


def _commands(page):
    prefix = f"{page.relative_to(ROOT)}:"
    found = [case.values[0] for case in NAMED if str(case.id).startswith(prefix)]
    return [words[1:] for words in found if words[0] == "pytest-openclaw" and ELSEWHERE.isdisjoint(words)]


ASKED = [
    pytest.param(commands, id=str(page.relative_to(ROOT)))
    for page in PAGES
    if page not in FOLLOWED and (commands := _commands(page))
]


@pytest.fixture
def project(tmp_path, monkeypatch):
    """A suite, runs of it in the folder of runs, and the files of CI's jobs next to it."""
    monkeypatch.chdir(tmp_path)
    (tmp_path / "pytest.ini").write_text("[pytest]\n")
    (tmp_path / "benchmarks").mkdir()
    text = "\n".join(
        f'[[prompts]]\nid = "{one}"\nprompt = "Read {one}."\ntools = ["read"]\n'
        'validator = { type = "tool_call", calls = [{ name = "read" }] }\n'
        for one in IDS
    )
    (tmp_path / SUITE).write_text(text)
    for names in PARTS:
        for name, ids in zip(names.split(), (IDS[:7], IDS[7:]), strict=True):
            _store(Path(name), ids)
    for name in ("baseline/main", *(f"runs/{name}" for name in (*WHOLE, *DATED))):
        _store(Path(name), IDS)
    return tmp_path


def _store(path, ids):
    suite = load_suite(Path(SUITE), name=SUITE, registry=REGISTRY)
    given = {"run_id": path.name, "suite": SUITE, "tools_offered": 1, "tool_demand": "call"}
    rows = [cell(one, "valid", TARGET, prompt_name=one, **given) for one in ids]
    store(path, rows, prompts=[definition(prompt) for prompt in suite.prompts if prompt.id in ids])


def _matching(folder, word):
    found = folder.glob(word) if "*" in word else ()
    return sorted(str(path.relative_to(folder)) for path in found) or [word]


@pytest.mark.parametrize("commands", ASKED)
def test_the_commands_of_a_page_do_their_work(project, capsys, commands):
    """In the order of the page: none refuses its arguments, or what the one before it has written."""
    for words in commands:
        if words[0] == "merge":  # a page has several examples for one result
            shutil.rmtree(project / "runs/whole", ignore_errors=True)
        expanded = chain.from_iterable(_matching(project, word) for word in words)
        status = main([*expanded])
        shown = capsys.readouterr()
        assert status in USUAL, (words, shown.err)
