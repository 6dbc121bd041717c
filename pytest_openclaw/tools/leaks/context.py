"""Tells a written call that a reply makes from one that it only shows: an example, a format, a quotation."""

from __future__ import annotations

import re
from bisect import bisect_left
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Sequence

    from pytest_openclaw.tools.leaks.names import Leak

_NEAR = 400


def _any_of(*alternatives: str, also: str = "") -> re.Pattern[str]:
    """Match one of the alternatives as whole words, or `also` anywhere (scripts without blanks)."""
    words = rf"(?<!\w)(?:{'|'.join(alternatives)})(?!\w)"
    return re.compile(f"{words}|{also}" if also else words, re.IGNORECASE)


_ACT = _any_of(
    r"I(?:'ll|'m| will| am|) ?(?:now |just |first |then )?(?:going to |about to )?(?!show|give|explain"
    r"|illustr|demonstr|write)"
    r"(?:call|use|check|read|look|run|search|invoke|do|start|list|fetch|send|save|open|get|execute|make"
    r"|put)(?:ing)?",
    r"(?:let me|let's|I'll|I will|I'm going to|I need to|I must|I have to|we(?:'ll| need to| should| will|"
    r" must))"
    r" (?!show|give|explain|illustrate|demonstrate|write (?:it|one|this|down)|put it)\w+",
    r"calling|invoking|executing|one moment",
    r"here(?:'s| is) (?:the|my|your) (?:[\w-]+ ){0,2}(?:call|edit|command|request|tool|function|action)",
    r"ich (?:werde|rufe|muss|lese|schreibe|schaue|sehe|suche|führe)|lass mich|moment",
    "voy a|déjame|je vais|laisse-moi|vou|deixe|fammi|sto per|сейчас|давай",
    also="我(?:来|将|会|先|需要)|让我|现在|正在|します",
)
_EXAMPLE = _any_of(
    r"for (?:example|instance)|e\.g\.?|examples?|samples?|such as|look(?:s|ed)? like|looks as follows",
    "would (?:look|be|read|have been|write|have the form)|something like|syntax|template|hypothetical\\w*",
    r"illustrat\w+|documentation|placeholder|known as|so-called|I could|if I (?:had|were|could)",
    r"(?:the|this) (?:[\w-]+ ){0,3}(?:format|form|notation)(?: (?:is|of|for|that|looks|used))",
    "(?:is|are|be) (?:written|encoded|wrapped|represented|expressed|formatted|serialized|structured|emitted)",
    "you (?:can|could|would|should|may|might|need to|must|will|have to|write|call|send|use)",
    "your (?:client|code|program|request)|how (?:a|to|the|such|one)",
    r"(?:models?|clients?|agents?|assistants?|runtimes?|servers?|it|they|famil(?:y|ies)|llms?) (?:\w+ly )?"
    "(?:emit|write|output|produce|generate|send|return|wrap|use|expect|answer|respond)s?(?: (?:down|this"
    "|it))?",
    r"(?:zum )?beispiel\w*|z\. ?b\.?|so aus|würde\w* (?:so )?(?:aussehen|lauten)|das format|könnte ich",
    r"(?:por )?ejemplos?|así se ve|se vería|sería|el formato|(?:par )?exemples?|ressemble\w*|serait|le"
    r" format",
    r"(?:por )?exemplos?|(?:per |ad )?esempio|esempi|например|пример\w*|выглядит|формат\w*",
    also="例如|比如|示例|例子|格式|样子|例えば|たとえば|例[:\uff1a]|形式",
)
_EXPLAINED = _any_of(
    r"replace (?:the|`|<|\")[^\n]{0,40}|in this example|is (?:just|only|merely) an? \w+|an? (?:example"
    r"|illustration)",
    r"(?:the|a|your) (?:runtime|server|host|harness|client|framework|parser|orchestrator) (?:then |will "
    r"|now )*"
    "(?:parses?|runs?|executes?|answers?|reads?|turns?|returns?|sends?|sees?|extracts?|looks?|picks?)",
    r"the (?:\w+ )?[`\"]?(?:name|arguments|parameters|function|role|tool_calls|id)[`\"]? (?:field|key"
    r"|holds|names|contains"
    "|tells|array|token|tag)",
    r"(?:have|did|do|does|has|was|were|is|am|will)(?:n't| not) (?:actually |really )?(?:been |be )?"
    r"(?:call|run|execut|invok|made|sent)\w*",
    r"nothing (?:was|is|has been|gets) \w+|(?:would|is) that (?:be )?(?:okay|ok|all right|fine)|shall I"
    r"|should I|may I",
    "do you want me to|would you like me to|if you (?:agree|approve|confirm)|soll ich|beispiel|ejemplo"
    "|exemple",
    "esempio|пример",
    also="例子|示例|例です",
)
_PLACEHOLDER = re.compile(
    r"[>=:]\s*[\"']?(?:\.\.\.|\u2026|<[\w ./-]{2,40}>|\{\{?[\w ]{1,40}\}?\}|/?path/to/[\w./-]*"
    r"|your[_ -][\w ./-]{1,40}|[A-Z]+_(?:HERE|NAME))[\"'<,}\s]|\.\.\.\s*[})\]]"
)
_FENCE_MARK = re.compile(r"^[ \t]*(?:```|~~~)[^\n]*$", re.MULTILINE)
_TAG = re.compile(r"<[^<>\n]{1,80}>|\[/?[A-Z_]{2,40}\]")
_SENTENCE = re.compile(r"(?<=[.!?])\s+|\n+|(?<=[。！？])")


