"""Suite files on disk."""

import pytest

from pytest_openclaw.suites.load import load_suite
from pytest_openclaw.util.errors import SuiteError
from tests.builtin import REGISTRY


@pytest.mark.parametrize(
    ("file", "content"),
    [
        pytest.param("prompts_a.toml", '[[prompts]]\nid = "P1"\nprompt = "Hi"\n', id="toml"),
        pytest.param("prompts_a.json", '[{"id": "P1", "prompt": "Hi"}]', id="json"),
    ],
)
def test_the_suffix_says_how_to_read_it(file, content, tmp_path, registry):
    """A `.toml` and a `.json` file with the same prompts give the same suite, under the name given."""
    path = tmp_path / file
    path.write_text(content, encoding="utf-8")

    suite = load_suite(path, name="benchmarks/a", registry=registry)

    assert suite.path == "benchmarks/a"
    assert [(prompt.suite, prompt.id, prompt.prompt) for prompt in suite.prompts] == [
        ("benchmarks/a", "P1", "Hi")
    ]


def test_a_file_that_is_not_there(tmp_path, registry):
    """A missing file is an error that names it and the system's reason."""
    with pytest.raises(SuiteError) as caught:
        load_suite(tmp_path / "prompts_x.toml", name="benchmarks/prompts_x.toml", registry=registry)

    assert str(caught.value) == (
        "benchmarks/prompts_x.toml: cannot be read (No such file or directory). "
        "Check that it is a file you may read."
    )


@pytest.mark.parametrize("suffix", [".yaml", ".jsonl", ".TOML"])
def test_another_suffix(tmp_path, registry, suffix):
    """Only TOML and JSON are suites, with these suffixes."""
    name = f"benchmarks/prompts_x{suffix}"
    with pytest.raises(SuiteError, match=rf"^{name}: suites are TOML or JSON"):
        load_suite(tmp_path / f"prompts_x{suffix}", name=name, registry=registry)


def test_a_fault_of_a_built_in_rule_names_the_prompt(tmp_path):
    """A rule's message about its keys comes after file and prompt."""
    path = tmp_path / "prompts_router.json"
    path.write_text(
        '[{"id": "P1", "prompt": "?", "validator": {"type": "json_keys", "keys": ["route"]}}]', "utf-8"
    )

    with pytest.raises(SuiteError) as caught:
        load_suite(path, name="benchmarks/prompts_router.json", registry=REGISTRY)

    assert str(caught.value) == (
        'benchmarks/prompts_router.json: prompt P1: validator json_keys has no "required_keys". '
        'List the keys a reply must have, for example "required_keys": ["route"].'
    )
