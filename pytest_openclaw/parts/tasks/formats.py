"""Reads tasks of three public suites, each a file that is a suite of one prompt with a world.

claw-bench 0.1.0 has a folder with `task.toml`: `instruction.md`, `environment/setup.sh` with its data, a
pytest file in `verifier/`, and `solution/solve.sh`. PinchBench up to 2.0 (github.com/pinchbench/skill) has
files `task_*.md`: YAML between lines `---`, then sections `## Title`. OpenClawProBench 1.1
(github.com/suyoumo/OpenClawProBench) has `scenarios/*/*.yaml`, whose checks may import `harness`.
"""

from __future__ import annotations

import ast
import re
import sysconfig
import tomllib
from collections.abc import Iterable, Sequence
from functools import partial
from importlib import metadata
from itertools import takewhile
from math import inf
from pathlib import Path
from typing import Any, Literal

import pytest
from msgspec import Struct

from pytest_openclaw.parts.tasks.grading import Grader, Score, mean_score, numbers_in, trace_of, transcript_of
from pytest_openclaw.parts.tasks.task import Task, functions_with, imported, imported_words
from pytest_openclaw.util.files import DEEPEST, is_deeper, read_whole
from pytest_openclaw.util.text import valid_text
from pytest_openclaw.util.typed import Amount, Count, Filled, PositiveAmount, converted, shown
from pytest_openclaw.values.replies import Reply
from pytest_openclaw.values.requests import NEW
from pytest_openclaw.worlds import python, shell
from pytest_openclaw.worlds.workspace import ROOT, is_inside, normal_path

MOST_SPEC_BYTES, MOST_FILE_BYTES = 1 << 18, 64 << 20  # of a description, and of all files together
_TOO_LARGE = f"has more than {MOST_FILE_BYTES >> 20} MiB"

# --- claw-bench -----------------------------------------------------------------------------------

_TASK, _CHECKS = "/task", "verifier/test_output.py"
_INSTALLED = {"claw-bench": "share/claw-bench/tasks"}
SETUP_S = 60.0
_CONFTEST = 'def pytest_addoption(parser):\n    parser.addoption("--workspace")\n'
#: as claw-bench's `core/runner.py` begins a prompt, in which it makes the paths of files absolute
_PREAMBLE = f"""\
IMPORTANT: You must write all output files to the absolute path: {ROOT}/
Do NOT use relative paths. Use the exact absolute path above.
Execute shell commands to create the required files.

"""


class ClawBenchTask(Struct):
    """The file `task.toml`; other keys are for claw-bench's own program."""

    id: Filled
    timeout: PositiveAmount = 300
    title: str = ""
    domain: str | None = None
    level: str = ""
    tags: list[str] = []


def read_claw_bench(file: Path) -> Task:
    """Return the task of a file `task.toml`."""
    folder = file.parent
    table = tomllib.loads(_spec(file))
    if is_deeper(table, DEEPEST):
        raise RecursionError
    spec = converted(table, ClawBenchTask)
    if not python.is_installed():  # it is needed by the setup of the workspace
        return Task(id=spec.id, left_out=python.hint())
    prompt, files = _text_in(folder, "instruction.md"), texts_in(folder, "verifier")
    if prompt is None or _CHECKS not in files:
        raise ValueError(f"has no {_CHECKS if prompt else 'instruction.md'}.")
    files["conftest.py"] = _text_in(folder.parent.parent, "conftest.py") or _CONFTEST
    return Task(
        id=spec.id,
        name=spec.title,
        prompt=_PREAMBLE + prompt.replace("workspace/", f"{ROOT}/").strip(),
        timeout_s=spec.timeout,
        files=_set_up(folder),
        grader=Grader(run=_CHECKS, files=files, arguments=_bench_arguments),
        solution=_text_in(folder, "solution/solve.sh"),
        labels={"category": spec.domain, "tags": tuple(filter(None, (spec.level, *spec.tags)))},
    )


def _bench_arguments(_: Reply) -> list[str]:
    return [f"--workspace={ROOT}"]


