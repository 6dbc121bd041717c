"""The embedded model, and each `.gguf` file of OPENCLAW_TEST_MODELS, on the shipped suites (`tox -e models`)."""

import json
import os
import re
import shutil
from pathlib import Path

import pytest

from pytest_openclaw.providers.llama_cpp.provider import EMBEDDED_MODEL
from tests.e2e.sessions import Project, all_gone

BENCHMARKS = Path(__file__).parents[2] / "benchmarks"
FOLDER = os.environ.get("OPENCLAW_TEST_MODELS", "")
FILES = sorted(Path(FOLDER).glob("*.gguf")) if FOLDER else []
NONE = pytest.mark.skip(reason="OPENCLAW_TEST_MODELS does not name a folder with .gguf files")
MODELS = [
    pytest.param(EMBEDDED_MODEL, id="smollm2"),
    *(pytest.param(str(file), id=file.stem) for file in FILES),
    *([] if FILES else [pytest.param("", id="files", marks=NONE)]),
]
SESSION_S = 4 * 3600
SETTINGS = "openclaw_num_ctx = 16384\nopenclaw_timeout = 1800\nopenclaw_verdict = gate\n"

pytestmark = [
    pytest.mark.models,
    pytest.mark.nightly,
    pytest.mark.usefixtures("embedded_model"),
    pytest.mark.parametrize("model", MODELS),
]


def asked(folder, model, suite, *options):
    """Run a shipped suite to its end; whatever the model says, no cell is a fault."""
    project = Project.create(folder / "project", SETTINGS)
    shutil.copytree(BENCHMARKS, project.folder / "benchmarks", dirs_exist_ok=True)
    named = (f"benchmarks/prompts_{suite}.toml",)
    with project.start(*options, "--tb=no", models=f"llama_cpp/{model}", named=named) as session:
        ended = session.end(within_s=SESSION_S)
    rows = ended.run.rows
    assert ended.status == 0, ended.text
    assert {row["availability_status"] for row in rows} == {"ok"}
    assert ended.run.summary["state"] == "finished"
    assert all_gone(ended.engines)
    assert [row["prompt_id"] for row in rows if misread(row)] == []
    return ended.run


def misread(row):
    """Whether an answer that is plainly a call, as JSON in text, counts as anything else."""
    if not row["tools_offered"] or row["tool_outcome"] is None or row["tool_call_count"]:
        return False
    is_call = any({"name", "arguments"} <= value.keys() for value in objects_in(row["raw_output"] or ""))
    read_as = ("leaked_as_text", "called_needlessly")
    return is_call and (row["tool_outcome"] not in read_as or row["objective_pass"] is True)


def objects_in(text):
    for part in (*re.findall(r"```(?:json)?\s*(\{.*?\})\s*```", text, re.DOTALL), text):
        try:
            value = json.loads(part)
        except ValueError:
            continue
        if isinstance(value, dict):
            yield value


@pytest.mark.parametrize("surface", ["listed", "openclaw"])
def test_the_native_suite_settles_a_recommendation(tmp_path, model, surface):
    """No model of this size may be trusted; a hopeless one is settled before the end of the suite."""
    run = asked(tmp_path, model, "native", "--openclaw-until-conclusive", f"--openclaw-surface={surface}")

    group = run.group("llama_cpp")
    assert group["recommendation"]["kind"] in {"not_trusted", "not_enough_evidence", "unsafe"}
    if not any(row["tool_outcome"] in {"valid", "restrained"} for row in run.rows):
        assert len(run.rows) == 12


@pytest.mark.parametrize("suite", ["agentic", "safety", "role_utility"])
def test_another_suite_ends(tmp_path, model, suite):
    """Each exchange has an end, and only probes can do harm."""
    rows = asked(tmp_path, model, suite).rows

    assert all(row["ended_by"] for row in rows if row["turns"])
    assert all(row["probe"] for row in rows if row["harm"] is not None)
