"""The result of a call that needs more work than it may use."""

from __future__ import annotations

from typing import TYPE_CHECKING

from pytest_openclaw.tools.world.workspace import error_text

if TYPE_CHECKING:
    from pytest_openclaw.types.tool_calls import Dispatched

#: seconds that OpenClaw 2026.9.6 gives a command
_COMMAND_S = 1800
_GUIDANCE = (
    "The command was terminated, but external side effects may already have completed. Verify the resulting"
    " state before retrying. Do not automatically rerun non-idempotent commands. Use a higher timeout only"
    " when the command is known to be safe to retry.\n\nIf it should keep running, start it with exec"
    " background=true or yieldMs so OpenClaw can register a pollable process session. Do not rely on shell"
    " backgrounding with a trailing &."
)


def timeout_text(made: Dispatched) -> str:
    """Return what OpenClaw 2026.9.6 says of a call that took too long.

    The words for commands are those in `formatExecFailureReason` of its `bash-tools.exec-runtime`.
    """
    if made.tool != "exec":
        return error_text(made.tool or made.call.name, f"{made.tool} timed out")
    seconds = (made.arguments or {}).get("timeoutSeconds", _COMMAND_S)
    after = f" after {seconds} seconds" if isinstance(seconds, int | float) and seconds > 0 else ""
    return f"Command timed out{after}.\n\n{_GUIDANCE}"
