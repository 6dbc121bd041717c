"""Reads a file of PinchBench, `task_*.md`, as a suite of one prompt with a world.

The format of github.com/pinchbench/skill up to 2.0: YAML between lines `---`, then sections `## Title`.
"""

from __future__ import annotations

import re
from functools import partial
from typing import TYPE_CHECKING, Annotated, Any, Literal

from msgspec import Meta, Struct

from pytest_openclaw.parts.tasks import task as tasks
from pytest_openclaw.parts.tasks.grading import Grader, mean_score, transcript_of
from pytest_openclaw.util.typed import Amount, Filled, converted
from pytest_openclaw.values.requests import NEW

if TYPE_CHECKING:
    from pathlib import Path

    from pytest_openclaw.values.replies import Reply

_FRONT_MATTER = re.compile(r"\A---[ \t]*\n(.*?)^---[ \t]*$\n?", re.DOTALL | re.MULTILINE)
_CODE = re.compile(r"^```python[ \t]*\n(.*?)^```", re.DOTALL | re.MULTILINE)


class PinchBenchTask(Struct):
    """The front matter; other keys are for PinchBench's own program."""

    id: Filled
    grading_type: Literal["automated", "hybrid", "llm_judge"] = "automated"
    timeout_seconds: Annotated[float, Meta(gt=0)] = 120
    name: str = ""
    category: str | None = None
    workspace_files: list[tasks.FileSpec] | None = None
    sessions: list[Filled | dict[str, Any]] | None = None
    prerequisites: list[str] | None = None
    grading_weights: dict[str, Amount] | None = None


def read_task(file: Path) -> tasks.Task:
    """Return the task of a file; it is left out if only a judge grades it."""
    text = file.read_text("utf-8-sig")
    found = _FRONT_MATTER.match(text)
    if found is None:
        raise ValueError("has no front matter. Begin it with a line --- and end that part with another.")
    spec = converted(tasks.parsed_yaml(found[1], "its front matter"), PinchBenchTask)
    order, categories = tasks.read_manifest(file.parent)
    if order and file.stem not in order:
        return tasks.Task(id=spec.id, left_out=f"{tasks.MANIFEST} does not list it")
    if spec.prerequisites:
        return tasks.Task(id=spec.id, left_out=f"it needs {', '.join(spec.prerequisites)}")
    of_judge = _share_of_judge(spec)
    if of_judge == 1:
        return tasks.Task(id=spec.id, left_out="only an LLM judge grades it")
    sections = _sections(text)
    prompt, *turns = _messages(spec) or [sections.get("Prompt", "").strip()]
    if not prompt:
        raise ValueError("has no section ## Prompt, or an empty one.")
    code = _code(sections.get("Automated Checks", ""))
    return tasks.Task(
        id=spec.id,
        name=spec.name,
        prompt=prompt,
        turns=tuple(turns),
        timeout_s=spec.timeout_seconds,
        files=tasks.files_of(spec.workspace_files or (), file.parent.parent / "assets"),
        grader=Grader(
            run="grade.py",
            files={"grade.py": code},
            arguments=partial(_arguments, prompt),
            score=partial(mean_score, of_judge=of_judge),
        ),
        labels={"category": categories.get(file.stem, spec.category)},
    )


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


def _arguments(prompt: str, reply: Reply, workspace: str) -> dict[str, list[Any]]:
    return {"grade": [[*transcript_of(prompt, reply)], workspace]}


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
    tasks.check_code(found[1], "its Automated Checks", "grade(transcript, workspace_path)")
    return found[1]
