"""Names, comments, messages and pages use standard words; `words.txt` lists those to avoid."""

from __future__ import annotations

import ast
import re
import subprocess
from collections import Counter
from functools import cache
from pathlib import Path

import pytest

pytestmark = pytest.mark.newest

HERE = Path(__file__).parent
ROOT = HERE.parents[1]
CHECKED = ("*.py", "*.md", "*.toml", "*.yml", "*.ini")
# Prompts, replies and patterns are data: the words are those of users and models.
DATA = ("benchmarks/*.toml", "tests/corpus/", "tests/suites/*.toml", "pytest_openclaw/tools/*.toml")
# Public names, and texts of prompts, that contain a listed word.
PUBLIC = (
    "nobody remembers who put it there",
    "mend_the_failing_check",
    "told_you_once",
    "tell_anna_the_train",
    '"lane"',
    "`told`",
    '"told"',
)
# Folders and files that are not converted yet. An entry without a finding has to go.
NOT_YET: tuple[str, ...] = ()


WORDS = dict(
    line.split(" = ")
    for line in (HERE / "words.txt").read_text("utf-8").splitlines()
    if line and not line.startswith("#")
)
WORD = re.compile(rf"(?<![a-z])(?:{'|'.join(WORDS)})(?![a-z])")


@cache
def findings(path: str) -> tuple[str, ...]:
    """The listed words of a file, each with line and replacement."""
    text = (ROOT / path).read_text("utf-8")
    if path == "CHANGELOG.md":
        text = re.split(r"^## \[\d", text, flags=re.MULTILINE)[0]
    for name in PUBLIC:
        text = text.replace(name, "")
    text = re.sub(r"(?<=[a-z0-9])(?=[A-Z])", "_", text).lower()
    return tuple(
        f"{path}:{number}: {hit[0]} -> {_instead(hit[0])}"
        for number, line in enumerate(text.splitlines(), 1)
        for hit in WORD.finditer(line)
    )


def _instead(word: str) -> str:
    return next(instead for listed, instead in WORDS.items() if re.fullmatch(listed, word))


def tracked_files() -> list[str]:
    """The text files of the repository, without data."""
    try:
        listed = subprocess.run(
            ["git", "ls-files", "--", *CHECKED, *(f":!{path}" for path in DATA)],
            cwd=ROOT,
            capture_output=True,
            text=True,
            check=True,
        )
    except (OSError, subprocess.CalledProcessError):
        pytest.skip("needs a git checkout")
    return [path for path in listed.stdout.splitlines() if path != "tests/package/test_words.py"]


def _is_in(path: str, entry: str) -> bool:
    return path == entry or path.startswith(f"{entry}/")


def test_standard_words_only() -> None:
    """No file uses a listed word, except where the conversion has not arrived."""
    paths = [path for path in tracked_files() if not any(_is_in(path, entry) for entry in NOT_YET)]

    assert not [finding for path in paths for finding in findings(path)]


def test_the_allowance_shrinks() -> None:
    """Each entry of `NOT_YET` still has a finding."""
    paths = tracked_files()

    assert not [
        entry for entry in NOT_YET if not any(findings(path) for path in paths if _is_in(path, entry))
    ]


def test_class_names_are_unique() -> None:
    """No two classes of the package share a name."""
    names = Counter(
        node.name
        for path in (ROOT / "pytest_openclaw").rglob("*.py")
        for node in ast.walk(ast.parse(path.read_text("utf-8")))
        if isinstance(node, ast.ClassDef)
    )

    assert not [name for name, n in names.items() if n > 1]


@pytest.mark.parametrize(
    ("line", "n"),
    [
        pytest.param("the standard tells the time", 1, id="words"),
        pytest.param("class JobDesk: _told = DESK", 3, id="parts-of-names"),
        pytest.param("mending standards, retold fables", 1, id="not-parts-of-words"),
        pytest.param("held the run against it", 0, id="two-words-between"),
        pytest.param("holds it against", 1, id="one-word-between"),
    ],
)
def test_what_is_found(tmp_path: Path, line: str, n: int) -> None:
    """A listed word is found in texts and in each part of a name."""
    (tmp_path / "some.py").write_text(line, "utf-8")

    assert len(findings(str(tmp_path / "some.py"))) == n
