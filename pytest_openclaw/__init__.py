"""LLM benchmarks as pytest test cases; what an extension needs is importable from here.

The names are imported when they are first used: pytest imports this package in every project that has
the plugin installed, and most sessions need none of them.
"""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from pytest_openclaw.errors import CallFailed, OpenClawError
    from pytest_openclaw.protocols import Provider, ProviderSetup, Validator
    from pytest_openclaw.records import Fault, Reply, Request, Timing, Turn, Usage, Verdict
    from pytest_openclaw.reports.brought import Report
    from pytest_openclaw.stats.summary import Group, Summary
    from pytest_openclaw.toolcalls import Tool, ToolCall

__version__ = "0.1.0"

__all__ = [
    "CallFailed",
    "Fault",
    "Group",
    "OpenClawError",
    "Provider",
    "ProviderSetup",
    "Reply",
    "Report",
    "Request",
    "Summary",
    "Timing",
    "Tool",
    "ToolCall",
    "Turn",
    "Usage",
    "Validator",
    "Verdict",
    "__version__",
]

_HOMES = {
    "errors": ("CallFailed", "OpenClawError"),
    "protocols": ("Provider", "ProviderSetup", "Validator"),
    "records": ("Fault", "Reply", "Request", "Timing", "Turn", "Usage", "Verdict"),
    "reports.brought": ("Report",),
    "stats.summary": ("Group", "Summary"),
    "toolcalls": ("Tool", "ToolCall"),
}


def __getattr__(name: str) -> Any:
    for module, names in _HOMES.items():
        if name in names:
            return getattr(import_module(f"{__name__}.{module}"), name)
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
