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
    # the file
    pytest.param("prompts_x.json", "", "is empty. Write a list of prompts:", id="empty-json"),
    pytest.param("prompts_x.toml", "", "is empty. Write each prompt below a line [[prompts]]", id="empty-toml"),
    pytest.param("prompts_x.toml", "\n \n", "is empty. Write each prompt", id="only-blanks"),
    pytest.param("prompts_x.json", "[]", "has no prompts. Write a list of prompts:", id="no-prompts"),
    pytest.param("prompts_x.json", '"P1"', "the whole is a string, not a list of prompts.", id="no-list"),
    pytest.param(
        "prompts_x.json",
        '[\n{"id": "P1", "prompt": "caf\xe9"}]'.encode("latin-1"),
        "line 2 is not UTF-8. Save the file as UTF-8.",
        id="not-utf-8",
    ),
    pytest.param(
        "prompts_x.toml",
        '[[prompts]]\nid = "P1"\n'.encode("utf-16"),
        "line 1 is not UTF-8. Save the file as UTF-8.",
        id="utf-16",
    ),
    pytest.param("prompts_x.json", "\0" * 9, "line 1, column 1: Expecting value.", id="only-nul"),
    pytest.param("prompts_x.json", '[{"id": "P1",]', f"Expecting property name enclosed in double quotes. {JSON_HINT}", id="json-cut-off"),
    pytest.param("prompts_x.json", "[" * 100_000, "is nested too deeply to be read. Flatten it.", id="json-deep"),
    pytest.param("prompts_x.toml", '[[prompts]]\nid = P1\n', "line 2, column 6: Invalid value. Fix the TOML there:", id="toml-syntax"),
    pytest.param("prompts_x.toml", '[[prompts]]\nid = "\x1b[31m"\n', "line 2, column 7: Illegal character '\\x1b'.", id="toml-control-character"),
    # the id
    pytest.param("prompts_x.json", '[{"prompt": "Hi"}]', 'prompt no. 1: has no "id". Give it one of its own,', id="no-id"),
    pytest.param("prompts_x.json", with_id(3), "prompt no. 1: id is a number, not a string. Write letters,", id="id-a-number"),
    pytest.param("prompts_x.json", with_id(" "), "prompt no. 1: id is blank. Write letters,", id="id-blank"),
    pytest.param("prompts_x.json", with_id("P\n1"), 'id "P\\n1" holds a blank or an invisible character. Write letters,', id="id-newline"),
    pytest.param("prompts_x.json", with_id("P\0"), 'id "P\\u0000" holds a blank or an invisible character.', id="id-nul"),
    pytest.param("prompts_x.json", with_id("\x1b[31mP"), 'id "\\u001b[31mP" holds a blank or an invisible character.', id="id-ansi"),
    pytest.param("prompts_x.json", with_id("P\u202e1"), 'id "P\\u202e1" holds a blank or an invisible character.', id="id-bidi"),
    pytest.param("prompts_x.json", with_id("P1[x]"), 'id "P1[x]" holds [, which pytest\'s node ids cannot carry.', id="id-bracket"),
    pytest.param("prompts_x.json", with_id("a::b"), 'id "a::b" holds ::, which pytest\'s node ids cannot carry.', id="id-colons"),
    pytest.param(
        "prompts_x.json",
        '[{"id": "P1", "prompt": "a"}, {"id": "P1", "prompt": "b"}]',
        'prompt no. 2: id "P1" is the id of prompt no. 1 too. Give each an id of its own.',
        id="id-twice",
    ),
    # the other keys
    pytest.param("prompts_x.json", '[{"id": "P1"}]', 'prompt P1: has no "prompt". Write the text that the model is asked.', id="no-prompt"),
    pytest.param("prompts_x.json", with_keys(tags="fast"), "prompt P1: tags is a string, not a list. Write strings in brackets,", id="tags-a-string"),
    pytest.param("prompts_x.json", with_keys(expected_tool_calls="free"), "prompt P1: expected_tool_calls is a string, not a list. Write names in brackets,", id="tool-calls-a-string"),
    pytest.param("prompts_x.json", with_keys(timeout_s=-1), "prompt P1: timeout_s is -1. Write seconds,", id="timeout-negative"),
    pytest.param("prompts_x.json", with_keys(max_output_tokens=1.5), "prompt P1: max_output_tokens is 1.5. Write a whole number", id="tokens-fractional"),
    pytest.param("prompts_x.json", with_keys(deep=json.loads("[" * 60 + "]" * 60)), "prompt P1: deep" + "[0]" * 40 + " is nested more than 40 deep. Flatten it.", id="nested-too-deep"),
    pytest.param("prompts_x.json", '[{"id": "P1", "prompt": "\\ud83d"}]', "prompt P1: prompt holds half a surrogate pair. Write the whole character.", id="half-a-character"),
    # the validator
    pytest.param("prompts_x.json", with_rule("noop"), 'prompt P1: the validator is the text "noop". Write an object,', id="validator-no-object"),
    pytest.param("prompts_x.json", with_rule(["noop"]), "prompt P1: the validator is a list. Write an object,", id="validator-a-list"),
    pytest.param("prompts_x.json", with_rule({"type": "max_word", "value": 3}), 'prompt P1: there is no validator type "max_word". Did you mean "max_words"?', id="unknown-type"),
    pytest.param("prompts_x.json", with_rule({"value": 3}), 'prompt P1: the validator has no "type". Known types:', id="no-type"),
    pytest.param("prompts_x.json", with_rule({"type": "exact"}), 'prompt P1: validator exact has no "value". Write the answer wanted,', id="exact-without-value"),
    pytest.param("prompts_x.json", with_rule({"type": "one_of"}), 'prompt P1: validator one_of has no "values". List', id="one-of-without-values"),
    pytest.param("prompts_x.json", with_rule({"type": "regex_fullmatch"}), 'prompt P1: validator regex_fullmatch has no "pattern". Write', id="regex-without-pattern"),
    pytest.param("prompts_x.json", with_rule({"type": "max_words"}), 'prompt P1: validator max_words has no "value". Write a whole number,', id="words-without-value"),
    pytest.param("prompts_x.json", with_rule({"type": "max_sentences"}), 'prompt P1: validator max_sentences has no "value". Write a whole number,', id="sentences-without-value"),
    pytest.param("prompts_x.json", with_rule({"type": "exact_bullets"}), 'prompt P1: validator exact_bullets has no "value". Write a whole number,', id="bullets-without-value"),
    pytest.param("prompts_x.json", with_rule({"type": "json_keys"}), 'prompt P1: validator json_keys has no "required_keys". List the keys', id="json-without-keys"),
    pytest.param("prompts_x.json", with_rule({"type": "tool_invocation"}), 'prompt P1: validator tool_invocation has no "expected_tools". List the tools', id="tools-without-list"),
    pytest.param("prompts_x.json", with_rule({"type": "one_of", "values": "yes"}), '"values" is the text "yes". Write a list,', id="values-a-string"),
    pytest.param("prompts_x.json", with_rule({"type": "json_keys", "required_keys": "route"}), '"required_keys" is the text "route". Write a list,', id="keys-a-string"),
    pytest.param("prompts_x.json", with_rule({"type": "tool_invocation", "expected_tools": "free"}), '"expected_tools" is the text "free". Write a list,', id="tools-a-string"),
    pytest.param("prompts_x.json", with_rule({"type": "max_words", "value": -1}), '"value" is -1. Write a whole number of 0 or more.', id="limit-negative"),
    pytest.param("prompts_x.json", with_rule({"type": "max_sentences", "value": 1.5}), '"value" is 1.5. Write a whole number of 0 or more.', id="limit-fractional"),
    pytest.param("prompts_x.json", with_rule({"type": "exact_bullets", "value": True}), '"value" is true. Write a whole number of 0 or more.', id="limit-boolean"),
    pytest.param("prompts_x.json", with_rule({"type": "max_words", "value": "eight"}), '"value" is the text "eight". Write a whole number of 0 or more.', id="limit-no-number"),
    pytest.param("prompts_x.json", with_rule({"type": "regex_fullmatch", "pattern": "[0-9"}), '"pattern" is no regular expression (unterminated character set at position 0)', id="pattern-invalid"),
    pytest.param("prompts_x.json", with_rule({"type": "regex_fullmatch", "pattern": "[\x1b-\x01]"}), '"pattern" is no regular expression (bad character range \\x1b-\\x01', id="pattern-control-characters"),
    pytest.param("prompts_x.json", with_rule({"type": "json_keys", "required_keys": ["n"], "key_rules": {"n": {"type": "string"}}}), 'the rule for "n" has the unknown type "string". Known are "number" and "one_of".', id="rule-of-unknown-type"),
    pytest.param("prompts_x.json", with_rule({"type": "json_keys", "required_keys": ["n"], "key_rules": {"n": {"type": "one_of"}}}), 'the rule for "n" has no "values". List what is allowed,', id="rule-without-values"),
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
