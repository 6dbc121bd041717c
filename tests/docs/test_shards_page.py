"""The files of the how-to on shards divide a run and leave shards that merge."""

from __future__ import annotations

import json
import shlex
from typing import TYPE_CHECKING, Any

import pytest
import yaml

from tests.docs.pages import File, read_page
from tests.docs.reference import DOCS
from tests.docs.terminal import Terminal
from tests.docs.test_pages import CONFTEST

if TYPE_CHECKING:
    from pathlib import Path

pytestmark = pytest.mark.newest

PAGE = DOCS / "how-to/shards.md"
FILES = {block.path: block.text for block in read_page(PAGE.read_text("utf-8")) if isinstance(block, File)}
N_PROMPTS = 8
PROMPT = (
    '[[prompts]]\nid = "P{}"\nprompt = "Say hello."\nvalidator = {{ type = "contains", value = "hello" }}\n'
)


@pytest.fixture
def lab(tmp_path: Path) -> Terminal:
    """A project with eight prompts and a predictable model."""
    terminal = Terminal(tmp_path)
    terminal.write(File(path="pytest.ini", text="[pytest]\nopenclaw_models = parrot/any\n"))
    terminal.write(File(path="conftest.py", text=CONFTEST))
    suite = "".join(PROMPT.format(number) for number in range(N_PROMPTS))
    terminal.write(File(path="benchmarks/prompts_a.toml", text=suite))
    return terminal


def _run(lab: Terminal, script: str, **environ: object) -> str:
    given = " ".join(f"{name}={value}" for name, value in environ.items())
    done = lab.run(f"env {given} bash -c {shlex.quote(script)}")
    assert done.returncode == 0, done.stdout
    return done.stdout


def _n_rows(lab: Terminal, run: str) -> int:
    summary: dict[str, Any] = json.loads((lab.folder / "runs" / run / "summary.json").read_text("utf-8"))
    return int(summary["n_rows"])


def test_the_steps_of_the_matrix(lab: Terminal) -> None:
    """Each job of the matrix runs its shard, and the last job merges them."""
    jobs = yaml.safe_load(FILES["shards.yml"])["jobs"]
    (ask,), (merge,) = (jobs[name]["steps"] for name in ("shard", "whole"))

    for number in jobs["shard"]["strategy"]["matrix"]["shard"]:
        _run(lab, ask["run"], SHARD=number)
    _run(lab, merge["run"])

    assert _n_rows(lab, "whole") == N_PROMPTS


def test_the_slurm_array(lab: Terminal) -> None:
    """Each task runs its shard; a task that is started again continues it."""
    script = FILES["ask.sbatch"]
    array = {"SLURM_ARRAY_JOB_ID": 77, "SLURM_ARRAY_TASK_COUNT": 4}

    for number in range(1, 5):
        _run(lab, script, SLURM_ARRAY_TASK_ID=number, **array)
    again = _run(lab, script, SLURM_ARRAY_TASK_ID=3, **array)
    _run(lab, 'pytest-openclaw merge "77-*" --into whole')

    assert "77-3 goes on, 2 cells kept" in again
    assert _n_rows(lab, "whole") == N_PROMPTS


def test_the_kubernetes_job(lab: Terminal) -> None:
    """Each index runs its shard, counted from 0, in as many pods as there are shards."""
    spec = yaml.safe_load(FILES["job.yaml"])["spec"]
    (container,) = spec["template"]["spec"]["containers"]
    shell, _, script = container["command"]
    n_shards = int(container["env"][0]["value"])
    assert (shell, spec["completions"]) == ("sh", n_shards)

    for index in range(n_shards):
        _run(lab, script, JOB_COMPLETION_INDEX=index, SHARDS=n_shards)
    _run(lab, 'pytest-openclaw merge "shard-*" --into whole')

    assert _n_rows(lab, "whole") == N_PROMPTS
