"""Unusable suites are reported by file, prompt, key and hint, before the first request."""

import json
import os

import pytest

from tests.plugin.conftest import NOOP


def with_rule(rule):
    return json.dumps([{"id": "P1", "prompt": "say yes", "validator": rule}])


# A file's suffix, its content, and a part of the message after the file's name.
BAD = [
    ("json", b'[\n{"id": "P1", "prompt": "caf\xe9"}]', "is not UTF-8. Save the file as UTF-8."),
    ("json", '[{"id": "P1",]', "is not JSON: "),
    ("json", "[" * 100_000, "is not JSON: maximum recursion depth"),
    ("toml", '[[prompts]]\nid = "\x1b[31m"\n', "is not TOML: Illegal character '\\x1b'"),
    ("json", '[{"id": "P\u202e1", "prompt": "a"}]', 'id is "P\\u202e1", which pytest\'s node ids cannot contain.'),
    ("json", with_rule({"type": "max_word", "value": 3}), 'no validator type "max_word". Did you mean max_words?'),
    ("json", with_rule({"type": "regex_fullmatch", "pattern": "[\x1b-\x01]"}), "bad character range \\x1b-\\x01"),
]  # fmt: skip


def lay_out(project, files):
    project.suite({"G1": ("say good", NOOP)}, name="prompts_good.json")
    for name, content in files.items():
        path = project.folder / "benchmarks" / name
        path.write_bytes(content if isinstance(content, bytes) else content.encode())


@pytest.mark.under_workers
def test_every_fault_of_every_suite_is_reported_at_once(project):
    """Each unusable suite is a collection error with its location; nothing is asked or written."""
    files = {f"prompts_{number:02}.{case[0]}": case for number, case in enumerate(BAD)}
    lay_out(project, {name: content for name, (_, content, _) in files.items()})

    session = project.run()

    assert session.status == pytest.ExitCode.INTERRUPTED
    session.outcomes(errors=len(files))
    lines = session.text.splitlines()
    for name, (_, _, message) in files.items():
        (line,) = (line for line in lines if line.startswith(f"benchmarks/{name}: "))
        assert message in line
    assert "Traceback" not in session.text
    assert ".py:" not in session.text
    # Nothing in the text moves the cursor or changes the text direction.
    assert [
        character for character in session.text if not (character.isprintable() or character in "\n\t")
    ] == []
    assert (session.asked, session.has_run) == ([], False)


def test_the_good_suites_run_when_asked_to(project):
    """With `--continue-on-collection-errors`, or if only they are named, they have their rows."""
    lay_out(project, {"prompts_x.json": with_rule({"type": "exact"}), "prompts_y.toml": "no toml"})

    session = project.run("--continue-on-collection-errors", "--openclaw-run-id=all")
    named = project.run("--openclaw-run-id=named", target="benchmarks/prompts_good.json")

    session.outcomes(passed=1, errors=2)
    assert session.status == pytest.ExitCode.TESTS_FAILED
    assert [(row["suite"], row["prompt_id"]) for row in session.rows] == [
        ("benchmarks/prompts_good.json", "G1")
    ]
    assert session.asked == ["m say good"]
    assert [prompt["id"] for prompt in session.load("config.json")["prompts"]] == ["G1"]
    named.outcomes(passed=1)
    assert named.status == 0


@pytest.mark.parametrize(
    "option", ["--openclaw-prompts=Q9", "--collect-only", "--tb=line", "--openclaw-dry-run"]
)
def test_no_option_hides_it(plain_project, option):
    """Neither a choice of prompts, whose id is not called unknown, nor a listing, nor a traceback style."""
    lay_out(plain_project, {"prompts_x.json": with_rule({"type": "exact"})})

    session = plain_project.run(option)

    assert session.status in (pytest.ExitCode.INTERRUPTED, pytest.ExitCode.TESTS_FAILED)
    assert 'benchmarks/prompts_x.json: prompt P1: validator exact has no "value".' in session.text
    assert "no request was sent" not in session.text
    assert session.asked == []


@pytest.mark.skipif(os.name == "nt", reason="symbolic links and pipes as POSIX has them")
@pytest.mark.parametrize("chosen", [[], ["--openclaw-prompts=G1"]], ids=["all", "chosen"])
def test_only_files_are_suites(plain_project, chosen):
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
