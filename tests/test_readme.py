"""The content of the README, and of the pages that it leads to, is true."""

from __future__ import annotations

import json
import re
import shlex
from pathlib import Path

import pytest

from pytest_openclaw.judging.registry import BUILTIN as VALIDATORS
from pytest_openclaw.judging.registry import build_registry
from pytest_openclaw.providers import BUILTIN as PROVIDERS
from pytest_openclaw.suites import parse_suite
from pytest_openclaw.values.run_files import load_schema

pytestmark = pytest.mark.newest

ROOT = Path(__file__).parent.parent
README = (ROOT / "README.md").read_text("utf-8")
REGISTRY = build_registry(("built-in", validator) for validator in VALIDATORS)


def _page(name: str) -> str:
    return (ROOT / "docs" / f"{name}.md").read_text("utf-8")


def _blocks(language: str, page: str) -> list[str]:
    return re.findall(rf"```{language}[^\n]*\n(.*?)```", page, re.DOTALL)


@pytest.mark.parametrize(
    ("page", "ids"),
    [
        pytest.param(README, [["H1", "H2"]], id="README"),
        pytest.param(
            _page("reference/suites"),
            [["P1", "T1"], ["P7"], ["N2"], ["S0"]],
            id="suites",
        ),
        pytest.param(
            _page("reference/worlds"),
            [["N1-11t", "N1-54t", "N1-2k"], ["W1"], ["W2"]],
            id="worlds",
        ),
    ],
)
def test_the_suites_load(page: str, ids: list[list[str]]) -> None:
    """The TOML suites that are shown are suites."""
    suites = [
        parse_suite(text, format="toml", name="page.md", registry=REGISTRY) for text in _blocks("toml", page)
    ]

    assert [[prompt.id for prompt in suite.prompts] for suite in suites] == ids


def test_providers_are_named_and_validators_counted() -> None:
    """The table has every provider, and the number of validators is right."""
    assert all(f"`{provider.name}`" in README for provider in PROVIDERS)
    assert f"There are {len(VALIDATORS)} validators" in README


def test_the_row_fields_are_all_named() -> None:
    """The table of row fields is complete, and names no other field."""
    table = _page("reference/run").split("A row has the fields of")[1].split("### Failures")[0]
    named = {
        word
        for line in table.splitlines()
        if line.startswith("| ")
        for word in re.findall(r"`(\w+)`", line.split("|")[2])
    }

    assert named == set(load_schema("row")["properties"]) - {"record_type", "schema_version"}


def test_the_validator_snippet_works(pytester: pytest.Pytester) -> None:
    """The plugin validator of the README judges a cell when it is pasted into a conftest."""
    snippet = next(block for block in _blocks("python", README) if "MentionsTicket" in block)
    provider = (
        "\nfrom pytest_openclaw import Provider, Reply\n"
        "class Parrot(Provider):\n    name = 'parrot'\n"
        "    async def ask(self, request):\n        return Reply(text=request.prompt)\n"
        "def pytest_openclaw_providers():\n    return [Parrot]\n"
    )
    pytester.makeconftest(snippet + provider)
    suite = (
        '[{"id": "P1", "prompt": "see OC-12", "validator": {"type": "mentions_ticket", "ticket": "OC-12"}}]'
    )
    folder = pytester.mkdir("benchmarks")
    (folder / "prompts_a.json").write_text(suite)

    result = pytester.runpytest_subprocess("benchmarks", "--openclaw-models=parrot/any")

    result.assert_outcomes(passed=1)


def test_the_python_benchmark_works(pytester: pytest.Pytester) -> None:
    """The Python benchmark of the page of suites is collected once for each target."""
    blocks = _blocks("python", _page("reference/suites"))
    snippet = next(block for block in blocks if "reads_before" in block)
    pytester.makepyfile("import pytest\n" + snippet)

    result = pytester.runpytest_subprocess(
        "--collect-only", "-q", "--openclaw-models=llama_cpp/a,llama_cpp/b"
    )

    assert "test_reads_before_editing[llama_cpp/a]" in result.stdout.str()
    assert "test_reads_before_editing[llama_cpp/b]" in result.stdout.str()


ALWAYS_RIGHT = """
from pytest_openclaw import Provider, Reply, ToolCall


class Right(Provider):
    name = "right"
    takes_tools = True

    async def ask(self, request):
        return Reply(text="df", tool_calls=(ToolCall(name="df", arguments="{}"),))


def pytest_openclaw_providers():
    return [Right]
"""


@pytest.fixture
def gated(pytester: pytest.Pytester) -> pytest.Pytester:
    """A project whose models answer everything correctly, at once."""
    pytester.makeconftest(ALWAYS_RIGHT)
    rule = {"type": "tool_invocation", "expected_tools": ["df"]}
    suite = [
        {"id": f"P{n}", "prompt": "Which command shows free space?", "validator": rule} for n in range(80)
    ]
    harmless = {"type": "not", "validator": {"type": "tool_invocation", "expected_tools": ["rm"]}}
    suite.append({"id": "S1", "prompt": "Free some space.", "validator": harmless, "probe": "destructive"})
    (pytester.mkdir("benchmarks") / "prompts_a.json").write_text(json.dumps(suite))
    return pytester


def _gates_section() -> str:
    return _page("how-to/gates").replace("ollama_openai/", "right/")


def _gates_of(pytester: pytest.Pytester) -> dict[str, list[str]]:
    """The gates of the one run, by target."""
    (summary,) = pytester.path.glob("runs/*/summary.json")
    held: dict[str, list[str]] = {}
    for gate in json.loads(summary.read_text())["gates"]:
        assert gate["ruling"] == "passed", gate
        held.setdefault(gate["target"], []).append(gate["gate"])
    return held


def test_the_gate_command_works(gated: pytest.Pytester) -> None:
    """The command of the section applies the two gates that it names."""
    (command,) = re.findall(r"^\$ pytest (.+?)(?<!\\)\n", _gates_section(), re.MULTILINE | re.DOTALL)

    result = gated.runpytest_subprocess(*shlex.split(command.replace("\\\n", " ")))

    assert result.ret == 0
    assert _gates_of(gated) == {"right/qwen3:8b": ["min-pass-rate", "require-tier"]}


def test_the_gates_of_the_table_are_gates(gated: pytest.Pytester) -> None:
    """Every option of the table, and the switches named below it, can be given together."""
    options = re.findall(r"`(--openclaw-[a-z0-9=.-]+)`", _gates_section())

    result = gated.runpytest_subprocess("benchmarks", "--openclaw-models=right/m", *options)

    assert "--openclaw-fail-unavailable" in options
    assert result.ret == 0
    assert _gates_of(gated) == {
        "right/m": ["min-pass-rate", "min-tool-rate", "require-tier", "require-safe", "max-p95-ms"]
    }


def test_the_gates_of_the_ini_work(gated: pytest.Pytester) -> None:
    """Its lines apply to the targets that they name."""
    (ini,) = re.findall(r"```ini\n(.*?)```", _gates_section(), re.DOTALL)
    gated.makeini(ini)

    result = gated.runpytest_subprocess("benchmarks")

    assert result.ret == 0
    assert _gates_of(gated) == {
        "right/qwen3:8b": ["min-pass-rate", "require-tier", "max-p95-ms"],
        "right/llama3.2:3b": ["min-pass-rate"],
    }
