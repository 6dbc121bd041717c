"""The files of the how-to on nightly runs keep a history, and a model that becomes worse fails the night."""

from __future__ import annotations

import re
import shlex

import pytest
import yaml

from tests.docs.pages import File, read_page
from tests.docs.reference import DOCS
from tests.docs.terminal import Terminal
from tests.docs.test_pages import CONFTEST

pytestmark = pytest.mark.newest

PAGE = DOCS / "how-to/nightly.md"
FILES = {block.path: block.text for block in read_page(PAGE.read_text("utf-8")) if isinstance(block, File)}
N_MODELS = 5
N_PROMPTS = 12
PROMPT = (
    '[[prompts]]\nid = "P{}"\nprompt = "Say hello."\nvalidator = {{ type = "contains", value = "hello" }}\n'
)


def test_five_models_are_named() -> None:
    """The ini file has as many models as the title says."""
    (named,) = re.findall(r"openclaw_models =\n((?: +\S+\n)+)", FILES["pytest.ini"])

    assert len(named.split()) == N_MODELS


def test_the_script_night_by_night(terminal: Terminal) -> None:
    """The first night has no baseline, the next ones have; a mute model fails; pages and history are there."""
    terminal.write(File(path="nightly.sh", text=FILES["nightly.sh"]))

    first, second = (terminal.run("sh nightly.sh") for _ in range(2))
    terminal.write(File(path="conftest.py", text=CONFTEST.replace("text=request.prompt", 'text="No."')))
    third = terminal.run("sh nightly.sh")

    assert (first.returncode, "compared with" in first.stdout) == (0, False), first.stdout
    assert (second.returncode, "no difference" in second.stdout) == (0, True), second.stdout
    assert third.returncode == 1, third.stdout
    assert "verdicts are compared with 2 runs" in third.stdout
    assert (terminal.folder / "runs/index.html").exists()
    assert len(list(terminal.folder.glob("runs/*/report.html"))) == len((first, second, third))


def test_the_step_on_github(terminal: Terminal) -> None:
    """The runs are in the runner's home, so that a fresh checkout finds them."""
    terminal.write(File(path="nightly.sh", text=FILES["nightly.sh"]))
    (step,) = yaml.safe_load(FILES["nightly.yml"])["jobs"]["night"]["steps"]
    line = f"env HOME={terminal.folder / 'home'} bash -ec {shlex.quote(step['run'])}"
    (terminal.folder / "home").mkdir()

    first = terminal.run(line)
    (terminal.folder / "runs").unlink()
    second = terminal.run(line)

    assert (first.returncode, second.returncode) == (0, 0), first.stdout + second.stdout
    assert "no difference" in second.stdout


@pytest.fixture
def terminal(tmp_path_factory: pytest.TempPathFactory) -> Terminal:
    """A project with a predictable model and enough prompts to see a great loss."""
    terminal = Terminal(tmp_path_factory.mktemp("nightly"))
    terminal.write(
        File(path="pytest.ini", text="[pytest]\nopenclaw_models = parrot/any\nopenclaw_verdict = gate\n")
    )
    terminal.write(File(path="conftest.py", text=CONFTEST))
    suite = "".join(PROMPT.format(number) for number in range(N_PROMPTS))
    terminal.write(File(path="benchmarks/prompts_a.toml", text=suite))
    return terminal
