"""The workflows, step by step on this machine: artifacts are folders, a script `gh` records its calls."""

from __future__ import annotations

import json
import os
import re
import shlex
import shutil
import subprocess
import sys
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import pytest
import yaml

from pytest_openclaw.cli import build_parser
from pytest_openclaw.options import OPTIONS
from tests.conftest import NO_OTHER_PLUGINS
from tests.e2e.sessions import KEPT

pytestmark = pytest.mark.newest

ROOT = Path(__file__).parent.parent.parent
BENCHMARKS = ROOT / ".github/workflows/benchmarks.yml"
TESTS = ROOT / ".github/workflows/tests.yml"
NIGHTLY = ROOT / ".github/workflows/nightly.yml"
STARTER = ROOT / "pytest_openclaw/cli/starter/openclaw.yml"
SUITES = ("core", "tools", "native")
N_PROMPTS = 12
MARKER = "<!-- pytest-openclaw -->"
BOT = "github-actions[bot]"
SESSION_BOUND_S = 300

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

# The answers of GitHub's command line; its state is in files beside it.
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


@dataclass
class Job:
    """A job that has ended: its failed steps with their exit status, and all output."""

    failed: dict[str, int] = field(default_factory=dict)
    text: str = ""


class GitHub:
    """A simulation of GitHub that can run a workflow's jobs, each in a separate workspace."""

    def __init__(self, folder: Path, workflow: Path) -> None:
        self.workflow: dict[Any, Any] = yaml.safe_load(workflow.read_text("utf-8"))
        self.folder = folder
        self.repository, self.artifacts = folder / "repository", folder / "artifacts"
        self.state = folder / "bin" / "state"
        (self.state / "runs").mkdir(parents=True)
        (self.state / "comments.json").write_text("[]")
        gh = folder / "bin" / "gh"
        gh.write_text(GH.format(python=sys.executable))
        gh.chmod(0o755)
        self.n_jobs = 0

    @property
    def comments(self) -> list[dict[str, Any]]:
        return json.loads((self.state / "comments.json").read_text())  # type: ignore[no-any-return]

    @property
    def calls(self) -> list[list[str]]:
        return [json.loads(line) for line in (self.state / "calls.jsonl").read_text().splitlines()]

    def say(self, login: str, body: str) -> None:
        """Add a user's comment."""
        comments = self.comments
        comments.append({"id": len(comments) + 1, "login": login, "body": body})
        (self.state / "comments.json").write_text(json.dumps(comments))

    def main_ran(self, number: int, artifact: Path | None) -> None:
        """Record a run of main that has ended, with this artifact or none."""
        (self.state / "runs" / str(number)).mkdir()
        if artifact:
            shutil.copytree(artifact, self.state / "runs" / str(number) / "whole")

    def play(self, event: str = "push") -> dict[str, Job]:
        """Run all jobs of a new run, in their order, and the entries of the matrix one after the other."""
        shutil.rmtree(self.artifacts, ignore_errors=True)
        self.artifacts.mkdir()
        jobs = {}
        for name, job in self.workflow["jobs"].items():
            if not _is_for(event, str(job.get("if", ""))):
                continue
            for suite in job.get("strategy", {}).get("matrix", {}).get("suite", [""]):
                jobs[f"{name} {suite}".strip()] = self._play(job, suite)
        return jobs

    def _play(self, job: Mapping[str, Any], suite: str) -> Job:
        self.n_jobs += 1
        workspace = self.folder / f"job-{self.n_jobs}"
        workspace.mkdir()
        done = Job()
        for step in job["steps"]:
            if done.failed and not re.search(r"always\(\)|!cancelled\(\)", str(step.get("if", ""))):
                continue
            inputs = {key: _expanded(value, suite) for key, value in step.get("with", {}).items()}
            action = step.get("uses", "run").partition("@")[0]
            if action == "actions/checkout":
                shutil.copytree(self.repository, workspace, dirs_exist_ok=True)
            elif action == "actions/upload-artifact":
                source = workspace / inputs["path"]
                if not source.is_dir():
                    done.failed[step["name"]] = 1
                    continue
                shutil.copytree(source, self.artifacts / inputs["name"], ignore=shutil.ignore_patterns(".*"))
            elif action == "actions/download-artifact":
                self._download(workspace, inputs)
            elif action == "run" and step.get("name") != "Install":
                self._run(
                    step, {**self.workflow.get("env", {}), **job.get("env", {})}, suite, workspace, done
                )
            else:
                assert action in {"actions/setup-python", "run"}
        return done

    def _download(self, workspace: Path, inputs: Mapping[str, Any]) -> None:
        if "name" in inputs:
            shutil.copytree(self.artifacts / inputs["name"], workspace / inputs["path"])
            return
        for artifact in self.artifacts.glob(inputs["pattern"]):
            shutil.copytree(artifact, workspace / inputs["path"] / artifact.name)

    def _run(
        self, step: Mapping[str, Any], environ: Mapping[str, Any], suite: str, workspace: Path, done: Job
    ) -> None:
        values = {key: _expanded(value, suite) for key, value in {**environ, **step.get("env", {})}.items()}
        values["MODELS"] = "scripted/m"
        kept = {name: os.environ[name] for name in KEPT if name in os.environ}
        paths = [str(self.folder / "bin"), str(Path(sys.executable).parent), kept["PATH"]]
        page = workspace / "step-summary.md"
        result = subprocess.run(
            ["bash", "--noprofile", "--norc", "-e", "-c", step["run"]],
            cwd=workspace,
            env={
                **kept,
                **values,
                "PATH": os.pathsep.join(paths),
                "HOME": str(self.folder),
                "GITHUB_ACTIONS": "true",
                "GITHUB_STEP_SUMMARY": str(page),
                "GITHUB_WORKFLOW": self.workflow["name"],
                "PYTEST_ADDOPTS": f"{NO_OTHER_PLUGINS} -p no:cacheprovider",
            },
            capture_output=True,
            encoding="utf-8",
            timeout=SESSION_BOUND_S,
        )
        done.text += f"--- {step['name']}\n{result.stdout}{result.stderr}"
        if result.returncode:
            done.failed[step["name"]] = result.returncode


