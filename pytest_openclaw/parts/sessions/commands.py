"""The commands `sessions`, which asks the installed OpenClaw for its sessions, and `review`."""

from __future__ import annotations

import json
import os
import re
import shlex
import subprocess
import sys
from itertools import chain, zip_longest
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

import msgspec

from pytest_openclaw.cli.result import Command, CommandResult, add_rootdir, add_run, fits, read_run
from pytest_openclaw.judging.registry import BUILTIN
from pytest_openclaw.openclaw.catalog import suite_tools
from pytest_openclaw.parts.sessions.agreement import Agreement, shown_calls
from pytest_openclaw.parts.sessions.prompts import ACCEPTED, Label, read_labels, read_session
from pytest_openclaw.parts.sessions.records import MANIFEST
from pytest_openclaw.providers.openclaw.call import find_command
from pytest_openclaw.suites.load import parse_suite, written_messages
from pytest_openclaw.util.errors import OpenClawError
from pytest_openclaw.util.files import is_there, replacing
from pytest_openclaw.util.redact import Redactor
from pytest_openclaw.util.text import counted, printable, shortened
from pytest_openclaw.values.protocols import ProviderSetup

if TYPE_CHECKING:
    import argparse
    from collections.abc import Iterator, Sequence

    from pytest_openclaw.runs.reading import StoredRun
    from pytest_openclaw.util.files import JsonObject
    from pytest_openclaw.values.prompts import Prompt
    from pytest_openclaw.values.rows import Record

PATIENCE_S = 300
SESSIONS = """List, export or turn into a suite the sessions of the installed OpenClaw.

With --export, OpenClaw's own command writes the sessions whose key fits into
.openclaw/trajectory-exports; nothing is sent. With --write, the steps of
exported sessions become an ordinary suite, with each call once and a few of
each tool; it contains their texts.

Example:
  pytest-openclaw sessions
  pytest-openclaw sessions --export "agent:main:*"
  pytest-openclaw sessions --write prompts_mine.json exports/*
"""
REVIEW = """Decide on the answers of a run that differ from the recorded sessions.

Each difference is shown with the user's message; one key decides it (a letter
and Enter where the terminal has no single keys):
a (also right), w (wrong), r (the recorded step was wrong), s (skip), u (undo),
q (quit). Decisions are written next to the session, into accepted.jsonl, and
count in every later run. A second review continues where the first one ended.

Example:
  pytest-openclaw review last
"""


# --- sessions -------------------------------------------------------------------------------------


def _add_sessions(parser: argparse.ArgumentParser) -> None:
    about = "keys of sessions, or globs; with --write, exported sessions"
    parser.add_argument("names", nargs="*", metavar="KEY", help=about)
    parser.add_argument("--export", action="store_true", help="export the sessions with these keys (all)")
    parser.add_argument("--workspace", default=".", metavar="DIR", help="where exports go (.)")
    parser.add_argument("--write", type=Path, metavar="FILE", help="make a suite, prompts_….json")
    parser.add_argument("--most", type=int, default=50, metavar="N", help="steps in the suite (50)")


def _sessions(arguments: argparse.Namespace) -> CommandResult:
    if arguments.write:
        return _write(arguments.write, [*map(Path, arguments.names)], arguments.most)
    found = _of_openclaw("sessions", "--json", "--all-agents", "--limit", "all").get("sessions")
    keys = [str(one.get("key")) for one in found or () if isinstance(one, dict)]
    chosen = [key for key in keys if any(fits(key, glob) for glob in arguments.names or ["*"])]
    if not chosen:
        raise OpenClawError("OpenClaw has no such session; `pytest-openclaw sessions` lists them")
    if not arguments.export:
        hint = "next: pytest-openclaw sessions --export KEY"
        return CommandResult(lines=[*chosen, "", hint], data={"keys": chosen})
    words = ("--workspace", os.path.realpath(arguments.workspace), "--json")
    made = [_of_openclaw("sessions", "export-trajectory", "--session-key", key, *words) for key in chosen]
    folders = [os.path.relpath(str(one.get("outputDir"))) for one in made]
    hint = f"next: pytest {shlex.join(folders)} --openclaw-models=MODEL"
    return CommandResult(lines=[*folders, "", hint], data={"folders": folders})


