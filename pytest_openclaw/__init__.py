"""LLM benchmarks as pytest test cases, with the names for extensions.

The names are imported on first use: pytest imports this package in every project with the plugin installed,
and most sessions need none of them.
"""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from pytest_openclaw.conclusions.summary import AddedTable, Group, Summary, SummaryPart
    from pytest_openclaw.judging.calls import Demands, WantedCall
    from pytest_openclaw.reports.pages import Report
    from pytest_openclaw.util.errors import OpenClawError, SuiteError
    from pytest_openclaw.values import faults
    from pytest_openclaw.values.faults import CallFailed
    from pytest_openclaw.values.prompts import Prompt, Suite
    from pytest_openclaw.values.protocols import Provider, ProviderSetup, Validator
    from pytest_openclaw.values.replies import Fault, Reply, Timing, Turn, Usage, Verdict
    from pytest_openclaw.values.requests import Request
    from pytest_openclaw.values.tool_calls import Dispatched, Tool, ToolCall

__version__ = "0.1.0"

__all__ = [
    "AddedTable",
    "CallFailed",
    "Demands",
    "Dispatched",
    "Fault",
    "Group",
    "OpenClawError",
    "Prompt",
    "Provider",
    "ProviderSetup",
    "Reply",
    "Report",
    "Request",
    "Suite",
    "SuiteError",
    "Summary",
    "SummaryPart",
    "Timing",
    "Tool",
    "ToolCall",
    "Turn",
    "Usage",
    "Validator",
    "Verdict",
    "WantedCall",
    "__version__",
    "faults",
]

_HOMES = {
    "judging.calls": ("Demands", "WantedCall"),
    "reports.pages": ("Report",),
    "conclusions.summary": ("AddedTable", "Group", "Summary", "SummaryPart"),
    "util.errors": ("OpenClawError", "SuiteError"),
    "values.faults": ("CallFailed",),
    "values.prompts": ("Prompt", "Suite"),
    "values.protocols": ("Provider", "ProviderSetup", "Validator"),
    "values.replies": ("Fault", "Reply", "Timing", "Turn", "Usage", "Verdict"),
    "values.requests": ("Request",),
    "values.tool_calls": ("Dispatched", "Tool", "ToolCall"),
}


def __getattr__(name: str) -> Any:
    if name == "faults":
        return import_module(f"{__name__}.values.faults")
    for module, names in _HOMES.items():
        if name in names:
            return getattr(import_module(f"{__name__}.{module}"), name)
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
