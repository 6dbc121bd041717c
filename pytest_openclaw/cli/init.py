"""Start a project of your own: a suite, settings and a workflow.

Writes benchmarks/prompts_mine.toml (four prompts to edit) or, with --suite,
shipped suites, .github/workflows/openclaw.yml, the list of packages that it
installs, and the models in a new pytest.ini. If pytest is configured already,
the lines to add are printed instead. `runs/` is added to .gitignore. Nothing
is overwritten.

Then `pytest benchmarks/` measures the embedded model, or your --models.

Example:
  pytest-openclaw init
  pytest-openclaw init ~/assistant --models ollama_native/qwen3:8b
  pytest-openclaw init --suite native,safety
"""

from __future__ import annotations

import json
import os
import re
from collections.abc import Iterator, Sequence
from importlib import metadata, resources
from pathlib import Path
from typing import TYPE_CHECKING

from pytest_openclaw import __version__, options
from pytest_openclaw.cli.project import NAME, RUNS, config_file
from pytest_openclaw.cli.result import CliCommand, CommandResult
from pytest_openclaw.util.errors import OpenClawError
from pytest_openclaw.util.files import is_there, read_whole
from pytest_openclaw.util.text import as_argument
from pytest_openclaw.values.settings import EMBEDDED_TARGET

if TYPE_CHECKING:
    import argparse

SUITES = Path("benchmarks")
SUITE = SUITES / "prompts_mine.toml"
GITIGNORE = Path(".gitignore")
MOST_IGNORED_BYTES = 16 << 20
WORKFLOW = Path(".github/workflows/openclaw.yml")
REQUIREMENTS = Path(".github/openclaw-requirements.txt")
INI = Path("pytest.ini")
WHEELS = "wheels"
# What a suite refers to: prompts of another suite, and pictures.
_NEIGHBOR = re.compile(r"prompts_\w+\.toml(?=::)|images/[\w.-]+\.png")


def _add_arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument(
        "folder", nargs="?", type=Path, default=Path(), metavar="DIR", help="the project (the current folder)"
    )
    parser.add_argument(
        "--models",
        default=EMBEDDED_TARGET,
        metavar="SPEC",
        help=f"the models, as for --openclaw-models, separated by commas ({EMBEDDED_TARGET})",
    )
    suites = f"shipped suites in place of the four prompts, separated by commas: {', '.join(_shipped())}"
    parser.add_argument("--suite", metavar="NAME", help=suites)


def _run(arguments: argparse.Namespace) -> CommandResult:
    folder, models = arguments.folder, [part.strip() for part in arguments.models.split(",") if part.strip()]
    if not models:
        raise OpenClawError("--models is empty; give a target, such as ollama_native/qwen3:8b")
    found = config_file(folder)
    suites = _suites(arguments.suite) if arguments.suite else {SUITE: _starter(SUITE)}
    files = {**suites, **{file: _starter(file) for file in (WORKFLOW, REQUIREMENTS)}}
    if not found:
        ini = f"[pytest]\n{_lines(INI, models, has_tests=(folder / 'tests').is_dir())}"
        files[INI] = ini.encode()
    files = {folder / file: content for file, content in files.items()}
    for path in (*files, folder / GITIGNORE):
        if not Path(os.path.realpath(path.parent)).is_relative_to(os.path.realpath(folder)):
            raise OpenClawError(f"{path.parent} leads out of {folder}; nothing is written")
    to_ignore = _line_for_runs(folder / GITIGNORE)
    wrote = [str(path) for path, content in files.items() if _write_new(path, content)]
    kept = [str(path) for path in files if str(path) not in wrote]
    if to_ignore:
        with (folder / GITIGNORE).open("ab") as file:
            file.write(to_ignore.encode())
        wrote.append(str(folder / GITIGNORE))
    to_add = None
    if found and "openclaw_models" not in found.keys:
        text = _lines(found.path, models, has_tests=False)
        to_add = {"file": str(found.path), "section": found.section, "text": text}
    # Some shipped suites run only if their file is named.
    named = " ".join(str(file) for file in sorted(suites) if file.suffix == ".toml")
    commands = [f"pytest {named if arguments.suite else 'benchmarks/'}", "pytest-openclaw show last"]
    if (source := _source()).startswith("file:") and str(folder / WORKFLOW) in wrote:
        build = f'pip wheel --no-deps --wheel-dir {WHEELS} "{NAME} @ {source}"'
        commands.append(f"{build}  # for CI; add the folder {WHEELS} to Git")
    change_folder = "" if folder == Path() else f"cd {as_argument(str(folder))} && "
    next_steps = [*_engine(models), *(f"{change_folder}{command}" for command in commands)]
    lines = [
        *_labelled("wrote", wrote),
        *_labelled("kept", [f"{path}, which exists already" for path in kept]),
    ]
    if to_add:
        lines += ["", f"pytest is configured in {to_add['file']}; add under [{to_add['section']}]:"]
        lines += [f"  {line}".rstrip() for line in to_add["text"].splitlines()]
    return CommandResult(
        lines=[*lines, "", *_labelled("next", next_steps)],
        data={"folder": str(folder), "wrote": wrote, "kept": kept, "to_add": to_add, "next": next_steps},
    )