def _of_openclaw(*words: str) -> JsonObject:
    """Return what OpenClaw prints as JSON, with the user's own config."""
    argv = [*find_command(ProviderSetup(name="sessions", environ=os.environ)), *words]
    try:
        pipes: Any = {"stdin": subprocess.DEVNULL, "capture_output": True, "timeout": PATIENCE_S}
        done = subprocess.run(argv, encoding="utf-8", errors="replace", check=False, **pipes)  # noqa: S603
    except subprocess.TimeoutExpired:
        raise OpenClawError(f"openclaw {words[0]} did not end within {PATIENCE_S} s") from None
    said = re.search(r"^\{", done.stdout, re.MULTILINE)  # after its notices
    try:
        if done.returncode or said is None:
            raise ValueError
        return dict(json.JSONDecoder().raw_decode(done.stdout, said.start())[0])
    except ValueError:
        why = shortened((done.stderr or done.stdout).strip())
        raise OpenClawError(f"openclaw {words[0]}: {why}") from None


# --- a suite --------------------------------------------------------------------------------------


def _write(file: Path, paths: Sequence[Path], most: int) -> CommandResult:
    if is_there(file) or file.suffix != ".json" or not file.name.startswith("prompts_"):
        raise OpenClawError(f"{file}: name a new file prompts_….json")
    by_tool: dict[str | None, dict[Any, Prompt]] = {}
    for path in paths:
        suite = read_session(path / MANIFEST if path.is_dir() else path, str(path))
        for prompt in suite.prompts:
            calls = tuple(_rule(prompt).keys(_rule(prompt).recorded).items())
            same = calls or (prompt.prompt, prompt.history)
            by_tool.setdefault(prompt.category, {}).setdefault(same, prompt)
    spread = chain.from_iterable(zip_longest(*(its.values() for its in by_tool.values())))
    chosen = [prompt for prompt in spread if prompt is not None][:most]
    entries = [_entry(f"H{n}", prompt) for n, prompt in enumerate(chosen, start=1)]
    text = json.dumps(Redactor.of_run((), os.environ).value(entries), indent=1, ensure_ascii=False)
    parse_suite(text, format="json", name=file.name, registry={one.type: one for one in BUILTIN})
    with replacing(file) as out:
        out.write(f"{text}\n".encode())
    line = f"wrote {counted(len(entries), 'prompt')} of {counted(len(paths), 'session')} into {file}"
    return CommandResult(lines=[line], data={"into": str(file), "n_prompts": len(entries)})


def _rule(prompt: Prompt) -> Agreement:
    assert isinstance(prompt.validator, Agreement), "a session's prompts have no other validator"
    return prompt.validator


def _entry(prompt_id: str, prompt: Prompt) -> JsonObject:
    rules = [_validator(calls) for calls in (_rule(prompt).recorded, *_rule(prompt).accepted)]
    entry = {
        "id": prompt_id,
        "name": prompt.name,
        "category": prompt.category,
        "system": prompt.system,
        "messages": written_messages(prompt.messages),
        "prompt": prompt.prompt,
        "history": written_messages(prompt.history),
        "tools": suite_tools(prompt.tools_spec),
        "max_output_tokens": prompt.max_output_tokens,
        "validator": rules[0] if len(rules) == 1 else {"type": "any_of", "validators": rules},
    }
    return {key: value for key, value in entry.items() if value not in (None, [])}


def _validator(calls: Sequence[JsonObject]) -> JsonObject:
    wanted = [{"name": one["tool"], "arguments": one["arguments"] or {}} for one in calls]
    return {"type": "tool_call", "calls": wanted} | ({"exact": True} if wanted else {})


# --- review ---------------------------------------------------------------------------------------

_LABELS = {"a": "accepted", "w": "wrong", "r": "recorded_wrong", "s": None}


