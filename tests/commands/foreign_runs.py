"""Run folders from elsewhere: real ones, changed by a seeded random source in every way a file can change."""

from __future__ import annotations

import copy
import io
import json
import os
import re
import reprlib
import shutil
from collections.abc import Callable, Iterator, Sequence
from contextlib import redirect_stderr, redirect_stdout
from functools import partial
from pathlib import Path
from random import Random
from typing import Any, NamedTuple

from pytest_openclaw.cli import main
from pytest_openclaw.runs.directory import RunDirectory
from pytest_openclaw.runs.reading import load_run
from pytest_openclaw.runs.resume import Plan, find_changes, replays_of, settings_of
from pytest_openclaw.runs.session import RunSession
from pytest_openclaw.util.errors import OpenClawError
from pytest_openclaw.values.requests import CellKey
from pytest_openclaw.values.settings import Settings
from tests.browser.made_runs import make_run

FILES = (
    "config.json",
    "inventory.json",
    "results.jsonl",
    "summary.json",
)
SECRET = "canary-7f3a"
"""The content of a file outside every run; no command may print or change it."""

VALUES: tuple[Any, ...] = (
    None, True, False, 0, 1, -1, -5, 2, 10**6, 2**53, 2**63, 10**18, 10**300, 10**400, 1.0, 0.5, -0.5, 1e-300, 5e-324,
    1e300, 1.7e308, "", "x", "1", "last", "\ud800", "\udfff", "\x00", "\x1b[31m", "\n", "é" * 50, "a" * 5000, "-" * 300,
    "../../etc/passwd", "/etc/passwd", "/dev/zero", "P1", "ok", "error", "openclaw-2026.9.6", "lab", [], [None], [[]],
    ["x"], [1, 2], [{}], {}, {"": 0}, {"x": None}, {"type": "noop"}, {"type": "nonesuch"}, {"type": "python"},
    {"type": "regex", "pattern": "("}, {"type": "all_of", "validators": "x"}, {"name": 1}, {"text": "x"}, {"calls": []},
    "[" * 50_000, '{"id":' * 3000, "9" * 5000, "{}", '{"path": 1e999}', "[NaN]", '"\\ud800"', "<think>" * 300, "```json\n{" * 50,
    {"catalogue": "/dev/zero", "sha256": "x", "tools": "direct"}, {"server": "x"}, {"low": 1, "high": 0},
)  # fmt: skip
TEXTS = (
    b"NaN", b"Infinity", b"-Infinity", b"1e999", b"9" * 5000, b"9" * 4000, b"-" + b"9" * 4200, b"[" * 90_000, b'{"a":' * 500,
    b"[" * 250 + b"]" * 250, b'"\\ud800"', b"\xff\xfe", b"\xed\xa0\x80", b"\x00" * 20, b"null", b"[]", b"{}", b'"', b"\xef\xbb\xbf",
    b"\n", b"\r\n", b"\n\n", b"{", b"}", b",", b"\xe2\x80\xa8", b'{"a": 1, "a": 2}', b"0" * 50, b"1.5", b"-1", b"true",
)  # fmt: skip


def made(folder: Path) -> Path:
    """Make two finished runs with every kind of cell in `folder/runs`, and a file outside."""
    for name, seed in (("base", 8), ("good", 7)):
        run = make_run(folder / "runs" / name, prompts=8, targets=2, repeats=2, seed=seed)
        baseline = ["--baseline", str(folder / "runs/base")] if name == "good" else []
        assert called(folder, "gate", str(run), "--min-pass-rate=0.5", "--write", *baseline).status in (
            0,
            1,
            10,
        )
    (folder / "outside").mkdir()
    (folder / "outside/canary.txt").write_text(SECRET)
    return folder


# --- commands -----------------------------------------------------------------------------------


class Called(NamedTuple):
    """How a command ended: its exit status and output."""

    status: int
    out: str
    err: str


def called(folder: Path, *words: str) -> Called:
    """Run a command in this process and capture its output."""
    out, err = io.StringIO(), io.StringIO()
    with redirect_stdout(out), redirect_stderr(err):
        status = main([*words, "--runs-dir", str(folder / "runs")])
    return Called(status, out.getvalue(), err.getvalue())


