"""`python -m tests.performance [MEASURE …]`: the plugin's cost, beside the bare loops, as Markdown."""

from __future__ import annotations

import argparse
import sys
import tempfile
import time
from collections.abc import Sequence
from pathlib import Path

from tests.performance import clients, machine
from tests.performance.measures import (
    ACCURACY,
    FLEET,
    GROWTH,
    MEASURES,
    OVERHEAD,
    QUICK,
    START,
    WINDOW,
    WORKERS,
    Bench,
    Sizes,
)
from tests.performance.peer_runs import find_peers
from tests.performance.runs import LoopRunner
from tests.performance.serving import MockServer
from tests.performance.table import Page, Sample, render

NOTES = {
    OVERHEAD: (
        "Wall and CPU ms a cell beyond start-up, the server answering at once with 5 tokens: (N cells − 1 cell) / "
        "(N − 1), the 1 cell the median of three runs. CPU is that of the whole process tree. Validation and durable "
        "rows are included."
    ),
    WINDOW: (
        "First token after 100 ms, 19 more 5 ms apart, all calls in lock-step: rounds × 195 ms ÷ (first request "
        "received to last byte sent, by the server's clock)."
    ),
    GROWTH: (
        "Zero delay; memory is the largest sum over the process tree, looked at every 50 ms, in runs of its own. "
        "The last figure: each reply is 32 kB, each validator burns 2 ms, and the same session with short replies is "
        "subtracted; a program that fetches everything ahead and keeps it shows all of it."
    ),
    ACCURACY: (
        "First token after 100 to 300 ms, 19 more 20 ms apart: |reported − server's own| in ms, over all answers. "
        "Our rows have whole ms and are compared as is: rounding alone is 0.25 ms in the median, and adds "
        "nothing to a median above that."
    ),
    START: (
        "From the start of the process. The plain session is paired: with the plugin and under `-p no:openclaw`; on a "
        "busy machine its CPU time says more than its wall time."
    ),
    FLEET: (
        "Shards of a run, 1.85 kB a row, are merged and summarized (`merge`), exported as CSV, and shown on a page; "
        "RSS is the most that each command had. Files are in the folder of `TMPDIR`."
    ),
    WORKERS: "Calls and most in flight are the server's count, over both workers.",
}


def measure(
    names: Sequence[str],
    sizes: Sizes,
    passes: int,
    only: Sequence[str] | None = None,
    pythons: Sequence[str] = (),
) -> Page:
    """Run the measures, pass by pass, and return the page.

    Args:
        names: of the measures.
        sizes: the number of requests.
        passes: how often each measure is run.
        only: the loops to compare with; by default all whose library is installed.
        pythons: of environments that have other harnesses.
    """
    load_before = machine.load()
    began = time.monotonic()
    samples: list[Sample] = []
    loops = [name for name in clients.installed() if only is None or name in only]
    with tempfile.TemporaryDirectory() as name, MockServer() as server:
        folder = Path(name).resolve()
        bench = Bench(server, folder, sizes, [LoopRunner(loop, folder, server) for loop in loops])
        bench.peers = [peer for python in pythons for peer in find_peers(python, folder, server)]
        for runner in bench.rows(*bench.peers):
            with bench.counting("Before", runner.name):
                runner.run(1, 1)  # compiles what is imported
        for bench.turn in range(passes):
            for chosen in names:
                print(f"pass {bench.turn + 1} of {passes}: {chosen}", file=sys.stderr, flush=True)
                samples += MEASURES[chosen](bench)
    conditions = [
        *machine.conditions(),
        ("load average", f"{load_before} before, {machine.load()} after"),
        ("passes", f"{passes}, the rows interleaved; {time.monotonic() - began:.0f} s in all"),
    ]
    return Page(
        title="What the plugin costs",
        conditions=conditions,
        notes=NOTES,
        samples=samples,
        failures=bench.failures,
    )


def main(words: Sequence[str] | None = None) -> int:
    """Measure, print the page, and return 1 if a run did not count; a missed target is no error."""
    parser = argparse.ArgumentParser(prog="python -m tests.performance", description=__doc__)
    parser.add_argument(
        "measures", nargs="*", metavar="MEASURE", help=f"of {', '.join(MEASURES)}; all by default"
    )
    parser.add_argument("--runs", type=int, default=5, metavar="N", help="passes over all measures (5)")
    parser.add_argument("--quick", action="store_true", help="one pass, smaller")
    parser.add_argument(
        "--loops", metavar="NAME,…", help=f"of {', '.join(clients.CLIENTS)}; all that are installed"
    )
    parser.add_argument(
        "--peers",
        action="append",
        default=[],
        metavar="PYTHON",
        help="an environment that has inspect-ai or lm-eval; may be repeated",
    )
    parser.add_argument("--out", type=Path, metavar="FILE", help="write the page there too")
    asked = parser.parse_args(words)
    names = asked.measures or list(MEASURES)
    if unknown := [name for name in names if name not in MEASURES]:
        parser.error(f"no such measure: {', '.join(unknown)}")
    loops = asked.loops.split(",") if asked.loops is not None else None
    page = measure(
        names, QUICK if asked.quick else Sizes(), 1 if asked.quick else asked.runs, loops, asked.peers
    )
    text = render(page)
    print(text, end="")
    if asked.out:
        asked.out.write_text(text, "utf-8")
    return 1 if page.failures else 0


if __name__ == "__main__":
    raise SystemExit(main())
