"""`python -m tests.openclaw.agreement [--only PATTERN …]`: plays the cases in both loops, writes the table."""

import argparse
import datetime
import subprocess
import sys
from fnmatch import fnmatchcase
from importlib.metadata import version

from tests.openclaw.agreement import page
from tests.openclaw.agreement.cases import all_cases
from tests.openclaw.agreement.outcomes import Kept, Releases, differences, load
from tests.openclaw.agreement.play import play_ours, play_real
from tests.openclaw.real import FOLDER_ENV, find_real_openclaw
from tests.real_parts import OPENCLAW_VERSION as VERSION


def main(arguments=None):
    """Play the cases, print the differences, and write the table; the exit status is 1 if there are any."""
    parser = argparse.ArgumentParser(prog="python -m tests.openclaw.agreement", description=__doc__)
    parser.add_argument("--only", nargs="+", default=[], metavar="PATTERN", help="ids of cases, with * and ?")
    parser.add_argument(
        "--new", action="store_true", help="only cases that have not been played in their present form"
    )
    parser.add_argument("--ours", action="store_true", help="only our loop, compared with the kept results")
    options = parser.parse_args(arguments)
    patterns = options.only or ["*"]
    cases = [case for case in all_cases() if any(fnmatchcase(case.id, one) for one in patterns)]
    observed = load()
    if options.new:
        cases = [case for case in cases if observed.outcome(case) is None]
    if not options.ours:
        _play_real(cases, observed, whole=not (options.only or options.new))
    differing = [case.id for case in cases if not _print_differences(case, observed.outcome(case))]
    missing = [case.id for case in all_cases() if observed.outcome(case) is None]
    if missing:
        print(f"The table is not written: OpenClaw has not played {', '.join(missing)}")
    else:
        ours = {case.id: play_ours(case) for case in all_cases()}
        page.PAGE.write_text(page.render(observed, ours), encoding="utf-8")
    if differing:
        print(f"Both differ in {', '.join(differing)}")
    return 1 if differing else 0


def _play_real(cases, observed, *, whole):
    openclaw = find_real_openclaw()
    if openclaw is None:
        sys.exit(f"{FOLDER_ENV} names no folder with OpenClaw; tests/real_parts.py fills one.")
    now = _releases(openclaw.node)
    before = observed.releases
    if before and not whole and (before.openclaw, before.node) != (now.openclaw, now.node):
        sys.exit(f"The others were played with {before.openclaw}. With {now.openclaw}, play all of them.")
    for number, case in enumerate(cases, 1):
        print(f"[{number}/{len(cases)}] {case.id}", flush=True)
        observed.releases = now
        observed.cases[case.id] = Kept(digest=case.digest, outcome=play_real(case, openclaw))
        observed.save()
    known = {case.id for case in all_cases()}
    observed.cases = {name: kept for name, kept in observed.cases.items() if name in known}
    observed.save()


def _releases(node):
    printed = subprocess.run([node, "--version"], capture_output=True, text=True, check=True).stdout
    return Releases(
        openclaw=VERSION,
        node=printed.strip().removeprefix("v"),
        pytest_openclaw=version("pytest-openclaw"),
        date=datetime.datetime.now(datetime.UTC).date().isoformat(),
    )


def _print_differences(case, real):
    if real is None:
        print(f"{case.id}: not played by OpenClaw in its present form")
        return False
    found = list(differences(play_ours(case), real))
    for line in found:
        print(f"{case.id}: {line}")
    return not found


if __name__ == "__main__":
    sys.exit(main())
