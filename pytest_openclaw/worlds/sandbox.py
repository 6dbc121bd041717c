"""Runs shell commands in bashkit, a sandboxed bash, in the child process that `shell.py` starts.

The sandbox has the files of the world and no access to this machine: no other files, network or processes.
Its clock, random numbers, names of temporary files, user and host are fixed, so that a run can be repeated.
Requests and results are lines of JSON. Files that are not text have surrogate escapes.
"""

from __future__ import annotations

import json
import re
import shlex
import sys
import time
from concurrent.futures import ThreadPoolExecutor
from contextlib import closing, suppress
from functools import cache, partial
from typing import TYPE_CHECKING, Any

from bashkit import Bash, BuiltinResult

from pytest_openclaw.openclaw.paths import HOME, ROOT, SCRATCH, absolute, normal_path
from pytest_openclaw.util.bounded import within
from pytest_openclaw.util.errors import OpenClawError
from pytest_openclaw.values.worlds import Command
from pytest_openclaw.worlds.shell import find_answer

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Mapping

    from bashkit import BuiltinContext, ExecResult, FileSystem

    Program = Callable[[BuiltinContext], BuiltinResult]

MISUSE, NOT_FOUND = 2, 127
#: seconds for a command, and for the second pass that lists its parts; the owner kills a slower process
RUN_S, TRACE_S = 1.2, 0.6
#: seconds for the suite's patterns, for each simple command
PATTERNS_S = 0.25
MOST_PARTS = 300
LONGEST_PART = 2000
_USER = "openclaw"
_NOW = "2026-11-21 12:00:00 UTC"
_ENV = {"HOME": HOME, "LANG": "C.UTF-8", "PATH": "/usr/local/bin:/usr/bin:/bin", "SHELL": "/bin/sh"}
_UNBOUNDED = 1 << 40
_PYTHON_ENDED = "TimeoutError: time limit exceeded: "
#: programs of bashkit that do not behave like the real programs
_HIDDEN = ("busybox", "make", "nano", "openssl", "parallel", "sudo", "vi", "yq")
#: folders of bashkit's own files, which do not belong to the world
_OWN = ("/bin", "/dev", "/proc", "/sys", "/usr")
_SHELLS = ("bash", "sh")
_MARK = "\x01"
_TRACED = re.compile(rf"{_MARK}+((?:\\.|'[^']*'|[^'\\\n])*)\n", re.DOTALL)
_NO_PART = re.compile(r"(?:[A-Za-z_]\w*(?:\[[^\]]*\])?\+?=|\[\[ |\(\( |__|set -x$)")
_WORD = re.compile(r"[A-Za-z_./~][\w.+/-]*")
_PATTERN_ESCAPE = re.compile(r"\\[A-Za-z]|\(\?[a-z]+\)")
_REWORDED = (
    (re.compile(r"^(?:bash: line \d+|bash): ", re.MULTILINE), "sh: "),
    (re.compile(r"^(sh: .*: command not found)\. .*$", re.MULTILINE), r"\1"),
    (re.compile(r"^yes: output limit .*\n", re.MULTILINE), ""),
    # A long list has no owner and the real time.
    (
        re.compile(r"^([-dlp][-rwxst]{9}) +(\d+) \d{4}-\d\d-\d\d \d\d:\d\d (?=\S)", re.MULTILINE),
        rf"\1 1 {_USER} {_USER} \2 Nov 21 12:00 ",
    ),
)


def play(asked: Mapping[str, Any]) -> dict[str, Any]:
    """Run a command, and return its output, exit code, parts and changes of files.

    The command runs twice, because a trace of its parts would mix with its output. `Exec.run` has the keys
    of `asked`.
    """
    began = time.monotonic()
    try:
        with closing(_Run(asked, RUN_S)) as run:
            result = run.result()
        if not result["timed_out"]:
            left = max(0.05, RUN_S + TRACE_S - (time.monotonic() - began))
            with closing(_Run(asked, left, is_traced=True)) as run:
                result["parts"] = run.parts()
    except OpenClawError as error:
        return {"broken": str(error)}
    except Exception as error:
        return {"broken": f"the sandbox of commands failed: {error!r}"}
    return result


