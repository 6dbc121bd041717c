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
from fnmatch import filter as matching
from fnmatch import fnmatchcase
from functools import cache, partial
from glob import escape
from itertools import islice
from posixpath import join, normpath
from typing import TYPE_CHECKING, Any

from bashkit import Bash, BashError, BuiltinResult
from msgspec import Struct, convert

from pytest_openclaw.util.bounded import within
from pytest_openclaw.util.errors import OpenClawError
from pytest_openclaw.values.worlds import ScriptedCommand
from pytest_openclaw.worlds import python
from pytest_openclaw.worlds.commands import named_programs, nested, read_shell
from pytest_openclaw.worlds.shell import PATIENCE, find_answer
from pytest_openclaw.worlds.workspace import HOME, ROOT, SCRATCH, absolute, normal_path

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Mapping, Sequence

    from bashkit import BuiltinContext, ExecResult, FileSystem

    Program = Callable[[BuiltinContext], BuiltinResult]

MISUSE, NOT_FOUND = 2, 127
#: what `play` is asked, in addition to `command`, `files`, `python` and `seconds`; see `Exec.run`
ASKED = {"folder": "", "env": {}, "folders": [], "commands": [], "names": [], "records": False}
#: CPU seconds for the second run of a command, which is recorded, and if the first run did not end
RECORD_S, RECORD_ENDLESS_S = 15.0, 0.7
#: seconds for the suite's patterns, for each simple command
PATTERNS_S = 0.25
#: simple commands of a record, characters of their words, and names from texts that it watches
MOST_PARTS, LONGEST_WORD, MOST_NAMES = 1000, 20_000, 1000
#: further runs to see that a file differs in each; the order of two files is the same in half of them
MOST_REPEATS = 9
_USER = "openclaw"
_NOW = "2026-11-21 12:00:00 UTC"
_ENV = {"HOME": HOME, "LANG": "C.UTF-8", "PATH": "/usr/local/bin:/usr/bin:/bin", "SHELL": "/bin/sh"}
_UNBOUNDED = 1 << 40
#: programs of bashkit that do not behave like the real programs
_HIDDEN = ("bc", "busybox", "make", "nano", "openssl", "parallel", "sudo", "vi", "yq")
#: folders of bashkit's own files, which do not belong to the world
_OWN = ("/bin", "/dev", "/proc", "/sys", "/usr")
_SHELLS = ("bash", "sh")
#: Shells that bashkit lacks run as its `sh`, so that their commands are recorded.
_OTHER_SHELLS = ("ash", "dash", "ksh", "zsh")
#: No program takes the place of bashkit's shells, so they are functions.
_FUNCTIONS = tuple(f'{name}() {{ __{name} "$@"; }}' for name in _SHELLS)
_FAILED = "the sandbox of commands failed: {!r}"
#: folders in which a command may name a program; bashkit's are in the first ones
_FOLDERS = ("", "/bin/", "/usr/bin/")
_OTHER_FOLDERS = ("/usr/local/bin/", "/sbin/", "/usr/sbin/")
#: programs that may be given bytes, file descriptors or a stream, none of which bashkit gives to programs of
#: ours; they stay bashkit's behind an alias, because it gives no stream to a function of the same name either
_STREAMING = {
    *("base64", "cat", "cmp", "comm", "diff", "grep", "gunzip", "gzip", "head", "join", "od", "paste"),
    *("printf", "tail", "tee", "tr", "xxd", "zcat"),
}
_ANSWER = ("__answers", "__answer")
_ALIAS = """\
alias {0}=__run_{0}
__run_{0}() {{
if __answers {0} "$@" </dev/null; then __answer {0} "$@" </dev/null; else command {0} "$@"; fi
}}
"""
#: programs that are frequent in loops and start no other program
_SIMPLE = {
    *("basename", "cp", "cut", "dirname", "echo", "expr", "ls", "mkdir", "mv", "pwd", "rm", "rmdir", "seq"),
    *("sort", "touch", "uniq", "wc"),
}
_WORD = re.compile(r"(?:(?<!\d)\d{1,9}(?=[A-Za-z]))?[A-Za-z_./~][\w.+/-]*")
_QUOTE = re.compile(r"[\\'\"]")
_HIDES = re.compile(r">|\|&")
#: variables whose value another program runs, T1574.006, T1574.007
_RUNS = re.compile(
    r"\b(?:BASH_ENV|LD_PRELOAD|PROMPT_COMMAND|(?:NODE|RUBY|PERL5)_?OPT\w*|PYTHONSTARTUP|ENV(?==\S*[/$]))="
)
_EXPANSION = re.compile(
    r"\$\(\([^()]*\)\)|\$\([^()]*\)|`[^`]*`|\$\{[^{}]*\}|\$(?:\w+|[@*#?!-])"
    r"|\{[^{},:\s]*(?:,|\.\.)[^{}\s]*\}"  # {git,push}, which JSON with its colon is not
)
#: a program's name that bash replaces with the paths that it matches, but bashkit does not
_GLOB = re.compile(r"[*?[].*\w|\w.*[*?]")
_EXPANDED = "\ue000"
_PYTHON_SCRIPT = re.compile(rb"#!.*\bpython[\d.]*\s")
_PATTERN_ESCAPE = re.compile(r"\\[A-Za-z]|\(\?[a-z]+\)")
_NOT_FOUND = re.compile(r"^[^\s:]+: (?:line \d+: )?(\S+: command not found).*$", re.MULTILINE)
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
    """Run a command, and return its output, exit code, changes of files, and the record of what ran.

    The command runs twice, because bytes and file descriptors do not reach a program that records itself.
    The second time, Python does not run again, but has the same effects.
    `is_recorded` is False if the record may lack something: it became too long, a program that is not in it
    was not found, or the second run had another effect, except for files whose content is another one in each
    run.
    """
    asked = {**ASKED, **asked}
    try:
        if asked["python"]:
            python.load()
            python.packages()
        if grader := asked.get("grader"):
            with closing(_Run(asked, asked["seconds"])) as run:
                return run.graded(**grader)
        with closing(_Run(asked, asked["seconds"])) as run:
            result, python_runs = run.result(), run.python_runs
        if not asked["records"]:
            return result
        seconds = RECORD_ENDLESS_S if result["timed_out"] else RECORD_S
        with closing(_Run(asked, seconds, repeats=python_runs, records=True)) as run:
            again = run.result()
            is_same = all(result[key] == again[key] for key in ("timed_out", "code", "gone"))
            is_same &= result["files"].keys() == again["files"].keys()
            varying = {path for path in result["files"] if is_same and _differ(result, again, path)}
            for _ in range(MOST_REPEATS):
                if not varying:  # else the time, random numbers, an order of files
                    break
                with closing(_Run(asked, asked["seconds"], repeats=python_runs)) as run_again:
                    repeated = run_again.result()
                varying = {path for path in varying if not _differ(result, repeated, path)}
            missing = {name for text in run.texts for name in _NOT_FOUND.findall(text)}
            is_same &= not varying and missing <= {f"{words[0]}: command not found" for words in run.parts}
            is_same &= not run.may_hide()
            is_recorded = is_same and not result["timed_out"] and len(run.parts) < MOST_PARTS
            return {**result, "parts": [*run.parts], "is_recorded": is_recorded}
    except OpenClawError as error:
        return {"broken": str(error)}
    except Exception as error:
        return {"broken": _FAILED.format(error)}


