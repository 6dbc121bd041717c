"""Prompts with images in whole sessions: rows, the run's files, changed images, and who does not see them."""

import hashlib
from base64 import b64encode

import pytest

from tests.images import png
from tests.providers.servers.misbehaving import Script
from tests.providers.servers.ollama import OllamaServer, answer, done, lines, said

pytestmark = pytest.mark.newest

CHART = png(width=64, height=64, gray=10)
SUITE = """
[[prompts]]
id = "I1"
prompt = "How many circles?"
images = ["charts/a.png"]
validator = { type = "exact", value = "7" }

[[prompts]]
id = "P1"
prompt = "Say 7."
validator = { type = "exact", value = "7" }
"""
BENCHMARK = """
import pytest

@pytest.mark.openclaw(id="I2", prompt="How many squares?", images=["charts/a.png"])
def test_squares(reply):
    assert reply.text == "7"
"""


@pytest.fixture
def gallery(project):
    project.suite(SUITE)
    (project.folder / "benchmarks" / "charts").mkdir()
    (project.folder / "benchmarks" / "charts" / "a.png").write_bytes(CHART)
    return project


def sees(body):
    last = body["messages"][-1]
    text = "7" if last.get("images") or "7" in last["content"] else "I see no image."
    return answer(lines(said(text), done())) if body["stream"] else Script.answer(done(content=text))


@pytest.mark.under_workers
def test_a_run_names_its_images_and_contains_none(gallery, monkeypatch):
    """Rows and config.json have path and hash of each image; no file of the run has the image itself."""
    gallery.write("benchmarks/test_python.py", BENCHMARK)

    with OllamaServer(sees, {"m:latest": ["completion", "vision"]}) as server:
        monkeypatch.setenv("OLLAMA_HOST", server.origin)
        session = gallery.run(models="ollama_native/m")

    session.outcomes(passed=3)
    digest = hashlib.sha256(CHART).hexdigest()
    shown = [{"path": "charts/a.png", "sha256": digest}]
    assert {row["prompt_id"]: row["images"] for row in session.rows} == {"I1": shown, "I2": shown, "P1": None}
    defined = {one["id"]: one.get("images_sha256") for one in session.load("config.json")["prompts"]}
    assert defined == {"I1": [digest], "I2": [digest], "P1": None}
    image = b64encode(CHART)
    files = [path for path in session.run_dir.rglob("*") if path.is_file()]
    assert [path.name for path in files if image[:40] in path.read_bytes()] == []


def test_a_provider_that_sends_no_images(gallery):
    """Its cells with images are not asked, with the reason; the others are."""
    session = gallery.run(models="scripted/m")

    session.outcomes(skipped=1, errors=1)
    row = session.row("I1")
    assert (row["availability_status"], row["attempts"]) == ("skipped_unavailable", 0)
    assert "the prompt has images, which this provider does not send" in row["fault_message"]