def _is_for(event: str, condition: str) -> bool:
    """Whether a job runs for an event, as far as its condition names events; a comment needs a pull request."""
    if event == "schedule":
        return f"event_name == '{event}'" in condition
    return "event_name == 'schedule'" not in condition


def _expanded(value: Any, suite: str) -> str:
    known = {
        "matrix.suite": suite,
        "github.token": "the-token",
        "github.repository": "our/project",
        "github.event.pull_request.number": "7",
    }
    return re.sub(r"\$\{\{ ([\w.]+) \}\}", lambda found: known[found[1]], str(value))


def _project(folder: Path, skill: str) -> None:
    """A repository with three suites of 12 prompts, and a model that knows this many answers of each."""
    (folder / "benchmarks").mkdir(parents=True, exist_ok=True)
    for suite in SUITES:
        lines = [
            f'[[prompts]]\nid = "{suite[0].upper()}{n}"\nprompt = "question {n}"\n'
            'validator = { type = "exact", value = "yes" }\n'
            for n in range(N_PROMPTS)
        ]
        (folder / f"benchmarks/prompts_{suite}.toml").write_text("\n".join(lines))
    (folder / "conftest.py").write_text(PROVIDER)
    (folder / "pytest.ini").write_text("[pytest]\nopenclaw_models = scripted/m\n")
    (folder / "skill.txt").write_text(skill)


@pytest.fixture(scope="module")
def of_main(tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, dict[str, Job]]:
    """The artifacts of main's first run, with a model that knows 10 of 12 answers; and its result."""
    hub = GitHub(tmp_path_factory.mktemp("main"), BENCHMARKS)
    _project(hub.repository, "10")
    jobs = hub.play()
    return hub.artifacts / "whole", jobs


@pytest.fixture
def hub(tmp_path: Path, of_main: tuple[Path, dict[str, Job]]) -> GitHub:
    """A repository whose main has run before, most recently without an artifact."""
    hub = GitHub(tmp_path, BENCHMARKS)
    _project(hub.repository, "10")
    hub.main_ran(101, of_main[0])
    hub.main_ran(102, None)
    return hub


