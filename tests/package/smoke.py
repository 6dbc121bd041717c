"""Creates a project and asks a model server where only the wheel and its dependencies are installed."""

import json
import os
import subprocess
import sys
import tempfile
import threading
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from importlib.util import find_spec
from pathlib import Path

import pytest_openclaw

CLONE = Path(__file__).resolve().parents[2]
PATIENCE_S = 300.0
# Packages that only extras and the clone's dependency groups install.
OTHERS = ("xllamacpp", "genai_prices", "hypothesis", "mypy", "tests", "twine")
CALL = {"name": "read", "arguments": '{"path": "notes.md"}'}
READ = {"index": 0, "id": "c1", "type": "function", "function": CALL}
ANSWERS = {
    "capital of France": {"content": "It is Paris."},
    "Say hello": {"content": "Hello there."},
    "free space": {"content": "`df -h`"},
    "What do my notes say": {"tool_calls": [READ]},
}


class _Server(BaseHTTPRequestHandler):
    def do_POST(self):
        asked = json.loads(self.rfile.read(int(self.headers["content-length"])))
        if self.path != "/v1/chat/completions":  # a request that only Ollama itself could answer
            self.send_error(404)
            return
        prompt = asked["messages"][-1]["content"]
        fitting = (answer for words, answer in ANSWERS.items() if words in prompt)
        delta = next(fitting, {"content": "Ready."})  # the warm-up is no prompt of the suite
        ended = "tool_calls" if "tool_calls" in delta else "stop"
        chunks = [_chunk({"role": "assistant", **delta}, None), _chunk({}, ended)]
        self.send_response(200)
        self.send_header("content-type", "text/event-stream")
        self.end_headers()
        for text in (*map(json.dumps, chunks), "[DONE]"):
            self.wfile.write(f"data: {text}\n\n".encode())

    def log_message(self, *_):
        return


def _chunk(delta, ended):
    choice = {"index": 0, "delta": delta, "finish_reason": ended}
    head = {"id": "r1", "object": "chat.completion.chunk", "created": 0, "model": "fake"}
    return {**head, "choices": [choice]}


@contextmanager
def _serving():
    with ThreadingHTTPServer(("127.0.0.1", 0), _Server) as server:
        threading.Thread(target=server.serve_forever, daemon=True).start()
        yield f"http://127.0.0.1:{server.server_address[1]}/v1"
        server.shutdown()


def main():
    """Create a project, run it plain and with workers, and show a reply."""
    place = Path(pytest_openclaw.__file__).resolve()
    is_installed = not place.is_relative_to(CLONE) or place.is_relative_to(Path(sys.prefix).resolve())
    _hold(is_installed, f"it is the clone's: {place}")
    _hold((place.parent / "py.typed").exists(), "it has no py.typed")
    strangers = [name for name in OTHERS if find_spec(name)]
    _hold(not strangers, f"it is installed with {', '.join(strangers)}")
    with tempfile.TemporaryDirectory() as folder, _serving() as url:
        project = Path(folder)
        _run(project, url, "pytest-openclaw", "init")
        for name in ("benchmarks/prompts_mine.toml", ".github/workflows/openclaw.yml", "pytest.ini"):
            _hold((project / name).is_file(), f"init has not written {name}")
        for mode in ([], ["-n", "2"]):
            run_id = "workers" if mode else "plain"
            target = ["--openclaw-models=ollama_openai/fake", f"--openclaw-run-id={run_id}"]
            said = _run(project, url, "pytest", "benchmarks/", *target, *mode)
            _hold("6 passed" in said, f"a session of four prompts has other outcomes:\n{said}")
            lines = (project / "runs" / run_id / "results.jsonl").read_text("utf-8").splitlines()
            ids = sorted(json.loads(line)["prompt_id"] for line in lines)
            _hold(ids == ["M1", "M2", "M3", "M3", "M4", "M4"], f"the rows are of {ids}")
            summary = json.loads((project / "runs" / run_id / "summary.json").read_text("utf-8"))
            _hold(summary["state"] == "finished", f"the run is {summary['state']}")
        shown = _run(project, url, "pytest-openclaw", "show", "plain", "M1")
        _hold("It is Paris." in shown, "show prints no reply")
    print(f"pytest-openclaw {pytest_openclaw.__version__} works from its wheel")


def _run(project, url, program, *words):
    """Return the output of a program of this environment; any exit status but 0 ends the check."""
    environ = {name: os.environ[name] for name in ("PATH", "SYSTEMROOT") if name in os.environ}
    own = {"HOME": str(project), "USERPROFILE": str(project), "OLLAMA_OPENAI_BASE": url}
    done = subprocess.run(
        [str(Path(sys.executable).with_name(program)), *words],
        cwd=project, env=environ | own, capture_output=True, encoding="utf-8", timeout=PATIENCE_S, check=False,
    )  # fmt: skip
    command = f"{program} {' '.join(words)}"
    _hold(done.returncode == 0, f"{command} ended with {done.returncode}:\n{done.stdout}{done.stderr}")
    return done.stdout


def _hold(condition, said):
    if not condition:
        sys.exit(said)


if __name__ == "__main__":
    main()
