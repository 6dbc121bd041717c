"""Unusable suites are reported by file, prompt, key and hint, before the first request."""

from __future__ import annotations

import json
import os
from pathlib import Path
from typing import Any

import pytest


def with_rule(rule: Any) -> str:
    """Return a JSON suite of one prompt, judged by `rule`."""
    return json.dumps([{"id": "P1", "prompt": "say yes", "validator": rule}])


# A file's suffix, its content, and a part of the message after the file's name.
BAD = [
    ("json", b'[\n{"id": "P1", "prompt": "caf\xe9"}]', "is not UTF-8. Save the file as UTF-8."),
    ("json", '[{"id": "P1",]', "is not JSON: "),
    ("json", "[" * 100_000, "is not JSON: maximum recursion depth"),
    ("toml", '[[prompts]]\nid = "\x1b[31m"\n', "is not TOML: Illegal character '\\x1b'"),
    ("json", '[{"id": "P\u202e1", "prompt": "a"}]', 'id is "P\\u202e1", which pytest\'s node ids cannot contain.'),
    ("json", with_rule({"type": "max_word", "value": 3}), 'no validator type "max_word". Did you mean "max_words"?'),
    ("json", with_rule({"type": "regex_fullmatch", "pattern": "[\x1b-\x01]"}), "bad character range \\x1b-\\x01"),
]  # fmt: skip


@pytest.mark.under_workers
def test_every_fault_of_every_suite_is_reported_at_once(project: Any) -> None:
    """Each unusable suite is a collection error with its location; nothing is called or written."""
    files = {f"prompts_{number:02}.{case[0]}": case for number, case in enumerate(BAD)}
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


def test_a_bad_suite_that_is_not_collected_does_no_harm(plain_project: Any) -> None:
    """If the command names the good suite, it runs, whatever other files are beside it."""
    lay_out(plain_project, {"prompts_x.json": with_rule({"type": "exact"})})

    session = plain_project.run(target="benchmarks/prompts_good.json")

    session.outcomes(passed=1)
    assert session.status == 0


@pytest.mark.parametrize("option", ["--openclaw-prompts=Q9", "--collect-only"])
def test_options_do_not_hide_it(plain_project: Any, option: str) -> None:
    """Neither a choice of prompts, whose id is not called unknown, nor a listing."""
    lay_out(plain_project, {"prompts_x.json": with_rule({"type": "exact"})})

    session = plain_project.run(option)

    assert session.status == pytest.ExitCode.INTERRUPTED
    assert 'benchmarks/prompts_x.json: prompt P1: validator exact has no "value".' in session.text


@pytest.mark.skipif(os.name == "nt", reason="symbolic links and pipes as POSIX has them")
@pytest.mark.parametrize("chosen", [[], ["--openclaw-prompts=G1"]], ids=["all", "chosen"])
def test_only_files_are_suites(plain_project: Any, chosen: list[str]) -> None:
    """A folder, a pipe or a dangling link with a suite's name is ignored, as pytest does with modules."""
    lay_out(plain_project, {})
    folder = plain_project.folder / "benchmarks"
    (folder / "prompts_folder.toml").mkdir()
    (folder / "prompts_link.toml").symlink_to("nowhere.toml")
    (folder / "prompts_circle.toml").symlink_to(folder / "prompts_circle.toml")
    os.mkfifo(folder / "prompts_pipe.toml")

    session = plain_project.run(*chosen)

    session.outcomes(passed=1)
    assert session.status == 0
    assert [row["prompt_id"] for row in session.rows] == ["G1"]


def test_a_file_that_cannot_be_read(plain_project: Any) -> None:
    """It is reported with the system's reason."""
    lay_out(plain_project, {"prompts_x.toml": ""})
    plain_project.extend_conftest(REFUSAL)

    session = plain_project.run()

    assert session.status == pytest.ExitCode.INTERRUPTED
    assert "prompts_x.toml: cannot be read (Permission denied). Check that it is a file" in session.text
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


REFUSAL = """

import errno
import pytest
from pathlib import Path


@pytest.hookimpl(wrapper=True)
def pytest_collection(session):
    read = Path.read_bytes

    def refused(path):
        if path.name == "prompts_x.toml":
            raise PermissionError(errno.EACCES, "Permission denied", str(path))
        return read(path)

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(Path, "read_bytes", refused)
        return (yield)
"""


def assert_printable(text: str) -> None:
    """Nothing in a terminal's text moves the cursor or changes the text direction."""
    assert [character for character in text if not (character.isprintable() or character in "\n\t")] == []
