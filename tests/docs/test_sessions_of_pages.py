"""The `pytest` lines of the pages ask the targets that they name, which a scripted server here answers."""

from __future__ import annotations

import json
import shlex
import shutil
import sys
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

from tests.docs.pages import File, commands_of
from tests.docs.terminal import Terminal
from tests.docs.test_pages import FOLLOWED, PAGES, PLUGINS, ROOT, SUITE, programs
from tests.providers.fake_claude import command as fake_claude
from tests.providers.servers.apis import APIS, CHAT, CHAT_USAGE, prompt_of
from tests.providers.servers.misbehaving import Request, Script
from tests.providers.servers.ollama import OllamaServer, done

if TYPE_CHECKING:
    from collections.abc import Iterator

pytestmark = [pytest.mark.newest, pytest.mark.xdist_group("pages")]

FAKE_OPENCLAW = ROOT / "tests/openclaw/fake_openclaw.py"
OF_INI = ("ollama_openai/qwen3:8b", "ollama_native/qwen3:8b")
INI = """
[pytest]
testpaths = benchmarks
openclaw_models = {models}
openclaw_stream = off
openclaw_catalogue = substitute
openclaw_endpoints =
    lab = ollama_openai {url}
    studio = ollama_openai {url}
    router = ollama_openai {url}
    openrouter = ollama_openai {url}
    groq = ollama_openai {url}
openclaw_prices = * = 1 2
"""
P7 = """
[[prompts]]
id = "P7"
prompt = "Say hello a third time."
validator = { type = "contains", value = "hello" }
"""
FIRST = "first"
N_INPUT = 20_000
"""Tokens of a question with all tools of OpenClaw: fewer would mean that it was cut."""
N_PROMPTS = 10
"""As many prompts of a shipped suite are enough to see that a line works."""
ALIASES = {"ollama": "ollama_openai"}
JUDGED = (0, 1, 10)
"""Exit statuses of a session that has asked: a cell or a gate may fail, or a gate have no verdict."""
N_ELSEWHERE = 2
"""Two machines take ssh; an agent with Ollama takes OpenClaw; the tutorial runs the line of the first page."""


def _lines() -> Iterator[tuple[str, list[str], str | None]]:
    """Yield place, arguments and reason not to run, of the lines that no other test runs."""
    for page in PAGES:
        for command in commands_of(page.read_text("utf-8")):
            if page in FOLLOWED | PLUGINS and not command.elsewhere:
                continue
            # On a page that is followed, the mark says that the follower has no such server.
            reason = None if page in FOLLOWED else command.elsewhere
            for program, *rest in programs(command):
                if program == "pytest":
                    yield f"{page.relative_to(ROOT)}:{command.start}", rest, reason


LINES = list(_lines())
SESSIONS = [pytest.param(words, id=place) for place, words, reason in LINES if reason is None]

# Runs many sessions in one process; stdin has the environment, folders and arguments, stdout the results.
ASK = """
import contextlib, io, json, os, sys
import pytest

environ, sessions = json.load(sys.stdin)
os.environ.update(environ)
results = []
for folder, words in sessions:
    os.chdir(folder)
    with contextlib.redirect_stdout(io.StringIO()) as out, contextlib.redirect_stderr(out):
        status = pytest.main(words)
    results.append((int(status), out.getvalue()))
json.dump(results, sys.stdout)
"""


def _reply(request: Request) -> Script:
    """Answer by each API as a model that repeats what it is asked."""
    api = next((api for api in APIS if api.answers(request.path)), None)
    if api is None:
        return Script.answer({"error": {"message": "no such route"}}, status=404)
    usage = {**CHAT_USAGE, "prompt_tokens": N_INPUT} if api is CHAT else None
    return Script.answer(api.whole(prompt_of(request.json)[-200:], usage=usage))


@pytest.fixture(scope="module")
def server() -> Iterator[OllamaServer]:
    """Every API of the pages, at one address."""

    def chat(body: dict[str, Any]) -> Script:
        return Script.answer(done(content=prompt_of(body)[-200:], prompt_eval_count=N_INPUT))

    with OllamaServer(chat, {"qwen3:8b": ["completion", "tools", "thinking"]}) as server:
        server.on("*", _reply)
        server.on("/v1/chat/completions", _reply)
        yield server


