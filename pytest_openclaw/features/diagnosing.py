"""Repeats a tool cell without a call in other ways, to find the part at fault; `stats/diagnosis.py` names it.

At most 5 requests a target, through the asker like every other: within limits and budget.
"""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING, Any, NamedTuple

from pytest_openclaw.asking.sending import request_for
from pytest_openclaw.judging.keys import demands_of
from pytest_openclaw.judging.tool_outcomes import is_leaked
from pytest_openclaw.openclaw.thinking import strip_thinking
from pytest_openclaw.providers.over_http import OverHttp
from pytest_openclaw.stats.diagnosis import SYMPTOMS
from pytest_openclaw.values.replies import Fault

if TYPE_CHECKING:
    from collections.abc import Mapping

    import pytest

    from pytest_openclaw.asking.asker import Asker
    from pytest_openclaw.session.owner import Owner
    from pytest_openclaw.util.files import JsonObject
    from pytest_openclaw.values.prompts import Cell
    from pytest_openclaw.values.protocols import Provider
    from pytest_openclaw.values.replies import Reply
    from pytest_openclaw.values.requests import Request, Target
    from pytest_openclaw.values.rows import Record
    from pytest_openclaw.values.settings import Settings
    from pytest_openclaw.values.tool_calls import Tool

MOST_TEXT = 300
"""Characters of an answer that are kept as evidence."""


class _Suspect(NamedTuple):
    """A cell without a call, and its row."""

    cell: Cell
    row: Record

    @property
    def rank(self) -> tuple[bool, int]:
        """A single turn, which a repeat repeats exactly, goes before an exchange."""
        assert self.row.tool_outcome is not None, "it is a symptom"
        return self.cell.prompt.world is not None, SYMPTOMS.index(self.row.tool_outcome)


def join_session(owner: Owner, config: pytest.Config) -> None:  # noqa: ARG001
    """Diagnose the targets of this session at its end."""
    owner.suspects = Suspects(owner.providers)


class Suspects:
    """Of each target of a local server, the cell that a diagnosis repeats."""

    def __init__(self, providers: Mapping[str, Provider]) -> None:
        self._providers = providers
        self._found: dict[Target, _Suspect] = {}

    def note(self, cell: Cell, record: Record) -> None:
        """Take a cell's row."""
        # Requests are kept, so that they may not contain pictures.
        if record.tool_outcome not in SYMPTOMS or not cell.prompt.tools or cell.prompt.images:
            return
        suspect, known = (
            _Suspect(cell, replace(record, raw_output="", turns=None)),
            self._found.get(cell.target),
        )
        is_local = _is_local(self._providers[cell.target.provider])
        if is_local and (known is None or suspect.rank < known.rank):
            self._found[cell.target] = suspect

    def examine(self, asker: Asker, settings: Settings) -> dict[Target, JsonObject]:
        """Return, by target, what the repeats of its cell show."""
        return {
            target: _Examination(asker, self._providers[target.provider], suspect, settings).run()
            for target, suspect in self._found.items()
        }


class _Examination:
    """The repeats of one cell."""

    def __init__(self, asker: Asker, provider: Provider, suspect: _Suspect, settings: Settings) -> None:
        assert isinstance(provider, OverHttp), "only these are noted"
        self._asker = asker
        self._provider = provider
        self._suspect = suspect
        # An exchange is repeated up to its first answer, and asked as a first repeat: those are always sent.
        prompt = replace(suspect.cell.prompt, world=None, turns=())
        self._cell = replace(suspect.cell, prompt=prompt, repeat=1)
        whole = request_for(suspect.cell, settings, provider)
        self._asked = replace(whole, world=None, turns=(), lookup_turns=0)
        self._tries: list[JsonObject] = []

    def run(self) -> JsonObject:
        """Send the repeats, and return them with what is needed to send them by hand."""
        suspect, asked = self._suspect, self._asked
        row = suspect.row if suspect.cell.prompt.world is None else None  # else it has the sums of its turns
        self._note(
            "as_asked",
            asked,
            outcome=suspect.row.tool_outcome,
            input_tokens=row and row.input_tokens,
            output_tokens=row and row.output_tokens,
        )
        self._try("unstreamed", replace(asked, stream=False))
        forced = replace(asked, stream=False, tool_choice="required")
        if self._provider.body(forced) != self._provider.body(replace(asked, stream=False)):
            self._try("tool_choice_required", forced)
        if len(asked.tools) > 1:
            self._try("single_tool", replace(asked, stream=False, tools=(self._wanted_tool(),)))
        self._try("without_tools", replace(asked, stream=False, tools=(), max_output_tokens=1))
        if asked.stream and self._tries[1]["outcome"] == "called":
            self._try("streamed_again", asked)
        cell = suspect.cell
        return {
            "suite": cell.prompt.suite,
            "prompt_id": cell.prompt.id,
            "repeat": cell.repeat,
            "outcome": suspect.row.tool_outcome,
            "tools_offered": len(asked.tools),
            "streamed": asked.stream,
            "request": self._address(),
            "tries": self._tries,
        }

    def _try(self, change: str, request: Request) -> None:
        token = f"{self._suspect.cell.id} {change}"
        try:
            result = self._asker.ask(token, self._cell, request).result
        except Exception as error:  # the provider broke: evidence like any other
            self._note(change, request, outcome="fault", message=f"{type(error).__name__}: {error}")
            return
        finally:
            self._asker.done(token)
        if isinstance(result, Fault):
            self._note(change, request, outcome="fault", message=result.message)
            return
        self._note(
            change,
            request,
            outcome=self._outcome(result, request),
            input_tokens=result.input_tokens,
            output_tokens=result.output_tokens,
            text=strip_thinking(result.text)[:MOST_TEXT],
            called=[call.name for call in result.tool_calls],
        )

    def _outcome(self, reply: Reply, request: Request) -> str:
        """Return how the answer has, or lacks, a call; which call it is does not matter here."""
        answer = replace(reply, text=strip_thinking(reply.text), raw=reply.raw or reply.text)
        if reply.tool_calls:
            return "called"
        if request.tools and is_leaked(replace(self._cell.prompt, tools=request.tools), answer):
            return "leaked_as_text"
        return "no_call" if answer.text.strip() or reply.reasoning.strip() else "empty"

    def _note(self, change: str, request: Request, **found: Any) -> None:
        self._tries.append({"change": change, **found, "body": self._provider.body(request)})

    def _wanted_tool(self) -> Tool:
        wanted = {name for rule in demands_of(self._cell.prompt.validator).calls for name in rule.names}
        tools = self._asked.tools
        return next((tool for tool in tools if tool.name in wanted), tools[0])

    def _address(self) -> JsonObject:
        """Return where the bodies go; the embedded engine has another address and key each time."""
        provider = self._provider
        described = provider.describe()
        key_env = provider.key_env if provider.key() else None
        key = provider.key_headers(f"${key_env}") if key_env else {}
        return {
            "url": described.get("base_url"),
            "path": provider.route(self._asked),
            "headers": {"content-type": "application/json", **provider.headers, **key},
        }


def _is_local(provider: Provider) -> bool:
    """Whether the provider's server may be the user's own: on this machine, or in a private network."""
    return isinstance(provider, OverHttp) and provider.takes_tools and not provider.address.is_public
