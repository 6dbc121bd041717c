"""LLM benchmarks as pytest test cases; what an extension needs is importable from here."""

from pytest_openclaw.errors import CallFailed, OpenClawError
from pytest_openclaw.protocols import Provider, ProviderSetup, Validator
from pytest_openclaw.records import Fault, Reply, Request, Timing, ToolCall, Verdict

__version__ = "0.1.0"

__all__ = [
    "CallFailed",
    "Fault",
    "OpenClawError",
    "Provider",
    "ProviderSetup",
    "Reply",
    "Request",
    "Timing",
    "ToolCall",
    "Validator",
    "Verdict",
    "__version__",
]
