"""The starter's workflow, step by step on this machine: artifacts are folders, a script `gh` records its calls."""

import json
import os
import re
import shlex
import shutil
import subprocess
import sys
from pathlib import Path

import pytest
import yaml

from tests.conftest import NO_OTHER_PLUGINS
from tests.e2e.sessions import KEPT

pytestmark = pytest.mark.newest

ROOT = Path(__file__).parent.parent.parent
BENCHMARKS = ROOT / ".github/workflows/benchmarks.yml"
TESTS = ROOT / ".github/workflows/tests.yml"
NIGHTLY = ROOT / ".github/workflows/nightly.yml"
STARTER = ROOT / "pytest_openclaw/cli/starter/openclaw.yml"
N_PROMPTS = 36
MARKER = "<!-- pytest-openclaw -->"
BOT = "github-actions[bot]"
SESSION_BOUND_S = 300
SUITE = "".join(
    f'[[prompts]]\nid = "P{n}"\nprompt = "question {n}"\nvalidator = {{ type = "exact", value = "yes" }}\n'
    for n in range(N_PROMPTS)
)
KNOWN = {
    "github.token": "the-token",
    "github.repository": "our/project",
    "github.event.pull_request.number": "7",
}

# Knows as many answers as skill.txt says, or is unavailable.
PROVIDER = """
from pathlib import Path
from pytest_openclaw import CallFailed, Provider, Reply, faults


class Scripted(Provider):
    name = "scripted"

    async def ask(self, request):
        skill = Path(__file__).with_name("skill.txt").read_text()
        if skill == "away":
            raise CallFailed(faults.unreachable("scripted", "nowhere", "refused"))
        return Reply(text="yes" if int(request.prompt.split()[-1]) < int(skill) else "no")


def pytest_openclaw_providers():
    return [Scripted]
"""

# The answers of GitHub's command line; its state is in files next to it.
GH = """#!{python} -ISs
import json, os, shutil, sys
from pathlib import Path

state, words = Path(__file__).parent / "state", sys.argv[1:]
with (state / "calls.jsonl").open("a") as file:
    file.write(json.dumps([os.environ.get("GH_TOKEN"), os.environ.get("GH_REPO"), *words]) + "\\n")


def after(name):
    return words[words.index(name) + 1]


def load():
    return json.loads((state / "comments.json").read_text())


def keep(comments):
    (state / "comments.json").write_text(json.dumps(comments))


if words[:2] == ["run", "list"]:
    print("\\n".join(sorted((path.name for path in (state / "runs").iterdir()), reverse=True)))
elif words[:2] == ["run", "download"]:
    artifact = state / "runs" / words[2] / after("--name")
    if not artifact.is_dir():
        sys.exit("no valid artifacts found to download")
    shutil.copytree(artifact, after("--dir"))
elif words[0] == "api" and "--jq" in words:
    for comment in load():
        if comment["login"] == "github-actions[bot]" and comment["body"].startswith("<!-- pytest-openclaw -->"):
            print(comment["id"])
elif words[0] == "api":
    name, _, value = after("--field").partition("=@")
    body, comments = Path(value).read_text("utf-8"), load()
    if after("--method") == "POST":
        comments.append({{"id": len(comments) + 1, "login": "github-actions[bot]", "body": body}})
    else:
        number = int(words[4].rpartition("/")[2])
        (one,) = (comment for comment in comments if comment["id"] == number)
        one["body"] = body
    keep(comments)
else:
    sys.exit(f"not known: {{words}}")
"""


