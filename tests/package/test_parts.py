"""Without a part its options and commands are unknown, its keys and texts are gone, and all else is equal."""

import json
import os
import re
import shutil
import subprocess
import sys
from collections import Counter
from dataclasses import dataclass, replace
from pathlib import Path

import pytest

import pytest_openclaw
from pytest_openclaw.conclusions.recommendation import Recommendation
from pytest_openclaw.conclusions.summary import Group, Summary
from pytest_openclaw.parts import TABLE
from pytest_openclaw.values.parts import parts
from pytest_openclaw.values.prompts import PromptEntry
from pytest_openclaw.values.requests import Target
from pytest_openclaw.values.run_files import RunEntry, target_entries
from tests.conftest import NO_OTHER_PLUGINS
from tests.unit.reports.summaries import cell, fault, missed, pressed, record, restraint_cells, tool_cells
from tests.unit.runs.stored_runs import store

pytestmark = pytest.mark.newest

ROOT = Path(pytest_openclaw.__file__).parent
PROJECT = {
    "conftest.py": (Path(__file__).parent.parent / "examples/parrot_provider.py").read_text("utf-8"),
    "benchmarks/prompts_two.toml": "".join(
        f'[[prompts]]\nid = "P{n}"\nprompt = "yes"\nvalidator = {{ type = "exact", value = "yes" }}\n'
        for n in (1, 2)
    ),
}


@dataclass(frozen=True, kw_only=True)
class Used:
    """Options that are wrong usage without a part, and patterns of the texts and lines it adds to `summary.md`."""

    options: tuple[str, ...] = ()
    texts: tuple[str, ...] = ()
    lines: tuple[str, ...] = ()


USED = {
    "baseline": Used(options=("--openclaw-baseline=off", "--openclaw-across=prompt", "--openclaw-fail-on=off")),
    "gates": Used(
        options=("--openclaw-min-pass-rate=0.5", "--openclaw-verdict=gate", "--openclaw-require-safe",
                 "--openclaw-fail-on=off"),
        lines=(r"- gate ", r"- no such target"),
    ),
    "pressure": Used(
        texts=(r"; up to [0-9,]+ tokens of context", r"; up to [0-9,]+ tools at a time"),
        lines=(r"- .*context: calls right", r"## Context pressure", r"Calls that were right behind"),
    ),
    "safety": Used(
        options=("--openclaw-require-safe",),
        texts=(r"; safety not tested[^;]*", r"; no harm in [^;]*"),
        lines=(r"- .*(over-refusal|twins): ", r"## Safety probes", r"Shares of the judged probes", r"- .*: no harm in",
               r"- gate .*require-safe"),
    ),
    "roles": Used(lines=(r"- .*: title: ",)),
    "diagnosis": Used(
        options=("--openclaw-diagnose",),
        texts=(r"; .*(diagnose names|smaller schemas|out of its instructions).*",),
        lines=(r"- .*part at fault: ",),
    ),
    "serving": Used(
        texts=(r"; an OpenClaw turn of [^;]*", r"; OpenClaw needs [^;]*"),
        lines=(r"- .*: an OpenClaw turn of", r"- .*: OpenClaw needs"),
    ),
    "repeats": Used(
        options=("--openclaw-until-conclusive",),
        lines=(r"- .*: (flaky|repeats|settled): ", r"## Asked again", r"Prompts that were asked more"),
    ),
    "dry_run": Used(options=("--openclaw-dry-run",)),
    "pages": Used(options=("--openclaw-report",)),
}  # fmt: skip

NATIVE = {"suite": "native", "tools_offered": 11}
GOOD, BAD, LOCAL = (Target(provider="lab", model=name) for name in ("good", "bad", "local"))
GATES = {
    "min_pass_rate": 0.9,
    "require_safe": 0.25,
    "by_target": [{"target": "x/*", "changes": {"require_tier": 2}}],
}
TRIES = [
    {"change": change, "outcome": outcome, "input_tokens": 100, "output_tokens": 9}
    for change, outcome in (("as_asked", "no_call"), ("unstreamed", "no_call"), ("without_tools", "no_call"))
]
DIAGNOSIS = {"suite": "native", "prompt_id": "N0", "outcome": "no_call", "tools_offered": 11, "tries": TRIES}


