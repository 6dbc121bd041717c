"""The commands `sessions`, which asks the installed OpenClaw for its sessions, and `review`."""

from __future__ import annotations

import asyncio
import json
import os
import sys
from collections.abc import Iterator, Sequence
from itertools import chain, zip_longest
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

import msgspec

from pytest_openclaw.cli.result import CliCommand, CommandResult, add_rootdir, add_run, fits, read_run
from pytest_openclaw.judging.registry import BUILTIN
from pytest_openclaw.openclaw.catalog import suite_tools
from pytest_openclaw.parts.sessions.prompts import ACCEPTED, MANIFEST, Label, Pair, read_labels, read_session
from pytest_openclaw.parts.sessions.rules import Agreement, keys_of, shown_calls
from pytest_openclaw.providers.openclaw.call import find_command
from pytest_openclaw.providers.processes import Program, run
from pytest_openclaw.providers.wire import object_in, objects_in, text_in
from pytest_openclaw.suites.load import parse_suite, written_messages
from pytest_openclaw.util.errors import OpenClawError
from pytest_openclaw.util.files import MOST_BYTES, JsonObject, is_there, read_whole, replacing
from pytest_openclaw.util.json_text import find_json
from pytest_openclaw.util.redact import Redactor
from pytest_openclaw.util.text import as_argument, counted, printable, shortened
from pytest_openclaw.util.typed import converted
from pytest_openclaw.values.prompts import Prompt
from pytest_openclaw.values.protocols import ProviderSetup

if TYPE_CHECKING:
    import argparse

    from pytest_openclaw.runs.reading import StoredRun

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
    found = _of_openclaw("sessions", "--json", "--all-agents", "--limit", "all")
    keys = [*filter(None, (text_in(one, "key") for one in objects_in(found, "sessions")))]
    chosen = [key for key in keys if any(fits(key, glob) for glob in arguments.names or ["*"])]
    if not chosen:
        raise OpenClawError("OpenClaw has no such session; `pytest-openclaw sessions` lists them")
    if not arguments.export:
        hint = "next: pytest-openclaw sessions --export KEY"
        return CommandResult(lines=[*chosen, "", hint], data={"keys": chosen})
    words = ("--workspace", os.path.realpath(arguments.workspace), "--json")
    made = [_of_openclaw("sessions", "export-trajectory", "--session-key", key, *words) for key in chosen]
    folders = [os.path.relpath(text_in(one, "outputDir") or ".") for one in made]
    hint = f"next: pytest {' '.join(map(as_argument, folders))} --openclaw-models=MODEL"
    return CommandResult(lines=[*folders, "", hint], data={"folders": folders})


def _of_openclaw(*words: str) -> JsonObject:
    argv = (*find_command(ProviderSetup(name="sessions", environ=os.environ)), *words)
    program = Program(argv=argv, env=os.environ, cwd=Path.cwd())
    done = asyncio.run(run("openclaw", program, within_s=PATIENCE_S))
    if done.timed_out:
        raise OpenClawError(f"openclaw {words[0]} did not end within {PATIENCE_S} s")
    found, redactor = find_json(done.stdout), Redactor.of_run((), os.environ)  # after its notices
    if done.exit_status or not isinstance(found.value, dict):
        why = redactor.text((done.stderr or done.stdout).strip())
        raise OpenClawError(f"openclaw {words[0]}: {shortened(why)}")
    return object_in(redactor.value(found.value))


# --- a suite --------------------------------------------------------------------------------------


def _write(file: Path, paths: Sequence[Path], most: int) -> CommandResult:
    if is_there(file) or file.suffix != ".json" or not file.name.startswith("prompts_"):
        raise OpenClawError(f"{file}: name a new file prompts_….json")
    by_tool: dict[str | None, dict[Any, Prompt]] = {}
    for path in paths:
        for prompt in read_session(path / MANIFEST if path.is_dir() else path, str(path)).prompts:
            calls = keys_of(_rule(prompt).recorded, _rule(prompt).tools)
            same = frozenset(calls.items()) or (prompt.prompt, prompt.history)
            by_tool.setdefault(prompt.category, {}).setdefault(same, prompt)
    spread = filter(None, chain.from_iterable(zip_longest(*(its.values() for its in by_tool.values()))))
    entries = [_entry(f"H{n}", prompt) for n, prompt in enumerate([*spread][: max(most, 0)], start=1)]
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
    rules = []
    for calls in (_rule(prompt).recorded, *_rule(prompt).accepted):
        due = [{"name": one["tool"], "arguments": one["arguments"] or {}} for one in calls]
        rules.append({"type": "tool_call", "calls": due, **({"exact": True} if due else {})})
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