@pytest.fixture(scope="module")
def project(tmp_path_factory: pytest.TempPathFactory, server: OllamaServer) -> Path:
    """A project with a small suite and a run of it."""
    folder = tmp_path_factory.mktemp("project")
    terminal = Terminal(folder)
    terminal.write(File(path="pytest.ini", text=INI.format(url=server.url, models=",".join(OF_INI))))
    terminal.write(File(path="benchmarks/prompts_a.toml", text=SUITE + P7))
    ((status, shown),) = _ask([(folder, ["benchmarks", f"--openclaw-run-id={FIRST}"])], server)
    assert status == 0, shown
    return folder


def _ask(sessions: list[tuple[Path, list[str]]], server: OllamaServer) -> list[tuple[int, str]]:
    """Return exit status and output of sessions, each in its folder."""
    folder = sessions[0][0]
    environ = {
        "OLLAMA_HOST": server.origin,
        **{api.base_env: server.url.removesuffix("/v1") + api.version for api in APIS},
        **{api.key_env: "dummy-key-0123456789" for api in APIS},
        "OPENCLAW_CLAUDE_COMMAND": fake_claude("hello"),
        "OPENCLAW_AGENT_COMMAND": shlex.join(
            [sys.executable, str(FAKE_OPENCLAW), "answer", str(folder / "seen")]
        ),
        "OPENCLAW_AGENT_BASE_URL": server.url,
    }
    given = json.dumps([environ, [(str(folder), words) for folder, words in sessions]])
    run = Terminal(folder).run(shlex.join([sys.executable, "-c", ASK]), stdin=given)
    results: list[tuple[int, str]] = json.loads(run.stdout)
    return results


@pytest.fixture(scope="module")
def asked(
    tmp_path_factory: pytest.TempPathFactory, project: Path, server: OllamaServer
) -> dict[tuple[str, ...], tuple[int, str, Path]]:
    """Exit status, output and folder of the session of each line, in a copy of the project."""
    lines = sorted({tuple(case.values[0]) for case in SESSIONS})
    folders = [tmp_path_factory.mktemp("session") for _ in lines]
    for folder, words in zip(folders, lines, strict=True):
        shutil.copytree(project, folder, dirs_exist_ok=True, symlinks=True)
        for name in (word for word in words if (ROOT / word).is_file()):
            parts = (ROOT / name).read_text("utf-8").split("\n[[prompts]]\n")
            (folder / name).write_text("\n[[prompts]]\n".join(parts[: 1 + N_PROMPTS]), "utf-8")
    results = _ask([(folder, list(words)) for folder, words in zip(folders, lines, strict=True)], server)
    return {words: (*result, folder) for words, result, folder in zip(lines, results, folders, strict=True)}


@pytest.mark.parametrize("words", SESSIONS)
def test_a_line_asks_the_targets_that_it_names(
    words: list[str], asked: dict[tuple[str, ...], tuple[int, str, Path]]
) -> None:
    """It ends with a verdict, each cell has an answer, and all its targets are in the rows."""
    status, shown, folder = asked[tuple(words)]

    assert status in JUDGED, shown
    assert "Traceback" not in shown
    rows = _rows(folder)
    rows = _rows(folder)
    faults = [(row["provider"], row["fault_message"]) for row in rows if row["availability_status"] != "ok"]
    assert not faults, faults[0]
    found = {row["provider"] for row in rows}
    if any(
        word.startswith("--openclaw-shard=") for word in words
    ):  # a part of the cells may have a part of them
        assert found
        assert found <= _providers(words)
    else:
        assert found == _providers(words), shown


def _providers(words: list[str]) -> set[str]:
    """The providers that a session must have asked."""
    if "--openclaw-dry-run" in words or "--openclaw-resume=last" in words:  # nothing is left to ask
        return set()
    options = dict(word.split("=", 1) for word in words if word.startswith("--openclaw-") and "=" in word)
    if listed := options.get("--openclaw-providers"):
        return set(listed.split(","))
    models = options.get("--openclaw-models", ",".join(OF_INI))
    names = {model.partition("/")[0] for model in models.split(",")}
    return {ALIASES.get(name, name) for name in names}


def _rows(folder: Path) -> list[dict[str, Any]]:
    return [
        json.loads(line)
        for results in sorted(folder.glob("runs/*/results.jsonl"))
        if results.parent.name != FIRST and not results.parent.is_symlink()
        for line in results.read_text("utf-8").splitlines()
    ]


def test_few_lines_need_another_program() -> None:
    """Each of them is marked on its page, with the reason."""
    elsewhere = [(place, reason) for place, _, reason in LINES if reason]

    assert len(elsewhere) == N_ELSEWHERE, elsewhere