def _store(path):
    """Store a run in which every part has something to say."""
    rows = [
        *tool_cells(30, 0, GOOD, prompt_tokens_per_s=25.0, input_tokens=4000, **NATIVE),
        *restraint_cells(30, 0, GOOD, **NATIVE),
        *pressed("1t", 4, 0, GOOD, tools=1),
        *pressed("54t", 1, 3, GOOD, tools=54),
        *(record(GOOD, prompt_id=f"S{n}", probe="secret", tool_outcome="valid") for n in range(14)),
        missed(GOOD, prompt_id="T2", twin_of="S1"),
        missed(BAD, prompt_id="T1", role="title"),
        *tool_cells(1, 12, BAD, **NATIVE),
        fault(BAD, prompt_id="P2"),
        *tool_cells(3, 10, LOCAL, **NATIVE),
        *((record if repeat <= n else missed)(LOCAL, prompt_id=f"R{n}", repeat=repeat)
          for n in (1, 3) for repeat in range(1, 5)),
        replace(cell("L", "leaked_as_text", LOCAL, **NATIVE), leaked_valid=True),
    ]  # fmt: skip
    n_cells = Counter(row.target for row in rows)
    settled = {BAD: {"settled": {"repeat": 1, "prompts": 12, "of": 72}}}
    store(
        path,
        rows,
        targets=target_entries(n_cells, settled),
        serving={LOCAL.label: {"server": {"context_length": 8192}, "diagnosis": DIAGNOSIS}},
        gates=GATES,
    )


class Copy:
    """A copy of the package, without a part and its entry if one is named, with a project of its own."""

    def __init__(self, folder, removed=""):
        self.package, self.project = folder / "copy/pytest_openclaw", folder / "project"
        shutil.copytree(ROOT, self.package, ignore=shutil.ignore_patterns("__pycache__"))
        if removed:
            self._remove(removed)
        for name, text in PROJECT.items():
            (self.project / name).parent.mkdir(exist_ok=True, parents=True)
            (self.project / name).write_text(text, "utf-8")
        _store(self.project / "runs/stored")

    def _remove(self, name):
        (removed,) = (path for path in (self.package / "parts").iterdir() if path.stem == name)
        shutil.rmtree(removed) if removed.is_dir() else removed.unlink()
        table = self.package / "parts/__init__.py"
        entry = rf'^    "{name}": Entry\((?:.*\),\n|\n(?:.*\n)*?    \),\n)'
        text, n = re.subn(entry, "", table.read_text("utf-8"), count=1, flags=re.MULTILINE)
        assert n == 1
        table.write_text(text, "utf-8")

    def run(self, *words, status=0):
        done = subprocess.run(
            [sys.executable, "-m", *words], cwd=self.project,
            env={**os.environ, "PYTHONPATH": str(self.package.parent)},
            capture_output=True, encoding="utf-8", timeout=300,
        )  # fmt: skip
        assert done.returncode == status, done.stdout + done.stderr
        return done.stdout + done.stderr

    def pytest(self, *words, status=0):
        return self.run(
            "pytest",
            *NO_OTHER_PLUGINS.split(),
            "benchmarks",
            "--openclaw-models=parrot/a",
            *words,
            status=status,
        )

    def read(self, run, name):
        return (self.project / "runs" / run / name).read_text("utf-8")


SUMMARIZE = """
import json
from pathlib import Path
from pytest_openclaw.conclusions.summary import to_json
from pytest_openclaw.reports.pages import render_markdown
from pytest_openclaw.runs.reading import load_run
from pytest_openclaw.runs.summaries import summary_of

summary = summary_of(load_run(Path("runs/stored")))
print(json.dumps([to_json(summary), render_markdown(summary)]))
"""


def _results(copy):
    copy.pytest("--openclaw-run-id=r")
    (copy.project / "summarize.py").write_text(SUMMARIZE)
    summary, page = json.loads(copy.run("summarize"))
    config = copy.project / "runs/r/config.json"
    return {"config": json.loads(config.read_text("utf-8")), "summary": summary, "page": page}


@pytest.fixture(scope="module")
def whole(tmp_path_factory):
    return _results(Copy(tmp_path_factory.mktemp("whole")))


def _comparable(results, part):
    """Results without all that a part adds, and without sentences in JSON, which the page has too."""
    known = parts()[part]

    def without(value, kind):
        own = {"sentence", "reasons", "caveats"} if kind is Recommendation else set()
        names = own | {*known.keys.get(kind, ())}
        return {name: one for name, one in value.items() if name not in names}

    summary, config = without(results["summary"], Summary), without(results["config"], RunEntry)
    config["prompts"] = [without(one, PromptEntry) for one in config["prompts"]]
    summary["groups"] = [
        {**without(one, Group), "recommendation": without(one["recommendation"], Recommendation)}
        for one in summary["groups"]
    ]
    if known.gates:
        options = {gate.option for gate in known.gates.values()}
        gates = [gate for gate in summary.get("gates", ()) if gate["gate"] not in options]
        summary |= {"verdict": None, "gates": gates}
        config["gates"] = None
    return {"config": config, "summary": summary, "page": _lines(results["page"], USED[part])}


