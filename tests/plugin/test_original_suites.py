"""Shipped suites, prompt files in the original harness's JSON form, and projects made by `init`, as a user runs them."""

import json
import shutil
from collections import Counter
from pathlib import Path

import pytest

from pytest_openclaw.cli import main

pytestmark = pytest.mark.newest

DATA = Path(__file__).parent / "data"
FILES = ("prompts_answers.json", "prompts_tools.json", "prompts_variants.json")

# The model's replies in these tests, and the row's fields: objective_pass, tools, tool_use_success.
ANSWERS = {
    ("answers", "P0"): ("READY_NOW\n", True, [], False),
    ("answers", "P1"): ('{"route": "near", "why": "a lamp"}', True, [], False),
    ("answers", "P2"): ("It runs at set times. Every day.", False, [], False),
    ("answers", "P3"): ("Urgent", False, [], False),
    ("answers", "P4"): ("17", True, [], False),
    ("answers", "P5"): ("Good morning, operator", True, [], False),
    ("answers", "P6"): ("- disks\n- memory\n- network", True, [], False),
    ("answers", "P7"): ('{"ram_gb": "16", "swap": true}', False, [], False),
    ("answers", "P8"): ('{"host": "a", "port": null}', True, [], False),
    ("answers", "P9"): ("Once it rained.", None, [], False),
    ("answers", "P10"): ("The backup ran; two hosts are slow.", None, [], False),
    ("tools", "P0"): ("I run `free -h`.", True, ["free"], True),
    ("tools", "P1"): ("It is large.", False, [], False),
    ("tools", "P2"): ("$ uptime\n$ date", True, ["uptime", "date"], True),
    ("tools", "P3"): ("`ping -c 1 gateway` says that it is up.", True, ["ping"], True),
    ("variants", "E0"): ("<tool>exec</tool>", True, ["exec"], True),
    ("variants", "E1"): ("[tool: df]", False, ["df"], False),
    ("variants", "3B_P1_SHORT"): ("near", True, [], False),
    ("variants", "3B_P1_LONG"): ("near and far", False, [], False),
}

CANNED = """

class Canned(Provider):
    name = "canned"

    async def ask(self, request):
        answers = json.loads((FOLDER / "answers.json").read_text())
        return Reply(text=answers[request.prompt], finish_reason="stop")


PROVIDERS.append(Canned)
"""


def lay_out(project):
    (project.folder / "benchmarks").mkdir()
    for file in FILES:
        shutil.copy(DATA / file, project.folder / "benchmarks" / file)
    answers = {one["prompt"]: ANSWERS[short(file), one["id"]][0] for file in FILES for one in read(file)}
    project.write("answers.json", json.dumps(answers))
    project.extend_conftest(CANNED)


def read(file):
    return json.loads((DATA / file).read_text("utf-8"))


def short(suite):
    return Path(suite).stem.removeprefix("prompts_")


def test_three_files_run_together(project):
    """Every prompt of every file has its own row, although some ids are in two of them."""
    lay_out(project)

    session = project.run(models="canned/m")

    verdicts = [expected for _, expected, _, _ in ANSWERS.values()]
    session.outcomes(passed=len(verdicts) - verdicts.count(False), failed=verdicts.count(False))
    assert session.status == pytest.ExitCode.TESTS_FAILED
    found = {
        (short(row["suite"]), row["prompt_id"]): (
            row["raw_output"],
            row["objective_pass"],
            row["tool_calls"],
            row["tool_use_success"],
        )
        for row in session.rows
    }
    assert found == ANSWERS
    assert len(session.rows) == len(ANSWERS)
    assert {(row["suite"], row["prompt_id"], row["prompt_name"]) for row in session.rows} == {
        (f"benchmarks/{file}", prompt["id"], prompt["name"]) for file in FILES for prompt in read(file)
    }
    (group,) = session.summary["groups"]
    # A prompt is a tool prompt by its validator or its `expected_tool_calls`, in any file.
    assert (group["tool_use"]["n"], group["tool_use"]["n_success"]) == (6, 4)


BENCHMARKS = Path(__file__).parents[2] / "benchmarks"

# Sends one answer to everything, and takes all that a prompt may need.
ALWAYS = """
class Always(Provider):
    name = "always"
    takes_tools = takes_messages = True
    takes = frozenset({"images"})

    async def ask(self, request):
        return Reply(text="Done.", finish_reason="stop")


PROVIDERS.append(Always)
"""


@pytest.mark.under_workers
def test_every_suite_is_sent_whole(project):
    """Whatever its validators and worlds are made of, each cell crosses the workers' channel and has a row."""
    shutil.copytree(BENCHMARKS, project.folder / "benchmarks")
    project.extend_conftest(ALWAYS)
    suites = sorted(path.name for path in BENCHMARKS.glob("prompts_*.toml"))

    session = project.run(*(f"benchmarks/{name}" for name in suites), models="always/m", target="")

    rows = session.rows
    assert session.status == 1
    assert Counter(row["availability_status"] for row in rows) == {"ok": len(rows)}
    assert {row["suite"] for row in rows} == {f"benchmarks/{name}" for name in suites}
    assert len(rows) == sum(session.result.parseoutcomes().get(word, 0) for word in ("passed", "failed"))


HEAD = "        word, _, rest = request.prompt.partition"
ANSWER = "        return Reply(text='Paris, and `df -h`')\n"


@pytest.fixture
def created(plain_project):
    plain_project.change_conftest(HEAD, ANSWER + HEAD)
    assert main(["init", "--models", "scripted/m"]) == 0
    return plain_project


def test_the_first_run_works(created):
    """`pytest benchmarks/` asks the prompts, the tool prompts twice, without a model option."""
    session = created.run(models=None, target="benchmarks/")

    session.outcomes(passed=4, failed=2, deselected=16)
    assert sorted(row["prompt_id"] for row in session.rows) == ["M1", "M2", "M3", "M3", "M4", "M4"]
    assert {row["availability_status"] for row in session.rows} == {"ok"}
    for words in (["show", "last", "M4-r1"], ["history"], ["export", "last"]):
        assert main(words) == 0


def test_a_bare_session_stays_with_the_tests(created):
    """If the project has tests, only they are run, and no model is called."""
    created.write("tests/test_mine.py", "def test_mine(): pass\n")
    (created.folder / "pytest.ini").unlink()
    assert main(["init", "--models", "scripted/m"]) == 0

    session = created.run(models=None, target="")

    session.outcomes(passed=1)
    assert not session.has_run
