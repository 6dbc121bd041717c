"""A fake `claude`: speaks stream-json as version 2.1 does. The first argument is the mode."""

import http.client
import json
import os
import re
import shlex
import signal
import sys
import time
from pathlib import Path

USAGE = {
    "input_tokens": 11,
    "cache_creation_input_tokens": 2,
    "cache_read_input_tokens": 5,
    "output_tokens": 1,
}


def say(line):
    print(json.dumps(line), flush=True)


def event(kind, **fields):
    return {"type": "stream_event", "event": {"type": kind, **fields}, "parent_tool_use_id": None}


def begin(*, connected=True):
    fields = {"tools": offered_names() if connected else [], "claude_code_version": "2.1.332"}
    servers = [{"name": name, "status": "connected" if connected else "failed"} for name in mcp_servers()]
    say({"type": "system", "subtype": "init", **fields, "model": "m1", "mcp_servers": servers})
    requesting()


def requesting():
    say({"type": "system", "subtype": "status", "status": "requesting"})


def said():
    """The next message of the user; None at the end."""
    line = sys.stdin.readline()
    return json.loads(line)["message"]["content"] if line else None


def argument(name):
    return dict(zip(sys.argv, sys.argv[1:], strict=False)).get(name)


def mcp_servers():
    path = argument("--mcp-config")
    return json.loads(Path(path).read_text(encoding="utf-8"))["mcpServers"] if path else {}


def asked_of_server(method, **params):
    """The answer of our MCP server, which is asked as its configuration says."""
    (server,) = mcp_servers().values()
    assert server["type"] == "http"
    host, path = server["url"].removeprefix("http://").split("/", 1)
    message = {"jsonrpc": "2.0", "id": 1, "method": method, "params": params}
    connection = http.client.HTTPConnection(host)
    connection.request("POST", f"/{path}", json.dumps(message), server["headers"])
    answer = connection.getresponse()
    return json.load(answer) if answer.status == 200 else {"error": {"message": "gone"}}


def offered_names():
    tools = asked_of_server("tools/list")["result"]["tools"] if mcp_servers() else []
    names = [re.sub(r"[^a-zA-Z0-9_-]", "_", tool["name"]) for tool in tools]
    return [f"mcp__openclaw__{name}" for name in names]


def message(*pieces, stop_reason="end_turn"):
    """One message of the model, in pieces."""
    say(event("message_start", message={"id": "msg_1", "model": "m1-20260101", "usage": USAGE}))
    if pieces:
        say(event("content_block_start", index=0, content_block={"type": "text", "text": ""}))
    for piece in pieces:
        say(event("content_block_delta", index=0, delta={"type": "text_delta", "text": piece}))
    if pieces:
        say(assistant([{"type": "text", "text": "".join(pieces)}]))
        say(event("content_block_stop", index=0))
    say(event("message_delta", delta={"stop_reason": stop_reason}, usage={"output_tokens": 3}))
    say(event("message_stop"))


def assistant(content, **fields):
    return {
        "type": "assistant",
        "message": {"id": "msg_1", "model": "m1-20260101", "content": content},
        **fields,
    }


def synthetic(text, **fields):
    content = [{"type": "text", "text": text}]
    return {"type": "assistant", "message": {"id": "x", "model": "<synthetic>", "content": content}, **fields}


def result(**fields):
    defaults = {
        "subtype": "success",
        "is_error": False,
        "api_error_status": None,
        "num_turns": 1,
        "result": "Hello",
    }
    return {"type": "result", **defaults, "stop_reason": "end_turn", "total_cost_usd": 0.5, **fields}


def hello():
    begin()
    message("Hel", "lo")
    say(result())


def report():
    """Answer, and record how we were called."""
    home, cwd = Path(os.environ["HOME"]), Path.cwd()
    call = {
        "argv": sys.argv[3:],
        "env": dict(os.environ),
        "said": said(),
        "cwd": str(cwd),
        "cwd_files": [path.name for path in cwd.iterdir()],
        "home_files": [path.name for path in home.iterdir()] if home.exists() else None,
        "leads_its_group": os.getpgid(0) == os.getpid(),
    }
    if system := argument("--system-prompt-file"):
        call["system"] = Path(system).read_text(encoding="utf-8")
    if servers := mcp_servers():
        call |= {"mcp_servers": servers, "offer": asked_of_server("tools/list")["result"]["tools"]}
    Path(sys.argv[2]).write_text(json.dumps(call), encoding="utf-8")
    hello()


def prompted():
    if "--version" in sys.argv:
        version()
        return
    sys.argv[1:] = shlex.split(said())
    globals()[sys.argv[1]]()


def error():
    """Fail with an API error, as `{"status", "word", "text"}` in the second argument."""
    failure = json.loads(sys.argv[2])
    begin()
    for piece in failure.get("pieces", ()):
        say(event("content_block_delta", index=0, delta={"type": "text_delta", "text": piece}))
    if failure.get("rejected"):
        say({"type": "rate_limit_event", "rate_limit_info": {"status": "rejected"}})
    say(synthetic(failure["text"], error=failure.get("word", "unknown")))
    status = failure.get("status")
    say(result(is_error=True, api_error_status=status, result=failure["text"], stop_reason="stop_sequence"))
    sys.exit(1)


