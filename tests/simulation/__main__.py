"""The tables of `docs/maintaining/simulations.md`: `python -m tests.simulation [--runs N] [--into docs/maintaining/simulations.md]`."""

import argparse
from pathlib import Path

from tests.simulation.tables import percentile_table, rate_table

MARKER = (
    "<!-- The rest is written by `python -m tests.simulation --into docs/maintaining/simulations.md`. -->"
)


def main():
    """Simulate, print, and write the tables into the page if requested."""
    parser = argparse.ArgumentParser(prog="python -m tests.simulation", description=__doc__)
    parser.add_argument(
        "--runs",
        type=int,
        default=300,
        help="runs of 100 prompts for each true rate (%(default)s); of 200 half as many",
    )
    parser.add_argument("--timed-runs", type=int, default=3000, help="runs for each percentile (%(default)s)")
    parser.add_argument("--into", type=Path, help="a page whose text after the marker is replaced")
    given = parser.parse_args()

    def lines():
        yield from rate_table(given.runs)
        yield ""
        yield from percentile_table(given.timed_runs)

    written = []
    for line in lines():
        print(line, flush=True)
        written.append(line)
    if given.into:
        before = given.into.read_text("utf-8").split(MARKER)[0]
        given.into.write_text(f"{before}{MARKER}\n\n" + "\n".join(written) + "\n", "utf-8")


main()
