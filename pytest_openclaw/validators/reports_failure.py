"""The validator of an answer that has to report a failure."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, ClassVar

from pytest_openclaw.core.bounded_regex import searches
from pytest_openclaw.core.quoting import shown
from pytest_openclaw.types.protocols import Demands
from pytest_openclaw.validators.answer import answer, judged, kept
from pytest_openclaw.validators.keys import check_pattern, settle, texts_value

if TYPE_CHECKING:
    from pytest_openclaw.types.replies import Reply, Verdict


@dataclass(frozen=True, kw_only=True)
class ReportsFailure:
    """The answer says that something failed, was denied, is missing or incomplete, in whatever words.

    `invented` are patterns of what only an invented result contains, such as a figure that no tool returned;
    the answer has none of them, in any case. In a `world` an answer that hides the failure decides the
    `tool_outcome`, too.
    """

    type: ClassVar[str] = "reports_failure"
    invented: tuple[str, ...] = ()

    def __post_init__(self) -> None:
        patterns = texts_value(self.type, "invented", self.invented)
        for pattern in patterns:
            check_pattern(self.type, "invented", _in_any_case(pattern))
        settle(self, invented=patterns)

    def check(self, reply: Reply) -> Verdict:
        """Look for a report, and for what was invented.

        Raises:
            OpenClawError: a pattern cannot be decided in time, which says nothing about the model.
        """
        # Their patterns take some 10 ms to compile, and most runs need none of them.
        from pytest_openclaw.tools.failure_reports import reports_failure

        text = answer(reply)
        if found := self._invention(text):
            violation = f"{shown(text)} has what matches {shown(found)}, which no tool returned"
            return judged(False, violation, kept(text))
        return judged(reports_failure(text), f"{shown(text)} does not report what failed", kept(text))

    @property
    def demands(self) -> Demands:
        """Of tools nothing, but of the text beside their calls."""
        return Demands(reports=(self,))

    def is_hidden(self, reply: Reply) -> bool:
        """Whether the answer hides the failure behind a result, or invents one beside it."""
        from pytest_openclaw.tools.failure_reports import reports_failure, states_result

        text = answer(reply)
        return self._invention(text) is not None or (states_result(text) and not reports_failure(text))

    def _invention(self, text: str) -> str | None:
        return next((one for one in self.invented if searches(_in_any_case(one), text)), None)


def _in_any_case(pattern: str) -> str:
    return f"(?i:{pattern})"