def _failed(jobs: Mapping[str, Job]) -> dict[str, dict[str, int]]:
    return {name: job.failed for name, job in jobs.items() if job.failed}


@pytest.mark.nightly
def test_a_good_change_passes_and_its_comment_is_kept_up_to_date(
    hub: GitHub, of_main: tuple[Path, dict[str, Job]]
) -> None:
    """The first push posts a comment, the second one updates it; other users' comments stay unchanged."""
    whole, jobs_of_main = of_main
    hub.say("mallory", f"{MARKER}\nmine")
    hub.say(BOT, "of another workflow")

    first = hub.play()
    body = hub.comments[2]["body"]
    (hub.repository / "skill.txt").write_text("11")
    second = hub.play()

    summary = json.loads((whole / "summary.json").read_text())
    assert (summary["n_rows"], summary["state"], summary["verdict"]) == (36, "finished", "passed")
    assert "::notice::There is no run of main to compare with." in jobs_of_main["gate"].text
    assert (_failed(first), _failed(second)) == ({}, {})
    assert [(one["login"], one["body"][:12]) for one in hub.comments[:2]] == [
        ("mallory", MARKER[:12]),
        (BOT, "of another w"),
    ]
    assert len(hub.comments) == 3
    assert body.startswith(f"{MARKER}\n")
    assert "30/36 |" in body
    assert "33/36 |" in hub.comments[2]["body"]
    listed = next(call for call in hub.calls if call[2:4] == ["run", "list"])
    assert listed[:2] == ["the-token", "our/project"]
    assert shlex.join(listed[4:11]) == "--workflow benchmarks --branch main --event push --status"


@pytest.mark.nightly
@pytest.mark.parametrize(
    ("skill", "failed", "said"),
    [
        pytest.param("5", {"gate": {"Gate": 1}}, "30 -&gt; 15 of 36 cells passed", id="regression"),
        pytest.param(
            "away",
            {**{f"shard {suite}": {"Ask": 1} for suite in SUITES}, "gate": {"Gate": 10}},
            "nothing was answered",
            id="no-server",
        ),
    ],
)
def test_the_comment_says_why_the_gate_failed(
    hub: GitHub, skill: str, failed: dict[str, dict[str, int]], said: str
) -> None:
    """A regression ends with 1, a run without an answer with 10; the comment is written anyway."""
    (hub.repository / "skill.txt").write_text(skill)

    jobs = hub.play()

    assert _failed(jobs) == failed
    (comment,) = hub.comments
    assert said in comment["body"]


@pytest.mark.nightly
def test_a_shard_without_a_run_is_missed(hub: GitHub) -> None:
    """A missing run cannot be overlooked: the merge names it."""
    (hub.repository / "benchmarks/prompts_tools.toml").write_text("[[prompts]]\n")

    hub.workflow["jobs"].pop("comment")  # it would find nothing
    jobs = hub.play()

    assert jobs["shard tools"].failed == {"Ask": 2, "Keep the run": 1}
    assert jobs["gate"].failed["Merge"] == 4
    assert "there is no run directory shards/shard-tools" in jobs["gate"].text
    assert "--- Gate" not in jobs["gate"].text


def test_the_starter_goes_the_same_way(tmp_path: Path) -> None:
    """One job asks and compares, and the comment is the same."""
    hub = GitHub(tmp_path, STARTER)
    _project(hub.repository, "10")
    first = hub.play()
    hub.main_ran(1, hub.artifacts / "whole")
    (hub.repository / "skill.txt").write_text("5")

    second = hub.play()

    assert not any(job.failed for job in [*first.values(), *second.values()])
    assert " 15/36 |" in hub.comments[0]["body"]
    assert "worse" in hub.comments[0]["body"]


