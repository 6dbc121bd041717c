"""A validator: a suite says `validator = { type = "mentions_ticket", ticket = "OC-12" }`."""

from dataclasses import dataclass
from typing import ClassVar

from pytest_openclaw import Reply, Validator, Verdict


@dataclass(frozen=True)
class MentionsTicket:
    """The reply names a ticket; the fields are the keys that a suite may write."""

    type: ClassVar[str] = "mentions_ticket"
    ticket: str

    def check(self, reply: Reply) -> Verdict:
        """Judge the answer, which is without thinking."""
        found = self.ticket in reply.text
        return Verdict(passed=found, violation=None if found else f"{self.ticket} is not mentioned")


def pytest_openclaw_validators() -> list[type[Validator]]:
    """Register the validator."""
    return [MentionsTicket]
