"""Unusable suites are reported by file, prompt, key and hint, before the first request."""

from __future__ import annotations

import json
import os
from pathlib import Path
from typing import Any

import pytest

JSON_HINT = "Fix the JSON there: no comments, and no comma after the last entry."


def with_rule(rule: Any) -> str:
    """Return a JSON suite of one prompt, judged by `rule`."""
    return json.dumps([{"id": "P1", "prompt": "say yes", "validator": rule}])


def with_keys(**keys: Any) -> str:
    """Return a JSON suite of one prompt with further keys."""
    return json.dumps([{"id": "P1", "prompt": "say yes", **keys}])


def with_id(prompt_id: Any) -> str:
    """Return a JSON suite of one prompt with this id."""
    return json.dumps([{"id": prompt_id, "prompt": "say yes"}])


# A file of the folder `benchmarks`, and the message after the file's name.
BAD = [
    pytest.param("prompts_x.json", b'[\n{"id": "P1", "prompt": "caf\xe9"}]', "line 2 is not UTF-8. Save the file as UTF-8.", id="not-utf-8"),
    pytest.param("prompts_x.json", '[{"id": "P1",]', f"Expecting property name enclosed in double quotes. {JSON_HINT}", id="json-cut-off"),
    pytest.param("prompts_x.json", "[" * 100_000, "is nested too deeply to be read. Flatten it.", id="json-deep"),
    pytest.param("prompts_x.toml", '[[prompts]]\nid = "\x1b[31m"\n', "line 2, column 7: Illegal character '\\x1b'.", id="toml-control-character"),
    pytest.param("prompts_x.json", '[{"prompt": "Hi"}]', 'prompt no. 1: has no "id". Write for example id = "P1".', id="no-id"),
    pytest.param("prompts_x.json", with_id("\x1b[31mP"), 'id is "\\u001b[31mP", which pytest\'s node ids cannot contain.', id="id-ansi"),
    pytest.param("prompts_x.json", with_id("P\u202e1"), 'id is "P\\u202e1", which pytest\'s node ids cannot contain.', id="id-bidi"),
    pytest.param("prompts_x.json", with_keys(tags="fast"), 'prompt P1: tags is "fast", not a list. Write for example tags = ["router"].', id="tags-a-string"),
    pytest.param("prompts_x.json", '[{"id": "P1", "prompt": "\\ud83d"}]', "prompt P1: prompt contains half of a surrogate pair. Write the whole character.", id="half-a-character"),
    pytest.param("prompts_x.json", with_rule("noop"), 'prompt P1: the validator is the text "noop". Write an object,', id="validator-no-object"),
    pytest.param("prompts_x.json", with_rule({"type": "max_word", "value": 3}), 'prompt P1: there is no validator type "max_word". Did you mean "max_words"?', id="unknown-type"),
    pytest.param("prompts_x.json", with_rule({"type": "exact"}), 'prompt P1: validator exact has no "value". Write the answer wanted,', id="exact-without-value"),
    pytest.param("prompts_x.json", with_rule({"type": "regex_fullmatch", "pattern": "[\x1b-\x01]"}), '"pattern" is no regular expression (bad character range \\x1b-\\x01', id="pattern-control-characters"),
]  # fmt: skip


@pytest.mark.under_workers
def test_every_fault_of_every_suite_is_reported_at_once(project: Any) -> None:
    """Each unusable suite is a collection error with its location; nothing is called or written."""
    files = {
        f"prompts_{number:02}{Path(case.values[0]).suffix}": case.values
        for case, number in zip(BAD, range(99), strict=False)
    }
    called = lay_out(project, {name: content for name, (_, content, _) in files.items()})

    session = project.run()

    assert session.status == pytest.ExitCode.INTERRUPTED
    session.outcomes(errors=len(files))
    for name, (_, _, said) in files.items():
        (line,) = lines_about(session, name)
        assert said in line
    assert "Traceback" not in session.text
    assert ".py:" not in session.text
    assert_printable(session.text)
    assert (called.exists(), session.has_run) == (False, False)


def test_the_good_suites_run_when_asked_to(project: Any) -> None:
    """With `--continue-on-collection-errors` every good suite has its rows, and the session still fails."""
    called = lay_out(project, {"prompts_x.json": with_rule({"type": "exact"}), "prompts_y.toml": "no toml"})

    session = project.run("--continue-on-collection-errors")

    session.outcomes(passed=1, errors=2)
    assert session.status == pytest.ExitCode.TESTS_FAILED
    assert [(row["suite"], row["prompt_id"]) for row in session.rows] == [
        ("benchmarks/prompts_good.json", "G1")
    ]
    assert called.read_text() == "m\n"
    assert [prompt["id"] for prompt in session.load("config.json")["prompts"]] == ["G1"]


