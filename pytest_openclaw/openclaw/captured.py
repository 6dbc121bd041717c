"""Requests that OpenClaw sent to a model: read, masked, and gathered into a catalog like the shipped one.

A request has the format of one of three APIs. Masks replace personal and temporary data of a system prompt:
names, paths, times, ids.
"""

from __future__ import annotations

import json
import re
from dataclasses import asdict, dataclass, field, replace
from typing import TYPE_CHECKING, Any

from pytest_openclaw.values.tool_calls import Tool

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence

    from pytest_openclaw.util.files import JsonObject


PATHS = {
    "/chat/completions": "openai-completions",
    "/responses": "openai-responses",
    "/api/chat": "ollama",
}
"""End of a request's path → OpenClaw's name of the API."""
_TALK = frozenset({"messages", "input", "instructions", "tools"})
# A key of OpenClaw's own, not of JSON Schema.
_MARKS = frozenset({"~optional"})
_DEFERRED = re.compile(r"^### Deferred Tool Schemas\n(.*?)(?=\n\n|\n#|\Z)", re.DOTALL | re.MULTILINE)
_ENTRY = re.compile(r"^- ([A-Za-z0-9_.-]+)(?: \([^)\n]*\))?(?::|$)", re.MULTILINE)


@dataclass(frozen=True, kw_only=True)
class Sent:
    """One request.

    Attributes:
        api: OpenClaw's name of its API.
        tools: those that are offered as functions, in order.
        bytes_of_tools: all tools as compact JSON, as they were sent.
        fields: every other key except the conversation; also tools that are not functions.
        system: the system prompt; empty without one.
        deferred: names of the tools that the system prompt lists behind the bridge.
        question: the texts `before` and `after` the question in its message, and the `context` after it.
    """

    api: str
    tools: tuple[Tool, ...]
    bytes_of_tools: int
    fields: JsonObject
    system: str
    deferred: tuple[str, ...]
    question: Mapping[str, str] = field(default_factory=dict)

    def masked(self, masks: Masks) -> Sent:
        """Return it without personal data."""
        system, fields, question = map(masks.value, (self.system, self.fields, dict(self.question)))
        return replace(self, system=system, fields=fields, question=question)


def api_of(path: str) -> str | None:
    """Return the API of a request's path; None if it is unknown."""
    return next((api for end, api in PATHS.items() if path.endswith(end)), None)


def read_request(api: str, body: Mapping[str, Any], question: str = "") -> Sent:
    """Parse a request.

    Raises:
        ValueError: it does not have the format of this API.
    """
    tools = body.get("tools") or []
    if not isinstance(tools, list) or not all(isinstance(tool, dict) for tool in tools):
        raise ValueError("its tools are no list of objects")
    system = system_of(body)
    fields = {key: value for key, value in body.items() if key not in _TALK}
    others = [tool for tool in tools if tool.get("type", "function") != "function"]
    return Sent(
        api=api,
        tools=tuple(_tool(tool) for tool in tools if tool not in others),
        bytes_of_tools=len(compact(tools)),
        fields={**fields, "tools": others} if others else fields,
        system=system,
        deferred=deferred_in(system),
        question=_framed(messages_of(body), question) if question else {},
    )


def compact(value: Any) -> bytes:
    """Return a value as JSON without blanks, in UTF-8, as OpenClaw sends it."""
    return json.dumps(value, ensure_ascii=False, separators=(",", ":")).encode()


def deferred_in(system: str) -> tuple[str, ...]:
    """Return the tools that a system prompt lists as reached through `tool_call`."""
    section = _DEFERRED.search(system)
    return tuple(dict.fromkeys(_ENTRY.findall(section[1]))) if section else ()


def _tool(entry: Mapping[str, Any]) -> Tool:
    described = entry.get("function", entry)  # Responses has no object within the object
    if not isinstance(described, dict) or not isinstance(name := described.get("name"), str) or not name:
        raise ValueError("a tool of it has no name")
    parameters = described.get("parameters")
    if not isinstance(parameters, dict):
        parameters = {"type": "object", "properties": {}}
    description = described.get("description")
    return Tool(
        name=name,
        description=description if isinstance(description, str) else "",
        parameters=_without_marks(parameters),
    )


