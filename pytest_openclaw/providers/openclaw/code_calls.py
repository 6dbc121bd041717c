"""The calls that a model's code makes in OpenClaw's code mode, which it does not send to the model.

Our plugin of OpenClaw, `agent_plugin.js`, writes each call before OpenClaw checks and executes it, and its
result. For a single question it refuses all of them, so that nothing is carried out.
"""

from __future__ import annotations

import json
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from pytest_openclaw.providers.json_values import object_in, text_in
from pytest_openclaw.tools.code_mode import RUN
from pytest_openclaw.types.tool_calls import ToolCall

if TYPE_CHECKING:
    from collections.abc import Collection
    from pathlib import Path

# OpenClaw adds it to a command of code, so that a slow one does not use up the time of its run.
_ADDED = "yieldMs"


@dataclass
class CodeCalls:
    """The calls of one session, read while OpenClaw runs.

    Attributes:
        file: in which the plugin writes them.
        hold: no call is executed.
        results: by the id of a call.
    """

    file: Path
    hold: bool
    results: dict[str, str] = field(default_factory=dict)
    _n_read_bytes: int = 0

    @property
    def is_loaded(self) -> bool:
        """Whether OpenClaw has loaded the plugin; if not, its calls would be executed and not be seen."""
        return self.file.is_file() and self.file.stat().st_size > 0

    def new_calls(self, sent: Collection[str], code: str) -> tuple[ToolCall, ...]:
        """Return the calls since the last time, in order.

        Args:
            sent: names of the tools that the model can call itself; of these the code has only the shell.
            code: all that the model has run so far.
        """
        calls = []
        for line in self._new_lines():
            if isinstance(line.get("result"), str):
                self.results[text_in(line.get("id"))] = line["result"]
            elif (name := text_in(line.get("name"))) and (name == RUN or name not in sent):
                given = object_in(line.get("arguments"))
                if name == RUN and _ADDED not in code:
                    given.pop(_ADDED, None)
                said = json.dumps(given, ensure_ascii=False)
                calls.append(ToolCall(name=name, arguments=said, id=text_in(line.get("id")), in_code=True))
        return tuple(calls)

    def _new_lines(self) -> list[dict[str, Any]]:
        if not self.file.is_file():
            return []
        with self.file.open("rb") as file:
            file.seek(self._n_read_bytes)
            data = file.read()
        whole = data[: data.rfind(b"\n") + 1]
        self._n_read_bytes += len(whole)
        return [json.loads(line) for line in whole.decode("utf-8", "replace").splitlines()]
