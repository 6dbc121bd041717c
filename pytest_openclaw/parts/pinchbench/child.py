"""A script, the child process that runs a task's `grade`: a task as JSON on stdin, scores on stdout."""

from __future__ import annotations

import json
import os
import sys
import traceback
from contextlib import suppress
from typing import Any


def graded(task: dict[str, Any]) -> dict[str, Any]:
    """Return what `grade` returns, or its error."""
    names: dict[str, Any] = {"__name__": "grade"}
    try:
        code = compile(task["code"], task["name"], "exec", dont_inherit=True)
        exec(code, names)  # noqa: S102 - the suite author's
        return {"scores": names["grade"](task["transcript"], task["workspace"])}
    except BaseException as error:  # sys.exit is not an Exception
        last = traceback.extract_tb(error.__traceback__)[-1]
        return {"error": f"{type(error).__name__}: {error} (line {last.lineno} of its code)"}


if __name__ == "__main__":
    task = json.load(sys.stdin.buffer)
    with os.fdopen(os.dup(1), "wb") as output:
        os.dup2(2, 1)  # what `grade` prints
        with suppress(ImportError, ValueError, OSError):  # where the system can
            import resource

            resource.setrlimit(resource.RLIMIT_AS, (task["most_bytes"], task["most_bytes"]))
        output.write(json.dumps(graded(task), default=str).encode())
