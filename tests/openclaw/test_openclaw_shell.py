"""The program that replaces the shell, called as OpenClaw calls it; OpenClaw itself is not needed."""

import asyncio
import os
import subprocess
import sys
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack, contextmanager
from dataclasses import replace
from pathlib import Path

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from pytest_openclaw.providers.chat_completions import OllamaOpenAI
from pytest_openclaw.providers.openclaw.call import scratch_folder
from pytest_openclaw.providers.openclaw_agent import Relay
from pytest_openclaw.values.protocols import ProviderSetup
from pytest_openclaw.values.requests import Request
from pytest_openclaw.values.worlds import ScriptedCommand, World
from pytest_openclaw.worlds.shell import Exec, Ran
from pytest_openclaw.worlds.workspace import ToolError, Workspace
from tests.searching import examples

pytestmark = [
    pytest.mark.newest,
    pytest.mark.skipif(sys.platform == "win32", reason="OpenClaw has another shell on Windows"),
]

PATIENCE_S = 60.0


@contextmanager
def _staged(**world):
    """The folders of a call, with the relay that plays commands."""
    request = Request(model="tiny", prompt="Hi", world=World(**world))
    server = OllamaOpenAI(ProviderSetup(name="local", base_url="http://127.0.0.1:9/v1"))
    loop = asyncio.new_event_loop()
    with scratch_folder(request.world) as scratch, ThreadPoolExecutor(1) as pool:
        relay = Relay(server, "tiny", name="local", request=request, scratch=scratch)
        running = relay.running()
        scratch.connect_shell(*loop.run_until_complete(running.__aenter__()))
        pool.submit(loop.run_forever)
        yield scratch
        loop.call_soon_threadsafe(loop.stop)
    loop.run_until_complete(running.__aexit__(None, None, None))
    loop.run_until_complete(loop.shutdown_default_executor())
    loop.close()
    assert relay.failure is None


@pytest.fixture
def staged():
    with ExitStack() as stack:
        yield lambda **world: stack.enter_context(_staged(**world))


def _sh(scratch, *arguments, cwd=None, **environ):
    streams = {"stdin": subprocess.DEVNULL, "stdout": subprocess.PIPE, "stderr": subprocess.STDOUT}
    given = {"cwd": cwd or scratch.workspace, "env": {"PATH": os.defpath} | environ, **streams}
    done = subprocess.run([str(scratch.shell), *arguments], timeout=PATIENCE_S, **given)
    return done.returncode, done.stdout.decode()


def test_a_command_is_played_on_the_files(staged):
    """Ordinary programs read and change the files on disk, and the exit status is passed on."""
    world = {"files": {"a.txt": "one\n", "deep/b.txt": "two\n"}}
    scratch = staged(**world)

    assert _sh(scratch, "-c", "cat a.txt deep/b.txt") == (0, "one\ntwo\n")
    assert _sh(scratch, "-c", "mv a.txt c.txt && rm -r deep && mkdir empty") == (0, "")
    assert _sh(scratch, "-c", "ls") == (0, "c.txt\nempty\n")
    assert _sh(scratch, "-c", "cat a.txt") == (1, "cat: a.txt: No such file or directory\n")
    assert sorted(path.name for path in scratch.workspace.iterdir()) == ["c.txt", "empty"]
    state = scratch.state()
    assert state.files == {"c.txt": "one\n"}
    assert state.changed == ("a.txt", "c.txt", "deep/b.txt")
    assert state.ran[0] == "cat a.txt deep/b.txt"
    assert len(state.ran) == 4


def test_a_suites_commands_answer(staged):
    """A scripted command answers while its files have the required state, and its files stay."""
    fits = ScriptedCommand(
        pattern="make check", when={"V": r"2\s*"}, output="ok", writes={"log": "passed\n"}, removes=("V",)
    )
    fails = ScriptedCommand(pattern="make check", output="V is old", exit_code=3)
    world = {"files": {"V": "1"}, "commands": (fits, fails)}
    scratch = staged(**world)

    assert _sh(scratch, "-c", " make check ") == (3, "V is old")
    (scratch.workspace / "V").write_text("2\n")  # as OpenClaw's own tools write it
    assert _sh(scratch, "-c", "make check") == (0, "ok")
    assert scratch.state().files == {"log": "passed\n"}


def test_no_command_is_run(staged, tmp_path):
    """A command that no world plays is not found on any machine; nothing outside is touched."""
    secret = tmp_path / "secret"
    secret.write_text("hidden")
    scratch = staged(files={"a.txt": "one\n"})

    for command, code in {
        f"cat {secret}": 1,
        f"cp a.txt {tmp_path}/b.txt": 1,
        f"echo x > {tmp_path}/c.txt": 1,
        f"rm -rf {tmp_path}": 0,
        f"{sys.executable} -c 'print(1)'": 127,
        f"touch {tmp_path}/d; nc": 127,
        "cat ../shell.py ../openclaw.json": 1,
        f"echo `nc`; echo $(touch {tmp_path}/e)": 0,
    }.items():
        status, printed = _sh(scratch, "-c", command)
        assert (status, "hidden" in printed) == (code, False), command
    assert [file.name for file in tmp_path.iterdir()] == ["secret"]
    assert _sh(scratch, "-c", "cat secret", cwd=tmp_path)[0] == 1
    assert _sh(scratch)[0] == 2
    assert _sh(scratch, "-c", "pwd; cat a.txt", PYTHONPATH=str(tmp_path), PYTHONHOME="/nowhere")[0] == 0


