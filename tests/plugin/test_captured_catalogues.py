"""Suites with the tools of a captured catalogue, in whole sessions and in the commands after them."""

import json

import pytest

from pytest_openclaw.cli import main
from pytest_openclaw.providers.openclaw.capture import Sent, gather
from pytest_openclaw.values.tool_calls import Tool

pytestmark = pytest.mark.newest

SUITE = """
[[prompts]]
id = "T1"
prompt = "offered"
tools = "coding"
validator = { type = "exact", value = "read brand_new" }

[[prompts]]
id = "T2"
prompt = "call read"
tools = ["brand_new", "read"]
validator = { type = "tool_call", calls = [{ name = "read" }] }

[[prompts]]
id = "T3"
prompt = "offered"
tools = ["read"]
validator = { type = "exact", value = "read" }
pressure = { tools = [1, 11, 54] }
"""


def _catalogue(path, *more, words=""):
    """Write a catalogue of a few tools; more tools, or other descriptions, make it another one."""
    tools = [Tool(name=name, description=words) for name in ("brand_new", "read", "third", *more)]

    def sent(*names):
        offered = tuple(tool for name in names for tool in tools if tool.name == name)
        return Sent(tools=offered, n_bytes=1, entry={"deferred": []})

    surfaces = {
        "direct": sent("brand_new", "read"),
        "coding": sent("read", "brand_new"),
        "full": sent("brand_new", "read", "third", *more),
    }
    path.write_text(json.dumps(gather(surfaces, release="openclaw-9", taken="2026-11-22")), "utf-8")
    return path


def test_a_suite_offers_the_captured_tools(project):
    """Surfaces and single tools come from the file; the run records the file's name and its content."""
    project.suite(SUITE)
    file = _catalogue(project.folder / "mine.json")

    session = project.run("--openclaw-catalogue=mine.json", "--openclaw-run-id=r")

    rows = {row["prompt_id"]: row for row in session.rows}
    assert (session.status, rows["T1"]["raw_output"]) == (1, "read brand_new")
    assert rows["T1"]["success"] is rows["T2"]["success"] is True
    # Here the surfaces that usually have 11 and 54 tools have two and three, and the usual names.
    assert {key: row["tools_offered"] for key, row in rows.items() if key.startswith("T3")} == {
        "T3-1t": 1,
        "T3-11t": 2,
        "T3-54t": 3,
    }
    offer = next(prompt for prompt in session.load("config.json")["prompts"] if prompt["id"] == "T1")["tools"]
    assert (offer["catalogue"], offer["tools"]) == (file.name, "coding")
    assert len(offer["sha256"]) == 64


def test_a_run_is_read_and_judged_again_by_its_own_tools(plain_project, capsys):
    """Show and rescore use the tools of the file; if it has changed, they report that they cannot."""
    plain_project.suite(SUITE)
    file = _catalogue(plain_project.folder / "mine.json")
    plain_project.run("--openclaw-catalogue=mine.json", "--openclaw-run-id=r")
    capsys.readouterr()

    assert main(["show", "r", "T2", "--json"]) == 0
    (call,) = json.loads(capsys.readouterr().out)["turns"][0]["calls"]
    assert (call["name"], call["problem"]) == ("read", None)
    assert main(["rescore", "r", "--into", "again", "--json"]) == 0
    printed = json.loads(capsys.readouterr().out)
    assert (printed["changed"], printed["notes"]) == ([], [])

    _catalogue(file, "another")
    # In a separate process: this one has cached the earlier file.
    shown = plain_project.command("show", "r", "T2", "--json")
    (call,) = json.loads(shown.stdout)["turns"][0]["calls"]
    assert (call["name"], call["problem"], call["known"]) == ("read", None, False)
    again = plain_project.command("rescore", "r", "--into", "third")
    assert again.returncode == 4
    assert "mine.json, which has changed since" in again.stderr


def test_a_run_continues_with_its_own_tools_or_not_at_all(plain_project):
    """With another catalogue, or none, resuming is refused, and cells of another baseline are set aside."""
    plain_project.suite(SUITE.replace('"coding"', '"full"').replace('"brand_new", ', ""))
    file = _catalogue(plain_project.folder / "mine.json")
    own, resume = "--openclaw-catalogue=mine.json", "--openclaw-resume=r"
    plain_project.run(own, "--openclaw-run-id=r")

    without = plain_project.run(resume)
    again = plain_project.run(resume, own)
    _catalogue(file, words="Other words.")
    other = plain_project.run(resume, own)
    after = plain_project.run(own, "--openclaw-run-id=after", "--openclaw-baseline=r")

    for refused in (without, other):
        refused.is_refused("prompt T2: its tools_sha256 has changed")
    assert (again.status, len(again.rows)) == (1, 5)
    (aside,) = after.summary["comparison"]["set_aside"]
    assert (aside["reason"], aside["n_cells"]) == ("prompt_changed", 5)
    assert "tools" in aside["detail"]
