"""Reads a file of PinchBench, `task_*.md`, as a suite of one prompt with a world.

The format of github.com/pinchbench/skill: YAML between lines `---`, then sections `## Title`.
"""

from __future__ import annotations

import ast
import re
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, Literal

from msgspec import Meta, Struct

from pytest_openclaw.parts.tasks.grading import Grader, transcript_of
from pytest_openclaw.parts.tasks.task import Task
from pytest_openclaw.util.typed import Filled, converted, shown
from pytest_openclaw.worlds.workspace import is_inside, normal_path

if TYPE_CHECKING:
    from pytest_openclaw.values.replies import Reply

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


def read_task(file: Path) -> Task:
    """Return the task of a file; it is left out if only a judge grades it."""
    text = file.read_text("utf-8-sig")
    spec = converted(_front_matter(text), TaskSpec)
    if spec.sessions or spec.prerequisites or spec.grading_type == "llm_judge":
        why = "it has several sessions" if spec.sessions else "only an LLM judge grades it"
        why = f"it needs {', '.join(spec.prerequisites)}" if spec.prerequisites else why
        return Task(id=spec.id, left_out=why)
    sections = _sections(text)
    prompt = sections.get("Prompt", "").strip()
    if not prompt:
        raise ValueError("has no section ## Prompt, or an empty one.")
    code = _code(sections.get("Automated Checks", ""))
    return Task(
        id=spec.id,
        name=spec.name,
        prompt=prompt,
        timeout_s=spec.timeout_seconds,
        files=_files(spec, file),
        grader=Grader(run={"code": code, "function": "grade"}, arguments=_arguments),
        labels={"category": spec.category},
    )


def _arguments(prompt: str, reply: Reply, workspace: str) -> list[Any]:
    return [[*transcript_of(prompt, reply)], workspace]


def _front_matter(text: str) -> Any:
    try:
        import yaml
    except ImportError:
        raise ValueError("needs PyYAML: pip install 'pytest-openclaw[tasks]'") from None
    found = _FRONT_MATTER.match(text)
    if found is None:
        raise ValueError("has no front matter. Begin it with a line --- and end that part with another.")
    try:
        return yaml.safe_load(found[1])
    except yaml.YAMLError as error:
        raise ValueError(f"its front matter is not YAML: {error}") from None


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
