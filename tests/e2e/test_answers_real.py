"""The same suite through all providers against the same weights: plain, under two workers, and unstreamed."""

from __future__ import annotations

import re
from collections.abc import Callable
from typing import Any

import pytest

from tests.e2e.sessions import Ended, Project, all_gone

pytestmark = [pytest.mark.engine, pytest.mark.claude]

MODEL = "smollm2:135m"
CHAT = ("llama_cpp", "ollama_openai")
HTTP = (*CHAT, "openai_responses")
ALL = (*HTTP, "claude_code_cli")
PROMPTS: list[dict[str, Any]] = [
    {
        "id": "P1",
        "name": "capital",
        "prompt": "What is the capital of France?",
        "validator": {"type": "contains", "value": "Paris"},
        "max_output_tokens": 24,
    },
    {
        "id": "P2",
        "name": "parrot",
        "prompt": "Reply with exactly: PONG",
        "validator": {"type": "exact", "value": "PONG"},
        "max_output_tokens": 16,
    },
    {"id": "P3", "name": "cut", "prompt": "List three fruits.", "max_output_tokens": 4},
    {"id": "P4", "name": "too_long", "prompt": "word " * 9000},
]
OPTIONS = {"plain": (), "workers": ("-n", "2"), "whole": ("--openclaw-stream=off",)}

Asking = Callable[[str], Ended]


@pytest.fixture(scope="module")
def asking(tmp_path_factory: pytest.TempPathFactory, served: dict[str, str], claude: str) -> Asking:
    """Run the session of a name, once for all tests of this file."""
    ended: dict[str, Ended] = {}

    def ask(name: str) -> Ended:
        if name not in ended:
            project = Project.create(tmp_path_factory.mktemp(name) / "project")
            project = project.where(**served, OPENCLAW_CLAUDE_COMMAND=claude)
            project.suite(*PROMPTS)
            providers = HTTP if name == "whole" else ALL
            models = ",".join(f"{provider}/{MODEL}" for provider in providers)
            ended[name] = project.run(*OPTIONS[name], models=models)
        return ended[name]

    return ask


@pytest.fixture(params=["plain", pytest.param("workers", marks=[pytest.mark.workers, pytest.mark.nightly])])
def session(request: pytest.FixtureRequest, asking: Asking) -> Ended:
    """All four targets, in one process or with two workers."""
    return asking(request.param)


def test_every_cell_has_one_valid_row_and_an_outcome(session: Ended) -> None:
    """Sixteen cells give sixteen rows that satisfy the schema, and pytest counts each of them once."""
    cells = {(row["provider"], row["model"], row["prompt_id"]) for row in session.run.rows}
    judged = [row["objective_pass"] for row in session.run.rows if row["success"]]

    assert cells == {(provider, MODEL, prompt["id"]) for provider in ALL for prompt in PROMPTS}
    assert session.run.n_rows == len(cells)
    assert session.outcomes == {
        "passed": len(judged) - judged.count(False),
        "failed": judged.count(False),
        "errors": len(ALL),
    }
    assert session.status == 1


@pytest.mark.parametrize("provider", HTTP)
def test_verdicts(session: Ended, provider: str) -> None:
    """A right answer passes, a wrong one fails with its violation, an unjudged one is neither."""
    rows = session.run.rows_of(provider)

    assert {key: rows[key]["objective_pass"] for key in ("P1", "P2", "P3")} == {
        "P1": True,
        "P2": False,
        "P3": None,
    }
    assert "Paris" in rows["P1"]["raw_output"]
    assert rows["P2"]["violation"].endswith('is not "PONG"')
    assert f"P2[{provider}/{MODEL}]" in session.text


@pytest.mark.parametrize("provider", ALL)
def test_answers(session: Ended, provider: str) -> None:
    """A row with a reply has text, token counts, the model's name, an end reason and one attempt."""
    rows = session.run.rows_of(provider)

    for key in ("P1", "P2", "P3"):
        row = rows[key]
        assert (row["availability_status"], row["success"], row["failure_type"]) == ("ok", True, None)
        assert row["raw_output"]
        assert row["effective_model"] == MODEL
        assert row["finish_reason"]
        assert row["input_tokens"] > 0
        assert row["output_tokens"] > 0
        assert (row["attempts"], row["retry_wait_ms"], row["in_flight"]) == (1, 0, 1)
        assert (row["tool_calls"], row["tool_call_count"], row["tool_use_success"]) == ([], 0, False)
    assert rows["P3"]["output_tokens"] == 4
    assert rows["P2"]["output_tokens"] <= 16


