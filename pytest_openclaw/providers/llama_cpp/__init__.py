"""Runs the embedded engine and its models: finds, starts, watches and ends llama.cpp.

`provider` is the provider, `engine` starts and ends the engine's process, whose program is `server`.
`weights` finds the file, `checks` explains why it cannot run here.
"""

from pytest_openclaw.providers.llama_cpp.weights import EMBEDDED_MODEL, embedded_model_is_installed

__all__ = ["EMBEDDED_MODEL", "embedded_model_is_installed"]
