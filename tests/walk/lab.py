"""A project and a server for the walk: an Ollama on loopback with three models of different skill."""

import hashlib

from tests.providers.servers.misbehaving import Script
from tests.providers.servers.ollama import OllamaServer, answer, calling, done, lines

SKILLS = {"qwen3:8b": 0.97, "llama3.2:3b": 0.6, "smollm2:135m": 0.15}
"""The share of prompts that each model gets right."""
FILES = ("notes", "todo", "plan", "budget", "letter", "recipe", "diary", "agenda", "report", "invoice")
LANDS = ("France", "Spain", "Italy", "Japan", "Peru", "Kenya")
CAPITALS = dict(zip(LANDS, ("Paris", "Madrid", "Rome", "Tokyo", "Lima", "Nairobi"), strict=True))


def _message(model, prompt):
    digest = hashlib.sha256(f"{prompt} {model}".encode()).digest()
    right = digest[0] / 256 < SKILLS[model]
    if prompt.startswith("Read "):
        path = prompt.split()[1].rstrip(".")
        return _reads(path) if right else {"content": f"I have read {path}: it is about the weather."}
    if prompt.startswith("Which command"):
        return {"content": "`df -h`" if right else "Look into the settings."}
    if prompt.startswith("Thank "):
        return {"content": "Thank you, Ada."} if right else _reads("thanks.md")
    country = prompt.removesuffix("?").rsplit(" ", 1)[-1]
    return {"content": CAPITALS.get(country, "Hello.") if right else "It is a large city."}


def _reads(path):
    return {"content": "", "message": {"tool_calls": calling(("read", {"path": path}))}}


def _chat(body):
    prompt = body["messages"][-1]["content"]
    model = body["model"]
    if model not in SKILLS:
        return Script.answer({"error": f"model '{model}' not found"}, status=404)
    last = {**done(**_message(model, prompt), prompt_eval_duration=4_000_000), "model": model}
    if not body.get("stream", True):  # Ollama streams by default
        return Script.answer(last)
    return answer(lines(last))


class _LabServer(OllamaServer):
    """Has a context that is long enough for OpenClaw."""

    def _running(self, name):
        return {**super()._running(name), "context_length": 32_768}


def serve():
    return _LabServer(_chat, models={name: ["completion", "tools"] for name in SKILLS})


def write_project(folder):
    """Write settings and suites: tool prompts, prompts that forbid a call, and plain questions."""
    tools = 'tools = ["read", "exec"]'
    calls = [
        f'[[prompts]]\nid = "T{n}"\nname = "read_{name}"\nprompt = "Read {name}.md."\n{tools}\n'
        f'validator = {{ type = "tool_call", calls = [{{ name = "read", arguments = {{ path = "{name}.md" }} }}] }}\n'
        for n, name in enumerate(FILES)
    ]
    calls += [
        f'[[prompts]]\nid = "R{n}"\nname = "only_thanks_{n}"\nprompt = "Thank Ada for letter {n}."\n{tools}\n'
        'validator = { type = "tool_call", calls = [] }\n'
        for n in range(4)
    ]
    questions = [
        f'[[prompts]]\nid = "P{n}"\nname = "capital_{land.lower()}"\nprompt = "What is the capital of {land}?"\n'
        f'validator = {{ type = "exact", value = "{city}" }}\n'
        for n, (land, city) in enumerate(CAPITALS.items())
    ]
    shell = [
        f'[[prompts]]\nid = "S{n}"\nprompt = "Which command shows the free space of disk {n}?"\n'
        'validator = { type = "tool_invocation", expected_tools = ["df"] }\n'
        for n in range(3)
    ]
    files = {
        "pytest.ini": "[pytest]\n",
        "benchmarks/prompts_tools.toml": "\n".join(calls),
        "benchmarks/prompts_questions.toml": "\n".join(questions),
        "benchmarks/prompts_shell.toml": "\n".join(shell),
        "mine.toml": questions[0],
    }
    for name, text in files.items():
        path = folder / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text, "utf-8")
