"""The measures: each is one pass that yields figures; passes are repeated and interleaved."""

from __future__ import annotations

import math
import shutil
import sys
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from pathlib import Path
from statistics import median, quantiles

from tests.performance import plugin_runs, processes
from tests.performance.fleet import write_fleet
from tests.performance.plugin_runs import PluginRunner
from tests.performance.processes import Cost
from tests.performance.runs import Run, Runner
from tests.performance.serving import MockServer, RunFailed
from tests.performance.table import Bound, Failure, Sample

OVERHEAD, WINDOW, GROWTH = "Overhead", "Window", "Growth"
ACCURACY, START, WORKERS, FLEET = "Accuracy", "Start", "Workers", "Fleet"
#: the row that overhead is compared with
YARDSTICK = "httpx2 loop"
#: characters of reasoning before an answer, where replies are to be large
THOUGHT = 32_000


@dataclass(frozen=True)
class Sizes:
    """How many requests each measure sends; `QUICK` and `TINY` are smaller forms."""

    levels: Sequence[int] = (1, 8, 64)
    overhead: int = 1000
    window: int = 512
    growth: tuple[int, int] = (1000, 10_000)
    hoarded: int = 2000
    accuracy: Sequence[tuple[int, int]] = ((8, 128), (64, 512))
    collected: int = 10_000
    pairs: int = 15
    workers: int = 1000
    burning: int = 200
    limits: Sequence[int] = (1, 2, 3, 8)
    limited: int = 100
    fleet: tuple[int, int] = (1_000_000, 64)


QUICK = Sizes(
    overhead=300,
    window=128,
    growth=(300, 3000),
    accuracy=((8, 64), (64, 256)),
    pairs=5,
    workers=300,
    burning=60,
    limited=40,
    fleet=(20_000, 64),
)
#: to check that everything runs; the figures have no meaning
TINY = Sizes(
    levels=(8,), overhead=5, window=4, growth=(5, 10), hoarded=5, accuracy=((8, 4),), collected=20, pairs=1, workers=5,
    burning=5, limits=(2,), limited=5, fleet=(400, 4),
)  # fmt: skip


@dataclass
class Bench:
    """The state that the measures share.

    Attributes:
        loops: the bare loops that are measured beside the plugin.
        peers: other harnesses.
        turn: the number of the pass; every other pass goes through the rows backwards.
        failures: runs that did not count.
    """

    server: MockServer
    folder: Path
    sizes: Sizes
    loops: Sequence[Runner]
    peers: Sequence[Runner] = ()
    turn: int = 0
    failures: list[Failure] = field(default_factory=list)

    @property
    def plugin(self) -> PluginRunner:
        """Our plugin."""
        return PluginRunner(self.folder, self.server)

    def rows(self, *more: Runner) -> Sequence[Runner]:
        """Return the loops, our plugin and others, in this pass's order."""
        rows = [*self.loops, self.plugin, *more]
        return rows[::-1] if self.turn % 2 else rows

    @contextmanager
    def counting(self, section: str, row: str) -> Iterator[None]:
        """Note a run that does not count, and continue."""
        try:
            yield
        except RunFailed as failure:
            self.failures.append(Failure(section, row, str(failure)))


Measure = Callable[[Bench], Iterator[Sample]]


def overhead(bench: Bench) -> Iterator[Sample]:
    """Wall and CPU time per cell beyond start-up, if the server answers at once."""
    n, levels = bench.sizes.overhead, bench.sizes.levels
    alone: dict[str, list[Cost]] = {}
    all_: dict[tuple[str, int], Cost] = {}
    for level in levels:
        for runner in bench.rows(*bench.peers):
            with bench.counting(OVERHEAD, f"{runner.name} at {level}"):
                one = runner.run(1, level).cost
                alone.setdefault(runner.name, []).append(one)
                all_[runner.name, level] = runner.run(n, level).cost
    for name, costs in alone.items():
        yield Sample(OVERHEAD, name, "one cell alone, s", middle(costs).wall_s)
    ms = {key: beyond_start(middle(alone[key[0]]), cost, n) for key, cost in all_.items()}
    for (name, level), (wall_ms, cpu_ms) in ms.items():
        yield Sample(OVERHEAD, name, f"ms at {level}", wall_ms)
        yield Sample(OVERHEAD, name, f"CPU ms at {level}", cpu_ms)
    most_wall, most_cpu = {1: 1.3, 8: 0.75, 64: 0.6}, {8: 1.2, 64: 1.0}
    for (name, level), costs in ms.items():
        if name == YARDSTICK or (YARDSTICK, level) not in ms:
            continue
        figures = zip(("", "'s CPU"), (most_wall, most_cpu), costs, ms[YARDSTICK, level], strict=True)
        for of, most, cost, yardstick in figures:
            bound = _at_most(most.get(level)) if name == bench.plugin.name else None
            yield Sample(OVERHEAD, name, f"× httpx2{of} at {level}", cost / yardstick, bound)


