"""Runs a grader on this machine, if a world cannot run it: on Linux, in namespaces of its own.

The grader and the files of the model that it starts see the system's programs and this Python, read only, no
network, no home, no other process, and so no key of one. The grader is the first process of its namespace: no
program in it can end the grader, and all end with it. Its result is in a file that only the grader has open;
other programs cannot see what a process has open that is not `dumpable`.
"""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import tempfile
import time
from collections.abc import Mapping
from contextlib import suppress
from functools import cache
from pathlib import Path
from shutil import which

import psutil

from pytest_openclaw.util.text import file_bytes
from pytest_openclaw.worlds.python import GRADER
from pytest_openclaw.worlds.shell import Ran
from pytest_openclaw.worlds.workspace import ROOT, absolute, is_inside

MOST_RESULT_BYTES, MOST_PROCESSES = 4 << 20, 256
_TICK_S = 0.05
_NAMESPACES = ("--user", "--map-root-user", "--mount", "--pid", "--net", "--ipc", "--uts")
_SHOWN = (
    *("/bin", "/sbin", "/lib", "/lib32", "/lib64", "/libx32", "/usr", "/etc/alternatives"),
    *("/etc/ld.so.cache", "/etc/passwd", "/etc/group"),
    *("/dev/null", "/dev/zero", "/dev/random", "/dev/urandom"),
)
_SETUP = """\
set -e
root=$1 given=$2 python=$3 script=$4
shift 4
mount -t tmpfs -o size=512m,mode=755 tmpfs "$root"
for path in "$@"; do
  mkdir -p "$root${path%/*}"
  if [ -L "$path" ]; then cp -P "$path" "$root$path"; continue
  elif [ -d "$path" ]; then mkdir -p "$root$path"
  elif [ -e "$path" ]; then touch "$root$path"
  else continue
  fi
  mount --rbind "$path" "$root$path"
  case $path in /dev/*) ;; *)
    mount -o remount,bind,ro "$root$path" || mount -o remount,bind,ro,nosuid,nodev "$root$path" ;;
  esac
done
mkdir -p "$root/proc" "$root/tmp" "$root/home" "$root/old"
mount -t proc -o ro proc "$root/proc" || true
cp -R "$given/." "$root"
mount --bind "$root/run/grader" "$root/run/grader"
mount -o remount,bind,ro "$root/run/grader"
for path in workspace tmp home; do mount --rbind "$root/$path" "$root/$path"; done
cd "$root"
pivot_root . old
umount -l /old
mount -o remount,bind,ro /
cd /workspace
exec setpriv --bounding-set=-all --inh-caps=-all --no-new-privs "$python" -I -B "$script"
"""
_ENV = {"PATH": "/usr/local/bin:/usr/bin:/bin:/usr/sbin:/sbin", "HOME": "/home", "LANG": "C.UTF-8"}


@cache
def why_not() -> str:
    """Return why this machine cannot keep a grader apart; empty if it can."""
    missing = [
        name for name in ("unshare", "setpriv", "pivot_root", "mount") if not which(name, path=_ENV["PATH"])
    ]
    if sys.platform != "linux" or missing:
        return "only Linux with util-linux can keep keys from a file of a model"
    played = grade({"try.py": "import os; os.write(1, b'ready')"}, "try.py", {}, 20.0)
    return "" if played.result == "ready" else f"it needs user namespaces: {played.output[-300:].strip()}"


def grade(own: Mapping[str, str], script: str, files: Mapping[str, str], seconds: float) -> Ran:
    """Run a grader's script; see `shell.grade`."""
    with tempfile.TemporaryDirectory(prefix="openclaw-", ignore_cleanup_errors=True) as scratch:
        given, root, result, errors = (Path(scratch, name) for name in ("given", "root", "result", "errors"))
        root.mkdir()
        (given / ROOT[1:]).mkdir(parents=True)
        # A file elsewhere, such as /etc/ld.so.preload, could run in the grader.
        laid_out = {absolute(path): text for path, text in files.items() if is_inside(path)}
        laid_out |= {f"{GRADER}/{path}": text for path, text in own.items()}
        for path, text in laid_out.items():
            with suppress(OSError, ValueError):  # a name that this machine's disk cannot have
                file = given / path.lstrip("/")
                file.parent.mkdir(parents=True, exist_ok=True)
                file.write_bytes(file_bytes(text))
        python = {sys.prefix, sys.base_prefix, str(Path(sys.base_prefix).resolve())}
        shown = [*_SHOWN, *(path for path in sorted(python) if not path.startswith("/usr"))]
        words = [*_NAMESPACES, "--fork", "--kill-child", "sh", "-c", _SETUP, "sh"]
        with result.open("wb") as output, errors.open("wb") as error_output:
            child = subprocess.Popen(  # noqa: S603
                ["unshare", *words, str(root), str(given), sys.executable, f"{GRADER}/{script}", *shown],  # noqa: S607
                stdin=subprocess.DEVNULL,
                stdout=output,
                stderr=error_output,
                cwd=scratch,
                env=_ENV,
                start_new_session=True,
            )
            try:
                code, timed_out = _wait(child, seconds), False
            except subprocess.TimeoutExpired:
                code, timed_out = -signal.SIGKILL, True
            finally:
                with suppress(OSError):
                    os.killpg(child.pid, signal.SIGKILL)
                child.wait()
        texts = [_end_of(file, most) for file, most in ((result, MOST_RESULT_BYTES), (errors, 2000))]
    return Ran(result=texts[0], output=texts[1], code=code, timed_out=timed_out)


def _wait(child: subprocess.Popen[bytes], seconds: float) -> int:
    """Return the status of a grader; its time is up if it starts too many processes, as root can."""
    deadline = time.monotonic() + seconds
    while time.monotonic() < deadline:
        with suppress(subprocess.TimeoutExpired):
            return child.wait(_TICK_S)
        if len(psutil.Process(child.pid).children(recursive=True)) > MOST_PROCESSES:
            break
    raise subprocess.TimeoutExpired(child.args, seconds)


def _end_of(file: Path, most: int) -> str:
    with file.open("rb") as opened:
        opened.seek(max(0, file.stat().st_size - most))
        return opened.read().decode("utf-8", "replace")