def _differ(one: Mapping[str, Any], other: Mapping[str, Any], path: str) -> bool:
    """Whether a file differs after two runs, regardless of the words for a missing program."""
    texts = (_NOT_FOUND.sub(r"\1", run["files"].get(path, "")) for run in (one, other))
    return len({*texts}) > 1


class _GraderCommand(Struct):
    command: str
    folder: str
    env: dict[str, str]
    seconds: float = _UNBOUNDED
    stdin: str = ""


class _Run:
    """One run of a command in a new sandbox.

    Attributes:
        parts: of a recording run, the words of each simple command after expansion, each once, in order.
        python_runs: the runs of Python, in order; a later run repeats those of the first one (`repeats`).
        texts: the output, and the texts of changed files, after the run.
    """

    def __init__(
        self,
        asked: Mapping[str, Any],
        seconds: float,
        *,
        repeats: Sequence[python.Ended] | None = None,
        records: bool = False,
    ) -> None:
        self.parts: dict[tuple[str, ...], None] = {}
        self.python_runs: list[python.Ended] = []
        self.texts: list[str] = []
        self._sources = [asked["command"]]
        self._repeats = None if repeats is None else [*repeats]
        self._records = records
        self._asked = asked
        self._deadline = time.process_time() + seconds
        self._commands = [ScriptedCommand(**plain) for plain in asked["commands"]]
        self._error: OpenClawError | None = None
        self._n_temporary = 0
        self._fs = _system()
        self._of_system = {path for path, _ in _walk(self._fs, "/")}
        self._lay_out()
        self._known = _known_names() - {*_HIDDEN}
        self._programs = self._answering()
        if records:
            self._programs = self._recording()

    def close(self) -> None:
        """Release the sandboxes, which refer to this object through their programs and have open files."""
        self.__dict__.clear()

    def result(self) -> dict[str, Any]:
        """Run the command; return its output, exit code and changes."""
        done = self._execute()
        error = done.error or ""
        output, code = done.stdout + done.stderr, done.exit_code
        if error:
            output = f"{done.stdout}sh: {re.sub(r'^parse error(?: at line .*?)?: ', '', error)}\n"
            code = 1 if error.startswith("io error") else MISUSE
        for pattern, words in _REWORDED:
            output = pattern.sub(words, output)
        files, folders = self._files()
        before = self._asked["files"]
        changed = {path: text for path, text in files.items() if before.get(path) != text}
        self.texts = [done.stdout + done.stderr, *changed.values()]
        return {
            "timed_out": _is_ended(done, self.python_runs) or time.process_time() > self._deadline,
            "output": output,
            "code": code,
            "files": changed,
            "gone": [path for path in before if path not in files and path.isprintable()],
            "folders": folders,
        }

    def _execute(self) -> ExecResult:
        programs = {name: program for name, program in self._programs.items() if name not in _STREAMING}
        bash = self._new_bash(absolute(self._asked["folder"]), {**_ENV, **self._asked["env"]}, programs)
        aliases = [_ALIAS.format(name) for name in _STREAMING & self._programs.keys()]
        bash.execute_sync(
            "\n".join(["RANDOM=1", "exec 2>&1", "shopt -s expand_aliases", *_FUNCTIONS, *aliases])
        )
        done = self._executed(bash, self._asked["command"])
        if self._error:
            raise self._error
        return done

    def _new_bash(self, folder: str, env: Mapping[str, str], programs: Mapping[str, Program]) -> Bash:
        bash = Bash(
            username=_USER,
            hostname=_USER,
            cwd=folder,
            env=dict(env),
            custom_builtins={name: partial(self._guarded, program) for name, program in programs.items()},
            timeout_seconds=max(0.01, PATIENCE * (self._deadline - time.process_time())),
            max_commands=_UNBOUNDED,
            max_loop_iterations=_UNBOUNDED,
        )
        bash.mount("/", self._fs)
        return bash

    def _executed(self, bash: Bash, command: str) -> ExecResult:
        with python.watching(lambda: time.process_time() > self._deadline, bash.cancel):
            return bash.execute_sync(command)

    def _guarded(self, program: Program, context: BuiltinContext) -> BuiltinResult:
        """Run a program; its exception ends the run, where bashkit would print it as the command's."""
        try:
            return program(context)
        except OpenClawError as error:
            self._error = self._error or error
        except BaseException as error:  # a panic in bashkit is no `Exception`
            self._error = self._error or OpenClawError(_FAILED.format(error))
        return BuiltinResult(exit_code=MISUSE)

    # --- graders ---

    def graded(self, files: Mapping[str, str], script: str) -> dict[str, Any]:
        """Run a grader's script, one of its own `files`; its commands run in this world."""
        world, folders = _content(self._fs)
        ended = python.run(
            [f"{python.GRADER}/{script}"],
            files=world,
            folders=folders,
            cwd=ROOT,
            env={**_ENV, **self._asked["env"]},
            stdin=b"",
            seconds=self._deadline - time.process_time(),
            host=python.Host(
                files={name: text.encode("utf-8", "surrogateescape") for name, text in files.items()},
                call=self._command,
            ),
        )
        if self._error:
            raise self._error
        output = (ended.stdout + ended.stderr)[-LONGEST_WORD:].decode("utf-8", "replace")
        result = ended.result.decode("utf-8", "replace")
        return {"timed_out": ended.timed_out, "code": ended.code, "output": output, "result": result}

    def _command(self, request: bytes, changes: python.Ended) -> tuple[bytes, Mapping[str, bytes]]:
        """Run a command of a grader; the answer has its output, and what it changed."""
        _apply(changes, self._fs)
        before, folders = _content(self._fs)
        for path in changes.files.keys() & before.keys():
            if _is_script(path, _text(before[path])):
                self._fs.chmod(path, 0o755)
        deadline, self.python_runs = self._deadline, []
        answer: dict[str, Any] = {"stdout": "", "timed_out": False}
        try:
            done = self._execute_for_grader(convert(json.loads(request), _GraderCommand), before)
            answer |= {
                "stdout": done.stdout,
                "stderr": done.stderr or done.error or "",
                "code": done.exit_code,
            }
            answer["timed_out"] = _is_ended(done, self.python_runs)
        except (ValueError, RuntimeError) as error:  # not of our script, or of what no shell takes
            answer |= {"stderr": f"sh: {error!r}", "code": 126}
        self._deadline = deadline
        after, kept = _content(self._fs)
        changed = {path: _text(content) for path, content in after.items() if before.get(path) != content}
        answer |= {
            "files": changed | dict.fromkeys(before.keys() - after.keys()),
            "folders": kept,
            "gone": sorted({*folders} - {*kept}, reverse=True),
        }
        return json.dumps(answer).encode(), after

    def _execute_for_grader(self, asked: _GraderCommand, files: Mapping[str, bytes]) -> ExecResult:
        texts = {normal_path(path): _text(content) for path, content in files.items()}
        self._asked = {**self._asked, "command": asked.command, "files": texts}
        self._programs = self._answering()
        self._deadline = min(self._deadline, time.process_time() + asked.seconds)
        programs = {name: program for name, program in self._programs.items() if name not in _STREAMING}
        command = asked.command
        if asked.stdin:
            command = f"__stdin | {{ {command}\n}}"
            programs["__stdin"] = lambda _: BuiltinResult(asked.stdin)
        bash = self._new_bash(asked.folder, asked.env, programs)
        bash.execute_sync("\n".join(_FUNCTIONS))
        return self._executed(bash, command)

    # --- files ---

    def _lay_out(self) -> None:
        for folder in filter(str.isprintable, self._asked["folders"]):
            self._fs.mkdir(absolute(folder), recursive=True)
        for path, text in self._asked["files"].items():
            if path.isprintable():
                full = absolute(path)
                _write(self._fs, full, text)
                if _is_script(full, text):
                    self._fs.chmod(full, 0o755)
        for name in python.PROGRAMS if self._asked["python"] else ():  # for `which` and `test -x`
            self._fs.write_file(f"/usr/bin/{name}", b"")
            self._fs.chmod(f"/usr/bin/{name}", 0o755)

    def _files(self) -> tuple[dict[str, str], list[str]]:
        files: dict[str, str] = {}
        folders: list[str] = []
        for full, is_folder in _walk(self._fs, "/"):
            if time.process_time() > self._deadline:  # to read a folder, bashkit looks at all paths
                break
            with suppress(ValueError, OSError, RuntimeError):  # an impossible name, or a link to nowhere
                path = normal_path(full)
                if not is_folder:
                    files[path] = _text(self._fs.read_file(full))
                elif full not in self._of_system or path in self._asked["folders"]:
                    folders.append(path)
        return files, folders

    # --- programs ---

    def _answering(self) -> dict[str, Program]:
        """Return the programs that replace bashkit's, or that the suite may answer."""
        programs: dict[str, Program] = {
            **dict.fromkeys(_HIDDEN, _not_found),
            **{f"__{name}": partial(self._answer_or, self._run_bashkits) for name in _SHELLS},
            **{
                folder + name: partial(self._answer_or, self._run_bashkits)
                for folder in _FOLDERS
                for name in _OTHER_SHELLS
            },
            _ANSWER[0]: self._answers,
            _ANSWER[1]: lambda context: self._answer(context.argv, context.fs) or BuiltinResult(),
            "curl": _no_host,
            "date": _date,
            "mktemp": self._mktemp,
            "sleep": lambda _: BuiltinResult(),
            "wget": _no_host,
        }
        if self._asked["python"]:
            names = [folder + name for folder in _FOLDERS for name in python.PROGRAMS]
            programs |= dict.fromkeys(names, lambda context: self._run_python(context.argv, context))
            for path in self._names_of_texts():
                if "/" in path and not path.startswith(_FOLDERS[1:]):
                    programs[path] = self._script
        for name in self._names_of_patterns():
            programs[name] = partial(self._answer_or, programs.get(name, self._bashkits(name)))
        return programs

    def _recording(self) -> dict[str, Program]:
        """Return all programs, also those that the sandbox lacks, each of which records its calls."""
        own, written = self._programs, self._names_of_texts()
        names = {*own, *self._known, *self._asked["names"], *(name for name in written if "/" not in name)}
        programs: dict[str, Program] = {}
        for name in names - _of_the_shell() - {*_ANSWER}:
            program = partial(self._record, own.get(name, self._bashkits(name)))
            programs |= dict.fromkeys([folder + name for folder in _FOLDERS], program)
            lacking = partial(self._record, _not_found)
            programs |= dict.fromkeys([folder + name for folder in _OTHER_FOLDERS], lacking)
        folder = absolute(self._asked["folder"])
        for path in written - {*programs}:  # such as ../bin/rm
            if (full := normpath(join(folder, path))) in programs:
                programs[path] = programs[full]
        # With all folders, the many programs of the tables would take as long as most commands.
        listed = {name: partial(self._record, _not_found) for name in named_programs()}
        listed = {name: program for name, program in listed.items() if name not in _of_the_shell()}
        return {**listed, **programs, **{name: own[name] for name in _ANSWER}}

    def _bashkits(self, name: str) -> Program:
        return self._run_bashkits if "/" in name or name in self._known else _not_found

    def _names_of_patterns(self) -> set[str]:
        """Return the words of the suite's patterns, and the names in the command that bashkit lacks."""
        if not self._commands:
            return set()
        patterns = (_PATTERN_ESCAPE.sub(" ", one.pattern).replace("\\", "") for one in self._commands)
        named = {*_WORD.findall(" ".join(patterns))} - _of_the_shell()
        with suppress(BashError, UnicodeError):  # a command that does not parse will fail when it runs
            written = _plain_bash().analyze(self._asked["command"]).command_names
            named |= {*filter(_WORD.fullmatch, written)} - self._known
        return named - {*_SHELLS}

    def _names_of_texts(self) -> set[str]:
        """Return the words that may name a program: of the command, of scripts, and of files that these name.

        If there are too many, words that begin a simple command come first.
        """
        files = {path.rpartition("/")[2]: text for path, text in self._asked["files"].items()}
        texts = [self._asked["command"]]
        texts += (text for path, text in self._asked["files"].items() if _is_script(path, text))
        left, begins, others = dict(files), dict[str, None](), dict[str, None]()
        for text in texts:  # to which the files that it names are added
            plain = _QUOTE.sub("", text)  # `g\it` is `git`
            first = (_WORD.match(_QUOTE.sub("", words[0])) for words in read_shell(text).commands)
            begins |= dict.fromkeys(found[0] for found in first if found)
            words = dict.fromkeys((*_WORD.findall(text), *_WORD.findall(plain)))
            others |= (named := dict.fromkeys(islice(words, MOST_NAMES)))
            texts += [left.pop(name) for word in named if (name := word.rpartition("/")[2]) in left]
        self._sources = texts
        return {*islice(begins | others, MOST_NAMES)} - files.keys()

    def _record(self, program: Program, context: BuiltinContext) -> BuiltinResult:
        """Record a simple command, and run it, or end it soon if the record is incomplete anyway."""
        self._note(context.name.removeprefix("__"), *context.argv)
        return program(context) if len(self.parts) < MOST_PARTS else BuiltinResult(exit_code=MISUSE)

    def _read(self, context: BuiltinContext) -> None:
        """Note the texts that another shell is about to run, and record the programs that they name."""
        texts = [*context.argv, context.stdin or ""]
        with suppress(OSError, RuntimeError):
            texts.append(_text(context.fs.read_file(join(context.cwd, texts[0]))))
        self._sources += texts
        named = {word for text in texts for word in _WORD.findall(text)} - _of_the_shell()
        self._programs = dict.fromkeys(named, partial(self._record, _not_found)) | self._programs

    def may_hide(self) -> bool:
        """Whether a program may have run without a record: its name is computed, and its output hidden.

        Or a variable makes another program run it. A computed name is known if a simple command is recorded
        that has the same other words, and that no command with a plain name explains.
        """
        variables = (f"{name}={value}" for name, value in self._asked["env"].items())
        sources = "\n".join([*self._sources, *variables])
        files = {path.rpartition("/")[2]: text for path, text in self._files()[0].items()}
        if _RUNS.search(sources) or ("PATH=" in sources and files.keys() & self._programs.keys()):
            return True
        texts = [*self._sources] if _HIDES.search(sources) else []
        texts += [one.strip("$()`") for text in texts for one in _EXPANSION.findall(text)]
        named: list[str] = []
        for text in texts:
            with suppress(BashError, UnicodeError):  # it does not parse
                named += filter(_GLOB.search, _plain_bash().analyze(text).command_names)
        known = {path.rpartition("/")[2] for path in self._programs.keys() | files.keys()}
        if any(matching(known, name.rpartition("/")[2]) for name in named):
            return True
        commands: set[tuple[str, ...]] = set()
        for n, text in enumerate(texts):
            for words in read_shell(_EXPANSION.sub(_EXPANDED, text)).commands:
                is_noted = n == 0 and words[0] in (*_SHELLS, *_OTHER_SHELLS)  # with all that it runs
                commands |= {words} if is_noted else {one.words for one in nested(words)}
        computed_files = {name for name, text in files.items() if text not in self._sources}
        if any(
            words[0] in ("source", ".") and words[-1].rpartition("/")[2] in computed_files
            for words in commands
        ):
            return True
        globs = {words: escape(" ".join(words)).replace(_EXPANDED, "*") for words in commands}
        computed = [glob for words, glob in globs.items() if _EXPANDED in words[0]]
        left = [*map(" ".join, self.parts)]
        for glob in {*globs.values()} - {*computed} if computed else ():
            left = [part for part in left if not fnmatchcase(part, glob)]
        return not all(any(fnmatchcase(part, glob) for part in left) for glob in computed)

    def _answers(self, context: BuiltinContext) -> BuiltinResult:
        """Whether the suite answers a simple command, which bashkit runs next if not; record it."""
        if self._records:
            self._note(*context.argv)
        return BuiltinResult(exit_code=int(self._found(context.argv, context.fs) is None))

    def _note(self, *words: str) -> None:
        if len(self.parts) < MOST_PARTS:
            self.parts[tuple(word[:LONGEST_WORD] for word in words)] = None

    def _found(self, words: Sequence[str], fs: FileSystem) -> ScriptedCommand | None:
        """Return the suite's current answer to a simple command."""

        def text_of(path: str) -> str | None:
            full = absolute(path)
            return fs.read_file(full).decode("utf-8", "replace") if fs.exists(full) else None

        with within(PATTERNS_S):
            return find_answer(self._commands, " ".join(words), text_of)

    def _answer(self, words: Sequence[str], fs: FileSystem) -> BuiltinResult | None:
        """Return the result of the suite's current answer, with its effects; None without one."""
        found = self._found(words, fs)
        if found is None:
            return None
        for path, text in found.writes.items():
            _write(fs, absolute(normal_path(path)), text)
        for path in found.removes:
            if fs.exists(full := absolute(normal_path(path))):
                fs.remove(full)
        output = found.output.rstrip("\n")
        return BuiltinResult(f"{output}\n" if output else "", exit_code=found.exit_code)

    def _answer_or(self, otherwise: Program, context: BuiltinContext) -> BuiltinResult:
        """Answer a simple command with the suite's current answer, or run the program."""
        words = [context.name.removeprefix("__"), *context.argv]
        return self._answer(words, context.fs) or otherwise(context)

    def _run_bashkits(self, context: BuiltinContext) -> BuiltinResult:
        """Run a program or script in another sandbox with the same files, without the suite's answers."""
        name = context.name.removeprefix("__")
        base = name.rpartition("/")[2]
        itself = {name, *(folder + base for folder in _FOLDERS)}
        itself |= _STREAMING
        programs = {one: program for one, program in self._programs.items() if one not in itself}
        programs = {} if name in _SIMPLE | _STREAMING else programs
        if base in (*_SHELLS, *_OTHER_SHELLS) and self._records:
            self._read(context)
            programs |= {one: self._programs[one] for one in self._programs.keys() - itself}
        script = shlex.join(["sh" if base in _OTHER_SHELLS else name, *context.argv])
        stdin = context.stdin
        if stdin is not None:
            script = f"__stdin | {script}"
            programs["__stdin"] = lambda _: BuiltinResult(stdin)
        return _in_another_thread(
            lambda: self._executed(self._new_bash(context.cwd, context.env, programs), script)
        )

    def _script(self, context: BuiltinContext) -> BuiltinResult:
        """Run a program named by its path, in Python if its first line, which bashkit ignores, says so."""
        path = join(context.cwd, context.name)
        with suppress(OSError, RuntimeError):
            if _PYTHON_SCRIPT.match(context.fs.read_file(path)):
                return self._run_python([path, *context.argv], context)
        return self._run_bashkits(context)

    def _run_python(self, arguments: list[str], context: BuiltinContext) -> BuiltinResult:
        """Run Python, or repeat the effects of its first run."""
        fs = context.fs
        if self._repeats is None:
            files, folders = _content(fs)
            ended = python.run(
                arguments,
                files=files,
                folders=folders,
                cwd=context.cwd,
                env=context.env,
                stdin=(context.stdin or "").encode(),
                seconds=self._deadline - time.process_time(),
            )
        else:
            ended = self._repeats.pop(0) if self._repeats else python.Ended(code=MISUSE)
        self.python_runs.append(ended)
        refused = _apply(ended, fs)
        stdout, stderr = (
            output.decode("utf-8", "replace") for output in (ended.stdout, ended.stderr + refused)
        )
        return BuiltinResult(stdout, stderr, ended.code or int(bool(refused)))

    def _mktemp(self, context: BuiltinContext) -> BuiltinResult:
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
    words = [re.sub(r"\A--date=", "-d", word) for word in context.argv]
    option = next((n for n, word in enumerate(words) if word.startswith("-d")), None)
    moment = ""
    if option is not None:
        moment = words.pop(option)[2:] or (words.pop(option) if option < len(words) else "")
    moment = re.sub(r"(?<=\d )([+-])(?=\d+ [dhmsw](?!on))", r"\1 ", moment)  # as bashkit wants it
    if not re.match(r"@|\d{4}-|[A-Z]", moment):
        moment = {"yesterday": "1 day ago", "tomorrow": "1 day", "now": "", "today": ""}.get(moment, moment)
        days = re.fullmatch(r"\+? ?(\d+ \w+?)( ago)?", moment)
        moment = f"{_NOW} {'-' if days[2] else '+'} {days[1]}" if days else f"{_NOW} {moment}".rstrip()
    return _in_another_thread(lambda: _plain_bash().execute_sync(shlex.join(["date", "-d", moment, *words])))