# --- review ---------------------------------------------------------------------------------------

_LABELS: dict[str, Any] = {"a": "accepted", "w": "wrong", "r": "recorded_wrong", "s": None}


class _Difference(NamedTuple):
    file: Path  # of decisions
    label: Label  # in which the word may change
    lines: list[str]


def _differences(run: StoredRun, root: Path) -> Iterator[_Difference]:
    read: dict[str, tuple[dict[str, Prompt], dict[str, list[Label]]]] = {}
    for row in run.rows.values():
        if row.record.objective_pass is not False or not row.record.suite.endswith((MANIFEST, ".jsonl")):
            continue
        record, name, path = row.whole, row.record.suite, root / row.record.suite
        try:
            parsed = converted(record.parsed_output, Pair)
        except ValueError:  # of a replay, too long for a row, or from elsewhere
            continue
        if name not in read:
            # A run from elsewhere could name any session of this machine.
            if not path.resolve().is_relative_to(root.resolve()):
                hint = f"If the run is yours, add --rootdir {path.resolve().parent}."
                raise OpenClawError(f"{name} is outside of {root.resolve()}. {hint}")
            read[name] = {one.id: one for one in read_session(path, name).prompts}, read_labels(path)
        prompts, labels = read[name]
        if (prompt := prompts.get(record.prompt_id)) is None:  # such as a replay
            continue
        rule, calls, target = _rule(prompt), parsed.answered, record.target.label
        label = Label(session=path.name, step=rule.key, label="wrong", calls=calls, target=target)
        if rule.is_among(calls, [one.calls for one in labels[rule.key]]):
            continue
        labels[rule.key].append(label)
        texts = {
            "step": f"{record.prompt_id} of {name}",
            "target": target,
            "user": shortened(prompt.prompt),
            "result": shortened(prompt.history[-1].results[-1]) if prompt.history else "",
            "recorded": shown_calls(parsed.recorded),
            "answered": shown_calls(calls) if calls else shortened(record.raw_output),
            "differs": " ".join([parsed.agreement, *parsed.differs]),
        }
        lines = [f"{what:9} {text}" for what, text in texts.items() if text]
        yield _Difference(path.with_name(ACCEPTED), label, lines)


def _add_review(parser: argparse.ArgumentParser) -> None:
    add_run(parser)
    add_rootdir(parser, "the folder that the run's suites are in (.)")


def _review(arguments: argparse.Namespace) -> CommandResult:
    waiting = [*_differences(read_run(arguments), arguments.rootdir)]
    done: list[tuple[Path, int, bool]] = []  # the file and its size before each decision; skipped ones too
    while len(done) < len(waiting):
        file, label, lines = waiting[len(done)]
        sys.stdout.write(printable("\n".join(["", *lines, ""]), wraps=True))
        sys.stdout.write(f"{len(done) + 1} of {len(waiting)}: a w r s u q? ")
        sys.stdout.flush()
        letter = _key()
        if letter == "q":
            break
        if letter == "u" and done:
            last, size, _ = done.pop()
            if last.exists():
                os.truncate(last, size)
        elif letter in _LABELS:
            word = _LABELS[letter]
            before = read_whole(file, most_bytes=MOST_BYTES) if is_there(file) else b""
            done.append((file, len(before), word is not None))
            if word:
                decided = msgspec.json.encode(msgspec.structs.replace(label, label=word))
                with replacing(file) as out:
                    out.write(b"".join(line + b"\n" for line in [*before.splitlines(), decided]))
    n = sum(is_decided for *_, is_decided in done)
    line = f"{counted(n, 'difference')} decided, {len(waiting) - n} left"
    return CommandResult(lines=[line], data={"n_decided": n, "n_left": len(waiting) - n})


def _key() -> str:
    """Return the next key, or the first letter of a line if the terminal sends no single keys."""
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


COMMANDS = (
    CliCommand(name="review", help=REVIEW, add_arguments=_add_review, run=_review),
    CliCommand(name="sessions", help=SESSIONS, add_arguments=_add_sessions, run=_sessions),
)
