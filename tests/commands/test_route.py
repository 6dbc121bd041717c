"""`route`: a run's verdicts as a patch of OpenClaw's config."""

from pathlib import Path

import json5
import pytest

from tests.commands.routed_runs import ABLE, store_run, three_tiers
from tests.unit.reports.summaries import fault, rows_of, tool_cells
from tests.unit.runs.stored_runs import SUITE, files_of

KEY = "sk-live-4242424242424242"
PAGE = Path(__file__).parents[2] / "docs/how-to/route.md"
NAME = "20261122_040737"
BRIDGE = ("tool_search", "tool_describe", "tool_call", "tool_search_code")
WEB = ("group:web", "browser")
PATCH = {
    "agents": {"defaults": {"subagents": {"model": "ollama/qwen3:8b"}}},
    "tools": {
        "byProvider": {
            "ollama/qwen3:8b": {"profile": "coding", "deny": [*WEB]},
            "ollama/mid:7b": {"allow": ["read"], "alsoAllow": None, "deny": [*WEB, *BRIDGE]},
            "lab/llama3.2:3b": {"deny": ["*"]},
        }
    },
}


@pytest.fixture
def run(project):
    return store_run(project / "runs" / NAME, three_tiers(said=f"the key is {KEY}"))


def _patch(run):
    return (run / "openclaw.patch.json5").read_text("utf-8")


def test_a_run_becomes_a_patch(run, command):
    """The patch is next to the summary; the page shows what the terminal shows; no secret leaves the run."""
    before = files_of(run)

    shown = command("route", "last")

    assert json5.loads(_patch(run)) == PATCH
    assert {name: text for name, text in files_of(run).items() if name != "openclaw.patch.json5"} == before
    assert shown.err == ""
    assert f"$ pytest-openclaw route last\n{shown.out}```" in PAGE.read_text("utf-8")
    for secret in (KEY, "the key is", "lab.example", "127.0.0.1", "LAB_KEY", "OLLAMA_API_KEY", "apiKey"):
        assert secret not in _patch(run) + shown.out


def test_nothing_else_is_overwritten(run, command):
    """A file that is not a patch, such as OpenClaw's config, stays unchanged."""
    config = Path("openclaw.json")
    config.write_text('{"gateway": {}}')

    message = command.refused("route", NAME, "--out", "openclaw.json")

    assert message == "openclaw.json exists and is not a patch of pytest-openclaw; name another file"
    assert config.read_text() == '{"gateway": {}}'
    assert sorted(path.name for path in Path().iterdir()) == ["openclaw.json", "runs"]


def test_json_has_every_part(run, command):
    """`--json` prints the patch, each target's part and the command as one object."""
    data = command.json("route", NAME)

    assert (data["patch"], data["release"], data["notes"]) == (PATCH, "2026.9.6", [])
    file = f"runs/{NAME}/openclaw.patch.json5"
    assert data["check"] == f"openclaw config patch --file {file} --dry-run --json"
    sentence = data["targets"][2].pop("sentence")
    assert sentence.startswith("not trusted with tools: 4 of 40 cells that need a call")
    assert data["targets"][2] == {
        "target": "lab/llama3.2:3b",
        "ref": "lab/llama3.2:3b",
        "recommendation": "not_trusted",
        "may_hold": "none",
        "is_local": False,
        "evidence": "native",
        "tier": 3,
        "conclusive": True,
        "n": 40,
        "n_success": 4,
    }


def test_an_unfinished_run_is_routed_with_a_warning(project, command):
    """Missing cells are reported on stderr and in the file; the exit status is 0."""
    late = store_run(Path("runs/late"), rows_of(1, ABLE, suite=SUITE), n_selected={ABLE: 83})

    shown = command("route", "late")

    warning = "runs/late is not finished: 3 of its 83 cells have no row"
    assert shown.err.endswith(f" route: {warning}\n")
    assert f"// WARNING: {warning}." in _patch(late)
    assert "ollama/qwen3:8b" in json5.loads(_patch(late))["tools"]["byProvider"]


def test_nothing_conclusive_leaves_a_patch_without_entries(project, command):
    """The file says what would make it conclusive; OpenClaw refuses an empty patch, so no command is printed."""
    few = store_run(Path("runs/few"), tool_cells(4, 1, ABLE, suite=SUITE, tools_offered=11))

    shown = command("route", "few")

    assert json5.loads(_patch(few)) == {}
    assert "would make it trusted" in _patch(few)
    assert "nothing to apply: no model that OpenClaw has a name for has enough evidence" in shown.err
    assert "openclaw config patch" not in shown.out + _patch(few)


AS_TEXT = tool_cells(40, 0, ABLE, suite=SUITE)
UNANSWERED = [fault(ABLE, suite=SUITE, tools_offered=11)]


@pytest.mark.parametrize(
    ("records", "words", "message"),
    [
        pytest.param(AS_TEXT, [], "runs/bad has no native tool evidence: no answered", id="only-text"),
        pytest.param(UNANSWERED, [], "has no native tool evidence", id="nothing-answered"),
        pytest.param(
            three_tiers(), ["--provider=lap=x"], "the run has no provider lap; it has lab", id="slip"
        ),
        pytest.param(three_tiers(), ["--out=none/x.json5"], "No such file or directory", id="no-folder"),
    ],
)
def test_a_run_that_cannot_be_routed_is_refused(project, records, words, message, command):
    """One line on stderr, exit status 4, and no file."""
    bad = store_run(Path("runs/bad"), records)
    before = files_of(bad)

    assert message in command.refused("route", "bad", *words)
    assert files_of(bad) == before


@pytest.mark.parametrize("word", ["lab", "lab=", "=vllm", "lab=a/b", "lab=a b"])
def test_a_wrong_name_ends_with_2(word, command):
    """A provider's name in OpenClaw is one word without a slash."""
    message = "is not OURS=THEIRS, such as lab=vllm"
    assert message in command.wrong_usage("route", NAME, "--provider", word)
