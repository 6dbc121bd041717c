"""`python -m tests.openclaw.agreement.releases OLDER NEWER`: what changed for models between two releases.

OLDER and NEWER are folders that `install_openclaw.py` has filled. Captures the surfaces of both, plays cases of the
agreement suite in both, and writes docs/releases.md. What both did is kept in the folder `releases` beside this file,
so that a part can be played again: cases that are kept are not played, unless they have changed.
"""

from __future__ import annotations

import argparse
import datetime
import json
import subprocess
import sys
from collections.abc import Iterator, Sequence
from fnmatch import fnmatchcase
from importlib.metadata import version
from pathlib import Path
from typing import Any

from pytest_openclaw.commands.capture_tools import drifts_between
from pytest_openclaw.providers.openclaw.capture import capture
from pytest_openclaw.reports.drift_text import render_drift
from pytest_openclaw.tools.captured import gather
from pytest_openclaw.tools.catalogue import Catalogue, catalogue_in
from tests.openclaw.agreement.cases import Case, all_cases
from tests.openclaw.agreement.observed import FILE, Observed, Releases, load
from tests.openclaw.agreement.outcomes import differences, other_words
from tests.openclaw.agreement.play import play_real
from tests.openclaw.install_openclaw import PACKAGE, find_command
from tests.openclaw.real import RealOpenClaw

PAGE = Path(__file__).parents[3] / "docs/releases.md"
KEPT = Path(__file__).with_name("releases")
CHANGES = KEPT / "changes.json"
MOST_WORDS = 200
_HEAD = """\
# What changed for models

<!-- Written by `python -m tests.openclaw.agreement.releases`; change it there. -->

A release of OpenClaw can break a model, or repair it, without any change of the model. This page compares releases in two
ways: by what they send to a model (`capture-tools`), and by what they do with its calls (cases of the [agreement
suite](agreement.md), played by the real programs against one scripted model on loopback). Recommendations name the
release whose tools and rules they rest on.
"""
_AGAIN = """\
## Compare two releases

For your own machine and config, [`capture-tools --against`](how-to/capture.md) shows what another release sends. In a
clone, `python tests/openclaw/install_openclaw.py FOLDER --version=RELEASE` installs a release, and
`python -m tests.openclaw.agreement.releases OLDER NEWER` compares two such folders and writes this page. The job
`release` of the workflow that `init` writes looks for a new release each week.
"""


def main(arguments: Sequence[str] | None = None) -> int:
    """Capture, play, and write the page."""
    parser = argparse.ArgumentParser(prog="python -m tests.openclaw.agreement.releases", description=__doc__)
    parser.add_argument("older", type=Path, help="folder of the older release")
    parser.add_argument("newer", type=Path, help="folder of the newer release")
    parser.add_argument(
        "--only", nargs="+", default=["*"], metavar="PATTERN", help="ids of cases, with * and ?"
    )
    parser.add_argument("--surfaces", action="store_true", help="capture the surfaces, and play no case")
    options = parser.parse_args(arguments)
    older, newer = (_installed(folder.resolve()) for folder in (options.older, options.newer))
    catalogues = [_captured(one) for one in (older, newer)]
    keep_changes(*catalogues)
    if not options.surfaces:
        for one in (older, newer):
            _play(one, [case for case in all_cases() if any(fnmatchcase(case.id, p) for p in options.only)])
    PAGE.write_text(render(), encoding="utf-8")
    return 0


def observed_of(release: str) -> Observed:
    """Return what a release did: what the page of agreement rests on, if that is of the same release."""
    newest = load(FILE)
    is_newest = newest.releases is not None and newest.releases.openclaw == release
    return newest if is_newest else load(KEPT / f"{release}.json")


def keep_changes(older: Catalogue, newer: Catalogue) -> None:
    """Keep what changed between two releases on their surfaces, in place of an earlier comparison of both."""
    lines = render_drift([*drifts_between(older, newer)])
    found = {"older": _release(older), "newer": _release(newer), "surfaces": lines}
    kept = [one for one in load_changes() if (one["older"], one["newer"]) != (found["older"], found["newer"])]
    KEPT.mkdir(exist_ok=True)
    text = json.dumps([found, *kept], indent=1, ensure_ascii=False)
    CHANGES.write_text(f"{text}\n", encoding="utf-8")