COMMANDS: dict[str, Sequence[str]] = {
    "merge": ("bad good --into {out}/whole", "bad --into {out}/one", "good bad --into {out}/x --prefer=newest --json"),
    "show": ("bad", "bad --json", "bad --failed", "bad {prompt}[lab/model-a:70b]-r1", "bad {prompt}[lab/model-a:70b]-r1 --json"),
    "rescore": ("bad --into {out}/again", "bad --into {out}/again --json"),
    "export": ("bad", "bad --json", "bad --into {out}/rows.csv", "bad --exact --failed"),
    "compare": ("bad good", "good bad", "bad good --across=prompt,validator,serving,settings --json"),
    "history": ("", "--json", "--suite=*core*"),
    "report": ("bad --into {out}/page.html", "bad", "good --baseline bad --into {out}/page.html", "bad --baseline good"),
    "gate": ("bad", "bad --min-pass-rate=0.5 --write", "bad --require-tier=2 --max-p95-ms=900", "good --baseline bad --fail-on=regression",
             "bad --baseline good --fail-on=regression --gate-conclusive --min-tool-rate=0.2 --json"),
    "route": ("bad --out -", "bad", "bad --json --out {out}/patch.json5"),
}  # fmt: skip


def resumed(folder: Path, run: str) -> Called:
    """Load a run as a resumed session does, up to its first call."""
    path = folder / "runs" / run
    try:
        with RunDirectory.reopen(path) as directory:
            earlier = load_run(path, even_active=True)
            settings = settings_of(earlier.config, Settings(), ())
            plan = Plan(
                cells={CellKey("s", "P1", target, 1): False for target in settings.targets},
                targets=settings.targets,
                prompts={(one["suite"], one["id"]): one for one in earlier.config["prompts"]},
                providers=earlier.config["providers"],
            )
            find_changes(earlier.config, replays_of(earlier), plan, settings)
            RunSession(directory, settings, plan, earlier).finish()
    except (OpenClawError, OSError) as error:
        return Called(4, "", f"{error}\n")
    return Called(0, "", "")


def words_of(command: str, out: Path, prompt: str, luck: Random) -> list[str]:
    """Return one of the ways to call a command."""
    return [
        command,
        *(word.format(out=out, prompt=prompt) for word in luck.choice(COMMANDS[command]).split()),
    ]


# --- changes ------------------------------------------------------------------------------------


def spoil(run: Path, outside: Path, luck: Random) -> list[str]:
    """Change a run's files in one to three ways; return a description of the changes."""
    ways: Sequence[Callable[[Path, Random], str]] = (
        _change_value,
        _change_bytes,
        partial(_change_file, outside=outside),
    )
    changes = [luck.choices(ways, (8, 3, 1))[0](run, luck) for _ in range(luck.choice((1, 1, 1, 2, 3)))]
    for file in run.iterdir():  # otherwise a summary would be older than its rows, and no reader would use it
        if file.is_file() and not file.is_symlink():
            os.utime(file, (2_000_000_000, 2_000_000_000))
    return changes


def _change_value(run: Path, luck: Random) -> str:
    """Change one value in the JSON of a file or of a row."""
    file = run / luck.choices(FILES[:4], (3, 1, 4, 3))[0]
    if not file.is_file() or file.is_symlink():
        return "nothing"
    lines = file.read_bytes().splitlines(keepends=True) if file.suffix == ".jsonl" else [file.read_bytes()]
    place = luck.randrange(len(lines)) if lines else 0
    try:
        document = json.loads(lines[place])
    except (ValueError, IndexError, RecursionError):
        return "nothing"
    holders = [*_holders(document)]
    if not holders:
        return "nothing"
    said = _change_in(luck.choice(holders), holders, luck)
    lines[place] = json.dumps(document).encode() + b"\n"
    file.write_bytes(b"".join(lines))
    return f"{file.name}[{place}] {said}"


def _holders(value: Any) -> Iterator[Any]:
    if isinstance(value, dict | list):
        if value:
            yield value
        for inner in value.values() if isinstance(value, dict) else value:
            yield from _holders(inner)