def window(bench: Bench) -> Iterator[Sample]:
    """The share of the ideal that the calls reach when all answers run in lock-step."""
    n = bench.sizes.window
    at_least = {8: 0.99, 64: 0.95}
    for level in [level for level in bench.sizes.levels if level > 1]:
        found: dict[str, float] = {}
        for runner in bench.rows(*bench.peers):
            with bench.counting(WINDOW, f"{runner.name} at {level}"):
                run = runner.run(n, level, "ttft=100,itl=5,n=20")
                reached = found[runner.name] = efficiency(run, n, level)
                bound = Bound("at least", at_least[level]) if runner.name == bench.plugin.name else None
                yield Sample(WINDOW, runner.name, f"efficiency at {level}", reached, bound)
                served = median(served.e2e_ms for served in run.log.answered)
                yield Sample(WINDOW, runner.name, f"server's own ms at {level}", served)
        ours, theirs = bench.plugin.name, "aiohttp loop"
        if ours in found and theirs in found:
            ratio = found[ours] / found[theirs]
            yield Sample(WINDOW, ours, f"× aiohttp at {level}", ratio, Bound("at least", 1.0))


def efficiency(run: Run, n: int, level: int) -> float:
    """Return the ideal time of all rounds, divided by the measured time."""
    return math.ceil(n / level) * 0.195 / run.log.window_s


def growth(bench: Bench) -> Iterator[Sample]:
    """Ten times the cells: time per cell, and the memory of the whole process tree."""
    (few, many), level, plugin = bench.sizes.growth, max(bench.sizes.levels), bench.plugin
    with bench.counting(GROWTH, plugin.name):
        one = middle([plugin.run(1, level).cost for _ in range(3)])
        ms = {n: beyond_start(one, plugin.run(n, level).cost, n) for n in (few, many)}
        for n, (wall_ms, cpu_ms) in ms.items():
            yield Sample(GROWTH, plugin.name, f"ms, {n} cells", wall_ms)
            yield Sample(GROWTH, plugin.name, f"CPU ms, {n} cells", cpu_ms)
        wall, cpu = (more / less for less, more in zip(ms[few], ms[many], strict=True))
        yield Sample(GROWTH, plugin.name, f"× from {few} to {many} cells", wall, Bound("at most", 1.1))
        yield Sample(GROWTH, plugin.name, f"CPU × from {few} to {many} cells", cpu)
    with bench.counting(GROWTH, f"{plugin.name}, memory"):
        ours, empty = plugin.peak_memory(many, level), plugin_runs.empty_session_memory(bench.folder, many)
        for name, measured in ((plugin.name, ours), ("empty session", empty)):
            yield Sample(GROWTH, name, f"RSS MB, {many} cells", measured.rss_mb)
            if measured.pss_mb is not None:
                yield Sample(GROWTH, name, f"PSS MB, {many} cells", measured.pss_mb)
        above, unit = ours.above(empty)
        yield Sample(
            GROWTH,
            plugin.name,
            f"{unit} MB above an empty session, {many} cells",
            above,
            Bound("at most", 60.0),
        )
    burning, n = PluginRunner(bench.folder, bench.server, burnt_ms=2), bench.sizes.hoarded
    with bench.counting(GROWTH, f"{burning.name}, memory"):
        short, long = (burning.peak_memory(n, level, f"think={thought}") for thought in (0, THOUGHT))
        added, unit = long.above(short)
        in_all = n * THOUGHT / 1e6
        yield Sample(
            GROWTH, plugin.name, f"{unit} MB added by {in_all:g} MB of replies, slow validators", added
        )


