"""What can go wrong, as one tree.

OpenClawError
 ├─ CallFailed      an attempt ended without a reply; in `values/faults.py`, because it carries a `Fault`
 ├─ SuiteError      a suite says something we cannot run: file, prompt, key, hint
 ├─ TargetError     `--openclaw-models` or an endpoint says something we cannot reach
 ├─ EngineError     the embedded engine is missing or does not start
 ├─ CellNotSent     a cell's repeat is not needed
 ├─ CallBroke       a provider or our own code broke while it sent a cell for an xdist worker
 └─ AskerFailed     the thread that sends requests has ended, or a provider blocks it
"""

from __future__ import annotations


class OpenClawError(Exception):
    """The base of everything raised here; its text is meant for the user."""


class SuiteError(OpenClawError):
    """A suite file cannot be used; the text names file, prompt, key and a hint."""


class TargetError(OpenClawError):
    """A target spec or an endpoint cannot be used; the text names it and a hint."""


class EngineError(OpenClawError):
    """The embedded engine cannot serve; the text is one sentence with the hint."""


class CellNotSent(OpenClawError):
    """A cell is not sent, because its target's repeats have ended; the text says why."""


class CallBroke(OpenClawError):
    """A provider or our own code broke in xdist's controller; the text names the exception.

    A note has its traceback.
    """


class AskerFailed(OpenClawError):
    """The thread that sends requests has ended, or a provider blocks it."""
