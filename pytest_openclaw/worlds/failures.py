"""The results of calls that fail, in the forms in which OpenClaw 2026.9.6 delivers them to a model."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from pytest_openclaw.openclaw.dispatch import error_text
from pytest_openclaw.worlds.external import wrap_external
from pytest_openclaw.worlds.shortening import cut_mark

if TYPE_CHECKING:
    from collections.abc import Mapping

    from pytest_openclaw.values.tool_calls import Dispatched
    from pytest_openclaw.values.worlds import Failure

#: seconds that OpenClaw 2026.9.6 gives a command
_COMMAND_S = 1800
_GUIDANCE = (
    "The command was terminated, but external side effects may already have completed. Verify the resulting"
    " state before retrying. Do not automatically rerun non-idempotent commands. Use a higher timeout only"
    " when the command is known to be safe to retry.\n\nIf it should keep running, start it with exec"
    " background=true or yieldMs so OpenClaw can register a pollable process session. Do not rely on shell"
    " backgrounding with a trailing &."
)
_WEB = ("web_fetch", "web_search")
_REFUSED = (
    "The owner denied this call, so it was not carried out.\nThe decision is final: do not repeat the call,"
    " and do not ask for it to be approved again."
)


def timeout_text(made: Dispatched) -> str:
    """Return what OpenClaw 2026.9.6 says of a call that took too long."""
    return _timed_out(made.tool or made.call.name, made.arguments or {})


def failure_text(failure: Failure, tool: str, arguments: Mapping[str, Any]) -> str:
    """Return the result of a call that fails as a suite says.

    A denied command is one line, and the denial of another tool plain sentences; a refusal by a server is
    an error of the tool.
    """
    if failure == "timeout":
        return _timed_out(tool, arguments)
    if failure == "gone":
        return f"Tool {tool} not found"
    if failure == "rate_limit":
        return error_text(tool, as_delivered(tool, f"{tool} failed (429): too many requests"))
    command = arguments.get("command")
    return f"Exec denied (user-denied): {command}" if isinstance(command, str) else _REFUSED


def as_delivered(tool: str, error: str) -> str:
    """Return the text of a tool's error: those of the web tools are wrapped as content from outside."""
    return wrap_external(error, "API", with_notice=True) if tool in _WEB else error


def cut_text(text: str, chars: int) -> str:
    """Return the first characters of a result, and how many were cut off."""
    if len(text) <= chars:
        return text
    return text[:chars] + cut_mark(len(text) - chars)


def _timed_out(tool: str, arguments: Mapping[str, Any]) -> str:
    # The words for commands are those in `formatExecFailureReason` of its `bash-tools.exec-runtime`.
    if tool != "exec":
        return error_text(tool, as_delivered(tool, f"{tool} timed out"))
    seconds = arguments.get("timeoutSeconds", _COMMAND_S)
    after = f" after {seconds} seconds" if isinstance(seconds, int | float) and seconds > 0 else ""
    return f"Command timed out{after}.\n\n{_GUIDANCE}"
