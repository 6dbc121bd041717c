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
from functools import cache
from typing import TYPE_CHECKING, Any

from pytest_openclaw.openclaw.paths import HOME, ROOT, absolute, place_of
from pytest_openclaw.util.bounded_regex import within
from pytest_openclaw.util.errors import OpenClawError
from pytest_openclaw.util.text import valid_text
from pytest_openclaw.worlds.answered_commands import find_answer, is_answered

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Mapping, Sequence

    from bashkit import Bash, BuiltinContext, BuiltinResult, FileSystem

    from pytest_openclaw.values.worlds import Command

    Builtin = Callable[[BuiltinContext], BuiltinResult]

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
_SCRATCH = "/tmp"  # noqa: S108
_NO_FILE = f"{_SCRATCH}/.none"
_ENV = {"HOME": HOME, "LANG": "C.UTF-8", "PATH": "/usr/local/bin:/usr/bin:/bin", "SHELL": "/bin/sh"}
_UNBOUNDED = 1 << 40
_PYTHON_ENDED = "TimeoutError: time limit exceeded: "
#: what no world has: bashkit's own, editors, and what a suite answers
# fmt: off
_HIDDEN = (
    "assert", "busybox", "csv", "dotenv", "glob", "http", "json", "log", "make", "nano", "openssl",
    "parallel", "retry", "semver", "sudo", "template", "tomlq", "verify", "vi", "yq",
)
# fmt: on
#: bashkit's own files, which are not the world's
_OWN = ("/bin", "/dev", "/proc", "/sys", "/usr/bin")
_SHELLS = ("bash", "sh")
_ASK = 'if ! __is_open {name} "$@" </dev/null; then __answer; return; fi; '
# A shell in the shell does not know its functions.
_SHELL = (
    '{name}() {{ {ask}case "$1" in -*c) local __option=$1 __script=$2; shift 2;'
    ' command {name} {trace}$__option "$__functions$__script" "$@";; *) command {name} {trace}"$@";; esac; }}'
)
_MARK = "\x01"
_TRACED = re.compile(rf"{_MARK}+((?:\\.|'[^']*'|[^'\\\n])*)\n", re.DOTALL)
_NOT_RUN = re.compile(
    r"(?:[A-Za-z_]\w*(?:\[[^\]]*\])?\+?=|\[\[ |\(\( |__|(?:set -x|local __.*|shift 2|return|'\[' -n .*)$)"
)
_WORD = re.compile(r"[A-Za-z_./~][\w.+/-]*")
_PATTERN_ESCAPE = re.compile(r"\\[A-Za-z]|\(\?[a-z]+\)")
_KEYWORDS = re.compile(r"\s*(?:(?:if|then|elif|else|while|until|do|time|!|\{)\s+)*")
_REDIRECTIONS = re.compile(r"(?:\s*(?:\d*[<>]|&>)[<>]?&?\s*[^\s<>|&;]+)+\Z")
_HEREDOC = re.compile(r"<<-?\s*(['\"]?)([\w.]+)\1")
_PARSE_ERROR = re.compile(r"\Aparse error(?: at line \d+, column \d+)?: ")
_REWORDED = (
    (re.compile(r"^(?:bash: line \d+|bash): ", re.MULTILINE), "sh: "),
    (re.compile(r"^(sh: .*: command not found)\. .*$", re.MULTILINE), r"\1"),
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

    Args:
        asked: `command`, `folder`, `env`, `files`, `folders`, the suite's `commands`, and whether the world
            has `python`.

    """
    began = time.monotonic()
    try:
        run = _Run(asked)
        result = run.result()
        if not result["timed_out"]:
            traced = _Run(
                asked, is_traced=True, seconds=max(0.05, RUN_S + TRACE_S - time.monotonic() + began)
            )
            result["parts"] = traced.parts()
    except OpenClawError as error:
        return {"broken": str(error)}
    except MemoryError:
        return {"timed_out": True}
    except Exception as error:
        return {"broken": f"the sandbox of commands failed: {error!r}"}
    return result


class _Run:
    """One run of a command in a new sandbox."""

    def __init__(self, asked: Mapping[str, Any], *, is_traced: bool = False, seconds: float = RUN_S) -> None:
        self._asked = asked
        self._commands = [_command(plain) for plain in asked["commands"]]
        self._is_traced = is_traced
        self._found: Command | None = None
        self._error: OpenClawError | None = None
        self._answered: list[str] = []
        self._n_temporary = 0
        self._bash = self._start(seconds)

    def _start(self, seconds: float) -> Bash:
        from bashkit import Bash

        asked = self._asked
        texts = {absolute(place): text for place, text in asked["files"].items() if place.isprintable()}
        plain = {path: text for path, text in texts.items() if text.isascii() or valid_text(text) == text}
        named, written = self._names()
        builtins: dict[str, Builtin] = {
            **dict.fromkeys(_HIDDEN, _not_found),
            "curl": _no_host,
            "date": _date,
            "mktemp": self._mktemp,
            "sleep": lambda _: _result(),
            "wget": _no_host,
        }
        unknown = (named | written) - _known_names() - builtins.keys()
        builtins |= dict.fromkeys((name for name in unknown if "/" not in name), _not_found)
        self._functions = sorted(named - builtins.keys() - _unwrapped() - {*_SHELLS})
        if self._commands:
            for name in (named | written) & builtins.keys():
                builtins[name] = self._answering(builtins[name])
            builtins |= {"__is_open": self._is_open, "__answer": self._answer}
        bash = Bash(
            username=_USER,
            hostname=_USER,
            cwd=ROOT,
            env={**_ENV, **asked["env"]},
            files={_NO_FILE: "", **plain},  # without any file it would not let go of its own
            custom_builtins=builtins,
            python=asked["python"],
            timeout_seconds=seconds,
            max_commands=_UNBOUNDED,
            max_loop_iterations=_UNBOUNDED,
        )
        fs = bash.fs()
        for folder in filter(str.isprintable, ("", *asked["folders"])):
            fs.mkdir(absolute(folder), recursive=True)
        for path, text in texts.items():
            if path not in plain:
                fs.write_file(path, text.encode("utf-8", "surrogateescape"))
            if path.endswith(".sh") or text.startswith("#!"):
                fs.chmod(path, 0o755)
        for path in (_NO_FILE, *_own_files(), *(f"/usr/bin/{name}" for name in _HIDDEN)):
            if path not in texts:
                with suppress(OSError, RuntimeError):
                    fs.remove(path)
        bash.execute_sync("\n".join(self._prelude()))
        return bash

    def _prelude(self) -> Iterator[str]:
        """Yield commands that prepare the shell; a shell in it needs the functions again."""
        trace = "-x " if self._is_traced else ""
        functions = [
            f'{name}() {{ {_ASK.format(name=name)}command {name} "$@"; }}' for name in self._functions
        ]
        if self._commands or trace:
            yield f"__functions={shlex.quote('; '.join([*functions, '']) if functions else '')}"
            for name in _SHELLS:
                ask = _ASK.format(name=name) if self._commands else ""
                functions.append(_SHELL.format(name=name, ask=ask, trace=trace))
        yield from functions
        yield f"export PS4=$'{_MARK}'" if trace else "exec 2>&1"
        yield "RANDOM=1"
        yield f"cd {shlex.quote(absolute(self._asked['folder']))}"

    def _names(self) -> tuple[set[str], set[str]]:
        """Return the names of commands in the suite's patterns, with paths, and those in the command."""
        if not self._commands:
            return set(), set()
        patterns = (_PATTERN_ESCAPE.sub(" ", one.pattern).replace("\\", "") for one in self._commands)
        named, written = {*_WORD.findall(" ".join(patterns))}, set[str]()
        with suppress(Exception):  # it does not parse, and will fail for that reason
            written = {*filter(_WORD.fullmatch, _reader().analyze(self._asked["command"]).command_names)}
        return named | {name for name in written if "/" in name}, written

    # --- the run ---

    def result(self) -> dict[str, Any]:
        """Run the command; return its output, its exit code and the changes."""
        done = self._execute(self._with_answers(self._asked["command"]))
        error = done.error or ""
        if error.startswith(("resource limit", "execution error")) or _PYTHON_ENDED in done.stdout:
            return {"timed_out": True}
        output, code = done.stdout + done.stderr, done.exit_code
        if error:
            output, code = f"sh: {_PARSE_ERROR.sub('', error)}\n", MISUSE
        for pattern, words in _REWORDED:
            output = pattern.sub(words, output)
        files, folders, refused = self._files()
        if refused:
            output, code = output + "".join(f"sh: {path}: Permission denied\n" for path in refused), code or 1
        before = self._asked["files"]
        return {
            "timed_out": False,
            "output": output,
            "code": code,
            "files": {place: text for place, text in files.items() if before.get(place) != text},
            "gone": [place for place in before if place not in files and place.isprintable()],
            "folders": folders,
            "parts": [],
        }

    def parts(self) -> list[str]:
        """Run the command, and return each simple command with its words after expansion."""
        done = self._execute(f"set -x\n{self._with_answers(self._asked['command'])}")
        found = [*self._answered]
        for line in _TRACED.findall(done.stdout + done.stderr):
            name = line.removeprefix("command ").partition(" ")[0]
            is_wrapped = line.startswith("command ") and name in (*_SHELLS, *self._functions)
            if not is_wrapped and not _NOT_RUN.match(line):
                with suppress(ValueError):
                    found.append(" ".join(shlex.split(line))[:LONGEST_PART])
        return [*dict.fromkeys(found)][:MOST_PARTS]

    def _execute(self, script: str) -> Any:
        done = self._bash.execute_sync(script)
        if self._error:
            raise self._error
        return done

    def _files(self) -> tuple[dict[str, str], list[str], list[str]]:
        """Return the files and folders, and the paths outside the workspace that may not be written."""
        fs = self._bash.fs()
        before = self._asked["files"]
        files: dict[str, str] = {}
        folders: list[str] = []
        refused: list[str] = []
        for path, is_folder in _walk(fs, "/"):
            try:
                place = place_of(path)
            except ValueError:
                continue
            is_free = not place.startswith("/") or path.startswith(f"{_SCRATCH}/")
            if is_folder:
                folders += [place] if is_free else []
                continue
            try:
                text = fs.read_file(path).decode("utf-8", "surrogateescape")
            except (OSError, RuntimeError):
                continue  # a link to nowhere
            if is_free or before.get(place) == text:
                files[place] = text
            else:
                refused.append(path)
                files |= {place: before[place]} if place in before else {}
        return files, folders, refused

    # --- the suite's answers ---

    def _with_answers(self, script: str) -> str:
        """Return a script in which each pipeline that the suite may answer asks for its answer first."""
        if not self._commands:
            return script
        for start, end in reversed([*_pipelines(script)]):
            source = script[start:end]
            has_document = "\n" in source or "<<" in source
            if not has_document and is_answered(self._commands, source):
                asking = f"if __is_open -- {shlex.quote(source)}; then {source}; else __answer; fi"
                script = script[:start] + asking + script[end:]
        return script

    def _find(self, source: str, fs: FileSystem) -> bool:
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

    def _is_open(self, context: BuiltinContext) -> BuiltinResult:
        """Succeed if the suite has no answer to a command, which then runs."""
        words = context.argv
        return _result(code=int(self._find(words[1] if words[:1] == ["--"] else " ".join(words), context.fs)))

    def _answer(self, context: BuiltinContext) -> BuiltinResult:
        command = self._found
        if command is None:
            return _result(code=NOT_FOUND)
        for path, text in command.writes.items():
            full = absolute(place_of(path))
            if text is not None:
                context.fs.mkdir(full.rpartition("/")[0], recursive=True)
                context.fs.write_file(full, text.encode())
            elif context.fs.exists(full):
                context.fs.remove(full)
        output = command.output.rstrip("\n")
        return _result(f"{output}\n" if output else "", code=command.exit_code)

    def _answering(self, otherwise: Builtin) -> Builtin:
        def answer(context: BuiltinContext) -> BuiltinResult:
            is_known = self._find(" ".join([context.name, *context.argv]), context.fs)
            return self._answer(context) if is_known else otherwise(context)

        return answer

    def _mktemp(self, context: BuiltinContext) -> BuiltinResult:
        """Make a file or folder with the next number for a name."""
        self._n_temporary += 1
        words = context.argv
        names = [word for word in words if not word.startswith("-")]
        folder = names.pop(0) if "-p" in words and names else _SCRATCH
        template = names[0] if names else f"{folder}/tmp.XXXXXXXXXX"  # noqa: S108
        filled = re.sub(
            r"X{3,}", lambda found: str(self._n_temporary).zfill(len(found[0])), template, count=1
        )
        path = absolute(place_of(filled if filled.startswith("/") else f"{context.cwd}/{filled}"))
        if any(word.startswith("-") and "d" in word for word in words):
            context.fs.mkdir(path, recursive=True)
        else:
            context.fs.write_file(path, b"")
        return _result(f"{filled}\n")


# --- programs of every world ----------------------------------------------------------------------


def _result(output: str = "", error: str = "", code: int = 0) -> BuiltinResult:
    from bashkit import BuiltinResult

    return BuiltinResult(output, error, code)


def _not_found(context: BuiltinContext) -> BuiltinResult:
    return _result(error=f"sh: {context.name}: command not found\n", code=NOT_FOUND)


def _no_host(context: BuiltinContext) -> BuiltinResult:
    urls = [word for word in context.argv if "." in word and not word.startswith("-")] or ["?"]
    host = re.sub(r"^\w+://", "", urls[-1]).partition("/")[0]
    if context.name == "curl":
        return _result(error=f"curl: (6) Could not resolve host: {host}\n", code=6)
    return _result(error=f"wget: unable to resolve host address '{host}'\n", code=4)


def _date(context: BuiltinContext) -> BuiltinResult:
    """Run `date` at the fixed time."""
    words = [re.sub(r"\A--date=", "-d", word) for word in context.argv]
    place = next((n for n, word in enumerate(words) if word.startswith("-d")), None)
    wanted = ""
    if place is not None:
        wanted = words.pop(place)[2:] or (words.pop(place) if place < len(words) else "")
    if not re.match(r"@|\d{4}-|\d{1,2} [A-Z]|[A-Z]", wanted):
        wanted = f"{_NOW} {_relative(wanted)}".rstrip()
    # In another thread, because this one runs the sandbox that called.
    with ThreadPoolExecutor(1) as pool:
        done = pool.submit(_reader().execute_sync, shlex.join(["date", "-d", wanted, *words])).result()
    return _result(done.stdout, done.stderr, done.exit_code)


def _relative(words: str) -> str:
    words = {"yesterday": "- 1 day", "tomorrow": "+ 1 day", "now": "", "today": ""}.get(words, words)
    ago = re.fullmatch(r"(\d+ \w+) ago", words)
    return (
        f"- {ago[1]}"
        if ago
        else re.sub(r"\A([-+]?)\s*(?=\d+ [a-z])", lambda found: f"{found[1] or '+'} ", words)
    )


@cache
def _reader() -> Bash:
    """Return a sandbox without files, for reading scripts and for plain programs."""
    from bashkit import Bash

    return Bash()


@cache
def _known_names() -> frozenset[str]:
    return frozenset(_reader().execute_sync("compgen -c").stdout.split())


@cache
def _unwrapped() -> frozenset[str]:
    """Return the names of what acts on the shell itself, or is no name of a command."""
    builtins = _reader().execute_sync("compgen -b; compgen -k").stdout.split()
    return frozenset(builtins) - {"echo", "printf", "pwd", "test", "true", "false", "kill"}


@cache
def _own_files() -> tuple[str, ...]:
    """Return bashkit's own files that a command could take for the world's."""
    return tuple(path for path, is_folder in _walk(_reader().fs(), "/") if not is_folder)


def _walk(fs: FileSystem, folder: str) -> Iterator[tuple[str, bool]]:
    """Yield the paths below a folder, and whether each is a folder."""
    try:
        entries = fs.read_dir(folder)
    except (OSError, RuntimeError):
        entries = []  # a command has removed the root
    for entry in entries:
        path = f"{folder.rstrip('/')}/{entry['name']}"
        if path in _OWN:
            continue
        is_folder = entry["metadata"]["file_type"] == "directory"
        yield path, is_folder
        if is_folder:
            yield from _walk(fs, path)


# --- scripts --------------------------------------------------------------------------------------


def _pipelines(script: str) -> Iterator[tuple[int, int]]:
    """Yield where the pipelines of a script begin and end, without redirections behind them.

    Keywords and brackets part pipelines too, so that nested ones are found. Quoted text is not searched.
    """
    start = position = 0
    documents: list[str] = []
    while position < len(script):
        character = script[position]
        step = 1
        if character == "\\":
            step = 2
        elif character in "'\"":
            step = len(_quoted(script, position))
        elif character == "#" and (position == 0 or script[position - 1].isspace()):
            step = len(script[position:].partition("\n")[0])
        elif found := _HEREDOC.match(script, position):
            documents.append(found[2])
            step = len(found[0])
        elif character in ";\n()`" or script.startswith("||", position) or _is_job(script, position):
            yield from _trimmed(script, start, position)
            if character == "\n":
                step = _documents_length(script, position, documents)
                documents = []
            start = position + step
        position += max(1, step)
    yield from _trimmed(script, start, len(script))


def _is_job(script: str, position: int) -> bool:
    around = script[max(0, position - 1) : position + 2]
    return script[position] == "&" and not any(mark in around for mark in (">&", "<&", "&>", "|&"))


def _quoted(script: str, position: int) -> str:
    quote = script[position]
    pattern = r"'[^']*'?" if quote == "'" else r'"(?:\\.|[^"\\])*"?'
    found = re.compile(pattern, re.DOTALL).match(script, position)
    return found[0] if found else quote


def _documents_length(script: str, position: int, names: Sequence[str]) -> int:
    """Return how far the here-documents go that begin at the end of a line."""
    end = position
    for name in names:
        found = re.compile(rf"\n\t*{re.escape(name)}(?=\n|\Z)").search(script, end)
        end = found.end() if found else len(script)
    return max(1, end - position)


def _trimmed(script: str, start: int, end: int) -> Iterator[tuple[int, int]]:
    words = _KEYWORDS.match(script, start, end)
    start = words.end() if words else start
    source = script[start:end].rstrip()
    source = source[: len(source) - len(found[0])] if (found := _REDIRECTIONS.search(source)) else source
    if source.strip("&| "):
        yield start, start + len(source)


def _command(plain: Mapping[str, Any]) -> Command:
    from pytest_openclaw.values.worlds import Command

    return Command(**plain)


def main() -> None:
    """Answer each line of the input until it ends."""
    _limit_memory()
    for line in sys.stdin.buffer:
        done = play(json.loads(line)) if line.strip() else {"ready": bool(_known_names())}
        sys.stdout.buffer.write(json.dumps(done).encode() + b"\n")
        sys.stdout.buffer.flush()


def _limit_memory() -> None:
    """Let an allocation beyond the limit end this process, where the system can; the owner looks too."""
    with suppress(ImportError, ValueError, OSError):
        import resource

        resource.setrlimit(resource.RLIMIT_AS, (MOST_ADDRESSES, MOST_ADDRESSES))
