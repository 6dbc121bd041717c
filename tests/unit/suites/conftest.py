"""A registry of one rule, so that suites are tested without the built-in ones."""

from dataclasses import dataclass
from typing import ClassVar

import pytest

from pytest_openclaw.values.replies import Verdict


@dataclass(frozen=True)
class Says:
    type: ClassVar[str] = "says"
    word: str

    def __post_init__(self):
        if not self.word:
            raise ValueError('"word" is empty.\nWrite a word.')

    def check(self, reply):
        return Verdict(passed=self.word in reply.text)


@pytest.fixture(scope="session")
def registry():
    return {Says.type: Says}
