"""The words by which servers of all APIs end an answer, and the meaning of each.

A row has the meaning (`stop`, `length`, …), and of a word that is not in this table the word itself.
`docs/explanation/servers.md` links the servers that send them.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Literal

if TYPE_CHECKING:
    from collections.abc import Mapping

Meaning = Literal[
    "stop",
    "tool_calls",
    "length",
    "context_full",
    "content_filter",
    "refusal",
    "malformed_call",
    "unexpected_call",
    "denied",
    "failed",
    "no_reason",
]

MALFORMED_CALL, UNEXPECTED_CALL = "malformed_call", "unexpected_call"
"""The `finish_reason` of an answer with a call that its server could not read, or of an unknown tool."""

_WORDS: Mapping[Meaning, str] = {
    "stop": "stop stop_sequence end_turn end eos eos_token eos_token_id stop_token finished "
    "completed complete",
    "tool_calls": "tool_calls tool_call tool_use function_call function_calls",
    "length": "length max_tokens max_output_tokens max_new_tokens max_length model_length token_limit "
    "continuation",
    # If nothing was generated, the prompt did not fit; else the answer did not.
    "context_full": "model_context_window_exceeded context_window_exceeded context_length_exceeded "
    "error_limit",
    "content_filter": "content_filter content_filtered sensitive safety recitation language blocklist spii "
    "prohibited_content model_armor image_safety image_prohibited_content image_recitation error_toxic "
    "escalation guardrail_intervened",
    "refusal": "refusal",
    "malformed_call": "malformed_call malformed_function_call malformed_tool_call",
    "unexpected_call": "unexpected_call unexpected_tool_call",
    # The account is limited or disabled.
    "denied": "pup_limited_disabled",
    # The server ended the answer for a reason of its own, or the request lacked a part of an earlier answer
    # (`missing_thought_signature`), or it only loaded or unloaded the model.
    "failed": "error network_error server_error internal_error internal_server_error upstream_error "
    "overloaded timeout abort aborted cancel cancelled canceled failed insufficient_system_resource "
    "malformed_response missing_thought_signature load unload",
    # Gemini's "unknown reason": without an answer it is a failure of the server.
    "no_reason": "other",
}
_MEANING = {word: meaning for meaning, words in _WORDS.items() for word in words.split()}


def meaning_of(word: str) -> Meaning | None:
    """Return what a finish word of a server means, in any case; None for an unknown one."""
    return _MEANING.get(word.strip().lower().removeprefix("finish_reason_"))