@pytest.mark.parametrize("provider", ALL)
def test_times(session: Ended, provider: str) -> None:
    """The first token comes before the end, the end is consistent with the start, and no cell queues."""
    rows = session.run.rows_of(provider)

    for key in ("P1", "P2", "P3"):
        row = rows[key]
        assert 0 < row["ttft_ms"] <= row["ttfo_ms"] <= row["e2e_ms"]
    assert rows["P1"]["ttft_ms"] < rows["P1"]["e2e_ms"]
    for row in rows.values():
        assert abs(row["ended_at_ms"] - row["started_at_ms"] - row["e2e_ms"]) <= 1


@pytest.mark.parametrize("provider", ALL)
def test_a_prompt_beyond_the_context_is_an_error_of_its_own(session: Ended, provider: str) -> None:
    """The row has no verdict, no reply and no retry, but the server's message."""
    row = session.run.rows_of(provider)["P4"]

    assert (row["availability_status"], row["failure_type"], row["success"]) == (
        "error",
        "context_overflow",
        False,
    )
    # The embedded engine's context is known beforehand; the other server receives the request and refuses it.
    ours = provider == "llama_cpp"
    assert (row["objective_pass"], row["ttft_ms"], row["output_tokens"], row["attempts"]) == (
        None,
        None,
        None,
        0 if ours else 1,
    )
    assert row["fault_message"].startswith(
        f"{provider}: not asked: the prompt has at least 9000 tokens, and {MODEL}'s context holds 8192."
        if ours
        else f"{provider}: the prompt is longer than {MODEL}'s context: request ("
    )
    assert f"P4[{row['provider']}/{MODEL}] {row['fault_message']}" in session.text


@pytest.mark.nightly
@pytest.mark.parametrize("prompt_id", ["P1", "P2", "P3"])
def test_the_answer_depends_on_nothing_but_the_prompt(asking: Asking, prompt_id: str) -> None:
    """At temperature 0 three APIs give the same reply: when repeated, with workers, streamed or not."""
    answers = {
        (name, provider): asking(name).run.rows_of(provider)[prompt_id]["raw_output"]
        for name in OPTIONS
        for provider in HTTP
    }
    tokens = {
        (row["input_tokens"], row["output_tokens"])
        for name in OPTIONS
        for row in asking(name).run.rows
        if row["prompt_id"] == prompt_id and row["provider"] in HTTP
    }

    assert len(set(answers.values())) == 1, answers
    assert len(tokens) == 1


@pytest.mark.nightly
@pytest.mark.parametrize("provider", HTTP)
def test_without_a_stream_there_is_no_first_token(asking: Asking, provider: str) -> None:
    """`--openclaw-stream=off` leaves both first-token times empty, in rows and summary."""
    session = asking("whole")
    rows = session.run.rows_of(provider)

    for key in ("P1", "P2", "P3"):
        row = rows[key]
        assert (row["ttft_ms"], row["ttfo_ms"], row["success"]) == (None, None, True)
        assert row["e2e_ms"] > 0
    assert rows["P4"]["failure_type"] == "context_overflow"
    assert set(session.run.group(provider)["ttft_ms"].values()) == {None}
    assert session.run.load("config.json")["stream"] is False


@pytest.mark.parametrize("provider", ALL)
def test_the_summary_of_a_target(session: Ended, provider: str) -> None:
    """Rates count the replies that were judged; the prompt that is too long is an error, not a failure."""
    group = session.run.group(provider)
    rows = session.run.rows_of(provider).values()
    judged = [row["objective_pass"] for row in rows if row["objective_pass"] is not None]

    assert {key: value for key, value in group.items() if key.startswith("n_")} == {
        "n_total": 4,
        "n_ok": 3,
        "n_success": 3,
        "n_skipped_unavailable": 0,
        "n_rate_limited": 0,
        "n_error": 1,
        "n_auth_error": 0,
        "n_native_unanswered": 0,
        "n_open_probes": 0,
    }
    assert group["success_rate_ok"] == 1.0
    assert group["objective_pass_rate"] == judged.count(True) / 2
    assert group["latency_ms"]["p50"] == sorted(row["e2e_ms"] for row in rows if row["success"])[1]
    assert group["tokens_per_s"] > 0
    assert group["wall_clock_ms"] == max(row["ended_at_ms"] for row in rows) - min(
        row["started_at_ms"] for row in rows
    )
    assert group["tool_use"]["tier"] is None


