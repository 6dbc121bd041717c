"""The tree of this package's errors.

OpenClawError
 ├─ CallFailed      an attempt ended without a reply; in `values/faults.py`, because it has a `Fault`
 ├─ SuiteError      a suite file cannot be used
 ├─ TargetError     a target spec or an endpoint cannot be used
 ├─ EngineError     the embedded engine is missing or does not start
 ├─ CellNotSent     a cell is not needed, because its target is settled
 └─ AskerFailed     the thread that sends requests has ended, or a provider blocks it
"""

from __future__ import annotations


class OpenClawError(Exception):
    """The base of this package's errors; the text is meant for the user."""


class SuiteError(OpenClawError):
    """A suite file cannot be used; the text names file, prompt, key and a hint."""


class TargetError(OpenClawError):
    """A target spec or an endpoint cannot be used; the text names it and a hint."""


class EngineError(OpenClawError):
    """The embedded engine is missing or does not start; the text is one sentence with a hint."""


class CellNotSent(OpenClawError):
    """A cell is not sent, because its target is settled; the text has the reason."""


class AskerFailed(OpenClawError):
    """The thread that sends requests has ended, or a provider blocks it."""