def accuracy(bench: Bench) -> Iterator[Sample]:
    """The difference between the reported times and the server's own, reply by reply."""
    burning = PluginRunner(bench.folder, bench.server, burnt_ms=2)
    for level, n in bench.sizes.accuracy:
        for runner in bench.rows(burning):
            with bench.counting(ACCURACY, f"{runner.name} at {level}"):
                run = runner.run(n, level, "ttft=100,jitter=200,itl=20,n=20")
                is_ours = isinstance(runner, PluginRunner)
                for time, errors in errors_of(run).items():
                    yield from _error_samples(runner.name, level, time, errors, is_ours)


def _error_samples(
    row: str, level: int, time: str, errors: Sequence[float], is_ours: bool
) -> Iterator[Sample]:
    bounds = {"median": {8: 0.6, 64: 1.0}, "p95": {8: 5.0}, "max": {}}
    figures = {
        "median": median(errors),
        "p95": quantiles(errors, n=20, method="inclusive")[-1],
        "max": max(errors),
    }
    for figure, value in figures.items():
        limit = bounds[figure].get(level) if is_ours else None
        yield Sample(ACCURACY, row, f"{time} {figure} at {level}", value, _at_most(limit))


def errors_of(run: Run) -> dict[str, list[float]]:
    """Return |reported − served| in ms of every reply, by `TTFT` and `e2e`, if the program reports them."""
    served = run.log.by_item
    ttft = [abs(t.ttft_ms - served[i].ttft_ms) for i, t in run.times.items() if t.ttft_ms is not None]
    e2e = [abs(t.e2e_ms - served[i].e2e_ms) for i, t in run.times.items() if t.e2e_ms is not None]
    return {name: errors for name, errors in (("TTFT", ttft), ("e2e", e2e)) if errors}


def start(bench: Bench) -> Iterator[Sample]:
    """Cold start, collection, and the cost for a session without benchmarks."""
    name = bench.plugin.name
    with bench.counting(START, "first row"):
        yield Sample(START, name, "first row on disk, s", bench.plugin.first_row_s(20), Bound("under", 0.8))
    n = bench.sizes.collected
    with bench.counting(START, "collecting"):
        collected_s = plugin_runs.collecting_s(bench.folder, n)
        yield Sample(START, name, f"collecting {n} cells, s", collected_s, Bound("under", 3.0))
    for words, environ in (((), {}), (("-n", "2"), {}), ((), {"PYTHONDONTWRITEBYTECODE": "1"})):
        said = " ".join((*words, *environ))
        with bench.counting(START, f"one cell {said}"):
            yield _from_cold(bench, said, words, environ)
    with bench.counting(START, "plain session"):
        wall_ms, cpu_ms = [], []
        for pair in range(bench.sizes.pairs):
            order = [(), ("-p", "no:openclaw")]
            took = {
                words: plugin_runs.plain_session(bench.folder, *words)
                for words in order[:: -1 if pair % 2 else 1]
            }
            with_plugin, without = (took[words] for words in order)
            wall_ms.append((with_plugin.wall_s - without.wall_s) * 1000)
            cpu_ms.append((with_plugin.cpu_s - without.cpu_s) * 1000)
        yield Sample(START, name, "added to a plain session, ms", median(wall_ms), Bound("under", 20.0))
        yield Sample(START, name, "added to a plain session, CPU ms", median(cpu_ms))


def _from_cold(bench: Bench, said: str, words: tuple[str, ...], environ: Mapping[str, str]) -> Sample:
    """Return what a session of one cell takes, as a multiple of pytest without our plugin on one test."""
    plugin = replace(bench.plugin, words=words, environ=environ)
    ours, theirs = [], []
    for _ in range(5):
        ours.append(plugin.run(1, 8).cost.wall_s)
        without = plugin_runs.plain_session(bench.folder, "-p", "no:openclaw", *words, environ=environ)
        theirs.append(without.wall_s)
    figure = f"one cell from cold, × plain pytest{said and f', {said}'}"
    return Sample(START, bench.plugin.name, figure, median(ours) / median(theirs), Bound("at most", 1.6))


