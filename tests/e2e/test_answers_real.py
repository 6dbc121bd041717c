"""The same suite through several providers against the same weights: plain, under two workers, and unstreamed."""

import pytest

from tests.e2e.sessions import Project, all_gone

pytestmark = pytest.mark.engine

MODEL = "smollm2:135m"
CHAT = ("llama_cpp", "ollama_openai")
ALL = (*CHAT, "openai_responses")
PARIS, PONG = {"type": "contains", "value": "Paris"}, {"type": "exact", "value": "PONG"}
PROMPTS = [
    {"id": "P1", "prompt": "What is the capital of France?", "max_output_tokens": 24, "validator": PARIS},
    {"id": "P2", "prompt": "Reply with exactly: PONG", "max_output_tokens": 16, "validator": PONG},
    {"id": "P3", "prompt": "List three fruits.", "max_output_tokens": 4},
    {"id": "P4", "prompt": "word " * 9000},
]
ANSWERED = ("P1", "P2", "P3")
OPTIONS = {"plain": (), "workers": ("-n", "2"), "whole": ("--openclaw-stream=off",)}


@pytest.fixture(scope="module")
def asking(tmp_path_factory, served):
    ended = {}

    def ask(name):
        if name not in ended:
            project = Project.create(tmp_path_factory.mktemp(name) / "project").where(**served)
            project.suite(*PROMPTS)
            ended[name] = project.run(*OPTIONS[name], models=",".join(f"{one}/{MODEL}" for one in ALL))
        return ended[name]

    return ask


@pytest.fixture
def session(asking):
    return asking("plain")


def test_every_cell_has_one_row_and_an_outcome(session):
    """A right answer passes, a wrong one fails, an unjudged one is neither; a too long prompt is an error."""
    assert session.run.n_rows == len(ALL) * len(PROMPTS)
    assert session.outcomes == {"passed": 2 * len(ALL), "failed": len(ALL), "errors": len(ALL)}
    assert session.status == 1
    for provider in ALL:
        rows = session.run.rows_of(provider)
        verdicts = {key: row["objective_pass"] for key, row in rows.items()}
        assert verdicts == {"P1": True, "P2": False, "P3": None, "P4": None}
        assert "Paris" in rows["P1"]["raw_output"]
        assert rows["P2"]["violation"].endswith('is not "PONG"')
        assert f"P2[{provider}/{MODEL}]" in session.text


def test_answers_have_counts_and_times(session):
    """Token counts, the model's name, an end reason, one attempt; the first token comes before the end."""
    for provider in ALL:
        rows = session.run.rows_of(provider)
        for key in ANSWERED:
            row = rows[key]
            assert (row["availability_status"], row["success"], row["failure_type"]) == ("ok", True, None)
            assert (row["effective_model"], bool(row["finish_reason"])) == (MODEL, True)
            assert min(row["input_tokens"], row["output_tokens"]) > 0
            assert (row["attempts"], row["retry_wait_ms"], row["in_flight"]) == (1, 0, 1)
            assert 0 < row["ttft_ms"] <= row["ttfo_ms"] <= row["e2e_ms"]
        assert rows["P3"]["output_tokens"] == 4
        for row in rows.values():
            assert abs(row["ended_at_ms"] - row["started_at_ms"] - row["e2e_ms"]) <= 1


@pytest.mark.nightly
def test_the_answer_depends_only_on_the_prompt(asking):
    """At temperature 0 three APIs give the same reply: with workers, streamed or not."""
    for prompt_id in ANSWERED:
        rows = [asking(name).run.rows_of(provider)[prompt_id] for name in OPTIONS for provider in ALL]
        assert len({(row["raw_output"], row["input_tokens"], row["output_tokens"]) for row in rows}) == 1


def test_nothing_is_left_but_the_run(session, served):
    """One engine ends with the session; no temporary file is left, no key is in any file."""
    files = "".join(path.read_text("utf-8") for path in session.run.run_dir.iterdir())

    assert served["OPENAI_API_KEY"] not in files + session.text
    assert "OPENAI_API_KEY" in files
    assert len(session.engines) == 1
    assert all_gone(session.engines)
    assert session.left == []


@pytest.mark.nightly
def test_workers_share_one_engine(project, embedded_model):
    """Two workers that both use the embedded model share one engine."""
    project.suite(*({**PROMPTS[2], "id": f"P{number}"} for number in range(1, 7)))

    words = ("-n", "2", "-v", "--openclaw-concurrency=2")
    session = project.run(*words, models=f"llama_cpp/{embedded_model}")

    assert (session.status, session.outcomes) == (0, {"passed": 6})
    assert all(f"[gw{number}]" in session.text for number in (0, 1))
    assert len({row["raw_output"] for row in session.run.rows}) == 1
    assert len(session.engines) == 1
    assert all_gone(session.engines)
    assert session.left == []