class Difference(NamedTuple):
    """An answer that differs from a session's step."""

    record: Record
    prompt: Prompt
    path: Path

    def lines(self) -> Iterator[str]:
        """Yield what a person needs to decide."""
        parsed, turns = self.record.parsed_output or {}, self.prompt.history
        texts = {
            "step": f"{self.record.prompt_id} of {self.record.suite}",
            "target": self.record.target.label,
            "user": shortened(self.prompt.prompt),
            "result": shortened(turns[-1].results[-1]) if turns else "",
            "recorded": shown_calls(parsed["recorded"]),
            "answered": shown_calls(parsed["answered"])
            if parsed["answered"]
            else shortened(self.record.raw_output),
            "differs": " ".join([parsed["agreement"], *parsed.get("differs", ())]),
        }
        yield from (f"{name:9} {text}" for name, text in texts.items() if text)

    def label(self, word: Any) -> Label:
        """Return the decision on it."""
        calls = (self.record.parsed_output or {})["answered"]
        key, target = _rule(self.prompt).key, self.record.target.label
        return Label(session=self.path.name, step=key, label=word, calls=calls, target=target)

    @property
    def is_decided(self) -> bool:
        """Whether a review has decided on this answer."""
        rule, own = _rule(self.prompt), self.label("wrong").calls
        return any(rule.keys(one.calls) == rule.keys(own) for one in read_labels(self.path)[rule.key])


def _add_review(parser: argparse.ArgumentParser) -> None:
    add_run(parser)
    add_rootdir(parser, "the folder that the run's suites are in (.)")


def _review(arguments: argparse.Namespace) -> CommandResult:
    found = _differences(read_run(arguments), arguments.rootdir)
    waiting = [one for one in found if not one.is_decided]
    undo: list[tuple[Path, int]] = []
    while len(undo) < len(waiting):
        one = waiting[len(undo)]
        file = one.path.with_name(ACCEPTED)
        sys.stdout.write(printable("\n".join(["", *one.lines(), ""]), wraps=True))
        sys.stdout.write(f"{len(undo) + 1} of {len(waiting)}: a w r s u q? ")
        sys.stdout.flush()
        letter = _key()
        if letter == "q":
            break
        if letter == "u" and undo:
            last, size = undo.pop()
            if last.exists():
                os.truncate(last, size)
        elif letter in _LABELS:
            undo.append((file, file.stat().st_size if file.exists() else 0))
            if word := _LABELS[letter]:
                with file.open("ab") as out:
                    out.write(msgspec.json.encode(one.label(word)) + b"\n")
    n_left = sum(not one.is_decided for one in waiting)
    line = f"{counted(len(waiting) - n_left, 'difference')} decided, {n_left} left"
    return CommandResult(lines=[line], data={"n_decided": len(waiting) - n_left, "n_left": n_left})


def _key() -> str:
    """Return the next key of a terminal; the first letter of a line where there are no single keys."""
    if not sys.stdin.isatty() or sys.platform == "win32":
        return (sys.stdin.readline().strip().lower() or "q")[0]
    import termios
    import tty

    terminal = sys.stdin.fileno()
    before = termios.tcgetattr(terminal)
    try:
        tty.setcbreak(terminal, termios.TCSANOW)
        key = os.read(terminal, 1).decode("ascii", "replace").lower()
    finally:
        termios.tcsetattr(terminal, termios.TCSANOW, before)
    sys.stdout.write(f"{key}\n" if key.isalpha() else "\n")
    return "q" if key in ("", "\x04") else key


def _differences(run: StoredRun, root: Path) -> Iterator[Difference]:
    suites: dict[str, dict[str, Prompt]] = {}
    for row in run.rows.values():
        if row.record.objective_pass is False and "agreement" in (row.record.parsed_output or {}):
            name = row.record.suite
            if name not in suites:
                suites[name] = {one.id: one for one in read_session(root / name, name).prompts}
            if prompt := suites[name].get(row.record.prompt_id):
                yield Difference(row.whole, prompt, root / name)


COMMANDS = (
    Command(name="review", help=REVIEW, add_arguments=_add_review, run=_review),
    Command(name="sessions", help=SESSIONS, add_arguments=_add_sessions, run=_sessions),
)
