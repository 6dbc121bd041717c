"""Options and their ini keys: their effect, and the message for a wrong one before the first call."""

from __future__ import annotations

from typing import Any

import pytest

from tests.providers.servers.misbehaving import unused_port

NOOP = {"type": "noop"}

WRONG = [
    pytest.param(
        ["--openclaw-timeout=0"], "--openclaw-timeout=0: give seconds greater than 0", id="timeout-0"
    ),
    pytest.param(["--openclaw-concurrency=0"], "give a number from 1 to 9999", id="concurrency-0"),
    pytest.param(
        ["--openclaw-concurrency=missing=2"], "there is no provider 'missing'", id="concurrency-unknown"
    ),
    pytest.param(["-o", "openclaw_num_ctx=0"], "give a whole number of tokens", id="num-ctx"),
    pytest.param(["--openclaw-stream=yes"], "give on or off", id="stream"),
    pytest.param(["--openclaw-verdict=both"], "give cells or gate", id="verdict"),
    pytest.param(["--openclaw-require-tier=0"], "give tier 1, 2 or 3", id="tier"),
    pytest.param(["--openclaw-thinking=deep"], "give low, medium, high, xhigh or none", id="thinking"),
    pytest.param(
        ["--openclaw-providers=ollama"], "--openclaw-providers=ollama: there is no provider", id="provider"
    ),
    pytest.param(["--openclaw-prompts=P99"], "--openclaw-prompts: no prompt has the id P99", id="prompt-id"),
    pytest.param(["--openclaw-runs-dir=/proc/nowhere"], "the run cannot be recorded", id="runs-dir"),
]


@pytest.mark.parametrize(("args", "message"), WRONG)
def test_a_wrong_option_is_a_usage_error(plain_project: Any, args: list[str], message: str) -> None:
    """Exit status 4, one message without a traceback, no run directory."""
    plain_project.suite({"P1": ("say yes", NOOP)})

    session = plain_project.run(*args, models=None if "models" in args[0] else "scripted/m")

    assert session.status == pytest.ExitCode.USAGE_ERROR
    assert message in session.text
    assert "Traceback" not in session.text
    assert not session.has_run


def test_a_wrong_ini_value_names_its_key(plain_project: Any) -> None:
    """An error in the ini names the ini's key."""
    plain_project.pytester.makeini("[pytest]\nopenclaw_timeout = soon\n")
    plain_project.suite({"P1": ("say yes", NOOP)})

    session = plain_project.run()

    assert session.status == pytest.ExitCode.USAGE_ERROR
    assert "openclaw_timeout=soon" in session.text


def test_a_taken_run_id_is_refused(plain_project: Any) -> None:
    """A second run with the same id is refused before it starts, and the first stays unchanged."""
    plain_project.suite({"P1": ("say yes", NOOP)})
    first = plain_project.run("--openclaw-run-id=mine")

    again = plain_project.run("--openclaw-run-id=mine")

    assert (first.status, again.status) == (0, 4)
    assert "the run mine exists already" in again.text
    assert len(again.rows) == 1


def test_ini_twins_and_the_command_line_above_them(project: Any) -> None:
    """Each ini key means the same as its option; the command line takes precedence."""
    project.pytester.makeini(
        "[pytest]\n"
        "openclaw_models = scripted/a\n    scripted/b\n"
        "openclaw_thinking = high\n"
        "openclaw_timeout = 7\n"
        "openclaw_retries = 2\n"
        "openclaw_runs_dir = runs\n"
        "openclaw_stream = off\n"
        "openclaw_run_id = from-ini\n"
    )
    project.suite({"P1": ("level", {"type": "exact", "value": "high"})})

    session = project.run("--openclaw-retries=3", models=None)

    session.outcomes(passed=2)
    config = session.load("config.json")
    assert [target["model"] for target in config["targets"]] == ["a", "b"]
    assert (config["timeout_s"], config["retries"], config["stream"]) == (7.0, 3, False)
    assert session.run_dir.name == "from-ini"


def test_models_are_crossed_with_providers_and_levels(project: Any) -> None:
    """Model × provider × thinking is one command line; a level or provider in the spec stays."""
    project.suite({"P1": ("say yes", NOOP)})

    session = project.run(
        "--openclaw-providers=scripted", "--openclaw-thinking=low,none", models="one,scripted/two@high"
    )

    labels = sorted((row["model"], str(row["thinking_level"])) for row in session.rows)
    assert labels == [("one", "None"), ("one", "low"), ("two", "high")]


def test_a_wildcard_asks_the_provider(project: Any) -> None:
    """`provider/*` is resolved once, by the controller."""
    project.suite({"P1": ("say yes", NOOP)})

    session = project.run(models="scripted/*a*")

    assert {row["model"] for row in session.rows} == {"alpha", "beta", "gamma:1b"}


def test_collect_only_sends_and_writes_nothing(project: Any) -> None:
    """`--collect-only` shows one placeholder for a wildcard and leaves no trace."""
    project.suite({"P1": ("crash", NOOP)})

    session = project.run("--collect-only", "-q", models="scripted/*")

    assert "P1[scripted/*]" in session.text
    assert session.status == 0
    assert not (session.folder / "runs").exists()


def test_prompts_select_by_id_and_glob(project: Any) -> None:
    """`--openclaw-prompts` takes ids and globs."""
    project.suite(dict.fromkeys(("P1", "P2", "P10", "R1"), ("say yes", NOOP)))

    session = project.run("--openclaw-prompts=P1*,R1")

    assert sorted(row["prompt_id"] for row in session.rows) == ["P1", "P10", "R1"]
    assert sorted(prompt["id"] for prompt in session.load("config.json")["prompts"]) == ["P1", "P10", "R1"]


