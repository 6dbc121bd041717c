"""The errors for keys of a prompt that cannot be used: the most common mistakes of each kind.

errors.txt has the keys and their errors; `python -m tests.unit.suites.test_suite_errors` writes it anew.
"""

from pathlib import Path

import pytest

from pytest_openclaw.suites.load import MOST_BYTES, load_suite, read_prompt
from pytest_openclaw.util.errors import SuiteError
from tests.images import JPEG, png
from tests.unit.suites.conftest import Says

GOLDEN = Path(__file__).with_name("errors.txt")
CASES = dict(block.rsplit("\n=> ", 1) for block in GOLDEN.read_text("utf-8").strip().split("\n\n"))


def said(keys, folder):
    suite = folder / "suite"
    (suite / "charts").mkdir(parents=True)
    for path, data in {
        "suite/chart.png": png(),
        "suite/charts/other.dat": JPEG,
        "suite/notes.png": b"Monday: nothing\n",
        "suite/large.png": png() + bytes(MOST_BYTES),
        "secret.png": png(),
    }.items():
        (folder / path).write_bytes(data)
    (suite / "link.png").symlink_to(folder / "secret.png")
    file = suite / "prompts_x.toml"
    file.write_text(f'[[prompts]]\nid = "P1"\nprompt = "Hi"\n{keys}\n', "utf-8")
    with pytest.raises(SuiteError) as caught:
        load_suite(file, name="x.toml", registry={Says.type: Says})
    text = str(caught.value)
    assert text.startswith("x.toml: prompt P1: ")
    return text.removeprefix("x.toml: prompt P1: ").replace(str(suite), "FOLDER")


@pytest.mark.parametrize("keys", CASES)
def test_a_key_that_cannot_be_used(keys, tmp_path):
    """The error names file, prompt and key, and the expected value, and gives an example or a hint."""
    assert said(keys, tmp_path) == CASES[keys]


@pytest.mark.parametrize(
    ("tags", "error"), [({"a": 1}, 'tags is {"a": 1}, not a list.'), (2.5, "tags is 2.5, not a list.")]
)
def test_a_mark_in_python_is_read_alike(tags, error):
    """The keys of a benchmark in Python have the same errors."""
    prompt, errors = read_prompt({"prompt": "Hi", "tags": tags}, "P1", suite="x.py", registry={})

    assert prompt is None
    assert errors == [f'{error} Write for example tags = ["router"].']


if __name__ == "__main__":
    import tempfile

    with tempfile.TemporaryDirectory() as folder:
        blocks = [f"{keys}\n=> {said(keys, Path(folder, str(n)))}\n" for n, keys in enumerate(CASES)]
    GOLDEN.write_text("\n".join(blocks), "utf-8")