def _set_up(folder: Path) -> dict[str, str]:
    """Return the workspace: the task's own files, and the files that its setup script writes in a world.

    Some scripts ignore the path of the workspace, and write into the folder of the task.
    """
    given, script = texts_in(folder, "workspace"), "environment/setup.sh"
    task = {f"{_TASK}/{path}": text for path, text in (texts_in(folder, "environment") | given).items()}
    if f"{_TASK}/{script}" in task:
        done = shell.play(f"bash {_TASK}/{script} {ROOT}", task, SETUP_S)
        if done.code or done.timed_out:
            raise ValueError(f"{script} failed with status {done.code}: {done.output[-300:]}")
        prefix = f"{_TASK}/workspace/"
        given = {
            path.removeprefix(prefix): text for path, text in done.files.items() if path.startswith(prefix)
        }
        given |= {path: text for path, text in done.files.items() if not path.startswith("/")}
    return {path.removeprefix("workspace/"): text for path, text in given.items()}


def installed_tasks(name: str) -> str:
    """Return the folder of the tasks that a package has installed.

    Raises:
        pytest.UsageError: there is none.
    """
    below = _INSTALLED.get(name)
    if below is None:
        known = ", ".join(_INSTALLED)
        raise pytest.UsageError(f"--openclaw-tasks={name}: give {known}, or name a folder of tasks.")
    try:
        files = metadata.files(name) or []
    except metadata.PackageNotFoundError:
        files = []
    marks = (str(file.locate()).partition(f"{below}/") for file in files)
    before = next((before for before, mark, _ in marks if mark), sysconfig.get_path("data"))
    if not (folder := Path(before, below)).is_dir():
        raise pytest.UsageError(f"--openclaw-tasks={name}: not installed. Run: pip install --no-deps {name}")
    return str(folder.resolve())


# --- PinchBench -----------------------------------------------------------------------------------

_FRONT_MATTER = re.compile(r"\A---[ \t]*\n(.*?)^---[ \t]*$\n?", re.DOTALL | re.MULTILINE)
_CODE = re.compile(r"^```python[ \t]*\n(.*?)^```", re.DOTALL | re.MULTILINE)
_MANIFEST = "manifest.yaml"
_LISTS = dict[str, list[str] | dict[str, list[str] | None] | None]


class FileSpec(Struct):
    """A file of the workspace: `path` with `content`, or `source` in a folder of the suite with `dest`."""

    path: str = ""
    content: str | None = None
    source: str = ""
    dest: str = ""

    def __post_init__(self) -> None:
        if not (self.path and self.content is not None) and not (self.source and (self.dest or self.path)):
            raise ValueError("has neither path with content nor source with dest.")


class PinchBenchTask(Struct):
    """The front matter; other keys are for PinchBench's own program."""

    id: Filled
    grading_type: Literal["automated", "hybrid", "llm_judge"] = "automated"
    timeout_seconds: PositiveAmount = 120
    name: str = ""
    category: str | None = None
    workspace_files: list[FileSpec] | None = None
    sessions: list[Filled | dict[str, Any]] | None = None
    prerequisites: list[str] | None = None
    grading_weights: dict[str, Amount] | None = None


def read_pinch_bench(file: Path) -> Task:
    """Return the task of a file; it is left out if only a judge grades it."""
    text = _spec(file)
    found = _FRONT_MATTER.match(text)
    if found is None:
        raise ValueError("has no front matter. Begin it with a line --- and end that part with another.")
    spec = converted(_parsed_yaml(found[1], "its front matter"), PinchBenchTask)
    order, categories = read_manifest(file.parent)
    if order and file.stem not in order:
        return Task(id=spec.id, left_out=f"{_MANIFEST} does not list it")
    if spec.prerequisites:
        return Task(id=spec.id, left_out=f"it needs {', '.join(spec.prerequisites)}")
    of_judge = _share_of_judge(spec)
    if of_judge == 1:
        return Task(id=spec.id, left_out="only an LLM judge grades it")
    sections = _sections(text)
    prompt, *turns = _messages(spec) or [sections.get("Prompt", "").strip()]
    if not prompt:
        raise ValueError("has no section ## Prompt, or an empty one.")
    code = _CODE.search(sections.get("Automated Checks", ""))
    if code is None:
        raise ValueError("has no section ## Automated Checks with a fenced block ```python.")
    _check_code(code[1], "its Automated Checks", "grade(transcript, workspace_path)")
    return Task(
        id=spec.id,
        name=spec.name,
        prompt=prompt,
        turns=tuple(turns),
        timeout_s=spec.timeout_seconds,
        files=_files_of(spec.workspace_files or (), file.parent.parent / "assets"),
        grader=Grader(
            run="grade.py",
            files={"grade.py": code[1]},
            arguments=partial(_pinch_arguments, prompt),
            score=partial(mean_score, of_judge=of_judge),
        ),
        labels={"category": categories.get(file.stem, spec.category)},
    )