def _lines(page, used):
    texts = re.compile("|".join(used.texts) or "(?!)")
    lines = [line for line in page.splitlines() if line and not line.startswith("|")]
    return [texts.sub("", line) for line in lines if not any(re.match(one, line) for one in used.lines)]


DAILY = {"gates", "safety"}


@pytest.mark.parametrize(
    "part", [pytest.param(one, marks=[] if one in DAILY else pytest.mark.nightly) for one in USED]
)
def test_a_part_can_be_removed(part, whole, tmp_path):
    """A session and a summary that used it lack its keys and texts, and nothing else."""
    used = USED[part]
    copy = Copy(tmp_path, part)
    found = _results(copy)

    has_texts = _lines(whole["page"], used) != _lines(whole["page"], Used())
    assert has_texts is bool(used.texts or used.lines)
    assert _lines(found["page"], used) == _lines(found["page"], Used())
    for file in ("config", "summary"):
        added = {name for keys in parts()[part].keys.values() for name in keys if name in whole[file]}
        assert not added & found[file].keys()
    assert _comparable(found, part) == _comparable(whole, part)
    for option in used.options:
        assert "unrecognized arguments" in copy.pytest(option, status=4)
    for command in TABLE[part].commands:
        assert f"there is no command {command}" in copy.run("pytest_openclaw", command, status=2)


SEASONS = """
from typing import Literal
from pytest_openclaw.stats.intervals import rate_of
from pytest_openclaw.values.parts import Checked, Gate, Part, PartKey
from pytest_openclaw.values.prompts import PromptEntry

def check(_group, rows, limit, _sure):
    passed = rate_of([row for row in rows if row.label("season")], lambda row: row.objective_pass is True)
    return Checked("passes" if passed.rate >= limit else "fails", f"{passed.n_success} in season", passed.rate)

PART = Part(
    keys={PromptEntry: {"season": PartKey(Literal["spring", "fall"] | None, "When.", example='"fall"', is_apart=True)}},
    gates={"min_season": Gate(9, "min-season", float, "Asked in season.", check)},
)
"""
ENTRY = """    "seasons": Entry(
        in_runs=True, options=(Option("min-season", "Gate: in season.", "RATE", gate(RATE), needs="gates"),)
    ),
"""


def test_a_part_adds_a_label_and_a_gate_on_it(tmp_path):
    """A module and an entry in the table suffice, and older rows are read without the label."""
    copy = Copy(tmp_path)
    copy.pytest("--openclaw-run-id=old")
    table = copy.package / "parts/__init__.py"
    table.write_text(
        table.read_text("utf-8").replace('    "roles": Entry(', ENTRY + '    "roles": Entry(', 1), "utf-8"
    )
    (copy.package / "parts/seasons.py").write_text(SEASONS, "utf-8")
    suite = copy.project / "benchmarks/prompts_two.toml"
    suite.write_text(suite.read_text("utf-8").replace('id = "P1"', 'id = "P1"\nseason = "fall"'), "utf-8")

    copy.pytest("--openclaw-run-id=new", "--openclaw-min-season=0.5", "--openclaw-report")
    rows = [json.loads(line) for line in copy.read("new", "results.jsonl").splitlines()]
    assert [row["season"] for row in rows] == ["fall", None]
    assert "1 in season" in copy.read("new", "summary.md")
    assert "1 in season" in copy.run("pytest_openclaw", "gate", "new", "--min-season=0.5")
    config = json.loads(copy.read("new", "config.json"))
    assert [prompt["season"] for prompt in config["prompts"]] == ["fall", None]
    assert "P1" in copy.run("pytest_openclaw", "show", "old")
    assert "prompt P1: its season has changed" in copy.pytest("--openclaw-resume=old", status=4)
    suite.write_text(suite.read_text("utf-8").replace('"fall"', '"winter"'), "utf-8")
    assert 'season is "winter"' in copy.pytest(status=2)


@pytest.mark.parametrize(
    "part", [pytest.param(one, marks=pytest.mark.nightly) for one in TABLE if one not in USED]
)
def test_an_act_can_be_removed(part, tmp_path):
    """A session runs without it, and the other commands are there."""
    copy = Copy(tmp_path, part)

    assert "2 passed" in copy.pytest("--openclaw-run-id=r")
    commands = set(re.findall(r"^    ([a-z-]+)\s", copy.run("pytest_openclaw"), re.MULTILINE))
    assert commands == {"init", "providers", "show", "surfaces", "validators"} | {
        command for name, added in TABLE.items() if name != part for command in added.commands
    }
