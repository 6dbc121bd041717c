"""Runs shell commands in bashkit, a sandboxed bash. This is the child process that `shell.py` starts.

The sandbox has the files of the world and nothing of this machine: no other file, no network, no process. Its
clock, random numbers, names of temporary files, user and host are fixed, so that a run can be repeated.
Requests and results are lines of JSON. Files that are not text have surrogate escapes.
"""

from __future__ import annotations

import json
import re
import shlex
import sys
import time
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from functools import cache, partial
from typing import TYPE_CHECKING, Any, Self

from bashkit import Bash, BuiltinResult, FileSystem

from pytest_openclaw.openclaw.paths import HOME, ROOT, SCRATCH, absolute, is_inside, place_of
from pytest_openclaw.util.bounded_regex import fullmatches, within
from pytest_openclaw.util.errors import OpenClawError
from pytest_openclaw.values.worlds import Command
from pytest_openclaw.worlds.shell import find_answer

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Mapping

    from bashkit import BuiltinContext, ExecResult

    Program = Callable[[BuiltinContext], BuiltinResult]

MISUSE, NOT_FOUND = 2, 127
#: seconds of a command, and of the second pass that lists its parts; the owner ends the process after more
RUN_S, TRACE_S = 1.2, 0.6
#: of the suite's patterns, for each command in it
PATTERNS_S = 0.25
#: of addresses, of which a process has more than it uses
MOST_ADDRESSES = 3 << 29
MOST_PARTS = 300
LONGEST_PART = 2000
_USER = "openclaw"
_NOW = "2026-11-21 12:00:00 UTC"
_ENV = {"HOME": HOME, "LANG": "C.UTF-8", "PATH": "/usr/local/bin:/usr/bin:/bin", "SHELL": "/bin/sh"}
_UNBOUNDED = 1 << 40
_PYTHON_ENDED = "TimeoutError: time limit exceeded: "
#: bashkit's own programs and editors, which no world has
# fmt: off
_HIDDEN = (
    "assert", "busybox", "csv", "dotenv", "glob", "http", "json", "log", "make", "nano", "openssl",
    "parallel", "retry", "semver", "sudo", "template", "tomlq", "verify", "vi", "yq",
)
# fmt: on
#: folders of bashkit's own files, which are not the world's
_OWN = ("/bin", "/dev", "/proc", "/sys", "/usr/bin")
_SHELLS = ("bash", "sh")
_MARK = "\x01"
_TRACED = re.compile(rf"{_MARK}+((?:\\.|'[^']*'|[^'\\\n])*)\n", re.DOTALL)
_NO_PART = re.compile(
    r"(?:[A-Za-z_]\w*(?:\[[^\]]*\])?\+?=|\[\[ |\(\( |__|set -x$|return$|command (?:ba)?sh -x )"
)
_WORD = re.compile(r"[A-Za-z_./~][\w.+/-]*")
_PATTERN_ESCAPE = re.compile(r"\\[A-Za-z]|\(\?[a-z]+\)")
_REWORDED = (
    (re.compile(r"^(?:bash: line \d+|bash): ", re.MULTILINE), "sh: "),
    (re.compile(r"^(sh: .*: command not found)\. .*$", re.MULTILINE), r"\1"),
    (re.compile(r"/\./[^\s:]*?/\./"), ""),
    (re.compile(r"(?:io error: )?filesystem is read-only"), "Permission denied"),
    (re.compile(r"^yes: output limit .*\n", re.MULTILINE), ""),
    # A long list has no owner and the real time.
    (
        re.compile(r"^([-dlp][-rwxst]{9}) +(\d+) \d{4}-\d\d-\d\d \d\d:\d\d (?=\S)", re.MULTILINE),
        rf"\1 1 {_USER} {_USER} \2 Nov 21 12:00 ",
    ),
    (re.compile(r"^((?:Access|Modify|Change): )\d{10}$", re.MULTILINE), rf"\1{_NOW}"),
)


