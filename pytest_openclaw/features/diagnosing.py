"""Repeats a tool cell without a call in other ways, to find the part at fault.

`conclusions/diagnosis.py` names the part. The asker sends at most 3 requests per target, within limits and
budget like all others.
"""

from __future__ import annotations

from dataclasses import replace
from functools import partial
from typing import TYPE_CHECKING, Any, NamedTuple

from pytest_openclaw.asking.sending import request_for
from pytest_openclaw.conclusions.diagnosis import SYMPTOMS
from pytest_openclaw.judging.facts import Facts
from pytest_openclaw.openclaw.thinking import strip_thinking
from pytest_openclaw.providers.over_http import OverHttp
from pytest_openclaw.util.text import cut
from pytest_openclaw.values.replies import Fault

if TYPE_CHECKING:
    from collections.abc import Mapping

    import pytest

    from pytest_openclaw.asking.asker import Asker
    from pytest_openclaw.session.owner import Owner
    from pytest_openclaw.util.files import JsonObject
    from pytest_openclaw.values.prompts import Cell, Prompt
    from pytest_openclaw.values.protocols import Provider
    from pytest_openclaw.values.replies import Reply
    from pytest_openclaw.values.requests import Request, Target
    from pytest_openclaw.values.rows import Record
    from pytest_openclaw.values.settings import Settings

MOST_TEXT = 300
"""The maximum number of characters of an answer that are kept as evidence."""


class _Suspect(NamedTuple):
    """A cell without a call, and its row."""

    cell: Cell
    row: Record

    @property
    def rank(self) -> tuple[bool, int]:
        """Order by preference: a single turn, which can be repeated exactly, before an exchange."""
        assert self.row.tool_outcome is not None, "it is a symptom"
        return self.cell.prompt.world is not None, SYMPTOMS.index(self.row.tool_outcome)


def join_session(owner: Owner, config: pytest.Config) -> None:  # noqa: ARG001
    """Diagnose the targets of this session at its end."""
    suspects = Suspects(owner.providers)
    owner.note_row, owner.examine = suspects.note, partial(suspects.examine, owner.asker, owner.settings)


class Suspects:
    """The cells that a diagnosis repeats, one per target of a local server."""

    def __init__(self, providers: Mapping[str, Provider]) -> None:
        self._providers = providers
        self._found: dict[Target, _Suspect] = {}

    def note(self, cell: Cell, record: Record) -> None:
        """Keep a cell if it is the best one of its target to repeat."""
        # Requests are kept as evidence, so they must not contain images.
        if record.tool_outcome not in SYMPTOMS or not cell.prompt.tools or cell.prompt.images:
            return
        suspect = _Suspect(cell, replace(record, raw_output="", turns=None))
        known = self._found.get(cell.target)
        is_local = _is_local(self._providers[cell.target.provider])
        if is_local and (known is None or suspect.rank < known.rank):
            self._found[cell.target] = suspect

    def examine(self, asker: Asker, settings: Settings) -> dict[Target, JsonObject]:
        """Repeat the cell of each target, and return the evidence by target."""
        return {
            target: _examine(asker, self._providers[target.provider], suspect, settings)
            for target, suspect in self._found.items()
        }


def _examine(asker: Asker, provider: Provider, suspect: _Suspect, settings: Settings) -> JsonObject:
    """Repeat a cell, and return its requests and answers."""
    assert isinstance(provider, OverHttp), "only these are noted"
    cell, row = suspect.cell, suspect.row
    # An exchange is repeated up to its first answer. First repeats are always sent.
    single = replace(cell, prompt=replace(cell.prompt, world=None, turns=()), repeat=1)
    asked = replace(request_for(cell, settings, provider), world=None, turns=(), lookup_turns=0)
    tries: list[JsonObject] = []

    def note(change: str, request: Request, **found: Any) -> None:
        tries.append({"change": change, **found, "body": provider.body(request)})

    def repeat(change: str, request: Request) -> None:
        token = f"{cell.id} {change}"
        try:
            result = asker.ask(token, single, request).result
        except Exception as error:  # a broken provider is evidence too
            note(change, request, outcome="fault", message=f"{type(error).__name__}: {error}")
            return
        finally:
            asker.done(token)
        if isinstance(result, Fault):
            note(change, request, outcome="fault", message=result.message)
            return
        note(
            change,
            request,
            outcome=_outcome(result, replace(single.prompt, tools=request.tools)),
            input_tokens=result.input_tokens,
            output_tokens=result.output_tokens,
            text=cut(strip_thinking(result.text), MOST_TEXT),
            called=[call.name for call in result.tool_calls],
        )

    counts: JsonObject = {}
    if cell.prompt.world is None:  # else the row has the sums of its turns
        counts = {"input_tokens": row.input_tokens, "output_tokens": row.output_tokens}
    note("as_asked", asked, outcome=row.tool_outcome, **counts)
    repeat("unstreamed", replace(asked, stream=False))
    repeat("without_tools", replace(asked, stream=False, tools=(), max_output_tokens=1))
    if asked.stream and tries[1]["outcome"] == "called":
        repeat("streamed_again", asked)
    return {
        "suite": cell.prompt.suite,
        "prompt_id": cell.prompt.id,
        "outcome": row.tool_outcome,
        "tools_offered": len(asked.tools),
        "url": f"{provider.describe().get('base_url') or ''}{provider.route(asked)}",
        "tries": tries,
    }


def _outcome(reply: Reply, prompt: Prompt) -> str:
    """Return whether the answer has a call, and in which form; any call counts."""
    answer = replace(reply, text=strip_thinking(reply.text), raw=reply.raw or reply.text)
    if reply.tool_calls:
        return "called"
    if prompt.tools and Facts(prompt=prompt, answer=answer).written:
        return "leaked_as_text"
    return "no_call" if answer.text.strip() or reply.reasoning.strip() else "empty"


def _is_local(provider: Provider) -> bool:
    """Whether the provider's server may be the user's own: on this machine, or in a private network."""
    return isinstance(provider, OverHttp) and provider.takes_tools and not provider.address.is_public
