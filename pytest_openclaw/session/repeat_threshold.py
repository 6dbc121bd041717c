"""`pass = "4 of 5"`: which misses, and which unexpected passes, are no failures.

They are counted where all reports arrive, because the repeats of a prompt may run in different workers. Until
then a report says that nothing has failed: a worker would stop at it under `-x`.
"""

from __future__ import annotations

from dataclasses import asdict, dataclass
from typing import TYPE_CHECKING, Any

import pytest

from pytest_openclaw.suites.repeating import pass_text

if TYPE_CHECKING:
    from collections.abc import Generator

    from pytest_openclaw.types.prompts import Cell

SHARE = "openclaw_share"
STRICT = "[XPASS(strict)] "
"""How pytest tells that what must fail has passed."""


@dataclass(frozen=True, kw_only=True)
class Claim:
    """What a report brings that does not stand for itself alone.

    Attributes:
        group: suite, prompt and target, whose repeats are counted together.
        asked: what the suite says, such as `4 of 5`.
        allowed: so many of them are no failures.
        strict: what was to be expected, of a known failure that passed; None of a miss.
    """

    group: tuple[str, str, str]
    repeat: int
    asked: str
    allowed: int
    strict: str | None = None


def defer(report: pytest.TestReport, cell: Cell, n_selected: int) -> None:
    """Let a report of a miss, or of an unexpected pass, say how many of its kind are no failures.

    Args:
        report: failed, by the verdict on the cell or by its being against what was expected.
        cell: one of a prompt that says how many of its repeats must pass.
        n_selected: repeats of the prompt that this session has on the target; where some were left out, the
            others must pass all the same.
    """
    prompt = cell.prompt
    if prompt.min_passes is None or prompt.repeat is None:
        return
    strict = report.longrepr.removeprefix(STRICT) if isinstance(report.longrepr, str) else None
    claim = Claim(
        group=(prompt.suite, prompt.id, cell.target.label),
        repeat=cell.repeat,
        asked=pass_text(prompt.min_passes, prompt.repeat),
        allowed=prompt.min_passes - 1 if strict is not None else max(0, n_selected - prompt.min_passes),
        strict=strict,
    )
    setattr(report, SHARE, asdict(claim))
    _forgive(report, claim, "")


def passed_strictly(report: pytest.TestReport) -> bool:
    """Whether pytest calls a test failed because it was expected to fail, and did not."""
    return report.failed and isinstance(report.longrepr, str) and report.longrepr.startswith(STRICT)


def expectation_of(report: pytest.TestReport) -> str | None:
    """Return why pytest expected a test to fail, whether it did or not; None if it did not expect that."""
    if passed_strictly(report):
        return str(report.longrepr).removeprefix(STRICT) or "expected to fail"
    why: str | None = getattr(report, "wasxfail", None)
    # `pytest.xfail()` in a test has a word before it.
    return why if why is None else why.removeprefix("reason: ") or "expected to fail"


class RepeatThreshold:
    """Registered where reports arrive: in a plain session and in xdist's controller."""

    def __init__(self) -> None:
        self._seen: dict[tuple[tuple[str, str, str], bool], set[int]] = {}

    @pytest.hookimpl(wrapper=True, tryfirst=True)
    def pytest_runtest_logreport(self, report: pytest.TestReport) -> Generator[None, object, object]:
        """Say what a report means, before anybody counts it."""
        if told := vars(report).pop(SHARE, None):
            claim = Claim(**{**told, "group": tuple(told["group"])})
            repeats = self._seen.setdefault((claim.group, claim.strict is None), set())
            repeats.add(claim.repeat)
            if len(repeats) > claim.allowed:
                _refuse(report, claim, repeats)
            else:
                of_so_many = f"{len(repeats)} of the {claim.allowed}"
                _forgive(report, claim, f'miss {of_so_many} that pass = "{claim.asked}" allows')
        return (yield)


def _forgive(report: pytest.TestReport, claim: Claim, why: str) -> None:
    """Let the report be one of a test that failed as it was expected, or passed as it was not."""
    told: Any = report
    if claim.strict is None:
        told.outcome, told.wasxfail = "skipped", why
    else:
        told.outcome, told.wasxfail, told.longrepr = "passed", claim.strict, None


def _refuse(report: pytest.TestReport, claim: Claim, repeats: set[int]) -> None:
    """Let the report be a failure, and name the repeats that made it one."""
    told: Any = report
    told.outcome = "failed"
    del told.wasxfail
    listed = ", ".join(f"r{repeat}" for repeat in sorted(repeats))
    if claim.strict is not None:
        told.longrepr = f'{STRICT}{claim.strict} (pass = "{claim.asked}": {listed} passed)'
        return
    text = f'missed {listed}; pass = "{claim.asked}" allows {claim.allowed}'
    if hasattr(told.longrepr, "addsection"):
        told.longrepr.addsection("repeats", text)
    else:
        told.longrepr = f"{told.longrepr}\n  repeats {text}"
