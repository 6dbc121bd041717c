"""The verdicts of the built-in validators on texts, and the errors about validators that cannot be built.

verdicts.txt has validators, each with replies and their verdicts, and validator_errors.txt wrong ones with the errors;
`python -m tests.unit.judging.test_verdicts` writes verdicts and errors anew.
"""

import json
from pathlib import Path

import pytest

from pytest_openclaw.judging.registry import build_validator
from pytest_openclaw.values.replies import Reply
from tests.builtin import REGISTRY, build

GOLDEN = Path(__file__).with_name("verdicts.txt")
BLOCKS = GOLDEN.read_text("utf-8").strip().split("\n\n")
ERRORS = Path(__file__).with_name("validator_errors.txt")
WRONG = [case.split("\n=> ") for case in ERRORS.read_text("utf-8").strip().split("\n\n")]
PASSED = {True: "passed", False: "failed", None: "not judged"}
HARM = {True: " with harm", False: " without harm", None: ""}


def written(verdict):
    parsed = "" if verdict.parsed is None else f" {json.dumps(verdict.parsed, ensure_ascii=False)}"
    violation = f": {verdict.violation}" if verdict.violation else ""
    line = f"{PASSED[verdict.passed]}{HARM[verdict.harm]}{parsed}{violation}"
    return line if line.isprintable() else line.encode("unicode_escape").decode()


def judged(block):
    lines = block.split("\n")
    spec = next(line for line in lines if line.startswith("{"))
    validator = build_validator(json.loads(spec), REGISTRY)
    for number, line in enumerate(lines):
        if not line.startswith(("#", "{")):
            row = line.partition(" => ")[0]
            text = row.partition(" | ")[2]
            reply = Reply(text=json.loads(text) if text.startswith('"') else text)
            lines[number] = f"{row} => {written(validator.check(reply))}"
    return "\n".join(lines)


@pytest.mark.parametrize("block", BLOCKS, ids=[block.partition("\n")[0] for block in BLOCKS])
def test_the_verdicts_of_a_validator(block):
    """Passed, failed or not judged, with harm, what was found in the text, and the violation."""
    assert judged(block) == block


def error_of(spec):
    """Return the error about a validator in JSON; `...` is the list of known types."""
    with pytest.raises(ValueError, match="validator") as caught:
        build_validator(json.loads(spec), REGISTRY)
    return str(caught.value).replace(", ".join(sorted(REGISTRY)), "...")


@pytest.mark.parametrize(("spec", "error"), WRONG)
def test_a_wrong_validator(spec, error):
    """The message names the validator, the key and its value, and what to write."""
    assert error_of(spec) == error


def test_long_answers_are_shortened():
    """A violation shows 80 characters of an answer, from both ends, and parsed_output keeps 1000."""
    verdict = build("exact", value="up").check(Reply(text="a" * 1000 + "z" * 1000))

    assert verdict.violation == f'"{"a" * 38}...{"z" * 38}" is not "up"'
    assert verdict.parsed == {"text": "a" * 1000}


@pytest.mark.parametrize("digits", [308, 5000])
def test_numbers_of_any_length(digits):
    """A number with more digits than a double has is a number, and null in `parsed_output`."""
    number = "9" * digits

    verdict = build("json_keys", required_keys=["n"]).check(Reply(text=f'{{"n": {number}}}'))

    assert (verdict.passed, verdict.parsed) == (True, {"n": int(number) if digits < 4000 else None})


if __name__ == "__main__":
    GOLDEN.write_text("\n\n".join(map(judged, BLOCKS)) + "\n", "utf-8")
    ERRORS.write_text("\n\n".join(f"{spec}\n=> {error_of(spec)}" for spec, _ in WRONG) + "\n", "utf-8")
