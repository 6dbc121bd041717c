"""A validator of calls: a suite says `validator = { type = "reads_only", folder = "notes/" }`."""

from dataclasses import dataclass
from typing import ClassVar

from pytest_openclaw import Demands, Reply, Validator, Verdict, WantedCall


@dataclass(frozen=True)
class ReadsOnly:
    """Files are read, and all of them are in one folder."""

    type: ClassVar[str] = "reads_only"
    folder: str

    @property
    def demands(self) -> Demands:
        """A call of `read`; without any calls it would forbid all."""
        return Demands.of_calls(WantedCall(name="read"))

    def check(self, reply: Reply) -> Verdict:
        """Judge the calls that OpenClaw would execute."""
        paths = [str((call.arguments or {}).get("path")) for call in reply.dispatched if call.tool == "read"]
        others = [path for path in paths if not path.startswith(self.folder)]
        if others or not paths:
            return Verdict(passed=False, violation=f"read {', '.join(others) or 'nothing'}")
        return Verdict(passed=True, parsed={"paths": paths})


def pytest_openclaw_validators() -> list[type[Validator]]:
    """Register the validator."""
    return [ReadsOnly]
