"""Runs the embedded engine and its models: finds, starts, watches and ends llama.cpp.

`provider` is the provider. `weights` finds the file, `checks` explains why it cannot run here, `server` is
the engine's own process, which `process` starts and `leases` keep alive while it is used; `supervisor` starts
or joins the one that a run shares, `pool` keeps one at a time.
"""

from pytest_openclaw.providers.llama_cpp.weights import EMBEDDED_MODEL, embedded_model_is_installed

__all__ = ["EMBEDDED_MODEL", "embedded_model_is_installed"]
