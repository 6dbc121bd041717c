"""Commands, options, targets and keys on the pages exist; commands for other machines are well formed."""

import dataclasses
import json
import re
import shlex
import sys
import tomllib
from textwrap import dedent

import pytest

from pytest_openclaw import cli
from pytest_openclaw.judging.registry import BUILTIN as VALIDATORS
from pytest_openclaw.options import all_options
from pytest_openclaw.providers import BUILTIN as PROVIDERS
from pytest_openclaw.session.cells import KEYS as MARK_KEYS
from pytest_openclaw.suites import load
from pytest_openclaw.suites.load import Document
from tests.docs.pages import File, commands_of, read_page
from tests.docs.reference import DOCS, SUITES_PAGE, load_reference
from tests.docs.terminal import Terminal, follow

# Collected once for all pages, shared by the tests of one worker.
pytestmark = [pytest.mark.newest, pytest.mark.xdist_group("pages")]

ROOT = DOCS.parent
# Their commands are run in order in test_followed_pages.py.
FOLLOWED = {ROOT / "README.md", *DOCS.glob("tutorial*.md"), DOCS / "how-to/images.md"}
PLUGINS = {DOCS / "how-to/validator.md", DOCS / "how-to/provider.md"}
# Its output is compared with the commands in test_comparison_page.py.
TESTED_APART = {DOCS / "comparison.md", DOCS / "how-to/route.md"}
PAGES = sorted([ROOT / "README.md", ROOT / "SECURITY.md", *DOCS.rglob("*.md")])
OTHER_PROGRAMS = {"export", "npm", "ollama", "openclaw", "sbatch", "scp", "ssh"}
LAB = "[pytest]\nopenclaw_models = parrot/any\n"
# Names of other things: a placeholder, a plugin's tool, an object in `summary.json`.
NO_KEYS = {"openclaw_x", "openclaw_ack", "openclaw_decision", "openclaw_text", "openclaw_turn"}
CONFTEST = (ROOT / "tests/examples/parrot_provider.py").read_text("utf-8")
PROMPT = (
    '[[prompts]]\nid = "P{}"\nprompt = "Say hello."\nvalidator = {{ type = "contains", value = "hello" }}\n'
)
SUITE = PROMPT.format(1) + PROMPT.format(2)


def _name(page):
    return str(page.relative_to(ROOT))


def programs(command):
    words = shlex.split(command.line, comments=True)
    parts = [[]]
    for word in words:
        if word in {"&&", ";"}:
            parts.append([])
        else:
            parts[-1].append(word.removesuffix(";"))
            if word.endswith(";"):
                parts.append([])
    return parts


# Commands of the pages that are followed are run there, and left out here.
NAMED = [
    pytest.param(words, id=f"{_name(page)}:{command.start}:{words[0]}")
    for page in PAGES
    for command in commands_of(page.read_text("utf-8"))
    if command.elsewhere or page not in FOLLOWED | PLUGINS
    for words in programs(command)
    if words[0] != "pytest" or (command.elsewhere and page not in FOLLOWED)
]


# Runs many sessions in one process; stdin has their folders and arguments, stdout their results.
COLLECT = """
import contextlib, io, json, os, sys
import pytest

results = []
for folder, words in json.load(sys.stdin):
    os.chdir(folder)
    with contextlib.redirect_stdout(io.StringIO()) as out, contextlib.redirect_stderr(out):
        status = pytest.main(words)
    results.append((int(status), out.getvalue()))
json.dump(results, sys.stdout)
"""


def collect(sessions, lab):
    given = json.dumps([(str(folder), [*words, "--collect-only", "-q"]) for folder, words in sessions])
    done = lab.run(shlex.join([sys.executable, "-c", COLLECT]), stdin=given)
    return json.loads(done.stdout)


@pytest.fixture(scope="module")
def collected(lab):
    words = sorted({tuple(rest) for case in NAMED for program, *rest in case.values if program == "pytest"})
    found = collect([(lab.folder, list(one)) for one in words], lab)
    return dict(zip(words, found, strict=True))


def made(folder, ini):
    terminal = Terminal(folder)
    terminal.write(File(path="pyproject.toml" if ini.startswith("[tool.") else "pytest.ini", text=ini))
    terminal.write(File(path="conftest.py", text=CONFTEST))
    terminal.write(File(path="benchmarks/prompts_a.toml", text=SUITE))
    return terminal


@pytest.fixture(scope="module")
def lab(tmp_path_factory):
    terminal = made(tmp_path_factory.mktemp("lab"), LAB)
    done = terminal.run("pytest benchmarks")
    assert done.returncode == 0, done.stdout
    return terminal


@pytest.mark.parametrize("words", NAMED)
def test_a_command_that_is_not_run_is_well_formed(words, collected):
    """Sessions collect with its options and targets, a command accepts its options, an extra exists."""
    program, *rest = words
    if program == "pytest":
        status, shown = collected[tuple(rest)]
        assert status == 0, shown
        assert re.search(r"prompts_a\.toml::P[12]\[", shown)
    elif words[:3] == ["python", "-m", "pytest_openclaw"]:
        cli.build_parser().parse_args(words[3:])
    elif program == "pytest-openclaw":
        cli.build_parser().parse_args(rest)
    elif program == "pip":
        assert rest[0] == "install"
        project = tomllib.loads((ROOT / "pyproject.toml").read_text("utf-8"))["project"]
        extras = project["optional-dependencies"]
        assert set(re.findall(r"\[(\w+)\]", " ".join(rest))) <= set(extras)
    elif program == "tox":
        tox = (ROOT / "tox.ini").read_text("utf-8")
        assert rest == [] or (rest[0] == "-e" and f"[testenv:{rest[1]}]" in tox)
    else:
        assert program in OTHER_PROGRAMS


