"""A fake OpenClaw for captures of its requests: its requests depend only on its config.

    fake_capture.py MODE FILE …

MODE is `sends`, `old-node` (refuses to start), `silent` (ends without a request), `hangs`, or sends what is
invalid (`odd`), nested `deep` or `hostile`: it has the MODE, which may be a key, half of a character and texts
that take a pattern a long time. FILE gets a line of JSON for each start.
"""

import json
import os
import sys
import time
import urllib.error
import urllib.request
from contextlib import suppress
from pathlib import Path

TOOLS = {
    "exec": {"command": {"type": "string"}},
    "read": {"path": {"type": "string"}},
    "tool_call": {"id": {"type": "string"}, "args": {"type": "object"}},
}
SYSTEM = """You run inside OpenClaw.
### Deferred Tool Schemas
- exec (core): Run it.
- far_away (plugin): Its schema is missing.

Working directory: {workspace}
Home: {home}
Current date: 2026-11-22
"""


def main(mode, file, *words):
    given = words[words.index("--config") + 1] if "--config" in words else os.environ["OPENCLAW_CONFIG_PATH"]
    config = json.loads(Path(given).read_text("utf-8")) if Path(given).exists() else {}
    with Path(file).open("a", encoding="utf-8") as seen:
        seen.write(json.dumps({"words": words, "config": config, "environ": dict(os.environ)}) + "\n")
    if mode == "old-node":
        print("openclaw requires Node >=24.16.0 (current: v20.1.0).", file=sys.stderr)
        return 1
    if words == ("--version",):
        print("OpenClaw 2026.10.1 (abcdef)")
        return 0
    if mode == "hangs":
        time.sleep(600)
    if mode == "silent":
        error = {"message": "Unknown model: capture-tools/model", "kind": "exception"}
        print(json.dumps({"ok": False, "status": "error", "error": error}))
        return 1
    ask(mode, config)
    print(json.dumps({"ok": True, "status": "ok", "final": "OK"}))
    return 0


def ask(mode, config):
    (server,) = config["models"]["providers"].values()
    policy = config.get("tools", {})
    names = ["exec", "read"] if policy.get("profile") else ["read", "tool_call"]
    functions = [
        {
            "name": name,
            "description": f"The release's words for {name}.",
            "parameters": {"type": "object", "properties": TOOLS[name]},
        }
        for name in names
    ]
    system = SYSTEM.format(workspace=config["agents"]["defaults"]["workspace"], home=os.environ["HOME"])
    talk = [{"role": "system", "content": system}, {"role": "user", "content": "Say OK."}]
    wrapped = [{"type": "function", "function": function} for function in functions]
    body = {"model": server["models"][0]["id"], "messages": talk, "tools": wrapped, "stream": True}
    if mode == "odd":
        body = {"messages": talk, "tools": [{"type": "function"}]}
    if mode == "deep":
        for _ in range(300):
            functions[0]["parameters"] = {"items": functions[0]["parameters"]}
    if "hostile" in mode:
        talk[0]["content"] += f"{mode} \ud800 {'a.b+' * 50_000} {'os=' * 100_000}|"
    request = urllib.request.Request(
        server["baseUrl"] + "/chat/completions",
        json.dumps(body).encode(),
        {"Content-Type": "application/json", "Authorization": f"Bearer {server['apiKey']}"},
    )
    with suppress(urllib.error.HTTPError):  # the capture answers nothing
        urllib.request.urlopen(request, timeout=60)


if __name__ == "__main__":
    sys.exit(main(*sys.argv[1:]))
