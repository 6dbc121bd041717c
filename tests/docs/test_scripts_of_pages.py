"""The scripts of the how-tos on nightly runs and on shards run, with a predictable model."""

import json
import shlex

import pytest
import yaml

from tests.docs.pages import File, read_page
from tests.docs.reference import DOCS
from tests.docs.test_pages import CONFTEST, LAB, PROMPT, made

pytestmark = pytest.mark.newest

N_PROMPTS = 12


def _files(page):
    blocks = read_page((DOCS / "how-to" / page).read_text("utf-8"))
    return {block.path: block.text for block in blocks if isinstance(block, File)}


NIGHTLY, SHARDS = _files("nightly.md"), _files("shards.md")


@pytest.fixture
def lab(tmp_path):
    terminal = made(tmp_path, f"{LAB}openclaw_verdict = gate\n")
    suite = "".join(PROMPT.format(number) for number in range(N_PROMPTS))
    terminal.write(File(path="benchmarks/prompts_a.toml", text=suite))
    terminal.write(File(path="nightly.sh", text=NIGHTLY["nightly.sh"]))
    return terminal


def _run(lab, script, **environ):
    given = " ".join(f"{name}={value}" for name, value in environ.items())
    done = lab.run(f"env {given} bash -c {shlex.quote(script)}")
    assert done.returncode == 0, done.stdout
    return done.stdout


@pytest.mark.nightly
def test_the_script_night_by_night(lab):
    """The first night has no baseline, the next ones have; a mute model fails; pages and history are there."""
    first, second = (lab.run("sh nightly.sh") for _ in range(2))
    lab.write(File(path="conftest.py", text=CONFTEST.replace("text=request.prompt", 'text="No."')))
    third = lab.run("sh nightly.sh")

    assert (first.returncode, "compared with" in first.stdout) == (0, False), first.stdout
    assert (second.returncode, "no difference" in second.stdout) == (0, True), second.stdout
    assert third.returncode == 1, third.stdout
    assert len(list(lab.folder.glob("runs/*/report.html"))) == len((first, second, third))


@pytest.mark.nightly
def test_the_nightly_step_on_github(lab):
    """The runs are in the runner's home, so that a fresh checkout finds them."""
    (step,) = yaml.safe_load(NIGHTLY["nightly.yml"])["jobs"]["night"]["steps"]
    home = lab.folder / "home"
    home.mkdir()

    _run(lab, f"set -e; {step['run']}", HOME=home)
    (lab.folder / "runs").unlink()

    assert "no difference" in _run(lab, f"set -e; {step['run']}", HOME=home)


def test_the_steps_of_the_matrix(lab):
    """Each job of the matrix runs its shard, and the last job merges them."""
    jobs = yaml.safe_load(SHARDS["shards.yml"])["jobs"]
    (ask,), (merge,) = (jobs[name]["steps"] for name in ("shard", "whole"))

    for number in jobs["shard"]["strategy"]["matrix"]["shard"]:
        _run(lab, ask["run"], SHARD=number)
    _run(lab, merge["run"])

    summary = json.loads((lab.folder / "runs/whole/summary.json").read_text("utf-8"))
    assert summary["n_rows"] == N_PROMPTS
