"""Options and their ini keys: their effect, and the message for a wrong one before the first call."""

import pytest

from pytest_openclaw.providers.llama_cpp import provider as llama_cpp
from tests.plugin.conftest import NOOP

WRONG = [
    ("--openclaw-timeout=0", "--openclaw-timeout=0: give seconds greater than 0"),
    ("--openclaw-concurrency=0", "give a number from 1 to 9999"),
    ("--openclaw-concurrency=missing=2", "there is no provider 'missing'"),
    ("openclaw_num_ctx=0", "give a whole number of tokens"),
    ("openclaw_timeout=soon", "openclaw_timeout=soon: give seconds"),
    ("--openclaw-stream=yes", "give on or off"),
    ("--openclaw-verdict=both", "give cells or gate"),
    ("--openclaw-require-tier=0", "give tier 1, 2 or 3"),
    ("--openclaw-thinking=deep", "give low, medium, high, xhigh or none"),
    ("--openclaw-providers=ollama", "--openclaw-providers=ollama: there is no provider"),
    ("--openclaw-prompts=P99", "--openclaw-prompts: no prompt has the id P99"),
    ("--openclaw-runs-dir=/proc/nowhere", "the run cannot be recorded"),
    ("--openclaw-temperature=3", "give a number from 0 to 2, or server to send none"),
    ("--openclaw-seed=1", "--openclaw-seed: scripted cannot send that"),
    ("openclaw_request_fields=scripted = [1]", "write JSON, an object"),
    ("openclaw_request_fields=lob = {}", "there is no provider 'lob'"),
    ("openclaw_endpoints=lab = nokind http://127.0.0.1/v1", "its kind is unknown"),
    ("openclaw_endpoints=scripted = ollama_openai http://127.0.0.1/v1", "is a provider already"),
    ("openclaw_prices=lab/m", "openclaw_prices: 'lab/m': write GLOB = INPUT OUTPUT [CACHED]"),
    ("openclaw_prices=lab/m = 2", "write GLOB = INPUT OUTPUT [CACHED]"),
    ("openclaw_prices=lab/m = 2 -8", "write GLOB = INPUT OUTPUT [CACHED]"),
    ("--openclaw-baseline=r9", "--openclaw-baseline=r9: there is no run r9"),
    ("--openclaw-baseline=last", "a first run is measured with --openclaw-baseline=off"),
    (
        "--openclaw-baseline=last --openclaw-fail-on=regression",
        "with --openclaw-baseline=off --openclaw-fail-on=off",
    ),
    ("--openclaw-fail-on=regression", "name the run to compare with: --openclaw-baseline=RUN"),
    ("--openclaw-fail-on=everything", "--openclaw-fail-on=everything: give regression, or off"),
    ("--openclaw-across=weather", "--openclaw-across=weather: give prompt, validator"),
    ("--openclaw-catalogue=gone.json", "--openclaw-catalogue=gone.json: cannot be read"),
    ("--openclaw-catalogue=conftest.py", "--openclaw-catalogue=conftest.py: is not JSON"),
    ("--openclaw-surface=real", "--openclaw-surface=real: give listed or openclaw"),
    ("--openclaw-surface=openclaw --openclaw-catalogue=gone.json", "--openclaw-catalogue=gone.json"),
    ("openclaw_tasks_pass=most", "give a rate from 0 to 1"),
    ("--openclaw-oracle", "leave out --openclaw-models"),
    *((f"--openclaw-shard={part}", "give K/N, part K of N") for part in ("4/3", "0/3", "half")),
    ("--openclaw-shard=1/2", "1 cells are selected; N can be at most 1"),
    ("--openclaw-shard=1/1 --openclaw-until-conclusive", "cannot settle its tier"),
]


@pytest.mark.parametrize(("word", "message"), WRONG)
def test_a_wrong_option_is_a_usage_error(plain_project, word, message):
    """Of an option or an ini key: exit status 4, one message, no request, no run directory."""
    plain_project.suite({"P1": ("say yes", NOOP)})

    plain_project.run(*(word.split() if word.startswith("-") else ["-o", word])).is_refused(message)


def test_a_name_is_defined_once(plain_project):
    """Two endpoints of one name, or a second run with the same id, are refused before a request."""
    plain_project.suite({"P1": ("say yes", NOOP)})
    first = plain_project.run("--openclaw-run-id=mine")
    again = plain_project.run("--openclaw-run-id=mine")

    assert first.status == 0
    again.is_refused("the run mine exists already")
    assert len(first.rows) == 1

    lines = (f"    gemini = gemini http://127.0.0.1/{name}" for name in "ab")
    plain_project.ini("openclaw_endpoints =", *lines)
    plain_project.run().is_refused("'gemini' is a provider already")