class GitHub:
    """A simulation of GitHub that can run the starter's jobs, each in a separate workspace."""

    def __init__(self, folder):
        self.workflow = yaml.safe_load(STARTER.read_text("utf-8"))
        self.folder, self.artifacts, self.text = folder, folder / "artifacts", ""
        self.repository, self.state = folder / "repository", folder / "bin" / "state"
        for path in (self.state / "runs", self.repository / "benchmarks"):
            path.mkdir(parents=True)
        (self.state / "comments.json").write_text("[]")
        self.program("gh", GH.format(python=sys.executable))
        (self.repository / "benchmarks/prompts_a.toml").write_text(SUITE)
        (self.repository / "conftest.py").write_text(PROVIDER)
        (self.repository / "pytest.ini").write_text("[pytest]\nopenclaw_models = scripted/m\n")

    def program(self, name, text):
        (self.folder / "bin" / name).write_text(text)
        (self.folder / "bin" / name).chmod(0o755)

    def push(self, skill):
        """Run the jobs of a push with a model that knows this many answers; return the failed steps."""
        (self.repository / "skill.txt").write_text(skill)
        shutil.rmtree(self.artifacts, ignore_errors=True)
        return self.play("gate") | self.play("comment")

    def main_ran(self, number, artifact):
        (self.state / "runs" / str(number)).mkdir()
        if artifact:
            shutil.copytree(artifact, self.state / "runs" / str(number) / "whole")

    @property
    def comments(self):
        return json.loads((self.state / "comments.json").read_text())

    @property
    def calls(self):
        return [json.loads(line) for line in (self.state / "calls.jsonl").read_text().splitlines()]

    def play(self, job):
        """Run the steps of a job that have a shell command or handle an artifact; return the failed ones."""
        workspace, failed = self.folder / f"job-{len(list(self.folder.glob('job-*')))}", {}
        workspace.mkdir()
        for step in self.workflow["jobs"][job]["steps"]:
            inputs, name = step.get("with", {}), step.get("name", "")
            action = step.get("uses", "").partition("@")[0]
            if action == "actions/checkout":
                shutil.copytree(self.repository, workspace, dirs_exist_ok=True)
            elif action == "actions/upload-artifact":
                hidden = shutil.ignore_patterns(".*")
                shutil.copytree(workspace / inputs["path"], self.artifacts / inputs["name"], ignore=hidden)
            elif action == "actions/download-artifact":
                shutil.copytree(self.artifacts / inputs["name"], workspace / inputs["path"])
            elif "run" in step and name != "Install" and not failed and self._run(step, workspace):
                failed[name] = job
        return failed

    def _run(self, step, workspace):
        kept = {name: os.environ[name] for name in KEPT if name in os.environ}
        given = {key: KNOWN[value.strip("${} ")] for key, value in step.get("env", {}).items()}
        paths = [str(self.folder / "bin"), str(Path(sys.executable).parent), kept["PATH"]]
        done = subprocess.run(
            ["bash", "--noprofile", "--norc", "-e", "-c", step["run"]],
            cwd=workspace,
            env={
                **kept,
                **given,
                "PATH": os.pathsep.join(paths),
                "HOME": str(self.folder),
                "GITHUB_ACTIONS": "true",
                "GITHUB_STEP_SUMMARY": str(workspace / "step-summary.md"),
                "GITHUB_WORKFLOW": self.workflow["name"],
                "PYTEST_ADDOPTS": f"{NO_OTHER_PLUGINS} -p no:cacheprovider",
            },
            capture_output=True,
            encoding="utf-8",
            timeout=SESSION_BOUND_S,
        )
        self.text += f"--- {step['name']}\n{done.stdout}{done.stderr}"
        return done.returncode


def test_a_comment_is_kept_up_to_date(tmp_path):
    """The first push posts a comment, the next ones update it with the comparison; others' are unchanged."""
    hub = GitHub(tmp_path)
    others = [{"id": 1, "login": "mallory", "body": f"{MARKER}\nmine"}, {"id": 2, "login": BOT, "body": "hi"}]
    (hub.state / "comments.json").write_text(json.dumps(others))

    failed = hub.push("30")
    first = hub.comments[2]["body"]
    hub.main_ran(101, hub.artifacts / "whole")
    hub.main_ran(102, None)  # it is passed over
    failed |= hub.push("15")

    assert failed == {}, hub.text
    assert "::notice::There is no run of main to compare with." in hub.text
    assert hub.comments[:2] == others
    assert len(hub.comments) == 3
    assert first.startswith(f"{MARKER}\n")
    assert "30/36 |" in first
    assert " 15/36 |" in hub.comments[2]["body"]
    assert "worse" in hub.comments[2]["body"]
    listed = next(call for call in hub.calls if call[2:4] == ["run", "list"])
    assert listed[:2] == ["the-token", "our/project"]
    assert shlex.join(listed[4:11]) == "--workflow openclaw --branch main --event push --status"