def _in_another_thread(run: Callable[[], ExecResult]) -> BuiltinResult:
    """Run another sandbox for a program, because the calling thread is busy with the program's sandbox."""
    with ThreadPoolExecutor(1) as pool:
        done = pool.submit(run).result()
    return BuiltinResult(done.stdout, done.stderr or done.error or "", done.exit_code)


# --- what every world has -------------------------------------------------------------------------


@cache
def _plain_bash() -> Bash:
    """Return a sandbox without files, for reading scripts and for plain programs."""
    return Bash()


@cache
def _known_names() -> frozenset[str]:
    return frozenset(_plain_bash().execute_sync("compgen -c").stdout.split())


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


def _is_script(path: str, text: str) -> bool:
    return path.endswith(".sh") or text.startswith("#!")


def _text(content: bytes) -> str:
    return content.decode("utf-8", "surrogateescape")


def _content(fs: FileSystem) -> tuple[dict[str, bytes], list[str]]:
    """Return path → content of the files, and the folders."""
    files: dict[str, bytes] = {}
    folders: list[str] = []
    for path, is_folder in _walk(fs, "/"):
        if is_folder:
            folders.append(path)
        else:
            with suppress(OSError, RuntimeError):  # a link to nowhere
                files[path] = fs.read_file(path)
    return files, folders


