"""`python -m tests.bfcl`: compares BFCL's checker with ours on the same replies, and writes the page."""

import tempfile
from collections import Counter
from pathlib import Path

from tests.bfcl.agreement import CLASSES, UNEXPLAINED, compare, load_converter
from tests.bfcl.checker import VERSION

PAGE = Path(__file__).parents[2] / "docs/maintaining/agreement-bfcl.md"

_HEAD = """\
# Agreement with BFCL's checker

<!-- Written by `python -m tests.bfcl`; change it there. -->

[A script](../how-to/bfcl.md) converts the cases of the Berkeley Function Calling Leaderboard (BFCL) to suites. This page compares
our verdicts with those of BFCL's own AST checker on the same replies. BFCL judges how a call is written; we judge what OpenClaw
does with it.
"""
_MADE = f"""\
The replies are made from BFCL's answers by rules: right ones, and ones with one change. Calls are on the wire for both checkers,
except those written as text, which BFCL decodes with its handlers for models without an API for tools. The checker is `bfcl-eval`
{VERSION}.
"""
_AGAIN = f"""\
## Play it again

In a clone, `pip install --no-deps bfcl-eval=={VERSION}` and `python -m tests.bfcl` make the replies, run both checkers and
write this page.
"""


def render(folder, *, every=1):
    """Compare both checkers, and return the page; suites are written into the folder."""
    converter = load_converter()
    tally = compare(folder, every=every)
    total = sum(tally.kinds.values(), Counter[str]())
    converted = {category: converter.convert(category) for category in converter.CATEGORIES}
    return "\n".join(
        [
            _HEAD,
            *_figures(tally, total),
            "",
            _MADE,
            *_converted(converted),
            "",
            "## Classes of disagreement\n",
            *_classes(tally),
            "",
            _AGAIN,
        ]
    )


def _figures(tally, total):
    yield f"- {tally.cases:,} cases, {total.total():,} replies"
    yield f"- both accept {total['11']:,}, both reject {total['00']:,}"
    yield f"- only BFCL accepts {total['10']:,}, only we accept {total['01']:,}"
    outcomes = ", ".join(f"`{name}` {n:,}" for name, n in tally.written.most_common())
    yield f"- calls that are due and written as text end as {outcomes}"
    yield f"- disagreements in no class below: **{len(tally.classes.get(UNEXPLAINED, ()))}**"


def _converted(converted):
    counts = (f"`{category}` {len(prompts):,}" for category, (prompts, _) in converted.items())
    yield f"Converted: {', '.join(counts)}. Not converted:"
    yield ""
    for _, skipped in converted.values():
        yield from (f"- `{case}`: {reason}" for case, reason in skipped.items())


def _classes(tally):
    yield "| class | replies | we | BFCL |"
    yield "| --- | --- | --- | --- |"
    for name, (ours, theirs) in CLASSES.items():
        if found := tally.classes.get(name):
            yield f"| {name} | {len(found):,} | {ours} | {theirs} |"


if __name__ == "__main__":
    with tempfile.TemporaryDirectory() as suites:
        PAGE.write_text(render(Path(suites)), "utf-8")
