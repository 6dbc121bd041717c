"""Pages followed as by a reader: README and tutorials with the engine, the how-to on images with a server that sees."""

import json
import shutil
import tomllib
from base64 import b64encode

import pytest

from tests.conftest import require_engine
from tests.docs.pages import read_page
from tests.docs.reference import DOCS
from tests.docs.terminal import Terminal, follow
from tests.providers.servers.apis import CHAT
from tests.providers.servers.misbehaving import MisbehavingServer, Script

pytestmark = pytest.mark.newest

PAGE = DOCS / "how-to/images.md"
BENCHMARKS = DOCS.parent / "benchmarks"
SUITE = tomllib.loads((BENCHMARKS / "prompts_images.toml").read_text("utf-8"))
REPLIES = tomllib.loads((DOCS.parent / "tests/suites/replies_images.toml").read_text("utf-8"))
SERVER = "http://127.0.0.1:8080/v1"


def sees(request):
    """Answer as a model that sees all images of the suite, and nothing without them."""
    content = request.json["messages"][-1]["content"]
    if isinstance(content, str):  # a warm-up
        return Script.answer(_answer({"text": "Hi"}))
    text, *images = content
    prompt = next(one for one in SUITE["prompts"] if one["prompt"] == text["text"])
    sent = [image["image_url"]["url"] for image in images]
    right = REPLIES[prompt["id"]]["right"] if sent == [_address(path) for path in prompt["images"]] else "?"
    return Script.answer(_answer(right if isinstance(right, dict) else {"text": right}))


def _answer(said):
    calls = tuple((call["name"], json.dumps(call["arguments"])) for call in said.get("calls", ()))
    return {**CHAT.whole(said["text"] or None, "tool_calls" if calls else "stop", calls=calls), "model": "m"}


def _address(path):
    return f"data:image/png;base64,{b64encode((BENCHMARKS / path).read_bytes()).decode()}"


@pytest.fixture
def terminal(tmp_path):
    folder = tmp_path / "benchmarks"
    shutil.copytree(BENCHMARKS / "images", folder / "images")
    shutil.copy(BENCHMARKS / "prompts_images.toml", folder)
    shutil.copy(BENCHMARKS / "images" / "bars.png", folder / "chart.png")
    return Terminal(tmp_path)


def test_the_page_is_followed(terminal):
    """Every command of the page runs, and all cells of both suites pass."""
    page = PAGE.read_text("utf-8")
    assert SERVER in page
    with MisbehavingServer() as server:
        server.on("/v1/chat/completions", sees)
        follow(read_page(page.replace(SERVER, server.url)), terminal)

    results = terminal.folder.glob("runs/*/results.jsonl")
    rows = [json.loads(line) for file in results for line in file.read_text("utf-8").splitlines()]
    assert len(rows) == 1 + len(SUITE["prompts"])
    assert [row["prompt_id"] for row in rows if not row["objective_pass"]] == []


@pytest.mark.engine
@pytest.mark.parametrize(
    "pages",
    [["README.md"], pytest.param(["docs/tutorial.md", "docs/tutorial-gate.md"], marks=pytest.mark.nightly)],
)
def test_pages_print_what_they_show(pages, tmp_path):
    """Files are written and commands run in order, in a fresh folder."""
    require_engine()

    for page in pages:
        assert follow(read_page((DOCS.parent / page).read_text("utf-8")), Terminal(tmp_path)) >= 2