def play(asked: Mapping[str, Any]) -> dict[str, Any]:
    """Run a command, and return its output, its exit code, its parts and the changes of the files.

    It runs twice: a trace of its parts would be among its output.

    Args:
        asked: `command`, `folder`, `env`, `files`, `folders`, the suite's `commands`, and whether the world
            has `python`.
    """
    began = time.monotonic()
    try:
        with _Run(asked, RUN_S) as run:
            result = run.result()
        if not result["timed_out"]:
            left = max(0.05, RUN_S + TRACE_S - (time.monotonic() - began))
            with _Run(asked, left, is_traced=True) as run:
                result["parts"] = run.parts()
    except OpenClawError as error:
        return {"broken": str(error)}
    except MemoryError:
        return {"timed_out": True}
    except Exception as error:
        return {"broken": f"the sandbox of commands failed: {error!r}"}
    return result


class _Run:
    """One run of a command in a new sandbox."""

    def __init__(self, asked: Mapping[str, Any], seconds: float, *, is_traced: bool = False) -> None:
        self._asked = asked
        self._seconds = seconds
        self._is_traced = is_traced
        self._commands = [Command(**plain) for plain in asked["commands"]]
        self._found: Command | None = None
        self._error: OpenClawError | None = None
        self._answered: list[str] = []
        self._n_temporary = 0
        self._root, self._mounts = self._file_systems()
        self._inputs = _empty()
        self._known = _known_names(python=asked["python"])
        self._named = self._names()
        self._bash = self._new_bash(absolute(asked["folder"]), {**_ENV, **asked["env"]})

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        # The sandboxes refer to this object through their programs; each has open files.
        self.__dict__.clear()

    def result(self) -> dict[str, Any]:
        """Run the command; return its output, its exit code and the changes."""
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
            "files": {place: text for place, text in files.items() if before.get(place) != text},
            "gone": [place for place in before if place not in files and self._is_mounted(place)],
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
        # No program takes the place of bashkit's shells, so they are functions.
        trace = "-x " if self._is_traced else ""
        ask = 'if __find "{0} $*"; then __answer; return; fi; ' if self._commands else ""
        shell = f'{{0}}() {{{{ {ask}command {{0}} {trace}"$@"; }}}}\n'
        self._bash.execute_sync("RANDOM=1\n" + prelude + "".join(map(shell.format, _SHELLS)))
        done = self._bash.execute_sync(start + self._with_answers(self._asked["command"]))
        if self._error:
            raise self._error
        return done

    # --- the sandbox ---

    def _new_bash(self, folder: str, env: Mapping[str, str]) -> Bash:
        bash = Bash(
            username=_USER,
            hostname=_USER,
            cwd=folder,
            env=dict(env),
            custom_builtins=self._programs(),
            python=self._asked["python"],
            timeout_seconds=self._seconds,
            max_commands=_UNBOUNDED,
            max_loop_iterations=_UNBOUNDED,
        )
        bash.mount("/", self._root, read_only=True)
        for mounted, fs in self._mounts.items():
            bash.mount(mounted, fs)
        bash.mount("/proc/inputs", self._inputs)
        return bash

    def _file_systems(self) -> tuple[FileSystem, dict[str, FileSystem]]:
        """Return the root, which no command can change, and by their paths the folders that one can.

        These are the workspace, `/tmp`, and the folders elsewhere in which the suite has files.
        """
        asked = self._asked
        written = (place_of(path) for command in self._commands for path in command.effects)
        outside = {place.rpartition("/")[0] for place in (*asked["files"], *written) if not is_inside(place)}
        folders = {ROOT, SCRATCH, *outside} - {""}
        mounts = {
            folder: _empty()
            for folder in sorted(folders)
            if not any(folder.startswith(f"{other}/") for other in folders)
        }
        root = _system_files(python=asked["python"])

        def located(place: str) -> tuple[FileSystem, str]:
            path = absolute(place)
            mounted = next((one for one in mounts if f"{path}/".startswith(f"{one}/")), "")
            return mounts.get(mounted, root), path[len(mounted) :] or "/"

        for folder in filter(str.isprintable, ("", HOME, *asked["folders"])):
            fs, path = located(folder)
            fs.mkdir(path, recursive=True)
        for place, text in asked["files"].items():
            if place.isprintable():
                fs, path = located(place)
                fs.write_file(path, text.encode("utf-8", "surrogateescape"))
                if path.endswith(".sh") or text.startswith("#!"):
                    fs.chmod(path, 0o755)
        return root, mounts

    def _is_mounted(self, place: str) -> bool:
        return place.isprintable() and absolute(place).startswith(tuple(f"{one}/" for one in self._mounts))

    def _files(self) -> tuple[dict[str, str], list[str]]:
        """Return the files and folders that the command may have changed."""
        fs = self._bash.fs()
        files: dict[str, str] = {}
        folders: list[str] = []
        for path, is_folder in (found for folder in self._mounts for found in _walk(fs, folder)):
            with suppress(ValueError, OSError, RuntimeError):  # an impossible name, or a link to nowhere
                place = place_of(path)
                if is_folder:
                    folders.append(place)
                else:
                    files[place] = fs.read_file(path).decode("utf-8", "surrogateescape")
        return files, folders

    # --- the suite's answers ---

    def _with_answers(self, script: str) -> str:
        """Return a script in which each pipeline that the suite may answer asks for its answer first."""
        for start, end in reversed([*_pipelines(script)] if self._commands else []):
            source = script[start:end]
            if any(fullmatches(one.pattern, source) for one in self._commands):
                asking = f"if __find {shlex.quote(source)}; then __answer; else {source}; fi"
                script = script[:start] + asking + script[end:]
        return script

    def _names(self) -> set[str]:
        """Return the names of programs that the suite may answer.

        These are the words of its patterns; and as a pattern need not spell a name, of the names in the
        command those that bashkit does not have.
        """
        if not self._commands:
            return set()
        patterns = (_PATTERN_ESCAPE.sub(" ", one.pattern).replace("\\", "") for one in self._commands)
        named = {*_WORD.findall(" ".join(patterns))} - _of_the_shell()
        with suppress(Exception):  # it does not parse, and will fail for that reason
            written = _plain_bash().analyze(self._asked["command"]).command_names
            named |= {*filter(_WORD.fullmatch, written)} - self._known
        return named - {*_SHELLS}

    def _programs(self) -> dict[str, Program]:
        """Return the programs that are not bashkit's, or that the suite may answer."""
        programs: dict[str, Program] = {
            **dict.fromkeys(_HIDDEN, _not_found),
            "curl": _no_host,
            "date": _date,
            "mktemp": self._mktemp,
            "sleep": lambda _: BuiltinResult(),
            "wget": _no_host,
        }
        for name in self._named:
            is_there = "/" in name or name in self._known
            own = programs.get(name, self._run_bashkits if is_there else _not_found)
            programs[name] = partial(self._answer_or, own)
        if self._commands:
            programs |= {"__find": self._find_pipeline, "__answer": self._answer}
        return programs

    def _answer_or(self, otherwise: Program, context: BuiltinContext) -> BuiltinResult:
        is_found = self._find(" ".join([context.name, *context.argv]), context.fs)
        return self._answer(context) if is_found else otherwise(context)

    def _run_bashkits(self, context: BuiltinContext) -> BuiltinResult:
        """Run bashkit's program, or a script of the world, that the suite does not answer this time.

        It runs in another sandbox with the same files, under a path that is no name of an answer.
        """
        folder = context.cwd if "/" in context.name else "/usr/bin"
        path = f"/.{context.name}" if context.name.startswith("/") else f"/.{folder}/./{context.name}"
        script = shlex.join([path, *context.argv])
        if context.stdin is not None:
            self._inputs.write_file(f"/{len(self._inputs.read_dir('/'))}", context.stdin.encode())
            script += f" < /proc/inputs/{len(self._inputs.read_dir('/')) - 1}"

        def run() -> BuiltinResult:
            done = _as_result(self._new_bash(context.cwd, context.env).execute_sync(script))
            return BuiltinResult(done.stdout, done.stderr.replace(path, context.name), done.exit_code)

        return _in_another_thread(run)

    def _find_pipeline(self, context: BuiltinContext) -> BuiltinResult:
        return BuiltinResult(exit_code=0 if self._find(context.argv[0], context.fs) else 1)

    def _find(self, source: str, fs: FileSystem) -> bool:
        """Look for the suite's answer to a command at this moment."""

        def text_of(place: str) -> str | None:
            path = absolute(place)
            return fs.read_file(path).decode("utf-8", "replace") if fs.exists(path) else None

        try:
            with within(PATTERNS_S):
                self._found = find_answer(self._commands, source, text_of)
        except OpenClawError as error:
            self._error = error
        if self._found is not None:
            self._answered.append(source)
        return self._found is not None

    def _answer(self, context: BuiltinContext) -> BuiltinResult:
        """Give the answer that was found last."""
        command = self._found
        if command is None:
            return BuiltinResult(exit_code=NOT_FOUND)
        for path, text in command.effects.items():
            full = absolute(place_of(path))
            if text is not None:
                context.fs.mkdir(full.rpartition("/")[0], recursive=True)
                context.fs.write_file(full, text.encode())
            elif context.fs.exists(full):
                context.fs.remove(full)
        output = command.output.rstrip("\n")
        return BuiltinResult(f"{output}\n" if output else "", exit_code=command.exit_code)

    def _mktemp(self, context: BuiltinContext) -> BuiltinResult:
        """Make a file or folder with the next number for a name."""
        self._n_temporary += 1
        number = str(self._n_temporary)
        words = context.argv
        names = [word for word in words if not word.startswith("-")]
        folder = names.pop(0) if "-p" in words and names else SCRATCH
        template = names[0] if names else f"{folder}/tmp.XXXXXXXXXX"  # noqa: S108
        filled = re.sub(r"X{3,}", lambda found: number.zfill(len(found[0])), template, count=1)
        path = absolute(place_of(filled if filled.startswith("/") else f"{context.cwd}/{filled}"))
        if any(word.startswith("-") and "d" in word for word in words):
            context.fs.mkdir(path, recursive=True)
        else:
            context.fs.write_file(path, b"")
        return BuiltinResult(f"{filled}\n")


