"""Workflows, their pins, the component list and the audit: files and pure functions, without a network."""

from __future__ import annotations

import configparser
import json
import re
from pathlib import Path
from typing import Any

import pytest
import yaml

from tests.package.audit_packages import describe, find_vulnerabilities, parse_packages
from tests.package.check_dist import component_flaws

pytestmark = pytest.mark.newest

ROOT = Path(__file__).parents[2]
STARTER = ROOT / "pytest_openclaw/cli/starter/openclaw.yml"
WORKFLOWS = [*sorted((ROOT / ".github/workflows").glob("*.yml")), STARTER]
NIGHTLY = yaml.safe_load((ROOT / ".github/workflows/nightly.yml").read_text("utf-8"))
PIN = re.compile(r"uses: (?P<action>[\w/-]+)@(?P<commit>[0-9a-f]{40}) # (?P<version>v\d+\.\d+\.\d+)")


def test_every_action_has_one_commit_and_one_version() -> None:
    """All workflows, the starter's too, pin an action to the same commit, whose version is beside it."""
    texts = [path.read_text("utf-8") for path in WORKFLOWS]
    pins = [pin.groups() for text in texts for pin in PIN.finditer(text)]

    assert len(pins) == sum(text.count("uses:") for text in texts)
    assert len(set(pins)) == len({action for action, *_ in pins}) > 0


@pytest.mark.parametrize("workflow", WORKFLOWS, ids=lambda path: path.name)
def test_a_checkout_keeps_no_credentials(workflow: Path) -> None:
    """Neither a later step nor an artifact can contain the job's token."""
    jobs = yaml.safe_load(workflow.read_text("utf-8"))["jobs"].values()
    checkouts = [
        step for job in jobs for step in job["steps"] if step.get("uses", "").startswith("actions/checkout@")
    ]

    assert checkouts
    assert all(step["with"]["persist-credentials"] is False for step in checkouts)


def _tox_environments() -> set[str]:
    """Return the names of the environments with a section of their own."""
    parser = configparser.ConfigParser(interpolation=None)
    parser.read(ROOT / "tox.ini", "utf-8")
    names = (section.removeprefix("testenv:") for section in parser.sections() if ":" in section)
    return {part for name in names for part in name.strip("{}").split(",")}


def test_nightly_runs_environments_that_exist() -> None:
    """Each name of the matrix is one of tox.ini's; the job gives the token to `audit` alone."""
    job = NIGHTLY["jobs"]["tox"]
    names = job["strategy"]["matrix"]["environment"]
    (run,) = (step for step in job["steps"] if "run" in step)

    assert len(names) == len(set(names))
    assert {"audit", "search"} <= set(names) <= _tox_environments()
    assert run["env"]["GH_TOKEN"] == "${{ matrix.environment == 'audit' && github.token || '' }}"
    assert "schedule" in NIGHTLY[True]  # `on`, which YAML 1.1 parses as true


def test_dependabot_keeps_the_workflows_and_packages_current() -> None:
    """Both kinds are grouped, weekly and cool down; the starter's folder is read too."""
    config = yaml.safe_load((ROOT / ".github/dependabot.yml").read_text("utf-8"))
    updates = {update["package-ecosystem"]: update for update in config["updates"]}

    assert list(updates) == ["github-actions", "pip"]
    assert updates["github-actions"]["directories"] == [
        "/",
        f"/{STARTER.parent.relative_to(ROOT).as_posix()}",
    ]
    for update in updates.values():
        assert update["schedule"] == {"interval": "weekly"}
        assert update["cooldown"]["default-days"] >= 7
        assert [group["patterns"] for group in update["groups"].values()] == [["*"]]


def _listed(direct: dict[str, str], **more: list[str]) -> dict[str, Any]:
    """Return a component list: the root's own components with their versions, then the requirements of each."""
    refs = {*direct, *more, *(ref for required in more.values() for ref in required)}
    return {
        "metadata": {"component": {"bom-ref": "root"}},
        "components": [
            {"bom-ref": ref, "name": ref, "version": direct.get(ref, "1.0")} for ref in sorted(refs)
        ],
        "dependencies": [
            {"ref": "root", "dependsOn": list(direct)},
            *({"ref": ref, "dependsOn": required} for ref, required in more.items()),
        ],
    }