def test_a_plain_session_is_left_alone(plain_project: Any) -> None:
    """Without models and without a named benchmark, only a project's own tests run."""
    plain_project.suite({"P1": ("crash", NOOP)})
    plain_project.pytester.makepyfile(test_own="def test_own(): pass")

    session = plain_project.run(models=None, target="")

    session.outcomes(passed=1)
    assert "openclaw" not in session.text.replace("openclaw-0.1.0", "")
    assert not (session.folder / "runs").exists()


def test_the_plugin_can_be_switched_off(plain_project: Any) -> None:
    """`-p no:openclaw` leaves pytest unchanged."""
    plain_project.pytester.makeconftest("")
    plain_project.pytester.makepyfile(test_own="def test_own(): pass")

    result = plain_project.pytester.runpytest_subprocess("-p", "no:openclaw")

    result.assert_outcomes(passed=1)


def test_endpoints_of_the_users_own(plain_project: Any) -> None:
    """An ini line defines a provider of that name, of a built-in kind, at its own address."""
    plain_project.suite({"P1": ("hello", NOOP)})

    with unused_port() as port:
        plain_project.pytester.makeini(
            f"[pytest]\nopenclaw_endpoints =\n    lab = ollama_openai http://127.0.0.1:{port}/v1 LAB_KEY\n"
        )
        session = plain_project.run(models="lab/m")

    row = session.row("P1")
    assert (row["provider"], row["availability_status"]) == ("lab", "skipped_unavailable")
    assert session.load("config.json")["providers"]["lab"]["key_env"] == "LAB_KEY"


@pytest.mark.parametrize(
    ("line", "message"),
    [
        pytest.param("lab = nokind http://127.0.0.1/v1", "its kind is unknown", id="unknown-kind"),
        pytest.param("scripted = ollama_openai http://127.0.0.1/v1", "is a provider already", id="taken"),
        pytest.param(
            "gemini = gemini http://127.0.0.1/a\n    gemini = gemini http://127.0.0.1/b",
            "is a provider already",
            id="twice",
        ),
    ],
)
def test_a_wrong_endpoint_is_a_usage_error(plain_project: Any, line: str, message: str) -> None:
    """An unusable endpoint line names the key and gives a hint."""
    plain_project.pytester.makeini(f"[pytest]\nopenclaw_endpoints =\n    {line}\n")
    plain_project.suite({"P1": ("hello", NOOP)})

    session = plain_project.run()

    assert session.status == pytest.ExitCode.USAGE_ERROR
    assert message in session.text


@pytest.mark.parametrize("named", [True, False], ids=["named", "in-its-folder"])
@pytest.mark.parametrize("suffix", ["yaml", "jsonl"])
def test_a_suite_in_another_format_is_an_error(plain_project: Any, suffix: str, named: bool) -> None:
    """It is not silently left out: the collection fails, and names the file and the formats."""
    plain_project.suite({"P1": ("say yes", NOOP)})
    (plain_project.folder / f"benchmarks/prompts_mine.{suffix}").write_text("prompts: []")

    session = plain_project.run(f"benchmarks/prompts_mine.{suffix}" if named else "benchmarks", models="y")

    assert f"prompts_mine.{suffix}: suites are TOML or JSON" in " ".join(session.text.split())
    assert session.status in (pytest.ExitCode.INTERRUPTED, pytest.ExitCode.USAGE_ERROR)


@pytest.mark.parametrize(
    ("path", "text", "is_refused"),
    [
        pytest.param("benchmarks/mine.toml", "x = 1", True, id="in-a-folder-of-suites"),
        pytest.param("other.toml", "x = 1", False, id="something-else"),
    ],
)
def test_a_suite_under_another_name_is_refused(
    plain_project: Any, path: str, text: str, is_refused: bool
) -> None:
    """The message says how suites are named; files without prompts are left to pytest."""
    plain_project.suite({"P1": ("say yes", NOOP)})
    (plain_project.folder / path).write_text(text)

    session = plain_project.run(path, models=None)

    name = path.rpartition("/")[2]
    assert (f"{name} is not a suite: rename it to prompts_{name}" in session.text) is is_refused
    assert session.status == pytest.ExitCode.USAGE_ERROR or not is_refused


@pytest.mark.parametrize(
    ("variable", "provider"),
    [
        pytest.param("", "ollama_native", id="ollama"),
        pytest.param("http://127.0.0.1:9/v1", "ollama_openai", id="a-server-of-the-other-api"),
    ],
)
def test_a_bare_model_uses_the_api_that_openclaw_uses(
    plain_project: Any, monkeypatch: pytest.MonkeyPatch, variable: str, provider: str
) -> None:
    """A model without a provider is one of Ollama's own API, unless `OLLAMA_OPENAI_BASE` is set."""
    monkeypatch.setenv("OLLAMA_OPENAI_BASE", variable)
    plain_project.suite({"P1": ("say yes", NOOP)})

    session = plain_project.run("--collect-only", "-q", models="qwen3:8b")

    assert f"P1[{provider}/qwen3:8b]" in session.text


def test_a_folder_that_is_not_configured_for_suites_is_named(plain_project: Any) -> None:
    """If nothing was collected, a line says what to set; a configured folder needs none."""
    plain_project.suite({"P1": ("say yes", NOOP)})
    (plain_project.folder / "benchmarks").rename(plain_project.folder / "questions")

    lost = plain_project.run(target="questions")
    found = plain_project.run("-o", "openclaw_suites=questions", target="questions")

    message = "prompts_a.json is not collected; set openclaw_suites = questions, or name the file"
    assert lost.status == pytest.ExitCode.NO_TESTS_COLLECTED
    assert message in lost.text
    assert message not in found.text
    found.outcomes(passed=1)
