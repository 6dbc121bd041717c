"""A model server that counts: `python model_server.py HOST:PORT LOG SECONDS` echoes each prompt.

It writes a JSON line for each request when it ends: the prompt, the times, the key, and the highest number of
concurrent requests meanwhile. If a file `hold.txt` is beside LOG, only that many prompts are answered;
`arrived.txt` beside LOG has one letter for each prompt received, without warm-ups.
"""

from __future__ import annotations

import json
import sys
import threading
import time
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path

host, port = sys.argv[1].rsplit(":", 1)
log, seconds = Path(sys.argv[2]), float(sys.argv[3])
lock = threading.Lock()
under_way: set[int] = set()
most: dict[int, int] = {}
hold, arrived = log.with_name("hold.txt"), log.with_name("arrived.txt")


def wait_for_leave() -> None:
    """Delay a reply as long as `hold.txt` demands."""
    with lock, arrived.open("a") as file:
        file.write("x")
        number = file.seek(0, 2)
    while hold.exists() and number > int(hold.read_text()):
        time.sleep(0.02)


class Handler(BaseHTTPRequestHandler):
    """Serves chat completions and nothing else."""

    def do_GET(self) -> None:
        self._send(404, b'{"error": "not here"}', "application/json")

    def do_POST(self) -> None:
        if not self.path.endswith("/chat/completions"):
            self._send(404, b'{"error": "not here"}', "application/json")
            return
        me = threading.get_ident()
        began = time.time()
        with lock:
            under_way.add(me)
            most[me] = len(under_way)
            for other in under_way:
                most[other] = max(most[other], len(under_way))
        asked = json.loads(self.rfile.read(int(self.headers["Content-Length"])))
        prompt = asked["messages"][-1]["content"]
        if prompt != "Hi":
            wait_for_leave()
        time.sleep(seconds)
        choice = {"index": 0, "finish_reason": "stop"}
        if asked.get("stream"):
            chunk = {"model": asked["model"], "choices": [choice | {"delta": {"content": prompt}}]}
            body, kind = f"data: {json.dumps(chunk)}\n\ndata: [DONE]\n\n".encode(), "text/event-stream"
        else:
            message = {"role": "assistant", "content": prompt}
            whole = {"model": asked["model"], "choices": [choice | {"message": message}]}
            body, kind = json.dumps(whole).encode(), "application/json"
        with lock:
            under_way.discard(me)
            line = {
                "prompt": prompt,
                "began": began,
                "ended": time.time(),
                "at_once": most.pop(me),
                "key": self.headers.get("Authorization"),
            }
            with log.open("a", encoding="utf-8") as file:
                file.write(json.dumps(line) + "\n")
        self._send(200, body, kind)

    def _send(self, status: int, body: bytes, kind: str) -> None:
        self.send_response(status)
        self.send_header("Content-Type", kind)
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)

    def log_message(self, *args: object) -> None:
        return


server = ThreadingHTTPServer((host, int(port)), Handler)
print("ready", flush=True)
server.serve_forever()
