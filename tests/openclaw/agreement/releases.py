"""`python -m tests.openclaw.agreement.releases OLDER NEWER`: what changed for models between two releases.

OLDER and NEWER are folders that `install_openclaw.py` has filled. Captures the surfaces of both, plays cases of the
agreement suite in both, and writes docs/releases.md from `changes.json` beside this file. What a release sent and did
is kept in its folder: a case is played again only if it has changed.
"""

from __future__ import annotations

import argparse
import datetime
import json
import re
import sys
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import replace
from fnmatch import fnmatchcase
from pathlib import Path
from typing import Any

from pytest_openclaw.commands.capture_tools import drifts_between
from pytest_openclaw.core.text import counted
from pytest_openclaw.providers.openclaw.capture import capture
from pytest_openclaw.reports.drift_text import render_drift
from pytest_openclaw.tools.captured import gather
from pytest_openclaw.tools.catalogue import Catalogue, catalogue_in
from tests.openclaw.agreement.cases import Case, all_cases
from tests.openclaw.agreement.observed import FILE, load
from tests.openclaw.agreement.outcomes import Outcome, differences, other_words
from tests.openclaw.agreement.play import play_real
from tests.openclaw.install_openclaw import PACKAGE, find_command
from tests.openclaw.real import RealOpenClaw

PAGE = Path(__file__).parents[3] / "docs/releases.md"
CHANGES = Path(__file__).with_name("changes.json")
MOST_WORDS, BEFORE = 200, 60
_TIMED = re.compile(r'("(?:score|\w+Ms)"): [\d.e-]+')
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
    cases = [case for case in all_cases() if any(fnmatchcase(case.id, one) for one in options.only)]
    cases = [case for case in cases if not _lacking(case, *catalogues)]
    played = [] if options.surfaces else [_play(one, cases) for one in (older, newer)]
    keep_change(change_between(*catalogues, cases, played))
    PAGE.write_text(render(load_changes()), encoding="utf-8")
    return 0


def change_between(
    older: Catalogue, newer: Catalogue, cases: Sequence[Case], played: Sequence[Mapping[str, Outcome]]
) -> dict[str, Any]:
    """Return what changed between two releases, as it is kept.

    Args:
        older: what it sends.
        newer: what it sends.
        cases: those that may have been played.
        played: the outcomes of both, by case; empty if none was played.
    """
    sides = _release(older), _release(newer)
    both = [case for case in cases if played and all(case.id in outcomes for outcomes in played)]
    pairs = [(case, *(_timeless(outcomes[case.id]) for outcomes in played)) for case in both]
    return {
        "older": sides[0],
        "newer": sides[1],
        "surfaces": render_drift([*drifts_between(older, newer)]),
        "played": [case.id for case in both],
        "lacking": _lacked(older, newer) if played else {},
        "differences": {
            case.id: [*differences(one, other, sides), *_words(other_words(one, other), sides)]
            for case, one, other in pairs
            if one != other
        },
    }


def _lacked(older: Catalogue, newer: Catalogue) -> dict[str, int]:
    """Count the cases that cannot be played in both, by the tools that one of the two releases does not have."""
    found = Counter(", ".join(lacking) for case in all_cases() if (lacking := _lacking(case, older, newer)))
    return dict(sorted(found.items()))


def _lacking(case: Case, older: Catalogue, newer: Catalogue) -> list[str]:
    """Return the tools of a case that are in one of the two releases alone."""
    return sorted({tool.name for tool in case.prompt.tools or ()} & (older.tools.keys() ^ newer.tools.keys()))


def _timeless(outcome: Outcome) -> Outcome:
    """Return an outcome without the scores of notes, which fall with the note's age, and without durations."""
    turns = tuple(
        tuple(replace(call, result=_TIMED.sub(r"\1: 0", call.result)) for call in turn)
        for turn in outcome.turns
    )
    return replace(outcome, turns=turns)


def keep_change(change: Mapping[str, Any]) -> None:
    """Keep a comparison, in place of an earlier one of the same releases."""
    sides = change["older"], change["newer"]
    others = [one for one in load_changes() if (one["older"], one["newer"]) != sides]
    CHANGES.write_text(f"{json.dumps([change, *others], indent=1, ensure_ascii=False)}\n", encoding="utf-8")


def load_changes() -> list[dict[str, Any]]:
    """Return the comparisons, the latest first."""
    if not CHANGES.exists():
        return []
    found: list[dict[str, Any]] = json.loads(CHANGES.read_text("utf-8"))
    return found


def render(changes: Sequence[Mapping[str, Any]]) -> str:
    """Return the page."""
    return "\n".join([_HEAD, *(line for change in changes for line in _compared(change)), _AGAIN])


def _compared(change: Mapping[str, Any]) -> Iterator[str]:
    yield f"## {change['older']} → {change['newer']}\n"
    played, differing = change["played"], change["differences"]
    if played:
        alike = len(played) - len(differing)
        yield f"**{alike} of {len(played)} cases end alike**, word for word.\n"
        for tools, number in change.get("lacking", {}).items():
            yield f"Not played, because only one of the two has `{tools}`: {counted(number, 'case')}.\n"
        yield from (f"- `{name}`: {'; '.join(lines)}" for name, lines in differing.items())
        if differing:
            yield ""
    else:
        yield "No case was played: these two are compared by what they send alone.\n"
    yield "What is sent, surface by surface:\n"
    yield from ("```text", *change["surfaces"], "```", "")


def _words(found: Iterable[tuple[str, str, str]], sides: tuple[str, str]) -> Iterator[str]:
    """Yield each call whose result has other words, once, from shortly before the first of them."""
    for name, one, other in dict.fromkeys(found):
        alike = next((n for n, both in enumerate(zip(one, other, strict=False)) if both[0] != both[1]), 0)
        start = max(0, alike - BEFORE)
        first, second = (json.dumps(text[start:], ensure_ascii=False)[:MOST_WORDS] for text in (one, other))
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
    """Return what a release sends, captured once."""
    kept = openclaw.folder / "surfaces.json"
    if not kept.exists():
        found = capture({**openclaw.environ, "OPENCLAW_AGENT_COMMAND": openclaw.command})
        today = datetime.datetime.now(datetime.UTC).date().isoformat()
        gathered = gather(found.sent, release=f"openclaw-{found.release}", taken=today)
        kept.write_text(json.dumps(gathered, ensure_ascii=False), encoding="utf-8")
    return catalogue_in(json.loads(kept.read_text("utf-8")))


def _release(catalogue: Catalogue) -> str:
    return catalogue.source.removeprefix("openclaw-")


def _play(openclaw: RealOpenClaw, cases: Sequence[Case]) -> dict[str, Outcome]:
    """Return the outcomes of cases, and play those that are not kept as they are."""
    manifest = openclaw.folder / "node_modules" / PACKAGE / "package.json"
    release, kept = json.loads(manifest.read_text("utf-8"))["version"], openclaw.folder / "observed.json"
    newest, own = load(FILE), load(kept)
    known = [own, newest] if newest.releases and newest.releases.openclaw == release else [own]
    found: dict[str, Outcome] = {}
    for number, case in enumerate(cases, 1):
        outcome = next((one for observed in known if (one := observed.outcome(case))), None)
        if outcome is None:
            print(f"{release} [{number}/{len(cases)}] {case.id}", flush=True)
            outcome = play_real(case, openclaw)
            own.keep(case, outcome)
            own.save(kept)
        found[case.id] = outcome
    return found


if __name__ == "__main__":
    sys.exit(main())
