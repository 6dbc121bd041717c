"""Tasks of public suites in whole sessions: played, graded in a world, and summarized."""

import pytest

from pytest_openclaw.cli import main

pytestmark = [pytest.mark.newest, pytest.mark.usefixtures("world_python")]

PROVIDER = """
class Clerk(Provider):
    name = "clerk"
    takes_tools = True

    async def ask(self, request):
        if request.model == "lazy":
            return Reply(text="I will do it later.")
        if request.history:
            return Reply(text="Done.")
        command = "grep -c . data/list.txt > count.txt && cp data/photo.bin copy.bin"
        return Reply(tool_calls=(ToolCall(name="exec", arguments=json.dumps({"command": command})),))


PROVIDERS.append(Clerk)
"""
HEAD = "---\nid: {id}\nname: {id}\ncategory: {category}\ngrading_type: {kind}\ntimeout_seconds: 60\n"
FILES = """workspace_files:
  - path: data/list.txt
    content: |
      milk
      bread
  - source: photos/photo.bin
    dest: data/photo.bin
"""
BODY = "---\n\n## Prompt\n\nCount the lines of data/list.txt into count.txt.\n\n## Automated Checks\n\n```python\n"
COUNTED = """def grade(transcript: list, workspace_path: str) -> dict:
    import os
    from pathlib import Path

    print("graders may print")
    folder = Path(workspace_path)
    count, copy = folder / "count.txt", folder / "copy.bin"
    calls = [
        item["arguments"]["command"]
        for event in transcript if event["type"] == "message" and event["message"]["role"] == "assistant"
        for item in event["message"]["content"] if item["type"] == "toolCall" and item["name"] == "exec"
    ]
    return {
        "counted": 1.0 if count.exists() and count.read_text().strip() == "2" else 0.0,
        "copied": float(copy.exists() and copy.read_bytes() == (folder / "data/photo.bin").read_bytes()),
        "kept": float((folder / "data/photo.bin").read_bytes() == bytes(range(256))),
        "called": bool(calls),
        "alone": float("LAB_KEY" not in os.environ),
        "note": "no number",
    }
"""


def write_task(project, name, code, *, category="files", kind="automated"):
    text = HEAD.format(id=name, category=category, kind=kind) + FILES + BODY + code + "```\n"
    project.write(f"skill/tasks/{name}.md", text)


@pytest.fixture
def skill(project):
    project.extend_conftest(PROVIDER)
    project.write("skill/assets/photos/photo.bin", "").write_bytes(bytes(range(256)))
    write_task(project, "task_count", COUNTED)
    write_task(project, "task_essay", COUNTED, kind="llm_judge")
    return project


@pytest.mark.under_workers
def test_tasks_are_graded(skill):
    """The world's files and the transcript reach `grade`; its scores are in rows, summary and reports."""
    write_task(skill, "task_again", COUNTED, category="again", kind="hybrid")

    session = skill.run(models="clerk/good,clerk/lazy", target="skill/tasks")

    session.outcomes(passed=2, failed=2, skipped=1)
    rows = {(row["prompt_id"], row["model"]): row for row in session.rows}
    assert rows["task_count", "good"]["parsed_output"] == {
        "score": 1.0,
        "criteria": dict.fromkeys(("counted", "copied", "kept", "called", "alone"), 1.0),
    }
    lazy = rows["task_count", "lazy"]
    assert (lazy["parsed_output"]["score"], lazy["objective_pass"]) == (0.4, False)
    assert lazy["violation"] == 'score 0.40 of 1; missed: "counted", "copied", "called"'
    (part,) = session.summary["added"]
    good = part["value"]["clerk/good"]
    assert (good["n"], good["score"], good["high"]) == (2, 1.0, 1.0)
    assert {name: one["score"] for name, one in good["categories"].items()} == {"again": 1.0, "files": 1.0}
    assert part["tables"][0]["rows"][0][1] == "2, 1 without their judge"
    assert rows["task_again", "good"]["parsed_output"]["without_judge"] == 0.5
    assert part["tables"][1]["rows"] == [["again", "1.00", "0.40"], ["files", "1.00", "0.40"]]
    assert "mean score 0.40" in session.text


def test_the_score_from_which_a_task_passes(skill):
    """An option or an ini key sets it."""
    lenient = skill.run("--openclaw-tasks-pass=0.4", models="clerk/lazy", target="skill/tasks")
    lenient.outcomes(passed=1, skipped=1)


SESSIONS = """sessions:
  - {id: store, prompt: "Remember Rust."}
  - {id: recall, new_session: true, prompt: "What is my language?"}
"""
RECALLED = """def grade(transcript, workspace_path):
    texts = [
        (event["message"]["role"], event["message"]["content"][0]["text"])
        for event in transcript if event["type"] == "message"
    ]
    return {"texts": texts == [
        ("user", "Remember Rust."), ("assistant", "I know 1."),
        ("user", "What is my language?"), ("assistant", "I know 1."),
    ]}
"""
MEMORY = """
class Memory(Provider):
    name = "memory"
    takes_tools = takes_messages = True

    async def ask(self, request):
        return Reply(text=f"I know {len(request.conversation)}.")


PROVIDERS.append(Memory)
"""