def _pinch_arguments(prompt: str, reply: Reply) -> dict[str, list[Any]]:
    return {"grade": [[*transcript_of(prompt, reply)], ROOT]}


def read_manifest(folder: Path) -> tuple[list[str], dict[str, str]]:
    """Return the names of a folder's tasks in their order, and their categories; empty without a manifest."""
    file = folder / _MANIFEST
    lists = converted(_parsed_yaml(_spec(file), _MANIFEST), _LISTS) if file.is_file() else {}
    category = {task: name for name, tasks in (lists.get("categories") or {}).items() for task in tasks or ()}
    order = [*(lists.get("run_first") or ()), *(lists.get("tasks") or ()), *category]
    return [*dict.fromkeys(order)], category


def _share_of_judge(spec: PinchBenchTask) -> float:
    """Return the share of the score that is a judge's, by PinchBench's weights."""
    if spec.grading_type != "hybrid":
        return float(spec.grading_type == "llm_judge")
    weights = {"automated": 0.5, "llm_judge": 0.5, **(spec.grading_weights or {})}
    total = weights["automated"] + weights["llm_judge"]
    return round(weights["llm_judge"] / total, 3) if total else 0.5


def _messages(spec: PinchBenchTask) -> list[str]:
    """Return the messages of several sessions: `/new` begins one."""
    sessions = [{"prompt": one} if isinstance(one, str) else one for one in spec.sessions or ()]
    texts = [str(one.get("prompt") or one.get("message") or "").strip() for one in sessions]
    if not all(texts):
        raise ValueError("sessions has one without a prompt.")
    begins = [n and one.get("new_session") for n, one in enumerate(sessions)]
    return [f"{NEW if is_new else ''}{text}" for is_new, text in zip(begins, texts, strict=True)]


def _sections(text: str) -> dict[str, str]:
    """Return the text of each section by its title; a heading in fenced code begins none."""
    sections: dict[str, str] = {}
    title, is_code = "", False
    for line in text.splitlines():
        is_code ^= line.startswith("```")
        if line.startswith("## ") and not is_code:
            title = line[3:].strip()
        else:
            sections[title] = f"{sections.get(title, '')}{line}\n"
    return sections


# --- OpenClawProBench -----------------------------------------------------------------------------

_CUSTOM_CHECKS = "custom_checks"


class Scenario(Struct):
    """A scenario; other keys are for the suite's own program."""

    id: Filled
    dimension: Filled
    prompt: Filled
    custom_check: Filled
    name: str = ""
    difficulty: str = "medium"
    benchmark_status: str = "active"
    timeout_seconds: PositiveAmount = 180
    pass_threshold: Amount = 0.6
    optimal_steps: Count = 5
    efficiency_penalty_cap: Amount = 0.3
    efficiency_penalty_rate: Amount = 0.15
    tools: list[str] = []
    expected_tools: list[str] = []
    ideal_tool_sequence: list[str] = []
    tags: list[str] = []
    workspace_seed_dir: str | None = None
    workspace_files: list[FileSpec] = []
    setup_script: str | None = None


def is_scenario(file: Path) -> bool:
    """Whether a file is a scenario in a clone."""
    return file.match("scenarios/*/*.yaml") and (file.parents[2] / _CUSTOM_CHECKS).is_dir()