def test_the_summary_is_finished(session: Ended) -> None:
    """The summary is marked complete, with a group for each target in the order of the command line."""
    summary = session.run.summary

    assert (summary["state"], summary["n_cells"], summary["n_rows"]) == ("finished", 16, 16)
    assert [group["provider"] for group in summary["groups"]] == list(ALL)


def test_every_file_is_there_and_nothing_else(session: Ended) -> None:
    """The run directory has the documented files, a snapshot before and after each target, and no lock."""
    snapshots = [f"resources_{name}__smollm2_135m_{when}.txt" for name in ALL for when in ("after", "before")]

    assert session.run.files == sorted(
        [
            "comment.md",
            "config.json",
            "inventory.json",
            "results.jsonl",
            "summary.json",
            "summary.md",
            *snapshots,
        ]
    )


@pytest.mark.parametrize("provider", ALL)
def test_resources_before_and_after(session: Ended, provider: str) -> None:
    """Each target has memory, load and disk of the machine before and after it, on disk and in its group."""
    group = session.run.group(provider)

    for when in ("before", "after"):
        snapshot = group[f"resources_{when}"]
        text = (session.run.path / f"resources_{provider}__smollm2_135m_{when}.txt").read_text("utf-8")
        assert text.startswith(f"# {provider}/{MODEL}, {when}\n")
        assert snapshot["memory_total_bytes"] >= snapshot["memory_used_bytes"] > 0
        assert str(snapshot["memory_used_bytes"]) in text
    assert group["resources_before"]["taken_at_ms"] <= group["resources_after"]["taken_at_ms"]


def test_the_inventory_describes_the_servers(session: Ended) -> None:
    """Each server's fingerprint has its known facts: weights, quantisation, context, template, version."""
    serving = session.run.load("inventory.json")["targets"]
    embedded, over_http = (serving[f"{provider}/{MODEL}"] for provider in CHAT)

    assert embedded["warm_up"]["ok"]
    assert over_http["warm_up"]["ok"]
    assert embedded["server"]["digest"].startswith("sha256:")
    for server in (embedded["server"], over_http["server"]):
        facts = (server["server"], server["quantisation"], server["context_length"])
        assert facts == ("llama.cpp", "Q4_1", 8192)
        assert len(server["template_sha256"]) == 64
    assert "Claude Code" in serving[f"claude_code_cli/{MODEL}"]["server"]["cli_version"]


def test_no_key_is_written_anywhere(session: Ended, served: dict[str, str]) -> None:
    """The key that all three providers use is in no file of the run and in no line of the terminal."""
    files = "".join(path.read_text("utf-8") for path in session.run.path.iterdir())

    assert served["OPENAI_API_KEY"] not in files
    assert served["OPENAI_API_KEY"] not in session.text
    assert "OPENAI_API_KEY" in files


def test_one_engine_that_ends_with_the_session(session: Ended) -> None:
    """A session starts one engine and leaves no process and no temporary file."""
    assert len(session.engines) == 1
    assert all_gone(session.engines)
    assert session.left == []


def test_the_page_fits_eighty_columns(session: Ended) -> None:
    """The plugin's terminal lines are at most 80 columns wide and report the cells without a reply."""
    assert session.wide_lines == []
    for provider in ALL:
        shortened = rf".{{18}}{provider[:12]}\S*/.*: 1 cell: "
        assert any(re.match(shortened, line) for line in session.page)


def test_workers_share_one_engine(project: Project, embedded_model: str) -> None:
    """Two workers that both use the embedded model share one engine."""
    project.suite(*({**PROMPTS[2], "id": f"P{number}"} for number in range(1, 7)))

    session = project.run(
        "-n", "2", "-v", "--openclaw-concurrency=2", models=f"llama_cpp/{embedded_model}"
    )  # fmt: skip

    assert (session.status, session.outcomes) == (0, {"passed": 6})
    assert all(f"[gw{number}]" in session.text for number in (0, 1))
    assert len({row["raw_output"] for row in session.run.rows}) == 1
    assert len(session.engines) == 1
    assert all_gone(session.engines)
    assert session.left == []
