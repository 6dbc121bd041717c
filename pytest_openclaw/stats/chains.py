"""Which models may follow one that does not answer: those that are trusted at the size of request it gets."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from pytest_openclaw.core.text import counted
from pytest_openclaw.stats.proofs import PROVEN_PERCENT, PROVEN_PROMPTS, proof_of
from pytest_openclaw.stats.tool_use import NO_CALL_PROMPTS, did_right
from pytest_openclaw.stats.weight import PROMPT_TOKENS, REPLY_TOKENS
from pytest_openclaw.types.targets import LISTED

if TYPE_CHECKING:
    from collections.abc import Sequence

    from pytest_openclaw.stats.best import Best
    from pytest_openclaw.stats.candidates import Candidate
    from pytest_openclaw.types.records import Record


@dataclass(frozen=True, kw_only=True)
class Chain:
    """What follows the model for subagents.

    Attributes:
        context_tokens: the size of request at which all of them are trusted; None is OpenClaw's own.
        fallbacks: the targets in their order; none unless the first model is trusted at that size, too.
        left_out: trusted targets that are not in it, with the reason.
    """

    context_tokens: int | None
    fallbacks: Sequence[Candidate]
    left_out: Sequence[tuple[Candidate, str]]

    @property
    def size(self) -> str:
        """The size in words."""
        if self.context_tokens is None:
            return "requests of OpenClaw's size"
        return f"requests of {self.context_tokens:,} tokens"


def plan_chain(
    first: Candidate, able: Sequence[Candidate], best: Best | None, context_tokens: int | None
) -> Chain:
    """Return the chain after `first`: those that may be the best, fastest first, then the others.

    Args:
        first: the model for subagents.
        able: all that may hold all tools, `first` among them.
        best: see `Routing.best`.
        context_tokens: see `Chain`.
    """
    order = {label: place for place, label in enumerate(best.targets)} if best else {}
    others = sorted(
        (one for one in able if one.ref != first.ref),
        key=lambda one: (order.get(one.label, len(order)), one.p50_ms, one.label),
    )
    reasons = [(one, why_not_at(one, context_tokens) or _other_level(one, first)) for one in others]
    left_out = [(one, reason) for one, reason in reasons if reason]
    if reason := why_not_at(first, context_tokens):
        return Chain(context_tokens=context_tokens, fallbacks=(), left_out=[(first, reason), *left_out])
    fallbacks = {one.ref: one for one, reason in reversed(reasons) if not reason}
    return Chain(context_tokens=context_tokens, fallbacks=[*reversed(fallbacks.values())], left_out=left_out)


def why_not_at(one: Candidate, context_tokens: int | None) -> str:
    """Return why a trusted target is not trusted in requests of a size; empty if it is.

    By distinct prompts it must have called right in requests of at least that size, and the context that its
    server reports, if it does, must hold such a request and a reply.

    Args:
        one: the target.
        context_tokens: of a request; None is OpenClaw's own, which cells on its surfaces are.
    """
    turn = one.group.openclaw_turn
    if turn and turn.context_tokens is not None:
        needed = turn.context_needed_tokens if context_tokens is None else context_tokens + REPLY_TOKENS
        if turn.context_tokens < needed:
            return f"its server has {turn.context_tokens:,} tokens of context, {needed:,} are needed"
    cells = [record for record in one.rows if _needs_a_call(record)]
    proof = proof_of((record for record in cells if _is_of(record, context_tokens)), did_right)
    if proof.is_enough:
        return ""
    least = PROMPT_TOKENS if context_tokens is None else context_tokens
    right = f"{proof.n_prompts_right} of {counted(proof.n_prompts, 'prompt')} right"
    enough = f"at least {PROVEN_PROMPTS} and {PROVEN_PERCENT} % needed"
    return f"{right} in requests of {least:,} tokens or more, {enough}"


def _needs_a_call(record: Record) -> bool:
    """Whether it is an answered cell about tools on the wire that needs a call, also one made harder."""
    is_other = record.probe or record.twin_of or record.role
    is_native = record.tools_offered is not None and record.tool_outcome is not None
    return is_native and not is_other and record.tool_outcome not in NO_CALL_PROMPTS


def _is_of(record: Record, context_tokens: int | None) -> bool:
    if context_tokens is None and record.surface != LISTED:
        return True
    return largest_request(record) >= (PROMPT_TOKENS if context_tokens is None else context_tokens)


def largest_request(record: Record) -> int:
    """Return the tokens of a cell's largest request; 0 if they are not known."""
    turns = [turn.get("input_tokens") for turn in record.turns or ()]
    known = [tokens for tokens in turns if isinstance(tokens, int)]
    if len(record.turns or ()) > 1:
        return max(known, default=0)
    return record.input_tokens or max(known, default=0)


def _other_level(one: Candidate, first: Candidate) -> str:
    if one.group.target.thinking_level == first.group.target.thinking_level:
        return ""
    return "it was measured at another thinking level, and the config has one for all"
