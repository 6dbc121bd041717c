"""Prepares the turns of a conversation to be sent."""

from __future__ import annotations

import itertools
from dataclasses import replace
from typing import TYPE_CHECKING

from pytest_openclaw.openclaw.thinking import strip_thinking

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from pytest_openclaw.util.json_types import JsonObject
    from pytest_openclaw.values.replies import Image, Turn


def with_ids(history: Sequence[Turn]) -> tuple[Turn, ...]:
    """Return the turns as they are sent again: no thinking, and each call with arguments and an id.

    The id is the call's own; a new one is generated if it has none or if an earlier call has the same.
    Arguments that are missing become `{}`, since many servers reject an empty text.
    """
    taken: set[str] = set()
    own = {call.id for turn in history for call in turn.calls if call.id}
    # Nine letters and digits, the only form that Mistral accepts.
    made_up = (id_ for number in itertools.count(1) if (id_ := f"call{number:05}") not in own)

    def id_for(own_id: str | None) -> str:
        id_ = next(made_up) if not own_id or own_id in taken else own_id
        taken.add(id_)
        return id_

    return tuple(
        turn
        if turn.is_users_alone
        else replace(
            turn,
            text=strip_thinking(turn.text),
            calls=tuple(
                replace(
                    call, id=id_for(call.id), arguments=call.arguments if call.arguments.strip() else "{}"
                )
                for call in turn.calls
            ),
        )
        for turn in history
    )


def users_content(
    turn: Turn, picture: Callable[[Image], JsonObject], *, kind: str = "text"
) -> str | list[JsonObject]:
    """Return a message of the user: its text, as a list only where pictures follow, as in OpenClaw.

    Args:
        turn: has such a message.
        picture: returns a picture as a part of the list.
        kind: the API's name of a part that is a text.

    """
    assert turn.user is not None, "only such turns have one"
    return [{"type": kind, "text": turn.user}, *map(picture, turn.images)] if turn.images else turn.user
