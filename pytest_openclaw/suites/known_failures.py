"""Known failures: `xfail = [{ target = "*smollm*", reason = "…", strict = true }]` on a prompt."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from pytest_openclaw.suites.wording import closest, kind_of, shown
from pytest_openclaw.types.prompts import KnownFailure
from pytest_openclaw.types.targets import label_fits

if TYPE_CHECKING:
    from pytest_openclaw.types.prompts import Prompt
    from pytest_openclaw.types.targets import Target

_KEYS = ("target", "reason", "strict")
_EXAMPLE = '[{ target = "*smollm*", reason = "too small for this" }]'


def known_failure_of(prompt: Prompt, target: Target) -> KnownFailure | None:
    """Return the entry that expects this target to miss this prompt: the first that fits, else None."""
    fitting = (one for one in prompt.known_failures if label_fits(target.label, one.target))
    return next(fitting, None)


def read_known_failures(value: Any) -> tuple[KnownFailure, ...]:
    """Return the value of `xfail`: a table, or a list of them.

    Raises:
        ValueError: names the key, and how to fix it.
    """
    entries = [value] if isinstance(value, dict) else value
    if not isinstance(entries, list):
        raise ValueError(f"is {kind_of(value)}, not a table. Write {_EXAMPLE}.")
    return tuple(map(_read_entry, entries))


def _read_entry(entry: Any) -> KnownFailure:
    if not isinstance(entry, dict):
        raise ValueError(f"holds {shown(entry)}, which is {kind_of(entry)}. Write {_EXAMPLE}.")
    for key in entry:
        if key not in _KEYS:
            raise ValueError(f"has {shown(key)}.{closest(key, _KEYS)} Its keys are {', '.join(_KEYS)}.")
    target, strict = entry.get("target"), entry.get("strict")
    if target is not None and not (isinstance(target, str) and target.strip()):
        hint = 'Write a target or a glob, such as "*smollm*", or leave it out for all.'
        raise ValueError(f"has a target {shown(target)}. {hint}")
    if not (isinstance(strict, bool) or strict is None):
        raise ValueError(f"has strict {shown(strict)}. Write true or false.")
    return KnownFailure(target=target or "*", reason=_reason(entry), strict=strict)


def _reason(entry: dict[str, Any]) -> str:
    reason = entry.get("reason")
    if reason is None:
        raise ValueError(f"has no reason. Say why it is expected, such as {_EXAMPLE}.")
    if not isinstance(reason, str) or not reason.strip():
        raise ValueError(f"has a reason {shown(reason)}. Say in words why it is expected.")
    return reason.strip()
