"""A fake OpenClaw: asks the model of its config once, and prints the answer in OpenClaw's form.

FAKE_MODE is given as the first argument: `answer`, `silent` (no JSON), `terminated` (as after
SIGTERM), `fails` (an error of its own), `garbles` (its request is not JSON), `hangs`
(with a child that would outlive it), `runs` (the prompt is a command, which it gives to its shell).
It writes its input to FILE, the second argument. It keeps the conversation of the session in its state
folder, and executes calls of `read` and `write`; a prompt `fail` is answered by an error.

The plugin's tools are offered where the config allows them; with `alsoAllow` they are listed in a tool's
description. The mode `deaf` does not load the plugin.
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
import time
import urllib.request
from pathlib import Path
from typing import Any

mode, file, *arguments = sys.argv[1:]
if "--version" in arguments:
    print("OpenClaw 2026.9.6 (fake)")
    sys.exit()
config_file = Path(os.environ["OPENCLAW_CONFIG_PATH"])
prompt = Path(arguments[arguments.index("--message-file") + 1]).read_text("utf-8")
config = json.loads(config_file.read_text("utf-8"))
seen = {
    "arguments": arguments,
    "environ": dict(os.environ),
    "config": config,
    "prompt": prompt,
    "cwd": str(Path.cwd()),
    "mode": oct(config_file.stat().st_mode & 0o777),
}
if mode == "hangs":
    seen["child"] = subprocess.Popen(["sleep", "600"]).pid
if mode == "runs":
    shell = [os.environ["SHELL"], "-c", prompt]
    seen["printed"] = subprocess.run(shell, capture_output=True, text=True, check=False).stdout
Path(file).write_text(json.dumps(seen), encoding="utf-8")
if mode == "hangs":
    time.sleep(600)
if mode == "terminated":
    sys.exit(143)
if mode == "silent":
    print("Something went wrong", file=sys.stderr)
    sys.exit(3)
if mode == "fails":
    error = {"message": "Config invalid: no such key", "type": "cli_error"}
    print(json.dumps({"ok": False, "error": error}))
    sys.exit(1)
if prompt == "fail":
    print(
        json.dumps({"payloads": [], "meta": {"error": {"kind": "exception", "message": "HTTP 503: later"}}})
    )
    sys.exit(1)
(server,) = config["models"]["providers"].values()
kept = Path(os.environ["OPENCLAW_STATE_DIR"], f"{arguments[arguments.index('--session-id') + 1]}.json")
messages = json.loads(kept.read_text("utf-8")) if kept.exists() else []
messages.append({"role": "user", "content": prompt})
body = {"model": server["models"][0]["id"], "messages": messages, "stream": True}
plugins = [entry["config"] for entry in config.get("plugins", {}).get("entries", {}).values()]
lost = [tool["name"] for one in plugins for tool in one["tools"] if mode == "deaf"]
policy = config["tools"]
bridge = ["tool_search", "tool_describe", "tool_call"] if "alsoAllow" in policy else []
names = policy.get("allow", bridge)
reached = ", ".join(name for name in policy.get("alsoAllow", ()) if name not in lost)
body["tools"] = [
    {"type": "function", "function": {"name": name, "description": reached}}
    for name in names
    if name not in lost
]


def carry_out(name: str, arguments: dict[str, Any]) -> str:
    """Read or write a file; return the result."""
    if name == "write":
        Path(arguments["path"]).write_text(arguments["content"], "utf-8")
        return "Written."
    return Path(arguments["path"]).read_text("utf-8")


def execute(call: dict[str, Any]) -> dict[str, Any]:
    """Return the result of a call as a message."""
    arguments, name = json.loads(call["function"]["arguments"]), call["function"]["name"]
    return {"role": "tool", "tool_call_id": call["id"], "content": carry_out(name, arguments)}


while True:
    kept.write_text(json.dumps(messages), encoding="utf-8")
    request = urllib.request.Request(
        server["baseUrl"] + "/chat/completions",
        b"[" * 200_000 if mode == "garbles" else json.dumps(body).encode(),
        {"Content-Type": "application/json", "Authorization": f"Bearer {server['apiKey']}"},
    )
    answer = urllib.request.urlopen(request, timeout=600).read().decode()
    events = [json.loads(line[6:]) for line in answer.splitlines() if line.startswith("data: {")]
    deltas = [choice["delta"] for event in events for choice in event["choices"]]
    text = "".join(delta.get("content") or "" for delta in deltas)
    made = [call for delta in deltas for call in delta.get("tool_calls", ())]
    messages.append({"role": "assistant", "content": text} | ({"tool_calls": made} if made else {}))
    messages.extend(map(execute, made))
    if not made:
        break
kept.write_text(json.dumps(messages), encoding="utf-8")
meta = {"agentMeta": {"model": body["model"]}, "finalAssistantVisibleText": text, "stopReason": "stop"}
printed = {"payloads": [{"text": text, "mediaUrl": None}], "meta": meta}
print("[plugins] loaded {3}")
print(json.dumps(printed, indent=2))
print("(node:1) Warning: {experimental}")
