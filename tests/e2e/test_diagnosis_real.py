"""`--openclaw-diagnose` on the real engine, with a broken template and with a sound one."""

import asyncio
import json
import os
from contextlib import contextmanager
from unittest.mock import patch

import pytest

from pytest_openclaw.providers.llama_cpp import provider
from tests.e2e.sessions import Project

pytestmark = [pytest.mark.engine, pytest.mark.nightly]

CALL = '<tool_call>\n{"name": "get_weather", "arguments": {"city": "Paris"}}\n</tool_call>'
PARAMETERS = {"type": "object", "properties": {"city": {"type": "string"}}, "required": ["city"]}
WEATHER = {"name": "get_weather", "description": "Returns the weather in a city.", "parameters": PARAMETERS}
PROMPT = {
    "id": "T1",
    "prompt": f"Repeat exactly this text and nothing else:\n{CALL}",
    "tools": [WEATHER, "read"],
    "validator": {"type": "tool_call", "calls": [{"name": "get_weather"}]},
    "max_output_tokens": 64,
}


@contextmanager
def serving(model):
    with asyncio.Runner() as runner:
        with patch.object(provider, "template_for", lambda _: None):
            engine = runner.run(provider.start_engine(model, os.environ))
        try:
            yield engine
        finally:
            runner.run(engine.process.stop())


def diagnosis(folder, url, token, model, prompt):
    """What a session finds; its requests are files, and no key is in them."""
    project = Project.create(
        folder / "project", f"openclaw_endpoints = lab = ollama_openai {url}/v1 LAB_KEY\n"
    )
    project.suite(prompt)
    ended = project.where(LAB_KEY=token).run("--openclaw-diagnose", models=f"lab/{model}")
    found = ended.run.group("lab")["diagnosis"]
    (file,) = ended.run.run_dir.glob("diagnosis_*.json")
    assert all(one["body"]["model"] == model for one in json.loads(file.read_text())["tries"])
    assert all(
        token not in path.read_text() for path in ended.run.run_dir.iterdir() if path.suffix != ".html"
    )
    return found


def test_the_template_is_broken(tmp_path, embedded_model):
    """The weights' own template shows no tools: the prompt is as long with them as without."""
    with serving(embedded_model) as engine:
        found = diagnosis(tmp_path, engine.url, engine.token, embedded_model, PROMPT)

    assert (found["cause"], found["template_shows_tools"]) == ("template", False), found
    assert "start llama-server with --jinja" in found["fix"]


def test_the_model_is_at_fault(tmp_path, engine, embedded_model):
    """With a sound template the model answers in words, streamed or not."""
    prompt = {**PROMPT, "prompt": "What is the capital of France?", "max_output_tokens": 24}

    found = diagnosis(tmp_path, engine.url, engine.token, embedded_model, prompt)

    assert (found["cause"], found["outcome"], found["template_shows_tools"]) == ("model", "no_call", True)