# --- programs and files of every world ------------------------------------------------------------


def _not_found(context: BuiltinContext) -> BuiltinResult:
    return BuiltinResult("", f"sh: {context.name}: command not found\n", NOT_FOUND)


def _no_host(context: BuiltinContext) -> BuiltinResult:
    urls = [word for word in context.argv if "." in word and not word.startswith("-")] or ["?"]
    host = re.sub(r"^\w+://", "", urls[-1]).partition("/")[0]
    if context.name == "curl":
        return BuiltinResult("", f"curl: (6) Could not resolve host: {host}\n", 6)
    return BuiltinResult("", f"wget: unable to resolve host address '{host}'\n", 4)


def _date(context: BuiltinContext) -> BuiltinResult:
    """Run `date` at the fixed time."""
    words = [re.sub(r"\A--date=", "-d", word) for word in context.argv]
    place = next((n for n, word in enumerate(words) if word.startswith("-d")), None)
    wanted = ""
    if place is not None:
        wanted = words.pop(place)[2:] or (words.pop(place) if place < len(words) else "")
    if not re.match(r"@|\d{4}-|\d{1,2} [A-Z]|[A-Z]", wanted):
        wanted = f"{_NOW} {_relative(wanted)}".rstrip()
    script = shlex.join(["date", "-d", wanted, *words])
    return _in_another_thread(lambda: _as_result(_plain_bash().execute_sync(script)))


