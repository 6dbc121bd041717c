"""The errors about a suite's validators.

validator_errors.txt has the validators and the messages; `python -m tests.unit.judging.test_validator_errors`
writes it anew.
"""

import json
from pathlib import Path

import pytest

from pytest_openclaw.judging.registry import BUILTIN, build_registry, build_validator

GOLDEN = Path(__file__).with_name("validator_errors.txt")
REGISTRY = build_registry(("pytest-openclaw", validator) for validator in BUILTIN)
CASES = [case.split("\n=> ") for case in GOLDEN.read_text("utf-8").strip().split("\n\n")]


def said_of(spec: str) -> str:
    """Return the error about a validator in JSON; `...` is the list of known types."""
    with pytest.raises(ValueError, match="validator") as caught:
        build_validator(json.loads(spec), REGISTRY)
    return str(caught.value).replace(", ".join(sorted(REGISTRY)), "...")


@pytest.mark.parametrize(("spec", "said"), CASES)
def test_a_wrong_validator(spec, said):
    """The message names the validator, the key and its value, and what to write."""
    assert said_of(spec) == said


if __name__ == "__main__":
    GOLDEN.write_text("\n\n".join(f"{spec}\n=> {said_of(spec)}" for spec, _ in CASES) + "\n", "utf-8")