def continued():
    """Cut off at the output limit, then continued by a second request, as the CLI does by itself."""
    begin()
    message("Hello", stop_reason="max_tokens")
    say({"type": "system", "subtype": "status", "status": "requesting"})
    time.sleep(600)


def endless():
    """Answer without end."""
    begin()
    for number in range(10_000):
        turn(number, "Hello", [(f"toolu_{number}", "mcp__openclaw__read", "{}")])
        block = {"type": "tool_result", "tool_use_id": f"toolu_{number}", "content": "milk"}
        say({"type": "user", "message": {"role": "user", "content": [block]}})
        requesting()
        time.sleep(0.01)


def max_turns():
    begin()
    end_at_limit()


def end_at_limit():
    errors = ["Reached maximum number of turns (1)"]
    fields = {"subtype": "error_max_turns", "is_error": True, "errors": errors}
    line = result(**fields)
    del line["api_error_status"], line["result"]
    say(line)
    sys.exit(1)


def unoffered():
    begin(connected=False)
    message("I have no tools.")
    say(result())


def plays():
    """Play the turns of the second argument, `[text, [[tool, arguments], …]]` each, with our server."""
    begin()
    turns = json.loads(sys.argv[2])
    limit = int(argument("--max-turns") or 1)
    messages = [said()]
    n_before = 0
    for number, (text, calls) in enumerate(turns, 1):
        if number > n_before + 1:
            requesting()
        blocks = [(f"toolu_{number}{index}", *call) for index, call in enumerate(calls)]
        turn(number, text.replace("SAID", " | ".join(messages)), blocks)
        if not calls:
            say(result(result=text))
            if not (message := said()):
                return
            messages.append(message)
            begin()
            n_before = number
            continue
        for call_id, name, arguments in blocks:
            answered = answer_of(name, arguments)
            block = {"type": "tool_result", "tool_use_id": call_id, **answered}
            say({"type": "user", "message": {"role": "user", "content": [block]}})
        if number == n_before + limit:
            end_at_limit()
    sys.exit(1)


def turn(number, text, calls):
    """One message of the model: a text, and calls in two pieces each."""
    say(event("message_start", message={"id": f"msg_{number}", "model": "m1", "usage": USAGE}))
    if text:
        say(event("content_block_start", index=0, content_block={"type": "text", "text": ""}))
        say(event("content_block_delta", index=0, delta={"type": "text_delta", "text": text}))
    for index, (call_id, name, arguments) in enumerate(calls, 1):
        block = {"type": "tool_use", "id": call_id, "name": name, "input": {}}
        say(event("content_block_start", index=index, content_block=block))
        for piece in (arguments[:5], arguments[5:]):
            delta = {"type": "input_json_delta", "partial_json": piece}
            say(event("content_block_delta", index=index, delta=delta))
    reason = {"stop_reason": "tool_use" if calls else "end_turn"}
    say(event("message_delta", delta=reason, usage={"output_tokens": 3}))
    say(event("message_stop"))


def answer_of(name, arguments):
    """The result of a call, by our server if its calls are allowed."""
    own = name.removeprefix("mcp__openclaw__")
    if name == own or argument("--allowedTools") != "mcp__openclaw":
        unknown = f"<tool_use_error>No such tool available: {name}</tool_use_error>"
        return {"content": unknown, "is_error": True}
    answer = asked_of_server("tools/call", name=own, arguments=json.loads(arguments or "{}"))
    return {"content": answer["result"]["content"] if "result" in answer else answer["error"]["message"]}


def slash_command():
    begin()
    say(synthetic("/help isn't available in this environment."))
    say(result(num_turns=0, result="/help isn't available in this environment."))


def hang():
    begin()
    say(event("content_block_delta", index=0, delta={"type": "text_delta", "text": "Hel"}))
    time.sleep(600)


def stubborn():
    signal.signal(signal.SIGTERM, signal.SIG_IGN)
    Path(sys.argv[2]).write_text(str(os.getpid()), encoding="utf-8")
    hang()


def noisy():
    print("npm warn something\n{", flush=True)
    sys.stderr.write("warning: noise\n" * 20_000)
    sys.stdout.buffer.write(b'{"type": "system", "subtype": "\xff\xfe"}\n\n')
    hello()
    print("trailing words", flush=True)


def long_line():
    begin()
    message("a" * (3 << 20))
    say(result())


def killed():
    hang_after = event("content_block_delta", index=0, delta={"type": "text_delta", "text": "Hel"})
    begin()
    say(hang_after)
    os.kill(os.getpid(), signal.SIGKILL)


def terminated():
    begin()
    message("Hel")
    sys.exit(128 + signal.SIGTERM)


def plain_text():
    print("Loading …\nNo such setting: effort", flush=True)
    sys.exit(1)


def unfinished():
    begin()
    message("Hel", "lo")
    sys.exit(3)


def silent():
    sys.exit(0)


def usage_error():
    sys.stderr.write("error: unknown option '--bare'\n")
    sys.exit(1)


def version():
    print("2.1.332 (Claude Code)")


if __name__ == "__main__":
    globals()[sys.argv[1]]()