class _Run:
    """One run of a command in a new sandbox."""

    def __init__(self, asked: Mapping[str, Any], seconds: float, *, is_traced: bool = False) -> None:
        self._asked = asked
        self._seconds = seconds
        self._trace = "-x " if is_traced else ""
        self._commands = [Command(**plain) for plain in asked["commands"]]
        self._error: OpenClawError | None = None
        self._answered: list[str] = []
        self._n_temporary = 0
        self._fs = _system()
        self._of_system = {path for path, _ in _walk(self._fs, "/")}
        self._lay_out()
        self._programs = self._all_programs()

    def close(self) -> None:
        """Release the sandboxes, which refer to this object through their programs and have open files."""
        self.__dict__.clear()

    def result(self) -> dict[str, Any]:
        """Run the command; return its output, exit code and changes."""
        done = self._execute("exec 2>&1\n")
        error = done.error or ""
        if error.startswith(("resource limit", "execution error")) or _PYTHON_ENDED in done.stdout:
            return {"timed_out": True}
        output, code = done.stdout + done.stderr, done.exit_code
        if error:
            output = f"{done.stdout}sh: {re.sub(r'^parse error(?: at line .*?)?: ', '', error)}\n"
            code = 1 if error.startswith("io error") else MISUSE
        for pattern, words in _REWORDED:
            output = pattern.sub(words, output)
        files, folders = self._files()
        before = self._asked["files"]
        return {
            "timed_out": False,
            "output": output,
            "code": code,
            "files": {path: text for path, text in files.items() if before.get(path) != text},
            "gone": [path for path in before if path not in files and path.isprintable()],
            "folders": folders,
            "parts": [],
        }

    def parts(self) -> list[str]:
        """Run the command, and return each simple command with its words after expansion."""
        done = self._execute(f"export PS4=$'{_MARK}'\n", "set -x\n")
        found = [*self._answered]
        for line in _TRACED.findall(done.stdout + done.stderr):
            if not _NO_PART.match(line):
                with suppress(ValueError):
                    found.append(" ".join(shlex.split(line))[:LONGEST_PART])
        return [*dict.fromkeys(found)][:MOST_PARTS]

    def _execute(self, prelude: str, start: str = "") -> ExecResult:
        bash = self._new_bash(absolute(self._asked["folder"]), {**_ENV, **self._asked["env"]})
        # No program takes the place of bashkit's shells, so they are functions.
        shells = "".join(f'{name}() {{ __{name} "$@"; }}\n' for name in _SHELLS)
        bash.execute_sync(f"RANDOM=1\n{prelude}{shells}")
        done = bash.execute_sync(start + self._asked["command"])
        if self._error:
            raise self._error
        return done

    def _new_bash(self, folder: str, env: Mapping[str, str], **programs: Program | None) -> Bash:
        own = {**self._programs, **programs}
        bash = Bash(
            username=_USER,
            hostname=_USER,
            cwd=folder,
            env=dict(env),
            custom_builtins={name: program for name, program in own.items() if program is not None},
            python=self._asked["python"],
            timeout_seconds=self._seconds,
            max_commands=_UNBOUNDED,
            max_loop_iterations=_UNBOUNDED,
        )
        bash.mount("/", self._fs)
        return bash

    # --- files ---

    def _lay_out(self) -> None:
        for folder in filter(str.isprintable, self._asked["folders"]):
            self._fs.mkdir(absolute(folder), recursive=True)
        for path, text in self._asked["files"].items():
            if path.isprintable():
                full = absolute(path)
                _write(self._fs, full, text)
                if full.endswith(".sh") or text.startswith("#!"):
                    self._fs.chmod(full, 0o755)

    def _files(self) -> tuple[dict[str, str], list[str]]:
        """Return the files and folders of the world after the command."""
        files: dict[str, str] = {}
        folders: list[str] = []
        for full, is_folder in _walk(self._fs, "/"):
            with suppress(ValueError, OSError, RuntimeError):  # an impossible name, or a link to nowhere
                path = normal_path(full)
                if not is_folder:
                    files[path] = self._fs.read_file(full).decode("utf-8", "surrogateescape")
                elif full not in self._of_system or path in self._asked["folders"]:
                    folders.append(path)
        return files, folders

    # --- programs ---

    def _all_programs(self) -> dict[str, Program]:
        """Return the programs that replace bashkit's, or that the suite may answer."""
        programs: dict[str, Program] = {
            **dict.fromkeys(_HIDDEN, _not_found),
            **{f"__{name}": partial(self._answer_or, self._run_bashkits) for name in _SHELLS},
            "curl": _no_host,
            "date": _date,
            "mktemp": self._mktemp,
            "sleep": lambda _: BuiltinResult(),
            "wget": _no_host,
        }
        known = _known_names(python=self._asked["python"]) - {*_HIDDEN}
        for name in self._names(known):
            own = self._run_bashkits if "/" in name or name in known else _not_found
            programs[name] = partial(self._answer_or, programs.get(name, own))
        return programs

    def _names(self, known: frozenset[str]) -> set[str]:
        """Return the words of the suite's patterns, and the names in the command that bashkit lacks."""
        if not self._commands:
            return set()
        patterns = (_PATTERN_ESCAPE.sub(" ", one.pattern).replace("\\", "") for one in self._commands)
        named = {*_WORD.findall(" ".join(patterns))} - _of_the_shell()
        with suppress(Exception):  # a command that does not parse will fail when it runs
            written = _plain_bash().analyze(self._asked["command"]).command_names
            named |= {*filter(_WORD.fullmatch, written)} - known
        return named - {*_SHELLS}

    def _answer_or(self, otherwise: Program, context: BuiltinContext) -> BuiltinResult:
        """Answer a simple command with the suite's current answer, or run the program."""
        fs = context.fs
        source = " ".join([context.name.removeprefix("__"), *context.argv])

        def text_of(path: str) -> str | None:
            full = absolute(path)
            return fs.read_file(full).decode("utf-8", "replace") if fs.exists(full) else None

        found = None
        try:
            with within(PATTERNS_S):
                found = find_answer(self._commands, source, text_of)
        except OpenClawError as error:
            self._error = error
        if found is None:
            return otherwise(context)
        self._answered.append(source)
        for path, text in found.writes.items():
            _write(fs, absolute(normal_path(path)), text)
        for path in found.removes:
            if fs.exists(full := absolute(normal_path(path))):
                fs.remove(full)
        output = found.output.rstrip("\n")
        return BuiltinResult(f"{output}\n" if output else "", exit_code=found.exit_code)

    def _run_bashkits(self, context: BuiltinContext) -> BuiltinResult:
        """Run a program or script in another sandbox with the same files, without the suite's answers."""
        name = context.name.removeprefix("__")
        script = f"{name} {self._trace if name in _SHELLS else ''}{shlex.join(context.argv)}"
        stdin = context.stdin
        programs: dict[str, Program | None] = {name: None}
        if stdin is not None:
            script = f"__stdin | {script}"
            programs["__stdin"] = lambda _: BuiltinResult(stdin)
        return _in_another_thread(lambda: self._new_bash(context.cwd, context.env, **programs), script)

    def _mktemp(self, context: BuiltinContext) -> BuiltinResult:
        """Make a file or folder in `/tmp` with the next number for a name."""
        self._n_temporary += 1
        path = f"{SCRATCH}/tmp.{self._n_temporary:010}"  # noqa: S108
        if "-d" in context.argv:
            context.fs.mkdir(path, recursive=True)
        else:
            context.fs.write_file(path, b"")
        return BuiltinResult(f"{path}\n")


