"""The table of agreement, as a page of the documentation."""

from itertools import groupby
from pathlib import Path

from tests.openclaw.agreement.cases import all_cases, unplayed
from tests.openclaw.agreement.outcomes import JUSTIFIED, differences, n_other_words

OWN = "agreement"
PAGE = Path(__file__).parents[3] / "docs/maintaining/agreement.md"

_HEAD = """\
# Agreement with the real OpenClaw

<!-- Written by `python -m tests.openclaw.agreement`; change it there. -->

The plugin's own loop answers the calls of a world by OpenClaw's rules; [`openclaw_agent`](../how-to/openclaw.md) lets OpenClaw
answer them. This page compares both. One scripted model on loopback plays good and bad turns, once through our loop over HTTP,
and once through the real `openclaw agent --local`. Web pages and a server with Telegram's API are on loopback.
"""
_COMPARED = """\
A case agrees if verdict, tool outcome, number of turns, end of the exchange and every file at the end are the same, and for each
call whether it was carried out (`ok`, `error`), refused (`bad_arguments`, `unknown_tool`) or never answered. Differences only in
the words of a result are counted, but are not a disagreement. OpenClaw executes the calls of one turn in parallel, our loop
one after the other; no case depends on it. Before the comparison these are made equal:

- `/workspace`: the folder of the real agent, whose name changes with each run"""
_AGAIN = """\
## Play it again

In a clone, `python tests/real_parts.py openclaw FOLDER` installs OpenClaw and its Node. With
`OPENCLAW_TEST_OPENCLAW_DIR=FOLDER` in the environment `python -m tests.openclaw.agreement` plays the cases, ten seconds or more
each. The ordinary tests compare our loop with the stored results.
"""


def render(observed, ours):
    """Return the page of the outcomes in the real OpenClaw and in our loop."""
    pairs = [(case, ours[case.id], real) for case in all_cases() if (real := observed.outcome(case))]
    return "\n".join(
        [
            _HEAD,
            *_figures(observed, pairs),
            _COMPARED,
            *(f"- `{replacement}`: {why}" for _, replacement, why in JUSTIFIED),
            "\n## Differences\n",
            *_disagreements(pairs),
            "\n## The suites with worlds\n",
            "One right and one wrong exchange of each prompt, more of the agentic suite:\n",
            *_suites(pairs),
            "",
            "The real agent does not play these prompts:\n",
            *(f"- {why[0].upper()}{why[1:]} Prompts: {', '.join(names)}." for why, names in unplayed()),
            "\n## Mistakes of every kind\n",
            "`tests/openclaw/agreement` describes each case:\n",
            *_mistakes(pairs),
            "",
            _AGAIN,
        ]
    )


def _figures(observed, pairs):
    assert observed.releases is not None, "something was played"
    agree = sum(not list(differences(one, other)) for _, one, other in pairs)
    calls = sum(len(turn) for _, one, _ in pairs for turn in one.turns)
    others = sum(n_other_words(one, other) for _, one, other in pairs)
    releases = observed.releases
    yield (
        f"- OpenClaw {releases.openclaw} on Node {releases.node}, "
        f"pytest-openclaw {releases.pytest_openclaw}, {releases.date}"
    )
    yield f"- **{agree} of {len(pairs)} cases agree**"
    yield f"- for {calls - others} of {calls} calls, the model receives the same result word for word\n"


def _disagreements(pairs):
    found = [(case, list(differences(one, other))) for case, one, other in pairs]
    if not any(lines for _, lines in found):
        yield "None."
    for case, lines in found:
        if lines:
            yield f"- `{case.id}`: {'; '.join(lines)}"


def _suites(pairs):
    yield "| suite | cases | agree |"
    yield "| --- | --- | --- |"
    for suite, of_suite in groupby(pairs, key=lambda pair: pair[0].prompt.suite):
        agree = [not any(differences(ours, real)) for _, ours, real in of_suite]
        if suite != OWN:
            yield f"| `{Path(suite).name}` | {len(agree)} | {sum(agree)} |"


def _mistakes(pairs):
    own = [case.id.partition("-") for case, _, _ in pairs if case.prompt.suite == OWN]
    for family, cases in groupby(own, key=lambda parts: parts[0]):
        names = [f"`{name or family}`" for _, _, name in cases]
        yield f"- **{family}** ({len(names)}): {', '.join(names)}"