def workers(bench: Bench) -> Iterator[Sample]:
    """Two workers of pytest-xdist: no call twice, no endpoint over its limit, no slower than one process."""
    two = replace(bench.plugin, words=("-n", "2"))
    for burnt_ms, n, most in ((0, bench.sizes.workers, 1.1), (20, bench.sizes.burning, 0.6)):
        ms: dict[tuple[str, ...], float] = {}
        for runner in (two, bench.plugin) if bench.turn % 2 else (bench.plugin, two):
            burning = replace(runner, burnt_ms=burnt_ms)
            with bench.counting(WORKERS, burning.name):
                one = middle([burning.run(1, 8).cost for _ in range(3)])
                ms[runner.words], cpu_ms = beyond_start(one, burning.run(n, 8).cost, n)
                yield Sample(WORKERS, burning.name, "ms at 8", ms[runner.words])
                yield Sample(WORKERS, burning.name, "CPU ms at 8", cpu_ms)
        if len(ms) == 2:
            ratio = ms[two.words] / ms[()]
            name = replace(two, burnt_ms=burnt_ms).name
            yield Sample(WORKERS, name, "× one process", ratio, Bound("at most", most))
    for limit in bench.sizes.limits:
        with bench.counting(WORKERS, f"{two.name}, limit {limit}"):
            run = two.run(bench.sizes.limited, limit, "ttft=10")
            calls, bound = len(run.log.answered), Bound("exactly", bench.sizes.limited)
            yield Sample(WORKERS, two.name, f"calls, limit {limit}", calls, bound)
            most = run.log.max_in_flight
            yield Sample(WORKERS, two.name, f"most in flight, limit {limit}", most, Bound("at most", limit))


def fleet(bench: Bench) -> Iterator[Sample]:
    """The parts of a large run are merged and summarized, exported, and shown on a page; twice at most."""
    if bench.turn > 1:
        return
    (n_rows, n_parts), folder = bench.sizes.fleet, bench.folder / "fleet"
    name = f"{n_rows} rows in {n_parts} parts"
    shutil.rmtree(folder, ignore_errors=True)
    with bench.counting(FLEET, name):
        write_fleet(folder, n_rows, n_parts)
        costs = {
            "merge": _command(bench, "merge", f"{folder}/part-*", "--into", f"{folder}/whole"),
            "export": _command(bench, "export", f"{folder}/whole", "--into", f"{folder}/rows.csv"),
            "report": _command(bench, "report", f"{folder}/whole"),
        }
        for command, cost in costs.items():
            yield Sample(FLEET, name, f"{command}, s", cost.wall_s)
            yield Sample(FLEET, name, f"{command}, CPU s", cost.cpu_s)
            yield Sample(FLEET, name, f"{command}, RSS MB", cost.peak_mb, Bound("under", 1000.0))
        wall_s, cpu_s = (
            sum(getattr(costs[command], unit) for command in ("merge", "export"))
            for unit in ("wall_s", "cpu_s")
        )
        yield Sample(FLEET, name, "merged, summarized and exported, s", wall_s, Bound("at most", 300.0))
        yield Sample(FLEET, name, "merged, summarized and exported, CPU s", cpu_s)
    shutil.rmtree(folder, ignore_errors=True)


def _command(bench: Bench, *words: str) -> Cost:
    command = [sys.executable, "-m", "pytest_openclaw", *words]
    return processes.run(command, bench.folder, processes.environment(bench.folder))


def _at_most(limit: float | None) -> Bound | None:
    return None if limit is None else Bound("at most", limit)


def beyond_start(one: Cost, all_: Cost, n: int) -> tuple[float, float]:
    """Return the wall and the CPU ms that each cell after the first costs."""
    return (all_.wall_s - one.wall_s) / (n - 1) * 1000, (all_.cpu_s - one.cpu_s) / (n - 1) * 1000


def middle(costs: Sequence[Cost]) -> Cost:
    """Return the median of several runs; a single run varies with the load of the machine."""
    return Cost(median(cost.wall_s for cost in costs), median(cost.cpu_s for cost in costs), "")


MEASURES: dict[str, Measure] = {
    "overhead": overhead,
    "window": window,
    "growth": growth,
    "accuracy": accuracy,
    "start": start,
    "workers": workers,
    "fleet": fleet,
}
