"""The content of the README, and of the pages that it leads to, is true."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from pytest_openclaw.judging.registry import BUILTIN as VALIDATORS
from pytest_openclaw.judging.registry import build_registry
from pytest_openclaw.providers import BUILTIN as PROVIDERS
from pytest_openclaw.suites.load import parse_suite
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