@pytest.mark.under_workers
def test_tasks_of_a_manifest_and_their_sessions(skill):
    """They run in its order, with its categories; a new session has nothing of the conversation before."""
    skill.extend_conftest(MEMORY)
    write_task(skill, "task_about", COUNTED)
    head = HEAD.format(id="task_second", category="x", kind="automated")
    skill.write("skill/tasks/task_second.md", f"{head}{SESSIONS}{BODY}{RECALLED}```\n")
    manifest = (
        "run_first: [task_second]\ncategories: {files: [task_count, task_about], notes: [task_second]}\n"
    )
    skill.write("skill/tasks/manifest.yaml", manifest)

    session = skill.run("-rs", models="memory/m", target="skill/tasks")
    collected = skill.run("--collect-only", "-q", models="memory/m", target="skill/tasks").text

    session.outcomes(passed=1, failed=2, skipped=1)
    rows = {row["prompt_id"]: row for row in session.rows}
    assert (rows["task_second"]["objective_pass"], rows["task_second"]["category"]) == (True, "notes")
    assert "manifest.yaml does not list it" in session.text
    places = [collected.index(f"{name}[") for name in ("task_second", "task_count", "task_about")]
    assert places == sorted(places)


@pytest.mark.under_workers
def test_a_broken_task_is_a_collection_error(skill):
    """It names the file and what is wrong; nothing is asked. Tasks of an unnamed folder are not collected."""
    skill.write("skill/tasks/task_bare.md", "id: task_bare\n\n## Prompt\n\nHello\n")

    session = skill.run(models="clerk/good", target="skill/tasks")
    unnamed = skill.run(models="clerk/good", target="skill")

    session.outcomes(errors=1)
    assert "skill/tasks/task_bare.md: has no front matter." in session.text
    assert unnamed.status == pytest.ExitCode.NO_TESTS_COLLECTED
    assert (session.has_run, unnamed.has_run) == (False, False)


def test_stored_runs_keep_their_scores(skill):
    """A merged run has the scores of all; `rescore` runs no grader and keeps the verdicts."""
    for run_id in ("one", "two"):
        skill.run(f"--openclaw-run-id={run_id}", models=f"clerk/{run_id}", target="skill/tasks")

    assert main(["merge", "one", "two", "--into", "both"]) == 0
    assert main(["rescore", "both"]) == 0

    for run_id in ("both", "both-rescored"):
        (part,) = skill.stored(run_id).load("summary.json")["added"]
        scores = {label: one["score"] for label, one in part["value"].items()}
        assert scores == {"clerk/one": 1.0, "clerk/two": 1.0}


def write_bench(project, name, solution, setup=""):
    folder = f"x/share/claw-bench/tasks/files/{name}"
    project.write(f"{folder}/task.toml", f'id = "{name}"\ntitle = "{name}"\ndomain = "files"\n')
    project.write(f"{folder}/instruction.md", "Write ab into `workspace/out.txt`.")
    project.write(f"{folder}/environment/setup.sh", setup)
    check = 'import os\n\n\ndef test_ab():\n    assert open(os.environ["WORKSPACE"] + "/out.txt").read() == "ab"\n'
    project.write(f"{folder}/verifier/test_output.py", check)
    if solution is not None:
        project.write(f"{folder}/solution/solve.sh", solution)


@pytest.mark.under_workers
def test_an_oracle_plays_reference_solutions(project):
    """It asks no model; a broken task is one collection error, and checks are not collected as tests."""
    write_bench(project, "right", 'printf ab > "$1/out.txt"')
    write_bench(project, "wrong", 'printf ba > "$1/out.txt"')
    write_bench(project, "none", None)
    tasks = "x/share/claw-bench/tasks"

    session = project.run("--openclaw-oracle", "-rs", "--openclaw-run-id=a", models=None, target=tasks)
    write_bench(project, "broken", "", setup="exit 3")
    broken = project.run(
        "--openclaw-oracle",
        "--continue-on-collection-errors",
        "--openclaw-run-id=b",
        models=None,
        target=tasks,
    )

    session.outcomes(passed=1, failed=1, skipped=1)
    criteria = {row["prompt_id"]: row["parsed_output"]["criteria"] for row in session.rows}
    assert criteria == {"right": {"test_ab": 1.0}, "wrong": {"test_ab": 0.0}}
    assert "it has no reference solution" in session.text
    broken.outcomes(passed=1, failed=1, skipped=1, errors=1)
    assert "environment/setup.sh failed with status 3" in broken.text


def test_an_oracle_of_an_unknown_package(project):
    """It needs a package that it knows."""
    unknown = project.run("--openclaw-tasks=no-bench", "--openclaw-oracle", models=None)

    assert "--openclaw-tasks=no-bench: give claw-bench" in unknown.words
