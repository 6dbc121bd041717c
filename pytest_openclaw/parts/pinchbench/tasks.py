"""Reads a file of PinchBench, `task_*.md`, as a suite of one prompt with a world.

The format of github.com/pinchbench/skill: YAML between lines `---`, then sections `## Title`.
"""

from __future__ import annotations

import ast
import re
from hashlib import sha256
from pathlib import Path
from typing import Annotated, Any, Literal

from msgspec import Meta, Struct

from pytest_openclaw.openclaw.dispatch import BRIDGE
from pytest_openclaw.parts.pinchbench.grading import Grade
from pytest_openclaw.suites.load import check_id
from pytest_openclaw.suites.offered import read_tools
from pytest_openclaw.util.errors import SuiteError
from pytest_openclaw.util.typed import Filled, converted, shown
from pytest_openclaw.values.prompts import Prompt, Suite
from pytest_openclaw.values.worlds import World
from pytest_openclaw.worlds.workspace import is_inside, normal_path

STEPS, OUTPUT_TOKENS = 30, 2048  # PinchBench limits the time only
TOOLS, OPTIONAL = "direct", ("sessions_yield", *BRIDGE)  # OpenClaw's default
_FRONT_MATTER = re.compile(r"\A---[ \t]*\n(.*?)^---[ \t]*$\n?", re.DOTALL | re.MULTILINE)
_CODE = re.compile(r"^```python[ \t]*\n(.*?)^```", re.DOTALL | re.MULTILINE)


class FileSpec(Struct):
    """A file of the workspace: `path` with `content`, or `source` in `assets/` with `dest`."""

    path: str = ""
    content: str | None = None
    source: str = ""
    dest: str = ""

    def __post_init__(self) -> None:
        if not (self.path and self.content is not None) and not (self.source and self.dest):
            raise ValueError("has neither path with content nor source with dest.")


class TaskSpec(Struct):
    """The front matter; other keys are for PinchBench's own program."""

    id: Filled
    grading_type: Literal["automated", "hybrid", "llm_judge"] = "automated"
    timeout_seconds: Annotated[float, Meta(gt=0)] = 120
    name: str = ""
    category: str | None = None
    workspace_files: list[FileSpec] | None = None
    sessions: list[Any] | None = None
    prerequisites: list[str] | None = None


def read_task(file: Path, name: str, *, pass_at: float, is_timed: bool = True) -> Suite:
    """Return the suite of a task; without a prompt if only a judge grades it.

    Raises:
        SuiteError: the file is broken; the message says what is wrong.
    """
    try:
        text = file.read_text("utf-8-sig")
        task = converted(_front_matter(text), TaskSpec)
        check_id({"id": task.id})
        if task.sessions or task.prerequisites or task.grading_type == "llm_judge":
            why = "it has several sessions" if task.sessions else "only an LLM judge grades it"
            why = f"it needs {', '.join(task.prerequisites)}" if task.prerequisites else why
            return Suite(path=name, prompts=(), left_out={task.id: why})
        prompt = _prompt(task, text, file, name, pass_at=pass_at, is_timed=is_timed)
        return Suite(path=name, prompts=(prompt,))
    except (ValueError, OSError) as error:
        raise SuiteError(f"{name}: {' '.join(str(error).split())}") from None


def _front_matter(text: str) -> Any:
    try:
        import yaml
    except ImportError:
        raise ValueError("needs PyYAML: pip install 'pytest-openclaw[pinchbench]'") from None
    found = _FRONT_MATTER.match(text)
    if found is None:
        raise ValueError("has no front matter. Begin it with a line --- and end that part with another.")
    try:
        return yaml.safe_load(found[1])
    except yaml.YAMLError as error:
        raise ValueError(f"its front matter is not YAML: {error}") from None


def _prompt(task: TaskSpec, text: str, file: Path, name: str, *, pass_at: float, is_timed: bool) -> Prompt:
    sections = _sections(text)
    prompt = sections.get("Prompt", "").strip()
    if not prompt:
        raise ValueError("has no section ## Prompt, or an empty one.")
    code = _code(sections.get("Automated Checks", ""))
    return Prompt(
        suite=name,
        id=task.id,
        name=task.name or task.id,
        prompt=prompt,
        category=task.category,
        timeout_s=task.timeout_seconds if is_timed else None,
        max_output_tokens=OUTPUT_TOKENS,
        tools=read_tools(TOOLS),
        tools_spec=TOOLS,
        world=World(files=_files(task, file), optional_tools=OPTIONAL, python=True, steps=STEPS),
        validator=Grade(code=code, prompt=prompt, pass_at=pass_at, where=name),
        # As of a benchmark in Python: `rescore` runs no code.
        validator_spec={"type": "python", "sha256": sha256(code.encode()).hexdigest(), "pass_at": pass_at},
    )


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


def _code(section: str) -> str:
    found = _CODE.search(section)
    if found is None:
        raise ValueError("has no section ## Automated Checks with a fenced block ```python.")
    try:
        tree = ast.parse(found[1])
    except SyntaxError as error:
        raise ValueError(f"its Automated Checks are not Python: {error.msg}, line {error.lineno}.") from None
    if not any(isinstance(node, ast.FunctionDef) and node.name == "grade" for node in tree.body):
        raise ValueError("its Automated Checks define no grade(transcript, workspace_path).")
    return found[1]


def _files(task: TaskSpec, file: Path) -> dict[str, str]:
    """Return the files of the workspace; bytes that are not UTF-8 are surrogate escapes, as in all worlds."""
    files: dict[str, str] = {}
    assets = file.parent.parent / "assets"
    for spec in task.workspace_files or ():
        path = normal_path(given := spec.path or spec.dest)
        if not path or not is_inside(path):
            raise ValueError(f"workspace_files has {shown(given)}, which is not a file of the workspace.")
        source = assets / spec.source
        if spec.content is not None:
            files[path] = spec.content
        elif source.is_file() and source.resolve().is_relative_to(assets.resolve()):
            files[path] = source.read_bytes().decode("utf-8", "surrogateescape")
        else:
            raise ValueError(f"workspace_files has {shown(spec.source)}, which is not in {assets}.")
    return files
