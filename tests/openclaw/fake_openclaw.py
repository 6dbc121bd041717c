"""A fake OpenClaw: asks the model of its config once, and prints the answer in OpenClaw's form.

The first argument is its mode: `answer`, `silent` (no JSON), `terminated` (as after SIGTERM), `fails` (an error of its
own), `hangs` (with a child that would outlive it), `runs` (the prompt is a command, which it gives to its shell). It
writes its input to the file of the second argument. It keeps the conversation of the session in its state folder; a
prompt `fail` is answered by an error.

The plugin's tools are offered where the config allows them; with `alsoAllow` they are listed in a tool's
description. The mode `deaf` does not load the plugin.
"""

import json
import os
import subprocess
import sys
import time
import urllib.request
from pathlib import Path

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
    error = {"kind": "exception", "message": "HTTP 503: later"}
    print(json.dumps({"payloads": [], "meta": {"error": error}}))
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
kept.write_text(json.dumps(messages), encoding="utf-8")
request = urllib.request.Request(
    server["baseUrl"] + "/chat/completions",
    json.dumps(body).encode(),
    {"Content-Type": "application/json", "Authorization": f"Bearer {server['apiKey']}"},
)
answer = urllib.request.urlopen(request, timeout=600).read().decode()
events = [json.loads(line[6:]) for line in answer.splitlines() if line.startswith("data: {")]
text = "".join(choice["delta"].get("content") or "" for event in events for choice in event["choices"])
kept.write_text(json.dumps([*messages, {"role": "assistant", "content": text}]), encoding="utf-8")
meta = {"agentMeta": {"model": body["model"]}, "finalAssistantVisibleText": text, "stopReason": "stop"}
printed = {"payloads": [{"text": text, "mediaUrl": None}], "meta": meta}
print("[plugins] loaded {3}")
print(json.dumps(printed, indent=2))
print("(node:1) Warning: {experimental}")
