"""`pass = "4 of 5"`: accepts some failed repeats, or some unexpected passes.

They are counted where all reports arrive, because the repeats of a prompt may run in different workers. Until
then a report is not a failure: under `-x` the worker would stop.
"""

from __future__ import annotations

from dataclasses import asdict, dataclass
from typing import TYPE_CHECKING, Any

import pytest

from pytest_openclaw.suites.prompt import pass_text

if TYPE_CHECKING:
    from collections.abc import Generator

    from pytest_openclaw.values.prompts import Cell

SECTION = "repeats"
"""Names the part of a failure that says which repeats were missed."""
SHARE = "openclaw_share"
STRICT = "[XPASS(strict)] "
"""The beginning of pytest's message for a strict xfail that passed."""


@dataclass(frozen=True, kw_only=True)
class Claim:
    """A failed repeat or an unexpected pass, whose meaning depends on the other repeats.

    Attributes:
        group: suite, prompt and target, whose repeats are counted together.
        asked: the threshold as in the suite, such as `4 of 5`.
        allowed: how many such repeats are accepted.
        strict: the reason of a known failure that passed; None for a failed repeat.
    """

    group: tuple[str, str, str]
    repeat: int
    asked: str
    allowed: int
    strict: str | None = None


def defer(report: pytest.TestReport, cell: Cell, n_selected: int) -> None:
    """Mark the report of a failed repeat or an unexpected pass; the session decides with all repeats known.

    Args:
        report: failed, by the cell's verdict or because it passed unexpectedly.
        cell: of a prompt that sets how many of its repeats must pass.
        n_selected: repeats of the prompt on the target in this session; if some were deselected, the
            required number of passes stays the same.
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
    """Whether pytest reports a test as failed because it was expected to fail and passed."""
    return report.failed and isinstance(report.longrepr, str) and report.longrepr.startswith(STRICT)


def expectation_of(report: pytest.TestReport) -> str | None:
    """Return the reason of an xfail, whether the test failed or passed; None if it has no xfail."""
    if passed_strictly(report):
        return str(report.longrepr).removeprefix(STRICT) or "expected to fail"
    why: str | None = getattr(report, "wasxfail", None)
    # The reason of `pytest.xfail()` in a test has a prefix.
    return why if why is None else why.removeprefix("reason: ") or "expected to fail"


class RepeatThreshold:
    """Registered where reports arrive: in a plain session and in xdist's controller."""

    def __init__(self) -> None:
        self._seen: dict[tuple[tuple[str, str, str], bool], set[int]] = {}

    @pytest.hookimpl(wrapper=True, tryfirst=True)
    def pytest_runtest_logreport(self, report: pytest.TestReport) -> Generator[None, object, object]:
        """Decide on a report before other plugins count it."""
        if plain := vars(report).pop(SHARE, None):
            claim = Claim(**{**plain, "group": tuple(plain["group"])})
            repeats = self._seen.setdefault((claim.group, claim.strict is None), set())
            repeats.add(claim.repeat)
            if len(repeats) > claim.allowed:
                _refuse(report, claim, repeats)
            else:
                of_so_many = f"{len(repeats)} of the {claim.allowed}"
                _forgive(report, claim, f'miss {of_so_many} that pass = "{claim.asked}" allows')
        return (yield)


def _forgive(report: pytest.TestReport, claim: Claim, why: str) -> None:
    """Turn the report into an xfail or an accepted pass."""
    changed: Any = report
    if claim.strict is None:
        changed.outcome, changed.wasxfail = "skipped", why
    else:
        changed.outcome, changed.wasxfail, changed.longrepr = "passed", claim.strict, None


def _refuse(report: pytest.TestReport, claim: Claim, repeats: set[int]) -> None:
    """Turn the report into a failure that names the repeats that caused it."""
    changed: Any = report
    changed.outcome = "failed"
    del changed.wasxfail
    listed = ", ".join(f"r{repeat}" for repeat in sorted(repeats))
    if claim.strict is not None:
        changed.longrepr = f'{STRICT}{claim.strict} (pass = "{claim.asked}": {listed} passed)'
        return
    text = f'missed {listed}; pass = "{claim.asked}" allows {claim.allowed}'
    if hasattr(changed.longrepr, "addsection"):
        changed.longrepr.addsection(SECTION, text)
    else:
        changed.longrepr = f"{changed.longrepr}\n  {SECTION} {text}"
