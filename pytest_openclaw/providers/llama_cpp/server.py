"""The engine's own process: `python -m pytest_openclaw.providers.llama_cpp.server SPEC`.

SPEC is the JSON object that `start_engine` makes. The process serves one model on 127.0.0.1 at a free port,
one request at a time. When the model is loaded, it prints one line: `READY` and a JSON object with `url` and
`token`, the key for its port. It exits at the end of its input, which is closed when the process that started
it ends for any reason. No other module imports llama.cpp.
"""

from __future__ import annotations

import json
import os
import secrets
import sys
from pathlib import Path
from typing import Any

READY = "READY "
LOOPBACK = "127.0.0.1"

_CPU_QUOTA = Path("/sys/fs/cgroup/cpu.max")
_ERRORS_ONLY = 1


def main() -> None:
    """Serve until the input ends; exit without Python's shutdown, which llama.cpp's threads would outlive."""
    spec = json.loads(sys.argv[1])
    token = secrets.token_urlsafe(32)
    url = _serve(spec, token)
    sys.stdout.write(READY + json.dumps({"url": url, "token": token}) + "\n")
    sys.stdout.flush()
    sys.stdin.buffer.read()
    os._exit(0)


def thread_count(available: int, physical: int | None, cpu_quota: str) -> int:
    """Return the fastest number of threads: one per core that this process may use.

    Args:
        available: logical CPUs that this process may run on.
        physical: cores of the machine; None if unknown.
        cpu_quota: the control group's `cpu.max`, "QUOTA PERIOD" in µs; empty without a control group.
    """
    limits = [available, physical or available]
    quota, _, period = cpu_quota.partition(" ")
    if quota.isdigit() and period.strip().isdigit():
        limits.append(round(int(quota) / int(period)))
    return max(1, min(limits))


def _serve(spec: dict[str, Any], token: str) -> str:
    import xllamacpp

    params = xllamacpp.CommonParams()
    params.model.path = spec["weights"]
    params.model_alias = {spec["alias"]}
    params.hostnames, params.port = [LOOPBACK], 0
    params.api_keys, params.cors_origins = [token], ""
    params.n_ctx, params.n_parallel = spec["context_tokens"], 1
    params.cpuparams.n_threads = params.cpuparams_batch.n_threads = _threads_here()
    params.cache_prompt, params.cache_ram_mib = False, 0  # a request may turn the cache on
    if (trained := spec["trained_tokens"]) and trained < spec["context_tokens"]:
        params.rope_scaling_type = xllamacpp.llama_rope_scaling_type.LLAMA_ROPE_SCALING_TYPE_YARN
        params.rope_freq_scale, params.yarn_orig_ctx = trained / spec["context_tokens"], trained
    params.sampling.temp = 0.0  # also for clients that cannot set a temperature, such as the Claude CLI
    params.use_jinja = True
    params.endpoint_metrics = params.endpoint_slots = params.endpoint_props = True
    params.ui = params.fit_params = False
    params.offline, params.verbosity = True, _ERRORS_ONLY
    if spec["template"]:
        params.chat_template = Path(spec["template"]).read_text("utf-8")
    # Kept in the module: the server stops when its object is garbage-collected.
    _running.append(server := xllamacpp.Server(params))
    return str(server.listening_address)


_running: list[object] = []


def _threads_here() -> int:
    import psutil

    available = len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1
    quota = _CPU_QUOTA.read_text("utf-8") if _CPU_QUOTA.exists() else ""
    return thread_count(available, psutil.cpu_count(logical=False), quota)


if __name__ == "__main__":
    main()