REQUIRES = ["pytest>=8.4", "Type_Ext>=4; python_version >= '3.11'", "argcomplete>=3; extra == 'completion'"]
BOTH = {"pytest": "9.0", "type-ext": "4.1"}


@pytest.mark.parametrize(
    ("listed", "flaws"),
    [
        pytest.param(_listed(BOTH, pytest=["pluggy"], pluggy=[]), [], id="complete"),
        pytest.param(_listed({"pytest": "9.0"}), ["lacks type-ext"], id="missing"),
        pytest.param(
            _listed({**BOTH, "argcomplete": "3.5"}), ["has argcomplete, which the wheel does not require"], id="of-an-extra"
        ),
        pytest.param(
            _listed({**BOTH, "pytest": "8.3"}), ["has pytest 8.3, which is not >=8.4"], id="too-old"
        ),
        pytest.param(
            _listed(BOTH, pip=["wheel"], wheel=["pip"]),
            ["has pip, which no component requires", "has wheel, which no component requires"],
            id="not-of-the-wheel",
        ),
    ],
)  # fmt: skip
def test_component_flaws(listed: dict[str, Any], flaws: list[str]) -> None:
    """The list has the wheel's requirements, in valid versions, their requirements, and nothing else."""
    assert list(component_flaws(listed, REQUIRES)) == flaws


SOUND = {"name": "attrs", "version": "26.1.0", "vulns": []}
KNOWN = {"id": "PYSEC-2099-1", "fix_versions": ["4.0", "3.9.1"], "aliases": ["CVE-2099-1"]}
OPEN = {"id": "PYSEC-2099-2", "fix_versions": [], "aliases": []}
FOUND = {"name": "idna", "version": "3.2", "vulns": [KNOWN, OPEN]}
SKIPPED = {"name": "pytest-openclaw", "skip_reason": "Dependency not found on PyPI"}
NOTHING = "pip-audit: NOTHING WAS AUDITED, PyPI's list of vulnerabilities cannot be reached from here"


@pytest.mark.parametrize(
    ("packages", "line"),
    [
        pytest.param([SOUND], "pip-audit: 1 audited", id="all"),
        pytest.param(
            [SOUND, SKIPPED, FOUND], "pip-audit: 2 audited; not on PyPI: pytest-openclaw", id="some"
        ),
        pytest.param([SKIPPED], NOTHING, id="a-mirror-without-the-list"),
        pytest.param([], NOTHING, id="no-network"),
    ],
)
def test_an_audit_says_how_much_it_saw(packages: list[dict[str, Any]], line: str) -> None:
    """A list that could not be reached is not mistaken for a clean one."""
    assert describe(packages) == line


def test_a_finding_names_package_and_fix() -> None:
    """Each known vulnerability has its own line; skipped packages have none."""
    assert list(find_vulnerabilities([SOUND, SKIPPED, FOUND])) == [
        "idna 3.2: PYSEC-2099-1, fixed in 4.0, 3.9.1",
        "idna 3.2: PYSEC-2099-2, fixed in no version",
    ]


@pytest.mark.parametrize(
    "stderr",
    [
        pytest.param(
            "Traceback\n  File …\nrequests.exceptions.ProxyError: Max retries exceeded", id="refused"
        ),
        pytest.param("Traceback\npip_audit._service.interface.ServiceError", id="status-503"),
        pytest.param(
            "ERROR: Tip: your network … Try another service with `-s SERVICE`", id="connect-timeout"
        ),
    ],
)
def test_without_network_nothing_is_audited(stderr: str) -> None:
    """The messages by which pip-audit 2.10 reports a service that does not answer."""
    assert parse_packages("", stderr) == []


def test_any_other_failure_of_the_audit_fails() -> None:
    """A wrong option or a crash is no missing network."""
    with pytest.raises(SystemExit, match="unrecognized arguments"):
        parse_packages("", "pip-audit: error: unrecognized arguments: --descr")
    assert parse_packages(json.dumps({"dependencies": [FOUND], "fixes": []}), "") == [FOUND]