INIS = {
    f"{_name(page)}:{n}": dedent(text)
    for page in PAGES
    for n, text in enumerate(
        re.findall(r"```(?:ini|toml(?=\n\[tool))[^\n]*\n(.*?) *```", page.read_text("utf-8"), re.DOTALL)
    )
}


@pytest.fixture(scope="module")
def accepted(tmp_path_factory):
    terminals = [made(tmp_path_factory.mktemp("ini"), ini) for ini in INIS.values()]
    words = ["benchmarks", "--openclaw-models=parrot/any", "--strict-config"]
    found = collect([(terminal.folder, words) for terminal in terminals], terminals[0])
    return dict(zip(INIS, found, strict=True))


@pytest.mark.parametrize("name", INIS)
def test_the_ini_files_of_the_pages_are_accepted(name, accepted):
    """They have endpoints, prices, gates and other keys."""
    status, shown = accepted[name]

    assert status == 0, shown
    assert "P1[parrot/any" in shown


@pytest.mark.parametrize("page", sorted(PLUGINS), ids=_name)
def test_a_page_that_needs_no_engine_prints_what_it_shows(page, tmp_path):
    """Files are written and commands run in order, in a fresh folder."""
    assert follow(read_page(page.read_text("utf-8")), Terminal(tmp_path)) == 1


@pytest.mark.parametrize("page", PAGES, ids=_name)
def test_no_output_is_shown_that_is_not_tested(page):
    """Only pages whose commands are run show output."""
    shown = [command for command in commands_of(page.read_text("utf-8")) if any(command.shown)]

    assert not [command.line for command in shown if command.elsewhere]
    assert not shown or page in FOLLOWED | PLUGINS | TESTED_APART


@pytest.mark.parametrize("page", PAGES, ids=_name)
def test_the_options_that_a_page_names_exist(page):
    """They are the plugin's options and ini keys."""
    text = page.read_text("utf-8")
    flags = set(re.findall(r"--openclaw-[a-z0-9-]+[a-z0-9]", text)) - {"--openclaw-x"}
    keys = set(re.findall(r"(?<![\w/.-])openclaw_[a-z0-9_]+(?= =|`)", text)) - NO_KEYS
    keys -= {provider.name for provider in PROVIDERS}

    assert flags <= {option.flag for option in all_options()}
    assert keys <= {option.ini for option in all_options()}


def test_every_validator_is_documented():
    """The page of suites has each type with its keys; the generated page has their meaning."""
    page = SUITES_PAGE.read_text("utf-8").split("## Validators")[1].split("\n## ")[0]
    named = set(re.findall(r"`(\w+)`", page))

    assert named >= {validator.type for validator in VALIDATORS}
    assert named >= {key.name for validator in VALIDATORS for key in dataclasses.fields(validator)}


def test_every_key_of_a_suite_is_documented():
    """The tables have the keys of prompts, of a file, and of the mark."""
    page = SUITES_PAGE.read_text("utf-8")
    table = page.split("## Keys of a prompt")[1].split("\n## ")[0]
    first = [line.split("|")[1] for line in table.splitlines() if line.startswith("| `")]
    python = page.split("## Benchmarks in Python")[1].split("\n## ")[0]

    assert {key for cell in first for key in re.findall(r"`(\w+)`", cell)} == load.known_keys()
    assert all(f"`{key}" in page for key in Document.__struct_fields__ if key != "prompts")
    assert all(f"`{key}`" in python for key in MARK_KEYS)


def test_providers_are_all_documented():
    """The table of targets has every built-in."""
    page = (DOCS / "reference/targets.md").read_text("utf-8")

    assert all(f"| `{provider.name}` |" in page for provider in PROVIDERS)


@pytest.mark.parametrize("page", PAGES, ids=_name)
def test_links_to_files_lead_somewhere(page):
    """Relative links, except those to pages that the build makes."""
    made = {DOCS / f"reference/{name}.md" for name in load_reference().PAGES}
    links = re.findall(r"\]\(([^)#:\s]+)(?:#[^)]*)?\)", page.read_text("utf-8"))

    places = [(page.parent / link).resolve() for link in links]
    assert [str(place) for place in places if not place.exists() and place not in made] == []
    assert page.name != "README.md" or not set(places) & made


@pytest.mark.parametrize("page", PAGES, ids=_name)
def test_a_page_for_users_is_short_and_one_leads_to_maintaining(page):
    """Three screens at most, except references; only the first page leads to the pages of maintainers."""
    text, kind = page.read_text("utf-8"), page.relative_to(ROOT).parts[1:2]

    assert kind in {("reference",), ("maintaining",), ()} or len(text.split()) <= 900
    assert kind == ("maintaining",) or text.count("](maintaining/") + text.count("/maintaining/") == (
        page == DOCS / "index.md"
    )


def test_the_tests_behind_the_promises_exist():
    """SECURITY.md names a test for each promise."""
    text = (ROOT / "SECURITY.md").read_text("utf-8")
    named = re.findall(r"`(tests/[\w/]+\.py)::(\w+)`", text)
    promises = text.partition("## What is promised")[2].partition("## What is trusted")[0]

    assert [
        f"{path}::{name}" for path, name in named if f"def {name}(" not in (ROOT / path).read_text("utf-8")
    ] == []
    assert len(named) == text.count("`tests/") == text.count("::test_")
    assert [one for one in re.split(r"\n(?=- )", promises)[1:] if "::test_" not in one] == []