def _is_ended(done: ExecResult, python_runs: Sequence[python.Ended]) -> bool:
    """Whether a command exceeded a limit."""
    return (done.error or "").startswith(("resource limit", "execution ")) or any(
        run.timed_out for run in python_runs
    )


def _apply(ended: python.Ended, fs: FileSystem) -> bytes:
    """Apply the changes of a run of Python, and return errors."""
    before = [path for path, is_folder in _walk(fs, "/") if is_folder and ended.folders]
    gone = [path for path, content in ended.files.items() if content is None]
    gone += [path for path in reversed(before) if path not in ended.folders]
    changes = [partial(fs.remove, path) for path in gone]
    changes += [partial(fs.mkdir, path, recursive=True) for path in ended.folders]
    changes += [partial(fs.write_file, path, new) for path, new in ended.files.items() if new is not None]
    refused = b""
    for change in changes:
        try:
            change()
        except RuntimeError as error:  # too large or deep, or a name with control characters
            refused += f"sh: cannot keep {change.args[0]!r}: {error}\n".encode()
    return refused


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
        began_s = time.process_time()
        done = play(json.loads(line)) if line.strip() else {"ready": bool(_known_names())}
        answer = {**done, "cpu_s": time.process_time() - began_s}
        sys.stdout.buffer.write(json.dumps(answer).encode() + b"\n")
        sys.stdout.buffer.flush()
