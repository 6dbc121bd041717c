"""The conversation before a prompt, `messages`, played through OpenClaw so that its session contains it.

Each message of the user is one start of OpenClaw. The relay answers its requests itself, by chat completions,
with what the messages say; OpenClaw executes the calls, and has to come to the stated results.
"""

from __future__ import annotations

import json
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING

from pytest_openclaw.providers.earlier_turns import with_ids

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Sequence

    from pytest_openclaw.core.json_types import JsonObject
    from pytest_openclaw.providers.openclaw.disk import Disk
    from pytest_openclaw.types.replies import Turn

#: OpenClaw's name of the API by which the relay answers, whatever the model's server has
API = "openai-completions"
PATH = "/chat/completions"


@dataclass
class PastRun:
    """A message of the user and what followed it.

    Attributes:
        user: the message.
        answers: the model's turns; all but the last have calls.
        n_given: how many of them OpenClaw has received.
    """

    user: str
    answers: list[Turn] = field(default_factory=list)
    n_given: int = 0

    @property
    def ends_in_text(self) -> bool:
        """Whether OpenClaw ends the run itself; else it asks for an answer that the conversation lacks."""
        return bool(self.answers) and not self.answers[-1].calls

    @property
    def is_over(self) -> bool:
        """Whether all answers were given."""
        return self.n_given == len(self.answers)

    def next(self, results: Sequence[str]) -> Turn | None:
        """Return the next answer, or None if the conversation has none.

        Args:
            results: those of the previous answer's calls, as OpenClaw sends them.

        Raises:
            ValueError: the results are not the stated ones; the message says so as a sentence.
        """
        if self.n_given and (why := _why_other_results(self.answers[self.n_given - 1], results)):
            raise ValueError(why)
        if self.is_over:
            if self.ends_in_text:
                raise ValueError("OpenClaw does not take the last answer before one of the user for an end.")
            return None
        self.n_given += 1
        return self.answers[self.n_given - 1]

    def said(self) -> Iterator[tuple[str, str]]:
        """Yield role and text of all that was said, in order."""
        yield "user", self.user
        for turn in self.answers:
            yield "assistant", turn.text
            for result in turn.results:
                yield "tool", result


def past_runs(messages: Iterable[Turn], disk: Disk) -> list[PastRun]:
    """Return the runs of a conversation that `why_no_past` allows, with the real path of the workspace."""
    real = disk.with_real_paths
    runs: list[PastRun] = []
    for turn in with_ids(tuple(messages)):
        if turn.user is not None:
            runs.append(PastRun(real(turn.user)))
        if not turn.is_users_alone:
            calls = tuple(replace(call, arguments=real(call.arguments)) for call in turn.calls)
            results = tuple(map(real, turn.results))
            runs[-1].answers.append(replace(turn, text=real(turn.text), calls=calls, results=results))
    return runs


def why_no_past(messages: Sequence[Turn], *, has_world: bool) -> str:
    """Return as a sentence why a conversation cannot be that of a session; empty if it can."""
    if messages and messages[0].user is None:
        return "its messages do not begin with one of the user."
    if any(turn.calls for turn in messages) and not has_world:
        return "its messages have calls, and it has no world in which OpenClaw can carry them out."
    for number, turn in enumerate(messages, 1):
        follower = messages[number] if number < len(messages) else None
        if len(turn.results) != len(turn.calls):
            return (
                f"turn {number} of its messages has {len(turn.calls)} calls and {len(turn.results)} results."
            )
        if follower and follower.user is not None and turn.is_users_alone:
            return f"its messages have no answer after no. {number}, and then the user's next one."
        if follower and follower.user is None and not (turn.is_users_alone or turn.calls):
            return f"turn {number} of its messages is an answer, and the model's next one follows it."
    return ""


def answer_of(turn: Turn, model: str) -> bytes:
    """Return a turn of the model as a stream of chat completions."""
    calls = [
        {
            "index": index,
            "id": call.id,
            "type": "function",
            "function": {"name": call.name, "arguments": call.arguments},
        }
        for index, call in enumerate(turn.calls)
    ]
    delta = {"role": "assistant", "content": turn.text} | ({"tool_calls": calls} if calls else {})
    choices: list[JsonObject] = [
        {"index": 0, "delta": delta, "finish_reason": None},
        {"index": 0, "delta": {}, "finish_reason": "tool_calls" if calls else "stop"},
    ]
    head = {"id": "past", "object": "chat.completion.chunk", "created": 0, "model": model}
    events = [json.dumps({**head, "choices": [choice]}) for choice in choices]
    return "".join(f"data: {event}\n\n" for event in (*events, "[DONE]")).encode()


def why_not_sent(runs: Iterable[PastRun], sent: Sequence[tuple[str, str]]) -> str:
    """Return as a sentence what of a conversation a request lacks, or has in another order; empty if nothing.

    Args:
        runs: the conversation.
        sent: role and text of the request's messages. OpenClaw adds words of its own to some, and joins
            a message of the user that has no answer with the next one.
    """
    at, start = 0, 0
    said = ((role, text.strip()) for run in runs for role, text in run.said())
    for role, text in (one for one in said if one[1]):  # some APIs send no blank text
        while at < len(sent) and not (sent[at][0] == role and text in sent[at][1][start:]):
            at, start = at + 1, 0
        if at == len(sent):
            return f"OpenClaw's session lacks this of its messages: {role}: {text[:80]!r}."
        start += sent[at][1][start:].index(text) + len(text)
    return ""


def _why_other_results(turn: Turn, results: Sequence[str]) -> str:
    """Compare results with the stated ones, without the white space at their ends."""
    if len(results) != len(turn.calls):
        return f"OpenClaw sends {len(results)} results of {len(turn.calls)} calls in its messages."
    for call, stated, found in zip(turn.calls, turn.results, results, strict=True):
        if stated.strip() != found.strip():
            return (
                f"its messages state another result of {call.name} than OpenClaw has in this world:"
                f" {stated.strip()[:80]!r} is stated, {found.strip()[:80]!r} found."
            )
    return ""
