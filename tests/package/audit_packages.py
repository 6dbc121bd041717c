"""`python tests/package/audit_packages.py`: look up this environment's packages in PyPI's list of vulnerabilities.

A known vulnerability fails. A machine that cannot reach the list says so in one line, which is no failure.
"""

from __future__ import annotations

import json
import re
import subprocess
import sys
from collections.abc import Iterator
from typing import Any

COMMAND = (sys.executable, "-m", "pip_audit", "--format=json", "--desc=off", "--progress-spinner=off")
# pip-audit reports some failures of the network in its own message and others by a traceback.
UNREACHABLE = re.compile(
    r"Try another service|^(requests\.exceptions|pip_audit\._service\.interface)\.", re.MULTILINE
)


def main() -> None:
    """Run pip-audit and print its answer; exit with 1 for a finding."""
    done = subprocess.run(COMMAND, capture_output=True, encoding="utf-8", check=False)
    packages = parse_packages(done.stdout, done.stderr)
    print(describe(packages))
    if findings := list(find_vulnerabilities(packages)):
        sys.exit("\n".join(findings))


def parse_packages(stdout: str, stderr: str) -> list[dict[str, Any]]:
    """Return the packages that pip-audit looked up or skipped: none if it could not reach the service.

    Raises:
        SystemExit: pip-audit failed for another reason, which is the message.
    """
    if stdout:
        return json.loads(stdout)["dependencies"]  # type: ignore[no-any-return]
    if UNREACHABLE.search(stderr):
        return []
    sys.exit(stderr)


def describe(packages: list[dict[str, Any]]) -> str:
    """Return one line: the number of audited packages and the names that PyPI does not know."""
    unknown = [package["name"] for package in packages if "skip_reason" in package]
    if len(unknown) == len(packages):
        return "pip-audit: NOTHING WAS AUDITED, PyPI's list of vulnerabilities cannot be reached from here"
    line = f"pip-audit: {len(packages) - len(unknown)} audited"
    return f"{line}; not on PyPI: {', '.join(unknown)}" if unknown else line


def find_vulnerabilities(packages: list[dict[str, Any]]) -> Iterator[str]:
    """Yield a line for each known vulnerability, with the versions that fix it."""
    for package in packages:
        for known in package.get("vulns", []):
            fixed = ", ".join(known["fix_versions"]) or "no version"
            yield f"{package['name']} {package['version']}: {known['id']}, fixed in {fixed}"


if __name__ == "__main__":
    main()