def _relative(words: str) -> str:
    words = {"yesterday": "- 1 day", "tomorrow": "+ 1 day", "now": "", "today": ""}.get(words, words)
    if ago := re.fullmatch(r"(\d+ \w+) ago", words):
        return f"- {ago[1]}"
    return re.sub(r"\A([-+]?)\s*(?=\d+ [a-z])", lambda found: f"{found[1] or '+'} ", words)


def _as_result(done: ExecResult) -> BuiltinResult:
    return BuiltinResult(done.stdout, done.stderr or done.error or "", done.exit_code)


def _in_another_thread(run: Callable[[], BuiltinResult]) -> BuiltinResult:
    """Run another sandbox for a program: the thread that calls it runs the one with the program."""
    with ThreadPoolExecutor(1) as pool:
        return pool.submit(run).result()


@cache
def _plain_bash() -> Bash:
    """Return a sandbox without files, for reading scripts and for plain programs."""
    return Bash()


@cache
def _known_names(*, python: bool = False) -> frozenset[str]:
    return frozenset(Bash(python=python).execute_sync("compgen -c").stdout.split())


@cache
def _of_the_shell() -> frozenset[str]:
    """Return the names of what acts on the shell itself, or is no name of a command."""
    builtins = _plain_bash().execute_sync("compgen -b; compgen -k").stdout.split()
    return frozenset(builtins) - {"echo", "printf", "pwd", "test", "true", "false", "kill"}