def test_the_starter_looks_for_a_release(tmp_path: Path) -> None:
    """Once a week npm is asked for the newest one."""
    hub = GitHub(tmp_path, STARTER)
    npm = hub.folder / "bin" / "npm"
    npm.write_text('#!/bin/sh\nif [ "$*" = "view openclaw version" ]; then echo 2099.1.1; else exit 7; fi\n')
    npm.chmod(0o755)

    jobs = hub.play("schedule")

    assert list(jobs) == ["release"]
    assert not jobs["release"].failed, jobs["release"].text
    assert "::warning::openclaw-2099.1.1 is out" in jobs["release"].text


def _steps(workflow: Path) -> list[dict[str, Any]]:
    jobs = yaml.safe_load(workflow.read_text("utf-8"))["jobs"]
    return [step for job in jobs.values() for step in job["steps"]]


@pytest.mark.parametrize("workflow", [BENCHMARKS, TESTS, NIGHTLY, STARTER], ids=lambda path: path.name)
def test_a_workflow_is_safe(workflow: Path) -> None:
    """Foreign text never becomes shell, only GitHub's actions run; jobs that may write run no foreign code."""
    text, parsed = workflow.read_text("utf-8"), yaml.safe_load(workflow.read_text("utf-8"))

    assert "pull_request_target" not in re.sub(r"#.*", "", text)
    assert parsed["permissions"] == {"contents": "read"}
    for step in _steps(workflow):
        assert "${{" not in step.get("run", "")
        assert step.get("uses", "actions/").startswith("actions/")
    for name, job in parsed["jobs"].items():
        writes = "write" in job.get("permissions", {}).values()
        assert writes == (name == "comment")
        if writes:
            assert job["permissions"] == {"pull-requests": "write"}
            assert [step.get("uses", "").partition("@")[0] for step in job["steps"]] == [
                "actions/download-artifact",
                "",
            ]
            assert "github.event.pull_request.head.repo.full_name == github.repository" in job["if"]


def test_the_starter_is_the_small_form(tmp_path: Path) -> None:
    """The parts that both have in common are the same, word for word."""
    large, small = (yaml.safe_load(path.read_text("utf-8")) for path in (BENCHMARKS, STARTER))

    def fetches(workflow: Any) -> Any:
        (step,) = (
            step for step in workflow["jobs"]["gate"]["steps"] if step.get("name") == "Fetch main's last run"
        )
        return step

    assert small["jobs"]["comment"] == large["jobs"]["comment"]
    assert fetches(small) == fetches(large)
    # `on`, which YAML 1.1 parses as true; only the small one looks for a release, beside no nightly run.
    assert {**large[True], "schedule": small[True]["schedule"]} == small[True]
    look = small["jobs"]["release"]["steps"][-1]
    assert look == yaml.safe_load(NIGHTLY.read_text("utf-8"))["jobs"]["release"]["steps"][-1]


def test_every_shard_is_merged() -> None:
    """The matrix and the step that merges name the same suites, which all exist."""
    jobs = yaml.safe_load(BENCHMARKS.read_text("utf-8"))["jobs"]
    suites = jobs["shard"]["strategy"]["matrix"]["suite"]
    (merge,) = (step["run"] for step in jobs["gate"]["steps"] if step.get("name") == "Merge")

    assert re.findall(r"shards/shard-(\w+)", merge) == suites == list(SUITES)
    assert all((ROOT / f"benchmarks/prompts_{suite}.toml").is_file() for suite in suites)


def test_the_page_shows_commands_and_options_that_exist() -> None:
    """The commands in `docs/how-to/ci.md` can be typed, and its excerpt of a matrix is YAML."""
    page = (ROOT / "docs/how-to/ci.md").read_text("utf-8")
    shown = re.findall(r"^\$ pytest-openclaw (.*)", page, re.MULTILINE)

    assert [build_parser()[0].parse_args(shlex.split(words)).command for words in shown] == [
        "init",
        "merge",
        "compare",
        "gate",
    ]
    assert set(re.findall(r"--openclaw-[a-z0-9-]+[a-z0-9]", page)) <= {option.flag for option in OPTIONS}
    assert all(yaml.safe_load(block) for block in re.findall(r"```yaml\n(.*?)```", page, re.DOTALL))