def test_a_bad_suite_that_is_not_collected_does_no_harm(project: Any) -> None:
    """If the command names the good suite, it runs, whatever other files are beside it."""
    lay_out(project, {"prompts_x.json": with_rule({"type": "exact"})})

    session = project.run(target="benchmarks/prompts_good.json")

    session.outcomes(passed=1)
    assert session.status == 0


def test_a_bad_suite_beside_chosen_prompts(plain_project: Any) -> None:
    """`--openclaw-prompts` does not hide an error of a suite, and does not call the id unknown."""
    lay_out(plain_project, {"prompts_x.json": with_rule({"type": "exact"})})

    session = plain_project.run("--openclaw-prompts=Q9")

    assert session.status == pytest.ExitCode.INTERRUPTED
    assert 'benchmarks/prompts_x.json: prompt P1: validator exact has no "value".' in session.text


def test_listing_reports_it_too(plain_project: Any) -> None:
    """`--collect-only` shows the same error."""
    lay_out(plain_project, {"prompts_x.json": with_rule({"type": "exact"})})

    session = plain_project.run("--collect-only")

    assert session.status == pytest.ExitCode.INTERRUPTED
    assert 'benchmarks/prompts_x.json: prompt P1: validator exact has no "value".' in session.text


@pytest.mark.skipif(os.name == "nt", reason="symbolic links and pipes as POSIX has them")
@pytest.mark.parametrize("kind", ["folder", "broken-link", "link-to-itself", "pipe"])
@pytest.mark.parametrize("chosen", [[], ["--openclaw-prompts=G1"]], ids=["all", "chosen"])
def test_what_is_no_file_is_no_suite(plain_project: Any, kind: str, chosen: list[str]) -> None:
    """A folder, a pipe or a dangling link with a suite's name is ignored, as pytest does with modules."""
    lay_out(plain_project, {})
    odd = plain_project.folder / "benchmarks" / "prompts_odd.toml"
    make_odd(odd, kind)

    session = plain_project.run(*chosen)

    session.outcomes(passed=1)
    assert session.status == 0
    assert [row["prompt_id"] for row in session.rows] == ["G1"]


@pytest.mark.skipif(os.name == "nt", reason="file modes as POSIX has them")
def test_a_file_that_may_not_be_read(project: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    """A suite without read permission is reported with the system's reason."""
    lay_out(project, {"prompts_x.toml": '[[prompts]]\nid = "P1"\nprompt = "say yes"\n'})
    refuse(project, "prompts_x.toml")

    session = project.run()

    assert session.status == pytest.ExitCode.INTERRUPTED
    session.outcomes(errors=1)
    assert (
        "benchmarks/prompts_x.toml: cannot be read (Permission denied). Check that it is a file"
        in session.text
    )
    assert "Traceback" not in session.text
    assert not session.has_run


def lay_out(project: Any, files: dict[str, str | bytes]) -> Path:
    """Write the files beside a good suite, and return the file that its only prompt writes when asked."""
    called = project.folder / "called"
    project.suite({"G1": (f"log {called}", {"type": "noop"})}, name="prompts_good.json")
    for name, content in files.items():
        path = project.folder / "benchmarks" / name
        path.write_bytes(content if isinstance(content, bytes) else content.encode())
    return called


def lines_about(session: Any, name: str) -> list[str]:
    """Return the lines of the terminal that begin with a suite's name and a colon."""
    return [line for line in session.text.splitlines() if line.startswith(f"benchmarks/{name}: ")]


def make_odd(path: Path, kind: str) -> None:
    """Create something that is not a regular file."""
    if kind == "folder":
        path.mkdir()
    elif kind == "pipe":
        os.mkfifo(path)
    else:
        path.symlink_to(path if kind == "link-to-itself" else "nowhere.toml")


def refuse(project: Any, name: str) -> None:
    """Remove the permission to read a file; for root, who may read everything, patch the reading."""
    path = project.folder / "benchmarks" / name
    path.chmod(0)
    if os.access(path, os.R_OK):
        conftest = project.folder / "conftest.py"
        conftest.write_text(conftest.read_text() + REFUSAL.format(name=name))


REFUSAL = """

import errno
import pytest
from pathlib import Path


@pytest.hookimpl(wrapper=True)
def pytest_collection(session):
    read = Path.read_bytes

    def refused(path):
        if path.name == "{name}":
            raise PermissionError(errno.EACCES, "Permission denied", str(path))
        return read(path)

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(Path, "read_bytes", refused)
        return (yield)
"""


def assert_printable(text: str) -> None:
    """Nothing in a terminal's text moves the cursor or changes the text direction."""
    assert [character for character in text if not (character.isprintable() or character in "\n\t")] == []
