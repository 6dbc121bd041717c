"""The content of the README, and of the pages that it leads to, is true; what they show exists."""

import re
from pathlib import Path

import pytest

from pytest_openclaw import hookspecs
from pytest_openclaw.cli import command_modules
from pytest_openclaw.judging.registry import BUILTIN as VALIDATORS
from pytest_openclaw.providers import BUILTIN as PROVIDERS
from pytest_openclaw.suites.load import parse_suite
from pytest_openclaw.values.run_files import load_schema
from tests.builtin import REGISTRY

pytestmark = pytest.mark.newest

ROOT = Path(__file__).parent.parent
README = (ROOT / "README.md").read_text("utf-8")


def _page(name):
    return (ROOT / "docs" / f"{name}.md").read_text("utf-8")


def _blocks(language, page):
    return re.findall(rf"```{language}[^\n]*\n(.*?)```", page, re.DOTALL)


@pytest.mark.parametrize(
    ("page", "ids"),
    [
        (README, [["H1", "H2"]]),
        (_page("reference/suites"), [["P1", "T1"], ["P7"], ["N2"], ["S0"]]),
        (_page("reference/worlds"), [["N1-11t", "N1-54t", "N1-2k"], ["W1"], ["W2"]]),
    ],
    ids=["README", "suites", "worlds"],
)
def test_the_suites_load(page, ids):
    """The TOML suites that are shown are suites."""
    suites = [
        parse_suite(text, format="toml", name="page.md", registry=REGISTRY) for text in _blocks("toml", page)
    ]

    assert [[prompt.id for prompt in suite.prompts] for suite in suites] == ids


def test_providers_are_named_and_validators_counted():
    """The table has every provider, and the number of validators is right."""
    assert all(f"`{provider.name}`" in README for provider in PROVIDERS)
    assert f"There are {len(VALIDATORS)} validators" in README


def test_the_row_fields_are_all_named():
    """The table of row fields is complete, and names no other field."""
    table = _page("reference/run").split("A row has the fields of")[1].split("### Failures")[0]
    named = {
        word
        for line in table.splitlines()
        if line.startswith("| ")
        for word in re.findall(r"`(\w+)`", line.split("|")[2])
    }

    assert named == set(load_schema("row")["properties"]) - {"record_type", "schema_version"}


def test_the_python_benchmark_works(pytester):
    """The Python benchmark of the page of suites is collected once for each target."""
    blocks = _blocks("python", _page("reference/suites"))
    snippet = next(block for block in blocks if "reads_before" in block)
    pytester.makepyfile("import pytest\n" + snippet)

    result = pytester.runpytest_subprocess(
        "--collect-only", "-q", "--openclaw-models=llama_cpp/a,llama_cpp/b"
    )

    assert "test_reads_before_editing[llama_cpp/a]" in result.stdout.str()
    assert "test_reads_before_editing[llama_cpp/b]" in result.stdout.str()


EXAMPLES = {path.read_text("utf-8"): path.stem for path in (ROOT / "tests/examples").glob("*.py")}
QUOTING = ("extending", "how-to/cost", "how-to/validator", "how-to/provider")
HOOKS = {name for name in vars(hookspecs) if name.startswith("pytest_openclaw_")}


def _quoted(page):
    blocks = _blocks("python", (ROOT / page).read_text("utf-8"))
    return [block for block in blocks if "def pytest_openclaw_" in block]


def test_every_hook_has_an_example_and_every_example_is_shown():
    """The pages quote all examples word for word, and the table of extensions names every hook."""
    page = (ROOT / "docs/extending.md").read_text("utf-8")
    shown = [_quoted(one) for one in ("README.md", *(f"docs/{name}.md" for name in QUOTING))]

    assert all(shown)
    assert {EXAMPLES[block] for blocks in shown for block in blocks} == set(EXAMPLES.values())
    assert {name for text in EXAMPLES for name in re.findall(r"def (pytest_openclaw_\w+)", text)} == HOOKS
    assert all(f"| `{name}` |" in page for name in HOOKS)


def test_the_page_of_commands_names_them_all():
    """Each has its line in the table."""
    page = (ROOT / "docs/commands.md").read_text("utf-8")

    assert set(re.findall(r"^\| `([\w-]+)", page, re.MULTILINE)) == set(command_modules())
