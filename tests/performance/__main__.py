"""`python -m tests.performance [MEASURE]`: what the plugin costs, next to a bare loop and other harnesses."""

import argparse
import os
import platform
import re
import subprocess
import sys
import tempfile
import time
from importlib.metadata import version
from pathlib import Path
from statistics import median

from tests.performance.measures import Sample, cost, errors, fleet, growth, start, window
from tests.performance.programs import LOOP, OURS, Bench, peer
from tests.performance.server import RunFailed, serving

MARKER = "<!-- The rest is written by `python -m tests.performance --page`. -->\n"
MEASURES = {one.__name__: one for one in (cost, window, errors, start, growth, fleet)}


def conditions():
    models = re.findall(r"model name\s*: (.+)", Path("/proc/cpuinfo").read_text("utf-8"))
    packages = ", ".join(f"{name} {version(name)}" for name in ("pytest-openclaw", "pytest", "httpx2"))
    commit = subprocess.run(["git", "describe", "--always", "--dirty"], stdout=subprocess.PIPE, text=True)
    return [
        f"machine: {os.cpu_count()} cores, {(models or [platform.machine()])[0]}, {platform.system()}",
        f"versions: Python {platform.python_version()}, {packages}; commit {commit.stdout.strip()}",
    ]


def render(facts, samples):
    """Return conditions and figures as Markdown; figures with targets are first."""
    values = {}
    for one in samples:
        values.setdefault(one.figure, {}).setdefault(one.program, []).append(one.value)
    bounds = {one.figure: one for one in samples if (one.most, one.least) != (None, None)}
    programs = list(dict.fromkeys(one.program for one in samples))
    rows = [["", "target", "", *programs], ["---"] * (3 + len(programs))]
    for figure in sorted(values, key=lambda figure: figure not in bounds):
        cells = [_cell(values[figure].get(program, ())) for program in programs]
        target = _target(bounds[figure], values[figure]) if figure in bounds else ("", "")
        rows.append([figure, *target, *cells])
    return "\n".join([*(f"- {fact}" for fact in facts), "", *(f"| {' | '.join(row)} |" for row in rows), ""])


def _target(bound, values):
    value, most, least = median(values[bound.program]), bound.most, bound.least
    is_met = (most is None or value <= most) and (least is None or value >= least)
    return f"≥ {least:g}" if most is None else f"≤ {most:g}", "met" if is_met else "**missed**"


def _cell(values):
    if not values:
        return "–"
    range_of = f" ({_number(min(values))} – {_number(max(values))})" if len(values) > 1 else ""
    return f"{_number(median(values))}{range_of}"


def _number(value):
    return f"{value:.0f}" if abs(value) >= 100 else f"{value:.3g}"


def measure(names, passes, scale, others=(LOOP,)):
    """Run the measures, pass by pass, and return the measured part of the page; also what did not count."""
    facts, samples, began, load = conditions(), list[Sample](), time.monotonic(), os.getloadavg()[0]
    with serving() as address, tempfile.TemporaryDirectory() as home:
        bench = Bench(address, Path(home).resolve(), [OURS, *others], scale)
        for program in bench.programs:
            bench.run(program, 1, 1)  # compiles its modules
        for turn in range(passes):
            for name in names if turn == 0 else [name for name in names if name != "fleet"]:
                print(f"pass {turn + 1} of {passes}: {name}", file=sys.stderr, flush=True)
                try:
                    samples.extend(MEASURES[name](bench))
                except RunFailed as failure:
                    facts.append(f"**did not count**: {name}: {' '.join(str(failure).split())}")
    facts.append(f"passes: {passes} by turns, {time.monotonic() - began:.0f} s")
    return render([*facts, f"load average before and after: {load:.1f}, {os.getloadavg()[0]:.1f}"], samples)


def main(words=None):
    """Measure and print; return 1 if a run did not count. A missed target is not an error."""
    parser = argparse.ArgumentParser(prog="python -m tests.performance", description=__doc__)
    parser.add_argument("measure", nargs="?", choices=MEASURES, help="all by default")
    parser.add_argument("--passes", type=int, default=3, help="how often each measure is run (3)")
    parser.add_argument("--scale", type=float, default=1.0, help="0.1 sends a tenth of the requests")
    parser.add_argument("--page", type=Path, help="replace the part of this page below its marker")
    what = "inspect-ai or lm-eval and the Python that has it, or promptfoo and its command; may be repeated"
    parser.add_argument("--peer", action="append", default=[], metavar="NAME=COMMAND", help=what)
    asked = parser.parse_args(words)
    others = [LOOP, *(peer(*one.split("=", 1)) for one in asked.peer)]
    text = measure([asked.measure] if asked.measure else [*MEASURES], asked.passes, asked.scale, others)
    print(text, end="")
    if asked.page:
        above = asked.page.read_text("utf-8").partition(MARKER)[0]
        asked.page.write_text(f"{above}{MARKER}\n{text}", "utf-8")
    return int("did not count" in text)


if __name__ == "__main__":
    raise SystemExit(main())
