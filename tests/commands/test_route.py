"""`route`: a run's verdicts as a patch of OpenClaw's config."""

from __future__ import annotations

import json
from pathlib import Path

import json5
import pytest

from pytest_openclaw.cli import main
from pytest_openclaw.values.rows import Record
from tests.commands.routed_runs import ABLE, store_run, three_tiers
from tests.unit.reports.summaries import fault, tool_cells
from tests.unit.runs.stored_runs import SUITE, files_of
from tests.unit.stats.routes import rows_of

KEY = "sk-live-4242424242424242"


@pytest.fixture
def run(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A run with a target of each tier, in a project that is the current folder."""
    monkeypatch.chdir(tmp_path)
    return store_run(Path("runs/one"), three_tiers(said=f"the key is {KEY}"))


PATCH = {
    "agents": {
        "defaults": {
            "subagents": {"model": "ollama/qwen3:8b"},
        }
    },
    "tools": {
        "byProvider": {
            "ollama/qwen3:8b": {"profile": "coding", "deny": ["group:web", "browser"]},
            "ollama/mid:7b": {
                "allow": ["read"],
                "alsoAllow": None,
                "deny": [
                    *("group:web", "browser"),
                    *("tool_search", "tool_describe", "tool_call", "tool_search_code"),
                ],
            },
            "lab/llama3.2:3b": {"deny": ["*"]},
        }
    },
}


def test_a_run_becomes_a_patch(run: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """The patch is beside the summary; the terminal shows each model's part and the command that checks it."""
    before = files_of(run)

    assert main(["route", "last"]) == 0

    shown = capsys.readouterr()
    assert json5.loads((run / "openclaw.patch.json5").read_text("utf-8")) == PATCH
    assert {name: text for name, text in files_of(run).items() if name != "openclaw.patch.json5"} == before
    assert shown.err == ""
    assert shown.out.splitlines() == [
        "ollama/qwen3:8b: trusted with tools; on listed tools only; safety not tested",
        "ollama/mid:7b: trusted with read; on listed tools only; restraint not settled; safety not tested",
        "lab/llama3.2:3b: not trusted with tools: Tier 3, conclusive: 4 of 40 cells that need a call went right "
        "(95 % interval 3.2 % to 26.7 % for 3 targets together)",
        "",
        "wrote runs/one/openclaw.patch.json5",
        "check it: openclaw config patch --file runs/one/openclaw.patch.json5 --dry-run --json",
    ]


def test_the_page_shows_what_is_printed(run: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """docs/how-to/route.md shows the printed lines."""
    page = (Path(__file__).parent.parent.parent / "docs/how-to/route.md").read_text("utf-8")
    run.rename("runs/20261122_040737")

    assert main(["route", "last"]) == 0

    assert f"$ pytest-openclaw route last\n{capsys.readouterr().out}```" in page


def test_nothing_else_is_overwritten(run: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """A file that is not a patch, such as OpenClaw's config, stays unchanged."""
    config = Path("openclaw.json")
    config.write_text('{"gateway": {}}')

    assert main(["route", "one", "--out", "openclaw.json"]) == 4

    assert config.read_text() == '{"gateway": {}}'
    assert (
        "openclaw.json exists and is not a patch of pytest-openclaw; name another file"
        in capsys.readouterr().err
    )
    assert sorted(path.name for path in Path().iterdir()) == ["openclaw.json", "runs"]


def test_no_address_no_key_and_no_reply_is_written(run: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """Texts of a server, a reply or a setting do not leave the run."""
    assert main(["route", "one"]) == 0

    text = (run / "openclaw.patch.json5").read_text("utf-8") + capsys.readouterr().out
    for secret in (KEY, "the key is", "lab.example", "127.0.0.1", "LAB_KEY", "OLLAMA_API_KEY", "apiKey"):
        assert secret not in text


def test_json_has_every_part(run: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """`--json` prints the patch, each target's part and the command as one object."""
    assert main(["route", "one", "--json"]) == 0

    data = json.loads(capsys.readouterr().out)
    assert (data["patch"], data["release"], data["notes"]) == (PATCH, "2026.9.6", [])
    assert data["check"] == "openclaw config patch --file runs/one/openclaw.patch.json5 --dry-run --json"
    assert data["targets"][2] == {
        "target": "lab/llama3.2:3b",
        "ref": "lab/llama3.2:3b",
        "recommendation": "not_trusted",
        "sentence": "not trusted with tools: Tier 3, conclusive: 4 of 40 cells that need a call went right "
        "(95 % interval 3.2 % to 26.7 % for 3 targets together)",
        "may_hold": "none",
        "is_local": False,
        "evidence": "native",
        "tier": 3,
        "conclusive": True,
        "n": 40,
        "n_success": 4,
    }


def test_an_unfinished_run_is_routed_with_a_warning(run: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """Missing cells are reported on stderr and in the file; the exit status is 0."""
    store_run(Path("runs/late"), rows_of(1, ABLE, suite=SUITE), n_selected={ABLE: 83})

    assert main(["route", "late"]) == 0

    warning = "runs/late is not finished: 3 of its 83 cells have no row"
    assert capsys.readouterr().err.endswith(f" route: {warning}\n")
    text = Path("runs/late/openclaw.patch.json5").read_text("utf-8")
    assert f"// WARNING: {warning}." in text
    assert "ollama/qwen3:8b" in json5.loads(text)["tools"]["byProvider"]


def test_nothing_conclusive_leaves_a_patch_without_entries(
    run: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """The file says what would make it conclusive; OpenClaw refuses an empty patch, so no command is printed."""
    store_run(Path("runs/few"), tool_cells(4, 1, ABLE, suite=SUITE, tools_offered=11))

    assert main(["route", "few"]) == 0

    shown = capsys.readouterr()
    text = Path("runs/few/openclaw.patch.json5").read_text("utf-8")
    assert json5.loads(text) == {}
    assert "would make it trusted" in text
    assert "nothing to apply: no model that OpenClaw has a name for has enough evidence" in shown.err
    assert "openclaw config patch" not in shown.out + text


@pytest.mark.parametrize(
    ("records", "words", "message"),
    [
        pytest.param(
            tool_cells(40, 0, ABLE, suite=SUITE), [],
            "runs/bad has no native tool evidence: no answered cell offered tools on the wire", id="text-alone",
        ),
        pytest.param(
            [fault(ABLE, suite=SUITE, tools_offered=11)], [], "has no native tool evidence", id="nothing-answered"
        ),
        pytest.param(three_tiers(), ["--provider=lap=x"], "the run has no provider lap; it has lab, ollama_native", id="slip"),
        pytest.param(three_tiers(), ["--out=none/x.json5"], "No such file or directory", id="no-folder"),
    ],
)  # fmt: skip
def test_what_cannot_be_routed_is_refused(
    run: Path, records: list[Record], words: list[str], message: str, capsys: pytest.CaptureFixture[str]
) -> None:
    """One line on stderr, exit status 4, and no file."""
    bad = store_run(Path("runs/bad"), records)
    before = files_of(bad)

    assert main(["route", "bad", *words]) == 4

    shown = capsys.readouterr()
    assert (shown.out, shown.err.count("\n")) == ("", 1)
    assert " route: " in shown.err
    assert message in shown.err
    assert files_of(bad) == before


@pytest.mark.parametrize("word", ["lab", "lab=", "=vllm", "lab=a/b", "lab=a b"])
def test_a_wrong_name_ends_with_2(run: Path, word: str, capsys: pytest.CaptureFixture[str]) -> None:
    """A provider's name in OpenClaw is one word without a slash."""
    with pytest.raises(SystemExit) as ended:
        main(["route", "one", "--provider", word])

    assert ended.value.code == 2
    assert "is not OURS=THEIRS, such as lab=vllm" in capsys.readouterr().err