def test_a_fault_fails_the_job_and_is_in_the_comment(tmp_path):
    """Without an answer there is no verdict; the run is kept and the comment written anyway."""
    hub = GitHub(tmp_path)

    assert hub.push("away") == {"Ask": "gate"}
    (comment,) = hub.comments
    assert "no cell was answered" in comment["body"]


def test_the_starter_looks_for_a_release(tmp_path):
    """Once a week npm is asked for the newest one."""
    hub = GitHub(tmp_path)
    known = '[ "$*" = "view openclaw version" ]'
    hub.program("npm", f"#!/bin/sh\nif {known}; then echo 2099.1.1; echo ::error::no; else exit 7; fi\n")

    assert hub.play("release") == {}, hub.text
    assert "::warning::openclaw-2099.1.1 is out" in hub.text
    assert "::error::" not in hub.text


@pytest.mark.parametrize("workflow", [BENCHMARKS, TESTS, NIGHTLY, STARTER], ids=lambda path: path.name)
def test_a_workflow_is_safe(workflow):
    """Foreign text never becomes shell, only GitHub's actions run; jobs that may write run no foreign code."""
    text = workflow.read_text("utf-8")
    parsed = yaml.safe_load(text)

    assert "pull_request_target" not in re.sub(r"#.*", "", text)
    assert parsed["permissions"] == {"contents": "read"}
    for step in (step for job in parsed["jobs"].values() for step in job["steps"]):
        assert "${{" not in step.get("run", "")
        assert step.get("uses", "actions/").startswith("actions/")
    for name, job in parsed["jobs"].items():
        writes = "write" in job.get("permissions", {}).values()
        assert writes == (name == "comment")
        if writes:
            assert job["permissions"] == {"pull-requests": "write"}
            actions = [step.get("uses", "").partition("@")[0] for step in job["steps"]]
            assert actions == ["actions/download-artifact", ""]
            assert "github.event.pull_request.head.repo.full_name == github.repository" in job["if"]


def test_the_starter_is_the_small_form():
    """The parts that both have in common are the same, word for word."""
    large, small = (yaml.safe_load(path.read_text("utf-8")) for path in (BENCHMARKS, STARTER))

    def fetches(workflow):
        steps = workflow["jobs"]["gate"]["steps"]
        return [step for step in steps if step.get("name") == "Fetch main's last run"]

    assert small["jobs"]["comment"] == large["jobs"]["comment"]
    assert fetches(small) == fetches(large) != []
    # `on`, which YAML 1.1 parses as true; only the small one looks for a release, because it has no nightly run.
    assert {**large[True], "schedule": small[True]["schedule"]} == small[True]
    look = small["jobs"]["release"]["steps"][-1]
    assert look == yaml.safe_load(NIGHTLY.read_text("utf-8"))["jobs"]["release"]["steps"][-1]


def test_every_shard_is_merged():
    """The matrix and the step that merges name the same suites, which all exist."""
    jobs = yaml.safe_load(BENCHMARKS.read_text("utf-8"))["jobs"]
    suites = jobs["shard"]["strategy"]["matrix"]["suite"]
    (merge,) = (step["run"] for step in jobs["gate"]["steps"] if step.get("name") == "Merge")

    assert re.findall(r"shards/shard-(\w+)", merge) == suites
    assert all((ROOT / f"benchmarks/prompts_{suite}.toml").is_file() for suite in suites)