def own_acts(text: str, leaks: Sequence[Leak], *, shown_on_request: bool) -> tuple[Leak, ...]:
    """Return the calls that the reply makes itself."""
    if not leaks:
        return ()
    fences = [match.start() for match in _FENCE_MARK.finditer(text)]
    alone = _nothing_else(text, leaks)
    acts = []
    for leak in leaks:
        is_fenced = bisect_left(fences, leak.start) % 2 == 1
        if shown_on_request and (is_fenced or _is_inline(text, leak)) and not _is_announced(text, leak):
            continue
        if alone or not _is_shown(text, leak):
            acts.append(leak)
    return tuple(acts)


def _nothing_else(text: str, leaks: Sequence[Leak]) -> bool:
    """Whether the reply has no prose beside its calls."""
    kept, position = [], 0
    for leak in leaks:
        kept.append(text[position : leak.start])
        position = max(position, leak.end)
    kept.append(text[position:])
    rest = _TAG.sub(" ", _FENCE_MARK.sub(" ", " ".join(kept)))
    return not any(char.isalpha() for char in rest)


def _is_shown(text: str, leak: Leak) -> bool:
    if _is_inline(text, leak) or _is_cited(text, leak):
        return True
    if _is_announced(text, leak):
        return False
    if _EXAMPLE.search(_paragraph_before(text, leak)) or _PLACEHOLDER.search(leak.arguments):
        return True
    after = _TAG.sub(" ", _FENCE_MARK.sub("", text[leak.end : leak.end + _NEAR]))
    return bool(_EXPLAINED.search(after))


def _is_announced(text: str, leak: Leak) -> bool:
    """Whether the sentence before the call says that the reply makes it."""
    return bool(_ACT.search(_SENTENCE.split(_paragraph_before(text, leak))[-1]))


def _paragraph_before(text: str, leak: Leak) -> str:
    before = _FENCE_MARK.sub("", text[max(0, leak.start - _NEAR) : leak.start]).rstrip()
    return _TAG.sub(" ", before.rpartition("\n\n")[2] if before.endswith(":") else before[-250:]).strip()


def _is_inline(text: str, leak: Leak) -> bool:
    """Whether the call stands in backticks within a line of prose."""
    before = text[max(0, leak.start - _NEAR) : leak.start].rpartition("\n")[2]
    return before.count("`") % 2 == 1 and "```" not in before and any(char.isalpha() for char in before)


def _is_cited(text: str, leak: Leak) -> bool:
    before = text[max(0, leak.start - _NEAR) : leak.start].rpartition("\n")[2]
    return before.lstrip().startswith("> ")
