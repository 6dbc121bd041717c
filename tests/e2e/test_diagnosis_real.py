"""`--openclaw-diagnose` on the real engine, with each of the four parts broken in turn."""

from __future__ import annotations

import asyncio
import json
import os
from collections.abc import Iterator
from contextlib import contextmanager
from http.client import HTTPConnection
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from threading import Thread
from typing import Any
from urllib.parse import urlsplit

import pytest

from pytest_openclaw.providers.llama_cpp.engine import Engine, EngineSpec, start_engine
from pytest_openclaw.providers.llama_cpp.weights import find_weights
from tests.e2e.sessions import Project

pytestmark = [pytest.mark.engine, pytest.mark.nightly]

CALL = '<tool_call>\n{"name": "get_weather", "arguments": {"city": "Paris"}}\n</tool_call>'
PARAMETERS = {"type": "object", "properties": {"city": {"type": "string"}}, "required": ["city"]}
WEATHER = {"name": "get_weather", "description": "Returns the weather in a city.", "parameters": PARAMETERS}
PROMPT: dict[str, Any] = {
    "id": "T1",
    "prompt": f"Repeat exactly this text and nothing else:\n{CALL}",
    "tools": [WEATHER, "read"],
    "validator": {"type": "tool_call", "calls": [{"name": "get_weather"}]},
    "max_output_tokens": 64,
}
# Lists the tools, and names no format for calls that the server could parse.
LISTS_TOOLS = (
    "{% if tools %}<|im_start|>system\n"
    "{% for tool in tools %}{{ tool.function.name }}: {{ tool.function.description }}\n{% endfor %}"
    "<|im_end|>\n{% endif %}"
    "{% for message in messages %}<|im_start|>{{ message.role }}\n{{ message.content }}<|im_end|>\n{% endfor %}"
    "{% if add_generation_prompt %}<|im_start|>assistant\n{% endif %}"
)


@contextmanager
def serving(model: str, folder: Path, template: str | None) -> Iterator[Engine]:
    """A running engine with another chat template, or with that of the weights."""
    path = folder / "template.jinja"
    path.write_text(template or "", "utf-8")
    spec = EngineSpec(weights=find_weights(model), alias=model, template=path if template else None)
    with asyncio.Runner() as runner:
        engine = runner.run(start_engine(spec, folder / "engine.log", environ=os.environ))
        try:
            yield engine
        finally:
            runner.run(engine.stop())


@contextmanager
def losing_streamed_calls(url: str) -> Iterator[str]:
    """A relay in front of a server, which leaves the calls out of its streams."""

    class Relay(BaseHTTPRequestHandler):
        def _pass_on(self) -> None:
            parts = urlsplit(url)
            upstream = HTTPConnection(parts.hostname or "", parts.port, timeout=120)
            body = self.rfile.read(int(self.headers.get("content-length", 0)))
            kept = {
                name: self.headers[name] for name in ("authorization", "content-type") if name in self.headers
            }
            upstream.request(self.command, self.path, body, kept)
            answer = upstream.getresponse()
            text = answer.read()
            if b"data: " in text:
                text = b"\n\n".join(e for e in text.split(b"\n\n") if b'"tool_calls":[' not in e)
            self.send_response(answer.status)
            self.send_header("content-type", answer.headers["content-type"])
            self.send_header("content-length", str(len(text)))
            self.end_headers()
            self.wfile.write(text)
            upstream.close()

        do_GET = do_POST = _pass_on  # noqa: N815 - names of the base class

        def log_message(self, *args: object) -> None:
            pass

    with ThreadingHTTPServer(("127.0.0.1", 0), Relay) as relay:
        thread = Thread(target=relay.serve_forever)
        thread.start()
        try:
            yield f"http://127.0.0.1:{relay.server_port}"
        finally:
            relay.shutdown()
            thread.join()


def diagnosis(folder: Path, url: str, token: str, model: str, prompt: dict[str, Any]) -> dict[str, Any]:
    """What a session finds; its requests are files, and no key is in them."""
    project = Project.create(
        folder / "project", f"openclaw_endpoints = lab = ollama_openai {url}/v1 LAB_KEY\n"
    )
    project.suite(prompt)
    ended = project.where(LAB_KEY=token).run("--openclaw-diagnose", models=f"lab/{model}")
    found: dict[str, Any] = ended.run.group("lab")["diagnosis"]
    for repeat in found["repeats"]:
        assert "$LAB_KEY" in repeat["command"]
        name = repeat["command"].split(" -d @")[1].split()[0]
        assert json.loads((ended.run.path / name).read_text())["model"] == model
    assert all(token not in path.read_text() for path in ended.run.path.iterdir() if path.suffix != ".html")
    return found


def test_the_template_is_broken(tmp_path: Path, embedded_model: str) -> None:
    """The weights' own template shows no tools: the prompt is as long with them as without."""
    with serving(embedded_model, tmp_path, None) as engine:
        found = diagnosis(tmp_path, engine.url, engine.token, embedded_model, PROMPT)

    assert (found["cause"], found["template_shows_tools"]) == ("template", False), found
    assert "start llama-server with --jinja" in found["fix"]


def test_the_parser_is_broken(tmp_path: Path, embedded_model: str) -> None:
    """The template shows the tools, and the server reads no call in the format that the model writes."""
    with serving(embedded_model, tmp_path, LISTS_TOOLS) as engine:
        found = diagnosis(tmp_path, engine.url, engine.token, embedded_model, PROMPT)

    assert (found["cause"], found["outcome"]) == ("parser", "leaked_as_text"), found


def test_the_stream_is_broken(tmp_path: Path, engine: Engine, embedded_model: str) -> None:
    """The answer has its call unless it is streamed, again and again."""
    with losing_streamed_calls(engine.url) as url:
        found = diagnosis(tmp_path, url, engine.token, embedded_model, PROMPT)

    assert found["cause"] == "stream", found
    assert [one["outcome"] for one in found["repeats"] if "stream" in one["change"]] == ["called", "empty"]


def test_the_model_is_at_fault(tmp_path: Path, engine: Engine, embedded_model: str) -> None:
    """With a sound template the model answers in words, streamed or not."""
    prompt = {**PROMPT, "prompt": "What is the capital of France?", "max_output_tokens": 24}

    found = diagnosis(tmp_path, engine.url, engine.token, embedded_model, prompt)

    assert (found["cause"], found["outcome"], found["template_shows_tools"]) == ("model", "no_call", True), (
        found
    )