def _system_files(*, python: bool) -> FileSystem:
    """Return the files of an empty system: programs and devices."""
    # Without files it keeps its own.
    fs = Bash(username=_USER, python=python, files={f"{SCRATCH}/none": ""}).fs()
    own = [path for path, is_folder in _walk(fs, "/") if not is_folder]
    for path in (*own, *(f"/usr/bin/{name}" for name in _HIDDEN)):
        with suppress(OSError, RuntimeError):
            fs.remove(path)
    return fs


def _empty() -> FileSystem:
    fs = FileSystem()
    for entry in fs.read_dir("/"):
        fs.remove(f"/{entry['name']}", recursive=True)
    return fs


def _walk(fs: FileSystem, folder: str) -> Iterator[tuple[str, bool]]:
    """Yield the paths below a folder, and whether each is a folder."""
    try:
        entries = fs.read_dir(folder)
    except (OSError, RuntimeError):
        entries = []  # a command has removed it
    for entry in entries:
        path = f"{folder.rstrip('/')}/{entry['name']}"
        if path in _OWN:
            continue
        is_folder = entry["metadata"]["file_type"] == "directory"
        yield path, is_folder
        if is_folder:
            yield from _walk(fs, path)


# --- scripts --------------------------------------------------------------------------------------

#: what is part of a pipeline, and what separates two of them
_TOKEN = re.compile(
    r"""\\. | '[^']*'? | "(?:\\.|[^"\\])*"? | (?<!\S)\#[^\n]*
    | <<-?\s*(?P<quote>['"]?)(?P<name>[\w.]+)(?P=quote)[^\n]*(?:\n.*?)??(?:\n\t*(?P=name)(?=\n|\Z)|\Z)
    | [<>]& | &> | \|& | (?P<end>\|\| | [;\n&()`]) | .""",
    re.DOTALL | re.VERBOSE,
)
_KEYWORDS = re.compile(r"\s*(?:(?:if|then|elif|else|while|until|do|time|!|\{)\s+)*")
_REDIRECTIONS = re.compile(r"(?:\s*(?:\d*[<>]|&>)[<>]?&?\s*[^\s<>|&;]+)+\Z")


def _pipelines(script: str) -> Iterator[tuple[int, int]]:
    """Yield where the pipelines of a script begin and end, without redirections behind them.

    Brackets separate pipelines too, so that nested ones are found. Quoted text and here-documents are not
    searched.
    """
    start = 0
    for token in _TOKEN.finditer(script + "\n"):
        if token["end"]:
            yield from _trimmed(script, start, token.start())
            start = token.end()


def _trimmed(script: str, start: int, end: int) -> Iterator[tuple[int, int]]:
    words = _KEYWORDS.match(script, start, end)
    start = words.end() if words else start
    source = _REDIRECTIONS.sub("", script[start:end].rstrip())
    if source and "\n" not in source and "<<" not in source:
        yield start, start + len(source)


def main() -> None:
    """Answer each line of the input until it ends."""
    with suppress(ImportError, ValueError, OSError):  # where the system can: the owner measures as well
        import resource

        resource.setrlimit(resource.RLIMIT_AS, (MOST_ADDRESSES, MOST_ADDRESSES))
    for line in sys.stdin.buffer:
        done = play(json.loads(line)) if line.strip() else {"ready": bool(_known_names())}
        sys.stdout.buffer.write(json.dumps(done).encode() + b"\n")
        sys.stdout.buffer.flush()
