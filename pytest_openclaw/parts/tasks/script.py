"""A script that grades a task, in a world's Python or in a child on the machine; nothing imports it.

Its folder has `task.json`: the path of the `workspace`, and the file of a `grader` with its `arguments`: of
`pytest` if they are a list, or of those functions of the file that it has. The result is lines of JSON: of
pytest `{"checks": [names]}`, `{"check": name, "passed": bool}` for each, and `{"ended": true}`; of functions
`{"scores": {name: …}}`; or `{"error": text}`.
"""

from __future__ import annotations

import contextlib
import io
import json
import os
import shlex
import subprocess
import sys
import threading
import traceback
import types
from pathlib import Path
from typing import Any

FOLDER = Path(__file__).parent
PR_SET_DUMPABLE = 4
CO_VARARGS = 4
#: on the machine: bytes of memory and of a file, for each process, and processes
LIMITS = {"RLIMIT_AS": 2 << 30, "RLIMIT_FSIZE": 64 << 20, "RLIMIT_NPROC": 256, "RLIMIT_CORE": 0}


class Result:
    """The channel of the result, which no program that a grader starts can write."""

    def __init__(self, file: Any) -> None:
        self._file = file

    def put(self, **line: Any) -> None:
        """Write a line at once, so that it stays if the process is ended."""
        self._file.write(json.dumps(line, default=str).encode() + b"\n")
        self._file.flush()

    def error(self, error: BaseException) -> None:
        """Write an error, with the last line of the grader's own code."""
        frames = traceback.extract_tb(error.__traceback__)
        own = [one for one in frames if one.filename.startswith(str(FOLDER)) and one.filename != __file__]
        in_code = f" (line {own[-1].lineno} of its code)" if own else ""
        self.put(error=f"{type(error).__name__}: {error}{in_code}")

    # --- as a plugin of pytest ---

    def pytest_collection_finish(self, session: Any) -> None:
        """Write the names of the checks."""
        self.put(checks=[item.nodeid.partition("::")[2] for item in session.items])

    def pytest_collectreport(self, report: Any) -> None:
        """Write why the file cannot be collected."""
        if report.failed:
            self.put(error=str(report.longrepr)[-1000:])

    def pytest_runtest_logreport(self, report: Any) -> None:
        """Write what became of a check: a failure in any phase, or its call."""
        if report.when == "call" or not report.passed:
            passed = None if report.skipped else report.passed
            self.put(check=report.nodeid.partition("::")[2], passed=passed)


def grade(task: dict[str, Any], result: Result) -> None:
    """Grade a task."""
    try:
        file, arguments = str(FOLDER / task["grader"]), task["arguments"]
        if isinstance(arguments, list):
            import pytest

            options = ["-q", "--tb=line", "--capture=sys", "-p", "no:cacheprovider", "-p", "no:faulthandler"]
            options += ["-c", str(FOLDER / "pytest.ini"), f"--rootdir={FOLDER}", "--basetemp=/tmp/checks"]
            pytest.main([*options, *arguments, file], plugins=[result])
            result.put(ended=True)
        else:
            module = sys.modules["grade"] = types.ModuleType("grade")
            module.__file__, names = file, vars(module)
            exec(compile(Path(file).read_bytes(), file, "exec", dont_inherit=True), names)  # noqa: S102
            result.put(
                scores={name: call(names[name], arguments[name]) for name in arguments if name in names}
            )
    except BaseException as error:  # sys.exit is not an Exception
        result.error(error)


def call(function: Any, given: list[Any]) -> Any:
    """Call a function, which may take fewer arguments."""
    code: Any = getattr(function, "__code__", None)
    takes_all = code is None or code.co_flags & CO_VARARGS
    return function(*(given if takes_all else given[: code.co_argcount]))


# --- in a world -----------------------------------------------------------------------------------


