"""The surface `openclaw`, in whole sessions: what is sent, what is judged, and faults that only it shows."""

import json
import shlex
import sys
from pathlib import Path

import pytest

from pytest_openclaw.providers.openclaw import capture

pytestmark = pytest.mark.newest

# Models whose answers depend on the kind of request; `web_search` is behind the bridge on the surface.
MODELS = '''
def call(name, **arguments):
    return Reply(finish_reason="tool_calls", tool_calls=(ToolCall(name=name, arguments=json.dumps(arguments), id="c"),))

class Lab(Provider):
    """Models by name, each with one fault."""

    name = "lab"
    takes_tools = True

    async def ask(self, request):
        with open("asked.jsonl", "a") as file:
            asked = {"model": request.model, "prompt": request.prompt, "system": request.system or "",
                     "tools": [tool.name for tool in request.tools], "temperature": request.temperature,
                     "history": [turn.user or [c.name for c in turn.calls] for turn in request.history],
                     "results": [r for turn in request.history for r in turn.results]}
            file.write(json.dumps(asked) + "\\n")
        wanted = "read" if "notes.md" in request.prompt else "web_search"
        arguments = {"path": "notes.md"} if wanted == "read" else {"query": "tide tables"}
        offered = {tool.name for tool in request.tools}
        if request.model == "confused" and len(request.system or "") > 10_000:
            return Reply(text="How can I help you today?", finish_reason="stop")
        if request.model == "warm" and request.temperature != 0:
            return call(wanted, nonsense=1)
        if wanted in offered or request.model == "direct":
            return call(wanted, **arguments)
        made = [c.name for turn in request.history for c in turn.calls]
        if not made:
            return call("tool_search", query="search the web")
        if made == ["tool_search"]:
            return call("tool_describe", id="web_search")
        return call("tool_call", id="web_search", args=arguments)

PROVIDERS.append(Lab)
'''
SUITE = """
[[prompts]]
id = "R"
prompt = "Read notes.md."
tools = ["read"]
validator = { type = "tool_call", calls = [{ name = "read", arguments = { path = "notes.md" } }] }

[[prompts]]
id = "W"
prompt = "Search the web for tide tables."
tools = ["web_search"]
validator = { type = "tool_call", calls = [{ name = "web_search" }] }

[[prompts]]
id = "T"
prompt = "Say hello in one word."
validator = { type = "max_words", value = 1 }
"""


def write(project):
    project.extend_conftest(MODELS)
    project.suite(SUITE)


def asked(project):
    return [json.loads(line) for line in (project.folder / "asked.jsonl").read_text().splitlines()]


BOTH = ("--openclaw-surface=listed,openclaw", "--openclaw-catalogue=substitute")


def outcomes(session):
    return {
        (row["prompt_id"], row["surface"]): row["tool_outcome"] for row in session.rows if row["tool_outcome"]
    }


@pytest.mark.under_workers
def test_a_model_that_uses_the_bridge_passes_on_both_surfaces(project):
    """A tool behind the bridge is found and called in one cell; a text prompt is asked only on `listed`."""
    write(project)

    session = project.run(*BOTH, models="lab/able")

    session.outcomes(passed=5)
    assert outcomes(session) == {
        (one, surface): "valid" for one in "RW" for surface in ("listed", "openclaw")
    }
    (row,) = (row for row in session.rows if (row["prompt_id"], row["surface"]) == ("W", "openclaw"))
    assert [[call["name"] for call in turn["calls"]] for turn in row["turns"]] == [
        ["tool_search"], ["tool_describe"], ["tool_call"]
    ]  # fmt: skip
    assert (row["ended_by"], row["tools_offered"], row["tools_tested"]) == ("call", 11, ["web_search"])
    found = json.loads(row["turns"][0]["calls"][0]["result"])
    assert "web_search" in [tool["name"] for tool in found]
    groups = {group["surface"]: group["n_total"] for group in session.summary["groups"]}
    assert groups == {"listed": 3, "openclaw": 2}
    listing = project.run("--collect-only", "-q", *BOTH, models="lab/able")
    assert "benchmarks/prompts_a.toml::W[lab/able+openclaw]" in listing.text


@pytest.mark.parametrize(
    ("model", "expected"),
    [
        ("direct", {("R", "openclaw"): "valid", ("W", "openclaw"): "unknown_tool"}),
        ("confused", {("R", "openclaw"): "no_call", ("W", "openclaw"): "no_call"}),
        ("warm", {("R", "openclaw"): "bad_arguments", ("W", "openclaw"): "unknown_tool"}),
    ],
)
def test_faults_that_only_the_surface_shows(plain_project, model, expected):
    """Without bridge, under a long system prompt, without temperature 0; on listed tools none of them shows."""
    write(plain_project)

    session = plain_project.run(*BOTH, models=f"lab/{model}")

    listed = {("R", "listed"): "valid", ("W", "listed"): "valid"}
    assert outcomes(session) == {**listed, **expected}


def test_a_run_on_the_surface_is_resumed_and_judged_again(plain_project):
    """The run's own `surface.json` is used: nothing is asked again, and no verdict changes."""
    write(plain_project)
    first = plain_project.run(*BOTH, "--openclaw-run-id=r", models="lab/direct")

    again = plain_project.run("--openclaw-resume=last", models=None)
    assert again.rows == first.rows
    assert len(asked(plain_project)) == 5
    done = plain_project.command("rescore", "r", "--into", "again")
    assert done.returncode == 0, done.stdout + done.stderr
    rescored = plain_project.stored("again")
    assert [row["tool_outcome"] for row in rescored.rows] == [row["tool_outcome"] for row in first.rows]
    facts = rescored.load("config.json")["surface"]
    assert (facts["source"], facts["release"]) == ("substitute", "openclaw-2026.9.6")
    assert "This model is <model>." in rescored.load("surface.json")["system"]


FAKE = Path(__file__).parents[1] / "openclaw" / "fake_capture.py"


@pytest.mark.skipif(sys.platform == "win32", reason="the fake is called by a POSIX command line")
def test_a_capture_that_hangs_ends_the_session(plain_project, monkeypatch):
    """No request is sent, and the message names the source that needs no capture."""
    write(plain_project)
    monkeypatch.setattr(capture, "PATIENCE_S", 3.0)
    monkeypatch.setenv("XDG_CACHE_HOME", str(plain_project.folder / "cache"))
    words = [sys.executable, str(FAKE), "hangs", str(plain_project.folder / "starts.jsonl")]
    monkeypatch.setenv("OPENCLAW_AGENT_COMMAND", shlex.join(words))

    session = plain_project.run(models="lab/able,lab/able+openclaw")

    session.is_refused("--openclaw-catalogue=substitute needs no capture")