def _change_in(holder: Any, others: Sequence[Any], luck: Random) -> str:
    key = luck.choice([*holder]) if isinstance(holder, dict) else luck.randrange(len(holder))
    way = luck.randrange(6)
    if way == 0:
        del holder[key]
        return f"without {key!r}"
    if way == 1:
        other = luck.choice(others)
        found = copy.deepcopy(luck.choice([*other.values()] if isinstance(other, dict) else other))
    elif way == 2 and isinstance(holder[key], int | float):
        found = holder[key] * luck.choice((-1, 0, 0.5, 10, 10**6, 10**12, 10**20))
    elif way == 3 and isinstance(holder, list):
        holder.append(holder[key])
        return f"{key!r} twice"
    elif way == 3:
        holder[luck.choice(("x", "", "x_lab", "hosts", "parts", "repeat"))] = holder[key]
        return f"{key!r} under another name"
    else:
        found = copy.deepcopy(luck.choice(VALUES))
    holder[key] = found
    return f"{key!r} is {reprlib.repr(found)}"


def _change_bytes(run: Path, luck: Random) -> str:
    """Cut, duplicate or overwrite part of a file, or insert text that is not JSON."""
    file = run / luck.choice(FILES)
    if not file.is_file() or file.is_symlink():
        return "nothing"
    content = file.read_bytes()
    tokens = [found.span() for found in re.finditer(rb'[-0-9.]+|"[^"]*"|null|true|false', content)]
    start, end = (
        luck.choice(tokens)
        if tokens and luck.random() < 0.7
        else sorted(luck.choices(range(len(content) + 1), k=2))
    )
    put = luck.choice((*TEXTS, b"", content[start:end] * 2, bytes([luck.randrange(256)])))
    file.write_bytes(content[:start] + put + content[end:])
    return f"{file.name}: {content[start:end][:20]!r} became {put[:20]!r}"


def _change_file(run: Path, luck: Random, *, outside: Path) -> str:
    """Replace a file with something else."""
    name = luck.choice((*FILES, ".lock", ".summary.json.tmp", ".summary.md.tmp", ".report.html.tmp", "report.html", "summary.md",
                        "comment.md", "openclaw.patch.json5", "resources_x_after.txt"))  # fmt: skip
    file = run / name
    if file.is_dir() and not file.is_symlink():
        return "nothing"
    file.unlink(missing_ok=True)
    way = luck.choice(("link", "zero", "pipe", "folder", "gone", "empty", "loop", "inside", "device"))
    if way == "pipe":
        os.mkfifo(file)
    elif way == "folder":
        file.mkdir()
    elif way == "empty":
        file.touch()
    elif way != "gone":
        places = {
            "link": outside / "canary.txt",
            "zero": "/dev/zero",
            "loop": file,
            "inside": "config.json",
            "device": "/dev/tty",
        }
        file.symlink_to(places[way])
    return f"{name}: {way}"


# --- the law ------------------------------------------------------------------------------------

_INTERNAL = re.compile(
    r"\b(?:Key|Type|Attribute|Index|Value|Recursion|Unicode\w*|Overflow|Assertion|ZeroDivision)Error\b|Traceback"
)


def check_case(folder: Path, command: str, seed: int) -> Called:
    """Call a command on a changed run, and check that it ends as every command must."""
    luck = Random(seed)
    bad, out = folder / "runs/bad", folder / "out"
    for old in (bad, out):
        shutil.rmtree(old, ignore_errors=True)
    shutil.copytree(folder / "runs/good", bad)
    out.mkdir()
    prompt = luck.choice(json.loads((bad / "config.json").read_bytes())["prompts"])["id"]
    changes = spoil(bad, folder / "outside", luck)
    before = _unchanged(folder)
    words = ["resume", "bad"] if command == "resume" else words_of(command, out, prompt, luck)
    case = f"{' '.join(words)} with seed {seed}, after {changes}"

    try:
        ended = resumed(folder, "bad") if command == "resume" else called(folder, *words)
    except BaseException as error:
        error.add_note(case)
        raise

    said = f"{case}: {ended.err[:400]}"
    assert ended.status in {0, 1, 4, 10}, said
    assert (ended.status == 4) <= (ended.err.count("\n") >= 1 and len(ended.err) < 2000), said
    assert not _INTERNAL.search(ended.err), said
    assert SECRET not in ended.out + ended.err, said
    assert _unchanged(folder) == before, said
    return ended


def _unchanged(folder: Path) -> list[tuple[str, int, int]]:
    """List everything in the folder except what a command may write: its run and its output folder."""
    return sorted(
        (str(path), path.lstat().st_mtime_ns, path.lstat().st_size)
        for path in (folder, *folder.glob("*"), *folder.glob("outside/*"), *folder.glob("runs/*/*"))
        if path != folder / "out" and path.parent != folder / "runs/bad"
    )
