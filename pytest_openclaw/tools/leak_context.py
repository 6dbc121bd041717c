"""Tells a written call that a reply makes from one that it only shows: an example, a format, a quotation."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Sequence

    from pytest_openclaw.tools.leak_names import Leak

_NEAR = 400
_ACT = re.compile(
    r"\b(?:I(?:'ll|\s?will|'m going to|\s?am going to|'m calling|\s?am calling|\s?need to|\s?must|\s?should"
    r"|'m using|\s?am using|\s?have to|\s?want to|\s?call|\s?use)|let me|let's|calling|invoking|executing"
    r"|running"
    r"|reading|we need to|we should|we'll|now|next|first|here is the (?:function|tool) call|one moment"
    r"|okay|sure"
    r"|ich (?:werde|rufe|muss|lese|schreibe)|lass mich|voy a|déjame|je vais|laisse-moi|vou|deixe|fammi|sto"
    r" per)\b"
    r"|我(?:来|将|会|先|需要)|让我|现在|正在|します|сейчас|давай",
    re.IGNORECASE,
)
_EXAMPLE = re.compile(
    r"\b(?:for (?:example|instance)|e\.g\.|examples?|samples?|such as|look(?:s|ed)? like|looks as follows"
    r"|would (?:look|be|read|have been|write)|something like|syntax|template|hypothetical\w*|illustrat\w+"
    r"|documentation"
    r"|the (?:\w+ ){0,3}format(?: (?:is|of|for|that|looks|used)|:)|(?:is|are|be) (?:written|encoded"
    r"|wrapped|represented"
    r"|expressed|formatted|serialized|serialised|structured|emitted)|you (?:can|could|would|should|may"
    r"|might|need to"
    r"|must|will|have to|write|call|send|use|can also)|your (?:client|code|program|request)"
    r"|(?:models?|clients?|agents?|assistants?|runtimes?|servers?|it|they|family|llms?)\s+(?:\w+ly\s+)?"
    r"(?:emit|write|output|produce|generate|send|return|wrap|use|expect|answer|respond)s?|if I (?:had|were"
    r"|could)"
    r"|how (?:a|to|the|such|one)|means|known as|so-called|placeholder"
    r"|(?:zum )?beispiel\w*|z\. ?b\.|so aus|würde\w* (?:so )?(?:aussehen|lauten)|das format|geschrieben"
    r"|(?:por )?ejemplos?|así se ve|se vería|sería|el formato|(?:par )?exemples?|ressemble\w*|serait|le"
    r" format"
    r"|(?:por )?exemplos?|(?:per |ad )?esempio|esempi|например|пример\w*|выглядит|формат\w*)\b"
    r"|例如|比如|示例|例子|格式|样子|例えば|たとえば|例[:：]|形式",
    re.IGNORECASE,
)
_EXPLAINED = re.compile(
    r"\b(?:replace|in this example|is (?:just|only|merely) an? |an? (?:example|illustration)|example|where `"
    r"|(?:the|a|your) (?:runtime|server|host|harness|client|gateway|framework|parser|orchestrator)"
    r"|(?:the|a) (?:\w+ )?`?\"?(?:name|arguments|parameters|function|tool|role|tool_calls|id)\"?`?"
    r" (?:field|key|is|holds|names"
    r"|contains|tells|must|object|says|array|token|tag)"
    r"|(?:have|did|do|does|has|was|were|is|am|will)(?:n't| not) (?:actually |really )?(?:been |be"
    r" )?(?:call|run|execut|invok|made|sent)\w*"
    r"|nothing (?:was|is|has been|gets) \w+|no call|each (?:call|tool)|beispiel|ejemplo|exemple|esempio"
    r"|пример)\b"
    r"|例子|示例|例です",
    re.IGNORECASE,
)
_PLACEHOLDER = re.compile(
    r"[\"'>=:]\s*(?:\.\.\.|\u2026|<[\w ./-]{2,40}>|\{\{?[\w ]{1,40}\}?\}|path/to/[\w./-]*"
    r"|/path/to/[\w./-]*|your[_ -][\w ./-]{1,40}"
    r"|[A-Z]+_(?:HERE|NAME)|(?:tool|function)_name)\s*[\"'<,}]|\.\.\.\s*[})\]]",
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
        fenced = sum(1 for place in fences if place < leak.start) % 2 == 1 if len(fences) < 1000 else False
        if shown_on_request and (fenced or _is_inline(text, leak)):
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
    before = _FENCE_MARK.sub("", text[max(0, leak.start - _NEAR) : leak.start]).rstrip()
    paragraph = _TAG.sub(" ", before.rpartition("\n\n")[2] if before.endswith(":") else before[-250:])
    last = _SENTENCE.split(paragraph.strip())[-1]
    if _EXAMPLE.search(last):
        return True
    if _ACT.search(last):
        return False
    if _EXAMPLE.search(paragraph) or _PLACEHOLDER.search(text[leak.start : leak.end]):
        return True
    after = _TAG.sub(" ", _FENCE_MARK.sub("", text[leak.end : leak.end + _NEAR]))
    return bool(_EXPLAINED.search(after))


def _is_inline(text: str, leak: Leak) -> bool:
    """Whether the call stands in backticks within a line of prose."""
    line = text.rfind("\n", 0, leak.start) + 1
    before = text[max(line, leak.start - _NEAR) : leak.start]
    return before.count("`") % 2 == 1 and "```" not in before and any(char.isalpha() for char in before)


def _is_cited(text: str, leak: Leak) -> bool:
    line = text.rfind("\n", 0, leak.start) + 1
    return text[line : line + 10].lstrip().startswith("> ")
