"""The labelled replies as the program reads them: through the readers of the wire, and then judged."""

import json
import tomllib
from collections import Counter
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Any, get_args

from pytest_openclaw.judging.judge import judge
from pytest_openclaw.providers.answer import Answer
from pytest_openclaw.providers.chat_completions import read_chat
from pytest_openclaw.providers.ollama_native import read_ollama
from pytest_openclaw.suites.load import read_prompt
from pytest_openclaw.values.replies import Reply
from pytest_openclaw.values.tool_calls import ToolOutcome
from tests.builtin import REGISTRY

FOLDER = Path(__file__).parent
OUTCOMES = tuple(one for one in get_args(ToolOutcome) if one not in ("extra_call", "out_of_steps"))
"""Those that a reply to one of these tasks may have: they forbid no further calls and contain no exchange."""


@dataclass(frozen=True, kw_only=True)
class Case:
    """A line of the corpus."""

    id: str
    task: str
    form: str
    reply: Any
    label: ToolOutcome
    why: str


@cache
def cases(name):
    lines = [json.loads(line) for line in (FOLDER / name).read_text("utf-8").splitlines()]
    return tuple(Case(**{key: line[key] for key in Case.__dataclass_fields__}) for line in lines)


@cache
def tasks():
    found = {}
    for raw in tomllib.loads((FOLDER / "tasks.toml").read_text("utf-8"))["prompts"]:
        prompt, complaints = read_prompt(raw, raw["id"], suite="tasks.toml", registry=REGISTRY)
        assert prompt is not None, complaints
        found[prompt.id] = prompt
    return found


def verdict_of(case):
    outcome = judge(tasks()[case.task], received(case)).tool_outcome
    assert outcome is not None
    return outcome


def received(case):
    if case.form == "text":
        return Reply(text=case.reply)
    exchange = Answer()
    if case.form == "ollama":
        for message in case.reply:
            read_ollama({"message": message, "done": False}, exchange)
        return exchange.reply()
    key = "message" if case.form == "message" else "delta"
    for part in [case.reply] if case.form == "message" else case.reply:
        read_chat({"choices": [{key: part}]}, exchange)
    return exchange.reply()


def render_matrix(verdicts):
    """Return labels against verdicts, with the precision of each column and the recall of each row."""
    counts = Counter(verdicts)
    width = max(len(name) for name in OUTCOMES)
    heads = [name[:9] for name in OUTCOMES]
    lines = [f"{'label / verdict':<{width}}  {'  '.join(f'{head:>9}' for head in heads)}  recall"]
    for label in OUTCOMES:
        cells = "  ".join(f"{counts[label, verdict] or '.':>9}" for verdict in OUTCOMES)
        lines.append(f"{label:<{width}}  {cells}  {_share(recall(verdicts, label))}")
    shares = "  ".join(f"{_share(precision(verdicts, verdict)):>9}" for verdict in OUTCOMES)
    right = sum(label == verdict for label, verdict in verdicts)
    lines.append(f"{'precision':<{width}}  {shares}")
    lines.append(f"{right} of {len(verdicts)} as labelled")
    return "\n".join(lines) + "\n"


def recall(verdicts, outcome):
    given = [verdict == outcome for label, verdict in verdicts if label == outcome]
    return sum(given) / len(given)


def precision(verdicts, outcome):
    """Return how many of those that are judged so are labelled so, 0 to 1; 1 without any."""
    given = [label == outcome for label, verdict in verdicts if verdict == outcome]
    return sum(given) / len(given) if given else 1.0


def _share(value):
    return f"{value:.3f}"
