"""Runs the embedded engine and reaches its models: finds, starts, watches and ends llama.cpp.

`provider` is the provider. `weights` finds the file, `checks` tells why it cannot run here, `server` is the
engine's own process, which `process` starts and `leases` keep alive for as long as somebody uses it;
`supervisor` starts or joins the one that a run shares, `pool` holds one at a time.
"""

from pytest_openclaw.providers.llama_cpp.weights import EMBEDDED_MODEL, embedded_model_is_installed

__all__ = ["EMBEDDED_MODEL", "embedded_model_is_installed"]
