"""Lines that agents type, in `typed_lines.txt`, print and leave in a world what they do in bash."""

import shutil
import subprocess
import tempfile
from pathlib import Path
from typing import NamedTuple

import pytest

from pytest_openclaw.values.worlds import World
from pytest_openclaw.worlds.shell import Exec
from pytest_openclaw.worlds.workspace import Workspace

NEEDED = ("bash", "awk", "column", "diff", "jq", "xxd")
LEAST_SHARE = 0.9
PATIENCE_S = 60.0
LINES = (Path(__file__).parent / "typed_lines.txt").read_text("utf-8").splitlines()
FILES = {
    "a.txt": "one two\nthree\n\nfour five six\none two\n",
    "b.txt": "beta\n  indented line\nb.b*b\n[x] done\n",
    "notes.md": "# Notes\n- [ ] milk\n- [x] eggs\nTotal: 12.50 EUR\ntotal: 3\n",
    "data.csv": "id,name,price\n3,tea,2.50\n1,milk,0.99\n10,tea,3.00\n2,oat milk,1.20\n",
    "no_end.txt": "first\nlast without an end",
    "empty.txt": "",
    ".hidden": "KEY=abc\n",
    "config.ini": "# settings\n[server]\nport = 8080\nhost = localhost\n\n[log]\ndebug = false\n",
    "package.json": '{"name": "shop", "version": "1.4.0", "scripts": {"test": "vitest", "build": "vite build"},'
    ' "dependencies": {"left": "1.0", "right": "2.0"}}\n',
    "users.json": '[{"name": "ada", "age": 36, "team": "red", "email": "ada@example.org", "tags": ["a", "b"]},'
    ' {"name": "bob", "age": 28, "team": "blue"}, {"name": "cy", "age": 41, "team": "red", "tags": ["b"]}]\n',
    "src/app.py": "import os\n\n\ndef greet(name):  # NOTE: shorten\n    return 'hi ' + name\n\n\nclass App:\n    x = 10\n",
    "src/lib/util.py": "x = 1\nfoo = 'bar'\n",
    "src/lib/read me.md": "foo bar\n",
    "logs/night.log": "01:00 INFO started\n01:07 ERROR disk slow\n01:09 WARN retry\n02:30 ERROR disk slow\n03:41 ERROR gave up\n",
    "run.sh": "echo running in $PWD\nls src\n",
}  # fmt: skip
ENV = {"API_KEY": "k-4471", "GREETING": "hello  big world", "NOTHING": ""}


class Left(NamedTuple):
    stdout: str
    code: int
    files: dict[str, str]


def played(command):
    world = World(files=FILES, env=ENV)
    workspace = Workspace(world.files)
    ran = Exec(workspace, world).run(f"exec 2>/dev/null\n{command}")
    files = {place: text for place, text in workspace.files.items() if not place.startswith("/")}
    return Left(ran.output, ran.code, files)


def really(command):
    """The command in bash, in a temporary folder."""
    with tempfile.TemporaryDirectory() as folder:
        root = Path(folder).resolve() / "workspace"
        for name, text in FILES.items():
            file = root / name
            file.parent.mkdir(parents=True, exist_ok=True)
            file.write_text(text)
        done = subprocess.run(
            ["bash", "--norc", "-c", command],
            cwd=root,
            env={"PATH": "/usr/bin:/bin", "LC_ALL": "C.UTF-8", "PWD": str(root), **ENV},
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.DEVNULL,
            timeout=PATIENCE_S,
        )
        files = {
            path.relative_to(root).as_posix(): _text(path.read_bytes(), root)
            for path in root.rglob("*")
            if path.is_file()
        }
        return Left(_text(done.stdout, root), done.returncode, files)


def _text(data, root):
    return data.decode("utf-8", "surrogateescape").replace(str(root), "/workspace")


def differing():
    """The lines that differ, each with the played and the real output; archives differ in their times."""
    found = []
    for line in LINES:
        command = line.replace("⏎", "\n")
        left, right = played(command), really(command)
        archives = {name for name in right.files if name.endswith("gz")}
        left, right = (
            one._replace(files={name: "" if name in archives else text for name, text in one.files.items()})
            for one in (left, right)
        )
        if left != right:
            found.append((line, left, right))
    return found


@pytest.mark.newest
@pytest.mark.skipif(
    not all(map(shutil.which, NEEDED))
    or b"GNU" not in subprocess.run(["sed", "--version"], capture_output=True).stdout,
    reason="needs bash and GNU's programs",
)
def test_typed_lines_agree_with_bash(record_property):
    """At least nine of ten print, return and leave the same; the rest is listed if they are fewer."""
    different = differing()

    agreement = 1 - len(different) / len(LINES)
    record_property("agreement", f"{len(LINES) - len(different)} of {len(LINES)}")
    assert len(LINES) == 300
    assert agreement >= LEAST_SHARE, "\n".join(line for line, *_ in different)


if __name__ == "__main__":
    for typed, ours, theirs in (different := differing()):
        print(f"{typed}\n   world: {ours.stdout!r} {ours.code}\n    bash: {theirs.stdout!r} {theirs.code}")
        print("   files:", {name for name, _ in set(ours.files.items()) ^ set(theirs.files.items())})
    print(f"{len(LINES) - len(different)} of {len(LINES)} lines agree")