class WorldPopen:
    """A program that a grader starts: it runs in the world's shell when its result is needed."""

    def __init__(self, args: Any, *_: Any, shell: bool = False, **options: Any) -> None:
        given: list[Any] = [args] if isinstance(args, str | bytes | os.PathLike) else [*args]
        words = [os.fsdecode(word) for word in given]
        self.args, self.pid = args, 1
        self.returncode: int | None = None
        self._command = words[0] if shell else shlex.join(words)
        self._shell, self._options = shell, options
        is_text = any(options.get(key) for key in ("text", "universal_newlines", "encoding", "errors"))
        file: Any = io.StringIO if is_text else io.BytesIO
        self.stdin, self._printed = file(), {"stdout": file(), "stderr": file()}

    def __class_getitem__(cls, _: Any) -> Any:
        return cls

    def __enter__(self) -> WorldPopen:
        return self

    def __exit__(self, *_: object) -> None:
        self.wait()

    def communicate(self, input: Any = None, timeout: float | None = None) -> tuple[Any, Any]:
        """Run the program, and return what it printed into pipes."""
        if self.returncode is None:
            source: Any = self._options.get("stdin")
            data = source.read() if hasattr(source, "read") else input or self.stdin.getvalue()
            self._run(data if isinstance(data, str) else data.decode("utf-8", "replace"), timeout)
        pipes = (self._options.get(name) == subprocess.PIPE for name in self._printed)
        out, err = (
            file.getvalue() if is_pipe else None
            for file, is_pipe in zip(self._printed.values(), pipes, strict=True)
        )
        return out, err

    def _run(self, data: str, seconds: float | None) -> None:
        env = self._options.get("env") or os.environ
        answer = call_host(
            command=self._command,
            folder=str(Path(os.fsdecode(self._options.get("cwd") or ".")).resolve()),
            env={os.fsdecode(key): os.fsdecode(value) for key, value in env.items()},
            stdin=data,
            **({} if seconds is None else {"seconds": seconds}),
        )
        self.returncode = -9 if answer["timed_out"] else answer["code"]
        if answer["timed_out"] and seconds is not None:
            raise subprocess.TimeoutExpired(self.args, seconds)
        if self.returncode == 127 and not self._shell and "command not found" in answer["stderr"]:
            raise FileNotFoundError(2, "No such file or directory", self._command)
        if self._options.get("stderr") == subprocess.STDOUT:
            answer["stdout"] += answer["stderr"]
        for name, printed in self._printed.items():
            target: Any = self._options.get(name)
            file = target if hasattr(target, "write") else printed
            file.write(answer[name] if isinstance(file, io.TextIOBase) else answer[name].encode())
            file.seek(0)

    def wait(self, timeout: float | None = None) -> int | None:
        """Run the program."""
        self.communicate(timeout=timeout)
        return self.returncode

    poll = wait

    @property
    def stdout(self) -> Any:
        """What it printed, as a file."""
        self.wait()
        return self._printed["stdout"]

    @property
    def stderr(self) -> Any:
        """What it printed on its second channel, as a file."""
        self.wait()
        return self._printed["stderr"]

    def kill(self) -> None:
        """Do nothing, as it has ended."""

    terminate = kill


def call_host(**request: Any) -> dict[str, Any]:
    """Send a request, and apply the changes of files in the answer."""
    (FOLDER / "request.json").write_text(json.dumps(request))
    os.sched_yield()
    answer: dict[str, Any] = json.loads((FOLDER / "answer.json").read_text())
    for folder in answer["folders"]:
        Path(folder).mkdir(parents=True, exist_ok=True)
    for path, text in answer["files"].items():
        if text is None:
            Path(path).unlink(missing_ok=True)
        else:
            Path(path).parent.mkdir(parents=True, exist_ok=True)
            Path(path).write_bytes(text.encode("utf-8", "surrogateescape"))
    for folder in answer["gone"]:
        with contextlib.suppress(OSError):
            Path(folder).rmdir()
    return answer


def enter_world() -> None:
    """Have programs run in the world's shell."""
    subprocess.Popen = WorldPopen  # type: ignore[assignment, misc]
    os.system = lambda command: WorldPopen(command, shell=True).wait() or 0  # noqa: S604
    os.chmod = lambda *_, **__: None  # the shell knows scripts by their first line
    threading.Thread.start = threading.Thread.run  # type: ignore[method-assign]
    threading.Thread.join = lambda *_: None  # type: ignore[method-assign]


def main() -> None:
    """Grade the task of this folder."""
    task = json.loads((FOLDER / "task.json").read_text())
    sys.path.insert(0, str(FOLDER))
    os.environ["PYTEST_DISABLE_PLUGIN_AUTOLOAD"] = "1"
    os.environ["WORKSPACE"] = task["workspace"]  # as some verifiers of claw-bench read it
    if sys.platform == "wasi":
        enter_world()
        with (FOLDER / "result.jsonl").open("wb") as file:
            grade(task, Result(file))
        return
    import ctypes
    import resource
    import signal

    signal.signal(signal.SIGINT, signal.SIG_DFL)  # which Linux keeps from a first process
    ctypes.CDLL(None).prctl(PR_SET_DUMPABLE, 0, 0, 0, 0)
    for limit, most in LIMITS.items():
        resource.setrlimit(getattr(resource, limit), (most, most))
    with os.fdopen(os.dup(1), "wb") as file:  # which no program inherits
        os.dup2(2, 1)
        grade(task, Result(file))


if __name__ == "__main__":
    main()