def _without_marks(value: Any) -> Any:
    if isinstance(value, dict):
        return {key: _without_marks(part) for key, part in value.items() if key not in _MARKS}
    return [_without_marks(part) for part in value] if isinstance(value, list) else value


def system_of(body: Mapping[str, Any]) -> str:
    """Join the system texts before the conversation and at its beginning."""
    said = [instructions] if isinstance(instructions := body.get("instructions"), str) else []
    texts = (text for role, text in said_in(messages_of(body)) if role in ("system", "developer"))
    return "\n\n".join([*said, *texts])


def messages_of(body: Mapping[str, Any]) -> list[JsonObject]:
    """Return the messages of a request, or the items that take their place."""
    talk = body.get("messages") or body.get("input") or []
    return [turn for turn in talk if isinstance(turn, dict)] if isinstance(talk, list) else []


def _framed(talk: Sequence[JsonObject], question: str) -> dict[str, str]:
    """Return what OpenClaw adds to a question; in every later request the context is the last message."""
    said = [text for role, text in said_in(talk) if role == "user"]
    for place, text in enumerate(said):
        before, found, after = text.partition(question)
        if found:
            return {"before": before, "after": after, "context": "\n\n".join(said[place + 1 :])}
    return {}


def said_in(talk: Sequence[JsonObject]) -> Iterator[tuple[str, str]]:
    """Yield role and text of each message and result; the role of a result is `tool`."""
    for turn in talk:
        if turn.get("type") == "function_call_output":
            yield "tool", text_of(turn.get("output"))
        else:
            yield str(turn.get("role") or ""), text_of(turn.get("content"))


def text_of(content: Any) -> str:
    """Return the text of a message, which may be a list of parts."""
    parts = content if isinstance(content, list) else [{"text": content}]
    texts = [part.get("text") for part in parts if isinstance(part, dict)]
    return "".join(text for text in texts if isinstance(text, str))


CONFIGURED = "configured"
"""The surface of the user's own config."""
DIRECT = "direct"
DEFERRED = "deferred"
# Largest first: its parameters define a tool; a surface with fewer has a variant.
_FULLEST = ("full", "coding", DIRECT, CONFIGURED)


def gather(sent: Mapping[str, Sent], *, release: str, taken: str) -> JsonObject:
    """Return a catalogue.

    Args:
        sent: by surface.
        release: such as `openclaw-2026.9.6`.
        taken: the day.
    """
    ranked = sorted(sent, key=lambda name: _FULLEST.index(name) if name in _FULLEST else len(_FULLEST))
    tools: dict[str, Tool] = {}
    for surface in ranked:
        for tool in sent[surface].tools:
            tools.setdefault(tool.name, tool)
    surfaces = {name: [tool.name for tool in request.tools] for name, request in sent.items()}
    if DIRECT in surfaces:
        surfaces["tool-search"] = surfaces[DIRECT]
    deferred = _deferred(sent)
    known = [name for name in deferred if name in tools]
    return {
        "release": release,
        "about": {
            "taken": f"{taken}, by capture-tools from what the installed program sent to loopback",
            "captured": True,
            "not_described": [name for name in deferred if name not in tools],
            "sizes": {
                name: {
                    "tools": len(request.tools),
                    "bytes": request.bytes_of_tools,
                    "bytes_of_the_release": request.bytes_of_tools,
                    "bytes_of_the_system_prompt": len(request.system.encode()),
                }
                for name, request in sent.items()
            },
        },
        "surfaces": surfaces,
        "deferred": known,
        "tools": [asdict(tools[name]) for name in sorted(tools)],
        "variants": [*_variants(sent, tools, known)],
        "requests": {
            name: {key: getattr(request, key) for key in ("api", "fields", "deferred", "system", "question")}
            for name, request in sent.items()
        },
    }


def _deferred(sent: Mapping[str, Sent]) -> tuple[str, ...]:
    """Return the tools behind the bridge: of this machine's config if it has one, else the default."""
    for surface in (CONFIGURED, DIRECT):
        if surface in sent and sent[surface].deferred:
            return sent[surface].deferred
    return ()