def _not_found(context: BuiltinContext) -> BuiltinResult:
    return BuiltinResult("", f"sh: {context.name}: command not found\n", NOT_FOUND)


def _no_host(context: BuiltinContext) -> BuiltinResult:
    hosts = [re.sub(r"^\w+://|(?<=[^:/])/.*", "", word) for word in context.argv if "." in word]
    return BuiltinResult("", f"{context.name}: (6) Could not resolve host: {' '.join(hosts[-1:])}\n", 6)


def _date(context: BuiltinContext) -> BuiltinResult:
    """Run `date` at the fixed time."""
    words = [re.sub(r"\A--date=", "-d", word) for word in context.argv]
    option = next((n for n, word in enumerate(words) if word.startswith("-d")), None)
    wanted = ""
    if option is not None:
        wanted = words.pop(option)[2:] or (words.pop(option) if option < len(words) else "")
    if not re.match(r"@|\d{4}-|[A-Z]", wanted):
        wanted = {"yesterday": "1 day ago", "tomorrow": "1 day", "now": "", "today": ""}.get(wanted, wanted)
        days = re.fullmatch(r"\+? ?(\d+ \w+?)( ago)?", wanted)
        wanted = f"{_NOW} {'-' if days[2] else '+'} {days[1]}" if days else f"{_NOW} {wanted}".rstrip()
    return _in_another_thread(_plain_bash, shlex.join(["date", "-d", wanted, *words]))


