"""The table of agreement, as a page of the documentation."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from itertools import groupby
from pathlib import Path

from tests.openclaw.agreement.cases import Case, all_cases, unplayed
from tests.openclaw.agreement.observed import Observed
from tests.openclaw.agreement.outcomes import JUSTIFIED, Outcome, differences, other_words

OWN = "agreement"
PAGE = Path(__file__).parents[3] / "docs/agreement.md"

_HEAD = """\
# Agreement with the real OpenClaw

<!-- Written by `python -m tests.openclaw.agreement`; change it there. -->

A world is played by our own loop, which answers a model's calls by OpenClaw's rules, or by OpenClaw itself
([Ask through OpenClaw itself](how-to/openclaw.md)). This page says how far both come to the same, against one
scripted model on loopback that plays good and bad turns. Each case goes once through our loop, asked over HTTP, and once
through the real `openclaw agent exec`, or for several messages of the user through one session of
`openclaw agent --local`. Calls of `message` go through OpenClaw's gateway to a server with Telegram's API on
loopback, and the validator counts as sent what arrives there. Web pages are on loopback, too, and the files in which
OpenClaw keeps long ones may be read, as without `tools.fs.workspaceOnly`.
"""
_COMPARED = """\
A case agrees if all of this is the same: the verdict of the cell and how its use of tools is classed, the number of
turns, how the exchange ended, and every file at the end. For each call it must be the same whether it was carried out
(`ok`, `error`), refused (`bad_arguments`, `unknown_tool`) or never answered. The result that the model received for each call is
compared, too, word for word; a difference there alone is counted, and is no disagreement. Calls of one turn run side by
side in OpenClaw and one after the other in our loop; no case depends on it.

Before comparing, this is made equal:

- `/workspace`: the folder in which the real agent works has another name in each run, and `openclaw_agent` puts this one
  for it"""
_AGAIN = """\
## Play it again

In a clone, `python tests/openclaw/install_openclaw.py FOLDER` installs OpenClaw and its Node, and with
`OPENCLAW_TEST_OPENCLAW_DIR=FOLDER` in the environment `python -m tests.openclaw.agreement` plays the cases. Each
starts OpenClaw once, which takes ten seconds or more. What OpenClaw did is kept beside the cases, so that the ordinary
tests hold our loop to it without OpenClaw.
"""


def render(observed: Observed, ours: Mapping[str, Outcome]) -> str:
    """Return the page.

    Args:
        observed: the outcomes in the real OpenClaw, by case.
        ours: the outcomes in our loop, by case.

    """
    pairs = [(case, ours[case.id], real) for case in all_cases() if (real := observed.outcome(case))]
    return "\n".join(
        [
            _HEAD,
            *_figures(observed, pairs),
            _COMPARED,
            *(f"- `{replacement}`: {why}" for _, replacement, why in JUSTIFIED),
            "\n## Where both differ\n",
            *_disagreements(pairs),
            "\n## The suites with worlds\n",
            "Of each prompt one right and one wrong exchange is played, of the agentic suite more:\n",
            *_suites(pairs),
            "",
            "The real agent does not play these prompts:\n",
            *(f"- {why[0].upper()}{why[1:]} Prompts: {', '.join(names)}." for why, names in unplayed()),
            "\n## Mistakes of every kind\n",
            *_mistakes(pairs),
            "",
            _AGAIN,
        ]
    )


_Pair = tuple[Case, Outcome, Outcome]


def _figures(observed: Observed, pairs: Sequence[_Pair]) -> Iterator[str]:
    assert observed.releases is not None, "something was played"
    agree = sum(not list(differences(one, other)) for _, one, other in pairs)
    calls = sum(len(turn) for _, one, _ in pairs for turn in one.turns)
    others = sum(len(list(other_words(one, other))) for _, one, other in pairs)
    releases = observed.releases
    yield (
        f"- OpenClaw {releases.openclaw} on Node {releases.node}, "
        f"pytest-openclaw {releases.pytest_openclaw}, {releases.date}"
    )
    yield f"- **{agree} of {len(pairs)} cases agree**"
    yield f"- for {calls - others} of {calls} calls, the model receives the same result word for word\n"


def _disagreements(pairs: Sequence[_Pair]) -> Iterator[str]:
    found = [(case, list(differences(one, other))) for case, one, other in pairs]
    if not any(lines for _, lines in found):
        yield "Nowhere."
    for case, lines in found:
        if lines:
            yield f"- `{case.id}`: {'; '.join(lines)}"


def _suites(pairs: Sequence[_Pair]) -> Iterator[str]:
    yield "| suite | cases | agree |"
    yield "| --- | --- | --- |"
    for suite, of_suite in groupby(pairs, key=lambda pair: pair[0].prompt.suite):
        agree = [not any(differences(ours, real)) for _, ours, real in of_suite]
        if suite != OWN:
            yield f"| `{Path(suite).name}` | {len(agree)} | {sum(agree)} |"


def _mistakes(pairs: Sequence[_Pair]) -> Iterator[str]:
    yield "| case | what the model does |"
    yield "| --- | --- |"
    for case, _, _ in pairs:
        if case.prompt.suite == OWN:
            yield f"| `{case.id}` | {case.about.replace('|', chr(92) + '|')} |"
