"""What can go wrong, as one tree.

OpenClawError
 ├─ CallFailed      an attempt ended without a reply; in `types/faults.py`, because it carries a `Fault`
 ├─ SuiteError      a suite says something we cannot run: file, prompt, key, hint
 ├─ TargetError     `--openclaw-models` or an endpoint says something we cannot reach
 ├─ EngineError     the embedded engine is missing or does not start
 │   └─ EngineCrashError  it died again after it had been started anew
 ├─ CellNotSent     a cell's repeat is not needed
 ├─ AskingBroke     our own code broke in the process that asks
 └─ HostDied        the process or thread that asks has ended by itself
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


class EngineCrashError(EngineError):
    """The embedded engine died while it served, and again after its restart."""


class CellNotSent(OpenClawError):
    """A cell is not sent, because its target's repeats have ended; the text says why."""


class AskingBroke(OpenClawError):
    """Our own code broke in the process that asks; the text names the exception, a note has its traceback."""


class HostDied(OpenClawError):
    """The process or thread that asks has ended by itself; what it was asking is lost."""