def _in_another_thread(make_bash: Callable[[], Bash], script: str) -> BuiltinResult:
    """Run another sandbox for a program, because the calling thread is busy with the program's sandbox."""
    with ThreadPoolExecutor(1) as pool:
        done = pool.submit(lambda: make_bash().execute_sync(script)).result()
    return BuiltinResult(done.stdout, done.stderr or done.error or "", done.exit_code)


# --- what every world has -------------------------------------------------------------------------


@cache
def _plain_bash() -> Bash:
    """Return a sandbox without files, for reading scripts and for plain programs."""
    return Bash()


@cache
def _known_names(*, python: bool = False) -> frozenset[str]:
    return frozenset(Bash(python=python).execute_sync("compgen -c").stdout.split())


@cache
def _of_the_shell() -> frozenset[str]:
    """Return the names of keywords, and of the builtins that change the shell itself."""
    builtins = _plain_bash().execute_sync("compgen -b; compgen -k").stdout.split()
    return frozenset(builtins) - {"echo", "kill", "printf", "pwd"}


def _system() -> FileSystem:
    """Return the files of an empty system: programs, devices and folders."""
    # Without `files`, bashkit keeps its own files.
    fs = Bash(username=_USER, files={f"{SCRATCH}/none": ""}).fs()
    for path in [path for path, is_folder in _walk(fs, "/") if not is_folder]:
        fs.remove(path)
    for folder in (ROOT, HOME):
        fs.mkdir(folder, recursive=True)
    return fs


def _write(fs: FileSystem, path: str, text: str) -> None:
    fs.mkdir(path.rpartition("/")[0], recursive=True)
    fs.write_file(path, text.encode("utf-8", "surrogateescape"))


def _walk(fs: FileSystem, folder: str) -> Iterator[tuple[str, bool]]:
    """Yield the paths below a folder, and whether each is a folder."""
    for entry in fs.read_dir(folder) if fs.exists(folder) else ():  # a command may have removed it
        path = f"{folder.rstrip('/')}/{entry['name']}"
        if path not in _OWN:
            is_folder = entry["metadata"]["file_type"] == "directory"
            yield path, is_folder
            if is_folder:
                yield from _walk(fs, path)


def main() -> None:
    """Answer each line of the input until it ends."""
    for line in sys.stdin.buffer:
        done = play(json.loads(line)) if line.strip() else {"ready": bool(_known_names())}
        sys.stdout.buffer.write(json.dumps(done).encode() + b"\n")
        sys.stdout.buffer.flush()