def _variants(
    sent: Mapping[str, Sent], tools: Mapping[str, Tool], deferred: list[str]
) -> Iterator[dict[str, Any]]:
    """Yield the tools that differ between surfaces, once for each form."""
    places = {name: {tool.name: tool for tool in request.tools} for name, request in sent.items()}
    if "coding" in places:  # the default profile, whose tools are those behind the bridge
        places[DEFERRED] = {name: tool for name, tool in places["coding"].items() if name in deferred}
    forms: dict[str, tuple[Tool, list[str]]] = {}
    for place, there in places.items():
        for name, tool in there.items():
            if tool != tools[name]:
                forms.setdefault(json.dumps(asdict(tool)), (tool, []))[1].append(place)
    for tool, names in forms.values():
        yield {"surfaces": names, **asdict(tool)}


_DAY = r"(?:Mon|Tue|Wed|Thu|Fri|Sat|Sun)[a-z]*,? "
_CLOCK = r"[T ]\d{1,2}:\d{2}(?::\d{2}(?:\.\d+)?)?(?: ?(?:Z|UTC|GMT|[A-Z]{3,4}\b|[+-]\d{2}:?\d{2}))?"
_PATTERNS = (
    (re.compile(r"\b[0-9a-f]{8}-(?:[0-9a-f]{4}-){3}[0-9a-f]{12}\b", re.IGNORECASE), "<id>"),
    (re.compile(rf"(?:{_DAY})?\b\d{{4}}-\d{{2}}-\d{{2}}(?:{_CLOCK})?"), "<time>"),
    (re.compile(r"(?<=Time zone: )[^\n]+"), "<zone>"),
    (re.compile(r"(?<=\bhost=)[^\s|]+"), "<host>"),
    (re.compile(r"(?<=\bos=)[^|\n]+?(?= \||\n|$)"), "<os>"),
    (re.compile(r"\b127\.0\.0\.1:\d+"), "127.0.0.1:<port>"),
    (re.compile(r"(?:/home|/Users|[A-Za-z]:\\Users)[/\\][^/\\\s\"'`<>:]+"), "<home>"),
    (re.compile(r"\b[\w.+-]+@[\w-]+\.[\w.-]+\w"), "<address>"),
)
_DOCS = re.compile(r"^Docs: (.+?)[/\\]docs$", re.MULTILINE)
# Ordinary words of any prompt, which identify no user.
_COMMON = frozenset({"root", "user", "admin", "agent", "host", "system", "localhost", "openclaw", "runner"})


@dataclass(frozen=True, kw_only=True)
class Masks:
    """The known personal data.

    Attributes:
        paths: a path → its placeholder, such as `<workspace>`.
        host: the machine's name, with or without its domain.
        user: the user's name.
        model: the model's name in OpenClaw, `provider/model`, which is another one in each later request.
        key: the key that OpenClaw was given.
    """

    paths: Mapping[str, str]
    host: str = ""
    user: str = ""
    model: str = ""
    key: str = ""

    def text(self, text: str) -> str:
        """Return a text with placeholders for all of it."""
        if self.key:
            text = text.replace(self.key, "<key>")
        if package := _DOCS.search(text):
            text = text.replace(package[1], "<openclaw>")
        # A folder is replaced before its parent.
        for path in sorted(filter(None, self.paths), key=len, reverse=True):
            text = re.sub(rf"{re.escape(path)}(?![\w-]|\.\w)", self.paths[path].replace("\\", r"\\"), text)
        for pattern, placeholder in _PATTERNS:
            text = pattern.sub(placeholder, text)
        for name, placeholder in ((self.host, "<host>"), (self.host.partition(".")[0], "<host>")):
            text = _without_name(text, name, placeholder)
        return _without_name(_without_name(text, self.user, "<user>"), self.model, "<model>")

    def value(self, value: Any) -> Any:
        """Return a JSON value with all texts masked, except keys."""
        if isinstance(value, str):
            return self.text(value)
        if isinstance(value, dict):
            return {key: self.value(part) for key, part in value.items()}
        return [self.value(part) for part in value] if isinstance(value, list) else value


def _without_name(text: str, name: str, placeholder: str) -> str:
    if len(name) < 2 or name.casefold() in _COMMON:
        return text
    return re.sub(rf"(?<![\w<]){re.escape(name)}(?![\w>])", placeholder, text)