def load_changes() -> list[dict[str, Any]]:
    """Return the comparisons of surfaces, the latest first."""
    if not CHANGES.exists():
        return []
    found: list[dict[str, Any]] = json.loads(CHANGES.read_text("utf-8"))
    return found


def render() -> str:
    """Return the page."""
    parts = [_HEAD]
    for change in load_changes():
        parts += _compared(change["older"], change["newer"], change["surfaces"])
    return "\n".join([*parts, _AGAIN])


def _compared(older: str, newer: str, surfaces: Sequence[str]) -> Iterator[str]:
    yield f"## {older} → {newer}\n"
    yield "What is sent, surface by surface:\n"
    yield "```text"
    yield from surfaces
    yield "```\n"
    before, now = observed_of(older), observed_of(newer)
    pairs = [
        (case, one, other)
        for case in all_cases()
        if (one := before.outcome(case)) is not None and (other := now.outcome(case)) is not None
    ]
    if not pairs:
        yield f"No case was played in both: {older} was compared by its surfaces alone.\n"
        return
    sides = (older, newer)
    lines = [
        (case, [*differences(one, other, sides)], [*other_words(one, other)]) for case, one, other in pairs
    ]
    alike = sum(not found for _, found, _ in lines)
    yield f"What is done with calls: **{alike} of {len(pairs)} cases end alike**.\n"
    for case, found, words in lines:
        if found or words:
            yield f"- `{case.id}` ({case.about}): {'; '.join([*found, *_words(words, sides)])}"
    yield ""


def _words(found: Sequence[tuple[str, str, str]], sides: tuple[str, str]) -> Iterator[str]:
    """Yield each call whose result has other words, once."""
    for name, one, other in dict.fromkeys(found):
        first, second = (json.dumps(text, ensure_ascii=False)[:MOST_WORDS] for text in (one, other))
        yield f"the result of `{name}` is `{first}` in {sides[0]}, `{second}` in {sides[1]}"


def _installed(folder: Path) -> RealOpenClaw:
    manifest = folder / "node_modules" / PACKAGE / "package.json"
    if not manifest.is_file():
        sys.exit(f"{folder} has no OpenClaw; install_openclaw.py fills such a folder.")
    parts = find_command(folder, json.loads(manifest.read_text("utf-8"))["version"])
    if parts is None:
        sys.exit(f"{folder} has no Node for its OpenClaw; install_openclaw.py installs one.")
    return RealOpenClaw(folder, parts)


def _captured(openclaw: RealOpenClaw) -> Catalogue:
    found = capture({**openclaw.environ, "OPENCLAW_AGENT_COMMAND": openclaw.command})
    today = datetime.datetime.now(datetime.UTC).date().isoformat()
    return catalogue_in(gather(found.sent, release=f"openclaw-{found.release}", taken=today))


def _release(catalogue: Catalogue) -> str:
    return catalogue.source.removeprefix("openclaw-")


def _play(openclaw: RealOpenClaw, cases: Sequence[Case]) -> None:
    """Play the cases that are not kept as they are."""
    manifest = openclaw.folder / "node_modules" / PACKAGE / "package.json"
    release = json.loads(manifest.read_text("utf-8"))["version"]
    observed = observed_of(release)
    printed = subprocess.run([openclaw.node, "--version"], capture_output=True, text=True, check=True).stdout
    missing = [case for case in cases if observed.outcome(case) is None]
    for number, case in enumerate(missing, 1):
        print(f"{release} [{number}/{len(missing)}] {case.id}", flush=True)
        observed.releases = Releases(
            openclaw=release,
            node=printed.strip().removeprefix("v"),
            pytest_openclaw=version("pytest-openclaw"),
            date=datetime.datetime.now(datetime.UTC).date().isoformat(),
        )
        observed.keep(case, play_real(case, openclaw))
        observed.save(KEPT / f"{release}.json")


if __name__ == "__main__":
    sys.exit(main())