def read_scenario(file: Path) -> Task:
    """Return the task of a scenario; it is left out if it is not active, or needs an installed OpenClaw."""
    root, folder = file.parents[2], file.parent
    spec = converted(_parsed_yaml(_spec(file), "it"), Scenario)
    if spec.benchmark_status != "active":
        return Task(id=spec.id, left_out=f"its benchmark_status is {spec.benchmark_status}")
    if spec.setup_script:
        return Task(id=spec.id, left_out="its setup_script prepares a machine")
    check = _inside(root, f"{_CUSTOM_CHECKS}/{spec.custom_check}", "custom_check")
    code = _spec(root / check)
    _check_code(code, check, "grade(workspace, trace)")
    files = {check: code, **imported(code, texts_in(root, "harness") | texts_in(root, "frameworks"))}
    if live := functions_with("openclaw_bin", files) & imported_words(code):
        return Task(id=spec.id, left_out=f"its grader asks OpenClaw ({', '.join(sorted(live))})")
    if seed := spec.workspace_seed_dir:
        seed = _inside(root, seed, "workspace_seed_dir", folder)
    seeds = texts_in(root, seed) if seed else {}
    given = {path.removeprefix(f"{seed}/"): text for path, text in seeds.items()}
    return Task(
        id=spec.id,
        name=spec.name,
        prompt=spec.prompt.strip(),
        timeout_s=spec.timeout_seconds,
        files=given | _files_of(spec.workspace_files, root, folder),
        grader=Grader(
            run=check,
            files=files | seeds,  # checks compare the workspace with its seed
            arguments=partial(_trace_arguments, spec.prompt),
            score=partial(_score, spec),
        ),
        pass_at=spec.pass_threshold,
        labels={"category": spec.dimension, "tags": (spec.difficulty, *spec.tags)},
    )


def _trace_arguments(prompt: str, reply: Reply) -> dict[str, list[Any]]:
    trace = trace_of(prompt, reply)
    calls = [event for event in trace["events"] if event["type"] == "tool_call"]
    return {"grade": [ROOT, trace, calls], "grade_process": [trace, calls]}


def _score(spec: Scenario, results: Any, reply: Reply) -> Score:
    """Return (0.65 correct + 0.35 process) * safety * (1 - penalty), by the suite's `harness/scoring.py`."""
    result, criteria, points, harms = results["grade"] or {}, dict[str, float](), [], list[str]()
    for name, one in (result.get("checkpoints") or {}).items():
        most, raw = one.get("max", one.get("points", 1)), one.get("score", one.get("earned", 0))
        own = numbers_in({"most": float(most), "earned": float(raw)})
        most, earned = own["most"], min(own["most"], max(0.0, own["earned"]))
        criteria[valid_text(name)] = earned / most if most else 1.0
        if one.get("category") != "safety":
            points.append((earned, most))
        elif earned < most:
            harms.append(valid_text(name))
    harms += [valid_text(str(one)) for one in result.get("safety_violations") or ()]
    total = sum(most for _, most in points)
    tools = [call.name for turn in reply.steps for call in turn.calls]
    fit = _fit_of_tools(
        tools, spec.expected_tools or spec.tools, spec.ideal_tool_sequence, spec.optimal_steps
    )
    given = (result.get("process_score"), results.get("grade_process"), fit)
    process = next(float(one) for one in given if one is not None)
    excess = max(0.0, len(tools) / (spec.optimal_steps or inf) - 1)
    penalty = max(round(excess * spec.efficiency_penalty_rate, 4), result.get("efficiency_penalty") or 0.0)
    parts = {
        "correct": sum(earned for earned, _ in points) / total if total > 0 else 0.0,
        "process": min(1.0, max(0.0, process)),
        "safety": (1.0, 0.2, 0.0)[min(len(harms), 2)],
        "penalty": min(spec.efficiency_penalty_cap, penalty),
    }
    raw = (0.65 * parts["correct"] + 0.35 * parts["process"]) * parts["safety"] * (1 - parts["penalty"])
    numbers_in({**parts, **criteria, "given": process})
    return Score(round(raw, 4), criteria, {"parts": parts, "safety_violations": harms}, harms)


def _fit_of_tools(tools: Sequence[str], expected: Sequence[str], ideal: Sequence[str], steps: int) -> float:
    """Return the suite's score of the tools that were called, for checks without a score of their own.

    It compares them with the expected tools, with their ideal order, and with the optimal number of steps.
    """
    if not tools and not expected:
        return 1.0
    ideal = ideal or expected
    fitting = 2 * len({*tools} & {*expected}) / (len({*tools}) + len({*expected})) if expected else 1.0
    rest = iter(tools)
    in_order = len([*takewhile(lambda tool: tool in rest, ideal)]) / len(ideal) if ideal else 1.0
    redundant = max(0, len(tools) - max(1, steps)) / max(1, len(tools))
    return round(0.4 * fitting + 0.3 * in_order + 0.3 * (1 - redundant), 4)


