"""Writes sessions in the forms in which OpenClaw records them: exported bundles, and transcripts."""

import json
from typing import Any

SYSTEM = """You are a personal assistant running inside OpenClaw.
## Tooling
- read: Read files
- exec: Run shell
- write: Write files
### Deferred Tool Schemas
- browser (browser): Control the browser
"""
CUT = {"truncated": True, "reason": "trajectory-depth-limit", "limitDepth": 6}
TOOLS = [
    {
        "name": "read",
        "description": "Read a file.",
        "parameters": {
            "type": "object",
            "required": ["path"],
            "properties": {"path": {"type": "string"}, "limit": {"type": "integer", "default": 100}},
        },
    },
    {"name": "browser", "description": "[Malformed diagnostic JSON redacted]", "parameters": CUT},
    "[Truncated]",
]
Entry = Any


def user(text):
    return {"role": "user", "content": text}


def says(text, **more):
    return {"role": "assistant", "content": [{"type": "text", "text": text}], "stopReason": "stop", **more}


def calls(*made):
    blocks = [
        {"type": "toolCall", "id": f"c{n}", "name": name, "arguments": arguments}
        for n, (name, arguments) in enumerate(made)
    ]
    return {
        "role": "assistant",
        "content": blocks,
        "stopReason": "toolUse",
        "provider": "local",
        "model": "m",
    }


def result(text, n=0, **more):
    content = [{"type": "text", "text": text}]
    return {"role": "toolResult", "toolCallId": f"c{n}", "toolName": "t", "content": content, **more}


def compaction(summary, kept):
    return {"summary": summary, "firstKeptEntryId": f"e{kept}"}


def _event(kind, source, **more):
    head = {
        "traceSchema": "openclaw-trajectory",
        "schemaVersion": 1,
        "source": source,
        "type": kind,
        "seq": 1,
    }
    return json.dumps({**head, **more})


def bundle_lines(entries, *, system=SYSTEM, tools=None):
    tools = TOOLS if tools is None else tools
    lines = [
        _event("trace.metadata", "runtime", data={"harness": {"version": "2026.9.6"}, "plugins": {}}),
        _event("context.compiled", "runtime", data={"systemPrompt": system, "tools": tools, "messages": []}),
    ]
    for n, entry in enumerate(entries):
        ids = {"entryId": f"e{n}", "parentEntryId": f"e{n - 1}" if n else None}
        if isinstance(entry, str):
            lines.append(_event("user.message", "transcript", **ids, data={"message": entry}))
        elif "kind" in entry:
            lines.append(_event(f"session.{entry['kind']}", "transcript", **ids, data={}))
        elif "summary" in entry:
            lines.append(_event("session.compaction", "transcript", **ids, data=entry))
        else:
            kind = {"toolResult": "tool.result"}.get(entry["role"], f"{entry['role']}.message")
            lines.append(_event(kind, "transcript", **ids, data={"message": entry}))
    return lines


def write_bundle(folder, *entries, name="s1", **more):
    bundle = folder / f"openclaw-trajectory-{name}"
    bundle.mkdir(parents=True)
    manifest = {"traceSchema": "openclaw-trajectory", "schemaVersion": 1, "sessionId": name}
    (bundle / "manifest.json").write_text(json.dumps(manifest), "utf-8")
    (bundle / "events.jsonl").write_text("\n".join([*bundle_lines(entries, **more), ""]), "utf-8")
    return bundle


def write_transcript(folder, entries, parents=()):
    """Write a session as older releases keep it, each entry after its parent; by default after the one before."""
    parents = parents or [None, *range(len(entries) - 1)]
    lines = [{"type": "session", "version": 3, "id": "s1", "timestamp": "2026-02-01T10:00:00Z"}]
    for n, (entry, parent) in enumerate(zip(entries, parents, strict=True)):
        ids = {"id": f"e{n}", "parentId": None if parent is None else f"e{parent}"}
        lines.append({"type": "message", **ids, "message": entry})  # type: ignore[dict-item]
    file = folder / "agents/main/sessions/s1.jsonl"
    file.parent.mkdir(parents=True, exist_ok=True)
    file.write_text("\n".join(map(json.dumps, lines)), "utf-8")
    return file


NOTES = (
    user("What is in my notes?"),
    calls(("read", {"path": "notes.txt"})),
    result("milk, bread"),
    says("Milk and bread."),
)
"""A session of two steps."""