def test_ini_keys_and_the_command_line(project):
    """Each ini key means the same as its option; the command line takes precedence."""
    project.ini(
        "openclaw_models = scripted/a",
        "    scripted/b",
        "openclaw_thinking = high",
        "openclaw_timeout = 7",
        "openclaw_retries = 2",
        "openclaw_runs_dir = runs",
        "openclaw_stream = off",
        "openclaw_run_id = from-ini",
        "openclaw_report = true",
    )
    project.suite({"P1": ("level", {"type": "exact", "value": "high"})})

    session = project.run("--openclaw-retries=3", models=None)

    session.outcomes(passed=2)
    config = session.load("config.json")
    assert [target["model"] for target in config["targets"]] == ["a", "b"]
    assert (config["timeout_s"], config["retries"], config["stream"]) == (7.0, 3, False)
    assert session.run_dir.name == "from-ini"
    assert (session.run_dir / "report.html").exists()


def test_models_are_crossed_with_providers_and_levels(project):
    """A level or provider in the spec stays; `provider/*` is resolved once, by the controller."""
    project.suite({"P1": ("say yes", NOOP)})

    session = project.run(
        "--openclaw-providers=scripted",
        "--openclaw-thinking=low,none",
        models="one,scripted/two@high,scripted/*a*@low",
    )

    labels = {(row["model"], row["thinking_level"]) for row in session.rows}
    served = {(model, "low") for model in ("alpha", "beta", "gamma:1b")}
    assert labels == {("one", None), ("one", "low"), ("two", "high"), *served}
    assert session.asked.count("models") == 1


def test_listing_sends_and_writes_nothing(project):
    """With models in the ini too, a list shows one placeholder for a wildcard and leaves no trace."""
    project.ini("openclaw_models = scripted/*", "openclaw_runs_dir = runs")
    project.suite({"P1": ("crash", NOOP)})

    listing = project.run("--collect-only", models=None)
    plan = project.run("--setup-plan", models=None)

    assert "P1[scripted/*]" in listing.text
    for session in (listing, plan):
        assert (session.status, session.asked, session.has_run) == (0, [], False)


@pytest.mark.parametrize("option", ["", "-pno:openclaw"], ids=["without-models", "switched-off"])
def test_a_plain_session_is_unchanged(plain_project, option):
    """Without models and without a named benchmark, or without the plugin, only a project's own tests run."""
    plain_project.suite({"P1": ("crash", NOOP)})
    plain_project.write("test_own.py", "def test_own(): pass\n")
    if option:
        plain_project.write("conftest.py", "")

    session = plain_project.run(*filter(None, [option]), models=None, target="", apart=bool(option))

    session.outcomes(passed=1)
    assert "openclaw" not in session.text.replace("openclaw-0.1.0", "").replace(option, "")
    assert not session.has_run


@pytest.mark.parametrize(
    ("path", "target", "message"),
    [
        ("benchmarks/prompts_mine.yaml", "", "prompts_mine.yaml: suites are TOML or JSON"),
        ("benchmarks/prompts_mine.jsonl", "benchmarks", "prompts_mine.jsonl: suites are TOML or JSON"),
        ("benchmarks/prompts_mine.TOML", "", "prompts_mine.TOML: suites are TOML or JSON"),
        ("benchmarks/mine.toml", "", "mine.toml is not a suite: rename it to prompts_mine.toml"),
    ],
)
def test_a_file_that_is_not_a_suite_is_an_error(plain_project, path, target, message):
    """A named file, or one of that name in the folder, is not silently left out."""
    plain_project.suite({"P1": ("say yes", NOOP)})
    plain_project.write(path, "prompts = []")

    session = plain_project.run(target=target or path)

    assert message in session.words
    assert session.status in (pytest.ExitCode.INTERRUPTED, pytest.ExitCode.USAGE_ERROR)


def test_a_file_of_another_kind_is_left_to_pytest(plain_project):
    """A named file outside the suites' folder may belong to another plugin."""
    plain_project.suite({"P1": ("say yes", NOOP)})
    plain_project.write("other.toml", "x = 1")

    session = plain_project.run(models=None, target="other.toml")

    assert "is not a suite" not in session.text


@pytest.mark.parametrize("is_installed", [True, False], ids=["installed", "not-installed"])
def test_a_named_benchmark_without_a_model(plain_project, monkeypatch, is_installed):
    """The embedded model is the default; where it is not installed, the message says what to do."""
    monkeypatch.setattr(llama_cpp, "embedded_model_is_installed", lambda: is_installed)
    plain_project.suite({"P1": ("say yes", NOOP)})

    session = plain_project.run("--collect-only", "-q", models=None)

    if is_installed:
        assert "P1[llama_cpp/smollm2:135m]" in session.text
    else:
        session.is_refused("no model to ask. Name one, for example --openclaw-models=")


@pytest.mark.parametrize(
    ("variable", "provider"), [("", "ollama_native"), ("http://127.0.0.1:9/v1", "ollama_openai")]
)
def test_a_bare_model_uses_the_api_that_openclaw_uses(plain_project, monkeypatch, variable, provider):
    """A model without a provider is asked by Ollama's own API, unless `OLLAMA_OPENAI_BASE` is set."""
    monkeypatch.setenv("OLLAMA_OPENAI_BASE", variable)
    plain_project.suite({"P1": ("say yes", NOOP)})

    session = plain_project.run("--collect-only", "-q", models="qwen3:8b")

    assert f"P1[{provider}/qwen3:8b]" in session.text


def test_a_folder_that_is_not_configured_for_suites_is_named(plain_project):
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
