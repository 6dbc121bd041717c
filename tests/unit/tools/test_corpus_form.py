"""The labelled replies in `tests/corpus` are well-formed, and each outcome is frequent enough."""

from __future__ import annotations

import json
import tomllib
from collections import Counter
from pathlib import Path

import pytest

pytestmark = pytest.mark.newest

CORPUS = Path(__file__).parents[2] / "corpus"
TASKS = {task["id"]: task for task in tomllib.loads((CORPUS / "tasks.toml").read_text("utf-8"))["prompts"]}
BLIND, SEEN = (
    [json.loads(line) for line in (CORPUS / f"replies_{name}.jsonl").read_text("utf-8").splitlines()]
    for name in ("blind", "seen")
)
REPLIES = BLIND + SEEN

KEYS = {"id", "task", "family", "form", "reply", "label", "why"}
FAMILIES = {"hermes", "llama", "mistral", "qwen", "deepseek", "gemma", "glm", "gpt-oss", "other"}
RESTRAINT = {"restrained", "called_needlessly"}
SPLIT_OFF = {"forbidden_call", "unfinished"}
"""Labels that were a part of `wrong_tool` when the replies were written."""
WITH_CALLS = {
    "valid",
    "forbidden_call",
    "unfinished",
    "wrong_tool",
    "bad_arguments",
    "unknown_tool",
    "malformed_json",
}
WITHOUT_CALLS = {"leaked_as_text", "claimed_not_done", "no_call"}
LABELS = RESTRAINT | WITH_CALLS | WITHOUT_CALLS


def _fragments(entry):
    """Return the native calls of a reply, or their pieces, unchanged."""
    match entry["form"]:
        case "text":
            return []
        case "message":
            messages = [entry["reply"]]
        case _:
            messages = entry["reply"]
    return [call for message in messages for call in message.get("tool_calls") or []]


def _wants_calls(task):
    return bool(task["validator"]["calls"])


# Each of these covers all replies: one test per reply would cost more than the checks.


def test_replies_are_well_formed():
    """A line has every key, names a task, a family and an outcome that exist, and says why."""
    for entry in REPLIES:
        assert set(entry) == KEYS, entry
        assert entry["task"] in TASKS, entry["id"]
        assert entry["family"] in FAMILIES, entry["id"]
        assert entry["label"] in LABELS, entry["id"]
        assert entry["why"].strip(), entry["id"]


def test_replies_have_their_form():
    """A text is a string, a message an object, a stream and Ollama's messages lists of objects."""
    for entry in REPLIES:
        reply = entry["reply"]
        match entry["form"]:
            case "text":
                assert isinstance(reply, str), entry["id"]
            case "message":
                assert isinstance(reply, dict), entry["id"]
                assert "content" in reply, entry["id"]
            case "stream" | "ollama":
                assert reply, entry["id"]
                assert all(isinstance(part, dict) for part in reply), entry["id"]
            case other:
                pytest.fail(f"{entry['id']}: no form is called {other}")


def test_arguments_are_text_or_objects():
    """Arguments are JSON objects in Ollama's messages and text everywhere else."""
    for entry in REPLIES:
        for fragment in _fragments(entry):
            function = fragment["function"]
            if entry["form"] == "ollama":
                assert isinstance(function["arguments"], dict), entry["id"]
                assert isinstance(function["name"], str), entry["id"]
            else:
                assert isinstance(function.get("arguments", ""), str), entry["id"]
                assert isinstance(function.get("name") or "", str), entry["id"]


def test_labels_fit_task_and_calls():
    """Restraint outcomes belong to restraint tasks; leaks, claims and silence to replies without calls.

    The one written form that OpenClaw executes is as good as a call on the wire.
    """
    for entry in REPLIES:
        label = entry["label"]
        assert (label in RESTRAINT) != _wants_calls(TASKS[entry["task"]]), entry["id"]
        if label in WITH_CALLS:
            assert _fragments(entry) or entry["reply"].endswith("[END_TOOL_REQUEST]"), entry["id"]
        if label in WITHOUT_CALLS | {"restrained"}:
            assert not _fragments(entry), entry["id"]


def test_ids_are_unique():
    """No two replies share an id, and no two are the same reply to the same task."""
    assert [entry_id for entry_id, n in Counter(entry["id"] for entry in REPLIES).items() if n > 1] == []
    replies = Counter((entry["task"], json.dumps(entry["reply"], sort_keys=True)) for entry in REPLIES)
    assert [reply for reply, n in replies.items() if n > 1] == []


@pytest.mark.parametrize("label", sorted(LABELS - SPLIT_OFF))
def test_each_outcome_is_met_often(label):
    """Each outcome is the label of at least twenty replies that were written without sight of the code."""
    assert sum(entry["label"] == label for entry in BLIND) >= 20


def test_most_replies_are_blind():
    """At least half of three hundred replies or more were written before the code."""
    assert len(REPLIES) >= 300
    assert len(BLIND) >= len(REPLIES) / 2


@pytest.mark.parametrize("family", sorted(FAMILIES))
def test_each_family_leaks(family):
    """The written call form of every family is among the leaked calls."""
    leaks = [entry for entry in REPLIES if entry["label"] == "leaked_as_text" and entry["family"] == family]
    assert leaks


def test_every_task_is_answered():
    """No task in the file is without replies, and some tasks want no call."""
    assert {entry["task"] for entry in REPLIES} == set(TASKS)
    assert 5 <= sum(not _wants_calls(task) for task in TASKS.values()) < len(TASKS) / 2