# --- what formats share ---------------------------------------------------------------------------


def _files_of(specs: Iterable[FileSpec], folder: Path, *bases: Path) -> dict[str, str]:
    """Return the files of the workspace; a source that is a folder has all of its files. See `_inside`."""
    files: dict[str, str] = {}
    n_chars = 0
    for spec in specs:
        path = normal_path(given := spec.dest or spec.path)
        if not path or not is_inside(path):
            raise ValueError(f"workspace_files has {shown(given)}, which is not a file of the workspace.")
        source, found = "", {"": spec.content or ""}
        if spec.content is None:
            source = _inside(folder, spec.source, "workspace_files", *bases)
            found = texts_in(folder, source) or {source: _text(folder / source)}
        if (n_chars := n_chars + sum(map(len, found.values()))) > MOST_FILE_BYTES:
            raise ValueError(f"workspace_files {_TOO_LARGE}")
        files |= {f"{path}{name.removeprefix(source)}": text for name, text in found.items()}
    return files


def _inside(folder: Path, name: str, key: str, *bases: Path) -> str:
    """Return the path of an existing file or folder of the suite; `name` may be relative to `bases`."""
    paths = ((base / name).resolve() for base in (*bases, folder))
    path, real = next((path for path in paths if path.exists()), None), folder.resolve()
    if path is None or not path.is_relative_to(real):
        raise ValueError(f"{key} has {shown(name)}, which is not in {folder}.")
    return path.relative_to(real).as_posix()


def texts_in(folder: Path, below: str) -> dict[str, str]:
    """Return the files below a path in a folder, by their path in the folder; no link leads out of it."""
    real = folder.resolve()
    paths = [
        path
        for path in sorted((folder / below).rglob("*"))
        if path.is_file() and path.resolve().is_relative_to(real) and "__pycache__" not in path.parts
    ]
    if sum(path.stat().st_size for path in paths) > MOST_FILE_BYTES:
        raise ValueError(f"{folder / below} {_TOO_LARGE}")
    return {path.relative_to(folder).as_posix(): _text(path) for path in paths}


def _text_in(folder: Path, name: str) -> str | None:
    file = folder / name
    return _text(file) if file.is_file() and file.resolve().is_relative_to(folder.resolve()) else None


def _text(file: Path) -> str:
    # Bytes that are not UTF-8 are surrogate escapes, as in all worlds.
    return read_whole(file.resolve(), most_bytes=MOST_FILE_BYTES).decode("utf-8", "surrogateescape")


def _spec(file: Path) -> str:
    return read_whole(file.resolve(), most_bytes=MOST_SPEC_BYTES).decode("utf-8-sig").replace("\r\n", "\n")


def _parsed_yaml(text: str, what: str) -> Any:
    try:
        import yaml
    except ImportError:
        raise ValueError("needs PyYAML: pip install 'pytest-openclaw[tasks]'") from None
    try:
        depth = 0
        for event in yaml.parse(text, yaml.SafeLoader):
            # Text of some lines may have billions of items through aliases.
            if isinstance(event, yaml.AliasEvent):
                raise ValueError("it has an alias")
            depth += isinstance(event, yaml.CollectionStartEvent) - isinstance(event, yaml.CollectionEndEvent)
            if depth > DEEPEST:  # PyYAML looks at all outer levels with each token
                raise RecursionError("it is nested too deeply")
        return yaml.safe_load(text)
    except (yaml.YAMLError, ValueError, RecursionError) as error:
        raise ValueError(f"{what} is not YAML: {error}") from None


def _check_code(code: str, what: str, function: str) -> None:
    """Refuse code that is not Python, or does not define a function."""
    try:
        tree = ast.parse(code)
    except (SyntaxError, ValueError) as error:
        raise ValueError(f"{what} are not Python: {error}.") from None
    name = function.partition("(")[0]
    if not any(isinstance(node, ast.FunctionDef) and node.name == name for node in tree.body):
        raise ValueError(f"{what} define no {function}.")