def test_files_outside_the_workspace_are_not_on_the_disk(staged):
    """Commands can read and remove them anyway."""
    world = {"files": {"~/.ssh/id": "secret\n", "/etc/motd": "hi\n", "a": ""}}
    scratch = staged(**world)

    assert _sh(scratch, "-c", "cat ~/.ssh/id /etc/motd") == (0, "secret\nhi\n")
    assert _sh(scratch, "-c", "rm -rf ~/.ssh") == (0, "")
    assert _sh(scratch, "-c", "cat ~/.ssh/id")[0] == 1
    state = scratch.state()
    assert state.changed == ("/home/openclaw/.ssh/id",)
    assert state.files == {"a": "", "/etc/motd": "hi\n"}
    assert [file.name for file in scratch.workspace.iterdir()] == ["a"]


def test_the_workspace_has_two_names(staged):
    """The suite's /workspace has its real name on the disk, in commands and in their output."""
    world = {"files": {"a.txt": "see /workspace/b.txt, not /workspace-2 or x/workspace\n", "b.txt": "B\n"}}
    scratch = staged(
        **world, commands=(ScriptedCommand(pattern="show /workspace/b.txt", output="B of /workspace"),)
    )
    here = str(scratch.workspace)

    assert f"see {here}/b.txt, not /workspace-2 or x/workspace" in (scratch.workspace / "a.txt").read_text()
    assert _sh(scratch, "-c", "pwd") == (0, f"{here}\n")
    assert _sh(scratch, "-c", f"show {here}/b.txt") == (0, f"B of {here}")
    assert _sh(scratch, "-c", f"cat {here}/b.txt > {here}/c.txt") == (0, "")
    assert _sh(scratch, "-c", f"echo {here}/x >> a.txt") == (0, "")
    state = scratch.state()
    assert state.ran[1] == "show /workspace/b.txt"
    assert state.files["a.txt"] == world["files"]["a.txt"] + "/workspace/x\n"
    assert state.changed == ("a.txt", "c.txt")


def test_commands_at_once_lose_nothing(staged):
    """Concurrent commands are played one after another."""
    scratch = staged(files={"log": ""})
    numbers = range(8)
    with ThreadPoolExecutor(len(numbers)) as pool:
        for number in numbers:
            pool.submit(_sh, scratch, "-c", f"echo {number} >> log")

    state = scratch.state()
    assert sorted(state.files["log"].split()) == [str(number) for number in numbers]
    assert len(state.ran) == len(numbers)


NAMES = ["a", "d", "d/e/f", "/workspace/g", "g/k", "~/h", "../x"]
PROGRAMS = ["cat", "rm", "rm -r", "mkdir", "mkdir -p", "touch", "ls -a", "cd", "make"]
NAME = st.sampled_from(NAMES)
COMMANDS = st.one_of(
    st.builds("{} {}".format, st.sampled_from(PROGRAMS), NAME),
    st.builds("{} {} {}".format, st.sampled_from(["cp", "mv"]), NAME, NAME),
    st.builds("echo /workspace {} {}".format, st.sampled_from([">", ">>"]), NAME),
)


@examples(25)
@given(commands=st.lists(COMMANDS, min_size=1, max_size=8))
@example(commands=["mkdir g", "touch g/k", "rm g/k"])
@example(commands=["rm d/e/f"])
@example(commands=["mkdir g/k", "rm -r g/k"])
def test_on_the_disk_as_in_memory(commands):
    """Commands played one by one on the disk print and leave the same as in a scripted exchange."""
    made = ScriptedCommand(
        pattern="make d", output="made", writes={"/log": "x", "new/y": "Y"}, removes=("d/e/f",)
    )
    world = World(files={"a": "A\n", "d/e/f": "F at /workspace\n", "~/h": "H\n"}, commands=(made,))
    commands = [*commands, "ls -a . d g"]
    workspace = Workspace(world.files)
    memory = Exec(workspace, world)
    expected = [_run(memory, command) for command in commands]

    with scratch_folder(world) as scratch:
        here = str(scratch.workspace)
        ran = [scratch.play(here, ["-c", command.replace("/workspace", here)]) for command in commands]
        state = scratch.state()

    assert [replace(one, output=one.output.replace(here, "/workspace")) for one in ran] == expected
    assert (state.files, state.ran) == (workspace.files, tuple(memory.ran))


def _run(shell, command):
    try:
        return shell.run(command)
    except ToolError as error:
        return Ran(f"sh: {error}", 1)


def test_a_name_that_the_disk_refuses(staged):
    """A command that needs such a file fails as on any disk, and the world continues."""
    scratch = staged(files={"a": "A\n"})
    name = "x" * 300

    assert _sh(scratch, "-c", f"cp a {name}")[0] == 1
    assert _sh(scratch, "-c", f"mkdir -p {name}/b; cat a")[1].endswith("A\n")
    assert _sh(scratch, "-c", "cat a") == (0, "A\n")


def test_a_file_that_goes_while_it_is_read(staged, monkeypatch):
    """OpenClaw's own tools work at the same time: a file that they remove is missing, and nothing breaks."""
    scratch = staged(files={"a": "A\n", "b": "B\n"})
    read_bytes = Path.read_bytes

    def taken(path):
        if path.name == "a":
            path.unlink()
        return read_bytes(path)

    monkeypatch.setattr(Path, "read_bytes", taken)

    assert scratch.play(str(scratch.workspace), ["-c", "ls; cat b"]) == Ran("b\nB\n", 0)