def _shipped() -> dict[str, Path]:
    """Return the shipped suites by their names; in a clone they are next to the package."""
    package = Path(__file__).parents[1]
    inside = package / "benchmarks"
    folder = inside if inside.is_dir() else package.parent / "benchmarks"
    return {path.stem.removeprefix("prompts_"): path for path in sorted(folder.glob("prompts_*.toml"))}


def _suites(names: str) -> dict[Path, bytes]:
    shipped, copies = _shipped(), dict[Path, bytes]()
    suites = [name.strip() for name in names.split(",") if name.strip()]
    if unknown := [name for name in suites if name not in shipped]:
        known = ", ".join(shipped)
        raise OpenClawError(f"--suite: no shipped suite is named {unknown[0]!r}; there are {known}")
    paths = [shipped[name] for name in suites]
    for path in paths:
        if (name := SUITES / path.relative_to(shipped[suites[0]].parent)) in copies:
            continue
        copies[name] = path.read_bytes()
        if path.suffix == ".toml":
            paths += [path.parent / other for other in _NEIGHBOR.findall(copies[name].decode())]
    return copies


def _starter(file: Path) -> bytes:
    name = file.name.removeprefix("openclaw-")
    text = resources.files("pytest_openclaw.cli").joinpath("starter", name).read_text("utf-8")
    # A CI runner must be able to install what the workflow names.
    source = _source()
    pinned = f"{NAME} @ {source}" if source else f"{NAME}=={__version__}"
    if source.startswith("file:"):
        pinned = f"{WHEELS}/{NAME.replace('-', '_')}-{metadata.version(NAME)}-py3-none-any.whl"
    return text.replace(f'"{NAME}"', f'"{pinned}"').encode()


def _source() -> str:
    """Return the address that this copy was installed from (PEP 610); empty for an index."""
    origin = json.loads(metadata.distribution(NAME).read_text("direct_url.json") or "{}")
    url, vcs, below = str(origin.get("url", "")), origin.get("vcs_info"), origin.get("subdirectory")
    source = f"{vcs['vcs']}+{url}@{vcs['commit_id']}" if vcs else url
    return f"{source}#subdirectory={below}" if below else source


def _lines(file: Path, models: Sequence[str], *, has_tests: bool) -> str:
    if file.suffix == ".toml":
        # JSON strings and lists are valid TOML as long as characters are not escaped.
        lines = [f"openclaw_models = {json.dumps([*models], ensure_ascii=False)}"]
    else:
        lines = ["openclaw_models =", *(f"    {model}" for model in models)]
    notes = []
    if "until-conclusive" in options.by_name():
        lines.append("openclaw_until_conclusive = true")
        notes.append("# Tool prompts are repeated until the recommendation is settled, and not more often.")
    if has_tests and file.suffix != ".toml":
        lines.append("testpaths = tests")
    bare = "a bare `pytest` runs only your tests" if has_tests else "so does a bare `pytest`"
    return "\n".join([f"# `pytest benchmarks/` measures these models; {bare}.", *notes, *lines, ""])


def _write_new(path: Path, content: bytes) -> bool:
    """Write a new file; return False if its path exists, even as a broken link."""
    path.parent.mkdir(parents=True, exist_ok=True)
    try:
        with path.open("xb") as file:
            file.write(content)
    except FileExistsError:
        return False
    return True


def _line_for_runs(path: Path) -> str:
    """Return the text to add to a file of Git that may not exist yet; empty if it has the line already."""
    old = read_whole(path, most_bytes=MOST_IGNORED_BYTES).decode("utf-8", "replace") if is_there(path) else ""
    if RUNS in (line.strip().strip("/") for line in old.splitlines()):
        return ""
    return f"{RUNS}/\n" if not old or old.endswith("\n") else f"\n{RUNS}/\n"


def _engine(models: Sequence[str]) -> list[str]:
    from pytest_openclaw.providers.llama_cpp.provider import embedded_model_is_installed, install_engine

    is_needed = any(model.startswith("llama_cpp/") for model in models)
    return [install_engine()] if is_needed and not embedded_model_is_installed() else []


def _labelled(label: str, texts: Sequence[str]) -> Iterator[str]:
    for text in texts:
        yield f"{label:<6} {text}"
        label = ""


COMMANDS = (CliCommand(name="init", help=__doc__, add_arguments=_add_arguments, run=_run),)
